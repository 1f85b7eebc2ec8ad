//! Discovery document of a provider, which lists its endpoints (OpenID Connect Discovery 1.0).

use serde::Deserialize;

use super::jws::JwsAlgorithm;
use crate::domain::security::web_url::is_absolute;

/// Maximum length of a document, in octets.
pub const MAX_DOCUMENT_BYTES: usize = 128 << 10;

/// Path of an issuer's document, below the issuer (section 4).
const WELL_KNOWN: &str = "/.well-known/openid-configuration";

/// Way in which a client with a secret authenticates to the provider (OpenID Connect Core section 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientAuthentication {
    /// In the header `Authorization`.
    Basic,
    /// In the form.
    Post,
}

/// Parts of a provider's document that a sign-in needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discovery {
    /// Address that browsers are sent to for signing in.
    pub authorization_endpoint: String,
    /// Address that exchanges a code for tokens.
    pub token_endpoint: String,
    /// Address of the keys.
    pub jwks_uri: String,
    /// Address of the UserInfo endpoint, which knows more about a person than a token.
    pub userinfo_endpoint: Option<String>,
    /// Way in which a client with a secret authenticates.
    pub authentication: ClientAuthentication,
    /// True if the answer to a browser always names the issuer (RFC 9207).
    pub answer_names_issuer: bool,
}

/// Reason why a document cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiscoveryFault {
    /// Not a document of a provider.
    #[error(
        "the answer is not the discovery document of an OpenID provider; compare --oidc-issuer with the provider's settings"
    )]
    Malformed,
    /// It is the document of another issuer.
    #[error("the document says that its issuer is {0}; --oidc-issuer must be exactly that")]
    Issuer(String),
    /// An address in it is no web address, or not one with TLS.
    #[error("the {0} of the document is not an https:// address")]
    Endpoint(&'static str),
    /// The provider signs by no algorithm that is accepted.
    #[error("the provider signs ID tokens with none of RS256, ES256, EdDSA; choose one of them at the provider")]
    Algorithms,
    /// The provider accepts the client's secret in no way that this server supports.
    #[error(
        "the provider accepts client secrets by neither client_secret_basic nor client_secret_post; allow one of them there"
    )]
    Authentication,
}

#[derive(Deserialize)]
struct Document {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    #[serde(default)]
    userinfo_endpoint: Option<String>,
    #[serde(default)]
    id_token_signing_alg_values_supported: Option<Vec<String>>,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: Option<bool>,
}

/// Returns the address of an issuer's document.
pub fn document_url(issuer: &str) -> String {
    format!("{}{WELL_KNOWN}", issuer.strip_suffix('/').unwrap_or(issuer))
}

/// True for a URL that can be an issuer: of a web server, without query and fragment.
pub fn is_issuer(url: &str) -> bool {
    is_absolute(url, &["https", "http"]) && !url.contains(['?', '#', '@'])
}

impl Discovery {
    /// Parses the document of an issuer. `has_secret` is true if the client has a secret to authenticate with.
    pub fn parse(body: &[u8], issuer: &str, has_secret: bool) -> Result<Self, DiscoveryFault> {
        let document: Document = match serde_json::from_slice(body) {
            Ok(document) if body.len() <= MAX_DOCUMENT_BYTES => document,
            _ => return Err(DiscoveryFault::Malformed),
        };
        if document.issuer != issuer {
            return Err(DiscoveryFault::Issuer(document.issuer.chars().take(super::MAX_ISSUER).collect()));
        }
        let schemes: &[&str] = if issuer.starts_with("http://") { &["https", "http"] } else { &["https"] };
        let needed = [
            ("authorization_endpoint", &document.authorization_endpoint),
            ("token_endpoint", &document.token_endpoint),
            ("jwks_uri", &document.jwks_uri),
        ];
        let userinfo = document.userinfo_endpoint.as_ref().map(|url| ("userinfo_endpoint", url));
        for (name, url) in needed.into_iter().chain(userinfo) {
            if !is_absolute(url, schemes) || url.contains('#') {
                return Err(DiscoveryFault::Endpoint(name));
            }
        }
        let algorithms = document.id_token_signing_alg_values_supported;
        if algorithms.is_some_and(|names| !names.iter().any(|name| JwsAlgorithm::named(name).is_some())) {
            return Err(DiscoveryFault::Algorithms);
        }
        let authentication = authentication(document.token_endpoint_auth_methods_supported.as_deref());
        Ok(Self {
            authorization_endpoint: document.authorization_endpoint,
            token_endpoint: document.token_endpoint,
            jwks_uri: document.jwks_uri,
            userinfo_endpoint: document.userinfo_endpoint,
            authentication: match authentication {
                Some(way) => way,
                None if has_secret => return Err(DiscoveryFault::Authentication),
                None => ClientAuthentication::Basic,
            },
            answer_names_issuer: document.authorization_response_iss_parameter_supported.unwrap_or(false),
        })
    }
}

/// Returns the way in which a secret is sent. A document without a list means the first (section 3).
fn authentication(methods: Option<&[String]>) -> Option<ClientAuthentication> {
    let Some(methods) = methods else { return Some(ClientAuthentication::Basic) };
    let takes = |method: &str| methods.iter().any(|one| one == method);
    if takes("client_secret_basic") {
        Some(ClientAuthentication::Basic)
    } else {
        takes("client_secret_post").then_some(ClientAuthentication::Post)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn parse(issuer: &str, changes: Value) -> Result<Discovery, DiscoveryFault> {
        let mut document = json!({
            "issuer": issuer,
            "authorization_endpoint": "https://id.test/authorize?tenant=1",
            "token_endpoint": "https://id.test/token",
            "jwks_uri": "https://keys.test/jwks",
        });
        document.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        Discovery::parse(document.to_string().as_bytes(), issuer, true)
    }

    #[test]
    fn a_document_is_taken_from_its_own_issuer() {
        let issuer = "https://id.test/realms/acme";
        let found = parse(issuer, json!({})).unwrap();
        assert_eq!(found.token_endpoint, "https://id.test/token");
        assert_eq!((found.authentication, found.answer_names_issuer), (ClientAuthentication::Basic, false));
        for other in ["https://id.test/realms/acme/", "https://id.test", "https://ID.test/realms/acme", ""] {
            assert_eq!(parse(issuer, json!({"issuer": other})), Err(DiscoveryFault::Issuer(other.to_owned())));
        }
        for body in ["", "[]", "{}", "<html>"] {
            assert_eq!(Discovery::parse(body.as_bytes(), issuer, true), Err(DiscoveryFault::Malformed), "{body}");
        }
    }

    #[test]
    fn addresses_need_tls_unless_the_issuer_has_none_either() {
        for url in ["http://id.test/token", "javascript:alert(1)", "/token", "https:///x", "https://id.test/#x"] {
            let changes = json!({"token_endpoint": url});
            assert_eq!(parse("https://id.test", changes), Err(DiscoveryFault::Endpoint("token_endpoint")), "{url}");
        }
        assert!(parse("http://127.0.0.1:5000", json!({"token_endpoint": "http://127.0.0.1:5000/token"})).is_ok());
    }

    #[test]
    fn what_the_provider_can_do_is_compared() {
        let issuer = "https://id.test";
        let signing = |names: Value| parse(issuer, json!({"id_token_signing_alg_values_supported": names})).map(drop);
        assert_eq!(signing(json!(["HS256", "none"])), Err(DiscoveryFault::Algorithms));
        assert_eq!(signing(json!(["HS256", "ES256"])), Ok(()));
        let proving = |names: Value| {
            parse(issuer, json!({"token_endpoint_auth_methods_supported": names})).map(|found| found.authentication)
        };
        assert_eq!(proving(json!(["client_secret_post"])), Ok(ClientAuthentication::Post));
        assert_eq!(proving(json!(["client_secret_post", "client_secret_basic"])), Ok(ClientAuthentication::Basic));
        assert_eq!(proving(json!(["private_key_jwt"])), Err(DiscoveryFault::Authentication));
    }

    #[test]
    fn the_document_of_an_issuer_is_below_it() {
        for issuer in ["https://id.test/o/app", "https://id.test/o/app/"] {
            assert_eq!(document_url(issuer), "https://id.test/o/app/.well-known/openid-configuration");
        }
        assert!(is_issuer("https://id.test") && is_issuer("http://127.0.0.1:5000/x"));
        for url in ["id.test", "https://id.test/?a", "https://id.test/#a", "https://u@id.test", "ftp://id.test", ""] {
            assert!(!is_issuer(url), "{url}");
        }
    }
}
