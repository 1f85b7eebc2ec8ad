//! Calls of a provider's HTTP API, and the outcome of a call that got no answer which an adapter could judge.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use messaging_core::domain::delivery::outcome::{Answer, ContentFault, OutcomeClass, Response, Scope};
use messaging_core::ports::clock::Clock;
use messaging_core::ports::fetch::{Fetch, FetchError, FetchRequest, Protocol};
use messaging_core::time::Timestamp;
use serde_json::Value;
use url::Url;
use url::form_urlencoded::Serializer;

/// Longest time for a call, from looking up the name to the last octet of the answer.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// Octets of an answer's body that are read. The longest answers of providers have a few KiB.
const BODY_LIMIT: usize = 64 << 10;

/// Text that replaces a secret in answers.
const HIDDEN: &str = "***";

/// Origin of the address that is called, which decides whom a failure of the call concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// The provider's address, or one from the settings: all messages of the account go there.
    Account,
    /// An address that the recipient brought along, as in Web Push: its failure concerns nobody else.
    Recipient,
}

/// Client that calls the APIs of providers.
#[derive(Debug, Clone)]
pub(crate) struct ProviderClient {
    fetch: Arc<dyn Fetch>,
    clock: Arc<dyn Clock>,
}

/// One HTTP request to a provider, and the secrets in it, which are hidden in the answer that is stored and shown.
pub(crate) struct Call {
    method: Method,
    url: String,
    headers: HeaderMap,
    body: Bytes,
    protocol: Protocol,
    target: Target,
    secrets: Vec<String>,
}

/// The answer of a provider to a call; it is never a redirect.
pub(crate) struct Reply {
    /// The HTTP status.
    pub(crate) status: StatusCode,
    /// The headers.
    pub(crate) headers: HeaderMap,
    /// Wait that the answer asks for in `Retry-After`, at most 24 hours.
    pub(crate) retry_after: Option<Duration>,
    body: Bytes,
    /// False if the body was cut off at [`BODY_LIMIT`].
    is_whole: bool,
    host: Option<String>,
    secrets: Vec<String>,
}

impl ProviderClient {
    /// A client that sends requests by `fetch`.
    pub(crate) fn new(fetch: Arc<dyn Fetch>, clock: Arc<dyn Clock>) -> Self {
        Self { fetch, clock }
    }

    /// The HTTP client, which also judges whether an address may be called.
    pub(crate) fn fetch(&self) -> &dyn Fetch {
        self.fetch.as_ref()
    }

    /// The present time, for tokens and signatures.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Calls once and has `judge` turn the reply into an answer for the recipient. Without a reply to judge, the answer
    /// is that of [`call`](Self::call).
    pub(crate) async fn answer(&self, call: Call, judge: impl FnOnce(&Reply) -> Answer) -> Answer {
        match self.call(call).await {
            Ok(reply) => judge(&reply),
            Err(answer) => answer,
        }
    }

    /// Calls once, for [`TIME_LIMIT`] at most and without following redirects. `Err` is the answer for the recipient if
    /// the call failed or was redirected, so that an adapter has no reply to judge (contract section 16).
    pub(crate) async fn call(&self, call: Call) -> Result<Reply, Answer> {
        let Call { method, url, headers, body, protocol, target, secrets } = call;
        let host = Url::parse(&url).ok().and_then(|url| url.host_str().map(ToOwned::to_owned));
        let request = FetchRequest {
            protocol,
            method,
            url,
            headers,
            body,
            time_limit: TIME_LIMIT,
            body_limit: BODY_LIMIT,
            redirects: 0,
        };
        let fetched = match self.fetch.fetch(request).await {
            Ok(fetched) => fetched,
            Err(error) => {
                let response = Response { host, ..Response::of_text(&error.to_string()) };
                return Err(Answer::new(unanswered(error, target), response));
            }
        };
        let retry_after = fetched.retry_after(self.now());
        let reply = Reply {
            status: fetched.status,
            retry_after,
            headers: fetched.headers,
            body: fetched.body,
            is_whole: !fetched.truncated,
            host,
            secrets,
        };
        if reply.status.is_redirection() {
            let class = OutcomeClass::Content(ContentFault::Provider);
            return Err(reply.answer(class, &format!("HTTP {}: redirects are not followed", reply.status.as_u16())));
        }
        Ok(reply)
    }
}

/// The outcome class of a call without a complete answer: ambiguous if the provider may have received the request.
fn unanswered(error: FetchError, target: Target) -> OutcomeClass {
    match (error, target) {
        _ if error.may_have_arrived() => OutcomeClass::Ambiguous,
        (FetchError::Blocked, Target::Account) => OutcomeClass::Auth,
        (FetchError::Blocked, Target::Recipient) => OutcomeClass::Content(ContentFault::Provider),
        (_, Target::Account) => OutcomeClass::Retry(Scope::Account),
        (_, Target::Recipient) => OutcomeClass::Retry(Scope::Origin),
    }
}

impl Call {
    /// A POST of a body with this content type, to an address of the account, over HTTP/1.1.
    pub(crate) fn post(url: impl Into<String>, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        Self {
            method: Method::POST,
            url: url.into(),
            headers,
            body: body.into(),
            protocol: Protocol::Http1,
            target: Target::Account,
            secrets: Vec::new(),
        }
    }

    /// A POST of a JSON body.
    pub(crate) fn json(url: impl Into<String>, body: &Value) -> Self {
        Self::post(url, "application/json", body.to_string())
    }

    /// A POST of a URL-encoded form.
    pub(crate) fn form(url: impl Into<String>, fields: &[(&str, &str)]) -> Self {
        let body = Serializer::new(String::new()).extend_pairs(fields).finish();
        Self::post(url, "application/x-www-form-urlencoded", body)
    }

    /// Adds a header. A value with control characters, which a header must not have, is left out; settings have none.
    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(HeaderName::from_static(name), value);
        }
        self
    }

    /// Authenticates the call by a bearer token (RFC 6750) and hides the token.
    pub(crate) fn bearer(self, token: &str) -> Self {
        self.authorization(&format!("Bearer {token}")).hide(token)
    }

    /// Authenticates the call by name and password (RFC 7617) and hides the password.
    pub(crate) fn basic(self, name: &str, password: &str) -> Self {
        let credentials = STANDARD.encode(format!("{name}:{password}"));
        self.authorization(&format!("Basic {credentials}")).hide(password).hide(&credentials)
    }

    /// Sets the `Authorization` header. Nothing of it is hidden in answers; use [`hide`](Self::hide) for that.
    pub(crate) fn authorization(mut self, value: &str) -> Self {
        if let Ok(mut value) = HeaderValue::from_str(value) {
            value.set_sensitive(true);
            self.headers.insert(AUTHORIZATION, value);
        }
        self
    }

    /// Replaces a secret by `***` wherever an answer would repeat it.
    pub(crate) fn hide(mut self, secret: &str) -> Self {
        if !secret.is_empty() {
            self.secrets.push(secret.to_owned());
        }
        self
    }

    /// Sends the call by this version of HTTP instead of HTTP/1.1.
    pub(crate) fn protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = protocol;
        self
    }

    /// Says whose address is called; without it, one of the account.
    pub(crate) fn target(mut self, target: Target) -> Self {
        self.target = target;
        self
    }
}

#[cfg(test)]
impl From<messaging_core::ports::fetch::Fetched> for Reply {
    fn from(fetched: messaging_core::ports::fetch::Fetched) -> Self {
        Self {
            status: fetched.status,
            retry_after: fetched.retry_after(Timestamp::from_millis(0)),
            headers: fetched.headers,
            body: fetched.body,
            is_whole: !fetched.truncated,
            host: None,
            secrets: Vec::new(),
        }
    }
}

impl Reply {
    /// True if the HTTP status is a success (2xx).
    pub(crate) fn is_success(&self) -> bool {
        self.status.is_success()
    }

    /// The host that was called; empty if the URL has none.
    pub(crate) fn host(&self) -> &str {
        self.host.as_deref().unwrap_or_default()
    }

    /// The body as JSON; `None` if it is not JSON or was cut off at [`BODY_LIMIT`].
    pub(crate) fn json(&self) -> Option<Value> {
        if self.is_whole { serde_json::from_slice(&self.body).ok() } else { None }
    }

    /// An answer of a class with this text: secrets are replaced by `***`, control characters removed, and the text is
    /// cut off after 512 characters.
    pub(crate) fn answer(&self, class: OutcomeClass, text: &str) -> Answer {
        let mut text = text.to_owned();
        for secret in &self.secrets {
            text = text.replace(secret, HIDDEN);
        }
        Answer::new(class, Response { host: self.host.clone(), ..Response::of_text(&text) })
    }

    /// An answer of a class whose text is the HTTP status and the beginning of the body, for replies that the adapter
    /// does not know.
    pub(crate) fn answer_with_body(&self, class: OutcomeClass) -> Answer {
        let body = String::from_utf8_lossy(&self.body);
        self.answer(class, format!("HTTP {} {}", self.status.as_u16(), body.trim()).trim())
    }

    /// The answer for a successful reply that cannot be read: ambiguous, because the provider may have the message. Its
    /// text has the beginning of the body.
    pub(crate) fn ambiguous_answer(&self) -> Answer {
        let (status, body) = (self.status.as_u16(), String::from_utf8_lossy(&self.body));
        let text = format!("HTTP {status}: the answer cannot be read: {}", body.trim());
        let mut answer = self.answer(OutcomeClass::Ambiguous, &text);
        // The code tells it apart from an ambiguous answer whose reply was lost, which has none.
        answer.response.code = Some(status);
        answer
    }

    /// The answer for a reply that is not in the provider's own format, such as a page of a gateway in front of it: it
    /// is judged by the HTTP status alone, and never the recipient's fault.
    pub(crate) fn answer_by_status(&self) -> Answer {
        let class = match self.status {
            _ if self.is_success() => return self.ambiguous_answer(),
            StatusCode::TOO_MANY_REQUESTS => OutcomeClass::Throttled(Scope::Account),
            _ => OutcomeClass::Retry(Scope::Account),
        };
        self.answer_with_body(class).wait(self.retry_after)
    }
}
