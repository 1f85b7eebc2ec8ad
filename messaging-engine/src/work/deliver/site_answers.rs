//! Counts the answers of mailbox providers, called sites, to delivery attempts.
//!
//! Only mail that the provider `builtin` delivers to mail exchangers has a site; a relay hides the exchanger. The
//! counts are made from the events of the attempt and written in the same commit.

use std::time::Duration;

use messaging_core::changes::{CountSites, Write};
use messaging_core::domain::analytics::site_tally::{SiteCounter, SiteCounts, counter_of};
use messaging_core::domain::analytics::tally::buckets::Quarter;
use messaging_core::domain::channel::provider::BUILTIN;
use messaging_core::domain::delivery::attempt::{AttemptOutcome, Dialog};
use messaging_core::domain::delivery::site::SiteName;
use messaging_core::domain::delivery::{AttemptResult, Judgment, RecipientResult};
use messaging_core::domain::message::Message;
use messaging_core::ports::transport::Outcome;
use messaging_core::time::Timestamp;
use serde_json::Value;

use crate::app::App;

/// Answer of a site to one recipient of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SiteAnswer {
    /// Address of the recipient.
    pub(super) address: String,
    /// Site of the mail exchanger that answered.
    site: SiteName,
    /// True if the message was delivered over TLS.
    is_over_tls: bool,
}

/// The answers of sites among the results of an attempt; none unless the provider is `builtin`.
pub(super) fn site_answers(
    app: &App,
    message: &Message,
    provider: Option<&str>,
    results: &[RecipientResult],
    dialogs: &[Dialog],
) -> Vec<SiteAnswer> {
    if provider != Some(BUILTIN) {
        return Vec::new();
    }
    let answer = |result: &RecipientResult| {
        let AttemptResult::Tried(Outcome::Answered(answer)) = &result.result else { return None };
        let host = answer.response.host.as_deref()?;
        let is_over_tls = dialogs.iter().any(|dialog| {
            dialog.mx.as_deref() == Some(host) && dialog.tls.is_some() && dialog.outcome == AttemptOutcome::Delivered
        });
        let site = app.counted_sites().of_exchanger(message.workspace_id, host, app.now())?;
        Some(SiteAnswer { address: result.recipient.address.clone(), site, is_over_tls })
    };
    results.iter().filter_map(answer).collect()
}

/// The write that adds the events of an attempt to the counters of the sites that answered; `None` if there is nothing
/// to count. `is_counted` says if an earlier attempt has counted the message to an address. `took` is the time since
/// the message was accepted by us.
pub(super) fn count_sites(
    message: &Message,
    judgment: &Judgment,
    answers: &[SiteAnswer],
    is_counted: impl Fn(&str) -> bool,
    (now, took): (Timestamp, Duration),
) -> Option<Write> {
    let quarter = Quarter::of(now);
    let mut counts: Vec<(SiteName, Quarter, SiteCounts)> = Vec::new();
    for (kind, meta) in &judgment.events {
        let recipient = meta.get("recipient").and_then(Value::as_str);
        let answer = answers.iter().find(|answer| Some(answer.address.as_str()) == recipient);
        let (Some(answer), Some(counter)) = (answer, counter_of(*kind, meta)) else { continue };
        let found = counts.iter().position(|(site, ..)| *site == answer.site);
        let at = found.unwrap_or(counts.len());
        if found.is_none() {
            counts.push((answer.site.clone(), quarter, SiteCounts::default()));
        }
        let sum = &mut counts[at].2;
        sum.count(counter, 1);
        if !is_counted(&answer.address) {
            sum.count(SiteCounter::Accepted, 1);
        }
        if counter == SiteCounter::Delivered {
            sum.count_taken(took);
            sum.count(SiteCounter::OverTls, i64::from(answer.is_over_tls));
        }
    }
    let workspace_id = message.workspace_id;
    (!counts.is_empty()).then(|| Write::CountSites(Box::new(CountSites { workspace_id, counts })))
}
