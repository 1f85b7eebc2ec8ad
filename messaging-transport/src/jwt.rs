//! JSON Web Tokens (RFC 7519) as providers ask for them: RS256 and ES256 to sign with (RFC 7518), HS256 to check.
//!
//! Tokens are signed with `ring`; the keys are PEM files that users downloaded from a provider.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use messaging_core::time::Timestamp;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::{Map, Value, json};

const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const END: &str = "-----END PRIVATE KEY-----";

/// Maximum length of a token that is checked, in bytes.
const MAX_TOKEN: usize = 16 << 10;

/// A private key that tokens are signed with.
pub(crate) enum SigningKey {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256(Box<RsaKeyPair>),
    /// ECDSA on P-256 with SHA-256.
    Es256(Box<EcdsaKeyPair>),
}

/// Reason why a private key cannot be used. It never holds any part of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyFault {
    /// It is no PEM, or of another kind.
    #[error("the private key must be PKCS#8 in PEM, which begins with -----BEGIN PRIVATE KEY-----")]
    Pem,
    /// Not an RSA key of 2048 to 4096 bits.
    #[error("the private key must be an RSA key of 2048 to 4096 bits")]
    Rsa,
    /// Not a P-256 key with its public half.
    #[error("the private key must be an ECDSA key on the curve P-256 that holds its public key")]
    P256,
}

impl SigningKey {
    /// Reads a key for RS256 from PKCS#8 in PEM.
    pub(crate) fn rs256(pem: &str) -> Result<Self, KeyFault> {
        let key = RsaKeyPair::from_pkcs8(&pkcs8(pem)?).map_err(|_| KeyFault::Rsa)?;
        Ok(Self::Rs256(Box::new(key)))
    }

    /// Reads a key for ES256 from PKCS#8 in PEM.
    pub(crate) fn es256(pem: &str) -> Result<Self, KeyFault> {
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &pkcs8(pem)?, &random());
        Ok(Self::Es256(Box::new(key.map_err(|_| KeyFault::P256)?)))
    }

    /// Returns the public key: for P-256 the uncompressed point, for RSA its `RSAPublicKey` in DER.
    pub(crate) fn public_key(&self) -> &[u8] {
        match self {
            Self::Rs256(key) => key.public_key().as_ref(),
            Self::Es256(key) => key.public_key().as_ref(),
        }
    }

    /// Returns a signed token with these claims. The key id is the `kid` of its header.
    pub(crate) fn token(&self, key_id: Option<&str>, claims: &Value) -> String {
        let mut header = json!({"alg": self.algorithm(), "typ": "JWT"});
        if let Some(key_id) = key_id {
            header["kid"] = key_id.into();
        }
        self.compact(header.to_string().as_bytes(), claims.to_string().as_bytes())
    }

    const fn algorithm(&self) -> &'static str {
        match self {
            Self::Rs256(_) => "RS256",
            Self::Es256(_) => "ES256",
        }
    }

    /// Returns the compact serialization (RFC 7515 section 3.1).
    fn compact(&self, header: &[u8], payload: &[u8]) -> String {
        let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(payload));
        let signature = self.signature(signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    fn signature(&self, signed: &[u8]) -> Vec<u8> {
        const RANDOM: &str = "the operating system provides randomness";
        match self {
            Self::Rs256(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random(), signed, &mut signature).expect(RANDOM);
                signature
            }
            Self::Es256(key) => key.sign(&random(), signed).expect(RANDOM).as_ref().to_vec(),
        }
    }
}

/// Returns a new private key on P-256, as PKCS#8 in PEM.
pub(crate) fn new_p256_key() -> String {
    let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random());
    let key = key.expect("the operating system provides randomness");
    format!("{BEGIN}\n{}\n{END}\n", STANDARD.encode(key))
}

/// Returns the random generator that ring requires for signing.
#[expect(clippy::disallowed_methods, reason = "ring accepts its own generator alone")]
pub(crate) fn random() -> SystemRandom {
    SystemRandom::new()
}

/// Returns the claims of a token that was signed with a shared secret by HS256; `None` if it was not. Their validity in
/// time is checked by [`is_current`].
pub(crate) fn hs256_claims(token: &str, secret: &[u8]) -> Option<Map<String, Value>> {
    // Anybody can sign with an empty secret.
    if secret.is_empty() || token.len() > MAX_TOKEN {
        return None;
    }
    let (signed, signature) = token.rsplit_once('.')?;
    let (header, payload) = signed.split_once('.')?;
    let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
    hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, secret), signed.as_bytes(), &signature).ok()?;
    let part = |text: &str| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok();
    let header: Map<String, Value> = part(header)?;
    // Extensions marked critical would have to be understood (RFC 7515 section 4.1.11).
    if header.get("alg").and_then(Value::as_str) != Some("HS256") || header.contains_key("crit") {
        return None;
    }
    part(payload)
}

/// Returns true if claims hold now: before `exp` and not before `nbf` (RFC 7519 section 4.1), if these are given.
pub(crate) fn is_current(claims: &Map<String, Value>, now: Timestamp) -> bool {
    let now = now.as_seconds();
    let holds = |name: &str, is_met: fn(i64, i64) -> bool| match claims.get(name) {
        None | Some(Value::Null) => true,
        Some(date) => seconds(date).is_some_and(|date| is_met(now, date)),
    };
    holds("exp", |now, exp| now < exp) && holds("nbf", |now, nbf| now >= nbf)
}

/// Returns a `NumericDate` in whole seconds; it may have a fraction.
fn seconds(date: &Value) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "the fraction goes, and a cast from a float saturates")]
    date.as_i64().or_else(|| date.as_f64().map(|date| date as i64))
}

/// Returns the document within a PEM. Users paste keys from JSON and through forms: line ends may be missing, or be
/// written as `\n`.
fn pkcs8(pem: &str) -> Result<Vec<u8>, KeyFault> {
    let (_, rest) = pem.split_once(BEGIN).ok_or(KeyFault::Pem)?;
    let (body, _) = rest.split_once(END).ok_or(KeyFault::Pem)?;
    let body: String = body.replace("\\n", "").replace("\\r", "").split_whitespace().collect();
    STANDARD.decode(body).map_err(|_| KeyFault::Pem)
}

#[cfg(test)]
mod tests;
