//! Reports about sending domains that come by mail: aggregate reports of DMARC (RFC 7489 appendix C, RFC 9990) and TLS
//! reports (RFC 8460).
//!
//! They come from arbitrary hosts, as files within files. Everything is read as a stream, with limits on the octets
//! that are unpacked, on the length of each piece, on depth and on the number of rows; a report beyond a limit is
//! refused as a whole.

mod contents;
mod dmarc;
mod shared;
mod tls;
mod xml;

use messaging_core::domain::mail::dmarc::report::DomainReport;
use messaging_core::domain::mail::link_token::ReportPurpose;
use messaging_core::ports::inbound::ReportAddress;

pub(super) use self::shared::Unreadable;
use self::shared::text;
use super::report::mail::Mail;
use crate::mail::fields::Fields;

/// Maximum size of a mail with a report, in octets.
pub(super) const MAX_MAIL: usize = 10 << 20;

/// Parses the report in a mail to an address.
pub(super) fn read(mail: &Mail<'_>, to: &ReportAddress) -> Result<DomainReport, Unreadable> {
    let contents = mail.parts.iter().map(|part| part.content());
    let Some(attached) = contents.into_iter().find(|content| contents::is_report(content, to.purpose)) else {
        return Err(Unreadable::NoReport);
    };
    let content = contents::unpack(&attached)?;
    match to.purpose {
        ReportPurpose::Dmarc => dmarc::read(content, &to.domain),
        ReportPurpose::TlsRpt => tls::read(content, &to.domain, submitter(&mail.header)),
    }
}

/// Returns the sender's domain that a mail with a TLS report names (RFC 8460 section 5.3).
fn submitter(header: &Fields) -> Option<String> {
    header.get("TLS-Report-Submitter").map(|domain| text(domain.trim()))
}

#[cfg(test)]
mod tests;
