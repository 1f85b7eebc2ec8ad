//! Identification of the sender to push services (VAPID, RFC 8292).

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use messaging_core::domain::delivery::outcome::Answer;
use messaging_core::ports::clock::Clock;
use messaging_core::ports::transport::TransportError;
use messaging_core::time::Timestamp;
use serde_json::{Map, Value, json};

use super::super::service::settings_fault;
use super::subscription::Subscription;
use crate::jwt::{SigningKey, new_p256_key};
use crate::provider::{Settings, misconfigured};
use crate::token_cache::{TokenCache, token_key};

/// Validity of a token; push services accept at most 24 hours.
const LIFETIME: Duration = Duration::from_hours(12);

/// Time before its expiry at which a token is renewed.
const EARLY: Duration = Duration::from_hours(1);

/// Returns the settings with a new key pair: the private key as PEM, and the public key as browsers take it for
/// `applicationServerKey`.
pub(in super::super) fn new_key_pair() -> Map<String, Value> {
    let private_key = new_p256_key();
    let key = SigningKey::es256(&private_key).expect("the key was made for that");
    let public_key = URL_SAFE_NO_PAD.encode(key.public_key());
    Map::from_iter([("private_key".to_owned(), json!(private_key)), ("public_key".to_owned(), json!(public_key))])
}

/// Cache of `Authorization` values, by key and origin.
#[derive(Debug)]
pub(super) struct Vapid {
    clock: Arc<dyn Clock>,
    tokens: TokenCache<String, Answer>,
}

impl Vapid {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { tokens: TokenCache::new(Arc::clone(&clock)), clock }
    }

    /// Returns the value of `Authorization` for the push service of a subscription.
    pub(super) async fn authorization(
        &self,
        settings: Settings<'_>,
        subscription: &Subscription,
    ) -> Result<String, Answer> {
        let given = || Ok((settings.required("subject")?, settings.required("private_key")?));
        let (subject, private_key) = given().map_err(|error| settings_fault(&error))?;
        let make = async {
            let made = made(subject, private_key, &subscription.origin, self.clock.now());
            made.map(|value| (value, LIFETIME.saturating_sub(EARLY))).map_err(|error| settings_fault(&error))
        };
        self.tokens.get(token_key(&[subject, private_key, &subscription.origin]), make).await
    }
}

fn made(subject: &str, private_key: &str, origin: &str, now: Timestamp) -> Result<String, TransportError> {
    let key = SigningKey::es256(private_key).map_err(|fault| misconfigured(&fault.to_string()))?;
    let claims = json!({"aud": origin, "exp": (now + LIFETIME).as_seconds(), "sub": subject});
    let public_key = URL_SAFE_NO_PAD.encode(key.public_key());
    Ok(format!("vapid t={}, k={public_key}", key.token(None, &claims)))
}
