//! Tracking links in HTML email: rewriting of links, and the open pixel.
//!
//! Contract section 18. Text that is not rewritten stays byte for byte as the sender wrote it: a tokenizer finds the
//! links in the markup, and only the values of `href` are replaced. Parsing into a tree and writing it out again would
//! change how mail programs read malformed markup, which most mail has. The time is linear in the length of the input.

pub mod footer;
mod markup;
#[cfg(test)]
mod tests;
mod url_text;
pub mod utm;

use std::borrow::Cow;
use std::collections::HashSet;

use crate::domain::campaign::settings::Utm;
use crate::domain::mail::link_token::{Link, LinkKey, UrlKey};
use crate::domain::mail::sending_domain::{RecordStatus, SendingDomain};
use crate::ids::{MessageId, WorkspaceId};

pub use url_text::ascii;
use url_text::{is_web, trimmed};

/// Maximum number of links of a message that are redirected; further ones lead straight to their target.
pub const MAX_LINKS: usize = 1000;

/// Maximum number of links of a campaign that are counted separately (contract section 20).
pub const MAX_NUMBERED: usize = 64;

/// Maximum length of a redirected target, in bytes: the answer to a click must pass through every proxy.
pub const MAX_URL: usize = 4096;

/// Path of the open pixel; its token follows.
pub const OPEN_PATH: &str = "/t/o/";

/// Path of a redirected link; its token follows.
pub const CLICK_PATH: &str = "/t/c/";

/// Path of the unsubscribe page; its token follows.
pub const UNSUBSCRIBE_PATH: &str = "/u/";

/// Path of the page of preferences; its token follows.
pub const PREFERENCES_PATH: &str = "/p/";

/// Parameters of the links in a message, and the kinds of tracking that are on.
#[derive(Debug, Clone, Copy)]
pub struct Links<'a> {
    /// Key that makes the tokens.
    pub key: &'a LinkKey,
    /// Scheme and host of the links, without a slash at the end; see [`base`].
    pub base: &'a str,
    /// Workspace that sends the message.
    pub workspace: WorkspaceId,
    /// The message.
    pub message: MessageId,
    /// True if the message gets an open pixel.
    pub open: bool,
    /// True if links are redirected.
    pub click: bool,
}

/// A link in HTML, with the number of its link in the template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberedLink {
    /// Byte offset at which its tag begins.
    pub at: usize,
    /// Its number, below [`MAX_NUMBERED`].
    pub number: u8,
}

/// Settings of a campaign for the links in its mail.
#[derive(Debug, Clone, Copy, Default)]
pub struct Campaigned<'a> {
    /// Parameters that are added to links that lack them.
    pub utm: Option<&'a Utm>,
    /// Links with numbers, in the order of `at`.
    pub numbers: &'a [NumberedLink],
}

impl Campaigned<'_> {
    fn number_at(&self, tag: usize) -> Option<u8> {
        let found = self.numbers.binary_search_by_key(&tag, |link| link.at).ok()?;
        Some(self.numbers[found].number)
    }
}

/// HTML with its links rewritten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracked {
    /// The HTML.
    pub html: String,
    /// The targets of the redirected links, each once. They must be stored
    /// ([`Write::PutUrl`](crate::changes::Write::PutUrl)) before the message leaves.
    pub urls: Vec<String>,
}

/// Returns scheme and host of the links in mail of a domain: its tracking sub-domain if it was found to lead here, else
/// the server's public base.
///
/// The sub-domain is an alias of this server, so scheme and port are those of the public base.
pub fn base(domain: Option<&SendingDomain>, public_url: &str) -> String {
    let tracking = domain
        .filter(|domain| domain.tracking.status == RecordStatus::Verified)
        .and_then(|domain| domain.tracking_subdomain.as_deref());
    let parts = public_url.split_once("://").map(|(scheme, rest)| (scheme, rest.split('/').next().unwrap_or_default()));
    match (tracking, parts) {
        (Some(host), Some((scheme, authority))) => {
            let port = authority.rsplit_once(':').map(|(_, port)| port);
            let port = port.filter(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()));
            port.map_or_else(|| format!("{scheme}://{host}"), |port| format!("{scheme}://{host}:{port}"))
        }
        _ => public_url.trim_end_matches('/').to_owned(),
    }
}

/// Rewrites the links of an HTML part and adds the pixel, as far as `links` turns these on.
pub fn track(html: &str, links: &Links<'_>) -> Tracked {
    rewrite(html, links, Campaigned::default())
}

/// Rewrites the links of an HTML part, adds the pixel, and adds the parameters of a campaign to targets that lack them,
/// also if links are not redirected. Links to the unsubscribe page and the page of preferences stay as they are.
pub fn rewrite(html: &str, links: &Links<'_>, campaigned: Campaigned<'_>) -> Tracked {
    let utm = campaigned.utm;
    if !links.open && !links.click && utm.is_none() {
        return Tracked { html: html.to_owned(), urls: Vec::new() };
    }
    let found = markup::read(html);
    let mut writer = Writer { html, out: String::with_capacity(html.len() + 1024), written: 0 };
    let mut pixel = links.open.then(|| (found.pixel_at, links.pixel()));
    let mut urls = Vec::new();
    let mut seen = HashSet::new();
    let mut rewritten = 0;
    for target in found.targets {
        if let Some((at, tag)) = pixel.take_if(|(at, _)| *at <= target.value.start) {
            writer.replace(at..at, &tag);
        }
        let written = trimmed(&target.url);
        if !is_web(&written) || links.is_own(&written) {
            continue;
        }
        let url = utm.map_or(Cow::Borrowed(written.as_str()), |utm| utm::add(&written, utm));
        let is_redirected = links.click && !target.untracked && rewritten < MAX_LINKS && url.len() <= MAX_URL;
        let href = if is_redirected {
            rewritten += 1;
            let key = UrlKey::of(&url);
            if seen.insert(key) {
                urls.push(url.into_owned());
            }
            links.click_url(key, campaigned.number_at(target.tag))
        } else if matches!(url, Cow::Owned(_)) {
            attribute(&url)
        } else {
            continue;
        };
        if target.quoted {
            writer.replace(target.value, &href);
        } else {
            writer.replace(target.value, &format!("\"{href}\""));
        }
    }
    if let Some((at, tag)) = pixel {
        writer.replace(at..at, &tag);
    }
    Tracked { html: writer.finish(), urls }
}

impl Links<'_> {
    fn url(&self, path: &str, link: Link) -> String {
        format!("{}{path}{}", self.base, self.key.link(self.workspace, self.message, link))
    }

    /// Returns a redirected link, escaped for an attribute.
    fn click_url(&self, key: UrlKey, number: Option<u8>) -> String {
        attribute(&self.url(CLICK_PATH, Link::Click(key, number)))
    }

    /// Returns the pixel. It is invisible, but not `display:none`, because mail programs do not always load what is not
    /// displayed.
    fn pixel(&self) -> String {
        let source = attribute(&self.url(OPEN_PATH, Link::Open));
        format!("<img src=\"{source}\" alt=\"\" width=\"1\" height=\"1\" style=\"border:0;height:1px;width:1px\">")
    }

    /// Returns the address of the page that unsubscribes the recipient of the message.
    pub fn unsubscribe_url(&self) -> String {
        self.url(UNSUBSCRIBE_PATH, Link::Unsubscribe)
    }

    /// Returns the address of the page of preferences of the recipient.
    pub fn preferences_url(&self) -> String {
        self.url(PREFERENCES_PATH, Link::Preferences)
    }

    /// Returns true if a link leads to the unsubscribe page or the page of preferences: it begins with the page's
    /// address, or has a valid token for the page under another host name.
    fn is_own(&self, url: &str) -> bool {
        [(UNSUBSCRIBE_PATH, Link::Unsubscribe), (PREFERENCES_PATH, Link::Preferences)].into_iter().any(
            |(path, page)| {
                url.strip_prefix(self.base).is_some_and(|rest| rest.starts_with(path))
                    || url.rsplit_once(path).is_some_and(
                        |(_, token)| matches!(self.key.read_link(token), Some((_, _, link)) if link == page),
                    )
            },
        )
    }
}

/// Returns text of HTML with its character references decoded.
#[cfg(feature = "templates")]
pub(in crate::domain) fn decoded(text: &str) -> String {
    if !text.contains('&') {
        return text.to_owned();
    }
    let html = format!("<a href=\"{}\">", text.replace('"', "&quot;"));
    markup::read(&html).targets.pop().map_or_else(String::new, |target| target.url)
}

/// Returns text escaped for the value of a quoted attribute.
fn attribute(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('\'', "&#39;")
}

/// Writer that copies the source and replaces ranges of it, from front to back.
struct Writer<'a> {
    html: &'a str,
    out: String,
    written: usize,
}

impl Writer<'_> {
    fn replace(&mut self, range: std::ops::Range<usize>, with: &str) {
        self.out.push_str(&self.html[self.written..range.start]);
        self.out.push_str(with);
        self.written = range.end;
    }

    fn finish(mut self) -> String {
        self.out.push_str(&self.html[self.written..]);
        self.out
    }
}
