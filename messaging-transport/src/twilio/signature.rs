//! Verifies the signature of Twilio's calls: `X-Twilio-Signature`, HMAC-SHA1 with the account's auth token.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use messaging_core::ports::transport::CallbackRequest;
use ring::hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY;
use url::Url;

use crate::provider::callback::{form, header, hmac, matches, sha256_hex};

/// Returns true if a request was signed with this auth token.
///
/// An account may be set to sign with a key that it shares with others, and then says so in
/// `X-Twilio-Webhooks-Signature-Settings`. That header is ignored, as a caller must not choose how it is verified: only
/// the token in the settings counts.
pub(super) fn is_signed(auth_token: &str, request: &CallbackRequest<'_>) -> bool {
    let Some(given) = header(request.headers, "x-twilio-signature") else { return false };
    let is_form = header(request.headers, "content-type")
        .is_some_and(|kind| kind.trim_start().starts_with("application/x-www-form-urlencoded"));
    let fields = if is_form {
        signed_fields(&form(request.body))
    } else if is_digest_of(request.url, request.body) {
        String::new()
    } else {
        return false;
    };
    spellings(request.url)
        .iter()
        .any(|url| matches(given.as_bytes(), signature(auth_token, &format!("{url}{fields}")).as_bytes()))
}

/// Returns the signature of a text.
fn signature(auth_token: &str, signed: &str) -> String {
    STANDARD.encode(hmac(HMAC_SHA1_FOR_LEGACY_USE_ONLY, auth_token.as_bytes(), signed.as_bytes()))
}

/// Returns the form fields as they are signed: names in the order of their octets, each followed by its value. A name
/// that is repeated is followed by its distinct values in their order, each after the name.
fn signed_fields(fields: &[(String, String)]) -> String {
    let mut by_name: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, value) in fields {
        by_name.entry(name).or_default().insert(value);
    }
    by_name.iter().flat_map(|(name, values)| values.iter().flat_map(move |value| [*name, *value])).collect()
}

/// Returns true if the query of a URL holds the SHA-256 of a body: a body that is no form is not signed itself.
fn is_digest_of(url: &str, body: &[u8]) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    let given = url.query_pairs().find(|(name, _)| name == "bodySHA256");
    given.is_some_and(|(_, digest)| matches(digest.to_ascii_lowercase().as_bytes(), sha256_hex(body).as_bytes()))
}

/// Returns a URL as it is, and with and without the default port of its scheme: a proxy may add the port or remove it.
fn spellings(url: &str) -> Vec<Cow<'_, str>> {
    let mut spellings = vec![Cow::Borrowed(url)];
    let Some((scheme, rest)) = url.split_once("://") else { return spellings };
    let port = match scheme {
        "https" => ":443",
        "http" => ":80",
        _ => return spellings,
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    if let Some(host) = authority.strip_suffix(port) {
        spellings.push(format!("{scheme}://{host}{path}").into());
    } else if !authority.rsplit(']').next().unwrap_or_default().contains(':') {
        spellings.push(format!("{scheme}://{authority}{port}{path}").into());
    }
    spellings
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderMap, HeaderValue, Method};
    use messaging_core::ports::transport::CallbackProof;
    use messaging_core::time::Timestamp;

    use super::*;

    const URL: &str = "https://mycompany.com/myapp.php?foo=1&bar=2";
    const FORM: &str =
        "CallSid=CA1234567890ABCDE&Caller=%2B14158675309&Digits=1234&From=%2B14158675309&To=%2B18005551212";
    const SIGNATURE: &str = "RSOYDt4T1cUTdK1PDd93/VVr8B8=";

    #[track_caller]
    fn check(url: &str, kind: &'static str, body: &str, signature: &str, expected: bool) {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static(kind));
        headers.insert("x-twilio-signature", HeaderValue::from_str(signature).unwrap());
        headers.insert("x-twilio-webhooks-signature-settings", HeaderValue::from_static("shared"));
        let request = CallbackRequest {
            method: &Method::POST,
            url,
            headers: &headers,
            body: &Bytes::from(body.to_owned()),
            proof: &CallbackProof::ThisMessage,
            now: Timestamp::from_millis(0),
        };
        assert_eq!(is_signed("12345", &request), expected, "{url} {body}");
    }

    const KIND: &str = "application/x-www-form-urlencoded; charset=utf-8";

    #[test]
    fn the_published_vector_holds_and_nothing_near_it() {
        check(URL, KIND, FORM, SIGNATURE, true);
        check("https://mycompany.com:443/myapp.php?foo=1&bar=2", KIND, FORM, SIGNATURE, true);
        for url in [
            "https://mycompany.com:80/myapp.php?foo=1&bar=2",
            "http://mycompany.com/myapp.php?foo=1&bar=2",
            "https://mycompany.com/myapp.php?foo=1",
            "https://mycompany.com:8443/myapp.php?foo=1&bar=2",
        ] {
            check(url, KIND, FORM, SIGNATURE, false);
        }
        check(URL, KIND, &FORM.replace("Digits=1234", "Digits=1235"), SIGNATURE, false);
        check(URL, KIND, &format!("{FORM}&More=1"), SIGNATURE, false);
        check(URL, KIND, FORM, "", false);
        check(URL, KIND, FORM, "RSOYDt4T1cUTdK1PDd93/VVr8B9=", false);
        check(URL, "application/json", FORM, SIGNATURE, false);
    }

    #[test]
    fn it_holds_when_the_port_was_signed_and_not_shown() {
        let signed = format!("https://mycompany.com:443/a?b=1{}", signed_fields(&form(FORM.as_bytes())));
        check("https://mycompany.com/a?b=1", KIND, FORM, &signature("12345", &signed), true);
        check("https://[::1]/a", KIND, "", &signature("12345", "https://[::1]:443/a"), true);
        check("https://other:8443/a", KIND, "", &signature("12345", "https://other/a"), false);
    }

    #[test]
    fn repeated_names_are_signed_by_their_distinct_values_in_order() {
        let fields = form(b"b=2&a=9&b=1&b=2&B=0");
        assert_eq!(signed_fields(&fields), "B0a9b1b2");
    }

    #[test]
    fn a_json_body_is_proved_by_its_digest_in_the_url() {
        let body = r#"{"a":1}"#;
        let url = format!("https://a.example/x?bodySHA256={}", sha256_hex(body.as_bytes()));
        check(&url, "application/json", body, &signature("12345", &url), true);
        check(&url, "application/json", r#"{"a":2}"#, &signature("12345", &url), false);
        check("https://a.example/x", "application/json", body, &signature("12345", "https://a.example/x"), false);
    }
}
