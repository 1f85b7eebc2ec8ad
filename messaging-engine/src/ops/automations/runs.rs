//! Runs of an automation: starting one for a contact, reading and ending them.
//!
//! Contract sections 13, 13.3 and 13.4, "End" and "History".

use http::{Method, StatusCode};
use messaging_core::changes::{AutomationWrite, Condition, Expect, PutRun, RunKey, Write};
use messaging_core::domain::audience::contact::Identifier;
use messaging_core::domain::automation::AutomationStatus;
use messaging_core::domain::automation::history::{RunStep, StepOutcome};
use messaging_core::domain::automation::input::TriggerInput;
use messaging_core::domain::automation::run::{Run, RunStatus};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::limits::MAX_PAGE_SIZE;
use messaging_core::domain::security::redaction::Redactor;
use messaging_core::ids::{AutomationId, ContactId, RunId, WorkspaceId};
use messaging_core::input::{Empty, Input, PageQuery};
use messaging_core::ports::store::{RunFilter, Stored};
use messaging_core::scope::{Access, Scope};
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::{FieldCode, refuse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{AutomationPath, find};
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, Operation};
use crate::ops::page::Page;
use crate::services::entering::ByHand;

/// A run as shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Run")]
#[non_exhaustive]
pub struct RunView {
    /// Id of the run.
    pub id: RunId,
    /// The automation.
    pub automation_id: AutomationId,
    /// Contact that is taken through the automation.
    pub contact_id: ContactId,
    /// Status of the run, such as `active`, `waiting` or `completed`.
    pub status: RunStatus,
    /// Node that the run is at, the last one once it has ended; null before the first.
    pub node_id: Option<String>,
    /// Version of the automation that the run finishes on.
    pub version: u32,
    /// When the contact entered.
    pub entered_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Reason for the end, if that is not the end of the graph: the reason of an exit node, or exit, goal,
    /// `exit_condition`, manual, steps, depth, `daily_limit`, `node_error`.
    pub exit_reason: Option<String>,
}

impl RunView {
    fn of(run: Run, redactor: Redactor) -> Self {
        Self {
            id: run.id,
            automation_id: run.automation_id,
            contact_id: run.contact_id,
            status: run.status,
            node_id: run.node_id,
            version: run.version,
            entered_at: run.entered_at,
            ended_at: run.ended_at,
            exit_reason: run.exit_reason.map(|reason| redactor.text(reason)),
        }
    }
}

/// A run with its history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct RunReport {
    /// The run.
    #[serde(flatten)]
    pub run: RunView,
    /// Steps of the run with their reasons, in order; kept for 30 days after its end.
    pub history: Vec<StepView>,
}

/// One step of a run, as shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RunStep")]
#[non_exhaustive]
pub struct StepView {
    /// Time that the step counts as; the server may have done it later.
    pub at: Timestamp,
    /// Node of the step; null for the entry.
    pub node_id: Option<String>,
    /// Outcome of the step, such as `sent`, `branched` or `failed`.
    pub outcome: StepOutcome,
    /// Branch that was taken, if the node has several.
    pub branch: Option<String>,
    /// Reason for the outcome, if the outcome alone does not tell it.
    pub reason: Option<String>,
    /// Details by kind of node: the conditions and whether each held, the random share drawn, the message, the time
    /// until which the run waits.
    pub detail: Map<String, Value>,
}

impl StepView {
    pub(super) fn of(step: RunStep, redactor: Redactor) -> Self {
        let RunStep { at, node_id, outcome, branch, reason, detail } = step;
        let reason = reason.map(|reason| redactor.text(reason));
        Self { at, node_id, outcome, branch, reason, detail: redactor.meta(Channel::Email, detail) }
    }
}

/// `POST /workspaces/{workspace_id}/automations/{id}/trigger`
pub struct TriggerAutomation;

impl Operation for TriggerAutomation {
    const ID: &'static str = "triggerAutomation";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/automations/{id}/trigger";
    const ACCESS: Access = Access::Scope(Scope::AutomationsWrite);
    const SUCCESS: StatusCode = StatusCode::ACCEPTED;
    const CLI: &'static str = "automation trigger";
    const SUMMARY: &'static str = "Let a contact into an active automation, whatever its trigger waits for";
    const LOOKS_UP: bool = true;
    type Path = AutomationPath;
    type Query = Empty;
    type Body = TriggerInput;
    type Output = RunView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<RunView, Error> {
        let automation = find(cx, call.path).await?.record;
        let TriggerInput { contact_id, external_id, variables, .. } = call.body;
        let contact = named(cx, call.path.workspace_id, contact_id, external_id).await?;
        std::mem::take(&mut cx.violations).into_result()?;
        automation.check_trigger()?;
        let Some(contact) = contact else { return Err(Error::NotFound) };
        let entering = cx.app.enter_by_hand(&automation, contact, variables.unwrap_or_default(), cx.now).await?;
        match entering {
            Some(ByHand::Listed(run, writes)) => {
                cx.changes.extend(writes);
                cx.change(Write::Expect(Condition::Automation(
                    automation.workspace_id,
                    automation.id,
                    AutomationStatus::Active,
                )));
                Ok(RunView::of(*run, cx.redactor()))
            }
            Some(ByHand::NotAllowed) => {
                let rule = "the contact does not match the filter of the trigger";
                Err(refuse("/contact_id", FieldCode::NotAllowed, rule).into())
            }
            Some(ByHand::ReEntry) => Err(Error::ReEntryNotAllowed),
            // The automation was deleted meanwhile.
            None => Err(Error::NotFound),
        }
    }
}

/// Returns the contact that a call names; if it is invalid, adds violations and returns `None`.
async fn named(
    cx: &mut Context<'_>,
    workspace: WorkspaceId,
    contact_id: Option<String>,
    external_id: Option<String>,
) -> Result<Option<ContactId>, Error> {
    const UNKNOWN: &str = "no such contact in this workspace";
    let mut found = Vec::new();
    if let Some(text) = contact_id.filter(|text| !text.is_empty()) {
        let known = match text.parse() {
            Ok(id) => cx.store().contact(workspace, id).await?.map(|stored| stored.record.id),
            Err(_) => None,
        };
        if known.is_none() {
            cx.violations.add("/contact_id", FieldCode::NotFound, UNKNOWN);
        }
        found.push(known);
    }
    if let Some(text) = external_id.filter(|text| !text.is_empty()) {
        let known = cx.store().contact_identified(workspace, &Identifier::ExternalId(text)).await?;
        match found[..] {
            [Some(first)] if known.is_some_and(|known| known != first) => {
                cx.violations.add("/external_id", FieldCode::Conflict, "names another contact than contact_id");
            }
            _ if known.is_none() => cx.violations.add("/external_id", FieldCode::NotFound, UNKNOWN),
            _ => {}
        }
        found.push(known);
    }
    Ok(found.into_iter().flatten().next())
}

/// Filter and page of a listing of runs.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[non_exhaustive]
pub struct RunQuery {
    /// Runs with this status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<RunStatus>,
    /// Runs of this contact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact_id: Option<ContactId>,
    /// Runs at this node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
    /// At most this many items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(range(min = 1, max = MAX_PAGE_SIZE))]
    pub limit: Option<u32>,
    /// `next_cursor` of the previous page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl Input for RunQuery {}

/// `GET /workspaces/{workspace_id}/automations/{id}/runs`
pub struct ListRuns;

impl Operation for ListRuns {
    const ID: &'static str = "listAutomationRuns";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/automations/{id}/runs";
    const ACCESS: Access = Access::Scope(Scope::AutomationsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "automation runs";
    const SUMMARY: &'static str =
        "List who is or was in an automation, newest first; also who was refused, with the reason";
    type Path = AutomationPath;
    type Query = RunQuery;
    type Body = Empty;
    type Output = Page<RunView>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<RunView>, Error> {
        find(cx, call.path).await?;
        let RunQuery { status, contact_id, node_id, limit, cursor } = call.query;
        let page = cx.page(&PageQuery::of(limit, cursor))?;
        let wanted = RunFilter { status, contact_id, node_id };
        let slice = cx.store().runs(call.path.workspace_id, call.path.id, &wanted, page).await?;
        Ok(cx.answer_page(slice, |run| RunView::of(run, cx.redactor())))
    }
}

/// The path of an operation on a run.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct RunPath {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The automation.
    pub id: AutomationId,
    /// The run.
    pub run_id: RunId,
}

/// Returns the run of a path.
async fn find_run(cx: &Context<'_>, path: RunPath) -> Result<Stored<Run>, Error> {
    cx.store().run(path.workspace_id, path.id, path.run_id).await?.ok_or(Error::NotFound)
}

/// `GET /workspaces/{workspace_id}/automations/{id}/runs/{run_id}`
pub struct GetRun;

impl Operation for GetRun {
    const ID: &'static str = "getAutomationRun";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/automations/{id}/runs/{run_id}";
    const ACCESS: Access = Access::Scope(Scope::AutomationsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "automation run";
    const SUMMARY: &'static str = "Show a run and its history: every node, branch and skipped send, with its cause";
    type Path = RunPath;
    type Query = Empty;
    type Body = Empty;
    type Output = RunReport;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<RunReport, Error> {
        let run = find_run(cx, call.path).await?.record;
        let RunPath { workspace_id, id, run_id } = call.path;
        let steps = cx.store().run_steps(RunKey { workspace_id, automation_id: id, run_id }).await?;
        let redactor = cx.redactor();
        let history = steps.into_iter().map(|step| StepView::of(step, redactor)).collect();
        Ok(RunReport { run: RunView::of(run, redactor), history })
    }
}

/// `POST /workspaces/{workspace_id}/automations/{id}/runs/{run_id}/exit`
pub struct ExitRun;

impl Operation for ExitRun {
    const ID: &'static str = "exitAutomationRun";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/automations/{id}/runs/{run_id}/exit";
    const ACCESS: Access = Access::Scope(Scope::AutomationsWrite);
    const SUCCESS: StatusCode = StatusCode::ACCEPTED;
    const CLI: &'static str = "automation exit-run";
    const SUMMARY: &'static str = "Take a contact out of an automation, also while it is paused";
    type Path = RunPath;
    type Query = Empty;
    type Body = Empty;
    type Output = RunView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<RunView, Error> {
        let Stored { record: run, revision } = find_run(cx, call.path).await?;
        let (run, steps) = run.exit("manual", cx.now)?;
        let expect = Expect::Revision(revision);
        let put = PutRun { run: run.clone(), expect, steps, messages: Vec::new() };
        cx.change(Write::Automation(AutomationWrite::PutRun(Box::new(put))));
        Ok(RunView::of(run, cx.redactor()))
    }
}
