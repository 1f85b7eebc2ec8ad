//! The DNS records of the installation's own name that whoever runs it publishes once, for all sending domains.

use messaging_core::domain::mail::dns_record::{RecordType, UNNAMED};
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::error::Error;
use crate::ops::Page;

/// A record of the installation's own name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InstallationRecord {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: RecordType,
    /// Its name.
    pub host: String,
    /// Its value.
    pub value: String,
}

/// The records that let receivers send reports about sending domains to this installation.
pub async fn dns_records(app: &App) -> Result<Page<InstallationRecord>, Error> {
    let here = app.installation().await?;
    if here.hostname == UNNAMED {
        let cure = "the records would name a host that nobody can look up; give the installation a name such as \
                    mx.example.org with `messaging admin set-name`";
        return Err(Error::SettingNeeded { setting: "hostname", cure });
    }
    let records = here.for_reports().into_iter();
    let records =
        records.map(|record| InstallationRecord { kind: record.kind, host: record.host, value: record.value });
    Ok(Page::only(records.collect()))
}
