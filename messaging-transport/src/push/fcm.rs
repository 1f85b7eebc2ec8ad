//! The provider `fcm`: Firebase Cloud Messaging, HTTP v1 API.
//!
//! The settings are `{"project_id","service_account","api_base"?}`. A service account is the JSON file that users
//! download from Firebase, as an object or as its text; its key signs requests for access tokens ([`access`]). There
//! are no receipts: a notification that Firebase accepts counts as delivered.

mod access;
mod answer;

use std::sync::Arc;

use async_trait::async_trait;
use messaging_core::domain::delivery::outcome::Answer;
use messaging_core::ports::clock::Clock;
use messaging_core::ports::fetch::{Fetch, UrlFault};
use messaging_core::ports::transport::{SettingsFault, TransportError};
use serde_json::{Map, Value, json};

use self::access::{AccessTokens, ServiceAccount};
use super::service::{Notification, Prepared, Service, content_fault, header_tag, settings_fault};
use crate::provider::{Call, ProviderClient, Reply, Settings, check_url, misconfigured};

const API_BASE: &str = "https://fcm.googleapis.com";

/// Maximum length of the shown content and the values for the app together, in octets.
const MAX_PAYLOAD: usize = 4096;

/// Length of an installation id; its first character encodes the version.
const INSTALLATION_ID: usize = 22;

/// Client of Firebase.
#[derive(Debug)]
pub(super) struct Fcm {
    tokens: AccessTokens,
}

impl Fcm {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { tokens: AccessTokens::new(clock) }
    }
}

#[async_trait]
impl Service for Fcm {
    async fn prepare(&self, api: &ProviderClient, notification: &Notification<'_>) -> Result<Prepared, Answer> {
        let body = message(notification)?;
        let url = url(notification.settings).map_err(|error| settings_fault(&error))?;
        let account = ServiceAccount::read(notification.settings).map_err(|error| settings_fault(&error))?;
        let token = self.tokens.get(api, &account).await?;
        Ok(Prepared { call: Call::json(url, &body).bearer(&token), token: Some(token) })
    }

    fn judge(&self, _api: &ProviderClient, _notification: &Notification<'_>, reply: &Reply) -> Answer {
        answer::judge(reply)
    }

    async fn renew(&self, _api: &ProviderClient, notification: &Notification<'_>, token: &str, reply: &Reply) -> bool {
        if !answer::refuses_token(reply) {
            return false;
        }
        let Ok(account) = ServiceAccount::read(notification.settings) else { return false };
        self.tokens.discard(&account, token).await;
        true
    }

    fn check(&self, fetch: &dyn Fetch, settings: &Map<String, Value>) -> Result<(), SettingsFault> {
        check_url(fetch, settings, "api_base")?;
        let Ok(account) = ServiceAccount::read(Settings(settings)) else { return Ok(()) };
        fetch.check(&account.token_uri).map_err(|_: UrlFault| SettingsFault {
            member: "service_account",
            message: "must have a token_uri that is https and not a private address or this machine",
        })
    }
}

fn url(settings: Settings<'_>) -> Result<String, TransportError> {
    let project = settings.required("project_id")?;
    // The project stands in the path.
    if !project.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte)) {
        return Err(misconfigured("project_id has other characters than letters, digits and -"));
    }
    Ok(format!("{}/v1/projects/{project}/messages:send", settings.api_base(API_BASE)?))
}

/// Builds the body of `messages.send`.
fn message(notification: &Notification<'_>) -> Result<Value, Answer> {
    let Notification { address, content, options, tag, now, .. } = notification;
    let mut shown = json!({"body": content.text});
    if let Some(title) = &content.title {
        shown["title"] = json!(title);
    }
    if let Some(image) = &content.image {
        shown["image"] = json!(image);
    }
    let payload = shown.to_string().len() + json!(content.data).to_string().len();
    if payload > MAX_PAYLOAD {
        return Err(content_fault(&format!("the notification has {payload} bytes; Firebase takes {MAX_PAYLOAD}")));
    }

    let mut android = json!({"notification": {"tag": tag}});
    let mut apns = json!({
        "headers": {"apns-collapse-id": header_tag(tag, 64, |byte| byte.is_ascii_graphic())},
        "payload": {"aps": {}},
    });
    let mut webpush = json!({"notification": {"tag": tag}});
    if options.silent {
        android["notification"]["notification_priority"] = json!("PRIORITY_LOW");
        webpush["notification"]["silent"] = json!(true);
    } else {
        android["notification"]["sound"] = json!("default");
        apns["payload"]["aps"]["sound"] = json!("default");
    }
    if content.image.is_some() {
        // With it an extension of the app fetches the picture.
        apns["payload"]["aps"]["mutable-content"] = json!(1);
    }
    if let Some(ttl) = options.ttl {
        android["ttl"] = json!(format!("{}s", ttl.as_secs()));
        let until = if ttl.is_zero() { 0 } else { (*now + ttl).as_seconds() };
        apns["headers"]["apns-expiration"] = json!(until.to_string());
        webpush["headers"] = json!({"TTL": ttl.as_secs().to_string()});
    }
    if let Some(key) = &options.collapse_key {
        android["collapse_key"] = json!(key);
    }

    let target = if is_installation_id(address) { "fid" } else { "token" };
    let mut message = json!({"notification": shown, "android": android, "apns": apns, "webpush": webpush});
    message[target] = json!(address);
    if !content.data.is_empty() {
        message["data"] = json!(content.data);
    }
    Ok(json!({"message": message}))
}

/// Returns true if an address is an installation id, which takes the place of registration tokens.
fn is_installation_id(address: &str) -> bool {
    address.len() == INSTALLATION_ID
        && address.starts_with(['c', 'd', 'e', 'f'])
        && address.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

#[cfg(test)]
mod tests;
