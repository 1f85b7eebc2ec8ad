//! Access tokens for a service account: OAuth 2.0 with a signed assertion (RFC 7523).

use std::sync::Arc;
use std::time::Duration;

use messaging_core::domain::delivery::outcome::{Answer, OutcomeClass, Response, Scope};
use messaging_core::ports::clock::Clock;
use messaging_core::ports::transport::TransportError;
use messaging_core::time::Timestamp;
use serde_json::{Map, Value, json};

use super::super::service::{coded, settings_fault};
use crate::jwt::SigningKey;
use crate::provider::{Call, ProviderClient, Reply, Settings, misconfigured};
use crate::token_cache::{TokenCache, TokenKey, token_key};

const SCOPE: &str = "https://www.googleapis.com/auth/firebase.messaging";
const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";

/// Validity of an assertion: the maximum that Google grants.
const ASSERTION_LIFETIME: Duration = Duration::from_hours(1);

/// Time before its expiry at which a token is renewed.
const EARLY: Duration = Duration::from_mins(5);

/// Maximum lifetime of a token, and the one assumed if the answer gives none.
const MAX_LIFETIME: Duration = Duration::from_hours(1);

/// A service account, as Google writes it to a file.
pub(super) struct ServiceAccount {
    client_email: String,
    private_key: String,
    private_key_id: Option<String>,
    /// URL of the token endpoint; it comes from the settings, so it passes the guard.
    pub(super) token_uri: String,
}

impl ServiceAccount {
    /// Reads the setting `service_account`: an object, or its text.
    pub(super) fn read(settings: Settings<'_>) -> Result<Self, TransportError> {
        let member = "service_account";
        let parsed: Map<String, Value> = match settings.0.get(member) {
            Some(Value::Object(account)) => account.clone(),
            Some(Value::String(text)) => {
                serde_json::from_str(text).map_err(|_| misconfigured("service_account is no JSON object"))?
            }
            _ => return Err(misconfigured("service_account is missing")),
        };
        let account = Settings(&parsed);
        let of = |error: TransportError| misconfigured(&format!("of the service account {}", error.cause()));
        Ok(Self {
            client_email: account.required("client_email").map_err(of)?.to_owned(),
            private_key: account.required("private_key").map_err(of)?.to_owned(),
            private_key_id: account.text("private_key_id").map_err(of)?.map(ToOwned::to_owned),
            token_uri: account.text("token_uri").map_err(of)?.unwrap_or(TOKEN_URI).to_owned(),
        })
    }

    fn key(&self) -> TokenKey {
        token_key(&[&self.client_email, &self.private_key, &self.token_uri])
    }

    fn assertion(&self, now: Timestamp) -> Result<String, TransportError> {
        let key = SigningKey::rs256(&self.private_key)
            .map_err(|fault| misconfigured(&format!("of the service account {fault}")))?;
        let claims = json!({
            "iss": self.client_email,
            "scope": SCOPE,
            "aud": self.token_uri,
            "iat": now.as_seconds(),
            "exp": (now + ASSERTION_LIFETIME).as_seconds(),
        });
        Ok(key.token(self.private_key_id.as_deref(), &claims))
    }
}

/// Access tokens by service account.
#[derive(Debug)]
pub(super) struct AccessTokens(TokenCache<String, Answer>);

impl AccessTokens {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self(TokenCache::new(clock))
    }

    /// Returns the token of an account, and requests one if there is none. `Err` is the answer for a message without a
    /// token.
    pub(super) async fn get(&self, api: &ProviderClient, account: &ServiceAccount) -> Result<String, Answer> {
        self.0.get(account.key(), ask(api, account)).await
    }

    /// Forgets a token that was refused.
    pub(super) async fn discard(&self, account: &ServiceAccount, refused: &str) {
        self.0.discard(account.key(), &refused.to_owned()).await;
    }
}

async fn ask(api: &ProviderClient, account: &ServiceAccount) -> Result<(String, Duration), Answer> {
    let assertion = account.assertion(api.now()).map_err(|error| settings_fault(&error))?;
    let fields = [("grant_type", GRANT_TYPE), ("assertion", assertion.as_str())];
    let call = Call::form(&account.token_uri, &fields).hide(&assertion);
    match api.call(call).await {
        Ok(reply) => read(&reply),
        Err(answer) => Err(no_token(&answer)),
    }
}

/// Turns a failed call of the token endpoint into the answer for the message: it was not sent, whatever happened to the
/// call.
fn no_token(answer: &Answer) -> Answer {
    let class = match answer.class {
        // The URL may not be called, or redirects: the settings have to be mended.
        OutcomeClass::Auth | OutcomeClass::Content(_) => OutcomeClass::Auth,
        _ => OutcomeClass::Retry(Scope::Account),
    };
    let text = format!("no access token: {}", answer.response.text);
    Answer::new(class, Response { host: answer.response.host.clone(), ..Response::of_text(&text) })
}

/// Reads the answer of the token endpoint (RFC 6749 sections 5.1 and 5.2).
fn read(reply: &Reply) -> Result<(String, Duration), Answer> {
    let json = reply.json().unwrap_or_default();
    if reply.is_success() {
        let token = json["access_token"].as_str().filter(|token| !token.is_empty());
        let Some(token) = token else {
            return Err(reply.answer(OutcomeClass::Retry(Scope::Account), "no access token: the answer cannot be read"));
        };
        let lifetime = json["expires_in"].as_u64().map_or(MAX_LIFETIME, Duration::from_secs).min(MAX_LIFETIME);
        return Ok((token.to_owned(), lifetime.saturating_sub(EARLY)));
    }
    let class = match reply.status.as_u16() {
        408 | 429 | 500.. => OutcomeClass::Retry(Scope::Account),
        _ => OutcomeClass::Auth,
    };
    let text = match (json["error"].as_str(), json["error_description"].as_str()) {
        (Some(error), Some(description)) => format!("no access token: {error}: {description}"),
        (Some(error), None) => format!("no access token: {error}"),
        _ => format!("no access token: HTTP {}", reply.status.as_u16()),
    };
    let answer = coded(reply.answer(class, &text), json["error"].as_str().unwrap_or_default());
    Err(answer.wait(reply.retry_after))
}
