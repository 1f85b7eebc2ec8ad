//! The addresses that mail may leave from.

use super::{CheckId, CheckReport, Looked, listed};

/// Domains that are named; of further ones the number is told.
const MAX_NAMED: usize = 10;

/// A sending domain whose mail, or a kind of it, may leave from no address that a node has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcelessDomain {
    /// The domain.
    pub domain: String,
    /// Name of the pool that the domain names for it, or its id where it is gone; `None` where it names none.
    pub pool: Option<String>,
}

/// Judges whether the mail of every domain may leave from an address of a node that runs. `sources`: addresses that such nodes
/// have, the default one included.
pub fn judge_sources(sources: usize, sourceless: &[SourcelessDomain]) -> CheckReport {
    let looked =
        Looked::at(CheckId::Sources, "IP pools", "an address of a running server for the mail of every domain");
    if sources == 0 {
        return looked.skipped("No server runs that says which addresses it has.", "start the server, and look again");
    }
    if sourceless.is_empty() {
        return looked.found("one for each").ok("Mail of every domain has an address to leave from.");
    }
    let named = sourceless.iter().take(MAX_NAMED).map(|one| match &one.pool {
        Some(pool) => format!("{} (pool {pool})", one.domain),
        None => format!("{} (no pool)", one.domain),
    });
    let named = listed(named);
    let rest = match sourceless.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        rest => format!(", and {rest} more"),
    };
    looked.found(format!("none for {named}{rest}")).fault(
        format!("Mail waits (`no_source`), because no running server has an address that it may leave from: {named}{rest}."),
        "start a server with an address of the pool (--source), or put an address that a server has into the pool; \
         `messaging source list` shows what servers have, `messaging pool list` and `messaging admin list-pools` what pools name",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::installation::checkup::CheckStatus;

    #[test]
    fn domains_are_named_whose_mail_has_no_address() {
        let one = |domain: &str, pool: Option<&str>| SourcelessDomain {
            domain: domain.to_owned(),
            pool: pool.map(ToOwned::to_owned),
        };
        assert_eq!(judge_sources(0, &[]).status, CheckStatus::Skipped);
        assert_eq!(judge_sources(1, &[]).status, CheckStatus::Ok);
        let fault = judge_sources(2, &[one("acme.test", Some("news")), one("b.test", None)]);
        assert_eq!(
            (fault.status, fault.found.as_str()),
            (CheckStatus::Fault, "none for acme.test (pool news), b.test (no pool)")
        );
        assert!(fault.text.contains("no_source") && fault.cure.contains("--source"));
        let many: Vec<_> = (0..12).map(|n| one(&format!("d{n}.test"), None)).collect();
        let found = judge_sources(1, &many).found;
        assert!(found.contains("d9.test") && !found.contains("d10.test") && found.ends_with(", and 2 more"), "{found}");
    }
}
