//! A single sign-on provider in memory: it signs ID tokens, or forges them as an attacker would.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::header::AUTHORIZATION;
use messaging_core::domain::security::digest::Digest;
use messaging_core::domain::security::oidc::OidcSettings;
use messaging_core::ports::clock::Clock;
use messaging_core::ports::fetch::{Fetch, FetchError, FetchRequest, Fetched, UrlFault};
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, RSA_PKCS1_SHA256, RsaKeyPair};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::{Map, Value, json};

use super::fakes::keys::{P256, P256_PUBLIC, RSA, RSA_MODULUS};
use super::fetch::fetched;

const ISSUER: &str = "https://id.example.com/realms/acme";
const CLIENT_ID: &str = "messaging app";
const SECRET: &str = "a secret: with+marks%";

/// Signature of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenSigning {
    /// Signed by the current key.
    Right,
    /// Unsigned: `alg` is `none`.
    None,
    /// Signed by HS256, with the public key as the secret.
    HmacOfPublicKey,
    /// Signed by the current key, but with another key id.
    UnknownKey,
    /// Signed by the current key, and changed afterwards.
    Changed,
}

/// A provider in place of the network. Requests to other addresses go to the client that it was made with.
#[derive(Debug)]
pub struct MemoryOidcProvider {
    clock: Arc<dyn Clock>,
    others: Arc<dyn Fetch>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Claims of the person who signs in, over those that every token has; null removes one.
    claims: Map<String, Value>,
    signing: TokenSigning,
    is_down: bool,
    /// Subject of the UserInfo endpoint; if set, tokens have no other claims of the person than `sub`.
    told_subject: Option<String>,
    /// Answer of the UserInfo endpoint.
    told: Value,
    /// True if the current key is the second one, on P-256.
    is_rotated: bool,
    issuer: String,
    codes: HashMap<String, Code>,
    next: u32,
    asked: HashMap<String, usize>,
}

#[derive(Debug)]
struct Code {
    nonce: String,
    challenge: String,
    redirect_uri: String,
}

impl MemoryOidcProvider {
    /// Creates a provider whose tokens are dated by a clock. Requests to other addresses go to `others`.
    pub fn new(clock: Arc<dyn Clock>, others: Arc<dyn Fetch>) -> Self {
        let state = State {
            claims: Map::new(),
            signing: TokenSigning::Right,
            is_down: false,
            told_subject: None,
            told: Value::Null,
            is_rotated: false,
            issuer: ISSUER.to_owned(),
            codes: HashMap::new(),
            next: 0,
            asked: HashMap::new(),
        };
        Self { clock, others, state: Mutex::new(state) }
    }

    /// Returns the settings of a server with sign-in through this provider.
    pub fn settings() -> OidcSettings {
        OidcSettings {
            issuer: ISSUER.to_owned(),
            client_id: CLIENT_ID.to_owned(),
            client_secret: Some(SECRET.to_owned().into()),
            name: "Acme".to_owned(),
            groups_claim: "groups".to_owned(),
            group_roles: Vec::new(),
            only: false,
        }
    }

    /// Sets the claims of the person who signs in from now on, over those that every token has, such as `sub`. Null
    /// removes one.
    ///
    /// # Panics
    ///
    /// If that is no object.
    pub fn person(&self, claims: Value) {
        let Value::Object(claims) = claims else { panic!("claims are an object") };
        self.lock().claims = claims;
    }

    /// Signs tokens in this way from now on.
    pub fn signing(&self, signing: TokenSigning) {
        self.lock().signing = signing;
    }

    /// Stops answering, or answers again.
    pub fn is_down(&self, is_down: bool) {
        self.lock().is_down = is_down;
    }

    /// Signs with another key from now on, and publishes only that one.
    pub fn rotate(&self) {
        let mut state = self.lock();
        state.is_rotated = !state.is_rotated;
    }

    /// Leaves only `sub` of the person's claims in tokens from now on; the UserInfo endpoint has the others, for this
    /// subject.
    pub fn tells_of(&self, subject: &str) {
        self.lock().told_subject = Some(subject.to_owned());
    }

    /// Names this issuer in its document from now on.
    pub fn names_issuer(&self, issuer: &str) {
        issuer.clone_into(&mut self.lock().issuer);
    }

    /// Returns the number of requests whose path ends like this.
    pub fn asked(&self, path: &str) -> usize {
        self.lock().asked.iter().filter(|(asked, _)| asked.ends_with(path)).map(|(_, count)| count).sum()
    }

    /// Signs in the person who was sent to `location`; returns the query with which the browser comes back.
    ///
    /// # Panics
    ///
    /// If the location asks for something else than a code with PKCE, or is that of another provider.
    pub fn authorize(&self, location: &str) -> String {
        let url = url::Url::parse(location).expect("a location is a URL");
        assert!(location.starts_with(&format!("{ISSUER}/authorize?")), "{location}");
        let sent: HashMap<_, _> = url.query_pairs().into_owned().collect();
        let of = |name: &str| sent.get(name).cloned().unwrap_or_default();
        assert_eq!((of("response_type").as_str(), of("client_id").as_str()), ("code", CLIENT_ID));
        assert_eq!((of("code_challenge_method").as_str(), of("scope").as_str()), ("S256", "openid email profile"));
        let mut state = self.lock();
        state.next += 1;
        let text = format!("code-{}", state.next);
        let code = Code { nonce: of("nonce"), challenge: of("code_challenge"), redirect_uri: of("redirect_uri") };
        state.codes.insert(text.clone(), code);
        url::form_urlencoded::Serializer::new(String::new())
            .append_pair("code", &text)
            .append_pair("state", &of("state"))
            .finish()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, request: &FetchRequest) -> Result<Fetched, FetchError> {
        let mut state = self.lock();
        let path = request.url.strip_prefix(ISSUER).unwrap_or_default().to_owned();
        *state.asked.entry(path.clone()).or_default() += 1;
        if state.is_down {
            return Err(FetchError::Connection);
        }
        let (status, body) = match path.as_str() {
            "/.well-known/openid-configuration" => (200, document(&state.issuer)),
            "/keys" => (200, json!({"keys": [state.public_key()]})),
            "/token" => match self.token(&mut state, request) {
                Ok(token) => (200, json!({"access_token": "opaque", "token_type": "Bearer", "id_token": token})),
                Err(error) => (400, json!({"error": error, "error_description": "no"})),
            },
            "/userinfo" if request.headers.get(AUTHORIZATION).is_some_and(|sent| sent == "Bearer opaque") => {
                (200, state.told.clone())
            }
            _ => (404, json!({})),
        };
        Ok(fetched(status, &[("content-type", "application/json")], &body.to_string()))
    }

    /// Returns the token for a code, which works once, for the client, its address and the verifier.
    fn token(&self, state: &mut State, request: &FetchRequest) -> Result<String, &'static str> {
        let encoded = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let credentials = STANDARD.encode(format!("{}:{}", encoded(CLIENT_ID), encoded(SECRET)));
        if request.headers.get(AUTHORIZATION).is_none_or(|sent| sent != format!("Basic {credentials}").as_str()) {
            return Err("invalid_client");
        }
        let form: HashMap<_, _> = url::form_urlencoded::parse(&request.body).into_owned().collect();
        let of = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
        let code = state.codes.remove(of("code")).ok_or("invalid_grant")?;
        let challenge = URL_SAFE_NO_PAD.encode(Digest::of(of("code_verifier")).as_bytes());
        if of("grant_type") != "authorization_code"
            || of("redirect_uri") != code.redirect_uri
            || challenge != code.challenge
        {
            return Err("invalid_grant");
        }
        let now = self.clock.now().as_seconds();
        let mut claims = json!({
            "iss": ISSUER, "aud": CLIENT_ID, "sub": "person-1", "iat": now, "exp": now + 300, "nonce": code.nonce,
        });
        let mut told = json!({"sub": state.told_subject});
        for (name, value) in &state.claims {
            let is_told = state.told_subject.is_some() && name != "sub";
            let target = if is_told { &mut told } else { &mut claims };
            target[name] = value.clone();
        }
        for part in [&mut claims, &mut told] {
            if let Value::Object(part) = part {
                part.retain(|_, value| !value.is_null());
            }
        }
        state.told = if state.told_subject.is_some() { told } else { claims.clone() };
        Ok(state.signed(&claims))
    }
}

impl State {
    fn key_id(&self) -> &'static str {
        if self.is_rotated { "second" } else { "first" }
    }

    fn public_key(&self) -> Value {
        if self.is_rotated {
            let point = URL_SAFE_NO_PAD.decode(P256_PUBLIC).expect("base64url");
            let (x, y) = (URL_SAFE_NO_PAD.encode(&point[1..33]), URL_SAFE_NO_PAD.encode(&point[33..]));
            json!({"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.key_id(), "x": x, "y": y})
        } else {
            json!({"kty": "RSA", "use": "sig", "alg": "RS256", "kid": self.key_id(), "n": RSA_MODULUS, "e": "AQAB"})
        }
    }

    fn signed(&self, claims: &Value) -> String {
        let algorithm = match self.signing {
            TokenSigning::None => "none",
            TokenSigning::HmacOfPublicKey => "HS256",
            _ if self.is_rotated => "ES256",
            _ => "RS256",
        };
        let key_id = if self.signing == TokenSigning::UnknownKey { "unknown" } else { self.key_id() };
        let header = json!({"alg": algorithm, "typ": "JWT", "kid": key_id});
        let text = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
        let signed = format!("{}.{}", text(&header), text(claims));
        let signature = match self.signing {
            TokenSigning::None => Vec::new(),
            TokenSigning::HmacOfPublicKey => {
                let key = hmac::Key::new(hmac::HMAC_SHA256, self.public_key().to_string().as_bytes());
                hmac::sign(&key, signed.as_bytes()).as_ref().to_vec()
            }
            _ if self.is_rotated => by_p256(signed.as_bytes()),
            _ => by_rsa(signed.as_bytes()),
        };
        let mut payload = claims.clone();
        if self.signing == TokenSigning::Changed {
            payload["sub"] = "somebody else".into();
        }
        format!("{}.{}.{}", text(&header), text(&payload), URL_SAFE_NO_PAD.encode(signature))
    }
}

fn document(issuer: &str) -> Value {
    json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{ISSUER}/authorize"),
        "token_endpoint": format!("{ISSUER}/token"),
        "jwks_uri": format!("{ISSUER}/keys"),
        "userinfo_endpoint": format!("{ISSUER}/userinfo"),
        "id_token_signing_alg_values_supported": ["RS256", "ES256"],
    })
}

fn der(pem: &str) -> PrivatePkcs8KeyDer<'static> {
    PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).expect("a published key")
}

fn by_rsa(octets: &[u8]) -> Vec<u8> {
    let key = RsaKeyPair::from_pkcs8(der(RSA).secret_pkcs8_der()).expect("a published key");
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &random(), octets, &mut signature).expect("a key of 2048 bits signs SHA-256");
    signature
}

fn by_p256(octets: &[u8]) -> Vec<u8> {
    let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der(P256).secret_pkcs8_der(), &random());
    let signature = key.expect("a published key").sign(&random(), octets);
    signature.expect("the operating system provides randomness").as_ref().to_vec()
}

#[expect(clippy::disallowed_methods, reason = "ring accepts its own generator alone")]
fn random() -> SystemRandom {
    SystemRandom::new()
}

#[async_trait]
impl Fetch for MemoryOidcProvider {
    fn check(&self, url: &str) -> Result<(), UrlFault> {
        self.others.check(url)
    }

    async fn fetch(&self, request: FetchRequest) -> Result<Fetched, FetchError> {
        if request.url.starts_with(ISSUER) { self.answer(&request) } else { self.others.fetch(request).await }
    }
}
