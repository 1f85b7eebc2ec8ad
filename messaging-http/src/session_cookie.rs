//! The cookie that holds a session of the console (contract section 2.3).
//!
//! A browser sends cookies also with requests that other sites cause, so the cookie counts only on requests that such a
//! site cannot cause: with a custom header, which a browser lets no other origin add without a preflight request, and
//! by the browser's own headers about the origin of the request.

use http::header::{AUTHORIZATION, COOKIE};
use http::{HeaderMap, HeaderName, HeaderValue};
use messaging_engine::ops::SessionCookie;

const X_CONSOLE: HeaderName = HeaderName::from_static("x-console");
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The name of the cookie. Browsers accept the prefix `__Host-` only over HTTPS, from this host, for all paths.
const fn name(is_https: bool) -> &'static str {
    if is_https { "__Host-messaging_session" } else { "messaging_session" }
}

/// The session token in the cookie of a request, where the cookie counts.
pub(crate) fn token(headers: &HeaderMap, is_https: bool) -> Option<&str> {
    let is_ours = headers.get(X_CONSOLE).is_some_and(|value| value == "1");
    let is_same_origin = headers.get_all(SEC_FETCH_SITE).iter().all(|value| value == "same-origin");
    if headers.contains_key(AUTHORIZATION) || !is_ours || !is_same_origin {
        return None;
    }
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = cookies.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut tokens = pairs.filter(|(found, _)| *found == name(is_https)).map(|(_, token)| token);
    // If there are two with one name, the other may have been set by another site.
    tokens.next().filter(|token| !token.is_empty() && tokens.next().is_none())
}

/// The `Set-Cookie` that sets or removes the cookie in a browser.
pub(crate) fn header(cookie: &SessionCookie, is_https: bool) -> Option<HeaderValue> {
    let (token, seconds) = match cookie {
        SessionCookie::Keep(token, lifetime) => (token.expose(), lifetime.as_secs()),
        SessionCookie::Forget => ("", 0),
    };
    let secure = if is_https { "; Secure" } else { "" };
    let name = name(is_https);
    let text = format!("{name}={token}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    let mut value = HeaderValue::try_from(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn the_cookie_counts_only_on_requests_of_the_console() {
        let cookie = ("cookie", "a=b; messaging_session=ms_1");
        let of = |more: &[(&'static str, &'static str)]| token(&headers(&[&[cookie], more].concat()), false).is_some();
        assert!(of(&[("x-console", "1")]));
        assert!(of(&[("x-console", "1"), ("sec-fetch-site", "same-origin")]));
        for refused in [
            &[][..],
            &[("x-console", "0")],
            &[("sec-fetch-site", "same-origin")],
            &[("x-console", "1"), ("sec-fetch-site", "same-site")],
            &[("x-console", "1"), ("sec-fetch-site", "cross-site")],
            &[("x-console", "1"), ("authorization", "Bearer mk_live_x")],
        ] {
            assert!(!of(refused), "{refused:?}");
        }
        let twice = headers(&[("cookie", "messaging_session=1; messaging_session=2"), ("x-console", "1")]);
        assert_eq!(token(&twice, false), None);
        let plain = headers(&[cookie, ("x-console", "1")]);
        assert_eq!(token(&plain, false), Some("ms_1"));
        assert_eq!(token(&plain, true), None, "over https only the cookie that nobody else can set");
    }

    #[test]
    fn no_script_and_no_other_site_gets_the_cookie() {
        let keep = SessionCookie::Keep("ms_1".to_owned().into(), Duration::from_hours(12));
        let expected = "messaging_session=ms_1; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict";
        assert_eq!(header(&keep, false).unwrap(), expected);
        assert_eq!(header(&keep, true).unwrap(), format!("__Host-{expected}; Secure"));
        let forget = header(&SessionCookie::Forget, false).unwrap();
        assert_eq!(forget, "messaging_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict");
    }
}
