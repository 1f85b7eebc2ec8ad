//! Consequences of a look-up of a domain's records: its status, the keys that are still needed, and the time of the
//! next look-up.
//!
//! Contract section 14. Where it is silent: a look-up without an answer changes no status; a domain that failed is
//! verified again as soon as its records are right; after a rotation the old keys stay until the new ones have been
//! published for a week, so that mail under way still verifies.

use std::time::Duration;

use crate::domain::mail::dns_record::Installation;
use crate::domain::mail::sending_domain::{Check, DkimKey, DomainStatus, RecordStatus, SendingDomain};
use crate::ids::{DomainId, Id as _};
use crate::time::Timestamp;

/// Time for which the records of a verified domain may be wrong before it fails.
pub(crate) const BROKEN_FOR: Duration = Duration::from_hours(72);

/// Time for which a replaced key stays published after its successor was found published. Mail that waits in a queue or
/// a mailbox is verified days after it was signed.
pub(crate) const OLD_KEYS_STAY: Duration = Duration::from_hours(7 * 24);

/// Maximum number of pairs of keys that a domain may have at a time.
pub const MAX_KEY_PAIRS: usize = 3;

/// Time between look-ups of a domain; each domain has its own time of day.
const INTERVAL: Duration = Duration::from_hours(24);

/// Maximum time by which a look-up may come early, so that domains that were added together spread.
const JITTER: Duration = Duration::from_hours(2);

/// The domain that `messaging dev` sets up. Its top-level domain exists nowhere (RFC 6761 section 6.2), so it has no
/// records to look up: it stays as it was set up.
pub const SANDBOX_DOMAIN: &str = "sandbox.test";

/// Verdict on one record; an error is the reason why there was no answer.
pub type Finding = Result<Check, String>;

/// Results of one look-up of all records of a domain.
#[derive(Debug, Clone)]
pub struct Findings {
    /// Verdicts on the DKIM keys, by selector.
    pub dkim: Vec<(String, Finding)>,
    /// The SPF record.
    pub spf: Finding,
    /// The DMARC policy.
    pub dmarc: Finding,
    /// The mail exchanger.
    pub return_path: Finding,
    /// Tracking host that was looked up, and the verdict on it.
    pub tracking: Option<(String, Finding)>,
    /// The record that asks for TLS reports.
    pub tls_rpt: Finding,
}

/// Returns true for the sandbox domain, whose records are not looked up.
pub fn is_exempt(domain: &SendingDomain) -> bool {
    domain.domain == SANDBOX_DOMAIN
}

/// Marks all records as published, for a domain that [`is_exempt`].
pub fn publish(domain: &mut SendingDomain, now: Timestamp) {
    let published = || Check::verified_but("Not looked up: the domain is for trying out and exists in no DNS.");
    for key in &mut domain.dkim {
        key.check = published();
        key.verified_at.get_or_insert(now);
    }
    for check in [&mut domain.spf, &mut domain.dmarc, &mut domain.return_path, &mut domain.tls_rpt] {
        *check = published();
    }
    domain.status = DomainStatus::Verified;
    domain.verified_at.get_or_insert(now);
}

/// Returns the domain after a look-up of its records. Keys and a tracking host that were set after the look-up stay as
/// they are.
pub fn apply(mut domain: SendingDomain, findings: Findings, now: Timestamp) -> SendingDomain {
    // True if it is certain that the domain is not proven: a look-up without an answer leaves that open.
    let dkim_is_absent = !findings.dkim.is_empty() && findings.dkim.iter().all(|(_, finding)| is_bad(finding));
    let is_certain = is_bad(&findings.spf) || dkim_is_absent;
    for (selector, finding) in findings.dkim {
        let Some(key) = domain.dkim.iter_mut().find(|key| key.selector == selector) else { continue };
        take_over(&mut key.check, finding);
        if key.check.status == RecordStatus::Verified {
            key.verified_at.get_or_insert(now);
        }
    }
    take_over(&mut domain.spf, findings.spf);
    take_over(&mut domain.dmarc, findings.dmarc);
    take_over(&mut domain.return_path, findings.return_path);
    take_over(&mut domain.tls_rpt, findings.tls_rpt);
    if let Some((host, finding)) = findings.tracking
        && domain.tracking_subdomain.as_ref() == Some(&host)
    {
        take_over(&mut domain.tracking, finding);
    }
    domain.last_checked_at = Some(now);
    if is_proven(&domain) {
        domain.status = DomainStatus::Verified;
        domain.verified_at.get_or_insert(now);
        domain.broken_since = None;
    } else if domain.status == DomainStatus::Verified {
        let since = *domain.broken_since.get_or_insert(now);
        if is_certain && now.since(since) >= BROKEN_FOR {
            domain.status = DomainStatus::Failed;
        }
    }
    drop_old_keys(&mut domain, now);
    domain
}

/// Returns true if at least one key and the SPF record are published.
fn is_proven(domain: &SendingDomain) -> bool {
    domain.spf.status == RecordStatus::Verified
        && domain.dkim.iter().any(|key| key.check.status == RecordStatus::Verified)
}

fn is_bad(finding: &Finding) -> bool {
    finding.as_ref().is_ok_and(|check| check.status != RecordStatus::Verified)
}

fn take_over(known: &mut Check, finding: Finding) {
    match finding {
        Ok(check) => *known = check,
        Err(reason) => {
            known.detail = Some(format!(
                "The name could not be looked up ({reason}). The status is that of the last look that got an answer."
            ));
        }
    }
}

/// Removes the keys whose successor has been published long enough.
fn drop_old_keys(domain: &mut SendingDomain, now: Timestamp) {
    let has_successor = |key: &DkimKey, all: &[DkimKey]| {
        all.iter().any(|other| {
            other.algorithm == key.algorithm
                && other.created_at > key.created_at
                && other.check.status == RecordStatus::Verified
                && other.verified_at.is_some_and(|at| now.since(at) >= OLD_KEYS_STAY)
        })
    };
    let all = domain.dkim.clone();
    let gone: Vec<_> =
        all.iter().filter(|key| has_successor(key, &all)).map(|key| Installation::dkim(domain, key)).collect();
    if let Some(account) = &mut domain.dns_account {
        for record in gone {
            account.retire(record.host, record.value);
        }
    }
    domain.dkim.retain(|key| !has_successor(key, &all));
}

/// Returns the number of pairs of keys of the domain.
pub fn key_pairs(domain: &SendingDomain) -> usize {
    let mut made: Vec<_> = domain.dkim.iter().map(|key| key.created_at).collect();
    made.dedup();
    made.len()
}

/// Returns the time of the next look-up of the domain.
pub fn next_look(domain: &SendingDomain, now: Timestamp) -> Timestamp {
    let daily = now + (INTERVAL - jitter(domain.id));
    let fails_at =
        domain.broken_since.filter(|_| domain.status == DomainStatus::Verified).map(|since| since + BROKEN_FOR);
    match fails_at {
        // Not at once again: without an answer at that time the domain waits for the next look-up.
        Some(at) if at > now => daily.min(at),
        _ => daily,
    }
}

/// Returns a part of `JITTER` that depends on the random part of the id alone.
fn jitter(id: DomainId) -> Duration {
    let bytes = id.to_bytes();
    let random = u64::from(u16::from_be_bytes([bytes[14], bytes[15]]));
    JITTER * u32::try_from(random).unwrap_or(0) / 0x1_0000
}

#[cfg(test)]
mod tests;
