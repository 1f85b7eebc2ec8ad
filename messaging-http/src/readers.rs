//! Pages for readers that are no links of one message alone: confirmations, forms, preferences.
//!
//! Contract section 23. As with visits, the token is all that counts.

use std::net::IpAddr;

use bytes::Bytes;
use http::header::{
    ACCEPT_LANGUAGE, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_MAX_AGE, CONTENT_TYPE, LOCATION, ORIGIN, RETRY_AFTER, USER_AGENT, VARY,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use messaging_core::domain::audience::form::{Form, STARTED, TRAP, origin_of};
use messaging_core::domain::audience::reader_texts::{Language, ReaderText};
use messaging_core::domain::audience::unsubscribe::UnsubscribeMethod;
use messaging_core::domain::mail::link_token::Link;
use messaging_core::error::Chain;
use messaging_core::ids::{MessageId, WorkspaceId};
use messaging_core::violation::{FieldCode, refuse};
use messaging_engine::services::confirming::{Followed, ReaderPage};
use messaging_engine::services::forms::{FormPage, FormPost, Posted};
use messaging_engine::services::preferences::{Preferences, ReaderMail};
use messaging_engine::services::subscribing::Reader;
use messaging_engine::services::unsubscribe::UnsubscribeScope;
use messaging_engine::{App, Error};
use serde_json::{Value, json};

use crate::reader_page::{self, FormState};
use crate::reply::{self, Reply};

/// The longest body that is taken.
pub(crate) const MAX_BODY: usize = 64 << 10;

/// Fields of a post that are looked at.
const MAX_FIELDS: usize = 300;

/// What a page for readers is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReaderRoute {
    /// The page that asks to confirm something.
    AskToConfirm,
    /// Confirming it.
    Confirm,
    /// The page of a form.
    ShowForm,
    /// A post to a form.
    PostToForm,
    /// A browser that asks whether a page may post to a form.
    FormPreflight,
    /// The page of preferences.
    ShowPreferences,
    /// A change of preferences.
    SetPreferences,
}

impl ReaderRoute {
    /// All of them.
    pub(crate) const ALL: [Self; 7] = [
        Self::AskToConfirm,
        Self::Confirm,
        Self::ShowForm,
        Self::PostToForm,
        Self::FormPreflight,
        Self::ShowPreferences,
        Self::SetPreferences,
    ];

    /// The path.
    pub(crate) const fn route(self) -> &'static str {
        match self {
            Self::AskToConfirm | Self::Confirm => "/c/{token}",
            Self::ShowForm | Self::PostToForm | Self::FormPreflight => "/f/{token}",
            Self::ShowPreferences | Self::SetPreferences => "/p/{token}",
        }
    }

    /// The method.
    pub(crate) const fn method(self) -> Method {
        match self {
            Self::AskToConfirm | Self::ShowForm | Self::ShowPreferences => Method::GET,
            Self::Confirm | Self::PostToForm | Self::SetPreferences => Method::POST,
            Self::FormPreflight => Method::OPTIONS,
        }
    }

    /// True if the body of the request is read.
    pub(crate) const fn reads_body(self) -> bool {
        matches!(self, Self::Confirm | Self::PostToForm | Self::SetPreferences)
    }
}

/// A request of a reader.
pub(crate) struct ReaderRequest<'a> {
    /// Its token.
    pub(crate) token: &'a str,
    /// Its head.
    pub(crate) head: &'a Parts,
    /// Address that it came from.
    pub(crate) client: IpAddr,
    /// Its body.
    pub(crate) body: &'a Bytes,
    /// Id of the request.
    pub(crate) request_id: &'a HeaderValue,
}

/// The language that a request prefers.
pub(crate) fn preferred(headers: &HeaderMap) -> Option<Language> {
    headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).and_then(Language::of_accept)
}

/// The reader of a request.
pub(crate) fn reader(headers: &HeaderMap, client: IpAddr) -> Reader {
    let agent = headers.get(USER_AGENT).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    Reader { ip: Some(client), user_agent: agent }
}

/// Answers a request of a reader.
pub(crate) async fn answer(app: &App, route: ReaderRoute, request: ReaderRequest<'_>) -> Reply {
    let language = preferred(&request.head.headers).unwrap_or_default();
    let answered = match route {
        ReaderRoute::AskToConfirm => confirm(app, &request, false).await,
        ReaderRoute::Confirm => confirm(app, &request, true).await,
        ReaderRoute::ShowForm => show_form(app, &request).await,
        ReaderRoute::PostToForm => post_to_form(app, &request).await,
        ReaderRoute::FormPreflight => preflight(app, &request).await,
        ReaderRoute::ShowPreferences => preferences(app, &request).await,
        ReaderRoute::SetPreferences => set_preferences(app, &request).await,
    };
    answered.unwrap_or_else(|error| failed(&error, language))
}

/// The page that says that nothing happened.
fn failed(error: &Error, language: Language) -> Reply {
    let (status, page) = match error {
        Error::RateLimited { .. } => (StatusCode::TOO_MANY_REQUESTS, reader_page::limited(language)),
        Error::NotFound => (StatusCode::NOT_FOUND, reader_page::unknown(language)),
        _ => {
            tracing::error!(error = %Chain(error), "a page for a reader could not be answered");
            (StatusCode::SERVICE_UNAVAILABLE, reader_page::trouble(language))
        }
    };
    let mut reply = reply::private_page(status, page);
    if status != StatusCode::NOT_FOUND {
        reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from(error.retry_after().unwrap_or(5)));
    }
    reply
}

fn ok(page: Bytes) -> Reply {
    reply::private_page(StatusCode::OK, page)
}

fn unknown(language: Language) -> Reply {
    reply::private_page(StatusCode::NOT_FOUND, reader_page::unknown(language))
}

fn expired(language: Language) -> Reply {
    reply::private_page(StatusCode::GONE, reader_page::expired(language))
}

/// Shows what a link confirms, or does it.
async fn confirm(app: &App, request: &ReaderRequest<'_>, is_pressed: bool) -> Result<Reply, Error> {
    let language = preferred(&request.head.headers).unwrap_or_default();
    let Some((workspace, message, link)) = app.link_key().read_link(request.token) else {
        return Ok(unknown(language));
    };
    let reader = reader(&request.head.headers, request.client);
    let followed = match (link, is_pressed) {
        (Link::Confirm, false) => app.subscription_to_confirm(workspace, message).await?,
        (Link::Confirm, true) => app.confirm_subscription(workspace, message, &reader).await?,
        (Link::ChangeAddress | Link::Erase, false) => app.reader_to_confirm(workspace, message).await?,
        (Link::ChangeAddress, true) => app.change_reader_address(workspace, message).await?,
        (Link::Erase, true) => app.erase_reader(workspace, message).await?,
        _ => return Ok(unknown(language)),
    };
    let page = match followed {
        Followed::Found(page) => page,
        Followed::Expired => return Ok(expired(language)),
        Followed::Unknown => return Ok(unknown(language)),
    };
    let language = page.language.unwrap_or(language);
    let (title, text, button, after) = match link {
        Link::ChangeAddress => (
            ReaderText::AddressTitle,
            ReaderText::AddressText,
            ReaderText::ConfirmButton,
            reader_page::happened(ReaderText::AddressDone, language),
        ),
        Link::Erase => (
            ReaderText::EraseTitle,
            ReaderText::EraseText,
            ReaderText::EraseTitle,
            reader_page::happened(ReaderText::EraseDone, language),
        ),
        _ => (
            ReaderText::ConfirmTitle,
            ReaderText::ConfirmText,
            ReaderText::ConfirmButton,
            reader_page::subscribed(language),
        ),
    };
    let asks = || reader_page::press((title, text), &page.lists, button, language);
    Ok(ok(if is_pressed { after } else { asks() }))
}

/// A page of a form, which may have a logo and lead elsewhere.
fn form_reply(status: StatusCode, page: Bytes, form: &Form) -> Reply {
    let logo = form.theme.logo_url.as_deref().and_then(origin_of);
    let target = form.redirect_url.as_deref().and_then(origin_of);
    reply::form_page(status, page, logo, target)
}

async fn show_form(app: &App, request: &ReaderRequest<'_>) -> Result<Reply, Error> {
    let language = preferred(&request.head.headers).unwrap_or_default();
    let Some(page) = app.form_page(request.token).await? else { return Ok(unknown(language)) };
    Ok(form_reply(StatusCode::OK, reader_page::form(&page, &FormState::default(), language), &page.form))
}

/// The site that a page asks from, if the form allows it.
fn allowed_origin<'a>(headers: &'a HeaderMap, form: &Form) -> Option<&'a HeaderValue> {
    let origin = headers.get(ORIGIN)?;
    form.allowed_origins.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes()).then_some(origin)
}

/// Lets the scripts of an allowed site read an answer.
fn allow(reply: &mut Reply, origin: Option<&HeaderValue>) {
    if let Some(origin) = origin {
        reply.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    }
    reply.headers_mut().insert(VARY, HeaderValue::from_static("Origin"));
}

async fn preflight(app: &App, request: &ReaderRequest<'_>) -> Result<Reply, Error> {
    let Some(page) = app.form_page(request.token).await? else { return Err(Error::NotFound) };
    let mut reply = reply::bare(StatusCode::NO_CONTENT);
    let origin = allowed_origin(&request.head.headers, &page.form);
    allow(&mut reply, origin);
    if origin.is_some() {
        let grants: [(HeaderName, &'static str); 3] = [
            (ACCESS_CONTROL_ALLOW_METHODS, "POST"),
            (ACCESS_CONTROL_ALLOW_HEADERS, "content-type"),
            (ACCESS_CONTROL_MAX_AGE, "3600"),
        ];
        for (name, value) in grants {
            reply.headers_mut().insert(name, HeaderValue::from_static(value));
        }
    }
    Ok(reply)
}

fn is_json(headers: &HeaderMap) -> bool {
    let media = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    media.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

async fn post_to_form(app: &App, request: &ReaderRequest<'_>) -> Result<Reply, Error> {
    let headers = &request.head.headers;
    let language = preferred(headers);
    let Some(page) = app.form_page(request.token).await? else { return Ok(unknown(language.unwrap_or_default())) };
    if is_json(headers) {
        let mut reply = match post_json(app, request, &page, language).await {
            Ok(reply) => reply,
            Err(error) => reply::refusal(&error, request.request_id),
        };
        allow(&mut reply, allowed_origin(headers, &page.form));
        return Ok(reply);
    }
    let answers = fields(request.body);
    let one = |name: &str| answers.iter().find(|(known, _)| known == name).map(|(_, text)| text.clone());
    let post =
        FormPost { trap: one(TRAP).unwrap_or_default(), started: one(STARTED), needs_page: true, language, answers };
    let shown = language.unwrap_or_default();
    let state = match app.post_to_form(&page, &post, &reader(headers, request.client)).await? {
        Posted::Taken => return Ok(taken(&page, shown)),
        Posted::OutOfTime => FormState { answers: &post.answers, faults: None, again: true },
        Posted::Invalid(faults) => {
            let state = FormState { answers: &post.answers, faults: Some(&faults), again: false };
            let html = reader_page::form(&page, &state, shown);
            return Ok(form_reply(StatusCode::UNPROCESSABLE_ENTITY, html, &page.form));
        }
    };
    Ok(form_reply(StatusCode::OK, reader_page::form(&page, &state, shown), &page.form))
}

/// What follows a post that was taken, the same for every address.
fn taken(page: &FormPage, language: Language) -> Reply {
    if let Some(target) = page.form.redirect_url.as_deref().and_then(|url| HeaderValue::from_str(url).ok()) {
        let mut reply = reply::bare(StatusCode::SEE_OTHER);
        reply.headers_mut().insert(LOCATION, target);
        return reply;
    }
    ok(if page.is_double() { reader_page::mail_sent(language) } else { reader_page::subscribed(language) })
}

/// A post of a script or a program. Browsers ask first whether a site may post JSON: see [`preflight`].
async fn post_json(
    app: &App,
    request: &ReaderRequest<'_>,
    page: &FormPage,
    language: Option<Language>,
) -> Result<Reply, Error> {
    let headers = &request.head.headers;
    let Ok(Value::Object(members)) = serde_json::from_slice(request.body) else { return Err(Error::InvalidJson(None)) };
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let mut answers: Vec<(String, String)> = Vec::new();
    for (name, value) in members.iter().take(MAX_FIELDS) {
        match value {
            Value::Object(inner) if name == "attributes" => {
                answers.extend(
                    inner.iter().take(MAX_FIELDS).map(|(key, value)| (format!("attributes.{key}"), text(value))),
                );
            }
            value => answers.push((name.clone(), text(value))),
        }
    }
    let one = |name: &str| answers.iter().find(|(known, _)| known == name).map(|(_, text)| text.clone());
    let post =
        FormPost { trap: one(TRAP).unwrap_or_default(), started: one(STARTED), needs_page: false, language, answers };
    match app.post_to_form(page, &post, &reader(headers, request.client)).await? {
        Posted::Taken => {
            let status = if page.is_double() { "confirmation_sent" } else { "subscribed" };
            Ok(reply::json(StatusCode::OK, json!({"status": status}).to_string().into()))
        }
        Posted::OutOfTime => {
            let rule = "is no token of a page of this form, or too young or too old";
            Err(refuse("/started", FieldCode::NotAllowed, rule).into())
        }
        Posted::Invalid(faults) => Err(faults.into()),
    }
}

/// The fields of an url-encoded form.
fn fields(body: &[u8]) -> Vec<(String, String)> {
    form_urlencoded::parse(body).take(MAX_FIELDS).map(|(name, text)| (name.into_owned(), text.into_owned())).collect()
}

/// Workspace and message that the link of preferences names.
fn named(app: &App, token: &str) -> Option<(WorkspaceId, MessageId)> {
    match app.link_key().read_link(token)? {
        (workspace, message, Link::Preferences) => Some((workspace, message)),
        _ => None,
    }
}

async fn preferences(app: &App, request: &ReaderRequest<'_>) -> Result<Reply, Error> {
    let language = preferred(&request.head.headers).unwrap_or_default();
    let Some((workspace, message)) = named(app, request.token) else { return Ok(unknown(language)) };
    preferences_page(app, (workspace, message), (false, false), language).await
}

/// The page of preferences as it is now.
async fn preferences_page(
    app: &App,
    (workspace, message): (WorkspaceId, MessageId),
    (is_saved, bad_address): (bool, bool),
    language: Language,
) -> Result<Reply, Error> {
    Ok(match app.preferences(workspace, message).await? {
        Followed::Found(page) => {
            let language = page.language.unwrap_or(language);
            let status = if bad_address { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
            reply::private_page(status, reader_page::preferences(&page, is_saved, bad_address, language))
        }
        Followed::Expired => expired(language),
        Followed::Unknown => unknown(language),
    })
}

async fn set_preferences(app: &App, request: &ReaderRequest<'_>) -> Result<Reply, Error> {
    let headers = &request.head.headers;
    let language = preferred(headers).unwrap_or_default();
    let Some((workspace, message)) = named(app, request.token) else { return Ok(unknown(language)) };
    let (reader, fields) = (reader(headers, request.client), fields(request.body));
    let one = |name: &str| fields.iter().find(|(known, _)| known == name).map(|(_, text)| text.as_str());
    let shown = match app.preferences(workspace, message).await? {
        Followed::Found(ReaderPage { language: own, .. }) => own.unwrap_or(language),
        Followed::Expired => return Ok(expired(language)),
        Followed::Unknown => return Ok(unknown(language)),
    };
    let mail = match one("action").unwrap_or("save") {
        "stop" => {
            let scope = (UnsubscribeMethod::Link, UnsubscribeScope::Everything);
            app.unsubscribe_from(workspace, message, scope, &reader).await?;
            return Ok(ok(reader_page::done(shown)));
        }
        "data" => return data(app, (workspace, message), shown).await,
        "address" => (ReaderMail::ChangeAddress, one("address")),
        "erase" => (ReaderMail::Erase, None),
        _ => {
            let all = |name: &'static str| fields.iter().filter(move |(known, _)| known == name);
            let preferences = Preferences {
                shown: all("shown").filter_map(|(_, text)| text.parse().ok()).collect(),
                wanted: all("list").filter_map(|(_, text)| text.parse().ok()).collect(),
                language: one("language").and_then(Language::of_tag),
            };
            app.set_preferences(workspace, message, &preferences, &reader).await?;
            return preferences_page(app, (workspace, message), (true, false), language).await;
        }
    };
    match app.ask_reader(workspace, message, mail, &reader).await {
        Ok(_) => Ok(ok(reader_page::mail_sent(shown))),
        Err(Error::Validation(_)) => preferences_page(app, (workspace, message), (false, true), language).await,
        Err(error) => Err(error),
    }
}

async fn data(app: &App, (workspace, message): (WorkspaceId, MessageId), language: Language) -> Result<Reply, Error> {
    match app.reader_data(workspace, message).await? {
        Followed::Found(data) => {
            let mut reply = reply::json(StatusCode::OK, data.to_string().into());
            reply::private(&mut reply);
            Ok(reply)
        }
        Followed::Expired => Ok(expired(language)),
        Followed::Unknown => Ok(unknown(language)),
    }
}
