//! Verification of a DKIM signature of mail that arrived (RFC 6376 section 6, RFC 8463): the key record that was looked
//! up against the octets that were signed. The receiver of the mail parses the header field and canonicalizes.

use base64::Engine as _;
use ring::signature::{
    ED25519, RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY, UnparsedPublicKey, VerificationAlgorithm,
};

use crate::domain::mail::dkim::Algorithm;
use crate::domain::mail::dns_record::LENIENT;
use crate::domain::mail::tag_list;
use crate::time::Timestamp;

/// A signature whose body hash was right, with the data to verify the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedSignature {
    /// The domain that signed (`d=`), in lower case.
    pub domain: String,
    /// The selector (`s=`).
    pub selector: String,
    /// The algorithm (`a=`).
    pub algorithm: Algorithm,
    /// True if the agent (`i=`) is at the signing domain itself; some keys allow no other.
    pub is_exact: bool,
    /// Time from which on the signature is void (`x=`).
    pub expires_at: Option<Timestamp>,
    /// The canonical header fields that were signed.
    pub signed: Vec<u8>,
    /// The signature (`b=`).
    pub signature: Vec<u8>,
}

impl ReceivedSignature {
    /// Returns the name of the key record.
    pub fn key_host(&self) -> String {
        format!("{}._domainkey.{}", self.selector, self.domain)
    }

    /// Returns true if a key among the TXT records at [`key_host`](Self::key_host) made the signature.
    pub fn verifies(&self, records: &[String], now: Timestamp) -> bool {
        let is_void = self.expires_at.is_some_and(|at| at <= now);
        !is_void && records.iter().any(|record| self.verifies_by(record))
    }

    fn verifies_by(&self, record: &str) -> bool {
        let Some(tags) = tag_list::parse(record) else { return false };
        let tag = |name| tag_list::value(&tags, name);
        let lists = |name, wanted: &[&str]| {
            tag(name)
                .is_none_or(|list| list.split(':').any(|item| wanted.contains(&tag_list::without_white(item).as_str())))
        };
        let is_strict = tag("t").is_some_and(|flags| flags.split(':').any(|flag| tag_list::without_white(flag) == "s"));
        if tag("v").is_some_and(|version| version != "DKIM1")
            || tag("k").unwrap_or("rsa") != self.algorithm.key_tag()
            || !lists("h", &["sha256"])
            || !lists("s", &["*", "email"])
            || (is_strict && !self.is_exact)
        {
            return false;
        }
        let Some(key) = tag("p").map(tag_list::without_white).and_then(|key| LENIENT.decode(key).ok()) else {
            return false;
        };
        let (algorithm, key): (&dyn VerificationAlgorithm, _) = match self.algorithm {
            Algorithm::RsaSha256 => (&RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY, bare_rsa_key(&key)),
            Algorithm::Ed25519Sha256 => (&ED25519, Some(key.as_slice())),
        };
        // RFC 8463 section 3: with Ed25519 the SHA-256 digest of the octets is signed, not they themselves.
        let digest = ring::digest::digest(&ring::digest::SHA256, &self.signed);
        let octets = if self.algorithm == Algorithm::Ed25519Sha256 { digest.as_ref() } else { &self.signed };
        key.is_some_and(|key| UnparsedPublicKey::new(algorithm, key).verify(octets, &self.signature).is_ok())
    }
}

/// Returns the bare key of an RSA key record, which has either that or a `SubjectPublicKeyInfo` (section 3.6.1).
fn bare_rsa_key(key: &[u8]) -> Option<&[u8]> {
    const SEQUENCE: u8 = 0x30;
    const BIT_STRING: u8 = 0x03;
    let (inside, _) = value(key, SEQUENCE)?;
    let Some((_, rest)) = value(inside, SEQUENCE) else { return Some(key) };
    let (bits, _) = value(rest, BIT_STRING)?;
    bits.strip_prefix(&[0])
}

/// Returns the value of the DER element at the beginning, if it has this tag, and the rest.
fn value(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&first, rest) = der.split_first()?;
    let (&short, rest) = rest.split_first()?;
    let (length, rest) = match short {
        0x81 => (usize::from(*rest.first()?), rest.get(1..)?),
        0x82 => (usize::from(u16::from_be_bytes([*rest.first()?, *rest.get(1)?])), rest.get(2..)?),
        short if short < 0x80 => (usize::from(short), rest),
        _ => return None,
    };
    (first == tag).then(|| rest.split_at_checked(length))?
}

#[cfg(all(test, feature = "dkim"))]
mod tests {
    use super::*;
    use crate::domain::mail::dkim::{Signer, generate};
    use crate::entropy::SeededEntropy;

    fn signed(algorithm: Algorithm) -> (ReceivedSignature, String) {
        let key = generate(algorithm, &SeededEntropy::new(7));
        let signer = Signer::new("acme.test", "s", algorithm, &key.private).unwrap();
        let signed = b"from:a@acme.test\r\n".to_vec();
        let signature = ReceivedSignature {
            domain: "acme.test".to_owned(),
            selector: "s".to_owned(),
            algorithm,
            is_exact: true,
            expires_at: None,
            signature: signer.sign(&signed),
            signed,
        };
        (signature, key.public)
    }

    #[test]
    fn a_signature_verifies_by_its_own_key_alone() {
        let now = Timestamp::from_millis(1000);
        for algorithm in [Algorithm::RsaSha256, Algorithm::Ed25519Sha256] {
            let (signature, public) = signed(algorithm);
            assert_eq!(signature.key_host(), "s._domainkey.acme.test");
            let record = format!("v=DKIM1; k={}; p={public}", algorithm.key_tag());
            let verifies = |one: &ReceivedSignature, record: &str| one.verifies(&[record.to_owned()], now);
            assert!(verifies(&signature, &record));
            assert!(signature.verifies(&["unrelated".to_owned(), record.clone()], now));
            let changed = ReceivedSignature { signed: b"from:b@acme.test\r\n".to_vec(), ..signature.clone() };
            let void = ReceivedSignature { expires_at: Some(now), ..signature.clone() };
            let below = ReceivedSignature { is_exact: false, ..signature.clone() };
            assert!(!verifies(&changed, &record));
            assert!(!verifies(&void, &record));
            assert!(verifies(&below, &record));
            assert!(!verifies(&below, &format!("{record}; t=y:s")));
            for other in [
                "v=DKIM1; p=",
                "v=DKIM1; p=AAAA",
                "!",
                &record.replace("v=DKIM1", "v=DKIM2"),
                &format!("{record}; h=sha1"),
                &format!("{record}; s=other"),
                &record.replace("k=rsa", "k=x").replace("k=ed25519", "k=rsa"),
            ] {
                assert!(!verifies(&signature, other), "{other}");
            }
        }
    }

    #[test]
    fn a_bare_rsa_key_is_a_key_too() {
        let (signature, public) = signed(Algorithm::RsaSha256);
        let der = LENIENT.decode(&public).unwrap();
        let bare = LENIENT.encode(bare_rsa_key(&der).unwrap());
        assert_ne!(bare, public);
        assert!(signature.verifies(&[format!("p={bare}")], Timestamp::from_millis(0)));
        for length in 0..der.len() {
            let _ = bare_rsa_key(&der[..length]);
        }
    }
}
