//! Reports about sending domains that come by mail: aggregate reports of DMARC (RFC 7489 appendix C, RFC 9990) and TLS
//! reports (RFC 8460).
//!
//! They come from hosts that nobody chose, as files within files. Everything is read as a stream, with a bound on what comes
//! out of a container, on the length of each piece of it, on depth and on the number of rows; what is beyond is refused
//! as a whole.

mod contents;
mod dmarc;
mod tls;
mod xml;

use messaging_core::domain::mail::dmarc::report::DomainReport;
use messaging_core::domain::mail::link_token::ReportPurpose;
use messaging_core::ports::inbound::ReportAddress;

use super::report::mail::Mail;
use crate::mail::fields::Fields;

/// The largest mail with a report, in octets.
pub(super) const MAX_MAIL: usize = 10 << 20;

/// The most octets that come out of a container.
const MAX_CONTENT: u64 = 64 << 20;

/// The most rows of a report, and the most policies and failures of a TLS report.
const MAX_ROWS: usize = 100_000;

/// Characters that are kept of a text in a report.
const MAX_TEXT: usize = 255;

/// The reason why a report is refused, as the sender hears it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unreadable {
    #[error("no report is attached")]
    NoReport,
    #[error("the attachment is damaged or cut off")]
    Damaged,
    #[error("the attachment is packed in a way that is not supported")]
    Container,
    #[error("the report is too large when unpacked")]
    TooLarge,
    #[error("the report has too many rows")]
    TooManyRows,
    #[error("the report is nested too deeply")]
    TooDeep,
    #[error("the report has entities or a document type, which are not read")]
    Entities,
    #[error("the report has not the form of one")]
    Form,
    #[error("the report is about another domain")]
    OtherDomain,
}

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

/// Whether a name is a domain or below it.
fn is_within(name: &str, domain: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// The domain of an address, with or without `mailto:`.
fn domain_of(address: &str) -> Option<String> {
    let (_, domain) = address.trim().rsplit_once('@')?;
    let domain = domain.trim_end_matches(['>', '.', ' ']);
    (!domain.is_empty()).then(|| text(domain))
}

/// A text that is kept: its beginning, without what cannot be shown or stored.
fn text(value: &str) -> String {
    value.chars().filter(|c| !c.is_control()).take(MAX_TEXT).collect()
}

#[cfg(test)]
mod tests;
