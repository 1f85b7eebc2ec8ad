//! Verdict on the reports of a domain, in words: the safety of a stricter policy, and the next record to publish.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::record::{DmarcAction, PolicyRecord};
use super::report::AggregateResult;

/// Messages of one source with one result, over a period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFacts {
    /// The address.
    pub ip: IpAddr,
    /// Name of the address, where it has one.
    pub name: Option<String>,
    /// True if the address is one of ours.
    pub is_ours: bool,
    /// The result.
    pub result: AggregateResult,
    /// Number of messages.
    pub messages: u64,
}

/// Facts that a verdict is made of.
#[derive(Debug, Clone)]
pub struct VerdictFacts<'a> {
    /// The domain.
    pub domain: &'a str,
    /// Policy of the domain; `None` if there is none. An error is the reason why it is not known.
    pub policy: Result<Option<&'a PolicyRecord>, String>,
    /// The record that is offered to a domain without one.
    pub offered: &'a str,
    /// URI that receives reports here, if the policy does not name it yet.
    pub missing_receiver: Option<&'a str>,
    /// The sources, those with most messages first.
    pub sources: &'a [SourceFacts],
    /// Messages of all reports.
    pub messages: u64,
    /// Length of the period in days, at least 1.
    pub days: u64,
}

/// Safety of a stricter policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "DmarcVerdictStatus")]
pub enum VerdictStatus {
    /// All mail that matters passes.
    Ok,
    /// The owner should look at something.
    Attention,
    /// A stricter policy would stop unexplained mail, or the present one stops mail of ours.
    Unsafe,
    /// No report counts yet.
    NoData,
}

/// A verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Safety of a stricter policy.
    pub status: VerdictStatus,
    /// Sentences for the owner of the domain.
    pub text: String,
    /// The record to publish at the domain next; `None` if nothing is to change.
    pub next_record: Option<String>,
}

/// A failing source prevents a stricter policy if it sends more than one in this many messages.
const UNEXPLAINED: u64 = 100;

/// All failing sources together prevent a stricter policy if they send more than one in this many messages.
const UNEXPLAINED_TOGETHER: u64 = 20;

/// Maximum number of sources that a sentence names.
const NAMED: usize = 3;

/// Judges the reports of a domain.
pub fn judge(facts: &VerdictFacts<'_>) -> Verdict {
    let policy = match &facts.policy {
        Ok(policy) => *policy,
        Err(reason) => {
            let text = format!("The DMARC policy is not known ({reason}), so nothing can be advised now.");
            let status = if facts.messages == 0 { VerdictStatus::NoData } else { VerdictStatus::Attention };
            return Verdict { status, text, next_record: None };
        }
    };
    let action = policy.map_or(DmarcAction::None, |policy| policy.applied_to(facts.domain));
    let passing = by_source(facts.sources, true);
    let failing = by_source(facts.sources, false);
    let large: Vec<_> = failing.iter().filter(|source| source.messages > facts.messages / UNEXPLAINED).collect();
    let failed: u64 = failing.iter().map(|source| source.messages).sum();
    // The next record that is no stricter than the present one.
    let same = match policy {
        None => Some(facts.offered.to_owned()),
        Some(policy) => facts.missing_receiver.map(|receiver| with_receiver(facts, policy, receiver)),
    };
    if facts.messages == 0 {
        return without_reports(policy, facts, same);
    }
    if let Some(ours) = large.iter().find(|source| source.is_ours) {
        let then = match action {
            DmarcAction::None => "before a stricter policy, correct that",
            DmarcAction::Quarantine => "receivers put it aside",
            DmarcAction::Reject => "receivers refuse it",
        };
        let text = format!(
            "{} of this server sent {} and fails DMARC: {then}. Look at the domain's DKIM and SPF records.",
            ours.called(),
            messages(ours.messages),
        );
        return Verdict { status: VerdictStatus::Unsafe, text, next_record: same };
    }
    if !large.is_empty() {
        return unexplained(&large, action, facts, same);
    }
    let summary = summary(&passing, facts);
    if failed > facts.messages / UNEXPLAINED_TOGETHER {
        let text = format!(
            "{summary} {} from many small sources fail, which is typical of forgeries; see whether one of them is yours \
             before the policy becomes stricter.",
            messages(failed),
        );
        return Verdict { status: VerdictStatus::Attention, text, next_record: same };
    }
    stricter(&summary, policy, facts)
}

/// One source, whatever its results.
struct Source<'a> {
    ip: IpAddr,
    name: Option<&'a str>,
    is_ours: bool,
    messages: u64,
}

impl Source<'_> {
    fn called(&self) -> String {
        match self.name {
            Some(name) => format!("{name} ({})", self.ip),
            None => self.ip.to_string(),
        }
    }
}

/// Returns the sources with messages that pass, or fail, DMARC; those with most first.
fn by_source(sources: &[SourceFacts], is_aligned: bool) -> Vec<Source<'_>> {
    let mut found: BTreeMap<IpAddr, Source<'_>> = BTreeMap::new();
    for one in sources.iter().filter(|one| one.result.is_aligned() == is_aligned) {
        let source = found.entry(one.ip).or_insert(Source {
            ip: one.ip,
            name: one.name.as_deref(),
            is_ours: one.is_ours,
            messages: 0,
        });
        source.messages = source.messages.saturating_add(one.messages);
    }
    let mut found: Vec<_> = found.into_values().collect();
    found.sort_by_key(|source| (std::cmp::Reverse(source.messages), source.ip));
    found
}

fn without_reports(policy: Option<&PolicyRecord>, facts: &VerdictFacts<'_>, same: Option<String>) -> Verdict {
    let text = match (policy, facts.missing_receiver) {
        (None, _) => "There is no DMARC policy yet, so nobody reports. Publish the record.",
        (Some(_), Some(_)) => {
            "The DMARC policy sends no reports here. Publish the record, which adds the address to it."
        }
        (Some(_), None) => "No report has come in for this time. Receivers send one a day, for days with mail.",
    };
    Verdict { status: VerdictStatus::NoData, text: text.to_owned(), next_record: same }
}

/// Returns the verdict if unexplained sources send more than one message in a hundred and fail.
fn unexplained(large: &[&Source<'_>], action: DmarcAction, facts: &VerdictFacts<'_>, same: Option<String>) -> Verdict {
    let sentence = |source: &&&Source<'_>| {
        let rate = match source.messages / facts.days {
            0 => messages(source.messages),
            a_day => format!("{} a day", grouped(a_day)),
        };
        format!("{} sends {rate} in your name and fails", source.called())
    };
    let mut text = large.iter().take(NAMED).map(|source| sentence(&source)).collect::<Vec<_>>().join("; ");
    if large.len() > NAMED {
        write!(text, "; {} more do", large.len() - NAMED).expect("texts take all");
    }
    let (status, then) = match action {
        DmarcAction::None => (
            VerdictStatus::Unsafe,
            ": yours? Publish its SPF or DKIM before anything else; else p=quarantine stops it.",
        ),
        DmarcAction::Quarantine => (
            VerdictStatus::Attention,
            ", so receivers put it aside: yours? Publish its SPF or DKIM; else p=reject would refuse it.",
        ),
        DmarcAction::Reject => {
            (VerdictStatus::Attention, ", so receivers refuse it: yours? Publish its SPF or DKIM; else all is well.")
        }
    };
    text.push_str(then);
    Verdict { status, text, next_record: same }
}

/// Returns the verdict if nothing prevents a stricter policy.
fn stricter(summary: &str, policy: Option<&PolicyRecord>, facts: &VerdictFacts<'_>) -> Verdict {
    let Some(policy) = policy else {
        let text = format!("{summary} There is no DMARC policy any more. Publish the record.");
        return Verdict { status: VerdictStatus::Attention, text, next_record: Some(facts.offered.to_owned()) };
    };
    let asked = policy.asked_of(facts.domain);
    let wanted = match asked {
        DmarcAction::None => Some(DmarcAction::Quarantine),
        // A policy that was only tested so far takes effect.
        tested if policy.is_testing => Some(tested),
        DmarcAction::Quarantine => Some(DmarcAction::Reject),
        DmarcAction::Reject => None,
    };
    let text = match wanted {
        Some(wanted) => format!("{summary} p={} is safe.", wanted.as_str()),
        None => format!("{summary} Whatever else pretends to be yours is refused."),
    };
    let changed = wanted.map(|wanted| with_action(facts, policy, wanted));
    let added = || facts.missing_receiver.map(|receiver| with_receiver(facts, policy, receiver));
    Verdict { status: VerdictStatus::Ok, text, next_record: changed.or_else(added) }
}

/// Returns the record to publish at the domain itself: the policy with one more receiver of reports, and nothing
/// stricter. If the policy is that of a domain above, its rules for names below are not repeated.
fn with_receiver(facts: &VerdictFacts<'_>, policy: &PolicyRecord, receiver: &str) -> String {
    if policy.domain == facts.domain {
        return policy.with_receiver(receiver);
    }
    let testing = if policy.is_testing { "; t=y" } else { "" };
    own_record(policy, policy.asked_of(facts.domain), testing, Some(receiver))
}

/// Returns the record to publish for the domain with another action.
fn with_action(facts: &VerdictFacts<'_>, policy: &PolicyRecord, action: DmarcAction) -> String {
    if policy.domain == facts.domain {
        return policy.with_action(action, facts.missing_receiver);
    }
    own_record(policy, action, "", facts.missing_receiver)
}

fn own_record(policy: &PolicyRecord, action: DmarcAction, testing: &str, receiver: Option<&str>) -> String {
    let receivers: Vec<_> = policy.rua.iter().map(String::as_str).chain(receiver).collect();
    let rua = if receivers.is_empty() { String::new() } else { format!("; rua={}", receivers.join(",")) };
    format!("v=DMARC1; p={}{testing}{rua}", action.as_str())
}

/// Returns a summary: `All mail passes, from us (3,412) and from one other sender (mail.zendesk.example, 40).`
fn summary(passing: &[Source<'_>], facts: &VerdictFacts<'_>) -> String {
    let ours: u64 = passing.iter().filter(|source| source.is_ours).map(|source| source.messages).sum();
    let others: Vec<_> = passing.iter().filter(|source| !source.is_ours).collect();
    let passed: u64 = passing.iter().map(|source| source.messages).sum();
    let subject = if passed >= facts.messages { "All mail passes" } else { "Nearly all mail passes" };
    let mut parts = Vec::new();
    if ours > 0 {
        parts.push(format!("from us ({})", grouped(ours)));
    }
    match others.as_slice() {
        [] => {}
        [only] => parts.push(format!("from one other sender ({}, {})", name(only), grouped(only.messages))),
        several => {
            let named = several.iter().take(NAMED).map(|one| format!("{}, {}", name(one), grouped(one.messages)));
            let named = named.collect::<Vec<_>>().join("; ");
            let rest = if several.len() > NAMED { "; …" } else { "" };
            parts.push(format!("from {} other senders ({named}{rest})", grouped(several.len() as u64)));
        }
    }
    if parts.is_empty() { format!("{subject}.") } else { format!("{subject}, {}.", parts.join(" and ")) }
}

fn name(source: &Source<'_>) -> String {
    source.name.map_or_else(|| source.ip.to_string(), ToOwned::to_owned)
}

fn messages(count: u64) -> String {
    if count == 1 { "1 message".to_owned() } else { format!("{} messages", grouped(count)) }
}

/// Formats `3412` as `3,412`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests;
