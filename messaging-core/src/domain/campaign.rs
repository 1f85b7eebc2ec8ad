//! Campaigns: each sends one content to a whole audience, once.
//!
//! Contract section 12. The stored row is defined here. [`input`] has the requests that create or change a campaign,
//! [`check`] its rules, [`settings`] its settings, [`state`] the permitted changes of status and [`refusal`] the
//! reasons against one, [`schedule`] the start, [`audience`] the recipients, [`archive`] the public archive, [`split`]
//! the assignment of recipients to variants, [`winner`] the choice of the best variant, [`outcome`] the result for one
//! recipient, [`stats`] the results of all, and [`progress`] the state of the work.
//! [`recipient_time`](crate::domain::delivery::recipient_time) decides when a recipient gets the campaign.

pub mod archive;
pub mod audience;
pub mod check;
pub mod input;
pub mod outcome;
pub mod progress;
pub mod refusal;
pub mod schedule;
pub mod settings;
pub mod split;
pub mod state;
pub mod stats;
pub mod test_send;
pub mod winner;

use std::collections::BTreeSet;

use jiff::civil::DateTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::settings::{Settings, Weight};
use self::winner::Score;
use crate::domain::channel::Channel;
use crate::domain::limits::MAX_NAME;
use crate::ids::{CampaignId, DomainId, ListId, SegmentId, TemplateId, WorkspaceId};
use crate::time::Timestamp;

/// Minimum number of variants of an A/B test.
pub const MIN_VARIANTS: u64 = 2;
/// Maximum number of variants of an A/B test.
pub const MAX_VARIANTS: u64 = 5;
/// Maximum number of lists or segments in one member of an audience. The contract is silent; each is a scan of its
/// own.
pub const MAX_AUDIENCE_IDS: u64 = 100;

/// A campaign as stored: the plan of its author, and the state of the work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Campaign {
    /// Its id.
    pub id: CampaignId,
    /// Workspace that sends it.
    pub workspace_id: WorkspaceId,
    /// Content, audience and settings. They change in drafts only, except `archived`.
    #[serde(flatten)]
    pub plan: CampaignPlan,
    /// Status of the campaign, from draft to sent, failed or cancelled.
    pub status: CampaignStatus,
    /// Phase of its A/B test; `None` before the test begins, after the campaign has ended, and without a test.
    pub phase: Option<CampaignPhase>,
    /// When the campaign is to begin, or to continue.
    pub scheduled_at: Option<Timestamp>,
    /// Wall-clock time at which each recipient gets the campaign in their own zone; set by `by_timezone`.
    pub wall_time: Option<DateTime>,
    /// When it was last scheduled; see [`Campaign::is_stale`].
    pub schedule_called_at: Option<Timestamp>,
    /// When it first began to send; its audience is frozen as of then.
    pub started_at: Option<Timestamp>,
    /// When it was sent, failed or was cancelled.
    pub completed_at: Option<Timestamp>,
    /// Number of recipients; `None` until the audience is frozen.
    pub recipients: Option<u64>,
    /// When the last message of the test group left `waiting`, which begins the `wait_minutes`.
    pub test_sent_at: Option<Timestamp>,
    /// Index of the winner among the variants.
    pub winner: Option<usize>,
    /// Scores of the variants when the winner was chosen; empty before.
    pub scores: Vec<Score>,
    /// Reason of the pause; `None` unless the campaign is paused.
    pub pause_reason: Option<PauseReason>,
    /// Reason of the failure; `None` unless the campaign failed.
    pub failure_reason: Option<FailureReason>,
    /// Sending domains of its senders when it was last scheduled. They cannot be deleted while the campaign is open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sending_domains: Vec<DomainId>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// The part of a campaign that its author writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CampaignPlan {
    /// Its name; several campaigns may have one.
    pub name: String,
    /// The channel it is sent on.
    pub channel: Channel,
    /// Kind of the campaign: regular, or an A/B test that compares variants.
    pub kind: CampaignKind,
    /// Template of all variants that name none.
    pub template_id: TemplateId,
    /// A template of the subject, in place of the template's own.
    pub subject_override: Option<String>,
    /// A template of the sender's display name.
    pub from_name: Option<String>,
    /// Address of the sender.
    pub from_email: Option<String>,
    /// Address to which recipients reply (`Reply-To`); email only.
    pub reply_to: Option<String>,
    /// Lists and segments whose members get the campaign, and lists whose members do not.
    pub audience: Audience,
    /// Variants of an A/B test; empty in a regular campaign.
    pub variants: Vec<Variant>,
    /// Settings for sending: link parameters, quiet hours, frequency cap, A/B test and rate limit.
    pub settings: Settings,
    /// False keeps the campaign out of the public archive.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub archived: bool,
}

const fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
const fn is_yes(flag: &bool) -> bool {
    *flag
}

/// Audience of a campaign: members of any of the lists or segments, but of none of the excluded lists.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Audience {
    /// Lists whose members get it.
    pub list_ids: Vec<ListId>,
    /// Segments whose members get it.
    pub segment_ids: Vec<SegmentId>,
    /// Lists whose members do not get it.
    pub exclude_list_ids: Vec<ListId>,
}

impl Audience {
    /// Returns true if it names no list and no segment whose members could get the campaign.
    pub const fn is_empty(&self) -> bool {
        self.list_ids.is_empty() && self.segment_ids.is_empty()
    }

    /// Returns everything that it names, with the pointer of each.
    pub fn references(&self) -> Vec<(String, Reference)> {
        let lists = |name: &str, ids: &[ListId]| -> Vec<_> {
            let one = |(index, id): (usize, &ListId)| (format!("/audience/{name}/{index}"), Reference::List(*id));
            ids.iter().enumerate().map(one).collect()
        };
        let segment =
            |(index, id): (usize, &SegmentId)| (format!("/audience/segment_ids/{index}"), Reference::Segment(*id));
        let mut found = lists("list_ids", &self.list_ids);
        found.extend(self.segment_ids.iter().enumerate().map(segment));
        found.extend(lists("exclude_list_ids", &self.exclude_list_ids));
        found
    }
}

/// A variant of a campaign, which an A/B test compares with the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Variant {
    /// Its name, unique in the campaign.
    pub name: String,
    /// Weight of its share of the recipients, in relation to the weights of the others.
    pub weight: Weight,
    /// A template of its subject, in place of the campaign's.
    pub subject: Option<String>,
    /// Its template, in place of the campaign's.
    pub template_id: Option<TemplateId>,
}

impl CampaignPlan {
    /// Returns the plan of a copy: the same with ` (copy)` appended to its name, which is shortened to have room for
    /// it.
    #[must_use]
    pub fn copy(&self) -> Self {
        const SUFFIX: &str = " (copy)";
        let kept: String =
            self.name.chars().take(usize::try_from(MAX_NAME).unwrap_or(usize::MAX) - SUFFIX.len()).collect();
        Self { name: format!("{}{SUFFIX}", kept.trim_end()), ..self.clone() }
    }

    /// Returns the indexes of its variants; a single `None` for a regular campaign.
    pub fn places(&self) -> Vec<Option<usize>> {
        if self.variants.is_empty() { vec![None] } else { (0..self.variants.len()).map(Some).collect() }
    }

    /// Returns the template of a variant, or the campaign's if it has none.
    pub fn template_of(&self, variant: Option<usize>) -> TemplateId {
        let own = variant.and_then(|place| self.variants.get(place)?.template_id);
        own.unwrap_or(self.template_id)
    }

    /// Returns the text in place of the template's subject: the variant's, else the campaign's.
    pub fn subject_of(&self, variant: Option<usize>) -> Option<&str> {
        let own = variant.and_then(|place| self.variants.get(place)?.subject.as_deref());
        own.or(self.subject_override.as_deref())
    }

    /// Returns the weights of its variants; one weight for a regular campaign.
    pub fn weights(&self) -> Vec<Weight> {
        if self.variants.is_empty() {
            return vec![Weight::ONE];
        }
        self.variants.iter().map(|variant| variant.weight).collect()
    }

    /// Returns everything that it names, with the pointer of each.
    pub fn references(&self) -> Vec<(String, Reference)> {
        let of_variant = |(index, variant): (usize, &Variant)| {
            variant.template_id.map(|id| (format!("/variants/{index}/template_id"), Reference::Template(id)))
        };
        let mut found = vec![("/template_id".to_owned(), Reference::Template(self.template_id))];
        found.extend(self.audience.references());
        found.extend(self.variants.iter().enumerate().filter_map(of_variant));
        found
    }
}

impl Campaign {
    /// Returns a new draft.
    pub fn draft(id: CampaignId, workspace_id: WorkspaceId, plan: CampaignPlan, now: Timestamp) -> Self {
        Self {
            id,
            workspace_id,
            plan,
            status: CampaignStatus::Draft,
            phase: None,
            scheduled_at: None,
            wall_time: None,
            schedule_called_at: None,
            started_at: None,
            completed_at: None,
            recipients: None,
            test_sent_at: None,
            winner: None,
            scores: Vec::new(),
            pause_reason: None,
            failure_reason: None,
            sending_domains: Vec::new(),
            created_at: now,
            updated_at: now,
        }
    }

    /// Returns the objects that cannot be deleted while the campaign is open: all that it names, and the sending
    /// domains of its senders.
    pub fn holds(&self) -> BTreeSet<Reference> {
        if !self.status.holds_references() {
            return BTreeSet::new();
        }
        let named = self.plan.references().into_iter().map(|(_, reference)| reference);
        named.chain(self.sending_domains.iter().copied().map(Reference::Domain)).collect()
    }
}

/// An object of the workspace that a campaign needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reference {
    /// A list.
    List(ListId),
    /// A segment.
    Segment(SegmentId),
    /// A template.
    Template(TemplateId),
    /// A sending domain.
    Domain(DomainId),
}

impl Reference {
    /// Returns the text form of the id.
    pub fn id_text(self) -> String {
        match self {
            Self::List(id) => id.to_string(),
            Self::Segment(id) => id.to_string(),
            Self::Template(id) => id.to_string(),
            Self::Domain(id) => id.to_string(),
        }
    }
}

/// Kind of a campaign: the same content for everybody, or an A/B test of variants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CampaignKind {
    /// Everybody gets the same.
    #[default]
    Regular,
    /// Some get one variant, some another.
    AbTest,
}

/// Status of a campaign (contract section 12.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CampaignStatus {
    /// The campaign is being written.
    Draft,
    /// The campaign begins, or continues, at its time.
    Scheduled,
    /// The audience is frozen and the messages are sent.
    Sending,
    /// The campaign sends nothing until it is scheduled again.
    Paused,
    /// Final: every recipient was handled.
    Sent,
    /// Final: the campaign cannot be sent.
    Failed,
    /// Final: the campaign was cancelled.
    Cancelled,
}

impl CampaignStatus {
    /// All of them, in the order of the stored numbers.
    pub const ALL: [Self; 7] =
        [Self::Draft, Self::Scheduled, Self::Sending, Self::Paused, Self::Sent, Self::Failed, Self::Cancelled];

    /// Returns the text form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Scheduled => "scheduled",
            Self::Sending => "sending",
            Self::Paused => "paused",
            Self::Sent => "sent",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns the status with a text form.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// Returns true if the campaign needs the lists, segments and templates that it names, which are `in_use` then.
    pub const fn holds_references(self) -> bool {
        matches!(self, Self::Scheduled | Self::Sending | Self::Paused)
    }

    /// Returns true if the status never changes again.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Sent | Self::Failed | Self::Cancelled)
    }
}

/// Phase of the A/B test of a campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CampaignPhase {
    /// The test group gets its variants.
    Testing,
    /// The test group has its messages; opens and clicks are counted.
    WaitingWinner,
    /// The rest of the audience gets the winner.
    Winner,
}

/// Reason for which a campaign is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    /// Somebody paused the campaign.
    User,
    /// The database was restored from a copy.
    Restored,
    /// The campaign was too late to continue without asking; see [`Campaign::is_stale`].
    Stale,
}

/// Reason for which a campaign failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureReason {
    /// The sender's domain is not verified any more.
    SenderDomainNotVerified,
    /// The template of the campaign was deleted.
    TemplateMissing,
    /// The channel has no settings any more.
    ChannelNotConfigured,
    /// An internal error, which the log has.
    Internal,
}
