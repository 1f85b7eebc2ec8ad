//! Single sign-on: requests to the provider, and the handling of its answers.
//!
//! Contract section 25. All requests go through the SSRF-guarded HTTP client, like those to URLs that users enter: a
//! provider at a private address needs the setting that allows such targets. The state of a sign-in is in a cookie,
//! sealed under the installation's key, so that every node can complete a sign-in that another one began.

mod provider;
mod refusal;

use std::net::IpAddr;

use messaging_core::domain::security::caller_network::CallerNetwork;
use messaging_core::domain::security::oidc::OidcSettings;
use messaging_core::domain::security::oidc::flow::Flow;
use messaging_core::domain::security::oidc::id_token::{Expected, Person, verify};
use messaging_core::domain::security::oidc::jws::CompactJws;
use messaging_core::domain::security::oidc::token_fault::TokenFault;
use messaging_core::domain::security::secret::Secret;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::error::Error;
use crate::fair_semaphore::{Cap, Owner, Share};

pub use refusal::SignOnRefusal;
use refusal::error_word;

/// Path at which a browser begins a sign-in, below the public URL.
pub const BEGIN: &str = "/v1/auth/oidc";
/// Path to which the provider sends a browser back, below the public URL.
pub const CALLBACK: &str = "/v1/auth/oidc/callback";

/// Place that the cookie of a sign-in is sealed for; see `Vault::seal`.
const PLACE: &str = "sign-on/flow";

/// Error for sign-ins by other means while only single sign-on is allowed.
pub(crate) const ONLY: Error = Error::AccountState(
    "on this server people sign in by single sign-on alone; for a way back in, whoever runs the server has `messaging admin \
     login-link`",
);

/// Single sign-on option of the sign-in page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct SignOnOffer {
    /// The provider's name.
    pub name: String,
    /// Address at which a browser begins to sign in.
    pub url: String,
    /// True if passwords are refused.
    pub only: bool,
}

/// A sign-in that has begun.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SignOnStart {
    /// Address that the browser goes to.
    pub location: String,
    /// State that the browser brings back, sealed; valid for
    /// [`LIFETIME`](messaging_core::domain::security::oidc::flow::LIFETIME).
    pub cookie: Secret,
}

/// Authorization response that a browser brings (OpenID Connect Core section 3.1.2.5, RFC 9207). A known parameter that
/// is given twice is an error (RFC 6749 section 3.1); others are ignored.
#[derive(Debug, Default)]
struct ProviderAnswer {
    state: Option<String>,
    code: Option<String>,
    error: Option<String>,
    issuer: Option<String>,
}

impl ProviderAnswer {
    fn parse(query: &str) -> Option<Self> {
        let mut answer = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let member = match &*name {
                "state" => &mut answer.state,
                "code" => &mut answer.code,
                "error" => &mut answer.error,
                "iss" => &mut answer.issuer,
                _ => continue,
            };
            if member.replace(value.into_owned()).is_some() {
                return None;
            }
        }
        Some(answer)
    }
}

impl App {
    /// Returns the settings of the single sign-on provider, if one is configured.
    pub fn sign_on(&self) -> Option<&OidcSettings> {
        self.settings().oidc.as_ref()
    }

    /// Returns true if people sign in by single sign-on alone.
    pub(crate) fn is_sign_on_only(&self) -> bool {
        self.sign_on().is_some_and(|settings| settings.only)
    }

    /// Returns the single sign-on option of the sign-in page, if a provider is configured.
    pub(crate) fn sign_on_offer(&self) -> Option<SignOnOffer> {
        let OidcSettings { name, only, .. } = self.sign_on()?;
        Some(SignOnOffer { name: name.clone(), url: self.public_address(BEGIN), only: *only })
    }

    /// Returns the redirect URI, which must be registered at the provider.
    pub fn sign_on_redirect_uri(&self) -> String {
        self.public_address(CALLBACK)
    }

    fn public_address(&self, path: &str) -> String {
        format!("{}{path}", self.settings().public_url.trim_end_matches('/'))
    }

    /// Begins a sign-in.
    pub async fn begin_sign_on(&self) -> Result<SignOnStart, SignOnRefusal> {
        let settings = self.sign_on().ok_or(SignOnRefusal::Unreachable)?;
        let provider = self.provider_document(settings).await?;
        let flow = Flow::begin(self.entropy(), self.now());
        let location = flow.authorization_url(&provider, &settings.client_id, &self.sign_on_redirect_uri());
        let text = serde_json::to_string(&flow).unwrap_or_default();
        Ok(SignOnStart { location, cookie: self.vault().seal(PLACE, &text, self.entropy()).into() })
    }

    /// Completes a sign-in and returns the person. Contacts the provider only if the callback's query matches the
    /// cookie.
    pub async fn finish_sign_on(
        &self,
        cookie: Option<&str>,
        query: &str,
        client: IpAddr,
    ) -> Result<Person, SignOnRefusal> {
        let settings = self.sign_on().ok_or(SignOnRefusal::Unreachable)?;
        let answer = ProviderAnswer::parse(query).ok_or(SignOnRefusal::Provider)?;
        let state = answer.state.as_deref().unwrap_or_default();
        let flow = cookie.and_then(|cookie| self.opened_flow(cookie));
        let flow = flow.filter(|flow| flow.is_answered_by(state, self.now())).ok_or(SignOnRefusal::Expired)?;
        if let Some(error) = &answer.error {
            tracing::warn!(error = error_word(error), "the single sign-on provider refused a sign-in");
            let is_denied = error == "access_denied";
            return Err(if is_denied { SignOnRefusal::Cancelled } else { SignOnRefusal::Provider });
        }
        let code = answer.code.filter(|code| !code.is_empty()).ok_or(SignOnRefusal::Provider)?;
        let share = Share { owner: Owner::Network(CallerNetwork::of(client)), cap: Cap::All };
        let _turn = self.sign_on_provider().turns.acquire(vec![share], 1).await.map_err(|_| SignOnRefusal::Busy)?;
        let document = self.provider_document(settings).await?;
        let names_issuer = answer.issuer.is_some() || document.answer_names_issuer;
        if names_issuer && answer.issuer.as_deref() != Some(settings.issuer.as_str()) {
            tracing::warn!("the answer to a single sign-on is that of another issuer");
            return Err(SignOnRefusal::Token);
        }
        let tokens = self.tokens_for(settings, &document, &code, &flow.verifier).await?;
        let refuse = |fault: TokenFault| {
            tracing::warn!(%fault, "an ID token of the single sign-on provider is refused");
            SignOnRefusal::Token
        };
        let token = CompactJws::parse(&tokens.id_token).map_err(refuse)?;
        let keys = self.provider_keys(settings, &token).await?;
        let expected = Expected {
            issuer: &settings.issuer,
            client_id: &settings.client_id,
            nonce: &flow.nonce,
            groups_claim: &settings.groups_claim,
            now: self.now(),
        };
        let person = verify(token, &keys, &expected).map_err(refuse)?;
        if !person.is_incomplete(!settings.group_roles.is_empty()) {
            return Ok(person);
        }
        match self.told_of_person(&document, &tokens).await? {
            Some(answer) => person.completed_by(&answer, &settings.groups_claim).map_err(refuse),
            None => Ok(person),
        }
    }

    fn opened_flow(&self, cookie: &str) -> Option<Flow> {
        let text = self.vault().open(PLACE, cookie).ok()?;
        serde_json::from_str(&text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_names_everything_once() {
        let answer =
            ProviderAnswer::parse("code=a%20b&state=s&session_state=1&session_state=2&iss=https%3A%2F%2Fid").unwrap();
        assert_eq!((answer.code.as_deref(), answer.state.as_deref()), (Some("a b"), Some("s")));
        assert_eq!((answer.issuer.as_deref(), answer.error), (Some("https://id"), None));
        for query in ["state=s&state=s", "code=a&state=s&code=b", "error=a&error=b"] {
            assert!(ProviderAnswer::parse(query).is_none(), "{query}");
        }
    }
}
