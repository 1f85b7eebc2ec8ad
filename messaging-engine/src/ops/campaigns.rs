//! Campaigns.
//!
//! Contract section 12. The allowed changes of status are in [`messaging_core::domain::campaign`]. Beside this file:
//! the view of a campaign ([`CampaignView`]), [`actions`] that change its status, its audience before it starts
//! ([`preview`]), its recipients ([`recipients`]), and tests of its content. Jobs do the work that follows.

pub mod actions;
pub mod preview;
pub mod recipients;
pub mod test_send;
mod view;

use http::{Method, StatusCode};
use messaging_core::changes::{DocumentKey, Expect, Write};
use messaging_core::domain::campaign::check::{ReferenceTarget, ResolvedReference};
use messaging_core::domain::campaign::input::{CampaignInput, CampaignPatch};
use messaging_core::domain::campaign::{Campaign, CampaignPlan, CampaignStatus};
use messaging_core::domain::limits::MAX_PAGE_SIZE;
use messaging_core::ids::{CampaignId, WorkspaceId};
use messaging_core::input::{Empty, Input, PageQuery};
use messaging_core::ports::store::{Slice, Stored};
use messaging_core::scope::{Access, Scope};
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::Violations;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, InWorkspace, NoContent, Operation};
use crate::ops::page::Page;

pub use view::{CampaignView, CampaignWarning, CampaignWarningCode};

/// Filter and page of a listing of campaigns.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[non_exhaustive]
pub struct CampaignQuery {
    /// Campaigns with this status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<CampaignStatus>,
    /// At most this many items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(range(min = 1, max = MAX_PAGE_SIZE))]
    pub limit: Option<u32>,
    /// `next_cursor` of the previous page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl Input for CampaignQuery {}

/// `GET /workspaces/{workspace_id}/campaigns`
pub struct ListCampaigns;

impl Operation for ListCampaigns {
    const ID: &'static str = "listCampaigns";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/campaigns";
    const ACCESS: Access = Access::Scope(Scope::CampaignsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "campaign list";
    const SUMMARY: &'static str = "List the campaigns, newest first";
    type Path = InWorkspace;
    type Query = CampaignQuery;
    type Body = Empty;
    type Output = Page<CampaignView>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<CampaignView>, Error> {
        let CampaignQuery { status, limit, cursor } = call.query;
        let page = cx.page(&PageQuery::of(limit, cursor))?;
        let Slice { items, next } = cx.store().campaigns(call.path.workspace_id, status, page).await?;
        let mut shown = Vec::with_capacity(items.len());
        for campaign in items {
            shown.push(view::of(cx, campaign).await?);
        }
        Ok(cx.answer_page(Slice { items: shown, next }, |view| view))
    }
}

/// `POST /workspaces/{workspace_id}/campaigns`
pub struct CreateCampaign;

impl Operation for CreateCampaign {
    const ID: &'static str = "createCampaign";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/campaigns";
    const ACCESS: Access = Access::Scope(Scope::CampaignsWrite);
    const SUCCESS: StatusCode = StatusCode::CREATED;
    const CLI: &'static str = "campaign create";
    const SUMMARY: &'static str = "Create a campaign; it is a draft until it is scheduled";
    const LOOKS_UP: bool = true;
    type Path = InWorkspace;
    type Query = Empty;
    type Body = CampaignInput;
    type Output = CampaignView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<CampaignView, Error> {
        // The operator can name any workspace, also one that does not exist.
        let workspace = cx.app.workspace(call.path.workspace_id).await?.ok_or(Error::NotFound)?.id;
        let mut found = Violations::new();
        let plan = call.body.into_plan(&mut found);
        cx.app.check_plan_templates(&plan, &mut found).await?;
        let references = cx.app.find_references(workspace, plan.references()).await?;
        plan.judge(&references, &mut found);
        refuse(cx, found)?;
        let campaign = Campaign::draft(cx.new_id(), workspace, plan, cx.now);
        cx.change(Write::put(Box::new(campaign.clone()), Expect::Absent));
        view::of(cx, campaign).await
    }
}

/// The path of an operation on a campaign.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct CampaignPath {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The campaign.
    pub id: CampaignId,
}

/// Returns the campaign of a path.
async fn find(cx: &Context<'_>, path: CampaignPath) -> Result<Stored<Campaign>, Error> {
    cx.store().campaign(path.workspace_id, path.id).await?.ok_or(Error::NotFound)
}

/// Refuses a request with all its violations, if there are any: the faults of its members, and `found`, those of what
/// the members refer to.
fn refuse(cx: &mut Context<'_>, found: Violations) -> Result<(), Error> {
    cx.violations.merge(found);
    Ok(std::mem::take(&mut cx.violations).into_result()?)
}

/// `GET /workspaces/{workspace_id}/campaigns/{id}`
pub struct GetCampaign;

impl Operation for GetCampaign {
    const ID: &'static str = "getCampaign";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/campaigns/{id}";
    const ACCESS: Access = Access::Scope(Scope::CampaignsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "campaign get";
    const SUMMARY: &'static str = "Show a campaign and how far it has come";
    type Path = CampaignPath;
    type Query = Empty;
    type Body = Empty;
    type Output = CampaignView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<CampaignView, Error> {
        let campaign = find(cx, call.path).await?.record;
        view::of(cx, campaign).await
    }
}

/// `PATCH /workspaces/{workspace_id}/campaigns/{id}`
pub struct UpdateCampaign;

impl Operation for UpdateCampaign {
    const ID: &'static str = "updateCampaign";
    const METHOD: Method = Method::PATCH;
    const PATH: &'static str = "/workspaces/{workspace_id}/campaigns/{id}";
    const ACCESS: Access = Access::Scope(Scope::CampaignsWrite);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "campaign update";
    const SUMMARY: &'static str = "Change a campaign while it is a draft, or whether archives show it; members that are given replace, null clears";
    const LOOKS_UP: bool = true;
    type Path = CampaignPath;
    type Query = Empty;
    type Body = CampaignPatch;
    type Output = CampaignView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<CampaignView, Error> {
        let Stored { record: campaign, revision } = find(cx, call.path).await?;
        if let Some(archived) = call.body.archived_alone() {
            return set_archived(cx, campaign, revision, archived).await;
        }
        let patched = PatchedReferences::of(&call.body);
        let mut found = Violations::new();
        let plan = call.body.apply(campaign.plan.clone(), &mut found);
        cx.app.check_plan_templates(&plan, &mut found).await?;
        let mut references = cx.app.find_references(campaign.workspace_id, plan.references()).await?;
        references.retain(|one| !matches!(one.target, ReferenceTarget::Nothing) || patched.has(one));
        plan.judge(&references, &mut found);
        refuse(cx, found)?;
        campaign.check_change()?;
        let changed = Campaign { plan, ..campaign.clone() };
        if changed == campaign {
            return view::of(cx, campaign).await;
        }
        let changed = Campaign { updated_at: cx.now, ..changed };
        cx.change(Write::put(Box::new(changed.clone()), Expect::Revision(revision)));
        view::of(cx, changed).await
    }
}

/// Lets archives show a campaign or keeps it out of them, whatever its status: a sent campaign can be taken out again.
async fn set_archived(
    cx: &mut Context<'_>,
    campaign: Campaign,
    revision: u32,
    archived: bool,
) -> Result<CampaignView, Error> {
    refuse(cx, Violations::new())?;
    if campaign.plan.archived == archived {
        return view::of(cx, campaign).await;
    }
    let plan = CampaignPlan { archived, ..campaign.plan.clone() };
    let changed = Campaign { plan, updated_at: cx.now, ..campaign };
    cx.change(Write::put(Box::new(changed.clone()), Expect::Revision(revision)));
    view::of(cx, changed).await
}

/// References that a change gives anew. What a draft has named before may be gone: the draft keeps the id, and
/// scheduling it is refused (contract section 12.5, "In use"), but its name can still be changed.
#[derive(Debug, Clone, Copy)]
struct PatchedReferences {
    template: bool,
    audience: bool,
    variants: bool,
}

impl PatchedReferences {
    const fn of(patch: &CampaignPatch) -> Self {
        Self {
            template: !patch.template_id.is_absent(),
            audience: !patch.audience.is_absent(),
            variants: !patch.variants.is_absent(),
        }
    }

    /// Returns true if the request gives the member with the reference.
    fn has(self, found: &ResolvedReference) -> bool {
        match found.pointer.split('/').nth(1) {
            Some("template_id") => self.template,
            Some("audience") => self.audience,
            _ => self.variants,
        }
    }
}

/// `POST /workspaces/{workspace_id}/campaigns/{id}/duplicate`
pub struct DuplicateCampaign;

impl Operation for DuplicateCampaign {
    const ID: &'static str = "duplicateCampaign";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/campaigns/{id}/duplicate";
    const ACCESS: Access = Access::Scope(Scope::CampaignsWrite);
    const SUCCESS: StatusCode = StatusCode::CREATED;
    const CLI: &'static str = "campaign duplicate";
    const SUMMARY: &'static str = "Create a draft with everything that the author of a campaign gave it";
    type Path = CampaignPath;
    type Query = Empty;
    type Body = Empty;
    type Output = CampaignView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<CampaignView, Error> {
        let original = find(cx, call.path).await?.record;
        let copy = Campaign::draft(cx.new_id(), original.workspace_id, original.plan.copy(), cx.now);
        cx.change(Write::put(Box::new(copy.clone()), Expect::Absent));
        view::of(cx, copy).await
    }
}

/// `DELETE /workspaces/{workspace_id}/campaigns/{id}`
pub struct DeleteCampaign;

impl Operation for DeleteCampaign {
    const ID: &'static str = "deleteCampaign";
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/workspaces/{workspace_id}/campaigns/{id}";
    const ACCESS: Access = Access::Scope(Scope::CampaignsWrite);
    const SUCCESS: StatusCode = StatusCode::NO_CONTENT;
    const CLI: &'static str = "campaign delete";
    const SUMMARY: &'static str = "Delete a campaign that is a draft or was cancelled; messages that were sent stay";
    type Path = CampaignPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<NoContent, Error> {
        let CampaignPath { workspace_id, id } = call.path;
        let Stored { record: campaign, revision } = find(cx, call.path).await?;
        campaign.check_delete()?;
        // A caller who schedules it meanwhile has changed its revision.
        cx.change(Write::put(Box::new(campaign), Expect::Revision(revision)));
        cx.change(Write::Delete(DocumentKey::Campaign(workspace_id, id)));
        Ok(NoContent)
    }
}
