//! Checks of a campaign by itself, and of the objects that it names.
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

/// Message of a violation: no object has the id.
pub(crate) const NOT_FOUND: &str = "there is nothing with this id";

impl CampaignPlan {
    /// Adds the faults that the plan has whatever the workspace has.
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

    /// Adds the members that the channel does not have (second table of contract section 4.1).
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

    /// Checks variants and settings of an A/B test, and that a regular campaign has none.
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

    /// Returns the texts of the campaign that are templates, subjects and the sender's name, each with its pointer.
    pub fn sources(&self) -> Vec<(String, String)> {
        let of_variant = |(index, variant): (usize, &Variant)| {
            variant.subject.clone().map(|subject| (format!("/variants/{index}/subject"), subject))
        };
        let own = [("/subject_override", &self.subject_override), ("/from_name", &self.from_name)];
        let own = own.into_iter().filter_map(|(pointer, text)| Some((pointer.to_owned(), text.clone()?)));
        own.chain(self.variants.iter().enumerate().filter_map(of_variant)).collect()
    }

    /// Checks that [`CampaignPlan::sources`] are single lines; [`check_syntax`] checks that they compile.
    fn check_sources(&self, violations: &mut Violations) {
        for (pointer, source) in &self.sources() {
            if source.chars().any(char::is_control) {
                let rule = "must be one line without control characters";
                violations.add(pointer, FieldCode::InvalidFormat, rule);
            }
        }
    }

    /// Adds the faults of the objects that the campaign names ([`CampaignPlan::references`]).
    pub fn judge(&self, found: &[ResolvedReference], violations: &mut Violations) {
        judge_found(self.channel, found, violations);
    }
}

/// Adds the faults of objects that a campaign of a channel names: missing ones, and templates for another channel.
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

/// Returns true if a text has anything to compile; most subjects are plain.
pub fn is_template(source: &str) -> bool {
    source.contains('{')
}

/// Compiles templates, each with the pointer of its member, and returns the faults. Blocks until a thread with a large
/// stack has done it, so it must not be called on a thread that other tasks need meanwhile.
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

/// Result of looking up an object that a campaign names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedReference {
    /// JSON Pointer of the member that names the object.
    pub pointer: String,
    /// Object that the member refers to, by its id.
    pub reference: Reference,
    /// Result of the look-up: what is stored under that id.
    pub target: ReferenceTarget,
}

/// Resource that is stored under an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceTarget {
    /// No object of this workspace.
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
