//! Sites: the operators of mail exchangers, with the limits that they set and the meaning of their replies.
//!
//! Fifty thousand domains hosted by one operator are one site, because the operator judges a sender once for all of
//! them. The rules are data: a file that is built in ([`SiteRules::embedded`], feature `site-rules`) and that another
//! file extends or replaces. A reply is read by the patterns of its site, then by those for every site, and where none
//! fits by the words that the classification of bounces knows in many languages.

#[cfg(feature = "site-rules")]
pub mod parse;
mod pattern;
#[cfg(all(test, feature = "site-rules"))]
mod tests;
mod verdict;

use std::borrow::Borrow;
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr as _;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::domain::delivery::bounce::{self, BounceClass};
use crate::domain::delivery::response::Response;
use crate::domain::mail::public_suffix::organizational;

pub use pattern::ReplyPattern;
use pattern::Subject;
pub use verdict::{Meaning, PathAction, Verdict};

/// Maximum number of transactions at once with a site that no rule names.
pub const DEFAULT_CONNECTIONS: u32 = 20;

/// Number of messages after which a connection is closed to a site that no rule names.
pub const DEFAULT_MESSAGES_PER_CONNECTION: u32 = 100;

/// Name of a site: one of the rules, such as `gmail`, or the organizational domain of an exchanger.
///
/// Invariant: 1 to 253 octets of lower-case letters, digits, `-`, `_`, `.` and, for address literals, `:`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SiteName(Arc<str>);

/// Error: the text is no valid name of a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is no name of a site: at most 253 lower-case letters, digits, dots and hyphens")]
pub struct MalformedSiteName;

impl SiteName {
    /// Parses a name.
    pub fn parse(text: &str) -> Result<Self, MalformedSiteName> {
        let fits =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_' | b'.' | b':');
        if (1..=253).contains(&text.len()) && text.bytes().all(fits) {
            Ok(Self(text.into()))
        } else {
            Err(MalformedSiteName)
        }
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SiteName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for SiteName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for SiteName {
    type Error = MalformedSiteName;
    fn try_from(text: String) -> Result<Self, MalformedSiteName> {
        Self::parse(&text)
    }
}

impl From<SiteName> for String {
    fn from(name: SiteName) -> Self {
        name.as_str().to_owned()
    }
}

/// Limits that a site sets for one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SiteLimits {
    /// Connections, and so transactions, at once.
    pub connections: u32,
    /// Messages after which a connection is closed.
    pub messages_per_connection: u32,
    /// Messages a minute; `None` where only the connections are limited.
    pub messages_per_minute: Option<u32>,
    /// Factor of the warm-up: how many times the allowance of an unknown site a source that warms up may send to this
    /// one.
    pub warm_up: u32,
}

impl Default for SiteLimits {
    fn default() -> Self {
        Self {
            connections: DEFAULT_CONNECTIONS,
            messages_per_connection: DEFAULT_MESSAGES_PER_CONNECTION,
            messages_per_minute: None,
            warm_up: 1,
        }
    }
}

/// A site that the rules name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Site {
    /// Name of the site.
    pub name: SiteName,
    /// Domains that the exchangers of the site are in or below.
    pub exchangers: Vec<String>,
    /// Limits for one source.
    #[serde(flatten)]
    pub limits: SiteLimits,
}

/// The rules of all sites.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SiteRules {
    unknown: SiteLimits,
    sites: Vec<Site>,
    /// Index in `sites` by the domain of an exchanger.
    by_exchanger: HashMap<String, usize>,
    by_name: HashMap<SiteName, usize>,
    /// Patterns of one site, by its name.
    of_site: HashMap<SiteName, Vec<ReplyPattern>>,
    /// Patterns for every site.
    general: Vec<ReplyPattern>,
}

impl SiteRules {
    /// Returns rules for sites. If two have a name or a domain in common the first counts.
    pub fn new(unknown: SiteLimits, sites: Vec<Site>, replies: Vec<(Option<SiteName>, ReplyPattern)>) -> Self {
        let mut rules = Self { unknown, ..Self::default() };
        for (at, site) in sites.iter().enumerate() {
            rules.by_name.entry(site.name.clone()).or_insert(at);
            for domain in &site.exchangers {
                rules.by_exchanger.entry(domain.clone()).or_insert(at);
            }
        }
        for (site, pattern) in replies {
            match site {
                Some(site) => rules.of_site.entry(site).or_default().push(pattern),
                None => rules.general.push(pattern),
            }
        }
        rules.sites = sites;
        rules
    }

    /// Returns the limits of a site that no rule names.
    pub const fn unknown(&self) -> SiteLimits {
        self.unknown
    }

    /// Returns the sites that the rules name, in the order of the file.
    pub fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// Returns true for a site that the rules name.
    pub fn names(&self, site: &SiteName) -> bool {
        self.by_name.contains_key(site)
    }

    /// Returns the site of a recipient's exchangers, which are given by name in order of preference: the first that the
    /// rules name, else the organizational domain of the most preferred one. `None` if there is no name, or none that
    /// can be a site's.
    pub fn site_of<N: AsRef<str>>(&self, exchangers: &[N]) -> Option<SiteName> {
        let known = exchangers.iter().find_map(|name| self.known(&normal(name.as_ref())));
        known.or_else(|| {
            let name = normal(exchangers.first()?.as_ref());
            let registered = if IpAddr::from_str(&name).is_ok() { &name } else { organizational(&name) };
            SiteName::parse(registered).ok()
        })
    }

    fn known(&self, exchanger: &str) -> Option<SiteName> {
        let mut rest = exchanger;
        loop {
            if let Some(at) = self.by_exchanger.get(rest) {
                return self.sites.get(*at).map(|site| site.name.clone());
            }
            (_, rest) = rest.split_once('.')?;
        }
    }

    /// Returns the limits of a site for one source.
    pub fn limits(&self, site: &SiteName) -> SiteLimits {
        self.by_name.get(site).and_then(|at| self.sites.get(*at)).map_or(self.unknown, |site| site.limits)
    }

    /// Returns the meaning of a site's temporary or permanent refusal for the sender; `None` if it has no known
    /// meaning.
    pub fn judge(&self, site: &SiteName, reply: &Response) -> Option<Verdict> {
        let subject = Subject::of(reply);
        let is_permanent = subject.is_permanent();
        let of_site = self.of_site.get(site).into_iter().flatten().find(|pattern| pattern.fits(&subject));
        if let Some(pattern) = of_site {
            return Some(pattern.verdict(is_permanent));
        }
        // A reply about a bad address may use words that are also said of senders.
        if matches!(bounce::classify(reply), BounceClass::InvalidRecipient | BounceClass::MailboxFull) {
            return Some(Verdict::new(Meaning::User, is_permanent));
        }
        match self.general.iter().find(|pattern| pattern.fits(&subject)) {
            Some(pattern) => Some(pattern.verdict(is_permanent)),
            None => bounce::concern(reply).map(|concern| Verdict::new(concern.into(), is_permanent)),
        }
    }
}

/// Returns a host name in lower case without the dot of the root.
fn normal(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}
