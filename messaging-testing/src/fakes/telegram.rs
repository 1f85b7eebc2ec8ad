//! Telegram's Bot API.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use super::{FakeAnswer, FakeApi, FakeCallback, FakeRequest, Refusal, Signature, Submission, Wait, fresh};

/// Tags that `parse_mode` HTML knows.
const TAGS: &[&str] = &[
    "b",
    "strong",
    "i",
    "em",
    "u",
    "ins",
    "s",
    "strike",
    "del",
    "span",
    "tg-spoiler",
    "a",
    "code",
    "pre",
    "blockquote",
    "tg-emoji",
];

/// Maximum length of a text in characters.
const MAX_TEXT: usize = 4096;

/// Maximum length of the secret of `setWebhook` in characters.
const MAX_SECRET: usize = 256;

/// Methods that send a message, and the member with its text.
const METHODS: &[(&str, &str)] =
    &[("sendMessage", "text"), ("sendPhoto", "caption"), ("sendVideo", "caption"), ("sendDocument", "caption")];

/// A bot at a fake Telegram. Clones are the same bot.
#[derive(Debug, Clone)]
pub struct FakeTelegram {
    token: Arc<str>,
    webhook: Arc<Mutex<Webhook>>,
}

#[derive(Debug, Default)]
struct Webhook {
    url: Option<String>,
    secret: String,
    secret_before: String,
}

impl FakeTelegram {
    /// Creates the bot with this token.
    pub fn new(token: &str) -> Self {
        Self { token: token.into(), webhook: Arc::default() }
    }

    /// Returns the URL for updates, once `setWebhook` has set it.
    pub fn webhook(&self) -> Option<String> {
        self.lock().url.clone()
    }

    /// Sets the URL for updates and the secret, as `setWebhook` does.
    pub fn set_webhook(&self, url: &str, secret: &str) {
        let mut webhook = self.lock();
        webhook.url = Some(url.to_owned());
        webhook.secret_before = std::mem::replace(&mut webhook.secret, secret.to_owned());
    }

    /// Returns the update about a person who changed the bot's membership, such as to `kicked` or `member`.
    pub fn membership(&self, url: &str, chat: i64, before: &str, after: &str, signature: Signature) -> FakeCallback {
        let update = json!({"my_chat_member": {
            "chat": {"id": chat, "type": "private"},
            "from": {"id": chat, "is_bot": false},
            "old_chat_member": {"status": before},
            "new_chat_member": {"status": after},
        }});
        self.update(url, update, signature)
    }

    fn update(&self, url: &str, mut update: Value, signature: Signature) -> FakeCallback {
        let webhook = self.lock();
        update["update_id"] = json!(fresh());
        let callback = FakeCallback::json(url, &update);
        let secret = match signature {
            Signature::Valid => webhook.secret.clone(),
            Signature::Forged => "forged".to_owned(),
            Signature::OldSecret => webhook.secret_before.clone(),
            Signature::Missing => return callback,
        };
        callback.header("x-telegram-bot-api-secret-token", secret)
    }

    fn lock(&self) -> MutexGuard<'_, Webhook> {
        self.webhook.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn no(code: u16, description: &str) -> FakeAnswer {
    FakeAnswer::json(code, &json!({"ok": false, "error_code": code, "description": description}))
}

impl FakeApi for FakeTelegram {
    fn read(&self, request: &FakeRequest) -> Result<Submission, FakeAnswer> {
        let called = request.path().strip_prefix("/bot").and_then(|rest| rest.split_once('/'));
        let Some((token, method)) = called else { return Err(no(404, "Not Found")) };
        if token != &*self.token {
            return Err(no(401, "Unauthorized"));
        }
        let body = request.json();
        if method == "setWebhook" {
            let secret = body["secret_token"].as_str().unwrap_or_default();
            let is_allowed = |octet: u8| octet.is_ascii_alphanumeric() || b"_-".contains(&octet);
            if secret.len() > MAX_SECRET || !secret.bytes().all(is_allowed) {
                return Err(no(400, "Bad Request: secret token contains unallowed characters"));
            }
            self.set_webhook(
                body["url"].as_str().unwrap_or_default(),
                body["secret_token"].as_str().unwrap_or_default(),
            );
            let done = json!({"ok": true, "result": true, "description": "Webhook was set"});
            return Err(FakeAnswer::json(200, &done));
        }
        let Some((_, text_name)) = METHODS.iter().find(|(known, _)| *known == method) else {
            return Err(no(404, "Not Found: method not found"));
        };
        let chat = match &body["chat_id"] {
            Value::Number(id) => id.to_string(),
            Value::String(name) if !name.is_empty() => name.clone(),
            _ => return Err(no(400, "Bad Request: chat_id is empty")),
        };
        let text = body[*text_name].as_str().unwrap_or_default();
        if *text_name == "text" && text.trim().is_empty() {
            return Err(no(400, "Bad Request: message text is empty"));
        }
        if text.chars().count() > MAX_TEXT {
            return Err(no(400, "Bad Request: message is too long"));
        }
        if body["parse_mode"] == "HTML"
            && let Some(tag) = unknown_tag(text)
        {
            let description = format!("Bad Request: can't parse entities: Unsupported start tag \"{tag}\"");
            return Err(no(400, &description));
        }
        Ok(Submission { text: text.to_owned(), ..Submission::to(chat) })
    }

    fn accepted(&self, submission: &Submission) -> FakeAnswer {
        let id: i64 = submission.id.parse().unwrap_or_default();
        let chat: Value = submission.recipient.parse::<i64>().map_or_else(|_| json!(submission.recipient), Value::from);
        let result = json!({"message_id": id, "date": 1_769_850_900, "chat": {"id": chat}, "text": submission.text});
        FakeAnswer::json(200, &json!({"ok": true, "result": result}))
    }

    fn refused(&self, _: &Submission, refusal: Refusal) -> FakeAnswer {
        match refusal {
            Refusal::Address => no(400, "Bad Request: chat not found"),
            Refusal::Blocked | Refusal::OptedOut => no(403, "Forbidden: bot was blocked by the user"),
            Refusal::Policy => no(403, "Forbidden: bot can't initiate conversation with a user"),
            Refusal::Content => no(400, "Bad Request: can't parse entities: Can't find end of the entity"),
            Refusal::Auth => no(401, "Unauthorized"),
            // Telegram never reports that a recipient is absent.
            Refusal::Soft | Refusal::Retry => no(500, "Internal Server Error"),
            Refusal::Throttled(Wait::Seconds) | Refusal::ThrottledRecipient => {
                let mut body = json!({"ok": false, "error_code": 429});
                body["description"] = json!("Too Many Requests: retry after 7");
                body["parameters"] = json!({"retry_after": 7});
                FakeAnswer::json(429, &body)
            }
            Refusal::Throttled(_) => no(429, "Too Many Requests"),
        }
    }

    fn inbound(&self, url: &str, from: &str, text: &str, signature: Signature) -> Option<FakeCallback> {
        let chat: i64 = from.parse().ok()?;
        let person = json!({"id": chat.unsigned_abs(), "is_bot": false, "first_name": "Ann"});
        let message = json!({"message_id": 1, "chat": {"id": chat, "type": "private"}, "from": person, "text": text});
        Some(self.update(url, json!({"message": message}), signature))
    }
}

/// Returns the first tag that Telegram does not know.
fn unknown_tag(html: &str) -> Option<String> {
    let tags = html.split('<').skip(1).map(|rest| {
        let name = rest.trim_start_matches('/');
        name.chars().take_while(|one| one.is_ascii_alphanumeric() || *one == '-').collect::<String>().to_lowercase()
    });
    tags.into_iter().find(|tag| !TAGS.contains(&tag.as_str()))
}
