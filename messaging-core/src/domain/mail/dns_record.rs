//! DNS records that a sending domain needs, and verdicts on the records that were found.
//!
//! Contract section 14. Every verdict is a function of the answers of a look-up, which is made elsewhere. Each fault
//! has a sentence for the publisher of the records.

mod dkim;
mod judge;
mod reports;
mod spf;

use serde::{Deserialize, Serialize};

use schemars::JsonSchema;

use crate::domain::mail::domain_name::is_fully_qualified;
use crate::domain::mail::link_token::{LinkKey, ReportPurpose};
use crate::domain::mail::sending_domain::{BOUNCE_LABEL, DkimKey, SendingDomain};
use crate::ids::DomainId;

pub use crate::domain::mail::dmarc::discovery::dmarc_host;

pub(crate) use dkim::LENIENT;
pub use dkim::judge_dkim;
pub use judge::{judge_return_path, judge_tracking};
pub use reports::{judge_dmarc, judge_tls_rpt, policy_fault};
pub use spf::{judge_spf, sentence as spf_problem};

/// Purpose of a DNS record that a sending domain needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "DnsRecordPurpose")]
pub enum Purpose {
    /// The public half of a signing key (RFC 6376).
    Dkim,
    /// The hosts that may send in the name of the bounce domain (RFC 7208).
    Spf,
    /// The handling of mail that fails (RFC 7489).
    Dmarc,
    /// The host of the return path, to which bounces are sent.
    ReturnPath,
    /// The host of tracking links.
    Tracking,
    /// The receivers of reports on TLS sessions that failed (RFC 8460).
    TlsRpt,
}

/// The type of a DNS record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DnsRecordType")]
pub enum RecordType {
    /// Text.
    #[serde(rename = "TXT")]
    Txt,
    /// A mail exchanger.
    #[serde(rename = "MX")]
    Mx,
    /// An alias.
    #[serde(rename = "CNAME")]
    Cname,
}

/// A record to publish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequiredRecord {
    /// Its type.
    pub kind: RecordType,
    /// Its name.
    pub host: String,
    /// Its value.
    pub value: String,
}

/// Name in records in place of one that nobody could look up, so that they cannot be published by mistake. It never
/// exists (RFC 2606).
pub const UNNAMED: &str = "hostname-not-set.invalid";

/// Names of an installation in the records of sending domains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    /// The name of the installation, lower case; [`UNNAMED`] when it has none that is fully qualified.
    pub hostname: String,
    /// The host of tracking and unsubscribe links: a name in lower case, or an address.
    pub public_host: String,
}

impl Installation {
    /// Returns the names for a host name of the installation and the base of public links.
    pub fn new(hostname: &str, public_url: &str) -> Self {
        let uri = public_url.parse::<http::Uri>().ok();
        let host = uri.as_ref().and_then(http::Uri::host).unwrap_or_default();
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let hostname = if is_fully_qualified(hostname) { hostname.to_ascii_lowercase() } else { UNNAMED.to_owned() };
        Self { hostname, public_host: host.to_ascii_lowercase() }
    }

    /// Returns the record of a DKIM key.
    pub fn dkim(domain: &SendingDomain, key: &DkimKey) -> RequiredRecord {
        RequiredRecord {
            kind: RecordType::Txt,
            host: format!("{}._domainkey.{}", key.selector, domain.domain),
            value: format!("v=DKIM1; k={}; p={}", key.algorithm.key_tag(), key.public),
        }
    }

    /// Returns the SPF record of the bounce domain.
    pub fn spf(&self, domain: &SendingDomain) -> RequiredRecord {
        RequiredRecord {
            kind: RecordType::Txt,
            host: domain.bounce_domain(),
            value: format!("v=spf1 include:{} ~all", self.hostname),
        }
    }

    /// Returns the DMARC policy of a domain whose reports go to an address of ours, see [`Installation::report_uri`].
    pub fn dmarc(domain: &SendingDomain, report_uri: &str) -> RequiredRecord {
        RequiredRecord {
            kind: RecordType::Txt,
            host: dmarc_host(&domain.domain),
            value: format!("v=DMARC1; p=none; rua={report_uri}"),
        }
    }

    /// Returns the record that asks for TLS reports.
    pub fn tls_rpt(domain: &SendingDomain, report_uri: &str) -> RequiredRecord {
        RequiredRecord {
            kind: RecordType::Txt,
            host: tls_rpt_host(&domain.domain),
            value: format!("v=TLSRPTv1; rua={report_uri}"),
        }
    }

    /// Returns the URI that receives reports of a kind about a domain.
    pub fn report_uri(&self, key: &LinkKey, purpose: ReportPurpose, domain: DomainId) -> String {
        format!("mailto:{}@{BOUNCE_LABEL}.{}", key.report_local_part(purpose, domain), self.hostname)
    }

    /// Returns the records of the installation's own name that let receivers send reports here: the mail exchanger of
    /// the address, and the consent to reports about domains of others (RFC 9990 section 4).
    pub fn for_reports(&self) -> [RequiredRecord; 2] {
        let host = format!("{BOUNCE_LABEL}.{}", self.hostname);
        [
            RequiredRecord { kind: RecordType::Mx, host: host.clone(), value: format!("10 {}", self.hostname) },
            RequiredRecord {
                kind: RecordType::Txt,
                host: format!("*._report._dmarc.{host}"),
                value: "v=DMARC1".to_owned(),
            },
        ]
    }

    /// Returns the MX record of the bounce domain.
    pub fn return_path(&self, domain: &SendingDomain) -> RequiredRecord {
        RequiredRecord { kind: RecordType::Mx, host: domain.bounce_domain(), value: format!("10 {}", self.hostname) }
    }

    /// Returns all records of a domain, each with its purpose; `key` makes the addresses of reports.
    pub fn offered(&self, domain: &SendingDomain, key: &LinkKey) -> Vec<(Purpose, RequiredRecord)> {
        let keys = domain.dkim.iter().map(|key| (Purpose::Dkim, Self::dkim(domain, key)));
        let others = [
            (Purpose::Spf, self.spf(domain)),
            (Purpose::Dmarc, Self::dmarc(domain, &self.report_uri(key, ReportPurpose::Dmarc, domain.id))),
            (Purpose::ReturnPath, self.return_path(domain)),
            (Purpose::TlsRpt, Self::tls_rpt(domain, &self.report_uri(key, ReportPurpose::TlsRpt, domain.id))),
        ];
        let tracking = self.tracking(domain).map(|record| (Purpose::Tracking, record));
        keys.chain(others).chain(tracking).collect()
    }

    /// Returns the alias of the tracking host, if there is one.
    pub fn tracking(&self, domain: &SendingDomain) -> Option<RequiredRecord> {
        let host = domain.tracking_subdomain.clone()?;
        Some(RequiredRecord { kind: RecordType::Cname, host, value: self.public_host.clone() })
    }
}

/// Returns the name at which a domain asks for TLS reports.
pub fn tls_rpt_host(domain: &str) -> String {
    format!("_smtp._tls.{domain}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::mail::dkim::Algorithm;
    use crate::domain::mail::sending_domain::Check;
    use crate::ids::{DomainId, Id as _, WorkspaceId};
    use crate::time::Timestamp;

    #[test]
    fn records_name_the_domain_and_the_installation() {
        let ids = (DomainId::from_bytes([1; 16]), WorkspaceId::from_bytes([2; 16]));
        let now = Timestamp::from_millis(0);
        let mut domain = SendingDomain::new(ids.0, ids.1, "acme.com", now);
        let here = Installation::new("MX.Service.example", "https://Track.service.example:8443/base");
        assert_eq!(here.tracking(&domain), None);
        domain.tracking_subdomain = Some("links.acme.com".to_owned());
        let key = DkimKey {
            selector: "mk01234567".to_owned(),
            algorithm: Algorithm::Ed25519Sha256,
            public: "AAAA".to_owned(),
            sealed: String::new(),
            check: Check::default(),
            created_at: now,
            verified_at: None,
        };
        let all = [
            Installation::dkim(&domain, &key),
            here.spf(&domain),
            Installation::dmarc(&domain, "mailto:r@bounce.x.test"),
            Installation::tls_rpt(&domain, "mailto:t@bounce.x.test"),
            here.return_path(&domain),
            here.tracking(&domain).unwrap(),
        ];
        let text = all.map(|wanted| format!("{:?} {} {}", wanted.kind, wanted.host, wanted.value)).join("\n");
        insta::assert_snapshot!(text, @r"
        Txt mk01234567._domainkey.acme.com v=DKIM1; k=ed25519; p=AAAA
        Txt bounce.acme.com v=spf1 include:mx.service.example ~all
        Txt _dmarc.acme.com v=DMARC1; p=none; rua=mailto:r@bounce.x.test
        Txt _smtp._tls.acme.com v=TLSRPTv1; rua=mailto:t@bounce.x.test
        Mx bounce.acme.com 10 mx.service.example
        Cname links.acme.com track.service.example
        ");
    }

    #[test]
    fn reports_come_to_the_bounce_host_of_the_installation() {
        let here = Installation::new("mx.service.example", "https://track.service.example");
        let key = LinkKey::new(&[7; 32]);
        let uri = here.report_uri(&key, ReportPurpose::Dmarc, DomainId::from_bytes([1; 16]));
        let local_part = uri.strip_prefix("mailto:").and_then(|uri| uri.strip_suffix("@bounce.mx.service.example"));
        let read = local_part.and_then(|local_part| key.read_report_local_part(local_part));
        assert_eq!(read, Some((ReportPurpose::Dmarc, DomainId::from_bytes([1; 16]))), "{uri}");
        let text = here.for_reports().map(|wanted| format!("{:?} {} {}", wanted.kind, wanted.host, wanted.value));
        let expected = [
            "Mx bounce.mx.service.example 10 mx.service.example",
            "Txt *._report._dmarc.bounce.mx.service.example v=DMARC1",
        ];
        assert_eq!(text, expected);
    }

    #[test]
    fn a_name_that_nobody_can_look_up_stands_in_no_record() {
        let ids = (DomainId::from_bytes([1; 16]), WorkspaceId::from_bytes([2; 16]));
        let domain = SendingDomain::new(ids.0, ids.1, "acme.com", Timestamp::from_millis(0));
        let here = Installation::new("vm", "http://127.0.0.1");
        assert_eq!(here.spf(&domain).value, "v=spf1 include:hostname-not-set.invalid ~all");
        assert_eq!(here.return_path(&domain).value, "10 hostname-not-set.invalid");
    }

    #[test]
    fn a_public_url_may_have_an_address() {
        for (url, host) in
            [("http://127.0.0.1:8080", "127.0.0.1"), ("http://[::1]:80", "::1"), ("nonsense", "nonsense")]
        {
            assert_eq!(Installation::new("h", url).public_host, host);
        }
    }
}
