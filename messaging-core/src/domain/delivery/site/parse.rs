//! Parser of rules of sites from TOML.
//!
//! ```toml
//! replace = false           # true: without the rules that are built in
//!
//! [unknown]                 # sites that no rule names
//! connections = 20
//!
//! [[site]]
//! name = "gmail"
//! exchangers = ["google.com"]
//! connections = 10          # and messages_per_connection, messages_per_minute, warm_up
//!
//! [[reply]]
//! site = "gmail"            # left out: every site
//! codes = ["4.7.28"]        # left out: every code
//! text = "unusual rate"     # a regular expression; left out: every text
//! says = "rate"             # reputation, blocked_ip, blocked_domain, authentication, content, user
//! action = "slow_down"      # rest, stop, none; left out: the usual one
//! ```

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use toml::Spanned;

use super::{Meaning, PathAction, ReplyPattern, Site, SiteLimits, SiteName, SiteRules};

/// Maximum size of a file of rules, in octets.
pub const MAX_RULES_BYTES: usize = 1024 * 1024;

/// Maximum number of sites of a file.
pub const MAX_SITES: usize = 1000;

/// Maximum number of patterns of replies of a file.
pub const MAX_REPLIES: usize = 1000;

const MAX_CONNECTIONS: u32 = 1000;
const MAX_PER_CONNECTION: u32 = 10_000;
const MAX_PER_MINUTE: u32 = 60_000;
const MAX_WARM_UP: u32 = 100;
const MAX_EXCHANGERS: usize = 100;
const MAX_CODES: usize = 50;
const MAX_EXPRESSION: usize = 1000;

const EMBEDDED: &str = include_str!("site-rules.toml");

/// A fault of a file of rules, with its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct RulesFault {
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// Description of the fault, in one line.
    pub problem: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    replace: bool,
    #[serde(default)]
    unknown: LimitsEntry,
    #[serde(default)]
    site: Vec<SiteEntry>,
    #[serde(default)]
    reply: Vec<ReplyEntry>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitsEntry {
    connections: Option<Spanned<u32>>,
    messages_per_connection: Option<Spanned<u32>>,
    messages_per_minute: Option<Spanned<u32>>,
    warm_up: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SiteEntry {
    name: Spanned<String>,
    exchangers: Spanned<Vec<Spanned<String>>>,
    connections: Option<Spanned<u32>>,
    messages_per_connection: Option<Spanned<u32>>,
    messages_per_minute: Option<Spanned<u32>>,
    warm_up: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplyEntry {
    site: Option<Spanned<String>>,
    #[serde(default)]
    codes: Vec<Spanned<String>>,
    text: Option<Spanned<String>>,
    says: Spanned<Meaning>,
    action: Option<PathAction>,
}

/// A fault at a range of octets of the text.
type Fault = (Range<usize>, String);

impl SiteRules {
    /// Returns the rules that are built in.
    pub fn embedded() -> Arc<Self> {
        static RULES: LazyLock<Arc<SiteRules>> = LazyLock::new(|| {
            let rules = SiteRules::of_file(EMBEDDED, SiteLimits::default(), Vec::new(), Vec::new());
            Arc::new(rules.expect("the built-in rules are read by a test"))
        });
        Arc::clone(&RULES)
    }

    /// Parses a file of rules. Its sites and patterns go before the built-in ones, unless it says `replace = true`.
    pub fn parse(text: &str) -> Result<Self, RulesFault> {
        if text.len() > MAX_RULES_BYTES {
            return Err(RulesFault { line: 1, column: 1, problem: "the file is larger than 1 MiB".to_owned() });
        }
        let file = read(text)?;
        if file.replace {
            return Self::of_file(text, SiteLimits::default(), Vec::new(), Vec::new());
        }
        let built_in = read(EMBEDDED)?;
        let fault = |fault| located(EMBEDDED, fault);
        let unknown = built_in.unknown.limits(SiteLimits::default()).map_err(fault)?;
        let sites = built_in.site.iter().map(SiteEntry::site).collect::<Result<_, _>>().map_err(fault)?;
        let replies = built_in.reply.iter().map(ReplyEntry::pattern).collect::<Result<_, _>>().map_err(fault)?;
        Self::of_file(text, unknown, sites, replies)
    }

    /// Returns the rules of a text, followed by others.
    fn of_file(
        text: &str,
        unknown: SiteLimits,
        others: Vec<Site>,
        other_replies: Vec<(Option<SiteName>, ReplyPattern)>,
    ) -> Result<Self, RulesFault> {
        let file = read(text)?;
        file.rules(unknown, others, other_replies).map_err(|fault| located(text, fault))
    }
}

fn read(text: &str) -> Result<File, RulesFault> {
    toml::from_str(text).map_err(|error| {
        let problem = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
        located(text, (error.span().unwrap_or_default(), problem))
    })
}

fn located(text: &str, (range, problem): Fault) -> RulesFault {
    let before = &text[..text.floor_char_boundary(range.start)];
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    RulesFault { line: before.matches('\n').count() + 1, column: before[start..].chars().count() + 1, problem }
}

impl File {
    fn rules(
        self,
        unknown: SiteLimits,
        others: Vec<Site>,
        other_replies: Vec<(Option<SiteName>, ReplyPattern)>,
    ) -> Result<SiteRules, Fault> {
        if let Some(site) = self.site.get(MAX_SITES) {
            return Err((site.name.span(), format!("more than {MAX_SITES} sites")));
        }
        if let Some(reply) = self.reply.get(MAX_REPLIES) {
            return Err((reply.says.span(), format!("more than {MAX_REPLIES} replies")));
        }
        let mut names = HashSet::new();
        let mut domains = HashSet::new();
        let mut sites = Vec::new();
        for entry in &self.site {
            if !names.insert(entry.name.get_ref().as_str()) {
                return Err((entry.name.span(), "there is a site of this name already".to_owned()));
            }
            for domain in entry.exchangers.get_ref() {
                if !domains.insert(domain.get_ref().as_str()) {
                    return Err((domain.span(), "another site has these exchangers already".to_owned()));
                }
            }
            sites.push(entry.site()?);
        }
        // A site that the file describes anew replaces the other one, with all its exchangers.
        sites.extend(others.into_iter().filter(|other| !names.contains(other.name.as_str())));
        let mut replies = Vec::new();
        for entry in &self.reply {
            if let Some(site) = &entry.site
                && !sites.iter().any(|known| known.name.as_str() == site.get_ref())
            {
                return Err((site.span(), "there is no site of this name".to_owned()));
            }
            replies.push(entry.pattern()?);
        }
        replies.extend(other_replies);
        Ok(SiteRules::new(self.unknown.limits(unknown)?, sites, replies))
    }
}

impl LimitsEntry {
    fn limits(&self, others: SiteLimits) -> Result<SiteLimits, Fault> {
        let bounded = |value: &Option<Spanned<u32>>, most: u32| match value {
            Some(value) if !(1..=most).contains(value.get_ref()) => {
                Err((value.span(), format!("expected a number from 1 to {most}")))
            }
            value => Ok(value.as_ref().map(|value| *value.get_ref())),
        };
        Ok(SiteLimits {
            connections: bounded(&self.connections, MAX_CONNECTIONS)?.unwrap_or(others.connections),
            messages_per_connection: bounded(&self.messages_per_connection, MAX_PER_CONNECTION)?
                .unwrap_or(others.messages_per_connection),
            messages_per_minute: bounded(&self.messages_per_minute, MAX_PER_MINUTE)?.or(others.messages_per_minute),
            warm_up: bounded(&self.warm_up, MAX_WARM_UP)?.unwrap_or(others.warm_up),
        })
    }
}

impl SiteEntry {
    fn site(&self) -> Result<Site, Fault> {
        let name = SiteName::parse(self.name.get_ref()).map_err(|error| (self.name.span(), error.to_string()))?;
        let exchangers = self.exchangers.get_ref();
        if exchangers.is_empty() || exchangers.len() > MAX_EXCHANGERS {
            return Err((self.exchangers.span(), format!("expected 1 to {MAX_EXCHANGERS} domains of exchangers")));
        }
        let domain = |domain: &Spanned<String>| match domain.get_ref() {
            text if is_domain(text) => Ok(text.clone()),
            _ => Err((domain.span(), "expected a domain in lower case, without a dot at its ends".to_owned())),
        };
        let limits = LimitsEntry {
            connections: self.connections.clone(),
            messages_per_connection: self.messages_per_connection.clone(),
            messages_per_minute: self.messages_per_minute.clone(),
            warm_up: self.warm_up.clone(),
        };
        let exchangers = exchangers.iter().map(domain).collect::<Result<_, _>>()?;
        Ok(Site { name, exchangers, limits: limits.limits(SiteLimits::default())? })
    }
}

fn is_domain(text: &str) -> bool {
    let is_label = |label: &str| {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
        (1..=63).contains(&label.len()) && label.bytes().all(fits)
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

impl ReplyEntry {
    fn pattern(&self) -> Result<(Option<SiteName>, ReplyPattern), Fault> {
        if self.codes.is_empty() && self.text.is_none() {
            return Err((self.says.span(), "a reply needs codes or a text".to_owned()));
        }
        if let Some(code) = self.codes.get(MAX_CODES) {
            return Err((code.span(), format!("more than {MAX_CODES} codes")));
        }
        for code in &self.codes {
            if !is_code(code.get_ref()) {
                return Err((code.span(), "expected a code such as 421, 4.7.28 or 5.7.*".to_owned()));
            }
        }
        if let Some(text) = self.text.as_ref().filter(|text| !(1..=MAX_EXPRESSION).contains(&text.get_ref().len())) {
            return Err((text.span(), format!("expected a regular expression of 1 to {MAX_EXPRESSION} octets")));
        }
        let site = match &self.site {
            Some(site) => Some(SiteName::parse(site.get_ref()).map_err(|error| (site.span(), error.to_string()))?),
            None => None,
        };
        let codes = self.codes.iter().map(|code| code.get_ref().clone()).collect();
        let text = self.text.as_ref().map(|text| text.get_ref().as_str());
        let pattern = ReplyPattern::new(codes, text, *self.says.get_ref(), self.action);
        let fault = |error: regex_lite::Error| {
            (self.text.as_ref().map(Spanned::span).unwrap_or_default(), format!("not a regular expression: {error}"))
        };
        Ok((site, pattern.map_err(fault)?))
    }
}

/// Returns true if a text is a basic or an enhanced code of a refusal, or the beginning of one and a star.
fn is_code(text: &str) -> bool {
    let digits = text.strip_suffix('*').unwrap_or(text);
    (1..=9).contains(&digits.len())
        && digits.starts_with(['4', '5'])
        && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}
