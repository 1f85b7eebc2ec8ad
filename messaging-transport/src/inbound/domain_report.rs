//! Reports about sending domains that come by mail: aggregate reports of DMARC (RFC 7489 appendix C, RFC 9990) and TLS
//! reports (RFC 8460).
//!
//! They come from hosts that nobody chose, as files within files. Everything is read as a stream, with a bound on what comes
//! out of a container, on the length of each piece of it, on depth and on the number of rows; what is beyond is refused
//! as a whole.

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

/// The largest mail with a report, in octets.
pub(super) const MAX_MAIL: usize = 10 << 20;

/// Reads the report in a mail to an address.
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

/// The domain that a mail with a TLS report names as its sender's (RFC 8460 section 5.3).
fn submitter(header: &Fields) -> Option<String> {
    header.get("TLS-Report-Submitter").map(|domain| text(domain.trim()))
}

#[cfg(test)]
mod tests;
