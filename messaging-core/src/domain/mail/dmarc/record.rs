//! DMARC policy records (RFC 9989 section 4.7).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::mail::tag_list;

/// Handling that a policy asks receivers for, for mail that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DmarcAction {
    /// No special handling.
    None,
    /// Receivers put the mail aside.
    Quarantine,
    /// Receivers refuse the mail.
    Reject,
}

impl DmarcAction {
    /// Returns the word of the tag.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Quarantine => "quarantine",
            Self::Reject => "reject",
        }
    }

    /// Returns the action with a word, in any case.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::None, Self::Quarantine, Self::Reject].into_iter().find(|one| word.eq_ignore_ascii_case(one.as_str()))
    }

    /// Returns the next weaker action, which receivers apply while the owner only tests (`t=y`).
    pub const fn weaker(self) -> Self {
        match self {
            Self::Reject => Self::Quarantine,
            Self::Quarantine | Self::None => Self::None,
        }
    }
}

/// Statement of a record that its domain is a public suffix or is not (`psd`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Psd {
    /// `psd=y`: names below it are registered by others.
    Yes,
    /// `psd=n`: the domain is an organizational domain.
    No,
    /// `psd=u`, or no statement.
    Unknown,
}

/// A valid policy record.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "tags of a record are independent of each other")]
pub struct PolicyRecord {
    /// Domain whose policy it is; the record is at `_dmarc.` below it.
    pub domain: String,
    /// The record as published.
    pub text: String,
    /// Handling of mail of the domain itself (`p`).
    pub action: DmarcAction,
    /// Handling of mail of names below the domain (`sp`), where it differs.
    pub subdomains: Option<DmarcAction>,
    /// Handling of mail of names below the domain that do not exist (`np`), where it differs.
    pub nonexistent: Option<DmarcAction>,
    /// True if receivers shall apply the next weaker action (`t=y`).
    pub is_testing: bool,
    /// Statement that the domain is a public suffix, or is not (`psd`).
    pub psd: Psd,
    /// True if the domain of a DKIM signature must be that of the sender (`adkim=s`).
    pub strict_dkim: bool,
    /// True if the domain of the envelope must be that of the sender (`aspf=s`).
    pub strict_spf: bool,
    /// URIs that receive aggregate reports (`rua`), without the limits of size behind them.
    pub rua: Vec<String>,
    /// Tags of the record that receivers ignore since RFC 9989.
    pub obsolete: Vec<&'static str>,
    /// True if `p`, `sp` or `np` has an unknown word, so that receivers take the whole for `p=none`.
    pub is_doubtful: bool,
}

/// Tags that RFC 9989 removed.
const OBSOLETE: [&str; 3] = ["pct", "rf", "ri"];

/// Returns true if a TXT record is meant as a policy, valid or not: others are skipped (section 4.10, step 2).
pub(super) fn is_policy(text: &str) -> bool {
    let rest = text.strip_prefix('v').map(str::trim_start).and_then(|rest| rest.strip_prefix('='));
    rest.is_some_and(|rest| rest.trim_start().starts_with("DMARC1"))
}

impl PolicyRecord {
    /// Parses the record of a domain; `None` if receivers ignore it.
    pub fn parse(domain: &str, text: &str) -> Option<Self> {
        let tags = tag_list::parse(text)?;
        if tags[0] != ("v", "DMARC1") {
            return None;
        }
        let tag = |name| tag_list::value(&tags, name);
        let action = |name| tag(name).map(DmarcAction::parse);
        let rua = tag("rua").map(uris).unwrap_or_default();
        let is_doubtful = [action("sp"), action("np")].contains(&Some(None)) || !matches!(action("p"), Some(Some(_)));
        if is_doubtful && rua.is_empty() {
            return None;
        }
        let known = |name| action(name).flatten().filter(|_| !is_doubtful);
        let is = |name, word: &str| tag(name).is_some_and(|value| value.eq_ignore_ascii_case(word));
        let psd = if is("psd", "y") {
            Psd::Yes
        } else if is("psd", "n") {
            Psd::No
        } else {
            Psd::Unknown
        };
        Some(Self {
            domain: domain.to_owned(),
            text: text.to_owned(),
            action: known("p").unwrap_or(DmarcAction::None),
            subdomains: known("sp"),
            nonexistent: known("np"),
            is_testing: is("t", "y"),
            psd,
            strict_dkim: is("adkim", "s"),
            strict_spf: is("aspf", "s"),
            rua,
            obsolete: OBSOLETE.into_iter().filter(|name| tag(name).is_some()).collect(),
            // A record without `p` has a defined meaning for receivers; one with an unknown word has not.
            is_doubtful: is_doubtful && (tag("p").is_some() || tag("sp").is_some() || tag("np").is_some()),
        })
    }

    /// Returns the action that the record asks for, for mail of a domain that exists: `sp` counts below the domain of
    /// the record.
    pub fn asked_of(&self, domain: &str) -> DmarcAction {
        if domain == self.domain { self.action } else { self.subdomains.unwrap_or(self.action) }
    }

    /// Returns the action that receivers apply to mail of a domain that exists.
    pub fn applied_to(&self, domain: &str) -> DmarcAction {
        let asked = self.asked_of(domain);
        if self.is_testing { asked.weaker() } else { asked }
    }

    /// Returns the record with one more receiver of reports; everything else stays as the owner has it.
    pub fn with_receiver(&self, receiver: &str) -> String {
        self.rewritten(self.action, Some(receiver), |_| true)
    }

    /// Returns the record with another action for the domain itself, no longer for testing, and perhaps one more
    /// receiver of reports; without tags that no receiver reads.
    pub fn with_action(&self, action: DmarcAction, receiver: Option<&str>) -> String {
        self.rewritten(action, receiver, |name| name != "t" && !OBSOLETE.contains(&name))
    }

    fn rewritten(&self, action: DmarcAction, receiver: Option<&str>, keeps: impl Fn(&str) -> bool) -> String {
        let tags = tag_list::parse(&self.text).unwrap_or_default();
        let receivers: Vec<_> = tag_list::value(&tags, "rua").into_iter().chain(receiver).collect();
        let mut parts = vec!["v=DMARC1".to_owned(), format!("p={}", action.as_str())];
        let kept = tags.iter().filter(|(name, _)| !["v", "p", "rua"].contains(name) && keeps(name));
        parts.extend(kept.map(|(name, value)| format!("{name}={value}")));
        if !receivers.is_empty() {
            parts.push(format!("rua={}", receivers.join(",")));
        }
        parts.join("; ")
    }
}

/// Returns the URIs of a list, without the limits of size that RFC 7489 allowed behind them.
pub(crate) fn uris(list: &str) -> Vec<String> {
    let uri = |uri: &str| uri.split('!').next().unwrap_or_default().trim().to_owned();
    list.split(',').map(uri).filter(|uri| uri.contains(':')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> PolicyRecord {
        PolicyRecord::parse("acme.test", text).unwrap_or_else(|| panic!("{text} is no policy"))
    }

    #[test]
    fn records_say_what_receivers_do() {
        let policy = parsed("v=DMARC1; p=Reject; sp=quarantine; np=reject; psd=n; t=y; pct=50; ri=3600; adkim=s");
        assert_eq!(policy.asked_of("acme.test"), DmarcAction::Reject);
        assert_eq!(policy.applied_to("acme.test"), DmarcAction::Quarantine);
        assert_eq!(policy.applied_to("mail.acme.test"), DmarcAction::None);
        assert_eq!((policy.nonexistent, policy.psd), (Some(DmarcAction::Reject), Psd::No));
        assert_eq!((policy.strict_dkim, policy.strict_spf), (true, false));
        assert_eq!(policy.obsolete, ["pct", "ri"]);
        let reported = parsed("v=DMARC1;p=none;rua=mailto:a@b.test!10m, mailto:c@d.test");
        assert_eq!(reported.rua, ["mailto:a@b.test", "mailto:c@d.test"]);
    }

    #[test]
    fn a_policy_that_is_missing_or_unknown_counts_as_none_where_reports_are_wanted() {
        for (text, is_doubtful) in
            [("v=DMARC1; rua=mailto:a@b.test", false), ("v=DMARC1; p=reject; sp=maybe; rua=mailto:a@b.test", true)]
        {
            let policy = parsed(text);
            assert_eq!((policy.action, policy.subdomains), (DmarcAction::None, None), "{text}");
            assert_eq!(policy.is_doubtful, is_doubtful, "{text}");
        }
        for text in
            ["v=DMARC1", "v=DMARC1; p=monitor", "v=DMARC12; p=none", "p=none; v=DMARC1", "v=DMARC1; p=none; p=none"]
        {
            assert_eq!(PolicyRecord::parse("acme.test", text), None, "{text}");
        }
    }

    #[test]
    fn another_action_leaves_the_rest_as_it_is() {
        let policy = parsed("v=DMARC1; p=none; pct=100; sp=reject; t=y; rua=mailto:a@b.test; fo=1");
        assert_eq!(
            policy.with_action(DmarcAction::Quarantine, Some("mailto:c@d.test")),
            "v=DMARC1; p=quarantine; sp=reject; fo=1; rua=mailto:a@b.test,mailto:c@d.test"
        );
        assert_eq!(parsed("v=DMARC1; p=none").with_action(DmarcAction::Reject, None), "v=DMARC1; p=reject");
        assert_eq!(
            policy.with_receiver("mailto:c@d.test"),
            "v=DMARC1; p=none; pct=100; sp=reject; t=y; fo=1; rua=mailto:a@b.test,mailto:c@d.test"
        );
    }
}
