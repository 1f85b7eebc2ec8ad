//! A sending domain as shown: its stored settings, and the DNS records they require.

use messaging_core::domain::mail::dns_record::{Installation, Purpose, RecordType, RequiredRecord};
use messaging_core::domain::mail::link_token::{LinkKey, ReportPurpose};
use messaging_core::domain::mail::sending_domain::{Check, DkimKey, DomainStatus, RecordStatus, SendingDomain};
use messaging_core::ids::{DomainId, PoolId};
use messaging_core::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A sending domain as shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SendingDomain")]
#[non_exhaustive]
pub struct SendingDomainReport {
    /// Id of the domain.
    pub id: DomainId,
    /// Lower case, A-labels.
    pub domain: String,
    /// The host of tracking links; used once its record is verified.
    pub tracking_subdomain: Option<String>,
    /// Status of the domain: email can be sent from it while it is `verified`.
    pub status: DomainStatus,
    /// True if HTML email gets a tracking pixel.
    pub open_tracking: bool,
    /// True if links of HTML email are redirected to count clicks.
    pub click_tracking: bool,
    /// IP pool that mail of the domain leaves from; null for all addresses that no pool of another workspace holds.
    pub ip_pool_id: Option<PoolId>,
    /// IP pool of campaign and automation mail; null where it leaves like all other mail.
    pub marketing_ip_pool_id: Option<PoolId>,
    /// True if messages of the domain leave over TLS alone.
    pub require_tls: bool,
    /// The records of the signing keys, oldest first: for each pair of keys RSA, which every receiver
    /// verifies, and Ed25519.
    pub dkim: Vec<DkimReport>,
    /// The SPF record of the bounce domain.
    pub spf: RecordReport,
    /// The DMARC policy.
    pub dmarc: RecordReport,
    /// The mail exchanger of the bounce domain.
    pub return_path: RecordReport,
    /// The alias of the tracking host; null without one.
    pub tracking: Option<RecordReport>,
    /// Time of the last check of the records.
    pub last_checked_at: Option<Timestamp>,
    /// When it was first verified.
    pub verified_at: Option<Timestamp>,
    /// When it was added.
    pub created_at: Timestamp,
}

/// A record of a sending domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DnsRecord")]
#[non_exhaustive]
pub struct RecordReport {
    /// The value to publish.
    pub record: String,
    /// Result of the last check: `pending` if nothing was found, `verified` if the record is right, `failed` if it is
    /// another one.
    pub status: RecordStatus,
    /// The record's type.
    #[serde(rename = "type")]
    pub kind: RecordType,
    /// The record's name.
    pub host: String,
    /// Finding and advice, in a sentence.
    pub detail: Option<String>,
}

/// The record of a signing key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DkimRecord")]
#[non_exhaustive]
pub struct DkimReport {
    /// The label before `._domainkey`.
    pub selector: String,
    /// The value to publish.
    pub record: String,
    /// Result of the last check: `pending` if nothing was found, `verified` if the record is right, `failed` if it is
    /// another one.
    pub status: RecordStatus,
    /// The record's type.
    #[serde(rename = "type")]
    pub kind: RecordType,
    /// The record's name.
    pub host: String,
    /// Finding and advice, in a sentence.
    pub detail: Option<String>,
}

/// A record to publish, as listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SendingDomainRecord")]
#[non_exhaustive]
pub struct RecordItem {
    /// Purpose of the record, such as `dkim`, `spf` or `dmarc`.
    pub purpose: Purpose,
    /// Type of the record.
    #[serde(rename = "type")]
    pub kind: RecordType,
    /// Name of the record.
    pub host: String,
    /// Value of the record.
    pub value: String,
    /// True if the domain cannot be verified without it.
    pub required: bool,
    /// Result of the last check: `pending` if nothing was found, `verified` if the record is right, `failed` if it is
    /// another one.
    pub status: RecordStatus,
}

impl SendingDomainReport {
    /// Returns the view of a domain.
    pub fn of(domain: &SendingDomain, here: &Installation, key: &LinkKey) -> Self {
        Self {
            id: domain.id,
            domain: domain.domain.clone(),
            tracking_subdomain: domain.tracking_subdomain.clone(),
            status: domain.status,
            open_tracking: domain.open_tracking,
            click_tracking: domain.click_tracking,
            ip_pool_id: domain.ip_pool_id,
            marketing_ip_pool_id: domain.marketing_ip_pool_id,
            require_tls: domain.require_tls,
            dkim: domain.dkim.iter().map(|key| DkimReport::of(domain, key)).collect(),
            spf: RecordReport::of(here.spf(domain), &domain.spf),
            dmarc: RecordReport::of(dmarc_record(domain, here, key), &domain.dmarc),
            return_path: RecordReport::of(here.return_path(domain), &domain.return_path),
            tracking: here.tracking(domain).map(|wanted| RecordReport::of(wanted, &domain.tracking)),
            last_checked_at: domain.last_checked_at,
            verified_at: domain.verified_at,
            created_at: domain.created_at,
        }
    }
}

/// Returns the DMARC record to publish, with the address of this installation that receives the reports.
fn dmarc_record(domain: &SendingDomain, here: &Installation, key: &LinkKey) -> RequiredRecord {
    Installation::dmarc(domain, &here.report_uri(key, ReportPurpose::Dmarc, domain.id))
}

impl RecordReport {
    fn of(record: RequiredRecord, check: &Check) -> Self {
        let RequiredRecord { kind, host, value } = record;
        Self { record: value, status: check.status, kind, host, detail: check.detail.clone() }
    }
}

impl DkimReport {
    fn of(domain: &SendingDomain, key: &DkimKey) -> Self {
        let RecordReport { record, status, kind, host, detail } =
            RecordReport::of(Installation::dkim(domain, key), &key.check);
        Self { selector: key.selector.clone(), record, status, kind, host, detail }
    }
}

impl RecordItem {
    /// Returns all records of a domain.
    pub fn all(domain: &SendingDomain, here: &Installation, key: &LinkKey) -> Vec<Self> {
        let item = |purpose, record: RequiredRecord, check: &Check| Self {
            purpose,
            kind: record.kind,
            host: record.host,
            value: record.value,
            required: matches!(purpose, Purpose::Dkim | Purpose::Spf),
            status: check.status,
        };
        let keys = domain.dkim.iter().map(|key| item(Purpose::Dkim, Installation::dkim(domain, key), &key.check));
        let others = [
            item(Purpose::Spf, here.spf(domain), &domain.spf),
            item(Purpose::Dmarc, dmarc_record(domain, here, key), &domain.dmarc),
            item(Purpose::ReturnPath, here.return_path(domain), &domain.return_path),
        ];
        let tracking = here.tracking(domain).map(|record| item(Purpose::Tracking, record, &domain.tracking));
        let reports = here.report_uri(key, ReportPurpose::TlsRpt, domain.id);
        let tls_rpt = item(Purpose::TlsRpt, Installation::tls_rpt(domain, &reports), &domain.tls_rpt);
        keys.chain(others).chain(tracking).chain([tls_rpt]).collect()
    }
}
