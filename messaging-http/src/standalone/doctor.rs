//! `messaging doctor`: all checks, on the data directory of a running server or without one.
//!
//! Nothing is created or repaired: the state is reported even if a start would correct it.

use messaging_core::domain::installation::checkup::{CheckId, CheckReport, SecretKeyFact, skipped};
use messaging_core::error::Chain;
pub use messaging_engine::services::checkup::host::MAX_BLOCKLISTS;
use messaging_engine::services::checkup::host::{Host, check_host};
use messaging_store::key_file::KeyFileError;
use messaging_transport::Dns;

use super::host_probe::{KeyKnown, checkup};
use super::open::{Opened, look_at};
use super::start_error::StartError;
use crate::settings::Settings;

/// Time server that the clock is compared with.
const TIME_SERVER: &str = "pool.ntp.org";

/// Options of `doctor` beyond the settings.
#[derive(Debug, Clone, Default)]
pub struct Examination {
    /// A domain that receives mail.
    pub probe: Option<String>,
    /// Zones of blocklists, at most [`MAX_BLOCKLISTS`].
    pub blocklists: Vec<String>,
}

/// Runs all checks. Takes some seconds, at most a minute.
pub async fn examine(settings: &Settings, examination: &Examination) -> Vec<CheckReport> {
    let base = format!("http://{}", settings.listen);
    let asked = |mut checkup: messaging_engine::app::checks::Checkup| {
        checkup.options =
            checkup.options.blocklists(examination.blocklists.clone()).time_server(TIME_SERVER.to_owned());
        if let Some(probe) = &examination.probe {
            checkup.options = checkup.options.probe(probe.clone());
        }
        checkup
    };
    let refused = match look_at(settings, &base, &asked).await {
        Ok(Opened::App(app)) => {
            let reports = app.check_up().await;
            app.store().close().await;
            match reports {
                Ok(reports) => return reports,
                Err(error) => SecretKeyFact::Unknown(Chain(&error).to_string()),
            }
        }
        Ok(Opened::Nothing) => SecretKeyFact::NotYet,
        Err(error) => fact_of(&error),
    };
    let is_new = refused == SecretKeyFact::NotYet;
    let checkup = asked(checkup(settings, KeyKnown::Refused(refused)));
    let dns = Dns::new(settings.dns);
    let host = Host {
        resolver: &dns,
        probe: checkup.probe.as_ref(),
        options: &checkup.options,
        hostname: &settings.engine.hostname,
        installation: None,
        public_url: settings.public_url.as_deref().unwrap_or(&base),
    };
    let mut reports = check_host(&host).await;
    if !is_new {
        let unread = "The database cannot be read.";
        reports
            .extend([CheckId::Fence, CheckId::ApiKeys].map(|id| skipped(id, "-", unread, "see the check secret_key")));
        let skip = |id| skipped(id, "-", "The sending domains cannot be read.", "see the check secret_key");
        reports.extend(CheckId::OF_DOMAIN.map(skip));
    }
    reports
}

/// The state of the secret key, derived from the error of opening the database.
fn fact_of(error: &StartError) -> SecretKeyFact {
    match error {
        StartError::WrongKey { .. } => SecretKeyFact::Wrong,
        StartError::SecretKey(KeyFileError::Missing(_)) => SecretKeyFact::Unusable("the file is missing".to_owned()),
        StartError::SecretKey(error) => SecretKeyFact::Unusable(Chain(error).to_string()),
        other => SecretKeyFact::Unknown(Chain(other).to_string()),
    }
}
