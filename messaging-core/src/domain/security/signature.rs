//! Signatures of webhooks by the specification "Standard Webhooks".
//!
//! Contract section 15.2: `v1,` and the base64 of the HMAC-SHA256 of `id.timestamp.body`.

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use ring::hmac;

use crate::domain::security::secret::Secret;
use crate::entropy::Entropy;
use crate::time::Timestamp;

/// The text before the base64 of a secret.
pub const SECRET_MARKER: &str = "whsec_";

/// The text before the base64 of a signature.
const VERSION: &str = "v1,";

/// Bytes of a secret that this server makes.
const SECRET_BYTES: usize = 32;

/// Greatest difference between the time of a signature and the present; requests beyond it are refused.
pub const TOLERANCE: Duration = Duration::from_mins(5);

/// Key by which a webhook's requests are signed and verified.
pub struct SigningKey(hmac::Key);

/// The text is not `whsec_` and base64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a secret of a webhook: whsec_ and base64")]
pub struct MalformedSecret;

/// Reason why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Distrust {
    /// The timestamp is not a number, too old, or in the future.
    #[error("the request was signed too long ago, or its timestamp is wrong")]
    Timestamp,
    /// No signature is valid.
    #[error("no signature fits the request")]
    Signature,
}

/// Returns a new secret.
pub fn new_secret(entropy: &dyn Entropy) -> Secret {
    let mut bytes = [0; SECRET_BYTES];
    entropy.fill(&mut bytes);
    Secret::from(format!("{SECRET_MARKER}{}", STANDARD.encode(bytes)))
}

/// Returns the headers of a request with a JSON body, signed with each of the keys. `timestamp` is in seconds since
/// 1970. `None` if the id has characters that a header cannot have.
pub fn signed_headers<'a>(
    keys: impl IntoIterator<Item = &'a SigningKey>,
    id: &str,
    timestamp: i64,
    body: &[u8],
) -> Option<HeaderMap> {
    let signatures: Vec<_> = keys.into_iter().map(|key| key.sign(id, timestamp, body)).collect();
    let headers = [
        (CONTENT_TYPE, "application/json".to_owned()),
        (HeaderName::from_static("webhook-id"), id.to_owned()),
        (HeaderName::from_static("webhook-timestamp"), timestamp.to_string()),
        (HeaderName::from_static("webhook-signature"), signatures.join(" ")),
    ];
    headers.into_iter().map(|(name, value)| Some((name, HeaderValue::try_from(value).ok()?))).collect()
}

impl SigningKey {
    /// Parses a secret into its key.
    pub fn parse(secret: &str) -> Result<Self, MalformedSecret> {
        let coded = secret.strip_prefix(SECRET_MARKER).ok_or(MalformedSecret)?;
        let bytes = STANDARD.decode(coded).map_err(|_| MalformedSecret)?;
        if bytes.is_empty() {
            return Err(MalformedSecret);
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
    }

    /// Returns the signature of a request.
    pub fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let mut context = hmac::Context::with_key(&self.0);
        for part in [id.as_bytes(), b".", timestamp.to_string().as_bytes(), b".", body] {
            context.update(part);
        }
        format!("{VERSION}{}", STANDARD.encode(context.sign()))
    }

    /// Verifies that a request was signed with this key, at most [`TOLERANCE`] from `now`. `timestamp` and `signatures`
    /// are the received headers `webhook-timestamp` and `webhook-signature`.
    pub fn verify(
        &self,
        id: &str,
        timestamp: &str,
        signatures: &str,
        body: &[u8],
        now: Timestamp,
    ) -> Result<(), Distrust> {
        let seconds: i64 = timestamp.parse().map_err(|_| Distrust::Timestamp)?;
        if seconds.abs_diff(now.as_seconds()) > TOLERANCE.as_secs() {
            return Err(Distrust::Timestamp);
        }
        let message = [id.as_bytes(), b".", timestamp.as_bytes(), b".", body].concat();
        let fits = |signature: &str| {
            let coded = signature.strip_prefix(VERSION).and_then(|coded| STANDARD.decode(coded).ok());
            // In constant time.
            coded.is_some_and(|tag| hmac::verify(&self.0, &message, &tag).is_ok())
        };
        if signatures.split(' ').any(fits) { Ok(()) } else { Err(Distrust::Signature) }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::SeededEntropy;

    const NOW: Timestamp = Timestamp::from_millis(1_614_265_330_000);

    #[test]
    fn the_example_of_the_specification_is_signed_alike() {
        let key = SigningKey::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature = key.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_request_is_believed_when_one_signature_fits_and_it_is_fresh() {
        let secrets = [new_secret(&SeededEntropy::new(1)), new_secret(&SeededEntropy::new(2))];
        let [one, other] = secrets.map(|secret| SigningKey::parse(secret.expose()).unwrap());
        let both = format!("{} {}", one.sign("evt_1", 1_614_265_330, b"{}"), other.sign("evt_1", 1_614_265_330, b"{}"));
        for key in [&one, &other] {
            let verify = |id, timestamp, signatures, body: &[u8]| key.verify(id, timestamp, signatures, body, NOW);
            assert_eq!(verify("evt_1", "1614265330", &both, b"{}"), Ok(()));
            assert_eq!(verify("evt_2", "1614265330", &both, b"{}"), Err(Distrust::Signature));
            assert_eq!(verify("evt_1", "1614265331", &both, b"{}"), Err(Distrust::Signature));
            assert_eq!(verify("evt_1", "1614265330", &both, b"{ }"), Err(Distrust::Signature));
            assert_eq!(verify("evt_1", "1614265330", "", b"{}"), Err(Distrust::Signature));
            assert_eq!(verify("evt_1", "1614265330", "v1,AAAA v2,BBBB", b"{}"), Err(Distrust::Signature));
            assert_eq!(verify("evt_1", "soon", &both, b"{}"), Err(Distrust::Timestamp));
            for (later, expected) in [(299, Ok(())), (301, Err(Distrust::Timestamp))] {
                let now = NOW + Duration::from_secs(later);
                assert_eq!(key.verify("evt_1", "1614265330", &both, b"{}", now), expected);
            }
            let early = NOW - Duration::from_secs(301);
            assert_eq!(key.verify("evt_1", "1614265330", &both, b"{}", early), Err(Distrust::Timestamp));
        }
    }

    #[test]
    fn what_is_no_secret_is_refused() {
        for text in ["", "whsec_", "whsec_%%", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "WHSEC_MfKQ9r8G"] {
            assert!(SigningKey::parse(text).is_err(), "{text}");
        }
    }
}
