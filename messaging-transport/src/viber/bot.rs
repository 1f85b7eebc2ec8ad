//! The provider `bot` of the channel viber: Viber's REST Bot API.

mod answer;
mod callback;
mod request;

use std::sync::Arc;

use async_trait::async_trait;
use messaging_core::ports::clock::Clock;
use messaging_core::ports::fetch::Fetch;
use messaging_core::ports::transport::{
    Answer, Callback, CallbackAddress, CallbackFault, CallbackRequest, Content, Outgoing, Registration, Sent,
    SettingsFault, Transport, TransportError,
};
use serde_json::{Map, Value, json};

use crate::provider::{Call, ProviderClient, Settings, check_url, misconfigured, to_each};

/// Base URL of Viber's API, unless the settings name another.
const API_BASE: &str = "https://chatapi.viber.com/pa";

/// Maximum length of the sender's name in characters.
const MAX_SENDER: usize = 28;

/// Transport that sends as a Viber bot.
#[derive(Debug)]
pub struct ViberBot {
    api: ProviderClient,
}

/// A bot, by its settings.
struct Bot<'a> {
    api_base: &'a str,
    auth_token: &'a str,
    sender: &'a str,
}

impl<'a> Bot<'a> {
    fn of(settings: &'a Map<String, Value>) -> Result<Self, TransportError> {
        let settings = Settings(settings);
        let sender = settings.required("sender")?;
        if sender.chars().count() > MAX_SENDER {
            return Err(misconfigured("sender has more than 28 characters"));
        }
        Ok(Self { api_base: settings.api_base(API_BASE)?, auth_token: settings.required("auth_token")?, sender })
    }

    fn call(&self, method: &str, body: &Value) -> Call {
        Call::json(format!("{}/{method}", self.api_base), body)
            .header("x-viber-auth-token", self.auth_token)
            .hide(self.auth_token)
    }
}

impl ViberBot {
    /// Creates a transport that makes its calls with `fetch`.
    pub fn new(fetch: Arc<dyn Fetch>, clock: Arc<dyn Clock>) -> Self {
        Self { api: ProviderClient::new(fetch, clock) }
    }
}

#[async_trait]
impl Transport for ViberBot {
    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError> {
        let Content::Viber(content) = &outgoing.content else {
            return Err(TransportError::Content("this provider carries Viber messages only".to_owned()));
        };
        let bot = &Bot::of(&outgoing.settings)?;
        let body = &request::of(bot.sender, content)?;
        let send = |to: String| async move {
            self.api.answer(bot.call("send_message", &request::to(&to, body)), answer::judge).await
        };
        Ok(to_each(outgoing, send).await)
    }

    fn check(&self, settings: &Map<String, Value>) -> Result<(), SettingsFault> {
        check_url(self.api.fetch(), settings, "api_base")
    }

    fn callback(
        &self,
        settings: &Map<String, Value>,
        request: &CallbackRequest<'_>,
    ) -> Result<Callback, CallbackFault> {
        callback::read(Settings(settings), request)
    }

    /// Calls `set_webhook`. Viber calls the URL before it answers.
    async fn register(&self, settings: &Map<String, Value>, address: &CallbackAddress) -> Result<Registration, String> {
        let bot = Bot::of(settings).map_err(|error| error.to_string())?;
        let body = json!({
            "url": address.url,
            "event_types": ["delivered", "seen", "failed", "subscribed", "unsubscribed"],
            "send_name": false,
            "send_photo": false,
        });
        let answer: Answer = match self.api.call(bot.call("set_webhook", &body)).await {
            Ok(reply) if answer::is_ok(&reply) => return Ok(Registration::Registered),
            Ok(reply) => answer::judge(&reply),
            Err(answer) => answer,
        };
        Err(answer.response.text)
    }
}

#[cfg(test)]
mod tests;
