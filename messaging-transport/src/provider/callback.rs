//! Callbacks of providers: reading their bodies and checking their signatures.

use std::fmt::Write as _;

use http::{HeaderMap, Method};
use messaging_core::ports::transport::{CallbackFault, CallbackRequest};
use ring::{digest, hmac};
use serde_json::Value;
use subtle::ConstantTimeEq as _;
use url::form_urlencoded;

/// The most fields of a form that are read; no provider sends half as many.
const MAX_FIELDS: usize = 200;

/// Fails for everything but POST.
pub(crate) fn posted(request: &CallbackRequest<'_>) -> Result<(), CallbackFault> {
    if request.method == Method::POST { Ok(()) } else { Err(CallbackFault::NotFound) }
}

/// The body as JSON; what cannot be read is `null`, of which nothing is found.
pub(crate) fn json(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or_default()
}

/// The fields of a form, at most the first 200.
pub(crate) fn form(body: &[u8]) -> Vec<(String, String)> {
    form_urlencoded::parse(body).take(MAX_FIELDS).map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

/// A header that is text.
pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Compares a proof with what it should be, in a time that tells nothing but their lengths.
pub(crate) fn matches(given: &[u8], expected: &[u8]) -> bool {
    given.ct_eq(expected).into()
}

/// The HMAC (RFC 2104) of octets with a shared secret.
pub(crate) fn hmac(algorithm: hmac::Algorithm, secret: &[u8], octets: &[u8]) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(algorithm, secret), octets)
}

/// The SHA-256 of octets in lower-case hexadecimal digits.
pub(crate) fn sha256_hex(octets: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, octets).as_ref())
}

/// Octets in lower-case hexadecimal digits.
pub(crate) fn hex(octets: &[u8]) -> String {
    octets.iter().fold(String::with_capacity(octets.len() * 2), |mut text, octet| {
        let _ = write!(text, "{octet:02x}");
        text
    })
}
