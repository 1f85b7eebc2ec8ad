//! What is wrong with a campaign, however it was sent: by itself, and with what it names.
//!
//! Contract sections 12.1 and 12.5.

use std::collections::HashSet;

use super::{CampaignKind, CampaignPlan, MIN_VARIANTS, Reference, Variant};
use crate::domain::channel::Channel;
use crate::domain::channel::address;
use crate::domain::template::Parts;
#[cfg(feature = "templates")]
use crate::domain::template::engine::{Kind, Program, on_large_stack};
use crate::violation::{FieldCode, Violations};

/// What is wrong with an id of nothing.
pub(crate) const NOT_FOUND: &str = "there is nothing with this id";

impl CampaignPlan {
    /// Adds what is wrong by itself, whatever the workspace has.
    pub(super) fn check(&self, violations: &mut Violations) {
        self.check_members_of_channel(violations);
        self.check_test(violations);
        self.check_sources(violations);
        for (pointer, address) in [("/from_email", &self.from_email), ("/reply_to", &self.reply_to)] {
            if let Some(address) = address {
                address::check_sent(Channel::Email, address, pointer, "not an email address", violations);
            }
        }
        if self.settings.quiet_hours.is_some_and(|quiet| quiet.start == quiet.end) {
            let rule = "must be another time than start";
            violations.add("/settings/quiet_hours/end", FieldCode::Conflict, rule);
        }
        if self.settings.frequency_cap.is_some_and(|cap| cap.per_day.is_none() && cap.per_week.is_none()) {
            violations.add("/settings/frequency_cap", FieldCode::Required, "per_day or per_week is required");
        }
    }

    /// The members that only some channels have (second table of contract section 4.1).
    fn check_members_of_channel(&self, violations: &mut Violations) {
        let mut deny = |is_given: bool, pointer: &str| {
            if is_given {
                violations.add(pointer, FieldCode::NotAllowed, format_args!("{} has no such field", self.channel));
            }
        };
        if self.channel != Channel::Email {
            deny(self.from_name.is_some(), "/from_name");
            deny(self.from_email.is_some(), "/from_email");
            deny(self.reply_to.is_some(), "/reply_to");
        }
        if !matches!(self.channel, Channel::Email | Channel::Push) {
            deny(self.subject_override.is_some(), "/subject_override");
            for (index, variant) in self.variants.iter().enumerate() {
                deny(variant.subject.is_some(), &format!("/variants/{index}/subject"));
            }
        }
    }

    /// What belongs to an A/B test, and only to one.
    fn check_test(&self, violations: &mut Violations) {
        if self.kind == CampaignKind::Regular {
            if !self.variants.is_empty() {
                violations.add("/variants", FieldCode::NotAllowed, "only an ab_test has variants");
            }
            if self.settings.ab_test.is_some() {
                violations.add("/settings/ab_test", FieldCode::NotAllowed, "only an ab_test has these settings");
            }
            return;
        }
        if self.variants.is_empty() {
            violations.add("/variants", FieldCode::Required, "an ab_test needs 2 to 5 variants");
        } else if (self.variants.len() as u64) < MIN_VARIANTS {
            violations.add("/variants", FieldCode::TooShort, "an ab_test needs 2 to 5 variants");
        }
        let mut names = HashSet::new();
        for (index, variant) in self.variants.iter().enumerate() {
            if !names.insert(&variant.name) {
                let rule = "another variant has this name";
                violations.add(format!("/variants/{index}/name"), FieldCode::Duplicate, rule);
            }
        }
    }

    /// The templates that stand in the campaign itself, subjects and the sender's name, each with its pointer.
    pub fn sources(&self) -> Vec<(String, String)> {
        let of_variant = |(index, variant): (usize, &Variant)| {
            variant.subject.clone().map(|subject| (format!("/variants/{index}/subject"), subject))
        };
        let own = [("/subject_override", &self.subject_override), ("/from_name", &self.from_name)];
        let own = own.into_iter().filter_map(|(pointer, text)| Some((pointer.to_owned(), text.clone()?)));
        own.chain(self.variants.iter().enumerate().filter_map(of_variant)).collect()
    }

    /// What is wrong with [`CampaignPlan::sources`] at first sight; whether they compile is found by [`check_syntax`].
    fn check_sources(&self, violations: &mut Violations) {
        for (pointer, source) in &self.sources() {
            if source.chars().any(char::is_control) {
                let rule = "must be one line without control characters";
                violations.add(pointer, FieldCode::InvalidFormat, rule);
            }
        }
    }

    /// Adds what is wrong with what was found under the ids that it names ([`CampaignPlan::references`]).
    pub fn judge(&self, found: &[ResolvedReference], violations: &mut Violations) {
        judge_found(self.channel, found, violations);
    }
}

/// Adds what is wrong with what was found under ids that a campaign of a channel names.
pub fn judge_found(channel: Channel, found: &[ResolvedReference], violations: &mut Violations) {
    for ResolvedReference { pointer, target, .. } in found {
        match target {
            ReferenceTarget::Nothing => violations.add(pointer, FieldCode::NotFound, NOT_FOUND),
            ReferenceTarget::Template { channel: own, .. } if *own != channel => {
                violations.add(pointer, FieldCode::Conflict, "the template is for another channel");
            }
            ReferenceTarget::Template { .. } | ReferenceTarget::Other => {}
        }
    }
}

/// Whether a text has anything that must be compiled; most subjects are plain.
pub fn is_template(source: &str) -> bool {
    source.contains('{')
}

/// Compiles templates, each with the pointer of its member. Waits for a thread of its own: not to be called where
/// others wait meanwhile.
#[cfg(feature = "templates")]
pub fn check_syntax(sources: Vec<(String, String)>) -> Violations {
    let mut violations = Violations::new();
    let sources: Vec<_> = sources.into_iter().filter(|(_, source)| is_template(source)).collect();
    if sources.is_empty() {
        return violations;
    }
    let compile = |(pointer, source): (String, String)| {
        Program::compile(&source, Kind::Plain).err().map(|fault| (pointer, fault))
    };
    let faults: Vec<_> = on_large_stack(|| sources.into_iter().filter_map(compile).collect());
    for (pointer, fault) in faults {
        violations.add_at(&pointer, FieldCode::Syntax, &fault, fault.position);
    }
    violations
}

/// What was looked up of the things that a campaign names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedReference {
    /// The member that names it.
    pub pointer: String,
    /// Object that the member refers to, by its id.
    pub reference: Reference,
    /// Result of the look-up: what is stored under that id.
    pub target: ReferenceTarget,
}

/// Resource that is stored under an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceTarget {
    /// Nothing in this workspace.
    Nothing,
    /// A template.
    Template {
        /// Its channel.
        channel: Channel,
        /// The parts it has.
        parts: Parts,
    },
    /// A list or a segment.
    Other,
}
