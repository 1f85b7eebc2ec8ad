//! DKIM keys: their creation, the public half for DNS, and signatures.
//!
//! RFC 6376 and RFC 8463. The transport that writes a message decides which of its octets are signed; this module only
//! has the key that signs them. Making and using keys requires the feature `dkim`.

use std::fmt;

#[cfg(feature = "dkim")]
use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der, PublicKeyX509Der};
#[cfg(feature = "dkim")]
use aws_lc_rs::rand::SystemRandom;
#[cfg(feature = "dkim")]
use aws_lc_rs::rsa::KeySize;
#[cfg(feature = "dkim")]
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair};
#[cfg(feature = "dkim")]
use base64::Engine as _;
#[cfg(feature = "dkim")]
use base64::engine::general_purpose::STANDARD;
#[cfg(feature = "dkim")]
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(feature = "dkim")]
use crate::entropy::Entropy;

/// Algorithm that a key signs with (the `a=` tag).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Algorithm {
    /// `rsa-sha256`, which every receiver verifies.
    RsaSha256,
    /// `ed25519-sha256` (RFC 8463), which only some receivers verify.
    Ed25519Sha256,
}

impl Algorithm {
    /// Returns the `a=` tag of a signature.
    pub const fn tag(self) -> &'static str {
        match self {
            Self::RsaSha256 => "rsa-sha256",
            Self::Ed25519Sha256 => "ed25519-sha256",
        }
    }

    /// Returns the `k=` tag of the DNS record.
    pub const fn key_tag(self) -> &'static str {
        match self {
            Self::RsaSha256 => "rsa",
            Self::Ed25519Sha256 => "ed25519",
        }
    }
}

/// A new key pair.
pub struct NewKey {
    /// The private key: a PKCS#8 document in base64. It must be sealed before it is stored.
    pub private: String,
    /// The public key in the form of the `p=` tag of the DNS record.
    pub public: String,
}

impl fmt::Debug for NewKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewKey").field("public", &self.public).finish_non_exhaustive()
    }
}

/// Creates a key pair. An RSA key takes its randomness from the library, not from `entropy`, and its creation takes
/// tens to hundreds of milliseconds of processor time, so it must not run on a thread that answers requests.
#[cfg(feature = "dkim")]
pub fn generate(algorithm: Algorithm, entropy: &dyn Entropy) -> NewKey {
    match algorithm {
        Algorithm::RsaSha256 => {
            // 2048 bits, because every receiver accepts them (RFC 8301 section 3.2), and their record fits one DNS
            // answer.
            let key = RsaKeyPair::generate(KeySize::Rsa2048).expect("the system has randomness");
            let private: Pkcs8V1Der<'_> = key.as_der().expect("a key made here can be written");
            let public: PublicKeyX509Der<'_> = key.public_key().as_der().expect("a key made here can be written");
            NewKey { private: STANDARD.encode(private.as_ref()), public: STANDARD.encode(public.as_ref()) }
        }
        Algorithm::Ed25519Sha256 => {
            let mut seed = [0; 32];
            entropy.fill(&mut seed);
            let key = Ed25519KeyPair::from_seed_unchecked(&seed).expect("a seed has 32 bytes");
            // RFC 8410 section 7: a PKCS#8 version 1 document around the seed.
            let head = [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
            let document = [&head[..], &seed[..]].concat();
            NewKey { private: STANDARD.encode(document), public: STANDARD.encode(key.public_key().as_ref()) }
        }
    }
}

/// Error for a stored private key that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a stored DKIM key is damaged")]
pub struct UnreadableKey;

/// Signer for a domain with one key.
#[non_exhaustive]
pub struct Signer {
    /// The `d=` tag.
    pub domain: String,
    /// The `s=` tag.
    pub selector: String,
    /// The `a=` tag.
    pub algorithm: Algorithm,
    #[cfg(feature = "dkim")]
    key: Key,
}

#[cfg(feature = "dkim")]
enum Key {
    Rsa(Box<RsaKeyPair>),
    Ed25519(Box<Ed25519KeyPair>),
}

#[cfg(feature = "dkim")]
impl Signer {
    /// Returns a signer with the private key that [`generate`] made, or any PKCS#8 document in base64.
    pub fn new(domain: &str, selector: &str, algorithm: Algorithm, private: &str) -> Result<Self, UnreadableKey> {
        let document = STANDARD.decode(private).map_err(|_| UnreadableKey)?;
        let key = match algorithm {
            Algorithm::RsaSha256 => Key::Rsa(Box::new(RsaKeyPair::from_pkcs8(&document).map_err(|_| UnreadableKey)?)),
            Algorithm::Ed25519Sha256 => Key::Ed25519(Box::new(
                Ed25519KeyPair::from_pkcs8_maybe_unchecked(&document).map_err(|_| UnreadableKey)?,
            )),
        };
        Ok(Self { domain: domain.to_owned(), selector: selector.to_owned(), algorithm, key })
    }

    /// Returns the signature of the octets, for the `b=` tag before it becomes base64.
    ///
    /// RFC 8463 section 3: with Ed25519 the SHA-256 digest of the octets is signed, not the octets themselves.
    pub fn sign(&self, octets: &[u8]) -> Vec<u8> {
        match &self.key {
            Key::Rsa(key) => {
                let mut signature = vec![0; key.public_modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), octets, &mut signature)
                    .expect("a key of 2048 bits signs SHA-256");
                signature
            }
            Key::Ed25519(key) => {
                let digest = ring::digest::digest(&ring::digest::SHA256, octets);
                key.sign(digest.as_ref()).as_ref().to_vec()
            }
        }
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("domain", &self.domain).field("selector", &self.selector).finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "dkim"))]
mod tests {
    use ring::signature::{ED25519, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};

    use super::*;
    use crate::entropy::SystemEntropy;

    #[test]
    fn keys_sign_what_their_public_half_verifies() {
        let entropy = SystemEntropy::default();
        let ed25519 = generate(Algorithm::Ed25519Sha256, &entropy);
        let signer = Signer::new("a.b", "s", Algorithm::Ed25519Sha256, &ed25519.private).unwrap();
        let public = STANDARD.decode(&ed25519.public).unwrap();
        let digest = ring::digest::digest(&ring::digest::SHA256, b"octets");
        UnparsedPublicKey::new(&ED25519, &public).verify(digest.as_ref(), &signer.sign(b"octets")).unwrap();

        let rsa = generate(Algorithm::RsaSha256, &entropy);
        let signer = Signer::new("a.b", "s", Algorithm::RsaSha256, &rsa.private).unwrap();
        // ring takes the bare RSA key, which follows the 24-octet head of the SubjectPublicKeyInfo.
        let public = STANDARD.decode(&rsa.public).unwrap().split_off(24);
        UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, &public)
            .verify(b"octets", &signer.sign(b"octets"))
            .unwrap();
        assert!(!format!("{signer:?} {rsa:?}").contains(&rsa.private));
    }

    #[test]
    fn a_damaged_key_is_refused() {
        for (algorithm, text) in [(Algorithm::RsaSha256, "AAAA"), (Algorithm::Ed25519Sha256, "no base64!")] {
            assert_eq!(Signer::new("a.b", "s", algorithm, text).err(), Some(UnreadableKey));
        }
    }
}
