//! Viber's REST Bot API.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use super::{FakeAnswer, FakeApi, FakeCallback, FakeRequest, Refusal, Report, Signature, Submission, fresh, signed};

/// Base of message tokens, so high that they need 64 bits.
const TOKENS: u64 = 5_000_000_000_000_000_000;

/// A bot at a fake Viber. Clones are the same bot.
#[derive(Debug, Clone)]
pub struct FakeViberBot {
    auth_token: Arc<str>,
    webhook: Arc<Mutex<Option<String>>>,
}

impl FakeViberBot {
    /// Creates the bot with this token.
    pub fn new(auth_token: &str) -> Self {
        Self { auth_token: auth_token.into(), webhook: Arc::default() }
    }

    /// Returns the URL for events, once `set_webhook` has set it.
    pub fn webhook(&self) -> Option<String> {
        self.lock().clone()
    }

    /// Returns the call for an event, such as `subscribed` with a user.
    pub fn event(&self, url: &str, event: &Value, signature: Signature) -> FakeCallback {
        let callback = FakeCallback::json(url, event);
        let secret = match signature {
            Signature::Valid => &*self.auth_token,
            Signature::Forged => "forged",
            Signature::OldSecret => "the token before",
            Signature::Missing => return callback,
        };
        let signed = signed::hmac_sha256(secret, &callback.body);
        callback.header("x-viber-content-signature", signed)
    }

    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.webhook.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns an answer with this Viber status; its HTTP status is always 200.
fn says(status: u64, text: &str) -> FakeAnswer {
    FakeAnswer::json(200, &json!({"status": status, "status_message": text}))
}

fn token(submission: &Submission) -> u64 {
    TOKENS + submission.id.parse::<u64>().unwrap_or_default()
}

impl FakeApi for FakeViberBot {
    /// `set_webhook` first makes a call to the URL that it is given.
    fn asks_first(&self, request: &FakeRequest) -> Option<(FakeCallback, FakeAnswer)> {
        let is_told = request.path().ends_with("/set_webhook");
        if !is_told || request.header("x-viber-auth-token") != &*self.auth_token {
            return None;
        }
        let url = request.json()["url"].as_str().filter(|url| !url.is_empty())?.to_owned();
        let event = json!({
            "event": "webhook", "timestamp": 1_769_850_900_000_u64, "message_token": TOKENS + fresh(),
        });
        let refusal = says(1, "invalidUrl: the webhook did not answer with 200");
        Some((self.event(&url, &event, Signature::Valid), refusal))
    }

    fn read(&self, request: &FakeRequest) -> Result<Submission, FakeAnswer> {
        if request.header("x-viber-auth-token") != &*self.auth_token {
            return Err(says(2, "invalidAuthToken"));
        }
        let body = request.json();
        match request.path().rsplit('/').next() {
            Some("set_webhook") => {
                let Some(url) = body["url"].as_str().filter(|url| !url.is_empty()) else {
                    return Err(says(1, "invalidUrl"));
                };
                *self.lock() = Some(url.to_owned());
                Err(says(0, "ok"))
            }
            Some("send_message") => {
                let Some(receiver) = body["receiver"].as_str().filter(|receiver| !receiver.is_empty()) else {
                    return Err(says(4, "missingData"));
                };
                if !matches!(body["type"].as_str(), Some("text" | "picture")) {
                    return Err(says(3, "badData"));
                }
                Ok(Submission {
                    callback_url: self.webhook(),
                    text: body["text"].as_str().unwrap_or_default().to_owned(),
                    ..Submission::to(receiver)
                })
            }
            _ => Err(FakeAnswer::text(404, "text/plain", "not found")),
        }
    }

    fn accepted(&self, submission: &Submission) -> FakeAnswer {
        let body = json!({"status": 0, "status_message": "ok", "message_token": token(submission)});
        FakeAnswer::json(200, &body)
    }

    fn refused(&self, _: &Submission, refusal: Refusal) -> FakeAnswer {
        match refusal {
            Refusal::Address => says(5, "receiverNotRegistered"),
            Refusal::Blocked | Refusal::OptedOut => says(6, "receiverNotSubscribed"),
            Refusal::Content => says(3, "badData"),
            Refusal::Auth => says(2, "invalidAuthToken"),
            Refusal::ThrottledRecipient => says(12, "tooManyRequests"),
            // Viber has no status for an absent recipient.
            Refusal::Soft => says(14, "incompatibleWithVersion"),
            Refusal::Policy => says(21, "unsupportedCountry"),
            Refusal::Retry => FakeAnswer::text(503, "text/plain", "unavailable"),
            Refusal::Throttled(_) => FakeAnswer::text(429, "text/plain", "too many requests"),
        }
    }

    fn report(&self, reports: &[(Submission, Report)], signature: Signature) -> Option<FakeCallback> {
        // Viber makes one call for each message.
        let [(submission, report)] = reports else { return None };
        let url = submission.callback_url.clone()?;
        let (name, desc) = match report {
            Report::Sent => return None,
            Report::Delivered => ("delivered", None),
            Report::Read => ("seen", None),
            Report::Failed(_) => ("failed", Some("failure description")),
        };
        let event = json!({
            "event": name, "timestamp": 1_769_850_900_000_u64, "message_token": token(submission),
            "user_id": submission.recipient, "desc": desc,
        });
        Some(self.event(&url, &event, signature))
    }

    fn inbound(&self, url: &str, from: &str, text: &str, signature: Signature) -> Option<FakeCallback> {
        let event = json!({
            "event": "message", "timestamp": 1_769_850_900_000_u64, "message_token": TOKENS + fresh(),
            "sender": {"id": from, "name": "Ann"}, "message": {"type": "text", "text": text},
        });
        Some(self.event(url, &event, signature))
    }
}
