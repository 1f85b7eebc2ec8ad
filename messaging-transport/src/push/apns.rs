//! The provider `apns`: Apple Push Notification service, with tokens of the developer account.
//!
//! The settings are `{"team_id","key_id","private_key","topic","environment"?,"api_base"?}`; `private_key` is the PEM
//! of the `.p8` file, `topic` the bundle id of the app, and `environment` `production` (the default) or `development`.
//! It speaks only HTTP/2. There are no receipts: a notification that Apple accepts counts as delivered.

mod answer;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use messaging_core::domain::delivery::outcome::Answer;
use messaging_core::ports::clock::Clock;
use messaging_core::ports::fetch::{Fetch, Protocol};
use messaging_core::ports::transport::{SettingsFault, TransportError};
use messaging_core::time::Timestamp;
use serde_json::{Map, Value, json};

use self::answer::MIN_LIFETIME;
use super::service::{Notification, Prepared, Service, content_fault, header_tag, settings_fault};
use crate::jwt::SigningKey;
use crate::provider::{Call, ProviderClient, Reply, Settings, check_url, misconfigured};
use crate::token_cache::{TokenCache, TokenKey, token_key};

const PRODUCTION: &str = "https://api.push.apple.com";
const DEVELOPMENT: &str = "https://api.sandbox.push.apple.com";

/// Maximum length of a payload in octets.
const MAX_PAYLOAD: usize = 4096;

/// Maximum length of `apns-collapse-id` in octets.
const MAX_COLLAPSE_ID: usize = 64;

/// Time for which a provider token is used: Apple accepts none that is older than an hour.
const LIFETIME: Duration = Duration::from_mins(50);

/// Member of the payload that is reserved for Apple.
const APS: &str = "aps";

/// Client of Apple's service.
#[derive(Debug)]
pub(super) struct Apns {
    clock: Arc<dyn Clock>,
    tokens: TokenCache<ProviderToken, Answer>,
}

/// A token of the developer account, and the time at which it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ProviderToken {
    text: String,
    made_at: Timestamp,
}

impl Apns {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { tokens: TokenCache::new(Arc::clone(&clock)), clock }
    }

    async fn token(&self, account: &Account<'_>) -> Result<ProviderToken, Answer> {
        let now = self.clock.now();
        let make = async {
            let text = account.token(now).map_err(|error| settings_fault(&error))?;
            Ok((ProviderToken { text, made_at: now }, LIFETIME))
        };
        self.tokens.get(account.key(), make).await
    }
}

#[async_trait]
impl Service for Apns {
    async fn prepare(&self, _api: &ProviderClient, notification: &Notification<'_>) -> Result<Prepared, Answer> {
        let Notification { address, options, tag, now, .. } = notification;
        let body = payload(notification)?;
        let account = Account::read(notification.settings).map_err(|error| settings_fault(&error))?;
        let token = self.token(&account).await?;
        let mut call = Call::json(format!("{}/3/device/{address}", account.base), &body)
            .protocol(Protocol::Http2)
            .authorization(&format!("bearer {}", token.text))
            .hide(&token.text)
            .header("apns-topic", account.topic)
            .header("apns-push-type", "alert")
            .header("apns-priority", "10")
            .header("apns-collapse-id", &header_tag(tag, MAX_COLLAPSE_ID, |byte| byte.is_ascii_graphic()));
        if let Some(ttl) = options.ttl {
            // With zero Apple makes one attempt.
            let until = if ttl.is_zero() { 0 } else { (*now + ttl).as_seconds() };
            call = call.header("apns-expiration", &until.to_string());
        }
        Ok(Prepared { call, token: Some(token.text) })
    }

    fn judge(&self, _api: &ProviderClient, _notification: &Notification<'_>, reply: &Reply) -> Answer {
        answer::judge(reply)
    }

    /// Renews a token that expired before its time, but not a young one: then our clock is wrong, and Apple refuses
    /// senders with many tokens.
    async fn renew(
        &self,
        _api: &ProviderClient,
        notification: &Notification<'_>,
        refused: &str,
        reply: &Reply,
    ) -> bool {
        if !answer::expired_token(reply) {
            return false;
        }
        let Ok(account) = Account::read(notification.settings) else { return false };
        let Ok(token) = self.token(&account).await else { return false };
        if token.text != refused {
            // Another task has renewed it meanwhile.
            return true;
        }
        if self.clock.now().since(token.made_at) < MIN_LIFETIME {
            return false;
        }
        self.tokens.discard(account.key(), &token).await;
        true
    }

    fn check(&self, fetch: &dyn Fetch, settings: &Map<String, Value>) -> Result<(), SettingsFault> {
        check_url(fetch, settings, "api_base")
    }
}

/// The account, from the settings of the channel.
struct Account<'a> {
    base: &'a str,
    team_id: &'a str,
    key_id: &'a str,
    private_key: &'a str,
    topic: &'a str,
}

impl<'a> Account<'a> {
    fn read(settings: Settings<'a>) -> Result<Self, TransportError> {
        let own = match settings.text("environment")? {
            None | Some("production") => PRODUCTION,
            Some("development") => DEVELOPMENT,
            Some(_) => return Err(misconfigured("environment is not production or development")),
        };
        Ok(Self {
            base: settings.api_base(own)?,
            team_id: settings.required("team_id")?,
            key_id: settings.required("key_id")?,
            private_key: settings.required("private_key")?,
            topic: settings.required("topic")?,
        })
    }

    fn key(&self) -> TokenKey {
        token_key(&[self.team_id, self.key_id, self.private_key])
    }

    fn token(&self, now: Timestamp) -> Result<String, TransportError> {
        let key = SigningKey::es256(self.private_key).map_err(|fault| misconfigured(&fault.to_string()))?;
        Ok(key.token(Some(self.key_id), &json!({"iss": self.team_id, "iat": now.as_seconds()})))
    }
}

/// Returns the payload: the content that Apple shows, and beside it the values for the app.
fn payload(notification: &Notification<'_>) -> Result<Value, Answer> {
    let Notification { content, options, .. } = notification;
    let mut aps = json!({"alert": {"body": content.text}});
    if let Some(title) = &content.title {
        aps["alert"]["title"] = json!(title);
    }
    if !options.silent {
        aps["sound"] = json!("default");
    }
    let mut payload: Map<String, Value> =
        content.data.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    if let Some(image) = &content.image {
        // With it an extension of the app fetches the picture.
        aps["mutable-content"] = json!(1);
        payload.entry("image").or_insert_with(|| json!(image));
    }
    if payload.insert(APS.to_owned(), aps).is_some() {
        return Err(content_fault("data has the name aps, which Apple keeps for itself"));
    }
    let payload = Value::Object(payload);
    let length = payload.to_string().len();
    if length > MAX_PAYLOAD {
        return Err(content_fault(&format!("the notification has {length} bytes; Apple takes {MAX_PAYLOAD}")));
    }
    Ok(payload)
}

#[cfg(test)]
mod tests;
