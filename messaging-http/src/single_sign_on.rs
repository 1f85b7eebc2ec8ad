//! Single sign-on in a browser: the redirect to the provider, and the callback that leads on to the console.
//!
//! Contract section 25. Only browsers open these two paths, so errors are shown on the console's sign-in page, or on a
//! plain page if there is no console. A cookie connects the two requests for at most ten minutes. The provider's
//! redirect must bring it along, so it is `SameSite=Lax`, unlike the session's cookie; it grants no access by itself.

use std::net::IpAddr;

use http::header::{CACHE_CONTROL, COOKIE, SET_COOKIE, USER_AGENT};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use messaging_core::domain::security::oidc::flow::LIFETIME;
use messaging_core::error::Chain;
use messaging_engine::ops::sessions::sign_on::{FinishSignOn, SignOnInput, SignOnOutcome};
use messaging_engine::ops::{Answer, Endpoint, Request};
use messaging_engine::services::single_sign_on::SignOnRefusal;
use messaging_engine::{App, Caller, Error};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::reply::{self, Reply};
use crate::session_cookie;

/// A path of single sign-on, below the version prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignOnRoute {
    /// Sends a browser to the provider.
    Begin,
    /// Receives the browser from the provider.
    Callback,
}

impl SignOnRoute {
    /// Both routes.
    pub(crate) const ALL: [Self; 2] = [Self::Begin, Self::Callback];

    /// Path below the version prefix.
    pub(crate) const fn route(self) -> &'static str {
        match self {
            Self::Begin => "/auth/oidc",
            Self::Callback => "/auth/oidc/callback",
        }
    }
}

/// A request of a browser, with the settings that the answer depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BrowserRequest<'a> {
    /// Head of the HTTP request.
    pub(crate) head: &'a Parts,
    /// IP address of the client.
    pub(crate) client: IpAddr,
    /// Id of the request, for the log.
    pub(crate) request_id: &'a str,
    /// True if browsers reach the server by https.
    pub(crate) is_https: bool,
    /// True if the server serves the console.
    pub(crate) has_console: bool,
}

/// Answers a browser. Fails with [`Error::NotFound`] if the settings have no provider.
pub(crate) async fn answer(app: &App, route: SignOnRoute, request: BrowserRequest<'_>) -> Result<Reply, Error> {
    if app.sign_on().is_none() {
        return Err(Error::NotFound);
    }
    // HEAD, as link previews send it, must not use up the provider's code.
    if request.head.method == Method::HEAD {
        return Ok(reply::bare(StatusCode::NO_CONTENT));
    }
    Ok(match route {
        SignOnRoute::Begin => begin(app, request).await,
        SignOnRoute::Callback => callback(app, request).await,
    })
}

/// Redirects to the provider, with the cookie that the callback checks.
async fn begin(app: &App, request: BrowserRequest<'_>) -> Reply {
    let start = match app.begin_sign_on().await {
        Ok(start) => start,
        Err(reason) => return refused(app, request, reason),
    };
    // Does not fail: a provider's URL is ASCII without control characters.
    let Ok(location) = HeaderValue::try_from(start.location) else {
        return refused(app, request, SignOnRefusal::Unreachable);
    };
    let mut reply = reply::redirect(location);
    set_cookie(&mut reply, flow_cookie(start.cookie.expose(), LIFETIME.as_secs(), request.is_https));
    reply
}

/// Ends the sign-in that the provider's redirect reports, and removes the cookie in any case.
async fn callback(app: &App, request: BrowserRequest<'_>) -> Reply {
    let mut reply = match finish(app, request).await {
        Ok(answer) => answered(app, request, &answer),
        Err(Failure::Refused(reason)) => refused(app, request, reason),
        // The account is locked for a while after wrong codes of its second factor.
        Err(Failure::Failed(Error::RateLimited { .. })) => refused(app, request, SignOnRefusal::Busy),
        Err(Failure::Failed(error @ Error::SecondFactorRequired { .. })) => asked_for_factor(app, request, &error),
        Err(Failure::Failed(error)) => {
            tracing::error!(request_id = request.request_id, error = %Chain(&error), "a single sign-on failed");
            refused(app, request, SignOnRefusal::Failed)
        }
    };
    // The cookie is valid for one callback, successful or not.
    set_cookie(&mut reply, flow_cookie("", 0, request.is_https));
    reply
}

/// Reason why the callback has no answer of the operation `FinishSignOn`.
enum Failure {
    Refused(SignOnRefusal),
    Failed(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Verifies the provider's answer, and signs the person in with the operation `FinishSignOn`.
async fn finish(app: &App, request: BrowserRequest<'_>) -> Result<Answer, Failure> {
    let BrowserRequest { head, client, request_id, is_https, .. } = request;
    let query = head.uri.query().unwrap_or_default();
    let cookie = carried(&head.headers, is_https);
    let person = app.finish_sign_on(cookie, query, client).await.map_err(Failure::Refused)?;
    let body = serde_json::to_vec(&SignOnInput::from(person)).map_err(Error::internal)?;
    let admitted = app.admit(Caller::Anonymous, Endpoint::row::<FinishSignOn>(), &[], None).await?;
    let call = Request {
        path: SignOnRoute::Callback.route(),
        body: body.into(),
        client_ip: Some(client),
        user_agent: head.headers.get(USER_AGENT).and_then(|value| value.to_str().ok()),
        request_id: Some(request_id),
        ..Request::default()
    };
    Ok(admitted.run(call).await?)
}

/// The reply to the browser for the answer of the operation.
fn answered(app: &App, request: BrowserRequest<'_>, answer: &Answer) -> Reply {
    let outcome = serde_json::from_slice(&answer.body);
    let mut reply = match outcome {
        Ok(SignOnOutcome::SignedIn) => on_to(app, request, "/", "You are signed in."),
        Ok(SignOnOutcome::Confirm { ticket }) => {
            let ticket = utf8_percent_encode(ticket.expose(), NON_ALPHANUMERIC);
            let text = "Your account here has a password, which has to be confirmed once. That needs the console.";
            on_to(app, request, &format!("confirm={ticket}"), text)
        }
        Ok(SignOnOutcome::Refused { reason }) => refused(app, request, reason),
        _ => refused(app, request, SignOnRefusal::Failed),
    };
    if let Some(cookie) = &answer.session_cookie {
        set_cookie(&mut reply, session_cookie::header(cookie, request.is_https));
    }
    reply
}

/// Redirects a person with a second factor to the console's page that asks for it. The fragment of the URL carries the
/// `details` of the error that other sign-ins answer.
fn asked_for_factor(app: &App, request: BrowserRequest<'_>, asked: &Error) -> Reply {
    let details = asked.details().unwrap_or_default().to_string();
    let details = utf8_percent_encode(&details, NON_ALPHANUMERIC);
    let text = "Your account here has a second factor, which every sign-in asks for. That needs the console.";
    on_to(app, request, &format!("factor={details}"), text)
}

/// Redirects to a place in the console; shows a page with `text` if there is no console.
fn on_to(app: &App, request: BrowserRequest<'_>, place: &str, text: &str) -> Reply {
    if !request.has_console {
        return reply::private_page(StatusCode::OK, page(text));
    }
    let base = app.settings().public_url.trim_end_matches('/');
    match HeaderValue::try_from(format!("{base}/console/#{place}")) {
        Ok(location) => reply::redirect(location),
        Err(_) => reply::private_page(StatusCode::OK, page(text)),
    }
}

/// Shows the reason of a refused sign-in on the console's sign-in page, or on a plain page.
fn refused(app: &App, request: BrowserRequest<'_>, reason: SignOnRefusal) -> Reply {
    tracing::info!(reason = reason.code(), request_id = request.request_id, "a single sign-on was refused");
    if request.has_console {
        return on_to(app, request, &format!("/sign-in?reason={}", reason.code()), "");
    }
    let status = match reason {
        SignOnRefusal::Unreachable | SignOnRefusal::Busy | SignOnRefusal::Failed => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::FORBIDDEN,
    };
    reply::private_page(status, page(&reason.to_string()))
}

/// An HTML page with one sentence, which is not escaped and must be a text of ours.
fn page(text: &str) -> bytes::Bytes {
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>Sign in</title><style>body{{font:1.1rem sans-serif;max-width:36rem;margin:4rem auto;padding:0 1rem}}</style>\
         <h1>Sign in</h1><p>{text}</p></html>"
    )
    .into()
}

/// Name of the cookie that connects the two requests. Browsers accept the prefix `__Host-` only over HTTPS, and only
/// from this very host.
const fn name(is_https: bool) -> &'static str {
    if is_https { "__Host-messaging_sign_on" } else { "messaging_sign_on" }
}

/// The header that sets the cookie for some seconds; 0 removes it.
fn flow_cookie(value: &str, seconds: u64, is_https: bool) -> Option<HeaderValue> {
    let secure = if is_https { "; Secure" } else { "" };
    let text = format!("{}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}", name(is_https));
    let mut value = HeaderValue::try_from(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Adds a cookie to a reply, which must then not be cached.
fn set_cookie(reply: &mut Reply, cookie: Option<HeaderValue>) {
    if let Some(cookie) = cookie {
        reply.headers_mut().append(SET_COOKIE, cookie);
        reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
}

/// Value of the cookie in a request. `None` if it is missing or empty, and if there are two with the name, because
/// another site may have set one of them.
fn carried(headers: &HeaderMap, is_https: bool) -> Option<&str> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = cookies.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut values = pairs.filter(|(found, _)| *found == name(is_https)).map(|(_, value)| value);
    values.next().filter(|value| !value.is_empty() && values.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cookie_comes_back_with_a_link_and_is_for_no_script() {
        let cookie = flow_cookie("sealed:1:a+/=", 600, true).unwrap();
        let expected = "__Host-messaging_sign_on=sealed:1:a+/=; Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure";
        assert_eq!(cookie, expected);
        assert!(cookie.is_sensitive());
        let gone = flow_cookie("", 0, false).unwrap();
        assert_eq!(gone, "messaging_sign_on=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax");
    }

    #[test]
    fn the_console_says_every_reason_in_the_same_words() {
        let screen = include_str!("../console/screens/sign_in.js");
        for reason in SignOnRefusal::ALL {
            let line = format!("  {}: \"{reason}\",\n", reason.code());
            assert!(screen.contains(&line), "{line}");
        }
    }

    #[test]
    fn of_two_cookies_none_counts() {
        let of = |text: &'static str, is_https| {
            let headers = HeaderMap::from_iter([(COOKIE, HeaderValue::from_static(text))]);
            carried(&headers, is_https).map(ToOwned::to_owned)
        };
        assert_eq!(of("a=b; messaging_sign_on=x=y", false).as_deref(), Some("x=y"));
        assert_eq!(of("__Host-messaging_sign_on=x", true).as_deref(), Some("x"));
        assert_eq!(of("messaging_sign_on=x", true), None);
        assert_eq!(of("messaging_sign_on=x; messaging_sign_on=y", false), None);
        assert_eq!(of("messaging_sign_on=", false), None);
    }
}
