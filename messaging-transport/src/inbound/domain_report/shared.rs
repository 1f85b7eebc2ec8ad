//! Limits of domain reports, the reasons why one is refused, and texts in them.

/// Maximum number of octets that are unpacked from a container.
pub(super) const MAX_CONTENT: u64 = 64 << 20;

/// Maximum number of rows of a report, and of policies and failures of a TLS report.
pub(super) const MAX_ROWS: usize = 100_000;

/// Maximum number of characters that are kept of a text in a report.
pub(super) const MAX_TEXT: usize = 255;

/// Reason why a report is refused, worded for the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreadable {
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

/// Returns true if a name is the domain or below it.
pub(super) fn is_within(name: &str, domain: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Returns the domain of an address, with or without `mailto:`.
pub(super) fn domain_of(address: &str) -> Option<String> {
    let (_, domain) = address.trim().rsplit_once('@')?;
    let domain = domain.trim_end_matches(['>', '.', ' ']);
    (!domain.is_empty()).then(|| text(domain))
}

/// Returns the beginning of a text, without control characters.
pub(super) fn text(value: &str) -> String {
    value.chars().filter(|c| !c.is_control()).take(MAX_TEXT).collect()
}
