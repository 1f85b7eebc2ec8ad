//! Sending domains: the addresses that a workspace may send as, and the DNS records that prove it.
//!
//! Contract sections 4.1 (`from_email`) and 14.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::mail::auto_dns::KeptDnsAccount;
use crate::domain::mail::dkim::Algorithm;
use crate::ids::{DomainId, PoolId, WorkspaceId};
use crate::time::Timestamp;

/// Status of a sending domain: email may be sent from a verified one only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DomainStatus {
    /// The records were not found yet.
    Pending,
    /// The records were found: email may be sent.
    Verified,
    /// The records have been wrong for too long.
    Failed,
}

/// Status of a record in the DNS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "DnsRecordStatus")]
pub enum RecordStatus {
    /// The record was not found, or not looked for yet.
    #[default]
    Pending,
    /// The record is published as it should be.
    Verified,
    /// Another record is published in its place.
    Failed,
}

/// Result of the last look-up of a record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Status of the record: not found, right, or wrong.
    pub status: RecordStatus,
    /// Fault of the record, in a sentence for its publisher.
    pub detail: Option<String>,
}

impl Check {
    /// Returns the result for a record that is right.
    pub const fn verified() -> Self {
        Self { status: RecordStatus::Verified, detail: None }
    }

    /// Returns the result for a record that is good enough, but could be better.
    pub fn verified_but(detail: impl Into<String>) -> Self {
        Self { status: RecordStatus::Verified, detail: Some(detail.into()) }
    }

    /// Returns the result for a record that was not found.
    pub fn pending(detail: impl Into<String>) -> Self {
        Self { status: RecordStatus::Pending, detail: Some(detail.into()) }
    }

    /// Returns the result for a record that is wrong.
    pub fn failed(detail: impl Into<String>) -> Self {
        Self { status: RecordStatus::Failed, detail: Some(detail.into()) }
    }
}

/// A DKIM key of a domain. The private half is sealed by the vault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DkimKey {
    /// The label before `._domainkey`.
    pub selector: String,
    /// Algorithm of the key's signatures (the `a=` tag).
    pub algorithm: Algorithm,
    /// The `p=` tag.
    pub public: String,
    /// The private key, sealed for [`DkimKey::place`].
    pub sealed: String,
    /// Result of the last look-up of the key's DNS record.
    pub check: Check,
    /// When the key was made; the same for keys that were made together.
    pub created_at: Timestamp,
    /// When the record was first found published.
    pub verified_at: Option<Timestamp>,
}

impl DkimKey {
    /// Returns the name under which the vault seals the private key.
    pub fn place(domain: DomainId, selector: &str) -> String {
        format!("dkim/{domain}/{selector}")
    }
}

/// A domain of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendingDomain {
    /// Its id.
    pub id: DomainId,
    /// Workspace that sends from the domain.
    pub workspace_id: WorkspaceId,
    /// Name of the domain in lower case, A-labels; unique in the workspace.
    pub domain: String,
    /// The host of tracking links, lower case, A-labels, under the domain.
    pub tracking_subdomain: Option<String>,
    /// Status of the domain: email may be sent from a verified one only.
    pub status: DomainStatus,
    /// True if HTML email gets an open pixel.
    pub open_tracking: bool,
    /// True if links of HTML email are redirected.
    pub click_tracking: bool,
    /// IP pool that mail of the domain leaves from; `None` for all addresses that no pool of another workspace holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_pool_id: Option<PoolId>,
    /// IP pool of campaign and automation mail instead of `ip_pool_id`, if it has one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marketing_ip_pool_id: Option<PoolId>,
    /// True if its messages leave over TLS alone.
    #[serde(default)]
    pub require_tls: bool,
    /// The keys, oldest first.
    pub dkim: Vec<DkimKey>,
    /// The SPF record of the bounce domain.
    pub spf: Check,
    /// The DMARC policy.
    pub dmarc: Check,
    /// The mail exchanger of the bounce domain.
    pub return_path: Check,
    /// The alias of `tracking_subdomain`.
    pub tracking: Check,
    /// The record that asks for TLS reports.
    #[serde(default)]
    pub tls_rpt: Check,
    /// When the records were last looked up.
    pub last_checked_at: Option<Timestamp>,
    /// When the records of a verified domain were first found wrong; `None` while they are right.
    pub broken_since: Option<Timestamp>,
    /// When it was added.
    pub created_at: Timestamp,
    /// When it was first verified.
    pub verified_at: Option<Timestamp>,
    /// The account that publishes the records of new keys, if one is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns_account: Option<KeptDnsAccount>,
}

impl SendingDomain {
    /// Returns a new domain, with no keys and no record published.
    pub fn new(id: DomainId, workspace_id: WorkspaceId, domain: &str, now: Timestamp) -> Self {
        Self {
            id,
            workspace_id,
            domain: domain.to_owned(),
            tracking_subdomain: None,
            status: DomainStatus::Pending,
            open_tracking: true,
            click_tracking: true,
            ip_pool_id: None,
            marketing_ip_pool_id: None,
            require_tls: false,
            dkim: Vec::new(),
            spf: Check::default(),
            dmarc: Check::default(),
            return_path: Check::default(),
            tracking: Check::default(),
            tls_rpt: Check::default(),
            last_checked_at: None,
            broken_since: None,
            created_at: now,
            verified_at: None,
            dns_account: None,
        }
    }

    /// Returns true if the stored DNS account has records to publish or to remove.
    pub fn awaits_publishing(&self) -> bool {
        let is_published = |key: &DkimKey| key.check.status == RecordStatus::Verified;
        self.dns_account
            .as_ref()
            .is_some_and(|account| !account.retired.is_empty() || !self.dkim.iter().all(is_published))
    }

    /// Returns true if `host` (lower case, A-labels) is the domain or a sub-domain of it.
    pub fn covers(&self, host: &str) -> bool {
        host.strip_suffix(self.domain.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    }

    /// Returns true if some of the domain's mail leaves from an IP pool.
    pub fn names_pool(&self, pool: PoolId) -> bool {
        [self.ip_pool_id, self.marketing_ip_pool_id].contains(&Some(pool))
    }

    /// Returns the domain of the envelope sender, to which bounces are returned.
    pub fn bounce_domain(&self) -> String {
        format!("{BOUNCE_LABEL}.{}", self.domain)
    }

    /// Returns the keys that sign now: the newest published one of each algorithm. While the records are broken
    /// (contract section 14 allows it for 72 hours) the newest RSA key signs nevertheless.
    pub fn signing_keys(&self) -> Vec<&DkimKey> {
        let newest = |published: bool, algorithm| {
            let of_kind = |key: &&DkimKey| {
                key.algorithm == algorithm && (!published || key.check.status == RecordStatus::Verified)
            };
            self.dkim.iter().filter(of_kind).max_by_key(|key| key.created_at)
        };
        let published: Vec<_> = [Algorithm::RsaSha256, Algorithm::Ed25519Sha256]
            .into_iter()
            .filter_map(|algorithm| newest(true, algorithm))
            .collect();
        if published.is_empty() { newest(false, Algorithm::RsaSha256).into_iter().collect() } else { published }
    }
}

/// The label of the bounce domain (contract section 14).
pub const BOUNCE_LABEL: &str = "bounce";

/// Returns the domain of the workspace that a sender belongs to: the longest match, verified or not.
pub fn responsible<'a>(domains: &'a [SendingDomain], host: &str) -> Option<&'a SendingDomain> {
    domains.iter().filter(|domain| domain.covers(host)).max_by_key(|domain| domain.domain.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain(name: &str) -> SendingDomain {
        SendingDomain::new(
            "dom_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
            "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
            name,
            Timestamp::from_millis(0),
        )
    }

    #[test]
    fn the_longest_match_is_responsible() {
        let domains = [domain("acme.com"), domain("mail.acme.com")];
        let name = |host| responsible(&domains, host).map(|found| found.domain.as_str());
        assert_eq!(name("acme.com"), Some("acme.com"));
        assert_eq!(name("eu.mail.acme.com"), Some("mail.acme.com"));
        assert_eq!(name("shop.acme.com"), Some("acme.com"));
        assert_eq!(name("notacme.com"), None);
        assert_eq!(name("com"), None);
    }

    #[test]
    fn the_newest_published_key_of_each_kind_signs() {
        use Algorithm::{Ed25519Sha256, RsaSha256};
        use RecordStatus::{Pending, Verified};
        let key = |selector: &str, algorithm, status, at| DkimKey {
            selector: selector.to_owned(),
            algorithm,
            public: String::new(),
            sealed: String::new(),
            check: Check { status, detail: None },
            created_at: Timestamp::from_millis(at),
            verified_at: None,
        };
        let signing = |keys: Vec<DkimKey>| {
            let domain = SendingDomain { dkim: keys, ..domain("acme.com") };
            domain.signing_keys().iter().map(|key| key.selector.clone()).collect::<Vec<_>>().join(" ")
        };
        let (old, ed, new) =
            (key("a", RsaSha256, Verified, 1), key("b", Ed25519Sha256, Verified, 1), key("c", RsaSha256, Pending, 2));
        assert_eq!(signing(vec![old.clone(), ed.clone(), new.clone()]), "a b");
        assert_eq!(signing(vec![old.clone(), ed, key("c", RsaSha256, Verified, 2)]), "c b");
        assert_eq!(signing(vec![new.clone()]), "c");
        assert_eq!(signing(vec![key("d", Ed25519Sha256, Pending, 1)]), "");
        assert_eq!(signing(vec![key("a", RsaSha256, Pending, 1), new]), "c");
    }
}
