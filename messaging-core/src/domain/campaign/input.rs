//! What is sent to make or change a campaign, and the rules it must keep.
//!
//! Contract sections 12.1 and 12.5. A change replaces the top-level members that are given; what it makes of the
//! campaign is judged as a whole, by the same rules as a new one. What a campaign names is looked up by the caller,
//! who tells [`Plan::judge`] what was found.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use validator::{Validate, ValidationError};

use super::settings::{Settings, Weight};
use super::{Audience, CampaignKind, MAX_AUDIENCE_IDS, MAX_VARIANTS, MIN_VARIANTS, Plan, Reference, Variant};
use crate::domain::address;
use crate::domain::channel::Channel;
use crate::domain::limits::{MAX_DISPLAY_NAME, MAX_NAME, MAX_SUBJECT};
use crate::domain::template::Parts;
use crate::domain::template::engine::{Kind, Program, on_large_stack};
use crate::ids::Id;
use crate::input::Input;
use crate::patch::{Patch, Replace};
use crate::violation::{FieldCode, Violations};

/// A campaign to create.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct CampaignInput {
    /// 1 to 200 characters; several campaigns may have one name.
    #[validate(length(min = 1, max = MAX_NAME))]
    pub name: String,
    /// The channel it is sent on.
    pub channel: Channel,
    /// The template that is sent.
    pub template_id: String,
    /// Who is to get it.
    #[validate(nested)]
    pub audience: AudienceInput,
    /// `ab_test` compares variants.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub kind: Patch<CampaignKind>,
    /// Email and push: a template of the subject or title, in place of the template's own; at most 998 characters.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    #[validate(length(min = 1, max = MAX_SUBJECT))]
    pub subject_override: Patch<String>,
    /// Email only: a template of the sender's display name, at most 128 characters.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    #[validate(length(max = MAX_DISPLAY_NAME))]
    pub from_name: Patch<String>,
    /// Email only: the sender; belongs to a verified domain of the workspace.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub from_email: Patch<String>,
    /// Email only: where replies go.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub reply_to: Patch<String>,
    /// What an A/B test compares, 2 to 5 variants.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    #[validate(length(max = MAX_VARIANTS), custom(function = "are_variants"))]
    pub variants: Patch<Vec<VariantInput>>,
    /// How it is sent.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    #[validate(custom(function = "are_settings"))]
    pub settings: Patch<Settings>,
}

/// What changes of a campaign. Members that are given replace those of the campaign; null clears.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct CampaignPatch {
    /// 1 to 200 characters; several campaigns may have one name.
    #[serde(default, skip_serializing_if = "Replace::is_absent")]
    #[validate(length(min = 1, max = MAX_NAME))]
    pub name: Replace<String>,
    /// The channel it is sent on.
    #[serde(default, skip_serializing_if = "Replace::is_absent")]
    pub channel: Replace<Channel>,
    /// The template that is sent.
    #[serde(default, skip_serializing_if = "Replace::is_absent")]
    #[validate(length(min = 1))]
    pub template_id: Replace<String>,
    /// Who is to get it.
    #[serde(default, skip_serializing_if = "Replace::is_absent")]
    #[validate(custom(function = "is_audience"))]
    pub audience: Replace<AudienceInput>,
    /// `ab_test` compares variants.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub kind: Patch<CampaignKind>,
    /// Email and push: a template of the subject or title, in place of the template's own; at most 998 characters.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    #[validate(length(min = 1, max = MAX_SUBJECT))]
    pub subject_override: Patch<String>,
    /// Email only: a template of the sender's display name, at most 128 characters.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    #[validate(length(max = MAX_DISPLAY_NAME))]
    pub from_name: Patch<String>,
    /// Email only: the sender; belongs to a verified domain of the workspace.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub from_email: Patch<String>,
    /// Email only: where replies go.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub reply_to: Patch<String>,
    /// What an A/B test compares, 2 to 5 variants.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    #[validate(length(max = MAX_VARIANTS), custom(function = "are_variants"))]
    pub variants: Patch<Vec<VariantInput>>,
    /// How it is sent.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    #[validate(custom(function = "are_settings"))]
    pub settings: Patch<Settings>,
}

/// Who is to get a campaign: members of any of the lists or segments, but of none of the excluded lists.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct AudienceInput {
    /// Lists whose members get it.
    #[serde(default)]
    #[validate(length(max = MAX_AUDIENCE_IDS))]
    pub list_ids: Option<Vec<String>>,
    /// Segments whose members get it.
    #[serde(default)]
    #[validate(length(max = MAX_AUDIENCE_IDS))]
    pub segment_ids: Option<Vec<String>>,
    /// Lists whose members do not get it.
    #[serde(default)]
    #[validate(length(max = MAX_AUDIENCE_IDS))]
    pub exclude_list_ids: Option<Vec<String>>,
}

/// One of the things that an A/B test compares.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct VariantInput {
    /// Its name, unique in the campaign; A, B, C and so on by its place when left out.
    #[serde(default)]
    #[validate(length(min = 1, max = MAX_NAME))]
    pub name: Option<String>,
    /// Its share of the recipients in relation to the others' weights, more than 0; 1 when left out.
    #[serde(default)]
    pub weight: Option<Weight>,
    /// Email and push: a template of its subject or title, in place of the campaign's.
    #[serde(default)]
    #[validate(length(min = 1, max = MAX_SUBJECT))]
    pub subject: Option<String>,
    /// Its template, in place of the campaign's.
    #[serde(default)]
    pub template_id: Option<String>,
}

/// The body of an estimate: a campaign's, of which only the channel and the audience count.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct AudiencePreviewInput {
    /// The channel.
    pub channel: Channel,
    /// Who is to get it.
    #[validate(nested)]
    pub audience: AudienceInput,
}

impl Input for AudiencePreviewInput {
    const READ_ONLY: &'static [&'static str] = &[
        "name",
        "kind",
        "template_id",
        "subject_override",
        "from_name",
        "from_email",
        "reply_to",
        "variants",
        "settings",
    ];
}

/// A variant to declare the winner.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct WinnerInput {
    /// Its name.
    pub variant: String,
}

impl Input for WinnerInput {}

/// What is inside of a member that may be left out is validated here: `nested` knows nothing of [`Patch`].
fn is_valid<T: Validate>(inner: Option<&T>) -> Result<(), ValidationError> {
    let faults = inner.is_some_and(|inner| inner.validate().is_err());
    if faults { Err(ValidationError::new("nested")) } else { Ok(()) }
}

fn are_settings(settings: &Patch<Settings>) -> Result<(), ValidationError> {
    is_valid(settings.as_value())
}

fn are_variants(variants: &Patch<Vec<VariantInput>>) -> Result<(), ValidationError> {
    variants.as_value().into_iter().flatten().try_for_each(|variant| is_valid(Some(variant)))
}

fn is_audience(audience: &Replace<AudienceInput>) -> Result<(), ValidationError> {
    is_valid(audience.clone().value().as_ref())
}

impl Input for CampaignInput {
    fn check(&self, violations: &mut Violations) {
        self.clone().into_plan(violations);
    }
}

impl Input for CampaignPatch {
    /// What a change means can only be judged on the campaign: [`CampaignPatch::apply`].
    fn check(&self, _: &mut Violations) {}
}

impl CampaignInput {
    /// The campaign that was sent. Adds what is wrong with it; the plan then is none to store.
    pub fn into_plan(self, violations: &mut Violations) -> Plan {
        let blank = Plan {
            name: self.name,
            channel: self.channel,
            kind: CampaignKind::default(),
            template_id: id_or_nil(&self.template_id, "/template_id", violations),
            subject_override: None,
            from_name: None,
            from_email: None,
            reply_to: None,
            audience: self.audience.read(violations),
            variants: Vec::new(),
            settings: Settings::default(),
        };
        let rest = CampaignPatch {
            kind: self.kind,
            subject_override: self.subject_override,
            from_name: self.from_name,
            from_email: self.from_email,
            reply_to: self.reply_to,
            variants: self.variants,
            settings: self.settings,
            ..CampaignPatch::default()
        };
        rest.apply(blank, violations)
    }
}

impl CampaignPatch {
    /// The campaign after the change. Adds what is wrong with it as a whole; the plan then is none to store.
    pub fn apply(self, mut plan: Plan, violations: &mut Violations) -> Plan {
        if let Some(name) = self.name.value() {
            plan.name = name;
        }
        if let Some(channel) = self.channel.value() {
            plan.channel = channel;
        }
        if let Some(template) = self.template_id.value() {
            plan.template_id = id_or_nil(&template, "/template_id", violations);
        }
        if let Some(audience) = self.audience.value() {
            plan.audience = audience.read(violations);
        }
        match self.kind {
            Patch::Absent => {}
            Patch::Null => plan.kind = CampaignKind::default(),
            Patch::Set(kind) => plan.kind = kind,
        }
        self.subject_override.apply(&mut plan.subject_override);
        self.from_name.apply(&mut plan.from_name);
        self.from_email.apply(&mut plan.from_email);
        self.reply_to.apply(&mut plan.reply_to);
        match self.variants {
            Patch::Absent => {}
            Patch::Null => plan.variants = Vec::new(),
            Patch::Set(sent) => {
                let read = |(index, variant): (usize, VariantInput)| variant.read(index, violations);
                plan.variants = sent.into_iter().enumerate().map(read).collect();
            }
        }
        match self.settings {
            Patch::Absent => {}
            Patch::Null => plan.settings = Settings::default(),
            Patch::Set(settings) => plan.settings = settings,
        }
        plan.check(violations);
        plan
    }
}

impl AudienceInput {
    /// The ids in it. What is no id is `not_found`, like an id of nothing.
    pub fn read(&self, violations: &mut Violations) -> Audience {
        Audience {
            list_ids: ids(self.list_ids.as_deref(), "list_ids", violations),
            segment_ids: ids(self.segment_ids.as_deref(), "segment_ids", violations),
            exclude_list_ids: ids(self.exclude_list_ids.as_deref(), "exclude_list_ids", violations),
        }
    }
}

fn ids<I: Id>(texts: Option<&[String]>, member: &str, violations: &mut Violations) -> Vec<I> {
    let read = |(index, text): (usize, &String)| id_or_nil(text, &format!("/audience/{member}/{index}"), violations);
    texts.unwrap_or_default().iter().enumerate().map(read).collect()
}

/// An id; one of nothing in place of what is none, so that what stands beside it is judged too.
fn id_or_nil<I: Id>(text: &str, pointer: &str, violations: &mut Violations) -> I {
    text.parse().unwrap_or_else(|_| {
        violations.add(pointer, FieldCode::NotFound, NOT_FOUND);
        I::from_bytes([0; 16])
    })
}

const NOT_FOUND: &str = "there is nothing with this id";

impl VariantInput {
    fn read(self, index: usize, violations: &mut Violations) -> Variant {
        let by_place = || char::from(b'A' + u8::try_from(index % 26).unwrap_or_default()).to_string();
        let template_id = self.template_id.map(|text| {
            let pointer = format!("/variants/{index}/template_id");
            id_or_nil(&text, &pointer, violations)
        });
        Variant {
            name: self.name.unwrap_or_else(by_place),
            weight: self.weight.unwrap_or_default(),
            subject: self.subject,
            template_id,
        }
    }
}

impl Plan {
    /// Adds what is wrong by itself, whatever the workspace has.
    fn check(&self, violations: &mut Violations) {
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

    /// The templates that stand in the campaign itself: subjects and the sender's name.
    fn check_sources(&self, violations: &mut Violations) {
        let of_variant = |(index, variant): (usize, &Variant)| {
            variant.subject.clone().map(|subject| (format!("/variants/{index}/subject"), subject))
        };
        let own = [("/subject_override", &self.subject_override), ("/from_name", &self.from_name)];
        let own = own.into_iter().filter_map(|(pointer, text)| Some((pointer.to_owned(), text.clone()?)));
        let sources: Vec<_> = own.chain(self.variants.iter().enumerate().filter_map(of_variant)).collect();
        for (pointer, source) in &sources {
            if source.chars().any(char::is_control) {
                let rule = "must be one line without control characters";
                violations.add(pointer, FieldCode::InvalidFormat, rule);
            }
        }
        // Compiling takes a thread of its own, and most subjects are plain.
        if sources.iter().any(|(_, source)| source.contains('{')) {
            let faults = on_large_stack(|| {
                let compile = |(pointer, source): (String, String)| {
                    Program::compile(&source, Kind::Plain).err().map(|fault| (pointer, fault))
                };
                sources.into_iter().filter_map(compile).collect::<Vec<_>>()
            });
            for (pointer, fault) in faults {
                violations.add_at(&pointer, FieldCode::Syntax, &fault, fault.position);
            }
        }
    }

    /// Adds what is wrong with what was found under the ids that it names ([`Plan::references`]).
    pub fn judge(&self, found: &[Found], violations: &mut Violations) {
        for Found { pointer, what, .. } in found {
            match what {
                FoundAs::Nothing => violations.add(pointer, FieldCode::NotFound, NOT_FOUND),
                FoundAs::Template { channel, .. } if *channel != self.channel => {
                    violations.add(pointer, FieldCode::Conflict, "the template is for another channel");
                }
                FoundAs::Template { .. } | FoundAs::Other => {}
            }
        }
    }
}

/// What was looked up of the things that a campaign names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The member that names it.
    pub pointer: String,
    /// What it names.
    pub reference: Reference,
    /// What is there.
    pub what: FoundAs,
}

/// What is stored under an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundAs {
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

#[cfg(test)]
mod tests;
