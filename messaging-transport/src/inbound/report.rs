//! Parses mail to a return address: pure functions from octets to a [`Report`].
//!
//! The mails come from arbitrary hosts and may be malformed in any way. No length, depth or encoding in them is
//! trusted, and the time taken grows with the length of the examined part, which is bounded.
//!
//! In order: a feedback report (`arf`), a delivery status notification (`dsn`), a bounce in prose
//! (`bounce_text`); everything else, automatic replies (RFC 3834) first of all, is no report.

mod addresses;
mod arf;
mod bounce_text;
mod codes;
mod dsn;
pub(super) mod mail;
mod phrases;

use messaging_core::domain::mail::report::{Action, RecipientReport, Report};

use self::mail::Mail;

/// Number of octets of a mail that are read: reports come first, the returned message last.
pub const MAX_READ: usize = 256 * 1024;

/// Parses a mail.
pub fn read(source: &[u8]) -> Report {
    let mail = Mail::read(&source[..source.len().min(MAX_READ)]);
    if let Some(complaint) = arf::read(&mail) {
        return complaint;
    }
    let status =
        |media_type: &str| media_type == "message/delivery-status" || media_type == "message/global-delivery-status";
    let mut reports: Vec<_> =
        mail.parts.iter().filter(|part| status(&part.media_type)).flat_map(|part| dsn::read(&part.content())).collect();
    if !reports.is_empty() {
        for report in &mut reports {
            complete(report, &mail);
        }
        return Report::Delivery(reports);
    }
    // RFC 8098: the recipient has read the message, or thrown it away.
    if mail.part(&["message/disposition-notification", "message/global-disposition-notification"]).is_some() {
        return Report::Other;
    }
    bounce_text::read(&mail).map_or(Report::Other, Report::Delivery)
}

/// Completes a report from the prose of the mail: some hosts fill in the form, but give the reason only in prose.
fn complete(report: &mut RecipientReport, mail: &Mail<'_>) {
    let response = &mut report.response;
    let is_vague = response.enhanced.as_deref().is_none_or(codes::is_vague);
    if !matches!(report.action, Action::Failed | Action::Delayed)
        || !(response.text.is_empty() || (is_vague && response.code.is_none()))
    {
        return;
    }
    let said = bounce_text::explain(mail, &report.addresses);
    if is_vague && response.code.is_none() {
        response.code = said.code;
        response.enhanced = said.enhanced.or(response.enhanced.take());
    }
    if response.text.is_empty() {
        response.text = said.text;
    }
}
