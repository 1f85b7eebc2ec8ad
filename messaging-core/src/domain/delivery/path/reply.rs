//! A reply as a path reads it.

use crate::domain::delivery::outcome::{Answer, OutcomeClass};
use crate::domain::delivery::site::{SiteName, SiteRules, Verdict};
use crate::domain::security::redaction::mask_text;

/// Maximum number of characters of evidence that are kept.
pub(super) const MAX_EVIDENCE: usize = 512;

/// Kind of a reply, for the figures of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyKind {
    /// The site took the message.
    Accepted,
    /// The site refused for now.
    Deferred,
    /// The mailbox or the domain does not exist.
    HardBounced,
    /// The site refused for good, for another reason.
    Refused,
}

/// Answer of a site about one recipient, judged by the rules of the site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathReply {
    /// Kind of the reply.
    pub kind: ReplyKind,
    /// Meaning and action that the rules give a refusal.
    pub verdict: Option<Verdict>,
    /// The reply in one line with addresses masked; empty if the message was taken.
    pub evidence: String,
}

impl PathReply {
    /// Reads an answer. `None` if the site said nothing: it could not be reached, or its answer was lost.
    pub fn of(rules: &SiteRules, site: &SiteName, answer: &Answer) -> Option<Self> {
        let kind = match answer.class {
            OutcomeClass::Accepted(_) => {
                return Some(Self { kind: ReplyKind::Accepted, verdict: None, evidence: String::new() });
            }
            OutcomeClass::Retry(_) | OutcomeClass::Throttled(_) | OutcomeClass::Auth => ReplyKind::Deferred,
            OutcomeClass::Address(_) => ReplyKind::HardBounced,
            OutcomeClass::Blocked | OutcomeClass::OptedOut | OutcomeClass::Soft(_) | OutcomeClass::Content(_) => {
                ReplyKind::Refused
            }
            // Not an answer of the site, but a requirement of ours, or no answer at all.
            OutcomeClass::Ambiguous | OutcomeClass::TlsRequired => return None,
        };
        let reply = &answer.response;
        let code = reply.code?;
        let text = reply.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let enhanced = reply.enhanced.as_deref().filter(|enhanced| !text.starts_with(*enhanced));
        let words = [Some(code.to_string()), enhanced.map(str::to_owned), Some(text)].into_iter().flatten();
        let line = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        let evidence = mask_text(&line).chars().take(MAX_EVIDENCE).collect();
        Some(Self { kind, verdict: rules.judge(site, reply), evidence })
    }
}
