//! What a DMARC policy says, as far as mail of ours is concerned (RFC 7489 section 6.3).

use crate::domain::mail::tag_list;

/// What receivers do with mail that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DmarcAction {
    /// Nothing.
    None,
    /// They put it aside.
    Quarantine,
    /// They refuse it.
    Reject,
}

impl DmarcAction {
    /// The word of the tag.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Quarantine => "quarantine",
            Self::Reject => "reject",
        }
    }
}

/// A policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DmarcPolicy {
    /// `p`, or `sp` where the record is that of the organizational domain.
    pub action: DmarcAction,
    /// Whether the DKIM domain must be that of the sender (`adkim=s`).
    pub strict_dkim: bool,
    /// Whether the domain of the envelope must be that of the sender (`aspf=s`).
    pub strict_spf: bool,
    /// True if the policy names an address that receives reports (`rua`).
    pub has_reports: bool,
}

/// The policy in the TXT records of a name, if there is exactly one. `is_above` says that the name is that of the
/// organizational domain, whose `sp` counts.
pub fn dmarc_policy(found: &[String], is_above: bool) -> Option<DmarcPolicy> {
    let mut policies = found.iter().filter_map(|text| {
        let tags = tag_list::parse(text)?;
        let is_dmarc = tags.first().is_some_and(|tag| *tag == ("v", "DMARC1"));
        is_dmarc.then_some(tags)
    });
    let (Some(tags), None) = (policies.next(), policies.next()) else { return None };
    let tag = |name| tag_list::value(&tags, name);
    let action = tag("sp").filter(|_| is_above).or_else(|| tag("p")).unwrap_or("none");
    let is_strict = |name| tag(name).is_some_and(|mode| mode.eq_ignore_ascii_case("s"));
    Some(DmarcPolicy {
        action: match action {
            action if action.eq_ignore_ascii_case("reject") => DmarcAction::Reject,
            action if action.eq_ignore_ascii_case("quarantine") => DmarcAction::Quarantine,
            _ => DmarcAction::None,
        },
        strict_dkim: is_strict("adkim"),
        strict_spf: is_strict("aspf"),
        has_reports: tag("rua").is_some_and(|addresses| !addresses.is_empty()),
    })
}
