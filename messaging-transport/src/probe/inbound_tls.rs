//! Records and policies that senders with a demand for TLS find for mail to this server.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use messaging_core::domain::installation::checkup::TlsaFact;
use messaging_core::domain::mail::mta_sts::StsText;
use messaging_core::error::Chain;
use messaging_core::ports::Clock;
use messaging_core::ports::fetch::Fetch;
use ring::digest::{SHA256, digest};
use rustls::server::ParsedCertificate;
use rustls_pki_types::{CertificateDer, UnixTime};

use crate::dane::{self, Tlsa};
use crate::dns::{Dns, LookupFailure};
use crate::mta_sts::fetch_policy;
use crate::smtp_server::read_chain;

/// Port of mail exchangers.
const SMTP: u16 = 25;

/// Time limit for the web server of a policy; senders with mail to deliver are more patient.
const POLICY_WITHIN: Duration = Duration::from_secs(8);

/// Compares the TLSA records of a host with the certificate in a file. It does not check that they are signed: they are
/// assumed to be meant.
pub async fn tlsa(dns: &Dns, host: &str, certificate: Option<&Path>, clock: &dyn Clock) -> Result<TlsaFact, String> {
    let records = match dns.published_tlsa(host, SMTP).await {
        Ok(records) => records,
        Err(LookupFailure::NoRecords | LookupFailure::NoSuchDomain) => return Ok(TlsaFact::Absent),
        Err(LookupFailure::Temporary(reason)) => return Err(reason),
    };
    let Some(certificate) = certificate else { return Ok(TlsaFact::NoCertificate) };
    let chain = read_chain(certificate).map_err(|error| Chain(&error).to_string())?;
    let now = Duration::from_millis(u64::try_from(clock.now().as_millis()).unwrap_or_default());
    Ok(compared(records, &chain, host, UnixTime::since_unix_epoch(now)))
}

fn compared(records: Vec<Tlsa>, chain: &[CertificateDer<'_>], host: &str, now: UnixTime) -> TlsaFact {
    let records = dane::usable(records);
    if records.is_empty() {
        return TlsaFact::Unusable;
    }
    if dane::is_named(&records, chain, &[host], now) {
        return TlsaFact::Fits;
    }
    let key = chain.first().and_then(|own| ParsedCertificate::try_from(own).ok());
    let key = key.map(|own| digest(&SHA256, own.subject_public_key_info().as_ref()));
    TlsaFact::Misses(key.map_or_else(
        || "a record of the certificate".to_owned(),
        |key| {
            key.as_ref().iter().fold("3 1 1 ".to_owned(), |mut text, octet| {
                let _ = write!(text, "{octet:02x}");
                text
            })
        },
    ))
}

/// Fetches the MTA-STS policy of a domain.
pub async fn sts_policy(fetch: &dyn Fetch, domain: &str) -> Result<StsText, String> {
    fetch_policy(fetch, domain, POLICY_WITHIN).await
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use messaging_core::ports::clock::SystemClock;
    use messaging_testing::{DnsFailure, TestDns};
    use rcgen::{CertificateParams, KeyPair, PublicKeyData as _};

    use super::*;

    #[tokio::test]
    async fn published_records_are_compared_with_the_certificate() {
        let (server, clock) = (TestDns::start().await, Arc::new(SystemClock));
        server.ttl(0);
        let dns = Dns::new(Some(server.addr()));
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("cert.pem");
        let key = KeyPair::generate().unwrap();
        let own = CertificateParams::new(vec!["mx.acme.test".to_owned()]).unwrap().self_signed(&key).unwrap();
        fs::write(&file, own.pem()).unwrap();
        let look = async |file: Option<&Path>| tlsa(&dns, "mx.acme.test", file, clock.as_ref()).await;
        assert_eq!(look(Some(&file)).await, Ok(TlsaFact::Absent));
        let name = "_25._tcp.mx.acme.test";
        server.tlsa(name, &[(3, 1, 1, &[7; 32])]);
        assert_eq!(look(None).await, Ok(TlsaFact::NoCertificate));
        let Ok(TlsaFact::Misses(record)) = look(Some(&file)).await else { panic!("another certificate") };
        let digest = digest(&SHA256, &key.subject_public_key_info());
        server.tlsa(name, &[(3, 1, 1, digest.as_ref())]);
        assert_eq!(look(Some(&file)).await, Ok(TlsaFact::Fits));
        let hex: String = digest.as_ref().iter().map(|octet| format!("{octet:02x}")).collect();
        assert_eq!(record, format!("3 1 1 {hex}"));
        server.tlsa(name, &[(1, 1, 1, digest.as_ref())]);
        assert_eq!(look(Some(&file)).await, Ok(TlsaFact::Unusable));
        server.fail(name, DnsFailure::ServFail);
        assert!(look(Some(&file)).await.is_err());
    }
}
