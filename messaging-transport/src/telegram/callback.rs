//! Updates from Telegram: messages to the bot, and chats that block it or let it in again.

use messaging_core::domain::channel::inbound_message::InboundEvent;
use messaging_core::ports::transport::{Callback, CallbackEvent, CallbackFault, CallbackProof, CallbackRequest};
use serde_json::Value;

use crate::provider::{Settings, callback};

/// The header that holds the secret of [`setWebhook`](super::TelegramBot::register).
const SECRET: &str = "x-telegram-bot-api-secret-token";

/// Verifies and reads an update. The answer is empty: Telegram would execute a body that names a method.
pub(super) fn read(settings: Settings<'_>, request: &CallbackRequest<'_>) -> Result<Callback, CallbackFault> {
    callback::posted(request)?;
    let CallbackProof::Channel(address) = request.proof else { return Err(CallbackFault::NotFound) };
    let secret = callback::header(request.headers, SECRET).ok_or(CallbackFault::Unauthorized)?;
    if !callback::matches(secret.as_bytes(), address.secret.as_bytes()) {
        return Err(CallbackFault::Unauthorized);
    }
    let update = callback::json(request.body);
    let found = [written(&update["message"]), membership(&update["my_chat_member"])];
    // Updates are numbered for each bot, whose id stands before the colon of its token.
    let bot = settings.required("bot_token").ok().and_then(|token| token.split(':').next()).unwrap_or_default();
    let id = update["update_id"].as_i64().map(|number| format!("{bot}:{number}"));
    let inbound = |(from, event)| CallbackEvent::Inbound { from, event, id: id.clone() };
    let events = found.into_iter().flatten().map(inbound).collect();
    Ok(Callback { events, ..Callback::default() })
}

/// Returns the id of a chat, which is also its address for messages.
fn chat(of: &Value) -> Option<String> {
    of["chat"]["id"].as_i64().map(|id| id.to_string())
}

/// Returns the message that a person wrote; a picture is a message without text. Messages of other bots are ignored.
fn written(message: &Value) -> Option<(String, InboundEvent)> {
    if !message["from"].is_object() || message["from"]["is_bot"] == true {
        return None;
    }
    let text = message["text"].as_str().unwrap_or_default();
    Some((chat(message)?, InboundEvent::Text(text.to_owned())))
}

/// Returns the event that the bot was blocked or let in again. A change of its rights is neither.
fn membership(update: &Value) -> Option<(String, InboundEvent)> {
    let status = |which: &str| update[which]["status"].as_str().unwrap_or_default();
    let is_out = |status: &str| matches!(status, "kicked" | "left");
    let event = match (status("old_chat_member"), status("new_chat_member")) {
        (_, "kicked") => InboundEvent::Blocked,
        (before, "member" | "administrator") if is_out(before) => InboundEvent::Subscribed,
        _ => return None,
    };
    Some((chat(update)?, event))
}
