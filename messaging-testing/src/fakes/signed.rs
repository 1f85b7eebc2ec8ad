//! Tokens and signatures, which fakes check and make like the real providers.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::signature::{UnparsedPublicKey, VerificationAlgorithm};
use serde_json::Value;

/// Returns header and claims of a JSON Web Token that was signed by the private half of a key; `None` if it was not.
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

/// Returns the HMAC-SHA256 of a body in lower-case hexadecimal digits.
pub(super) fn hmac_sha256(secret: &str, body: &[u8]) -> String {
    hex(hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), body).as_ref())
}

/// Returns octets in lower-case hexadecimal digits.
pub(super) fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}
