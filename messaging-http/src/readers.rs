//! Pages for readers that do not belong to one message: confirmations, forms, preferences.
//!
//! Contract section 23. As with visits, the token is the only credential.

use std::net::IpAddr;

use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_LANGUAGE, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_MAX_AGE, CACHE_CONTROL, CONTENT_TYPE, ETAG, LOCATION, ORIGIN, RETRY_AFTER, USER_AGENT, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use messaging_core::domain::audience::form::{Form, PROOF, STARTED, TRAP, origin_of};
use messaging_core::domain::audience::reader_texts::{Language, ReaderText};
use messaging_core::domain::audience::unsubscribe::UnsubscribeMethod;
use messaging_core::domain::mail::link_token::Link;
use messaging_core::domain::security::digest::Digest;
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

use crate::images::is_known;
use crate::reader_page::{self, FormState, Words};
use crate::reply::{self, Reply};

/// The longest body that is read.
pub(crate) const MAX_BODY: usize = 64 << 10;

/// Fields of a post that are read, at most.
const MAX_FIELDS: usize = 300;

/// Purpose of a page for readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReaderRoute {
    /// The page that asks for a confirmation.
    AskToConfirm,
    /// The confirmation itself.
    Confirm,
    /// The page of a form.
    ShowForm,
    /// A post to a form.
    PostToForm,
    /// The request by which a browser asks if a page may post to a form.
    FormPreflight,
    /// The page of preferences.
    ShowPreferences,
    /// A change of preferences.
    SetPreferences,
    /// The script that makes the proof of work of a form.
    FormScript,
}

impl ReaderRoute {
    /// All of them.
    pub(crate) const ALL: [Self; 8] = [
        Self::AskToConfirm,
        Self::Confirm,
        Self::ShowForm,
        Self::PostToForm,
        Self::FormPreflight,
        Self::ShowPreferences,
        Self::SetPreferences,
        Self::FormScript,
    ];

    /// The path.
    pub(crate) const fn route(self) -> &'static str {
        match self {
            Self::AskToConfirm | Self::Confirm => "/c/{token}",
            Self::ShowForm | Self::PostToForm | Self::FormPreflight => "/f/{token}",
            Self::ShowPreferences | Self::SetPreferences => "/p/{token}",
            Self::FormScript => "/f/proof.js",
        }
    }

    /// The method.
    pub(crate) const fn method(self) -> Method {
        match self {
            Self::AskToConfirm | Self::ShowForm | Self::ShowPreferences | Self::FormScript => Method::GET,
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
        ReaderRoute::FormScript => Ok(form_script(&request.head.headers)),
    };
    answered.unwrap_or_else(|error| failed(&error, &language.into()))
}

/// The page for an error, which says that nothing was changed.
fn failed(error: &Error, words: &Words) -> Reply {
    let (status, page) = match error {
        Error::RateLimited { .. } => (StatusCode::TOO_MANY_REQUESTS, reader_page::limited(words)),
        Error::NotFound => (StatusCode::NOT_FOUND, reader_page::unknown(words)),
        _ => {
            tracing::error!(error = %Chain(error), "a page for a reader could not be answered");
            (StatusCode::SERVICE_UNAVAILABLE, reader_page::trouble(words))
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

fn unknown(words: &Words) -> Reply {
    reply::private_page(StatusCode::NOT_FOUND, reader_page::unknown(words))
}

fn expired(words: &Words) -> Reply {
    reply::private_page(StatusCode::GONE, reader_page::expired(words))
}

/// The texts of a workspace in the language that a request prefers.
pub(crate) async fn words_of(app: &App, workspace: WorkspaceId, language: Option<Language>) -> Result<Words, Error> {
    Ok(Words::new(language.unwrap_or_default(), app.workspace(workspace).await?))
}

/// Shows the page of a link to confirm, or confirms it.
async fn confirm(app: &App, request: &ReaderRequest<'_>, is_pressed: bool) -> Result<Reply, Error> {
    let language = preferred(&request.head.headers);
    let Some((workspace, message, link)) = app.link_key().read_link(request.token) else {
        return Ok(unknown(&language.unwrap_or_default().into()));
    };
    let words = words_of(app, workspace, language).await?;
    let reader = reader(&request.head.headers, request.client);
    let followed = match (link, is_pressed) {
        (Link::Confirm, false) => app.subscription_to_confirm(workspace, message).await?,
        (Link::Confirm, true) => app.confirm_subscription(workspace, message, &reader).await?,
        (Link::ChangeAddress | Link::Erase, false) => app.reader_to_confirm(workspace, message).await?,
        (Link::ChangeAddress, true) => app.change_reader_address(workspace, message).await?,
        (Link::Erase, true) => app.erase_reader(workspace, message).await?,
        _ => return Ok(unknown(&words)),
    };
    let page = match followed {
        Followed::Found(page) => page,
        Followed::Expired => return Ok(expired(&words)),
        Followed::Unknown => return Ok(unknown(&words)),
    };
    let words = &words.or_in(page.language);
    let (title, text, button, after) = match link {
        Link::ChangeAddress => (
            ReaderText::AddressTitle,
            ReaderText::AddressText,
            ReaderText::ConfirmButton,
            reader_page::happened(ReaderText::AddressDone, words),
        ),
        Link::Erase => (
            ReaderText::EraseTitle,
            ReaderText::EraseText,
            ReaderText::EraseTitle,
            reader_page::happened(ReaderText::EraseDone, words),
        ),
        _ => (
            ReaderText::ConfirmTitle,
            ReaderText::ConfirmText,
            ReaderText::ConfirmButton,
            reader_page::subscribed(words),
        ),
    };
    let asks = || reader_page::press((title, text), &page.lists, button, words);
    Ok(ok(if is_pressed { after } else { asks() }))
}

/// A page of a form, which may have a logo and redirect to another site.
fn form_reply(status: StatusCode, state: &FormState<'_>, page: &FormPage, words: &Words) -> Reply {
    let logo = page.form.theme.logo_url.as_deref().and_then(origin_of);
    let target = page.form.redirect_url.as_deref().and_then(origin_of);
    let script = if page.pow_bits > 0 { "'self'" } else { "'none'" };
    reply::form_page(status, reader_page::form(page, state, words), logo, target, script)
}

async fn show_form(app: &App, request: &ReaderRequest<'_>) -> Result<Reply, Error> {
    let headers = &request.head.headers;
    let language = preferred(headers);
    let Some(page) = app.form_page(request.token).await? else {
        return Ok(unknown(&language.unwrap_or_default().into()));
    };
    if wants_json(headers) {
        // Values that a script needs to post JSON.
        let body = json!({"started": page.started, "pow_bits": page.pow_bits});
        let mut reply = reply::json(StatusCode::OK, body.to_string().into());
        reply::private(&mut reply);
        allow(&mut reply, allowed_origin(headers, &page.form));
        return Ok(reply);
    }
    let words = words_of(app, page.form.workspace_id, language).await?;
    Ok(form_reply(StatusCode::OK, &FormState::default(), &page, &words))
}

/// The script of the page of a form that asks for a proof of work.
fn form_script(headers: &HeaderMap) -> Reply {
    const SCRIPT: &str = include_str!("form_proof.js");
    let tag = format!("\"{}\"", Digest::of(SCRIPT).to_text());
    let mut reply = if is_known(headers, &tag) {
        reply::bare(StatusCode::NOT_MODIFIED)
    } else {
        reply::file(StatusCode::OK, "text/javascript; charset=utf-8", Bytes::from_static(SCRIPT.as_bytes()))
    };
    let headers = reply.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Ok(tag) = HeaderValue::try_from(tag) {
        headers.insert(ETAG, tag);
    }
    reply
}

/// The origin of the requesting page, if the form allows it.
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

/// True if a request asks for JSON rather than for a page.
fn wants_json(headers: &HeaderMap) -> bool {
    let accepted = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accepted.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

fn is_json(headers: &HeaderMap) -> bool {
    let media = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    media.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

async fn post_to_form(app: &App, request: &ReaderRequest<'_>) -> Result<Reply, Error> {
    let headers = &request.head.headers;
    let language = preferred(headers);
    let Some(page) = app.form_page(request.token).await? else {
        return Ok(unknown(&language.unwrap_or_default().into()));
    };
    if is_json(headers) {
        let mut reply = match post_json(app, request, &page, language).await {
            Ok(reply) => reply,
            Err(error) => reply::refusal(&error, request.request_id),
        };
        allow(&mut reply, allowed_origin(headers, &page.form));
        return Ok(reply);
    }
    let words = words_of(app, page.form.workspace_id, language).await?;
    let post = FormPost { needs_page: true, ..form_post(fields(request.body), language) };
    let state = match app.post_to_form(&page, &post, &reader(headers, request.client)).await? {
        Posted::Taken => return Ok(taken(&page, &words)),
        Posted::OutOfTime | Posted::Unproved => FormState { answers: &post.answers, faults: None, again: true },
        Posted::Invalid(faults) => {
            let state = FormState { answers: &post.answers, faults: Some(&faults), again: false };
            return Ok(form_reply(StatusCode::UNPROCESSABLE_ENTITY, &state, &page, &words));
        }
    };
    Ok(form_reply(StatusCode::OK, &state, &page, &words))
}

/// The post of a form, with the fields that are no answers separated.
fn form_post(answers: Vec<(String, String)>, language: Option<Language>) -> FormPost {
    let one = |name: &str| answers.iter().find(|(known, _)| known == name).map(|(_, text)| text.clone());
    let (trap, started, proof) = (one(TRAP).unwrap_or_default(), one(STARTED), one(PROOF));
    FormPost { trap, started, proof, needs_page: false, language, answers }
}

/// The answer to an accepted post, the same for every address.
fn taken(page: &FormPage, words: &Words) -> Reply {
    if let Some(target) = page.form.redirect_url.as_deref().and_then(|url| HeaderValue::from_str(url).ok()) {
        let mut reply = reply::bare(StatusCode::SEE_OTHER);
        reply.headers_mut().insert(LOCATION, target);
        return reply;
    }
    ok(if page.is_double() { reader_page::mail_sent(words) } else { reader_page::subscribed(words) })
}

/// A post of a script or a program. Browsers ask first if a site may post JSON: see [`preflight`].
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
    let post = form_post(answers, language);
    match app.post_to_form(page, &post, &reader(headers, request.client)).await? {
        Posted::Taken => {
            let status = if page.is_double() { "confirmation_sent" } else { "subscribed" };
            Ok(reply::json(StatusCode::OK, json!({"status": status}).to_string().into()))
        }
        Posted::OutOfTime => {
            let rule = "is not the `started` of a page of this form, or the post came less than two seconds or more than a day after \
                        the page: ask for a new one with GET";
            Err(refuse("/started", FieldCode::NotAllowed, rule).into())
        }
        Posted::Unproved => {
            let rule = format_args!(
                "must be a number that proves {} bits of work for a `started` that was not used before",
                page.pow_bits
            );
            Err(refuse("/proof", FieldCode::Required, rule).into())
        }
        Posted::Invalid(faults) => Err(faults.into()),
    }
}

/// The fields of an url-encoded form.
fn fields(body: &[u8]) -> Vec<(String, String)> {
    form_urlencoded::parse(body).take(MAX_FIELDS).map(|(name, text)| (name.into_owned(), text.into_owned())).collect()
}

/// Workspace and message of a link to preferences.
fn named(app: &App, token: &str) -> Option<(WorkspaceId, MessageId)> {
    match app.link_key().read_link(token)? {
        (workspace, message, Link::Preferences) => Some((workspace, message)),
        _ => None,
    }
}

async fn preferences(app: &App, request: &ReaderRequest<'_>) -> Result<Reply, Error> {
    let language = preferred(&request.head.headers);
    let Some((workspace, message)) = named(app, request.token) else {
        return Ok(unknown(&language.unwrap_or_default().into()));
    };
    let words = words_of(app, workspace, language).await?;
    preferences_page(app, (workspace, message), (false, false), words).await
}

/// The page of preferences as it is now.
async fn preferences_page(
    app: &App,
    (workspace, message): (WorkspaceId, MessageId),
    (is_saved, bad_address): (bool, bool),
    words: Words,
) -> Result<Reply, Error> {
    Ok(match app.preferences(workspace, message).await? {
        Followed::Found(page) => {
            let words = words.or_in(page.language);
            let status = if bad_address { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
            reply::private_page(status, reader_page::preferences(&page, is_saved, bad_address, &words))
        }
        Followed::Expired => expired(&words),
        Followed::Unknown => unknown(&words),
    })
}

async fn set_preferences(app: &App, request: &ReaderRequest<'_>) -> Result<Reply, Error> {
    let headers = &request.head.headers;
    let language = preferred(headers);
    let Some((workspace, message)) = named(app, request.token) else {
        return Ok(unknown(&language.unwrap_or_default().into()));
    };
    let words = words_of(app, workspace, language).await?;
    let (reader, fields) = (reader(headers, request.client), fields(request.body));
    let one = |name: &str| fields.iter().find(|(known, _)| known == name).map(|(_, text)| text.as_str());
    let shown = match app.preferences(workspace, message).await? {
        Followed::Found(ReaderPage { language: own, .. }) => words.clone().or_in(own),
        Followed::Expired => return Ok(expired(&words)),
        Followed::Unknown => return Ok(unknown(&words)),
    };
    let mail = match one("action").unwrap_or("save") {
        "stop" => {
            let scope = (UnsubscribeMethod::Link, UnsubscribeScope::Everything);
            app.unsubscribe_from(workspace, message, scope, &reader).await?;
            return Ok(ok(reader_page::done(&shown)));
        }
        "data" => return data(app, (workspace, message), &shown).await,
        "address" => (ReaderMail::ChangeAddress, one("address")),
        "erase" => (ReaderMail::Erase, None),
        _ => {
            let all = |name: &'static str| fields.iter().filter(move |(known, _)| known == name);
            let preferences = Preferences {
                shown: all("shown").filter_map(|(_, text)| text.parse().ok()).collect(),
                wanted: all("list").filter_map(|(_, text)| text.parse().ok()).collect(),
                weekly: all("shown").any(|(_, text)| text == "weekly").then(|| one("weekly").is_some()),
                language: one("language").and_then(Language::of_tag),
            };
            app.set_preferences(workspace, message, &preferences, &reader).await?;
            return preferences_page(app, (workspace, message), (true, false), words).await;
        }
    };
    match app.ask_reader(workspace, message, mail, &reader).await {
        Ok(_) => Ok(ok(reader_page::mail_sent(&shown))),
        Err(Error::Validation(_)) => preferences_page(app, (workspace, message), (false, true), words).await,
        Err(error) => Err(error),
    }
}

async fn data(app: &App, (workspace, message): (WorkspaceId, MessageId), words: &Words) -> Result<Reply, Error> {
    match app.reader_data(workspace, message).await? {
        Followed::Found(data) => {
            let mut reply = reply::json(StatusCode::OK, data.to_string().into());
            reply::private(&mut reply);
            Ok(reply)
        }
        Followed::Expired => Ok(expired(words)),
        Followed::Unknown => Ok(unknown(words)),
    }
}
