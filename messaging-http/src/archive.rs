//! Archives of campaigns: `GET /a/…`.
//!
//! Contract section 23. Everybody may read them, and caches may keep them for a while. A mail is shown as it was
//! written, but its page is a sandbox in which nothing runs, and which has no origin.

mod feed;

use std::fmt::Write as _;

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, ETAG, HeaderName, LAST_MODIFIED, RETRY_AFTER, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};
use messaging_core::domain::audience::reader_texts::{ReaderText, escaped};
use messaging_core::domain::security::digest::Digest;
use messaging_core::error::Chain;
use messaging_core::ids::{CampaignId, WorkspaceId};
use messaging_core::time::Timestamp;
use messaging_engine::services::archive::ArchivePage;
use messaging_engine::{App, Error};

use crate::images::is_known;
use crate::reader_page::{self, Words};
use crate::readers::preferred;
use crate::reply::{self, Reply, X_ROBOTS_TAG};

/// Campaigns of a page.
const PAGE: usize = 20;

/// Campaigns of a feed.
const FEED: usize = 50;

/// Seconds for which caches may keep an answer without asking again.
const CACHING: &str = "public, max-age=300";

/// Policy of a page of ours.
const OWN_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Policy of a mail, which may show pictures and styles from anywhere and run nothing; its links open as usual.
const MAIL_POLICY: &str = "default-src 'none'; img-src http: https: data:; style-src 'unsafe-inline'; base-uri 'none'; \
                           form-action 'none'; frame-ancestors 'none'; \
                           sandbox allow-popups allow-popups-to-escape-sandbox";

/// A page of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArchiveRoute {
    /// The campaigns, the latest first.
    Index,
    /// A campaign.
    Mail,
    /// The campaigns as an Atom feed.
    Feed,
}

impl ArchiveRoute {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::Index, Self::Mail, Self::Feed];

    /// The method of all of them.
    pub(crate) const METHOD: Method = Method::GET;

    /// The path.
    pub(crate) const fn route(self) -> &'static str {
        match self {
            Self::Index => "/a/{workspace_id}",
            Self::Mail => "/a/{workspace_id}/{campaign_id}",
            Self::Feed => "/a/{workspace_id}/feed.xml",
        }
    }
}

/// Answers a request of an archive; `workspace` and `campaign` are the texts of the path.
pub(crate) async fn answer(app: &App, route: ArchiveRoute, workspace: &str, campaign: &str, head: &Parts) -> Reply {
    let Ok(workspace) = workspace.parse() else { return unknown(head) };
    let answered = match route {
        ArchiveRoute::Index => index(app, workspace, head).await,
        ArchiveRoute::Mail => mail(app, workspace, campaign, head).await,
        ArchiveRoute::Feed => feed(app, workspace, head).await,
    };
    answered.unwrap_or_else(|error| {
        tracing::error!(error = %Chain(&error), "a page of an archive could not be answered");
        let page = reader_page::trouble(&words(head));
        let mut reply = reply::private_page(StatusCode::SERVICE_UNAVAILABLE, page);
        reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from(error.retry_after().unwrap_or(5)));
        reply
    })
}

fn words(head: &Parts) -> Words {
    preferred(&head.headers).unwrap_or_default().into()
}

/// The same answer for a missing archive and for a campaign that it does not show.
fn unknown(head: &Parts) -> Reply {
    reply::private_page(StatusCode::NOT_FOUND, reader_page::unknown(&words(head)))
}

async fn index(app: &App, workspace: WorkspaceId, head: &Parts) -> Result<Reply, Error> {
    let query = head.uri.query().unwrap_or_default();
    let before = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "before");
    let before = match before.map(|(_, text)| text.parse::<CampaignId>()) {
        None => None,
        Some(Ok(id)) => Some(id),
        Some(Err(_)) => return Ok(unknown(head)),
    };
    let Some(page) = app.archive_page(workspace, before, PAGE).await? else { return Ok(unknown(head)) };
    let words = Words::new(preferred(&head.headers).unwrap_or_default(), Some(page.workspace.clone()));
    let latest = page.entries.first().map(|entry| entry.sent_at);
    let mut reply = cached(head, index_page(&page, &words), reply::HTML, OWN_POLICY, latest, page.archive().indexed);
    reply.headers_mut().insert(VARY, HeaderValue::from_static("Accept-Language"));
    Ok(reply)
}

fn index_page(page: &ArchivePage, words: &Words) -> String {
    let (title, feed) = (escaped(page.title()), escaped(&format!("{}/feed.xml", page.url)));
    let mut content = format!("<h1 dir=\"auto\">{title}</h1>");
    if page.entries.is_empty() {
        let _ = write!(content, "<p>{}</p>", words.say(ReaderText::ArchiveEmpty));
    } else {
        content.push_str("<ul>");
        for entry in &page.entries {
            let (url, title, day) = (escaped(&entry.url), escaped(&entry.title), &entry.day);
            let _ = write!(
                content,
                "<li><a dir=\"auto\" href=\"{url}\">{title}</a><small><time datetime=\"{}\">{day}</time></small></li>",
                entry.sent_at
            );
        }
        content.push_str("</ul>");
    }
    if let Some(older) = page.older {
        let label = words.say(ReaderText::ArchiveOlder);
        let _ = write!(content, "<p><a rel=\"next\" href=\"{}?before={older}\">{label}</a></p>", escaped(&page.url));
    }
    let head = format!("<link rel=\"alternate\" type=\"application/atom+xml\" title=\"{title}\" href=\"{feed}\">");
    reader_page::document(&title, &head, &content, words.language())
}

async fn mail(app: &App, workspace: WorkspaceId, campaign: &str, head: &Parts) -> Result<Reply, Error> {
    let Ok(campaign) = campaign.parse() else { return Ok(unknown(head)) };
    let Some(mail) = app.archived_mail(workspace, campaign).await? else { return Ok(unknown(head)) };
    let (page, policy) = if let Some(html) = mail.html {
        (html, MAIL_POLICY)
    } else {
        let title = escaped(&mail.title);
        let text = format!(
            "<h1 dir=\"auto\">{title}</h1><p dir=\"auto\" style=\"white-space:pre-wrap\">{}</p>",
            escaped(&mail.text)
        );
        (reader_page::document(&title, "", &text, words(head).language()), OWN_POLICY)
    };
    Ok(cached(head, page, reply::HTML, policy, Some(mail.sent_at), mail.indexed))
}

async fn feed(app: &App, workspace: WorkspaceId, head: &Parts) -> Result<Reply, Error> {
    let Some(page) = app.archive_page(workspace, None, FEED).await? else { return Ok(unknown(head)) };
    let latest = page.entries.first().map(|entry| entry.sent_at);
    Ok(cached(head, feed::atom(&page), feed::MEDIA_TYPE, OWN_POLICY, latest, page.archive().indexed))
}

/// An answer that caches may keep, or 304 if the client has it. Only the content decides: a campaign can be removed
/// from an archive, after which the time of its latest campaign is an earlier one.
fn cached(
    head: &Parts,
    body: String,
    media_type: &'static str,
    policy: &'static str,
    latest: Option<Timestamp>,
    is_indexed: bool,
) -> Reply {
    let tag = format!("\"{}\"", Digest::of(&body).to_text());
    let mut reply = if is_known(&head.headers, &tag) {
        reply::bare(StatusCode::NOT_MODIFIED)
    } else {
        reply::file(StatusCode::OK, media_type, Bytes::from(body))
    };
    let headers = reply.headers_mut();
    let fixed: [(HeaderName, &'static str); 3] =
        [(CACHE_CONTROL, CACHING), (CONTENT_SECURITY_POLICY, policy), (X_CONTENT_TYPE_OPTIONS, "nosniff")];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if !is_indexed {
        headers.insert(X_ROBOTS_TAG, HeaderValue::from_static("noindex"));
    }
    let modified = latest.map(|at| at.to_jiff().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string());
    for (name, value) in [(ETAG, Some(tag)), (LAST_MODIFIED, modified)] {
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            headers.insert(name, value);
        }
    }
    reply
}
