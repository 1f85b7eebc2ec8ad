//! DANE for SMTP (RFC 7672): verifies certificates of mail exchangers by signed TLSA records.
//!
//! The certificates judged come from a handshake that proved that the peer has the key. Usages 2 and 3 count; the
//! others are unusable for mail (RFC 7672 section 3.1.3).

use std::sync::Arc;

use ring::digest::{SHA256, SHA512, digest};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::ring::default_provider;
use rustls::server::ParsedCertificate;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

/// Certificate usage DANE-TA: the record names a trust anchor.
const TRUST_ANCHOR: u8 = 2;
/// Certificate usage DANE-EE: the record names the certificate of the server.
const END_ENTITY: u8 = 3;

/// Selector: the whole certificate is compared.
const CERTIFICATE: u8 = 0;
/// Selector: the public key is compared.
const PUBLIC_KEY: u8 = 1;

/// Matching type: compared octet by octet.
const EXACT: u8 = 0;
/// Matching type: the SHA-256 digest is compared.
const BY_SHA256: u8 = 1;
/// Matching type: the SHA-512 digest is compared.
const BY_SHA512: u8 = 2;

/// A TLSA record (RFC 6698 section 2.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tlsa {
    pub(crate) usage: u8,
    pub(crate) selector: u8,
    pub(crate) matching: u8,
    pub(crate) data: Vec<u8>,
}

/// The TLSA records of an exchanger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TlsaSet {
    /// The TLSA base domain, which has the records (RFC 7672 section 2.2.2): the exchanger, or the name that it is an
    /// alias of.
    pub(crate) base: String,
    /// The records; empty if there are no signed ones.
    pub(crate) records: Vec<Tlsa>,
}

impl TlsaSet {
    /// Returns the set of an exchanger without records.
    pub(crate) fn none(host: &str) -> Self {
        Self { base: host.to_owned(), records: Vec::new() }
    }
}

impl Tlsa {
    /// Returns true if the record is usable (RFC 7672 section 3.1).
    fn is_usable(&self) -> bool {
        let fits = match self.matching {
            EXACT => !self.data.is_empty(),
            BY_SHA256 => self.data.len() == SHA256.output_len(),
            BY_SHA512 => self.data.len() == SHA512.output_len(),
            _ => false,
        };
        fits && [TRUST_ANCHOR, END_ENTITY].contains(&self.usage) && [CERTIFICATE, PUBLIC_KEY].contains(&self.selector)
    }

    /// Returns true if the record names this certificate.
    fn names(&self, certificate: &CertificateDer<'_>) -> bool {
        let key;
        let selected: &[u8] = if self.selector == CERTIFICATE {
            certificate.as_ref()
        } else {
            let Ok(parsed) = ParsedCertificate::try_from(certificate) else { return false };
            key = parsed.subject_public_key_info();
            key.as_ref()
        };
        match self.matching {
            EXACT => selected == self.data,
            BY_SHA256 => digest(&SHA256, selected).as_ref() == self.data,
            BY_SHA512 => digest(&SHA512, selected).as_ref() == self.data,
            _ => false,
        }
    }
}

/// Returns the usable records. Among records of the same usage and selector, digests by the weaker function are left
/// out if there are some by the stronger one (RFC 7671 section 9).
pub(crate) fn usable(records: Vec<Tlsa>) -> Vec<Tlsa> {
    let usable: Vec<_> = records.into_iter().filter(Tlsa::is_usable).collect();
    let kind = |record: &Tlsa| (record.usage, record.selector);
    let stronger: Vec<_> = usable.iter().filter(|record| record.matching == BY_SHA512).map(kind).collect();
    usable.into_iter().filter(|one| one.matching != BY_SHA256 || !stronger.contains(&kind(one))).collect()
}

/// Returns true if one of the records names the peer's own certificate, whatever names and times that has, or an issuer
/// of it; in the latter case the certificate must be valid at `now` for one of the names (RFC 7672 sections 3.1.1,
/// 3.1.2 and 3.2).
pub(crate) fn is_named(records: &[Tlsa], chain: &[CertificateDer<'_>], names: &[&str], now: UnixTime) -> bool {
    let Some((own, issuers)) = chain.split_first() else { return false };
    if records.iter().any(|record| record.usage == END_ENTITY && record.names(own)) {
        return true;
    }
    let mut anchors = RootCertStore::empty();
    for record in records.iter().filter(|record| record.usage == TRUST_ANCHOR) {
        if record.selector == CERTIFICATE && record.matching == EXACT {
            // The server need not present the certificate that the record holds.
            drop(anchors.add(CertificateDer::from(record.data.clone())));
        }
        for issuer in issuers.iter().filter(|issuer| record.names(issuer)) {
            drop(anchors.add(issuer.clone().into_owned()));
        }
    }
    is_issued(anchors, own, issuers, names, now)
}

/// Returns true if one of the anchors issued the certificate and it is valid for one of the names.
fn is_issued(
    anchors: RootCertStore,
    own: &CertificateDer<'_>,
    issuers: &[CertificateDer<'_>],
    names: &[&str],
    now: UnixTime,
) -> bool {
    if anchors.is_empty() {
        return false;
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(anchors), Arc::new(default_provider())).build();
    let Ok(verifier) = verifier else { return false };
    let names = names.iter().filter_map(|&name| ServerName::try_from(name).ok());
    names.into_iter().any(|name| verifier.verify_server_cert(own, issuers, &name, &[], now).is_ok())
}

#[cfg(test)]
mod tests;
