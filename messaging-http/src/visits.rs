//! Links in messages: the pixel, redirected links, the unsubscribe page.
//!
//! Contract section 18. They are opened by recipients and their mail programs, without credentials; the token in the
//! link is enough. Core decides what is recorded of a visit.
//!
//! Pixel and redirect are answered even if the visit could not be recorded: a recipient must not see that the server's
//! disk is full. A pixel is answered for an unknown token too: the contract has no refusal, mail programs show one as a
//! broken picture, and the answer then does not reveal which tokens are valid.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http::header::{RETRY_AFTER, USER_AGENT};
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};
use messaging_core::domain::analytics::bot_detection::announces_prefetch;
use messaging_core::domain::audience::reader_texts::Language;
use messaging_core::domain::audience::unsubscribe::UnsubscribeMethod;
use messaging_core::domain::mail::link_token::Link;
use messaging_core::domain::mail::tracking;
use messaging_core::domain::mail::unsubscribe_header::ONE_CLICK;
use messaging_core::error::Chain;
use messaging_core::ids::WorkspaceId;
use messaging_engine::services::Visitor;
use messaging_engine::services::subscribing::Reader;
use messaging_engine::services::unsubscribe::UnsubscribeScope;
use messaging_engine::{App, Error};

use crate::reader_page::{self, Words};
use crate::readers;
use crate::reply::{self, Reply};

/// The longest form that is read: it has one short field.
pub(crate) const MAX_FORM: usize = 16 << 10;

/// Time an answer waits for its visit to be recorded. The recording continues after that.
const PATIENCE: Duration = Duration::from_secs(1);

/// Purpose of a link in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visit {
    /// The pixel.
    Open,
    /// A redirected link.
    Click,
    /// The page that asks for confirmation to unsubscribe.
    Ask,
    /// The unsubscription itself.
    Unsubscribe,
}

impl Visit {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::Open, Self::Click, Self::Ask, Self::Unsubscribe];

    /// The path.
    pub(crate) const fn route(self) -> &'static str {
        match self {
            Self::Open => "/t/o/{token}",
            Self::Click => "/t/c/{token}",
            Self::Ask | Self::Unsubscribe => "/u/{token}",
        }
    }

    /// The method.
    pub(crate) const fn method(self) -> Method {
        match self {
            Self::Open | Self::Click | Self::Ask => Method::GET,
            Self::Unsubscribe => Method::POST,
        }
    }

    /// Returns true if the body of the request is read as a form.
    pub(crate) const fn reads_form(self) -> bool {
        matches!(self, Self::Unsubscribe)
    }
}

/// Describes the visitor of a link by the head of the request and the address that it came from.
pub(crate) fn visitor(head: &Parts, ip: IpAddr) -> Visitor {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    Visitor {
        ip,
        user_agent: head.headers.get(USER_AGENT).map(text),
        is_head: head.method == Method::HEAD,
        is_prefetch: head.headers.iter().any(|(name, value)| announces_prefetch(name.as_str(), &text(value))),
    }
}

/// Answers a visit.
pub(crate) async fn answer(
    app: &App,
    visit: Visit,
    token: &str,
    visitor: Visitor,
    language: Option<Language>,
    form: &Bytes,
) -> Reply {
    match visit {
        Visit::Open => open(app, token, visitor).await,
        Visit::Click => click(app, token, visitor, language.unwrap_or_default()).await,
        Visit::Ask => ask(app, token, language.unwrap_or_default()).await,
        Visit::Unsubscribe => unsubscribe(app, token, visitor, language.unwrap_or_default(), form).await,
    }
}

async fn open(app: &App, token: &str, visitor: Visitor) -> Reply {
    if let Some((workspace, message, Link::Open)) = app.link_key().read_link(token) {
        let app = app.clone();
        record(async move { app.record_open(workspace, message, &visitor).await }).await;
    }
    reply::pixel()
}

async fn click(app: &App, token: &str, visitor: Visitor, language: Language) -> Reply {
    let click = match app.click(token).await {
        Ok(Some(click)) => click,
        Ok(None) => return unknown(language),
        Err(error) => return trouble(&error.into(), language),
    };
    // ASCII without control characters is a valid header value.
    let Ok(location) = HeaderValue::try_from(tracking::ascii(&click.url)) else { return unknown(language) };
    let app = app.clone();
    record(async move { app.record_click(&click, &visitor).await }).await;
    reply::redirect(location)
}

/// Asks for confirmation to unsubscribe, with the choice of a list. The page is shown even if the message is unknown.
async fn ask(app: &App, token: &str, language: Language) -> Reply {
    let Some((workspace, message, Link::Unsubscribe)) = app.link_key().read_link(token) else {
        return unknown(language);
    };
    let words = words_for(app, workspace, language).await;
    let asked = match app.unsubscribe_page(workspace, message).await {
        Ok(asked) => Some(asked),
        Err(Error::NotFound) => None,
        Err(error) => {
            tracing::warn!(error = %Chain(&error), "a page that unsubscribes shows no lists");
            None
        }
    };
    let words = words.or_in(asked.as_ref().and_then(|asked| asked.language));
    reply::private_page(StatusCode::OK, reader_page::question(asked.as_ref(), &words))
}

async fn unsubscribe(app: &App, token: &str, visitor: Visitor, language: Language, form: &Bytes) -> Reply {
    let Some((workspace, message, Link::Unsubscribe)) = app.link_key().read_link(token) else {
        return unknown(language);
    };
    let reader = Reader { ip: Some(visitor.ip), user_agent: visitor.user_agent };
    match app.unsubscribe_from(workspace, message, (method(form), scope(form)), &reader).await {
        Ok(_) => {
            let own = app.unsubscribe_page(workspace, message).await.ok().and_then(|page| page.language);
            let words = words_for(app, workspace, language).await.or_in(own);
            reply::private_page(StatusCode::OK, reader_page::done(&words))
        }
        Err(Error::NotFound) => unknown(language),
        Err(error) => trouble(&error, language),
    }
}

/// The texts of a workspace, or the built-in ones while those cannot be read: the reader can unsubscribe all the same.
async fn words_for(app: &App, workspace: WorkspaceId, language: Language) -> Words {
    readers::words_of(app, workspace, Some(language)).await.unwrap_or_else(|_| language.into())
}

/// Scope of an unsubscription: the choice made on the page, if it had one.
fn scope(form: &[u8]) -> UnsubscribeScope {
    if method(form) == UnsubscribeMethod::OneClick {
        return UnsubscribeScope::OfMessage;
    }
    let chosen = form_urlencoded::parse(form).find(|(field, _)| field == "list").map(|(_, text)| text.into_owned());
    match chosen.as_deref() {
        None => UnsubscribeScope::OfMessage,
        Some(text) => text.parse().map_or(UnsubscribeScope::Everything, UnsubscribeScope::List),
    }
}

/// Sender of the form: a mail program (RFC 8058 section 3.2, in either of its encodings), or our page.
fn method(form: &[u8]) -> UnsubscribeMethod {
    let (name, value) = ONE_CLICK.1.split_once('=').unwrap_or_default();
    let in_fields = form_urlencoded::parse(form)
        .any(|(field, text)| field.trim().eq_ignore_ascii_case(name) && text.trim().eq_ignore_ascii_case(value));
    let text = String::from_utf8_lossy(form).to_ascii_lowercase();
    let in_parts = text.split("content-disposition:").skip(1).any(|part| {
        let (head, content) = part.split_once("\r\n\r\n").unwrap_or((part, ""));
        head.contains(&format!("name=\"{}\"", name.to_ascii_lowercase()))
            && content.lines().next().is_some_and(|line| line.trim().eq_ignore_ascii_case(value))
    });
    if in_fields || in_parts { UnsubscribeMethod::OneClick } else { UnsubscribeMethod::Link }
}

/// Records a visit, even if the visitor disconnects meanwhile.
async fn record(recording: impl Future<Output = Result<(), Error>> + Send + 'static) {
    let task = tokio::spawn(async move {
        if let Err(error) = recording.await {
            tracing::warn!(error = %Chain(&error), "a visit of a link was not recorded");
        }
    });
    // A failure is logged; a slow recording continues by itself.
    let _ = tokio::time::timeout(PATIENCE, task).await;
}

fn unknown(language: Language) -> Reply {
    reply::private_page(StatusCode::NOT_FOUND, reader_page::unknown(&language.into()))
}

fn trouble(error: &Error, language: Language) -> Reply {
    tracing::error!(error = %Chain(error), "a link in a message could not be answered");
    let mut reply = reply::private_page(StatusCode::SERVICE_UNAVAILABLE, reader_page::trouble(&language.into()));
    reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from(error.retry_after().unwrap_or(5)));
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_of_the_page_is_what_is_unsubscribed_from() {
        let list = "lst_01JB3Q8Z5N6W7X8Y9ZABCDEFGH";
        let expected = UnsubscribeScope::List(list.parse().unwrap());
        assert_eq!(scope(format!("list={list}&confirm=yes").as_bytes()), expected);
        assert_eq!(scope(b"list=all&confirm=yes"), UnsubscribeScope::Everything);
        assert_eq!(scope(b"list=lst_1"), UnsubscribeScope::Everything);
        for form in ["", "confirm=yes", "List-Unsubscribe=One-Click&list=all"] {
            assert_eq!(scope(form.as_bytes()), UnsubscribeScope::OfMessage, "{form}");
        }
    }

    #[test]
    fn one_click_is_told_from_the_page() {
        let part = "--b\r\nContent-Disposition: form-data; name=\"List-Unsubscribe\"\r\n\r\nOne-Click\r\n--b--\r\n";
        for form in
            ["List-Unsubscribe=One-Click", "a=b&list-unsubscribe=one-click", "List-Unsubscribe=One%2DClick\r\n", part]
        {
            assert_eq!(method(form.as_bytes()), UnsubscribeMethod::OneClick, "{form}");
        }
        let other = part.replace("One-Click", "Later");
        for form in ["", "confirm=yes", "List-Unsubscribe=", "One-Click", "\u{0}", &*other] {
            assert_eq!(method(form.as_bytes()), UnsubscribeMethod::Link, "{form}");
        }
        assert_eq!(method(&[0xff; 100]), UnsubscribeMethod::Link);
    }
}
