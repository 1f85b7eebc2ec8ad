//! Reads the certificate of the SMTP listeners from its files and judges it like a client that verifies it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use messaging_core::domain::installation::checkup::{CertificateTrust, SmtpCertificateFact};
use messaging_core::error::Chain;
use messaging_core::ports::Clock;
use rustls::CertificateError;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::ring::default_provider;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use rustls_platform_verifier::Verifier;

use crate::smtp_server::{ServerTls, read_chain};

/// Milliseconds of a day.
const DAY: i64 = 86_400_000;

/// Judges the certificate for a client that connects to `host`. `more_roots` are trusted besides those of the system.
pub fn smtp_certificate(
    certificate: &Path,
    key: &Path,
    host: &str,
    more_roots: &[CertificateDer<'static>],
    clock: &Arc<dyn Clock>,
) -> SmtpCertificateFact {
    let loaded =
        ServerTls::load(certificate, key, Arc::clone(clock)).and_then(|tls| Ok((tls, read_chain(certificate)?)));
    let (tls, chain) = match loaded {
        Ok(loaded) => loaded,
        Err(error) => return SmtpCertificateFact::Unusable(Chain(&error).to_string()),
    };
    let now = clock.now().as_millis();
    let days_left = tls.expires_at().map(|end| (end.as_millis() - now).div_euclid(DAY));
    SmtpCertificateFact::Read { days_left, trust: trust(&chain, host, more_roots, now) }
}

fn trust(
    chain: &[CertificateDer<'static>],
    host: &str,
    more_roots: &[CertificateDer<'static>],
    now_ms: i64,
) -> CertificateTrust {
    let Some((own, intermediates)) = chain.split_first() else {
        return CertificateTrust::Refused("there is none".to_owned());
    };
    let Ok(name) = ServerName::try_from(host) else { return CertificateTrust::OtherName };
    let verifier = match Verifier::new_with_extra_roots(more_roots.iter().cloned(), Arc::new(default_provider())) {
        Ok(verifier) => verifier,
        Err(error) => return CertificateTrust::NotVerified(error.to_string()),
    };
    let now = UnixTime::since_unix_epoch(Duration::from_millis(u64::try_from(now_ms).unwrap_or_default()));
    match verifier.verify_server_cert(own, intermediates, &name, &[], now) {
        Ok(_) => CertificateTrust::Trusted,
        Err(rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        )) => CertificateTrust::OtherName,
        Err(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) => CertificateTrust::Unknown,
        Err(error) => CertificateTrust::Refused(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use messaging_core::ports::clock::ManualClock;
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

    use super::*;

    /// An authority, signed by another one or by itself.
    fn authority(above: Option<&CertifiedIssuer<'static, KeyPair>>, name: &str) -> CertifiedIssuer<'static, KeyPair> {
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.distinguished_name.push(rcgen::DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        match above {
            Some(above) => CertifiedIssuer::signed_by(parameters, key, above).unwrap(),
            None => CertifiedIssuer::self_signed(parameters, key).unwrap(),
        }
    }

    #[test]
    fn names_chain_and_days_are_those_that_a_client_finds() {
        let place = tempfile::tempdir().unwrap();
        let (certificate, key) = (place.path().join("cert.pem"), place.path().join("key.pem"));
        let root = authority(None, "root");
        let middle = authority(Some(&root), "middle");
        let mut parameters = CertificateParams::new(vec!["mx.test".to_owned()]).unwrap();
        parameters.not_after = rcgen::date_time_ymd(2031, 5, 17);
        let own_key = KeyPair::generate().unwrap();
        let own = parameters.signed_by(&own_key, &middle).unwrap();
        fs::write(&key, own_key.serialize_pem()).unwrap();
        let roots = [root.der().clone()];
        let look = |host: &str, time: &str| {
            let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(time.parse().unwrap()));
            smtp_certificate(&certificate, &key, host, &roots, &clock)
        };
        let read = |days, trust| SmtpCertificateFact::Read { days_left: Some(days), trust };
        fs::write(&certificate, own.pem() + &middle.pem()).unwrap();
        assert_eq!(look("mx.test", "2031-05-01T00:00:00Z"), read(16, CertificateTrust::Trusted));
        assert_eq!(look("other.test", "2031-05-01T00:00:00Z"), read(16, CertificateTrust::OtherName));
        assert!(matches!(
            look("mx.test", "2031-05-18T00:00:00Z"),
            SmtpCertificateFact::Read { days_left: Some(-1), .. }
        ));
        // Without the certificate between it and the root.
        fs::write(&certificate, own.pem()).unwrap();
        assert_eq!(look("mx.test", "2031-05-01T00:00:00Z"), read(16, CertificateTrust::Unknown));
        fs::remove_file(&key).unwrap();
        let unusable = look("mx.test", "2031-05-01T00:00:00Z");
        assert!(matches!(&unusable, SmtpCertificateFact::Unusable(why) if why.contains("key.pem")), "{unusable:?}");
    }
}
