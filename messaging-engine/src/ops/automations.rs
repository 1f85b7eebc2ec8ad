//! Automations.
//!
//! Contract section 13. Trigger and graph are parsed in [`messaging_core::domain::automation`]. The submodules have the
//! view of an automation ([`AutomationView`]), the [`actions`] that change its status, its [`runs`] and its [`stats`].
//! Contacts enter and proceed in jobs, which read the stored automation.

pub mod actions;
pub mod runs;
pub mod simulate;
pub mod stats;
mod view;

use http::{Method, StatusCode};
use messaging_core::changes::{Condition, Expect, Write};
use messaging_core::domain::automation::input::{AutomationInput, AutomationPatch};
use messaging_core::domain::automation::parse::{AutomationPlan, Reading};
use messaging_core::domain::automation::{Automation, AutomationStatus, Design};
use messaging_core::domain::limits::MAX_PAGE_SIZE;
use messaging_core::ids::{AutomationId, WorkspaceId};
use messaging_core::input::{Empty, Input, PageQuery};
use messaging_core::ports::store::Stored;
use messaging_core::scope::{Access, Scope};
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::Violations;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, InWorkspace, NoContent, Operation};
use crate::ops::page::Page;

pub use view::{AutomationSummary, AutomationView};

/// Filter and page of a listing of automations.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[non_exhaustive]
pub struct AutomationQuery {
    /// Automations with this status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<AutomationStatus>,
    /// At most this many items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(range(min = 1, max = MAX_PAGE_SIZE))]
    pub limit: Option<u32>,
    /// `next_cursor` of the previous page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl Input for AutomationQuery {}

/// `GET /workspaces/{workspace_id}/automations`
pub struct ListAutomations;

impl Operation for ListAutomations {
    const ID: &'static str = "listAutomations";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/automations";
    const ACCESS: Access = Access::Scope(Scope::AutomationsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "automation list";
    const SUMMARY: &'static str = "List the automations, newest first, without their graphs";
    type Path = InWorkspace;
    type Query = AutomationQuery;
    type Body = Empty;
    type Output = Page<AutomationSummary>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<AutomationSummary>, Error> {
        let AutomationQuery { status, limit, cursor } = call.query;
        let page = cx.page(&PageQuery::of(limit, cursor))?;
        let slice = cx.store().automations(call.path.workspace_id, status, page).await?;
        Ok(cx.answer_page(slice, AutomationSummary::of))
    }
}

/// `POST /workspaces/{workspace_id}/automations`
pub struct CreateAutomation;

impl Operation for CreateAutomation {
    const ID: &'static str = "createAutomation";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/automations";
    const ACCESS: Access = Access::Scope(Scope::AutomationsWrite);
    const SUCCESS: StatusCode = StatusCode::CREATED;
    const CLI: &'static str = "automation create";
    const SUMMARY: &'static str = "Create an automation; it is a draft, which may be incomplete, until it is activated";
    const LOOKS_UP: bool = true;
    type Path = InWorkspace;
    type Query = Empty;
    type Body = AutomationInput;
    type Output = AutomationView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<AutomationView, Error> {
        // An operator's call can name a workspace that does not exist.
        let workspace = cx.app.workspace(call.path.workspace_id).await?.ok_or(Error::NotFound)?.id;
        let (name, design) = call.body.into_design();
        let (design, reading) = judge(cx, design, &Design::default()).await?;
        let automation = Automation {
            id: cx.new_id(),
            workspace_id: workspace,
            name,
            status: AutomationStatus::Draft,
            pause_reason: None,
            design,
            version: 1,
            activated_at: None,
            created_at: cx.now,
            updated_at: cx.now,
        };
        let put = cx.app.put_automation(&automation, &reading, Expect::Absent).await?;
        cx.change(put);
        Ok(AutomationView::of(automation))
    }
}

/// Parses a design that replaces `before`; refuses one that not even a draft may have.
async fn judge(cx: &mut Context<'_>, design: Design, before: &Design) -> Result<(Design, Reading), Error> {
    let design = if cx.lenient { design.without_unknown_members() } else { design };
    let mut found = Violations::new();
    let reading = cx.app.read_design(&design, &mut found).await?;
    if reading.needs_pii && design != *before {
        cx.caller.needs(cx.workspace()?, Scope::PiiRead)?;
    }
    cx.violations.merge(found);
    std::mem::take(&mut cx.violations).into_result()?;
    // A design that was changed by a caller who may not see addresses is masked (contract section 2.4).
    Ok((design.edited(before, cx.sees_addresses()), reading))
}

/// Returns the plan of an automation that may be active; refuses an incomplete or faulty one with its faults.
async fn complete<'r>(
    cx: &Context<'_>,
    workspace: WorkspaceId,
    reading: &'r Reading,
) -> Result<&'r AutomationPlan, Error> {
    let faults = cx.app.automation_faults(workspace, reading).await?;
    match &reading.plan {
        Some(plan) if faults.is_empty() => Ok(plan),
        _ => Err(Error::AutomationInvalid(faults)),
    }
}

/// The path of an operation on an automation.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct AutomationPath {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The automation.
    pub id: AutomationId,
}

/// Returns the automation of a path.
async fn find(cx: &Context<'_>, path: AutomationPath) -> Result<Stored<Automation>, Error> {
    cx.store().automation(path.workspace_id, path.id).await?.ok_or(Error::NotFound)
}

/// `GET /workspaces/{workspace_id}/automations/{id}`
pub struct GetAutomation;

impl Operation for GetAutomation {
    const ID: &'static str = "getAutomation";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/automations/{id}";
    const ACCESS: Access = Access::Scope(Scope::AutomationsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "automation get";
    const SUMMARY: &'static str = "Show an automation with its graph";
    type Path = AutomationPath;
    type Query = Empty;
    type Body = Empty;
    type Output = AutomationView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<AutomationView, Error> {
        Ok(AutomationView::of(find(cx, call.path).await?.record))
    }
}

/// `PATCH /workspaces/{workspace_id}/automations/{id}`
pub struct UpdateAutomation;

impl Operation for UpdateAutomation {
    const ID: &'static str = "updateAutomation";
    const METHOD: Method = Method::PATCH;
    const PATH: &'static str = "/workspaces/{workspace_id}/automations/{id}";
    const ACCESS: Access = Access::Scope(Scope::AutomationsWrite);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "automation update";
    const SUMMARY: &'static str = "Change an automation, also while it is active; whoever is in it finishes on the \
                                   version they entered with";
    const LOOKS_UP: bool = true;
    type Path = AutomationPath;
    type Query = Empty;
    type Body = AutomationPatch;
    type Output = AutomationView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<AutomationView, Error> {
        let Stored { record: automation, revision } = find(cx, call.path).await?;
        let (name, design) = call.body.apply(automation.name.clone(), automation.design.clone());
        let (design, reading) = judge(cx, design, &automation.design).await?;
        let changed = automation.clone().change(name, design, cx.now);
        if changed == automation {
            return Ok(AutomationView::of(automation));
        }
        if changed.status == AutomationStatus::Active && changed.version != automation.version {
            let plan = complete(cx, changed.workspace_id, &reading).await?;
            cx.changes.extend(cx.app.automation_changed(&changed, plan, automation.status, cx.now));
        }
        let put = cx.app.put_automation(&changed, &reading, Expect::Revision(revision)).await?;
        cx.change(put);
        Ok(AutomationView::of(changed))
    }
}

/// `DELETE /workspaces/{workspace_id}/automations/{id}`
pub struct DeleteAutomation;

impl Operation for DeleteAutomation {
    const ID: &'static str = "deleteAutomation";
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/workspaces/{workspace_id}/automations/{id}";
    const ACCESS: Access = Access::Scope(Scope::AutomationsWrite);
    const SUCCESS: StatusCode = StatusCode::NO_CONTENT;
    const CLI: &'static str = "automation delete";
    const SUMMARY: &'static str =
        "Delete an automation that is not active, with its runs; messages that were sent stay";
    type Path = AutomationPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<NoContent, Error> {
        let AutomationPath { workspace_id, id } = call.path;
        let automation = find(cx, call.path).await?.record;
        automation.check_delete()?;
        // The commit is refused if the status has changed meanwhile, for example by activation.
        cx.change(Write::Expect(Condition::Automation(workspace_id, id, automation.status)));
        cx.change(Write::DeleteAutomation(workspace_id, id));
        Ok(NoContent)
    }
}
