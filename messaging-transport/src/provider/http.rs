//! One call of a provider's API, and what it means that there was no answer.

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

/// How long a call may take, from looking up the name to the last octet of the answer.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// How many octets of an answer are read. The longest that a provider gives has some KiB.
const BODY_LIMIT: usize = 64 << 10;

/// What is shown instead of a secret.
const HIDDEN: &str = "***";

/// Whose address it is that is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// The provider's, or what the settings say: everything that goes over the account goes there.
    Account,
    /// One that a recipient brought along: what is wrong with it concerns nobody else.
    Recipient,
}

/// Calls providers.
#[derive(Debug, Clone)]
pub(crate) struct Api {
    fetch: Arc<dyn Fetch>,
    clock: Arc<dyn Clock>,
}

/// A call. What authenticates it is kept out of everything that is shown.
pub(crate) struct Call {
    method: Method,
    url: String,
    headers: HeaderMap,
    body: Bytes,
    protocol: Protocol,
    target: Target,
    secrets: Vec<String>,
}

/// An answer that is no redirect.
pub(crate) struct Reply {
    /// The status.
    pub(crate) status: StatusCode,
    /// The headers.
    pub(crate) headers: HeaderMap,
    /// How long it asks to wait, at most 24 hours.
    pub(crate) retry_after: Option<Duration>,
    body: Bytes,
    is_whole: bool,
    host: Option<String>,
    secrets: Vec<String>,
}

impl Api {
    pub(crate) fn new(fetch: Arc<dyn Fetch>, clock: Arc<dyn Clock>) -> Self {
        Self { fetch, clock }
    }

    /// The HTTP client, which also judges whether an address may be called.
    pub(crate) fn fetch(&self) -> &dyn Fetch {
        self.fetch.as_ref()
    }

    /// Now, for what is signed.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Calls once, and says what the reply means by `judge`; where there is none to be judged, what that means.
    pub(crate) async fn answer(&self, call: Call, judge: impl FnOnce(&Reply) -> Answer) -> Answer {
        match self.call(call).await {
            Ok(reply) => judge(&reply),
            Err(answer) => answer,
        }
    }

    /// Calls once, in bounded time and without following redirects. `Err` is the answer for the recipient where the
    /// provider gave none that an adapter could judge (contract section 16).
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

/// The class of a call without a complete answer.
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
    /// POSTs a body of a type.
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

    /// POSTs JSON.
    pub(crate) fn json(url: impl Into<String>, body: &Value) -> Self {
        Self::post(url, "application/json", body.to_string())
    }

    /// POSTs a form.
    pub(crate) fn form(url: impl Into<String>, fields: &[(&str, &str)]) -> Self {
        let body = Serializer::new(String::new()).extend_pairs(fields).finish();
        Self::post(url, "application/x-www-form-urlencoded", body)
    }

    /// With a header. A value that cannot be one is left out: settings have no control characters.
    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(HeaderName::from_static(name), value);
        }
        self
    }

    /// Authenticated by a bearer token (RFC 6750).
    pub(crate) fn bearer(self, token: &str) -> Self {
        self.authorized(&format!("Bearer {token}")).hide(token)
    }

    /// Authenticated by name and password (RFC 7617).
    pub(crate) fn basic(self, name: &str, password: &str) -> Self {
        let credentials = STANDARD.encode(format!("{name}:{password}"));
        self.authorized(&format!("Basic {credentials}")).hide(password).hide(&credentials)
    }

    /// With this `Authorization`, of which nothing is hidden in answers.
    pub(crate) fn authorized(mut self, value: &str) -> Self {
        if let Ok(mut value) = HeaderValue::from_str(value) {
            value.set_sensitive(true);
            self.headers.insert(AUTHORIZATION, value);
        }
        self
    }

    /// Hides a secret wherever the answer repeats it.
    pub(crate) fn hide(mut self, secret: &str) -> Self {
        if !secret.is_empty() {
            self.secrets.push(secret.to_owned());
        }
        self
    }

    /// Spoken with this version of HTTP; otherwise HTTP/1.1.
    pub(crate) fn speaking(mut self, protocol: Protocol) -> Self {
        self.protocol = protocol;
        self
    }

    /// To an address of this kind; otherwise one of the account.
    pub(crate) fn to(mut self, target: Target) -> Self {
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

    /// The host that was called; empty if it is not known.
    pub(crate) fn host(&self) -> &str {
        self.host.as_deref().unwrap_or_default()
    }

    /// The body as JSON; `None` when it is none or longer than what is read.
    pub(crate) fn json(&self) -> Option<Value> {
        if self.is_whole { serde_json::from_slice(&self.body).ok() } else { None }
    }

    /// An answer of a class with this text, of which control characters, what is too long and secrets are taken out.
    pub(crate) fn answer(&self, class: OutcomeClass, text: &str) -> Answer {
        let mut text = text.to_owned();
        for secret in &self.secrets {
            text = text.replace(secret, HIDDEN);
        }
        Answer::new(class, Response { host: self.host.clone(), ..Response::of_text(&text) })
    }

    /// An answer of a class with the status and the beginning of the body as text, for what an adapter does not know.
    pub(crate) fn answer_as_it_is(&self, class: OutcomeClass) -> Answer {
        let body = String::from_utf8_lossy(&self.body);
        self.answer(class, format!("HTTP {} {}", self.status.as_u16(), body.trim()).trim())
    }

    /// The answer to a yes that cannot be read: the provider may have the message. Its text has the beginning of the
    /// body.
    pub(crate) fn unreadable(&self) -> Answer {
        let (status, body) = (self.status.as_u16(), String::from_utf8_lossy(&self.body));
        let text = format!("HTTP {status}: the answer cannot be read: {}", body.trim());
        let mut answer = self.answer(OutcomeClass::Ambiguous, &text);
        // By this it is told apart from an answer that was lost.
        answer.response.code = Some(status);
        answer
    }

    /// The answer to what is not in the provider's own words, such as a page of a gateway in front of it: judged by
    /// the status, and never the recipient's fault.
    pub(crate) fn unexplained(&self) -> Answer {
        let class = match self.status {
            _ if self.is_success() => return self.unreadable(),
            StatusCode::TOO_MANY_REQUESTS => OutcomeClass::Throttled(Scope::Account),
            _ => OutcomeClass::Retry(Scope::Account),
        };
        self.answer_as_it_is(class).wait(self.retry_after)
    }
}
