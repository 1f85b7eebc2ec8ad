//! Sending domains: who may send as what, and the DNS records that prove it.
//!
//! Contract sections 4.1 (`from_email`) and 14.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::mail::auto_dns::KeptDnsAccount;
use crate::domain::mail::dkim::Algorithm;
use crate::ids::{DomainId, PoolId, WorkspaceId};
use crate::time::Timestamp;

/// Status of a sending domain: whether email may be sent from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DomainStatus {
    /// Records not found yet.
    Pending,
    /// May send.
    Verified,
    /// Broken for too long.
    Failed,
}

/// What was found in the place of a record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "DnsRecordStatus")]
pub enum RecordStatus {
    /// Nothing, or it was not looked for yet.
    #[default]
    Pending,
    /// The record is published as it should be.
    Verified,
    /// Something else.
    Failed,
}

/// The last look at a record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Result of the look: not found, as it should be, or something else.
    pub status: RecordStatus,
    /// What is wrong, in a sentence for whoever publishes the record.
    pub detail: Option<String>,
}

impl Check {
    /// It is as it should be.
    pub const fn verified() -> Self {
        Self { status: RecordStatus::Verified, detail: None }
    }

    /// It is good enough, but could be better.
    pub fn verified_but(detail: impl Into<String>) -> Self {
        Self { status: RecordStatus::Verified, detail: Some(detail.into()) }
    }

    /// It is not there.
    pub fn pending(detail: impl Into<String>) -> Self {
        Self { status: RecordStatus::Pending, detail: Some(detail.into()) }
    }

    /// It is there and wrong.
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
    /// Result of the last look for the key's DNS record.
    pub check: Check,
    /// When it was made; the same for the keys that were made together.
    pub created_at: Timestamp,
    /// When the record was first found published.
    pub verified_at: Option<Timestamp>,
}

impl DkimKey {
    /// The place of the private key, for the vault.
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
    /// Lower case, A-labels; unique in the workspace.
    pub domain: String,
    /// The host of tracking links, lower case, A-labels, under the domain.
    pub tracking_subdomain: Option<String>,
    /// Status of the domain: email may be sent from a verified one only.
    pub status: DomainStatus,
    /// Whether HTML email gets a pixel.
    pub open_tracking: bool,
    /// Whether links of HTML email are redirected.
    pub click_tracking: bool,
    /// IP pool that mail of the domain leaves from; `None` for all addresses that no pool of another workspace holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_pool_id: Option<PoolId>,
    /// IP pool of campaign and automation mail instead of `ip_pool_id`, if it has one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marketing_ip_pool_id: Option<PoolId>,
    /// Whether its messages leave over TLS alone.
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
    /// When the records were last looked at.
    pub last_checked_at: Option<Timestamp>,
    /// Since when a verified domain's records are not what they should be.
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
    /// A domain that was just added: nothing published, no keys yet.
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

    /// Whether the kept account has something to publish or to remove.
    pub fn awaits_publishing(&self) -> bool {
        let is_published = |key: &DkimKey| key.check.status == RecordStatus::Verified;
        self.dns_account
            .as_ref()
            .is_some_and(|account| !account.retired.is_empty() || !self.dkim.iter().all(is_published))
    }

    /// Whether `host` (lower case, A-labels) is the domain or a sub-domain of it.
    pub fn covers(&self, host: &str) -> bool {
        host.strip_suffix(self.domain.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    }

    /// Whether some of the domain's mail leaves from an IP pool.
    pub fn names_pool(&self, pool: PoolId) -> bool {
        [self.ip_pool_id, self.marketing_ip_pool_id].contains(&Some(pool))
    }

    /// Where bounces come back to: the domain of the envelope sender.
    pub fn bounce_domain(&self) -> String {
        format!("{BOUNCE_LABEL}.{}", self.domain)
    }

    /// The keys that sign now: the newest published one of each algorithm. While the records are broken
    /// (contract section 14 allows it for 72 hours) the newest RSA key signs all the same.
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

/// The domain of the workspace that a sender belongs to: the longest match, verified or not.
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
