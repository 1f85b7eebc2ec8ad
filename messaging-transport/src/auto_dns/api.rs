//! Parts that the HTTP APIs of DNS providers share: one request within limits, and the errors of its answers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use messaging_core::ports::clock::Clock;
use messaging_core::ports::dns_provider::DnsProviderError;
use messaging_core::ports::fetch::{Fetch, FetchError, FetchRequest, Fetched, Protocol};
use serde_json::Value;

/// Time limit of a call.
const CALL_WITHIN: Duration = Duration::from_secs(8);

/// Maximum number of octets of an answer that are read; a page of records is far below.
const BODY_LIMIT: usize = 1 << 20;

/// Maximum number of characters of a provider's message that are shown.
const MAX_WORDS: usize = 300;

/// Maximum number of pages of a listing that are read.
pub(super) const MAX_PAGES: usize = 5;

/// An HTTP API at its base URL.
#[derive(Clone)]
pub(super) struct Api {
    fetch: Arc<dyn Fetch>,
    base: String,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").field("base", &self.base).finish_non_exhaustive()
    }
}

/// An API whose calls carry a token.
#[derive(Debug, Clone)]
pub(super) struct TokenApi {
    api: Api,
    authorization: HeaderValue,
}

impl Api {
    pub(super) fn new(fetch: Arc<dyn Fetch>, base: String, clock: Arc<dyn Clock>) -> Self {
        Self { fetch, base, clock }
    }

    /// Returns the clock of the installation.
    pub(super) fn clock(&self) -> &dyn Clock {
        self.clock.as_ref()
    }

    /// Returns the error for an answer that is no success, with the provider's words.
    pub(super) fn refusal(&self, answer: &Fetched, words: Option<String>) -> DnsProviderError {
        later(refusal(answer.status, words), self.wait_asked_by(answer))
    }

    /// Returns the wait that an answer asks for.
    pub(super) fn wait_asked_by(&self, answer: &Fetched) -> Option<Duration> {
        answer.retry_after(self.clock.now())
    }

    /// Returns the base URL, without a slash at its end.
    pub(super) fn base(&self) -> &str {
        &self.base
    }

    /// Returns the same API with a token for its calls.
    pub(super) fn with_token(&self, token: Option<&str>) -> Result<TokenApi, DnsProviderError> {
        let malformed = || DnsProviderError::Credentials("the token is none".to_owned());
        let token = token.filter(|token| !token.is_empty()).ok_or_else(malformed)?;
        let mut authorization = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| malformed())?;
        authorization.set_sensitive(true);
        Ok(TokenApi { api: self.clone(), authorization })
    }

    /// Sends one request.
    pub(super) async fn call(
        &self,
        method: Method,
        target: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Fetched, DnsProviderError> {
        let request = FetchRequest {
            protocol: Protocol::Http1,
            method,
            url: format!("{}{target}", self.base),
            headers,
            body,
            time_limit: CALL_WITHIN,
            body_limit: BODY_LIMIT,
            redirects: 0,
        };
        let answer = self.fetch.fetch(request).await.map_err(|error| match error {
            FetchError::Blocked => {
                DnsProviderError::Blocked("the address of the provider may not be called".to_owned())
            }
            other => DnsProviderError::Away(format!("the provider could not be asked: {other}")),
        })?;
        if answer.truncated {
            return Err(DnsProviderError::Away("the answer of the provider is too long".to_owned()));
        }
        Ok(answer)
    }
}

impl TokenApi {
    /// Sends one request with a JSON body or none, and reads the answer; `explain` finds the provider's message in the
    /// body of a refusal.
    pub(super) async fn json(
        &self,
        method: Method,
        target: &str,
        body: Option<&Value>,
        explain: fn(&Value) -> Option<String>,
    ) -> Result<Value, DnsProviderError> {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, self.authorization.clone());
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let octets = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        let answer = self.api.call(method, target, headers, octets).await?;
        let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        if answer.status.is_success() {
            return Ok(said);
        }
        Err(self.api.refusal(&answer, explain(&said)))
    }
}

/// Adds the wait that the provider asks for, if any, to an error.
pub(super) fn later(error: DnsProviderError, wait: Option<Duration>) -> DnsProviderError {
    match (error, wait) {
        (DnsProviderError::Away(words), Some(wait)) => DnsProviderError::Later(words, wait),
        (error, _) => error,
    }
}

/// Returns the error for a status that is no success, with the provider's words.
pub(super) fn refusal(status: StatusCode, words: Option<String>) -> DnsProviderError {
    let words = words.filter(|words| !words.is_empty()).unwrap_or_else(|| format!("the provider answered {status}"));
    let words = bounded(&words);
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => DnsProviderError::Credentials(words),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => DnsProviderError::Away(words),
        status if status.is_server_error() || status.is_redirection() => DnsProviderError::Away(words),
        _ => DnsProviderError::Refused(words),
    }
}

/// Returns a provider's message on one line, cut to a length that can be shown.
pub(super) fn bounded(words: &str) -> String {
    let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().filter(|character| !character.is_control()).take(MAX_WORDS).collect()
}

/// Returns the error for an answer that lacks what it must have.
pub(super) fn unreadable() -> DnsProviderError {
    DnsProviderError::Away("the answer of the provider could not be read".to_owned())
}

/// Percent-encodes a text for a query or a path.
pub(super) fn encoded(text: &str) -> String {
    let plain = |octet: u8| octet.is_ascii_alphanumeric() || b"-._~".contains(&octet);
    let one = |octet: u8| if plain(octet) { char::from(octet).to_string() } else { format!("%{octet:02X}") };
    text.bytes().map(one).collect()
}
