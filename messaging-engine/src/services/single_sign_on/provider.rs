//! Requests to the single sign-on provider: for its discovery document, its keys, and the tokens for a code.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use messaging_core::domain::installation::checkup::{CheckReport, judge_sign_on};
use messaging_core::domain::security::oidc::OidcSettings;
use messaging_core::domain::security::oidc::discovery::{
    ClientAuthentication, Discovery, DiscoveryFault, MAX_DOCUMENT_BYTES, document_url,
};
use messaging_core::domain::security::oidc::jws::{CompactJws, MAX_TOKEN_BYTES};
use messaging_core::domain::security::oidc::keys::{KeySet, MAX_KEYS_BYTES, MalformedKeySet};
use messaging_core::domain::security::secret::Secret;
use messaging_core::error::Chain;
use messaging_core::ports::fetch::{FetchError, FetchRequest, Fetched, Protocol};
use messaging_core::ports::store::StoreError;
use serde::Deserialize;

use super::refusal::{SignOnRefusal, error_word};
use crate::app::App;
use crate::app::sign_on_provider::{KnownProvider, SignOnProvider};

/// Time limit for one request to the provider.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// Time a document of the provider is cached. A key that the provider has withdrawn is accepted no longer than that.
const FRESH: Duration = Duration::from_hours(1);
/// Shortest interval between requests for the keys that tokens with unknown keys cause.
const KEYS_AGAIN: Duration = Duration::from_mins(1);
/// Time without requests after the provider did not answer.
const PAUSE: Duration = Duration::from_secs(5);
/// Bytes of a token answer that are read: an access and a refresh token stand beside the ID token.
const MAX_ANSWER_BYTES: usize = 4 * MAX_TOKEN_BYTES;

/// The provider gave no usable answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProviderFault {
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error("it answered with status {0}")]
    Status(StatusCode),
    #[error("its answer is too long")]
    TooLong,
    #[error(transparent)]
    Discovery(#[from] DiscoveryFault),
    #[error(transparent)]
    Keys(#[from] MalformedKeySet),
}

/// The answer of the token endpoint.
#[derive(Deserialize)]
pub(super) struct Tokens {
    /// The ID token.
    pub(super) id_token: String,
    /// Access token for the UserInfo endpoint.
    #[serde(default)]
    access_token: Option<String>,
}

/// Error answer of the token endpoint (RFC 6749 section 5.2).
#[derive(Deserialize)]
struct TokenError {
    error: String,
}

impl App {
    pub(crate) fn sign_on_provider(&self) -> &SignOnProvider {
        &self.0.sign_on_provider
    }

    /// Returns the provider's discovery document, at most an hour old.
    pub(super) async fn provider_document(&self, settings: &OidcSettings) -> Result<Arc<Discovery>, SignOnRefusal> {
        let mut known = self.sign_on_provider().known.lock().await;
        self.document_in(&mut known, settings).await
    }

    async fn document_in(
        &self,
        known: &mut KnownProvider,
        settings: &OidcSettings,
    ) -> Result<Arc<Discovery>, SignOnRefusal> {
        let now = self.monotonic();
        if let Some((at, document)) = &known.discovery
            && now.since(*at) < FRESH
        {
            return Ok(Arc::clone(document));
        }
        if known.failed_at.is_some_and(|at| now.since(at) < PAUSE) {
            return Err(SignOnRefusal::Unreachable);
        }
        match self.ask_for_document(settings).await {
            Ok(document) => {
                let document = Arc::new(document);
                known.discovery = Some((self.monotonic(), Arc::clone(&document)));
                Ok(document)
            }
            Err(fault) => Err(self.unreachable(known, &fault)),
        }
    }

    /// Records that the provider did not answer.
    fn unreachable(&self, known: &mut KnownProvider, fault: &ProviderFault) -> SignOnRefusal {
        known.failed_at = Some(self.monotonic());
        tracing::warn!(error = %Chain(fault), "the single sign-on provider gives no usable answer");
        SignOnRefusal::Unreachable
    }

    /// Returns the keys that a token is verified by. They are requested again when the token names an unknown one, and
    /// at most once a minute.
    pub(super) async fn provider_keys(
        &self,
        settings: &OidcSettings,
        token: &CompactJws<'_>,
    ) -> Result<Arc<KeySet>, SignOnRefusal> {
        let mut known = self.sign_on_provider().known.lock().await;
        let now = self.monotonic();
        let was_asked = known.keys_asked_at.is_some_and(|at| now.since(at) < KEYS_AGAIN);
        if let Some((at, keys)) = &known.keys
            && now.since(*at) < FRESH
            && (was_asked || !keys.lacks_key_of(token))
        {
            return Ok(Arc::clone(keys));
        }
        let document = self.document_in(&mut known, settings).await?;
        if known.failed_at.is_some_and(|at| now.since(at) < PAUSE) {
            return Err(SignOnRefusal::Unreachable);
        }
        known.keys_asked_at = Some(now);
        match self.ask_for_keys(&document).await {
            Ok(keys) => {
                let keys = Arc::new(keys);
                known.keys = Some((self.monotonic(), Arc::clone(&keys)));
                Ok(keys)
            }
            Err(fault) => Err(self.unreachable(&mut known, &fault)),
        }
    }

    async fn ask_for_document(&self, settings: &OidcSettings) -> Result<Discovery, ProviderFault> {
        let body = self.read_from_provider(document_url(&settings.issuer), MAX_DOCUMENT_BYTES).await?;
        Ok(Discovery::parse(&body, &settings.issuer, settings.client_secret.is_some())?)
    }

    async fn ask_for_keys(&self, document: &Discovery) -> Result<KeySet, ProviderFault> {
        let body = self.read_from_provider(document.jwks_uri.clone(), MAX_KEYS_BYTES).await?;
        Ok(KeySet::parse(&body)?)
    }

    async fn read_from_provider(&self, url: String, body_limit: usize) -> Result<Bytes, ProviderFault> {
        let answer = self.ask_provider(Method::GET, url, HeaderMap::new(), Bytes::new(), body_limit).await?;
        if answer.status == StatusCode::OK { Ok(answer.body) } else { Err(ProviderFault::Status(answer.status)) }
    }

    /// Sends one request to the provider. Redirects are not followed: a code and a secret are sent only where the
    /// discovery document says.
    async fn ask_provider(
        &self,
        method: Method,
        url: String,
        mut headers: HeaderMap,
        body: Bytes,
        body_limit: usize,
    ) -> Result<Fetched, ProviderFault> {
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let request = FetchRequest {
            protocol: Protocol::default(),
            method,
            url,
            headers,
            body,
            time_limit: ANSWER_WITHIN,
            body_limit,
            redirects: 0,
        };
        let answer = self.fetch().fetch(request).await?;
        if answer.truncated { Err(ProviderFault::TooLong) } else { Ok(answer) }
    }

    /// Exchanges a code for tokens (OpenID Connect Core section 3.1.3).
    pub(super) async fn tokens_for(
        &self,
        settings: &OidcSettings,
        document: &Discovery,
        code: &str,
        verifier: &str,
    ) -> Result<Tokens, SignOnRefusal> {
        let (headers, body) = self.token_request(settings, document, code, verifier);
        let url = document.token_endpoint.clone();
        let answer = match self.ask_provider(Method::POST, url, headers, body, MAX_ANSWER_BYTES).await {
            Ok(answer) => answer,
            Err(fault) => {
                tracing::warn!(error = %Chain(&fault), "the single sign-on provider gives no token");
                return Err(SignOnRefusal::Unreachable);
            }
        };
        if answer.status != StatusCode::OK {
            let error = serde_json::from_slice::<TokenError>(&answer.body).map(|refused| error_word(&refused.error));
            let (status, error) = (answer.status.as_u16(), error.unwrap_or_default());
            tracing::warn!(status, error, "the single sign-on provider refuses a code");
            let is_down = answer.status.is_server_error();
            return Err(if is_down { SignOnRefusal::Unreachable } else { SignOnRefusal::Provider });
        }
        serde_json::from_slice(&answer.body).map_err(|_| {
            tracing::warn!("the single sign-on provider answers a code with no ID token");
            SignOnRefusal::Token
        })
    }

    /// Returns the provider's UserInfo answer about a person; `None` if it has no such endpoint or gave no access
    /// token.
    pub(super) async fn told_of_person(
        &self,
        document: &Discovery,
        tokens: &Tokens,
    ) -> Result<Option<Bytes>, SignOnRefusal> {
        let Some((url, token)) = document.userinfo_endpoint.clone().zip(tokens.access_token.as_ref()) else {
            return Ok(None);
        };
        let Ok(mut bearer) = HeaderValue::try_from(format!("Bearer {token}")) else { return Ok(None) };
        bearer.set_sensitive(true);
        let headers = HeaderMap::from_iter([(AUTHORIZATION, bearer)]);
        let answer = self.ask_provider(Method::GET, url, headers, Bytes::new(), MAX_TOKEN_BYTES).await;
        let answer = answer.and_then(|answer| match answer.status {
            StatusCode::OK => Ok(answer.body),
            status => Err(ProviderFault::Status(status)),
        });
        // Continuing without it would take away roles that groups give.
        answer.map(Some).map_err(|fault| {
            tracing::warn!(error = %Chain(&fault), "the single sign-on provider does not tell who somebody is");
            SignOnRefusal::Unreachable
        })
    }

    fn token_request(
        &self,
        settings: &OidcSettings,
        document: &Discovery,
        code: &str,
        verifier: &str,
    ) -> (HeaderMap, Bytes) {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code")
            .append_pair("code", code)
            .append_pair("redirect_uri", &self.sign_on_redirect_uri())
            .append_pair("code_verifier", verifier);
        let secret = settings.client_secret.as_ref().map(Secret::expose);
        match (secret, document.authentication) {
            (Some(secret), ClientAuthentication::Basic) => {
                if let Some(value) = basic(&settings.client_id, secret) {
                    headers.insert(AUTHORIZATION, value);
                }
            }
            (Some(secret), ClientAuthentication::Post) => {
                form.append_pair("client_id", &settings.client_id).append_pair("client_secret", secret);
            }
            (None, _) => {
                form.append_pair("client_id", &settings.client_id);
            }
        }
        (headers, form.finish().into())
    }

    /// Checks of the operator: the provider answers, and the workspaces that groups open exist.
    pub(crate) async fn check_sign_on(&self) -> Result<Option<CheckReport>, StoreError> {
        let Some(settings) = self.sign_on() else { return Ok(None) };
        let found = match self.ask_for_document(settings).await {
            Ok(document) => self.ask_for_keys(&document).await.map(drop),
            Err(fault) => Err(fault),
        };
        let mut missing = Vec::new();
        for given in &settings.group_roles {
            let workspace = given.workspace;
            if !missing.contains(&workspace) && self.store().workspace(workspace).await?.is_none() {
                missing.push(workspace);
            }
        }
        let found = found.map_err(|fault| Chain(&fault).to_string());
        Ok(Some(judge_sign_on(&settings.issuer, &found, &missing)))
    }
}

/// Returns the client's id and secret as a header (RFC 6749 section 2.3.1).
fn basic(client_id: &str, secret: &str) -> Option<HeaderValue> {
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let credentials = STANDARD.encode(format!("{}:{}", encoded(client_id), encoded(secret)));
    let mut value = HeaderValue::try_from(format!("Basic {credentials}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_encoded_before_it_is_joined() {
        let value = basic("my app", "a:b+c%").unwrap();
        let text = value.to_str().unwrap().strip_prefix("Basic ").unwrap();
        assert_eq!(STANDARD.decode(text).unwrap(), b"my+app:a%3Ab%2Bc%25");
        assert!(value.is_sensitive());
    }
}
