//! Templates made of HTML from elsewhere.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::limits::{MAX_NAME, MAX_SUBJECT, MAX_URL};
use messaging_core::domain::template::{Design, gate, import};
use messaging_core::input::{Empty, Input};
use messaging_core::ports::fetch::{FetchError, FetchRequest, Protocol, UrlFault};
use messaging_core::scope::{Access, Scope};
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::{FieldCode, Violations, refuse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use super::{TemplateView, create};
use crate::error::{Error, Unprocessable};
use crate::ops::context::Context;
use crate::ops::operation::{Call, InWorkspace, Operation};

/// A page is read within so much time, bytes and redirects (contract section 11).
const TIME_LIMIT: Duration = Duration::from_secs(10);
const BODY_LIMIT: usize = 2 << 20;
const REDIRECTS: u8 = 3;

/// HTML to make a template of.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ImportHtmlInput {
    /// 1 to 200 characters.
    #[validate(length(min = 1, max = MAX_NAME))]
    pub name: String,
    /// The HTML, at most 2 MiB.
    #[validate(length(min = 1))]
    pub html: String,
    /// The subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(max = MAX_SUBJECT))]
    pub subject: Option<String>,
}

impl Input for ImportHtmlInput {
    fn check(&self, violations: &mut Violations) {
        check_subject(self.subject.as_deref(), violations);
        if self.html.len() > gate::MAX_SOURCE {
            violations.add("/html", FieldCode::TooLong, "must be at most 2 MiB");
        }
    }
}

fn check_subject(subject: Option<&str>, violations: &mut Violations) {
    if subject.is_some_and(|subject| subject.chars().any(char::is_control)) {
        violations.add("/subject", FieldCode::InvalidFormat, "must be one line without control characters");
    }
}

/// The design of an email made of a page.
fn design(name: String, html: String, subject: Option<String>) -> Design {
    let subject = subject.filter(|subject| !subject.is_empty());
    let html = Some(html).filter(|html| !html.is_empty());
    Design { name, html, subject, inline_css: true, ..Design::default() }
}

/// `POST /workspaces/{workspace_id}/templates/import-html`
pub struct ImportHtmlTemplate;

impl Operation for ImportHtmlTemplate {
    const ID: &'static str = "importHtmlTemplate";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/templates/import-html";
    const ACCESS: Access = Access::Scope(Scope::TemplatesWrite);
    const SUCCESS: StatusCode = StatusCode::CREATED;
    const CLI: &'static str = "template import-html";
    const SUMMARY: &'static str = "Create an email template of HTML";
    type Path = InWorkspace;
    type Query = Empty;
    type Body = ImportHtmlInput;
    type Output = TemplateView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<TemplateView, Error> {
        let ImportHtmlInput { name, html, subject } = call.body;
        create(cx, call.path.workspace_id, Channel::Email, design(name, html, subject)).await
    }
}

/// A page to make a template of.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ImportUrlInput {
    /// 1 to 200 characters.
    #[validate(length(min = 1, max = MAX_NAME))]
    pub name: String,
    /// The address of an HTML page: https, on the public internet.
    #[validate(length(min = 1, max = MAX_URL))]
    pub url: String,
    /// The subject; the page's title when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(max = MAX_SUBJECT))]
    pub subject: Option<String>,
}

impl Input for ImportUrlInput {
    fn check(&self, violations: &mut Violations) {
        check_subject(self.subject.as_deref(), violations);
    }
}

/// `POST /workspaces/{workspace_id}/templates/import-url`
pub struct ImportUrlTemplate;

impl Operation for ImportUrlTemplate {
    const ID: &'static str = "importUrlTemplate";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/templates/import-url";
    const ACCESS: Access = Access::Scope(Scope::TemplatesWrite);
    const SUCCESS: StatusCode = StatusCode::CREATED;
    const CLI: &'static str = "template import-url";
    const SUMMARY: &'static str = "Create an email template of a web page";
    type Path = InWorkspace;
    type Query = Empty;
    type Body = ImportUrlInput;
    type Output = TemplateView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<TemplateView, Error> {
        let ImportUrlInput { name, url, subject } = call.body;
        let (page, html) = read(cx, url).await?;
        let title = || import::title(&html, usize::try_from(MAX_SUBJECT).unwrap_or(usize::MAX));
        let subject = subject.filter(|subject| !subject.is_empty()).or_else(title);
        let html = import::absolute(&html, &page);
        let created = create(cx, call.path.workspace_id, Channel::Email, design(name, html, subject)).await;
        match created {
            // What is wrong with the page is wrong with its address: the request has no other member for it.
            Err(Error::Validation(violations)) => {
                let first = violations.as_slice().first().map_or_else(String::new, |first| first.message.clone());
                Err(refuse("/url", FieldCode::Syntax, first).into())
            }
            created => created,
        }
    }
}

/// The page behind an address, and where it stands in the end.
async fn read(cx: &Context<'_>, url: String) -> Result<(Url, String), Error> {
    let fetch = cx.app.fetch();
    match fetch.check(&url) {
        Ok(()) => {}
        Err(UrlFault::Malformed) => return Err(refuse("/url", FieldCode::InvalidFormat, UrlFault::Malformed).into()),
        Err(UrlFault::NotAllowed) => return Err(Unprocessable::UrlNotAllowed.into()),
    }
    let accept = HeaderValue::from_static("text/html, application/xhtml+xml");
    let request = FetchRequest {
        protocol: Protocol::Http1,
        method: Method::GET,
        url,
        headers: HeaderMap::from_iter([(header::ACCEPT, accept)]),
        body: Bytes::new(),
        time_limit: TIME_LIMIT,
        body_limit: BODY_LIMIT,
        redirects: REDIRECTS,
    };
    let fetched = fetch.fetch(request).await.map_err(|error| match error {
        FetchError::Blocked => Unprocessable::UrlNotAllowed,
        _ => Unprocessable::UrlFetchFailed,
    })?;
    let content_type =
        fetched.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_html = matches!(media_type.as_str(), "text/html" | "application/xhtml+xml");
    let html = import::decoded(&fetched.body, content_type).filter(|html| !html.trim().is_empty());
    let page = Url::parse(&fetched.url).ok();
    match (page, html) {
        (Some(page), Some(html)) if fetched.status.is_success() && is_html && !fetched.truncated => Ok((page, html)),
        _ => Err(Unprocessable::UrlFetchFailed.into()),
    }
}
