//! Fake service for the provider `http` of SMS and Viber.

use serde_json::json;

use super::{FakeAnswer, FakeApi, FakeCallback, FakeRequest, Refusal, Report, Signature, Submission};

/// Accepts the request of contract section 16 and reports to the callback URL in it.
#[derive(Debug, Clone)]
pub struct FakeHttp {
    token: Option<String>,
}

impl FakeHttp {
    /// Creates a service that requires this bearer token, if any.
    pub fn new(token: Option<&str>) -> Self {
        Self { token: token.map(ToOwned::to_owned) }
    }

    /// Returns the settings of a channel that uses it at this address.
    pub fn settings(&self, url: &str) -> serde_json::Value {
        json!({"api_base": format!("{url}/send"), "sender": "ACME", "token": self.token})
    }
}

impl FakeApi for FakeHttp {
    fn read(&self, request: &FakeRequest) -> Result<Submission, FakeAnswer> {
        if self.token.as_ref().is_some_and(|token| request.header("authorization") != format!("Bearer {token}")) {
            return Err(FakeAnswer::json(401, &json!({"error": "a wrong token"})));
        }
        let body = request.json();
        let text = |name: &str| body[name].as_str().filter(|text| !text.is_empty()).map(ToOwned::to_owned);
        let (Some(to), Some(_), Some(written), Some(_)) = (text("to"), text("from"), text("text"), text("message_id"))
        else {
            return Err(FakeAnswer::json(400, &json!({"error": "to, from, text and message_id are required"})));
        };
        Ok(Submission { callback_url: text("callback_url"), text: written, ..Submission::to(to) })
    }

    fn accepted(&self, submission: &Submission) -> FakeAnswer {
        FakeAnswer::json(202, &json!({"id": submission.id}))
    }

    fn refused(&self, _: &Submission, refusal: Refusal) -> FakeAnswer {
        let status = match refusal {
            Refusal::Address => 404,
            Refusal::Auth => 401,
            Refusal::Retry => 503,
            Refusal::Throttled(_) | Refusal::ThrottledRecipient => 429,
            Refusal::Content | Refusal::Blocked | Refusal::OptedOut | Refusal::Soft | Refusal::Policy => 422,
        };
        FakeAnswer::json(status, &json!({"error": format!("{refusal:?}")}))
    }

    fn report(&self, reports: &[(Submission, Report)], signature: Signature) -> Option<FakeCallback> {
        let [(submission, report)] = reports else { return None };
        let mut body = json!({"id": submission.id});
        body["status"] = match report {
            Report::Sent => return None,
            Report::Delivered => "delivered".into(),
            Report::Read => "read".into(),
            Report::Failed(refusal) => {
                body["error"] = format!("{refusal:?}").into();
                let is_of_network = matches!(refusal, Refusal::Soft | Refusal::Policy | Refusal::Address);
                if is_of_network { "undelivered" } else { "failed" }.into()
            }
        };
        let mut url = submission.callback_url.clone()?;
        match signature {
            Signature::Valid => {}
            // The token in the URL is the proof.
            Signature::Forged | Signature::OldSecret => {
                let last = if url.ends_with('A') { 'B' } else { 'A' };
                url.pop();
                url.push(last);
            }
            Signature::Missing => url.truncate(url.rfind('/').map_or(0, |slash| slash + 1)),
        }
        Some(FakeCallback::json(url, &body))
    }
}
