//! Tokens and signatures, which fakes check and make as the real providers do.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::signature::{UnparsedPublicKey, VerificationAlgorithm};
use serde_json::Value;

/// Header and claims of a JSON Web Token that was signed by the private half of a key; `None` when it was not.
pub(super) fn claims(
    token: &str,
    name: &str,
    algorithm: &'static dyn VerificationAlgorithm,
    public_key: &[u8],
) -> Option<(Value, Value)> {
    let (signed, signature) = token.rsplit_once('.')?;
    let (header, payload) = signed.split_once('.')?;
    let octets = |text: &str| URL_SAFE_NO_PAD.decode(text).ok();
    UnparsedPublicKey::new(algorithm, public_key).verify(signed.as_bytes(), &octets(signature)?).ok()?;
    let json = |text: &str| serde_json::from_slice::<Value>(&octets(text)?).ok();
    let header = json(header)?;
    (header["alg"] == name).then_some((header, json(payload)?))
}

/// The HMAC of a body by SHA-256 in lower-case hexadecimal digits.
pub(super) fn hmac_sha256(secret: &str, body: &[u8]) -> String {
    hex(hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), body).as_ref())
}

/// Octets in lower-case hexadecimal digits.
pub(super) fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}
