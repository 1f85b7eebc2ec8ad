//! State of a single sign-on that a browser carries, and the address that it is sent to.
//!
//! The state proves that the answer belongs to the browser that began (OpenID Connect Core section 3.1.2.1), the nonce
//! that the token belongs to the sign-in, and the verifier that the code does (RFC 7636). All three are in one sealed
//! cookie, so that no node has to remember anything.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;

use super::discovery::Discovery;
use crate::domain::security::api_key::random_text;
use crate::domain::security::digest::Digest;
use crate::entropy::Entropy;
use crate::time::Timestamp;

/// Longest time of a sign-in, and of waiting for a password after it.
pub const LIFETIME: Duration = Duration::from_mins(10);

/// Scopes of the request. Groups come with claims that the provider is configured to add.
const SCOPES: &str = "openid email profile";

const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
/// Random characters of each of the three: 256 bits.
const LENGTH: usize = 43;

/// A sign-in that has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    state: String,
    /// The nonce, which the ID token repeats.
    pub nonce: String,
    /// The code verifier, which is sent to the provider with the code.
    pub verifier: String,
    expires_at: Timestamp,
}

impl Flow {
    /// Begins a sign-in.
    pub fn begin(entropy: &dyn Entropy, now: Timestamp) -> Self {
        let random = || random_text(entropy, ALPHABET, LENGTH);
        Self { state: random(), nonce: random(), verifier: random(), expires_at: now + LIFETIME }
    }

    /// True for the state of this sign-in, until it expires.
    pub fn is_answered_by(&self, state: &str, now: Timestamp) -> bool {
        let is_same: bool = self.state.as_bytes().ct_eq(state.as_bytes()).into();
        is_same && now < self.expires_at
    }

    /// Returns the address at which the person signs in, and from which they return to `redirect_uri`.
    pub fn authorization_url(&self, provider: &Discovery, client_id: &str, redirect_uri: &str) -> String {
        let endpoint = &provider.authorization_endpoint;
        let joint = if endpoint.contains('?') { '&' } else { '?' };
        let query = form_urlencoded::Serializer::new(String::new())
            .append_pair("response_type", "code")
            .append_pair("client_id", client_id)
            .append_pair("redirect_uri", redirect_uri)
            .append_pair("scope", SCOPES)
            .append_pair("state", &self.state)
            .append_pair("nonce", &self.nonce)
            .append_pair("code_challenge", &URL_SAFE_NO_PAD.encode(Digest::of(&self.verifier).as_bytes()))
            .append_pair("code_challenge_method", "S256")
            .finish();
        format!("{endpoint}{joint}{query}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::discovery::ClientAuthentication;
    use super::*;
    use crate::entropy::SeededEntropy;

    const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);

    #[test]
    fn a_sign_in_is_answered_by_its_own_state_for_ten_minutes() {
        let entropy = SeededEntropy::new(1);
        let (one, other) = (Flow::begin(&entropy, START), Flow::begin(&entropy, START));
        let last = START + LIFETIME - Duration::from_millis(1);
        assert!(one.is_answered_by(&one.state, START) && one.is_answered_by(&one.state, last));
        assert!(!one.is_answered_by(&one.state, START + LIFETIME));
        assert!(!one.is_answered_by(&other.state, START) && !one.is_answered_by("", START));
        let texts = [&one.state, &one.nonce, &one.verifier, &other.state, &other.nonce, &other.verifier];
        assert!(texts.iter().all(|text| text.len() == LENGTH));
        assert_eq!(texts.iter().collect::<std::collections::BTreeSet<_>>().len(), 6);
    }

    #[test]
    fn the_address_has_everything_but_the_verifier() {
        let flow = Flow {
            state: "s".to_owned(),
            nonce: "n".to_owned(),
            // RFC 7636 appendix B.
            verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned(),
            expires_at: START,
        };
        let provider = |endpoint: &str| Discovery {
            authorization_endpoint: endpoint.to_owned(),
            token_endpoint: String::new(),
            jwks_uri: String::new(),
            userinfo_endpoint: None,
            authentication: ClientAuthentication::Basic,
            answer_names_issuer: false,
        };
        let url = flow.authorization_url(&provider("https://id.test/a"), "a b", "https://m.test/v1/auth/oidc/callback");
        assert_eq!(
            url,
            "https://id.test/a?response_type=code&client_id=a+b\
             &redirect_uri=https%3A%2F%2Fm.test%2Fv1%2Fauth%2Foidc%2Fcallback&scope=openid+email+profile&state=s&nonce=n\
             &code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256"
        );
        assert!(
            flow.authorization_url(&provider("https://id.test/a?p=1"), "", "").contains("?p=1&response_type=code&")
        );
    }
}
