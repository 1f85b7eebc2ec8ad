//! Actions that change the status of a campaign.
//!
//! Contract sections 1.8, 12.2 and 12.5. Each action changes the one row of the campaign, whatever its size; jobs,
//! which read the row, do the work on its messages.

use http::{Method, StatusCode};
use messaging_core::changes::{Expect, Write};
use messaging_core::domain::campaign::Campaign;
use messaging_core::domain::campaign::input::WinnerInput;
use messaging_core::domain::campaign::schedule::ScheduleInput;
use messaging_core::domain::campaign::stats::trials;
use messaging_core::domain::campaign::winner::scores;
use messaging_core::input::Empty;
use messaging_core::ports::store::Stored;
use messaging_core::scope::{Access, Scope};
use messaging_core::violation::Violations;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CampaignPath, CampaignView, find, refuse, view};
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, Operation};

/// A campaign after an action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct CampaignAction {
    /// The campaign.
    #[serde(flatten)]
    pub campaign: CampaignView,
    /// Result of the action, such as `scheduled`, `paused` or `cancelled`.
    pub result: CampaignResult,
}

/// Result of an action on a campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CampaignResult {
    /// The campaign begins, or continues, at its time.
    Scheduled,
    /// Nothing more of the campaign is sent until it is scheduled again.
    Paused,
    /// The campaign is cancelled; messages that were not sent are withdrawn.
    Cancelled,
    /// The campaign is a draft again.
    Unscheduled,
    /// The remaining recipients get the variant that was named.
    WinnerChosen,
}

/// Stores the campaign after an action, and returns its view.
async fn moved(
    cx: &mut Context<'_>,
    campaign: Campaign,
    revision: u32,
    result: CampaignResult,
) -> Result<CampaignAction, Error> {
    cx.change(Write::put(Box::new(campaign.clone()), Expect::Revision(revision)));
    for write in cx.app.campaign_changed(&campaign, cx.now) {
        cx.change(write);
    }
    Ok(CampaignAction { campaign: view::of(cx, campaign).await?, result })
}

/// `POST /workspaces/{workspace_id}/campaigns/{id}/schedule`
pub struct ScheduleCampaign;

impl Operation for ScheduleCampaign {
    const ID: &'static str = "scheduleCampaign";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/campaigns/{id}/schedule";
    const ACCESS: Access = Access::Scope(Scope::CampaignsWrite);
    const SUCCESS: StatusCode = StatusCode::ACCEPTED;
    const CLI: &'static str = "campaign schedule";
    const SUMMARY: &'static str = "Send a campaign now or at a time; a paused one goes on";
    const LOOKS_UP: bool = true;
    type Path = CampaignPath;
    type Query = Empty;
    type Body = ScheduleInput;
    type Output = CampaignAction;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<CampaignAction, Error> {
        let Stored { record: campaign, revision } = find(cx, call.path).await?;
        let mut found = Violations::new();
        call.body.check_at(cx.now, &mut found);
        refuse(cx, found)?;
        let ready = cx.app.campaign_readiness(campaign.workspace_id, &campaign.plan).await?;
        let mut campaign = campaign.schedule(&call.body, &ready.as_readiness(), cx.now)?;
        // A campaign that has begun keeps its sending domains.
        if campaign.started_at.is_none() {
            campaign.sending_domains = ready.into_domains();
        }
        moved(cx, campaign, revision, CampaignResult::Scheduled).await
    }
}

/// `POST /workspaces/{workspace_id}/campaigns/{id}/pause`
pub struct PauseCampaign;

impl Operation for PauseCampaign {
    const ID: &'static str = "pauseCampaign";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/campaigns/{id}/pause";
    const ACCESS: Access = Access::Scope(Scope::CampaignsWrite);
    const SUCCESS: StatusCode = StatusCode::ACCEPTED;
    const CLI: &'static str = "campaign pause";
    const SUMMARY: &'static str = "Stop sending a campaign until it is scheduled again; its audience stays";
    type Path = CampaignPath;
    type Query = Empty;
    type Body = Empty;
    type Output = CampaignAction;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<CampaignAction, Error> {
        let Stored { record: campaign, revision } = find(cx, call.path).await?;
        let campaign = campaign.pause(cx.now)?;
        moved(cx, campaign, revision, CampaignResult::Paused).await
    }
}

/// `POST /workspaces/{workspace_id}/campaigns/{id}/cancel`
pub struct CancelCampaign;

impl Operation for CancelCampaign {
    const ID: &'static str = "cancelCampaign";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/campaigns/{id}/cancel";
    const ACCESS: Access = Access::Scope(Scope::CampaignsWrite);
    const SUCCESS: StatusCode = StatusCode::ACCEPTED;
    const CLI: &'static str = "campaign cancel";
    const SUMMARY: &'static str = "Withdraw a campaign: what has not been sent is cancelled, for good";
    type Path = CampaignPath;
    type Query = Empty;
    type Body = Empty;
    type Output = CampaignAction;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<CampaignAction, Error> {
        let Stored { record: campaign, revision } = find(cx, call.path).await?;
        let campaign = campaign.cancel(cx.now)?;
        moved(cx, campaign, revision, CampaignResult::Cancelled).await
    }
}

/// `POST /workspaces/{workspace_id}/campaigns/{id}/unschedule`
pub struct UnscheduleCampaign;

impl Operation for UnscheduleCampaign {
    const ID: &'static str = "unscheduleCampaign";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/campaigns/{id}/unschedule";
    const ACCESS: Access = Access::Scope(Scope::CampaignsWrite);
    const SUCCESS: StatusCode = StatusCode::ACCEPTED;
    const CLI: &'static str = "campaign unschedule";
    const SUMMARY: &'static str = "Make a campaign a draft again, before it has begun";
    type Path = CampaignPath;
    type Query = Empty;
    type Body = Empty;
    type Output = CampaignAction;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<CampaignAction, Error> {
        let Stored { record: campaign, revision } = find(cx, call.path).await?;
        let campaign = campaign.unschedule(cx.now)?;
        moved(cx, campaign, revision, CampaignResult::Unscheduled).await
    }
}

/// `POST /workspaces/{workspace_id}/campaigns/{id}/winner`
pub struct DeclareWinner;

impl Operation for DeclareWinner {
    const ID: &'static str = "declareWinner";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/campaigns/{id}/winner";
    const ACCESS: Access = Access::Scope(Scope::CampaignsWrite);
    const SUCCESS: StatusCode = StatusCode::ACCEPTED;
    const CLI: &'static str = "campaign winner";
    const SUMMARY: &'static str = "Say which variant whoever is left gets, while an A/B test waits for its winner";
    const LOOKS_UP: bool = true;
    type Path = CampaignPath;
    type Query = Empty;
    type Body = WinnerInput;
    type Output = CampaignAction;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<CampaignAction, Error> {
        let Stored { record: campaign, revision } = find(cx, call.path).await?;
        refuse(cx, Violations::new())?;
        let counts = cx.store().campaign_counts(campaign.workspace_id, campaign.id).await?;
        let known = scores(&trials(&campaign, &counts));
        let campaign = campaign.declare_winner(&call.body.variant, known, cx.now)?;
        moved(cx, campaign, revision, CampaignResult::WinnerChosen).await
    }
}
