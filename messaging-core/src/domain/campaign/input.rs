//! Requests that create or change a campaign, with their rules.
//!
//! Contract sections 12.1 and 12.5. A change replaces the top-level members that are given; the changed campaign is
//! judged as a whole, by the same rules as a new one. The caller looks up the objects that a campaign names and passes
//! them to [`CampaignPlan::judge`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::NOT_FOUND;
use super::settings::{Settings, Weight};
use super::{Audience, CampaignKind, CampaignPlan, MAX_AUDIENCE_IDS, MAX_VARIANTS, Variant};
use crate::domain::channel::Channel;
use crate::domain::limits::{MAX_DISPLAY_NAME, MAX_NAME, MAX_SUBJECT};
use crate::ids::Id;
use crate::input::Input;
use crate::patch::{Patch, Replace};
use crate::validate::Validate;
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
    /// Audience: the lists and segments whose members get the campaign, and the lists whose members do not.
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
    /// Variants of an A/B test, 2 to 5.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    #[validate(length(max = MAX_VARIANTS), nested)]
    pub variants: Patch<Vec<VariantInput>>,
    /// Settings for sending: link parameters, quiet hours, frequency cap, A/B test and rate limit.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    #[validate(nested)]
    pub settings: Patch<Settings>,
    /// False keeps it out of the archive of the workspace; true unless given.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub archived: Patch<bool>,
}

/// Changes to a campaign. Members that are given replace those of the campaign; null clears.
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
    /// Audience: the lists and segments whose members get the campaign, and the lists whose members do not.
    #[serde(default, skip_serializing_if = "Replace::is_absent")]
    #[validate(nested)]
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
    /// Variants of an A/B test, 2 to 5.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    #[validate(length(max = MAX_VARIANTS), nested)]
    pub variants: Patch<Vec<VariantInput>>,
    /// Settings for sending: link parameters, quiet hours, frequency cap, A/B test and rate limit.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    #[validate(nested)]
    pub settings: Patch<Settings>,
    /// False keeps it out of the archive of the workspace; can be changed in every status.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub archived: Patch<bool>,
}

/// Audience of a campaign: members of any of the lists or segments, but of none of the excluded lists.
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

/// A variant of a campaign, which an A/B test compares with the others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct VariantInput {
    /// Its name, unique in the campaign; A, B, C and so on by its place when left out.
    #[serde(default)]
    #[validate(length(min = 1, max = MAX_NAME))]
    pub name: Option<String>,
    /// Weight of its share of the recipients, in relation to the weights of the others, more than 0; 1 when left out.
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

/// Body of a request for an estimate: that of a campaign, of which only channel and audience count.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct AudiencePreviewInput {
    /// The channel.
    pub channel: Channel,
    /// Audience: the lists and segments whose members are counted, and the lists whose members are left out.
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
        "archived",
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

impl Input for CampaignInput {
    fn check(&self, violations: &mut Violations) {
        self.clone().into_plan(violations);
    }
}

impl Input for CampaignPatch {
    /// A change can only be judged together with the campaign: [`CampaignPatch::apply`].
    fn check(&self, _: &mut Violations) {}
}

impl CampaignInput {
    /// Returns the plan that was sent. Adds its faults; a plan with faults must not be stored.
    pub fn into_plan(self, violations: &mut Violations) -> CampaignPlan {
        let blank = CampaignPlan {
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
            archived: true,
        };
        let rest = CampaignPatch {
            kind: self.kind,
            subject_override: self.subject_override,
            from_name: self.from_name,
            from_email: self.from_email,
            reply_to: self.reply_to,
            variants: self.variants,
            settings: self.settings,
            archived: self.archived,
            ..CampaignPatch::default()
        };
        rest.apply(blank, violations)
    }
}

impl CampaignPatch {
    /// Returns the plan after the change. Adds its faults as a whole; a plan with faults must not be stored.
    pub fn apply(self, mut plan: CampaignPlan, violations: &mut Violations) -> CampaignPlan {
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
        plan.archived = self.archived.or(plan.archived, true);
        plan.check(violations);
        plan
    }

    /// Returns the value of `archived` after a change that gives this member alone, which is allowed in every status;
    /// `None` for any other change.
    pub fn archived_alone(&self) -> Option<bool> {
        let Self { name, channel, template_id, audience, kind, subject_override, from_name, .. } = self;
        let Self { from_email, reply_to, variants, settings, archived, .. } = self;
        let replaced = [name.is_absent(), channel.is_absent(), template_id.is_absent(), audience.is_absent()];
        let texts = [subject_override, from_name, from_email, reply_to].map(Patch::is_absent);
        let rest = [kind.is_absent(), variants.is_absent(), settings.is_absent(), !archived.is_absent()];
        let is_alone = replaced.into_iter().chain(texts).chain(rest).all(|holds| holds);
        is_alone.then(|| archived.clone().or(true, true))
    }
}

impl AudienceInput {
    /// Parses the ids. A malformed one is `not_found`, like an id of nothing.
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

/// Parses an id. A malformed one is replaced by an id of nothing, so that the members beside it are judged too.
fn id_or_nil<I: Id>(text: &str, pointer: &str, violations: &mut Violations) -> I {
    text.parse().unwrap_or_else(|_| {
        violations.add(pointer, FieldCode::NotFound, NOT_FOUND);
        I::from_bytes([0; 16])
    })
}

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

#[cfg(test)]
mod tests;
