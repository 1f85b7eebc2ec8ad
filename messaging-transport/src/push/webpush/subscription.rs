//! Subscription of a browser: `PushSubscription` as JSON (Push API).

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use messaging_core::domain::security::web_url::is_absolute;
use serde_json::Value;
use url::Url;

use super::encryption::{AUTH_SECRET, POINT};

/// Maximum length of a subscription in octets.
const MAX_LENGTH: usize = 4096;

/// Decoder of base64url: browsers write it without padding, but pages may have stored it with padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Endpoint and keys of a browser's subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Subscription {
    /// URL that messages for the browser are posted to.
    pub(super) endpoint: String,
    /// Scheme, host and port of the endpoint, as a URL.
    pub(super) origin: String,
    /// Public key of the browser (`p256dh`).
    pub(super) key: [u8; POINT],
    /// Authentication secret of the browser (`auth`).
    pub(super) auth: [u8; AUTH_SECRET],
}

/// Reason why an address is no subscription. It never holds any part of the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum SubscriptionFault {
    /// Longer than 4096 octets, or not JSON.
    #[error("the subscription is no JSON object of at most 4096 bytes")]
    Json,
    /// The endpoint is missing, no URL with a host, or has another scheme than http and https.
    #[error("the subscription has no endpoint that is a URL")]
    Endpoint,
    /// `keys.p256dh` is missing, or not 65 octets (the length of an uncompressed point) in base64url.
    #[error("the subscription has no keys.p256dh of 65 bytes in base64url")]
    Key,
    /// `keys.auth` is missing, or not 16 octets in base64url.
    #[error("the subscription has no keys.auth of 16 bytes in base64url")]
    Auth,
}

impl Subscription {
    /// Parses the address of a push message. Unknown members are ignored.
    pub(super) fn parse(address: &str) -> Result<Self, SubscriptionFault> {
        use SubscriptionFault as Fault;
        if address.len() > MAX_LENGTH {
            return Err(Fault::Json);
        }
        let json: Value = serde_json::from_str(address).map_err(|_| Fault::Json)?;
        let endpoint = json["endpoint"].as_str().ok_or(Fault::Endpoint)?;
        let url = Url::parse(endpoint).map_err(|_| Fault::Endpoint)?;
        if !is_absolute(endpoint, &["http", "https"]) || url.host_str().is_none() {
            return Err(Fault::Endpoint);
        }
        let octets = |name: &str| BASE64.decode(json["keys"][name].as_str()?).ok();
        Ok(Self {
            endpoint: endpoint.to_owned(),
            origin: url.origin().ascii_serialization(),
            key: octets("p256dh").and_then(|key| key.try_into().ok()).ok_or(Fault::Key)?,
            auth: octets("auth").and_then(|auth| auth.try_into().ok()).ok_or(Fault::Auth)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use serde_json::json;

    use super::*;

    fn subscription() -> Value {
        json!({
            "endpoint": "https://push.example.com:8443/send/abc?x=1",
            "expirationTime": null,
            "keys": {"p256dh": URL_SAFE_NO_PAD.encode([4; POINT]), "auth": URL_SAFE_NO_PAD.encode([5; AUTH_SECRET])},
        })
    }

    #[test]
    fn what_a_browser_made_is_read() {
        let expected = Subscription {
            endpoint: "https://push.example.com:8443/send/abc?x=1".to_owned(),
            origin: "https://push.example.com:8443".to_owned(),
            key: [4; POINT],
            auth: [5; AUTH_SECRET],
        };
        assert_eq!(Subscription::parse(&subscription().to_string()), Ok(expected.clone()));
        let mut padded = subscription();
        padded["keys"]["auth"] = json!(base64::engine::general_purpose::URL_SAFE.encode([5; AUTH_SECRET]));
        assert_eq!(Subscription::parse(&padded.to_string()), Ok(expected));
    }

    #[test]
    fn what_is_no_subscription_is_refused_with_the_reason() {
        let with = |pointer: &str, value: Value| {
            let mut changed = subscription();
            *changed.pointer_mut(pointer).unwrap() = value;
            Subscription::parse(&changed.to_string()).unwrap_err()
        };
        for endpoint in [json!(null), json!("x"), json!("ftp://a.b/"), json!("mailto:a@b.c"), json!(7)] {
            assert_eq!(with("/endpoint", endpoint), SubscriptionFault::Endpoint);
        }
        for key in [json!(null), json!("!"), json!(URL_SAFE_NO_PAD.encode([4; 64]))] {
            assert_eq!(with("/keys/p256dh", key), SubscriptionFault::Key);
        }
        assert_eq!(with("/keys/auth", json!(URL_SAFE_NO_PAD.encode([4; 15]))), SubscriptionFault::Auth);
        assert_eq!(with("/keys", json!(null)), SubscriptionFault::Key);
        for text in ["{", "{}x", &format!("{{\"endpoint\":\"{}\"}}", "x".repeat(MAX_LENGTH))] {
            assert_eq!(Subscription::parse(text), Err(SubscriptionFault::Json));
        }
    }
}
