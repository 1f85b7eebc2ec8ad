//! A domain's DMARC policy, as it applies to mail of this installation (RFC 9989 section 4.7).

pub use crate::domain::mail::dmarc::DmarcAction;
use crate::domain::mail::dmarc::PolicyRecord;

/// A DMARC policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DmarcPolicy {
    /// Handling that receivers apply: `p`, or `sp` if the record is that of a parent domain; with `t=y` the next weaker
    /// one.
    pub action: DmarcAction,
    /// True if the DKIM domain must be that of the sender (`adkim=s`).
    pub strict_dkim: bool,
    /// True if the domain of the envelope must be that of the sender (`aspf=s`).
    pub strict_spf: bool,
    /// True if the policy names an address that receives reports (`rua`).
    pub has_reports: bool,
}

impl DmarcPolicy {
    /// Returns the policy of a record for mail of a domain.
    pub fn of(record: &PolicyRecord, domain: &str) -> Self {
        Self {
            action: record.applied_to(domain),
            strict_dkim: record.strict_dkim,
            strict_spf: record.strict_spf,
            has_reports: !record.rua.is_empty(),
        }
    }
}
