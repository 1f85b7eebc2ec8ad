//! The provider `webpush`: the push services of browsers (RFC 8030), which know a sender by its key (VAPID, RFC 8292).
//!
//! The settings are `{"subject"}`, an address where the operator of a push service reaches the sender, and a key pair
//! that the server makes ([`new_key_pair`]). A recipient's address is the subscription that a browser made, as JSON.
//! Its endpoint was chosen by the client that brought it: it passes the guard, its faults concern this recipient alone,
//! and answers of its host never stop the channel.

mod answer;
mod encryption;
mod subscription;
mod vapid;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use messaging_core::domain::delivery::outcome::{AddressFault, Answer, OutcomeClass, Response};
use messaging_core::ports::clock::Clock;
use messaging_core::ports::fetch::Fetch;
use messaging_core::ports::transport::SettingsFault;
use serde_json::{Map, Value, json};

use self::subscription::Subscription;
use self::vapid::Vapid;
use super::service::{Notification, Prepared, Service, content_fault, header_tag};
use crate::provider::{Call, ProviderClient, Reply, Target};

pub(super) use vapid::new_key_pair;

/// Maximum length of a message before encryption, in octets.
const MAX_PAYLOAD: usize = 3000;

/// Time that a push service keeps a message if the request gives none: RFC 8030 has no default.
const TTL: Duration = Duration::from_hours(24);

/// Maximum length of `Topic` in characters (RFC 8030 section 5.4).
const MAX_TOPIC: usize = 32;

/// Client of the push services of browsers.
#[derive(Debug)]
pub(super) struct Webpush {
    vapid: Vapid,
}

impl Webpush {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { vapid: Vapid::new(clock) }
    }
}

#[async_trait]
impl Service for Webpush {
    async fn prepare(&self, _api: &ProviderClient, notification: &Notification<'_>) -> Result<Prepared, Answer> {
        let Notification { address, options, tag, .. } = notification;
        let subscription = Subscription::parse(address).map_err(|fault| no_address(&fault.to_string()))?;
        let payload = payload(notification)?;
        let authorization = self.vapid.authorization(notification.settings, &subscription).await?;
        let body = encryption::encrypt(&subscription.key, &subscription.auth, &payload)
            .map_err(|_| no_address("the key of the subscription is no point on the curve P-256"))?;
        let ttl = options.ttl.unwrap_or(TTL).as_secs().to_string();
        let topic = header_tag(tag, MAX_TOPIC, |byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
        let call = Call::post(subscription.endpoint, "application/octet-stream", body)
            .target(Target::Recipient)
            .authorization(&authorization)
            .hide(&authorization)
            .header("content-encoding", "aes128gcm")
            .header("ttl", &ttl)
            .header("urgency", if options.silent { "low" } else { "normal" })
            .header("topic", &topic);
        Ok(Prepared { call, token: None })
    }

    fn judge(&self, _api: &ProviderClient, _notification: &Notification<'_>, reply: &Reply) -> Answer {
        answer::judge(reply)
    }

    fn check(&self, _fetch: &dyn Fetch, _settings: &Map<String, Value>) -> Result<(), SettingsFault> {
        Ok(())
    }
}

/// Returns the answer for an address that is no subscription.
fn no_address(text: &str) -> Answer {
    Answer::new(OutcomeClass::Address(AddressFault::Recipient), Response::of_text(text))
}

/// Returns the payload for the service worker of the page: `title`, and the options of `showNotification`.
fn payload(notification: &Notification<'_>) -> Result<Vec<u8>, Answer> {
    let Notification { content, options, tag, .. } = notification;
    let mut payload = json!({"title": content.title, "body": content.text, "tag": tag, "data": content.data});
    if let Some(image) = &content.image {
        payload["image"] = json!(image);
    }
    if options.silent {
        payload["silent"] = json!(true);
    }
    let payload = payload.to_string().into_bytes();
    if payload.len() > MAX_PAYLOAD {
        let length = payload.len();
        return Err(content_fault(&format!("the notification has {length} bytes; a browser takes {MAX_PAYLOAD}")));
    }
    Ok(payload)
}

#[cfg(test)]
mod tests;
