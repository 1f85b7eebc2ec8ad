//! Reading the headers that the checks need.

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderName};
use messaging_engine::Error;

const PREFER: HeaderName = HeaderName::from_static("prefer");

/// Header that names a request, so that a repetition has no effect (contract section 1.7).
pub(super) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The value of `Idempotency-Key`. If there are two, an empty one is returned, which is malformed.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let value = values.next()?;
    Some(if values.next().is_some() { &b""[..] } else { value.as_bytes() })
}

/// Returns true if a value can be a host with or without a port; it may be empty (RFC 9110 section 7.2).
pub(super) fn is_host(value: &[u8]) -> bool {
    value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=%:[]".contains(byte))
}

/// The token of `Authorization: Bearer …`. Two are refused: a proxy may have read the other one.
pub(super) fn bearer(headers: &HeaderMap) -> Result<&str, Error> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().ok_or(Error::MissingCredentials)?;
    if values.next().is_some() {
        return Err(Error::InvalidCredentials);
    }
    let text = value.to_str().map_err(|_| Error::InvalidCredentials)?;
    let (scheme, token) = text.trim().split_once(' ').ok_or(Error::MissingCredentials)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Error::MissingCredentials);
    }
    Ok(token.trim_start())
}

/// Returns true if unknown members are to be ignored: `Prefer: handling=lenient` (RFC 7240 section 4.4), where the
/// first `handling` counts.
pub(super) fn prefers_leniency(headers: &HeaderMap) -> bool {
    let preferences = headers.get_all(PREFER).iter().filter_map(|value| value.to_str().ok());
    let named = preferences.flat_map(|text| text.split(',')).map(|preference| {
        let preference = preference.split_once(';').map_or(preference, |(preference, _)| preference);
        preference.split_once('=').unwrap_or((preference, ""))
    });
    let mut handling = named.filter(|(name, _)| name.trim().eq_ignore_ascii_case("handling"));
    handling.next().is_some_and(|(_, value)| value.trim().trim_matches('"').eq_ignore_ascii_case("lenient"))
}

/// Returns true if CSV is requested: `Accept` names `text/csv`, and JSON not before it.
pub(super) fn wants_csv(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut types = accepted.flat_map(|text| text.split(',')).map(|range| {
        let essence = range.split_once(';').map_or(range, |(essence, _)| essence);
        essence.trim().to_ascii_lowercase()
    });
    types.find(|essence| essence == "text/csv" || essence == "application/json").as_deref() == Some("text/csv")
}

/// Returns true if the body is declared as `application/json`, parameters aside.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    has_type(headers, &["application/json"])
}

/// Returns true if the body is declared as one of these media types, parameters aside, and without a content coding.
pub(super) fn has_type(headers: &HeaderMap, types: &[&str]) -> bool {
    let mut codings = headers.get_all(CONTENT_ENCODING).iter();
    let is_plain = codings.all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"identity"));
    is_plain
        && headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).is_some_and(|text| {
            let essence = text.split_once(';').map_or(text, |(essence, _)| essence).trim();
            types.iter().any(|wanted| essence.eq_ignore_ascii_case(wanted))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_bearer(header: Option<&str>, expected: &str) {
        let headers: HeaderMap = header.map(|value| (AUTHORIZATION, value.parse().unwrap())).into_iter().collect();
        let found = bearer(&headers).map_or_else(|error| error.code().to_owned(), ToOwned::to_owned);
        assert_eq!(found, expected, "{header:?}");
    }

    #[test]
    fn the_scheme_is_bearer_in_any_case() {
        check_bearer(Some("Bearer abc"), "abc");
        check_bearer(Some("bEARER   abc"), "abc");
        check_bearer(Some("Bearer a b"), "a b");
        check_bearer(Some("Basic abc"), "missing_credentials");
        check_bearer(Some("Bearer"), "missing_credentials");
        check_bearer(Some(""), "missing_credentials");
        check_bearer(None, "missing_credentials");
    }

    #[test]
    fn csv_is_asked_for_by_name() {
        for (value, expected) in [
            ("text/csv", true),
            ("Text/CSV; q=0.9, */*", true),
            ("text/csv, application/json", true),
            ("application/json, text/csv", false),
            ("*/*", false),
            ("text/*", false),
            ("", false),
        ] {
            let headers: HeaderMap = [(ACCEPT, value.parse().unwrap())].into_iter().collect();
            assert_eq!(wants_csv(&headers), expected, "{value}");
        }
        assert!(!wants_csv(&HeaderMap::new()));
    }

    #[test]
    fn json_may_have_parameters() {
        for (value, expected) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/json;charset=utf-8", true),
            ("application/jsonp", false),
            ("application/problem+json", false),
            ("text/json", false),
            ("", false),
        ] {
            let headers: HeaderMap = [(CONTENT_TYPE, value.parse().unwrap())].into_iter().collect();
            assert_eq!(is_json(&headers), expected, "{value}");
        }
        assert!(!is_json(&HeaderMap::new()));
    }

    #[test]
    fn a_compressed_body_is_not_read() {
        for (coding, expected) in [("identity", true), ("Identity", true), ("gzip", false), ("br", false), ("", false)]
        {
            let headers = [(CONTENT_TYPE, "application/json"), (CONTENT_ENCODING, coding)];
            let headers = headers.into_iter().map(|(name, value)| (name, value.parse().unwrap())).collect();
            assert_eq!(is_json(&headers), expected, "{coding}");
        }
    }

    #[test]
    fn of_two_idempotency_keys_neither_counts() {
        let mut headers = HeaderMap::new();
        assert_eq!(idempotency_key(&headers), None);
        headers.append(IDEMPOTENCY_KEY, "one".parse().unwrap());
        assert_eq!(idempotency_key(&headers), Some(&b"one"[..]));
        headers.append(IDEMPOTENCY_KEY, "one".parse().unwrap());
        assert_eq!(idempotency_key(&headers), Some(&b""[..]));
    }
}
