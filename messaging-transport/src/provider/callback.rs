//! Callbacks of providers: reading their bodies and checking their signatures.

use std::fmt::Write as _;

use http::{HeaderMap, Method};
use messaging_core::ports::transport::{CallbackFault, CallbackRequest};
use ring::{digest, hmac};
use serde_json::Value;
use subtle::ConstantTimeEq as _;
use url::form_urlencoded;

/// Maximum number of fields of a form that are read; no provider sends half as many.
const MAX_FIELDS: usize = 200;

/// Fails for every method but POST.
pub(crate) fn posted(request: &CallbackRequest<'_>) -> Result<(), CallbackFault> {
    if request.method == Method::POST { Ok(()) } else { Err(CallbackFault::NotFound) }
}

/// Returns the body as JSON; `null` if it cannot be parsed, in which no member is found.
pub(crate) fn json(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or_default()
}

/// Returns the fields of a form, at most the first 200.
pub(crate) fn form(body: &[u8]) -> Vec<(String, String)> {
    form_urlencoded::parse(body).take(MAX_FIELDS).map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

/// Returns a header that is text.
pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Compares a proof with the expected one, in a time that reveals only their lengths.
pub(crate) fn matches(given: &[u8], expected: &[u8]) -> bool {
    given.ct_eq(expected).into()
}

/// Returns the HMAC (RFC 2104) of octets with a shared secret.
pub(crate) fn hmac(algorithm: hmac::Algorithm, secret: &[u8], octets: &[u8]) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(algorithm, secret), octets)
}

/// Returns the SHA-256 of octets in lower-case hexadecimal digits.
pub(crate) fn sha256_hex(octets: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, octets).as_ref())
}

/// Returns octets in lower-case hexadecimal digits.
pub(crate) fn hex(octets: &[u8]) -> String {
    octets.iter().fold(String::with_capacity(octets.len() * 2), |mut text, octet| {
        let _ = write!(text, "{octet:02x}");
        text
    })
}
