//! Verification of an ID token (OpenID Connect Core section 3.1.3.7), and the person that it describes.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

use super::jws::CompactJws;
use super::keys::KeySet;
use super::token_fault::TokenFault;
use crate::domain::security::user_email::UserEmail;
use crate::time::Timestamp;

/// Maximum number of seconds by which the clocks of the provider and of this server may differ.
const SKEW_SECONDS: i64 = 60;
/// Maximum length of a subject, in octets (OpenID Connect Core section 2).
const MAX_SUBJECT: usize = 255;
/// Maximum number of characters of a person's name that are kept.
const MAX_NAME: usize = 200;
/// Maximum number of groups of a person that are read.
const MAX_GROUPS: usize = 5000;

/// Values that an ID token is verified against, and the name of the claim that lists groups.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    /// The issuer.
    pub issuer: &'a str,
    /// Client id that the token must be issued to.
    pub client_id: &'a str,
    /// Nonce of the sign-in.
    pub nonce: &'a str,
    /// Name of the claim that lists groups.
    pub groups_claim: &'a str,
    /// Current time.
    pub now: Timestamp,
}

/// A person as the provider knows them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Person {
    /// Identifier of the person at the issuer, which never changes (claim `sub`).
    pub subject: String,
    /// The email; `None` if the token has none or one that is invalid here.
    pub email: Option<UserEmail>,
    /// True if the provider has verified the email.
    pub email_verified: bool,
    /// A display name.
    pub name: Option<String>,
    /// Groups of the person.
    pub groups: Vec<String>,
}

impl Person {
    /// Returns true if the email is missing, or groups are wanted and there are none: the UserInfo endpoint may have
    /// them.
    pub const fn is_incomplete(&self, wants_groups: bool) -> bool {
        self.email.is_none() || wants_groups && self.groups.is_empty()
    }

    /// Returns the person with the additional data of the UserInfo endpoint (OpenID Connect Core section 5.3.2). An
    /// answer about another subject is refused.
    pub fn completed_by(self, answer: &[u8], groups_claim: &str) -> Result<Self, TokenFault> {
        let claims: Map<String, Value> = serde_json::from_slice(answer).map_err(|_| TokenFault::Malformed)?;
        if claims.get("sub").and_then(Value::as_str) != Some(self.subject.as_str()) {
            return Err(TokenFault::Subject);
        }
        let told = person(self.subject, &claims, groups_claim);
        // The email and its verified flag are taken from the same source.
        let (email, email_verified) = match self.email {
            Some(email) => (Some(email), self.email_verified),
            None => (told.email, told.email_verified),
        };
        let groups = if self.groups.is_empty() { told.groups } else { self.groups };
        Ok(Self { subject: told.subject, email, email_verified, name: self.name.or(told.name), groups })
    }
}

/// Claims that decide whether a token is valid. A duplicate claim is an error.
#[derive(Deserialize)]
struct Claims {
    iss: String,
    sub: String,
    aud: Audience,
    #[serde(default)]
    azp: Option<String>,
    exp: Number,
    iat: Number,
    #[serde(default)]
    nbf: Option<Number>,
    #[serde(default)]
    nonce: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

/// Verifies a token with the provider's keys and returns the person that it describes.
pub fn verify(token: CompactJws<'_>, keys: &KeySet, expected: &Expected<'_>) -> Result<Person, TokenFault> {
    let payload = keys.verified(token)?;
    let claims: Claims = serde_json::from_slice(&payload).map_err(|_| TokenFault::Malformed)?;
    check(&claims, expected)?;
    let is_subject = (1..=MAX_SUBJECT).contains(&claims.sub.len()) && !claims.sub.chars().any(char::is_control);
    let all: Map<String, Value> = serde_json::from_slice(&payload).map_err(|_| TokenFault::Malformed)?;
    if !is_subject {
        return Err(TokenFault::Malformed);
    }
    Ok(person(claims.sub, &all, expected.groups_claim))
}

fn check(claims: &Claims, expected: &Expected<'_>) -> Result<(), TokenFault> {
    if claims.iss != expected.issuer {
        return Err(TokenFault::Issuer);
    }
    // A token with several audiences must name its authorized party (`azp`).
    let (is_for_us, needs_party) = match &claims.aud {
        Audience::One(one) => (one == expected.client_id, false),
        Audience::Many(many) => (many.iter().any(|one| one == expected.client_id), many.len() > 1),
    };
    let is_party = claims.azp.as_ref().map_or(!needs_party, |party| party == expected.client_id);
    if !is_for_us || !is_party {
        return Err(TokenFault::Audience);
    }
    let now = expected.now.as_seconds();
    if now >= seconds(&claims.exp)?.saturating_add(SKEW_SECONDS) {
        return Err(TokenFault::Expired);
    }
    for begin in [Some(&claims.iat), claims.nbf.as_ref()].into_iter().flatten() {
        if seconds(begin)? > now.saturating_add(SKEW_SECONDS) {
            return Err(TokenFault::NotYetValid);
        }
    }
    if claims.nonce.as_deref() != Some(expected.nonce) {
        return Err(TokenFault::Nonce);
    }
    Ok(())
}

/// Parses a `NumericDate` into whole seconds (RFC 7519 section 2).
fn seconds(date: &Number) -> Result<i64, TokenFault> {
    let text = date.to_string();
    if text.contains(['e', 'E']) {
        return Err(TokenFault::Malformed);
    }
    text.split('.').next().and_then(|whole| whole.parse().ok()).ok_or(TokenFault::Malformed)
}

fn person(subject: String, claims: &Map<String, Value>, groups_claim: &str) -> Person {
    let text = |name: &str| claims.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    Person {
        subject,
        email: text("email").and_then(|email| email.parse().ok()),
        email_verified: is_verified(claims),
        name: text("name").map(|name| name.chars().filter(|c| !c.is_control()).take(MAX_NAME).collect()),
        groups: groups(claims, groups_claim),
    }
}

/// Returns true if the email is verified. Entra ID sends `xms_edov` in place of `email_verified`: true if the domain of
/// the email belongs to the tenant or the email was verified. It counts only if `email_verified` is missing.
fn is_verified(claims: &Map<String, Value>) -> bool {
    match claims.get("email_verified").or_else(|| claims.get("xms_edov")) {
        Some(Value::Bool(verified)) => *verified,
        Some(Value::String(text)) => text == "true" || text == "1",
        Some(Value::Number(number)) => number.as_u64() == Some(1),
        _ => false,
    }
}

/// Returns the groups in a claim, an array of strings or one string. A name with dots that is no claim is a path into
/// objects, such as `realm_access.roles`.
fn groups(claims: &Map<String, Value>, name: &str) -> Vec<String> {
    let nested = || {
        let (first, rest) = name.split_once('.')?;
        rest.split('.').try_fold(claims.get(first)?, |value, part| value.get(part))
    };
    match claims.get(name).or_else(nested) {
        Some(Value::Array(list)) => {
            list.iter().filter_map(Value::as_str).take(MAX_GROUPS).map(ToOwned::to_owned).collect()
        }
        Some(Value::String(one)) => vec![one.clone()],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn claims(changes: Value) -> Value {
        let mut claims = json!({
            "iss": "https://id.test", "sub": "u-1", "aud": "messaging", "exp": NOW + 300, "iat": NOW, "nonce": "n-1",
        });
        for (name, value) in changes.as_object().unwrap() {
            match value {
                Value::Null => claims.as_object_mut().unwrap().remove(name),
                value => claims.as_object_mut().unwrap().insert(name.clone(), value.clone()),
            };
        }
        claims
    }

    #[track_caller]
    fn check_claims(changes: Value, expected: Result<(), TokenFault>) {
        let expectation = Expected {
            issuer: "https://id.test",
            client_id: "messaging",
            nonce: "n-1",
            groups_claim: "groups",
            now: Timestamp::from_millis(NOW * 1000 + 999),
        };
        let claims = claims(changes.clone());
        let parsed = serde_json::from_value::<Claims>(claims).map_err(|_| TokenFault::Malformed);
        assert_eq!(parsed.and_then(|claims| check(&claims, &expectation)), expected, "{changes}");
    }

    #[test]
    fn a_token_counts_for_its_issuer_client_and_sign_in() {
        check_claims(json!({}), Ok(()));
        check_claims(json!({"iss": "https://id.test/"}), Err(TokenFault::Issuer));
        check_claims(json!({"iss": "https://evil.test"}), Err(TokenFault::Issuer));
        check_claims(json!({"iss": null}), Err(TokenFault::Malformed));
        check_claims(json!({"aud": "other"}), Err(TokenFault::Audience));
        check_claims(json!({"aud": []}), Err(TokenFault::Audience));
        check_claims(json!({"aud": ["messaging"]}), Ok(()));
        check_claims(json!({"aud": ["other", "messaging"]}), Err(TokenFault::Audience));
        check_claims(json!({"aud": ["other", "messaging"], "azp": "other"}), Err(TokenFault::Audience));
        check_claims(json!({"aud": ["other", "messaging"], "azp": "messaging"}), Ok(()));
        check_claims(json!({"azp": "other"}), Err(TokenFault::Audience));
        check_claims(json!({"aud": null}), Err(TokenFault::Malformed));
        check_claims(json!({"nonce": "n-2"}), Err(TokenFault::Nonce));
        check_claims(json!({"nonce": null}), Err(TokenFault::Nonce));
        check_claims(json!({"nonce": 1}), Err(TokenFault::Malformed));
        check_claims(json!({"sub": null}), Err(TokenFault::Malformed));
    }

    #[test]
    fn times_may_be_off_by_a_minute() {
        check_claims(json!({"exp": NOW - 59}), Ok(()));
        check_claims(json!({"exp": NOW - 60}), Err(TokenFault::Expired));
        check_claims(json!({"exp": NOW - 59, "iat": NOW - 400}), Ok(()));
        check_claims(json!({"exp": null}), Err(TokenFault::Malformed));
        check_claims(json!({"exp": "soon"}), Err(TokenFault::Malformed));
        check_claims(json!({"exp": 1.8e300}), Err(TokenFault::Malformed));
        check_claims(json!({"exp": 1_800_000_300.5}), Ok(()));
        check_claims(json!({"iat": NOW + 60}), Ok(()));
        check_claims(json!({"iat": NOW + 61}), Err(TokenFault::NotYetValid));
        check_claims(json!({"iat": null}), Err(TokenFault::Malformed));
        check_claims(json!({"nbf": NOW + 60}), Ok(()));
        check_claims(json!({"nbf": NOW + 61}), Err(TokenFault::NotYetValid));
    }

    #[test]
    fn an_email_counts_as_verified_where_the_provider_says_so() {
        for (claim, expected) in [
            (json!({}), false),
            (json!({"email_verified": true}), true),
            (json!({"email_verified": "true"}), true),
            (json!({"email_verified": false}), false),
            (json!({"email_verified": "false"}), false),
            (json!({"email_verified": null}), false),
            (json!({"xms_edov": true}), true),
            (json!({"xms_edov": 1}), true),
            (json!({"xms_edov": "1"}), true),
            (json!({"xms_edov": 0}), false),
            (json!({"email_verified": false, "xms_edov": true}), false),
            (json!({"email_verified": [true]}), false),
        ] {
            assert_eq!(is_verified(claim.as_object().unwrap()), expected, "{claim}");
        }
    }

    #[test]
    fn an_answer_about_the_same_person_adds_what_is_missing() {
        let of = |claims: Value| person("u-1".to_owned(), claims.as_object().unwrap(), "groups");
        let told =
            json!({"sub": "u-1", "email": "b@example.com", "email_verified": true, "name": "B", "groups": ["b"]});
        let complete = |first: Value, told: &Value| of(first).completed_by(told.to_string().as_bytes(), "groups");
        let bare = complete(json!({}), &told).unwrap();
        assert_eq!(bare, of(told.clone()));
        let own = json!({"email": "a@example.com", "name": "A", "groups": ["a"]});
        assert_eq!(complete(own.clone(), &told).unwrap(), of(own), "and changes nothing, nor verifies another email");
        for other in
            [json!({"sub": "u-2", "email": "b@example.com"}), json!({"email": "b@example.com"}), json!({"sub": 1})]
        {
            assert_eq!(complete(json!({}), &other), Err(TokenFault::Subject));
        }
        assert_eq!(complete(json!({}), &json!([])), Err(TokenFault::Malformed));
        assert!(of(json!({})).is_incomplete(false) && of(json!({"email": "a@example.com"})).is_incomplete(true));
        assert!(!of(json!({"email": "a@example.com"})).is_incomplete(false));
    }

    #[test]
    fn a_person_has_what_the_claims_say() {
        let of = |claims: Value, name: &str| person("u-1".to_owned(), claims.as_object().unwrap(), name);
        let ann = of(json!({"email": " Ann@Example.com", "name": "Ann\u{7}\n Lee", "groups": ["a", 1, "b"]}), "groups");
        assert_eq!(ann.email.map(|email| email.to_string()).as_deref(), Some("ann@example.com"));
        assert_eq!((ann.name.as_deref(), ann.groups), (Some("Ann Lee"), vec!["a".to_owned(), "b".to_owned()]));
        let bare = of(json!({"email": "nobody", "name": "", "groups": {"a": 1}}), "groups");
        assert_eq!((bare.email, bare.name, bare.groups), (None, None, Vec::new()));
        let roles = json!({"realm_access": {"roles": ["admin"]}, "https://acme.test/groups": "staff"});
        assert_eq!(of(roles.clone(), "realm_access.roles").groups, ["admin"]);
        assert_eq!(of(roles.clone(), "https://acme.test/groups").groups, ["staff"]);
        assert_eq!(of(roles, "realm_access.none").groups, Vec::<String>::new());
    }
}
