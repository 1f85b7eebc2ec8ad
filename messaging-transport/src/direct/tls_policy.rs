//! Demands on a connection to a mail exchanger, before mail goes over it (contract section 14.4).
//!
//! | what is published | TLS | certificate |
//! |---|---|---|
//! | signed TLSA records that can be followed (DANE, RFC 7672) | required | named by one of them |
//! | signed TLSA records of which none can be followed | required | any, or as MTA-STS asks |
//! | an MTA-STS policy in mode `enforce` (RFC 8461) | required | valid for the exchanger, which the policy lists |
//! | an MTA-STS policy in mode `testing` | where it works | the same; what is missing is noted |
//! | nothing | where it works (RFC 7435) | any |
//!
//! If the sending domain requires TLS, it is required in every row.

use std::sync::{Arc, OnceLock};

use messaging_core::domain::delivery::attempt::TlsVerification;
use messaging_core::domain::mail::mta_sts::{StsMode, StsPolicy};
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::ring::default_provider;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use rustls_platform_verifier::Verifier;

use super::route::Routing;
use crate::dane::{self, Tlsa, TlsaSet};

/// Demands on the connection to one exchanger.
#[derive(Debug)]
pub(super) struct TlsPolicy {
    /// True if mail never goes to the exchanger in clear.
    pub(super) is_required: bool,
    proof: Proof,
}

/// Proof of identity that an exchanger owes.
#[derive(Debug)]
enum Proof {
    /// No proof. A certificate that is valid all the same is noted.
    Nothing,
    /// A certificate that one of these TLSA records names.
    Dane {
        /// The TLSA base domain, which has the records.
        base: String,
        records: Vec<Tlsa>,
    },
    /// A certificate that is valid for the exchanger, which the MTA-STS policy must list.
    Sts(Arc<StsPolicy>),
}

/// A demand that a connection does not meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TlsFault {
    /// Description for people.
    pub(super) text: String,
    /// True if mail must not go over the connection.
    pub(super) is_enforced: bool,
}

/// The parts of a connection that a policy judges.
pub(super) struct Judged<'a> {
    /// The name of the exchanger.
    pub(super) host: &'a str,
    /// The domain of the recipients.
    pub(super) domain: &'a str,
    /// True if the session is encrypted by TLS.
    pub(super) is_encrypted: bool,
    /// The certificates that the exchanger presented, its own first.
    pub(super) chain: &'a [CertificateDer<'static>],
}

impl TlsPolicy {
    /// Finds the demands on an exchanger of a domain with this MTA-STS policy. `is_secure` is true if DNSSEC signs the
    /// domain's list of exchangers. `Err` if the demands cannot be found out at the moment.
    pub(super) async fn find(
        routing: &Routing,
        host: &str,
        is_secure: bool,
        sts: Option<&Arc<StsPolicy>>,
        require_tls: bool,
    ) -> Result<Self, String> {
        let found = if is_secure { routing.tlsa(host).await } else { Ok(TlsaSet::none(host)) };
        let found = found.map_err(|failure| format!("the TLSA records of {host} could not be looked up: {failure}"))?;
        Ok(Self::of(found, sts, require_tls))
    }

    fn of(found: TlsaSet, sts: Option<&Arc<StsPolicy>>, require_tls: bool) -> Self {
        let TlsaSet { base, records } = found;
        let is_published = !records.is_empty();
        let proof = match (dane::usable(records), sts) {
            (records, _) if !records.is_empty() => Proof::Dane { base, records },
            (_, Some(policy)) => Proof::Sts(Arc::clone(policy)),
            (_, None) => Proof::Nothing,
        };
        let is_enforced = matches!(&proof, Proof::Sts(policy) if policy.mode == StsMode::Enforce);
        Self { is_required: require_tls || is_published || is_enforced, proof }
    }

    /// Returns the reason why no mail goes to an exchanger of a domain, whatever its certificate.
    pub(super) fn refusal(&self, host: &str, domain: &str) -> Option<String> {
        match &self.proof {
            Proof::Sts(policy) if policy.mode == StsMode::Enforce && !policy.lists(host) => {
                Some(unlisted(host, domain))
            }
            _ => None,
        }
    }

    /// Returns the server name for the handshake (SNI): the TLSA base domain (RFC 7672 section 8.1), or else the
    /// exchanger's name.
    pub(super) fn server_name<'a>(&'a self, host: &'a str) -> &'a str {
        match &self.proof {
            Proof::Dane { base, .. } => base,
            Proof::Sts(_) | Proof::Nothing => host,
        }
    }

    /// Returns true if the policy accepts any certificate.
    pub(super) const fn asks_for_no_proof(&self) -> bool {
        matches!(self.proof, Proof::Nothing)
    }

    /// Judges a connection: returns how the exchanger was verified, and the demand that it does not meet.
    pub(super) fn judge(&self, one: &Judged<'_>, pkix: &Pkix, now: UnixTime) -> (TlsVerification, Option<TlsFault>) {
        let Judged { host, domain, is_encrypted, chain } = *one;
        let fault = |text: String, is_enforced| Some(TlsFault { text, is_enforced });
        if !is_encrypted {
            let is_missed = self.is_required || matches!(self.proof, Proof::Sts(_));
            let text = format!("{host} speaks no TLS that works");
            return (TlsVerification::None, if is_missed { fault(text, self.is_required) } else { None });
        }
        let is_valid = || pkix.is_valid(chain, host, now);
        match &self.proof {
            Proof::Dane { base, records } if dane::is_named(records, chain, &[base, host, domain], now) => {
                (TlsVerification::Dane, None)
            }
            Proof::Dane { .. } => (
                TlsVerification::None,
                fault(format!("the certificate of {host} is not the one of its TLSA records"), true),
            ),
            Proof::Sts(policy) => {
                let is_enforced = policy.mode == StsMode::Enforce;
                match (policy.lists(host), is_valid()) {
                    (true, true) => (TlsVerification::MtaSts, None),
                    (true, false) => {
                        let text = format!("the certificate of {host} is not valid, as the MTA-STS policy asks");
                        (TlsVerification::None, fault(text, is_enforced))
                    }
                    (false, true) => (TlsVerification::Pkix, fault(unlisted(host, domain), is_enforced)),
                    (false, false) => (TlsVerification::None, fault(unlisted(host, domain), is_enforced)),
                }
            }
            Proof::Nothing => (if is_valid() { TlsVerification::Pkix } else { TlsVerification::None }, None),
        }
    }
}

fn unlisted(host: &str, domain: &str) -> String {
    format!("the MTA-STS policy of {domain} does not list {host}")
}

/// Verifies certificates by the roots of the system and further ones.
pub(super) struct Pkix {
    extra_roots: Vec<CertificateDer<'static>>,
    /// Built for the first certificate, as reading the roots takes a while. `None` inside if there are no roots: then
    /// no certificate is valid.
    verifier: OnceLock<Option<Arc<dyn ServerCertVerifier>>>,
}

impl Pkix {
    pub(super) const fn new(extra_roots: Vec<CertificateDer<'static>>) -> Self {
        Self { extra_roots, verifier: OnceLock::new() }
    }

    fn is_valid(&self, chain: &[CertificateDer<'_>], host: &str, now: UnixTime) -> bool {
        let verifier = self.verifier.get_or_init(|| self.build());
        let (Some(verifier), Some((own, issuers)), Ok(name)) =
            (verifier, chain.split_first(), ServerName::try_from(host))
        else {
            return false;
        };
        verifier.verify_server_cert(own, issuers, &name, &[], now).is_ok()
    }

    fn build(&self) -> Option<Arc<dyn ServerCertVerifier>> {
        let provider = Arc::new(default_provider());
        match Verifier::new_with_extra_roots(self.extra_roots.iter().cloned(), provider) {
            Ok(verifier) => Some(Arc::new(verifier)),
            Err(error) => {
                tracing::warn!(%error, "this machine has no usable TLS roots: no certificate of a mail server is valid");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use messaging_core::domain::mail::mta_sts::StsText;
    use messaging_core::time::Timestamp;
    use messaging_testing::certify;

    use super::*;

    fn sts(mode: StsMode, mx: &str) -> Arc<StsPolicy> {
        let text = StsText { mode, mx: vec![mx.to_owned()], max_age: Duration::from_secs(1) };
        Arc::new(StsPolicy::fetched("b.test", "1", text, Timestamp::from_millis(0)))
    }

    fn tlsa(usage: u8) -> Tlsa {
        Tlsa { usage, selector: 1, matching: 1, data: vec![0; 32] }
    }

    /// Describes a policy: TLS required or optional, exchanger listed or not, and the verdict in clear and with an
    /// unknown certificate.
    fn told(policy: &TlsPolicy) -> String {
        let (_, root) = certify(vec!["mx.b.test".to_owned()]);
        let (pkix, now) = (Pkix::new(Vec::new()), UnixTime::since_unix_epoch(Duration::from_hours(500_000)));
        let words = |is_encrypted: bool| {
            let chain: &[_] = if is_encrypted { std::slice::from_ref(&root) } else { &[] };
            let one = Judged { host: "mx.b.test", domain: "b.test", is_encrypted, chain };
            match policy.judge(&one, &pkix, now) {
                (TlsVerification::None, None) => "fine",
                (TlsVerification::None, Some(TlsFault { is_enforced: true, .. })) => "refused",
                (TlsVerification::None, Some(_)) => "noted",
                (verified, _) => panic!("{verified:?}"),
            }
        };
        let refused = if policy.refusal("mx.b.test", "b.test").is_some() { ", not listed" } else { "" };
        let required = if policy.is_required { "required" } else { "optional" };
        format!("{required}{refused}: clear {}, unknown {}", words(false), words(true))
    }

    #[test]
    fn the_strictest_of_what_is_published_holds() {
        let (enforced, testing) = (sts(StsMode::Enforce, "*.b.test"), sts(StsMode::Testing, "*.b.test"));
        let (elsewhere, tested) = (sts(StsMode::Enforce, "mx.c.test"), sts(StsMode::Testing, "mx.c.test"));
        for (records, sts, require_tls, expected) in [
            (vec![], None, false, "optional: clear fine, unknown fine"),
            (vec![], None, true, "required: clear refused, unknown fine"),
            (vec![tlsa(3)], None, false, "required: clear refused, unknown refused"),
            (vec![tlsa(3)], Some(&testing), false, "required: clear refused, unknown refused"),
            (vec![tlsa(2), tlsa(0)], Some(&elsewhere), false, "required: clear refused, unknown refused"),
            (vec![tlsa(1)], None, false, "required: clear refused, unknown fine"),
            (vec![tlsa(1)], Some(&testing), false, "required: clear refused, unknown noted"),
            (vec![], Some(&enforced), false, "required: clear refused, unknown refused"),
            (vec![], Some(&elsewhere), false, "required, not listed: clear refused, unknown refused"),
            (vec![], Some(&testing), false, "optional: clear noted, unknown noted"),
            (vec![], Some(&tested), false, "optional: clear noted, unknown noted"),
            (vec![], Some(&testing), true, "required: clear refused, unknown noted"),
        ] {
            let case = format!("{records:?} {sts:?} {require_tls}");
            let found = TlsaSet { base: "mx.b.test".to_owned(), records };
            assert_eq!(told(&TlsPolicy::of(found, sts, require_tls)), expected, "{case}");
        }
    }
}
