//! The provider `bot_api` of the channel telegram: the Bot API (core.telegram.org/bots/api).
//!
//! The bot's token is part of every URL that is called, so no URL is kept, shown or logged here.

mod answer;
mod callback;
mod request;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use messaging_core::ports::clock::Clock;
use messaging_core::ports::fetch::Fetch;
use messaging_core::ports::transport::{
    Answer, Callback, CallbackAddress, CallbackFault, CallbackRequest, Content, Outgoing, ProviderAnswer, Registration,
    Reservation, Route, RouteState, Sent, SettingsFault, TelegramContent, Transport, TransportError,
};
use serde_json::{Map, Value, json};
use url::Url;

use crate::pace::{Claim, Pace, PaceKey, Rate};
use crate::provider::{Call, ProviderClient, Settings, check_url, misconfigured};
use answer::Judged;

/// Base URL of Telegram's own Bot API, unless the settings name another.
const API_BASE: &str = "https://api.telegram.org";

/// Rate limit of a chat (bot FAQ, "My bot is hitting limits").
const CHAT: Rate = Rate::every(Duration::from_secs(1));
/// Rate limit of a group or channel: 20 messages a minute.
const GROUP: Rate = Rate::every(Duration::from_secs(3));

/// Ports of webhooks that Telegram calls.
const PORTS: [u16; 4] = [443, 80, 88, 8443];

/// Transport that sends as a Telegram bot.
#[derive(Debug)]
pub struct TelegramBot {
    api: ProviderClient,
    pace: Pace,
}

/// A bot, by its settings.
struct Bot<'a> {
    api_base: &'a str,
    token: &'a str,
}

impl<'a> Bot<'a> {
    fn of(settings: &'a Map<String, Value>) -> Result<Self, TransportError> {
        let settings = Settings(settings);
        let token = settings.required("bot_token")?;
        // The token stands in the path of every call.
        let is_token = token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":_-".contains(&byte));
        if !is_token {
            return Err(misconfigured("bot_token is not the token of a bot"));
        }
        Ok(Self { api_base: settings.api_base(API_BASE)?, token })
    }

    fn call(&self, method: &str, body: &Value) -> Call {
        Call::json(format!("{}/bot{}/{method}", self.api_base, self.token), body).hide(self.token)
    }

    fn account(&self) -> PaceKey {
        PaceKey::account(&[self.api_base, self.token])
    }
}

/// Returns the rate limit of a chat: ids of groups and channels are negative, and only they have names.
fn rate_of(chat: &str) -> Rate {
    if chat.starts_with(['-', '@']) { GROUP } else { CHAT }
}

impl TelegramBot {
    /// Creates a transport that makes its calls with `fetch` and measures rates by `clock`.
    pub fn new(fetch: Arc<dyn Fetch>, clock: Arc<dyn Clock>) -> Self {
        Self { pace: Pace::new(Arc::clone(&clock)), api: ProviderClient::new(fetch, clock) }
    }

    async fn send_to(&self, bot: &Bot<'_>, chat: &str, content: &TelegramContent, is_silent: bool) -> Answer {
        let judged = self.try_chat(bot, chat, content, is_silent).await;
        let Judged::Moved(chat) = judged else { return judged.answer() };
        // The group became a supergroup, and nothing was sent: try its new id once.
        let answer = self.try_chat(bot, &chat, content, is_silent).await.answer();
        let said = answer.of_provider().cloned().unwrap_or_default();
        answer.provider(ProviderAnswer { moved_to: Some(chat), ..said })
    }

    async fn try_chat(&self, bot: &Bot<'_>, chat: &str, content: &TelegramContent, is_silent: bool) -> Judged {
        let (method, body) = request::of(chat, content, is_silent);
        match self.api.call(bot.call(method, &body)).await {
            Ok(reply) => answer::judge(&reply),
            Err(answer) => Judged::Answered(answer),
        }
    }
}

#[async_trait]
impl Transport for TelegramBot {
    fn state_of(&self, route: &Route) -> RouteState {
        let (Ok(bot), Some(chat)) = (Bot::of(&route.settings), &route.recipient) else { return RouteState::default() };
        self.pace.state(Claim { account: bot.account(), recipient: chat, rate: rate_of(chat) })
    }

    async fn reserve(&self, route: &Route) -> Reservation {
        match (Bot::of(&route.settings), &route.recipient) {
            (Ok(bot), Some(chat)) => {
                self.pace.reserve(Claim { account: bot.account(), recipient: chat, rate: rate_of(chat) })
            }
            // `send` reports the fault in the settings.
            _ => Reservation::default(),
        }
    }

    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError> {
        let Content::Telegram(content) = &outgoing.content else {
            return Err(TransportError::Content("this provider carries Telegram messages only".to_owned()));
        };
        let bot = &Bot::of(&outgoing.settings)?;
        let silent = outgoing.options.silent;
        let send = |chat: String| async move { self.send_to(bot, &chat, content, silent).await };
        Ok(self.pace.to_each(outgoing, bot.account(), rate_of, send).await)
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

    /// Calls `setWebhook`. Telegram sends the secret with every update.
    async fn register(&self, settings: &Map<String, Value>, address: &CallbackAddress) -> Result<Registration, String> {
        let bot = Bot::of(settings).map_err(|error| error.to_string())?;
        // A self-hosted Bot API server has rules of its own, and reports the addresses that it does not call.
        if bot.api_base == API_BASE {
            may_be_called(&address.url)?;
        }
        let body = json!({
            "url": address.url,
            "secret_token": address.secret,
            "allowed_updates": ["message", "my_chat_member"],
        });
        let answer = match self.api.call(bot.call("setWebhook", &body)).await {
            Ok(reply) if answer::is_ok(&reply) => return Ok(Registration::Registered),
            Ok(reply) => answer::judge(&reply).answer(),
            Err(answer) => answer,
        };
        Err(answer.response.text)
    }
}

/// Checks that Telegram calls such an address; the error is for people.
fn may_be_called(url: &str) -> Result<(), String> {
    let known = Url::parse(url).ok().filter(|url| url.scheme() == "https");
    let port = known.and_then(|url| url.port_or_known_default());
    if port.is_some_and(|port| PORTS.contains(&port)) {
        return Ok(());
    }
    Err("Telegram calls https addresses on port 443, 80, 88 or 8443 only: the public URL of this server is no such \
         address, so Telegram was not told of it"
        .to_owned())
}

#[cfg(test)]
mod tests;
