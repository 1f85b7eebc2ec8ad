//! Builds a call of the Bot API from content.

use messaging_core::ports::transport::{MediaKind, TelegramContent, TelegramText};
use serde_json::{Map, Value, json};

/// Returns the method for a message, and its parameters.
pub(super) fn of(chat: &str, content: &TelegramContent, is_silent: bool) -> (&'static str, Value) {
    let TelegramContent { text, buttons, media, preview } = content;
    let mut body = Map::new();
    let mut set = |name: &str, value: Value| {
        body.insert(name.to_owned(), value);
    };
    set("chat_id", chat.parse::<i64>().map_or_else(|_| chat.into(), Value::from));
    let (text, is_html) = match text {
        TelegramText::Plain(text) => (text, false),
        TelegramText::Html(html) => (html, true),
    };
    let (method, text_name) = match media {
        None => ("sendMessage", "text"),
        Some(media) => {
            let (method, name) = match media.kind {
                MediaKind::Image => ("sendPhoto", "photo"),
                MediaKind::Video => ("sendVideo", "video"),
                MediaKind::Document => ("sendDocument", "document"),
            };
            set(name, media.url.as_str().into());
            (method, "caption")
        }
    };
    set(text_name, text.as_str().into());
    if is_html {
        set("parse_mode", "HTML".into());
    }
    if media.is_none() && !preview {
        set("link_preview_options", json!({"is_disabled": true}));
    }
    if is_silent {
        set("disable_notification", true.into());
    }
    if !buttons.is_empty() {
        let rows: Vec<_> = buttons.iter().map(|button| json!([{"text": button.text, "url": button.url}])).collect();
        set("reply_markup", json!({"inline_keyboard": rows}));
    }
    (method, Value::Object(body))
}
