//! Fake of Twilio's Messages resource and its callbacks.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use serde_json::{Value, json};
use url::form_urlencoded::Serializer;

use super::{FakeAnswer, FakeApi, FakeCallback, FakeRequest, Refusal, Report, Signature, Submission, fresh};

/// One account.
#[derive(Debug, Clone)]
pub struct FakeTwilio {
    account_sid: String,
    auth_token: String,
}

impl FakeTwilio {
    /// Creates an account with this token.
    pub fn new(account_sid: &str, auth_token: &str) -> Self {
        Self { account_sid: account_sid.to_owned(), auth_token: auth_token.to_owned() }
    }

    /// Returns the settings of a channel that uses it at this address.
    pub fn settings(&self, url: &str) -> Value {
        json!({"api_base": url, "account_sid": self.account_sid, "auth_token": self.auth_token, "sender": "+15005550006"})
    }

    /// Returns a call with a signed form.
    fn call(&self, url: &str, fields: &[(&str, &str)], signature: Signature) -> FakeCallback {
        let form = Serializer::new(String::new()).extend_pairs(fields).finish();
        let callback = FakeCallback::post(url, "application/x-www-form-urlencoded; charset=UTF-8", form);
        let token = match signature {
            Signature::Valid => self.auth_token.as_str(),
            Signature::Missing => return callback,
            Signature::Forged => "forged",
            Signature::OldSecret => "the token before",
        };
        let sorted: BTreeMap<_, _> = fields.iter().copied().collect();
        let signed: String =
            std::iter::once(url).chain(sorted.iter().flat_map(|(name, value)| [*name, *value])).collect();
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, token.as_bytes());
        callback.header("x-twilio-signature", STANDARD.encode(hmac::sign(&key, signed.as_bytes())))
    }
}

/// Returns Twilio's id of a message.
fn sid(submission: &Submission) -> String {
    format!("SM{:0>32}", submission.id)
}

const fn code(refusal: Refusal) -> (u16, u32) {
    match refusal {
        Refusal::Address => (400, 21211),
        Refusal::Blocked | Refusal::Content => (400, 21612),
        Refusal::OptedOut => (400, 21610),
        Refusal::Soft => (400, 30003),
        Refusal::Policy => (400, 30007),
        Refusal::Retry => (500, 20500),
        Refusal::Throttled(_) | Refusal::ThrottledRecipient => (429, 20429),
        Refusal::Auth => (401, 20003),
    }
}

fn problem(status: u16, code: u32) -> FakeAnswer {
    let body = json!({"code": code, "message": format!("error {code}"), "status": status,
        "more_info": format!("https://www.twilio.com/docs/errors/{code}")});
    FakeAnswer::json(status, &body)
}

impl FakeApi for FakeTwilio {
    fn read(&self, request: &FakeRequest) -> Result<Submission, FakeAnswer> {
        let credentials = STANDARD.encode(format!("{}:{}", self.account_sid, self.auth_token));
        if request.header("authorization") != format!("Basic {credentials}") {
            return Err(problem(401, 20003));
        }
        if request.path() != format!("/2010-04-01/Accounts/{}/Messages.json", self.account_sid) {
            return Err(problem(404, 20404));
        }
        let (to, text) = (request.field("To"), request.field("Body"));
        let has_sender = request.field("From").is_empty() != request.field("MessagingServiceSid").is_empty();
        if !to.starts_with('+') {
            return Err(problem(400, 21211));
        }
        if !has_sender || text.is_empty() {
            return Err(problem(400, 21606));
        }
        let callback_url = Some(request.field("StatusCallback")).filter(|url| !url.is_empty());
        Ok(Submission { callback_url, text, ..Submission::to(to) })
    }

    fn accepted(&self, submission: &Submission) -> FakeAnswer {
        let body = json!({"sid": sid(submission), "account_sid": self.account_sid, "to": submission.recipient,
            "body": submission.text, "status": "queued", "num_segments": "1", "error_code": null,
            "error_message": null, "direction": "outbound-api"});
        FakeAnswer::json(201, &body)
    }

    fn refused(&self, _: &Submission, refusal: Refusal) -> FakeAnswer {
        let (status, code) = code(refusal);
        problem(status, code)
    }

    fn report(&self, reports: &[(Submission, Report)], signature: Signature) -> Option<FakeCallback> {
        let [(submission, report)] = reports else { return None };
        let (sid, code) = (
            sid(submission),
            match report {
                // Networks report a landline like this.
                Report::Failed(Refusal::Address) => "30006".to_owned(),
                Report::Failed(refusal) => code(*refusal).1.to_string(),
                _ => String::new(),
            },
        );
        let status = match report {
            Report::Sent => "sent",
            Report::Delivered => "delivered",
            Report::Read => "read",
            Report::Failed(Refusal::Content | Refusal::Retry | Refusal::Auth) => "failed",
            Report::Failed(_) => "undelivered",
        };
        let mut fields = vec![
            ("AccountSid", self.account_sid.as_str()),
            ("MessageSid", sid.as_str()),
            ("MessageStatus", status),
            ("SmsSid", sid.as_str()),
            ("SmsStatus", status),
            ("To", submission.recipient.as_str()),
        ];
        if !code.is_empty() {
            fields.push(("ErrorCode", code.as_str()));
        }
        Some(self.call(submission.callback_url.as_deref()?, &fields, signature))
    }

    fn inbound(&self, url: &str, from: &str, text: &str, signature: Signature) -> Option<FakeCallback> {
        let sid = format!("SM{:032x}", fresh());
        let fields = [
            ("AccountSid", self.account_sid.as_str()),
            ("Body", text),
            ("From", from),
            ("MessageSid", sid.as_str()),
            ("NumMedia", "0"),
            ("SmsStatus", "received"),
            ("To", "+15005550006"),
        ];
        Some(self.call(url, &fields, signature))
    }
}
