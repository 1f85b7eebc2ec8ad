//! A campaign as the API shows it.

use messaging_core::domain::campaign::settings::Settings;
use messaging_core::domain::campaign::{
    Audience, Campaign, CampaignKind, CampaignPhase, CampaignPlan, CampaignStatus, FailureReason, PauseReason, Variant,
};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::template::warning::WarningCode;
use messaging_core::ids::{CampaignId, TemplateId};
use messaging_core::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::ops::context::Context;

/// A campaign as shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Campaign")]
#[non_exhaustive]
pub struct CampaignView {
    /// Id of the campaign.
    pub id: CampaignId,
    /// Name of the campaign.
    pub name: String,
    /// The channel it is sent on.
    pub channel: Channel,
    /// Kind of campaign: `regular`, or `ab_test` if it compares variants.
    pub kind: CampaignKind,
    /// Status of the campaign, from `draft` to `sent`, `failed` or `cancelled`.
    pub status: CampaignStatus,
    /// Phase of its A/B test; null without one.
    pub phase: Option<CampaignPhase>,
    /// Template of the variants that name none.
    pub template_id: TemplateId,
    /// Template text of the subject, in place of the template's own.
    pub subject_override: Option<String>,
    /// Template text of the sender's display name.
    pub from_name: Option<String>,
    /// Sender address.
    pub from_email: Option<String>,
    /// Address that replies go to, in place of the template's own.
    pub reply_to: Option<String>,
    /// Lists and segments whose members get the campaign, and lists whose members do not.
    pub audience: Audience,
    /// Variants that are compared; empty in a regular campaign.
    pub variants: Vec<Variant>,
    /// Settings of the sending; unset ones are null.
    pub settings: Settings,
    /// Time at which it is to begin or to be resumed.
    pub scheduled_at: Option<Timestamp>,
    /// True if each recipient gets it when their own clock shows the scheduled time.
    pub by_timezone: bool,
    /// Time when it began; the audience is the one at that time.
    pub started_at: Option<Timestamp>,
    /// Time when it was sent, failed or was cancelled.
    pub completed_at: Option<Timestamp>,
    /// Number of contacts that get it; null until the audience is known.
    pub recipients: Option<u64>,
    /// Name of the variant that won; null while none has.
    pub winner_variant: Option<String>,
    /// Reason why the campaign failed; null unless its status is `failed`.
    pub failure_reason: Option<FailureReason>,
    /// Number of recipients whose messages have not begun to be sent.
    pub waiting: u64,
    /// Reason why the campaign is paused; null unless its status is `paused`.
    pub pause_reason: Option<PauseReason>,
    /// False if no archive is to show it.
    pub archived: bool,
    /// Address of its page in the archive of the workspace; null while the archive does not show it.
    pub archive_url: Option<String>,
    /// Warnings about surprises when it is sent.
    pub warnings: Vec<CampaignWarning>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// Warning about a campaign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct CampaignWarning {
    /// Code of the warning, for programs.
    pub code: CampaignWarningCode,
    /// Template that causes the warning.
    pub template_id: TemplateId,
    /// Text of the warning, for people.
    pub message: String,
}

/// The kinds of warnings about campaigns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CampaignWarningCode {
    /// The HTML of the template has no `unsubscribe_url`: a footer with one is added when it is sent.
    UnsubscribeFooter,
}

/// Returns the view of a campaign.
pub(super) async fn of(cx: &Context<'_>, campaign: Campaign) -> Result<CampaignView, Error> {
    let waiting = match campaign.recipients {
        None | Some(0) => 0,
        Some(_) => campaign.waiting(&cx.store().campaign_counts(campaign.workspace_id, campaign.id).await?),
    };
    let warnings = warnings(cx, &campaign).await?;
    let archive_url = match campaign.started_at {
        Some(_) => cx.app.archive_url(&campaign).await?,
        None => None,
    };
    let by_timezone = campaign.wall_time.is_some();
    let Campaign { id, workspace_id: _, plan, status, phase, scheduled_at, started_at, completed_at, .. } = campaign;
    let CampaignPlan { name, channel, kind, template_id, subject_override, from_name, from_email, reply_to, .. } = plan;
    let CampaignPlan { audience, variants, settings, archived, .. } = plan;
    let winner = campaign.winner.and_then(|place| variants.get(place));
    Ok(CampaignView {
        id,
        name,
        channel,
        kind,
        status,
        phase,
        template_id,
        subject_override,
        from_name,
        from_email,
        reply_to,
        audience,
        winner_variant: winner.map(|variant| variant.name.clone()),
        variants,
        settings,
        scheduled_at,
        by_timezone,
        started_at,
        completed_at,
        recipients: campaign.recipients,
        failure_reason: campaign.failure_reason,
        waiting,
        pause_reason: campaign.pause_reason,
        archived,
        archive_url,
        warnings,
        created_at: campaign.created_at,
        updated_at: campaign.updated_at,
    })
}

/// Returns the warnings about a campaign, by the current versions of its templates; none once it has ended.
async fn warnings(cx: &Context<'_>, campaign: &Campaign) -> Result<Vec<CampaignWarning>, Error> {
    let mut warnings = Vec::new();
    if campaign.plan.channel != Channel::Email || campaign.status.is_final() {
        return Ok(warnings);
    }
    for template_id in templates_of(&campaign.plan) {
        let Some(head) = cx.app.template_head(campaign.workspace_id, template_id).await? else { continue };
        if head.warnings.iter().any(|warning| warning.code == WarningCode::NoUnsubscribeLink) {
            warnings.push(CampaignWarning {
                code: CampaignWarningCode::UnsubscribeFooter,
                template_id,
                message: "the HTML has no unsubscribe_url: a footer with one is added".to_owned(),
            });
        }
    }
    Ok(warnings)
}

/// Returns the ids of the templates that a plan sends, each once, in the order of its variants.
fn templates_of(plan: &CampaignPlan) -> Vec<TemplateId> {
    let mut ids = vec![];
    for place in plan.places() {
        let id = plan.template_of(place);
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    ids
}
