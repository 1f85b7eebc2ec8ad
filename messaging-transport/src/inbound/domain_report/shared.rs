//! Bounds of reports, the reasons why one is refused, and texts in them.

/// The most octets that come out of a container.
pub(super) const MAX_CONTENT: u64 = 64 << 20;

/// The most rows of a report, and the most policies and failures of a TLS report.
pub(super) const MAX_ROWS: usize = 100_000;

/// Characters that are kept of a text in a report.
pub(super) const MAX_TEXT: usize = 255;

/// The reason why a report is refused, as the sender hears it.
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

/// Whether a name is a domain or below it.
pub(super) fn is_within(name: &str, domain: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// The domain of an address, with or without `mailto:`.
pub(super) fn domain_of(address: &str) -> Option<String> {
    let (_, domain) = address.trim().rsplit_once('@')?;
    let domain = domain.trim_end_matches(['>', '.', ' ']);
    (!domain.is_empty()).then(|| text(domain))
}

/// A text that is kept: its beginning, without what cannot be shown or stored.
pub(super) fn text(value: &str) -> String {
    value.chars().filter(|c| !c.is_control()).take(MAX_TEXT).collect()
}
