//! Actions that change the status of an automation (contract sections 1.8 and 13).

use http::{Method, StatusCode};
use messaging_core::changes::Expect;
use messaging_core::input::Empty;
use messaging_core::ports::store::Stored;
use messaging_core::scope::{Access, Scope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AutomationPath, AutomationView, complete, find};
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, Operation};

/// An automation after an action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct AutomationAction {
    /// The automation.
    #[serde(flatten)]
    pub automation: AutomationView,
    /// Result of the action: `activated` or `paused`.
    pub result: AutomationResult,
}

/// Result of an action on an automation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AutomationResult {
    /// Contacts enter and proceed.
    Activated,
    /// No contact enters, and those in the automation stay where they are.
    Paused,
}

/// `POST /workspaces/{workspace_id}/automations/{id}/activate`
pub struct ActivateAutomation;

impl Operation for ActivateAutomation {
    const ID: &'static str = "activateAutomation";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/automations/{id}/activate";
    const ACCESS: Access = Access::Scope(Scope::AutomationsWrite);
    const SUCCESS: StatusCode = StatusCode::ACCEPTED;
    const CLI: &'static str = "automation activate";
    const SUMMARY: &'static str = "Let contacts into an automation that is complete; after a pause those in it go on";
    type Path = AutomationPath;
    type Query = Empty;
    type Body = Empty;
    type Output = AutomationAction;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<AutomationAction, Error> {
        let Stored { record: automation, revision } = find(cx, call.path).await?;
        automation.check_activate()?;
        let was = automation.status;
        let reading = automation.design.read();
        let plan = complete(cx, automation.workspace_id, &reading).await?;
        let automation = automation.activate(cx.now)?;
        let put = cx.app.put_automation(&automation, &reading, Expect::Revision(revision)).await?;
        cx.change(put);
        cx.changes.extend(cx.app.automation_changed(&automation, plan, was, cx.now));
        Ok(AutomationAction { automation: AutomationView::of(automation), result: AutomationResult::Activated })
    }
}

/// `POST /workspaces/{workspace_id}/automations/{id}/pause`
pub struct PauseAutomation;

impl Operation for PauseAutomation {
    const ID: &'static str = "pauseAutomation";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/automations/{id}/pause";
    const ACCESS: Access = Access::Scope(Scope::AutomationsWrite);
    const SUCCESS: StatusCode = StatusCode::ACCEPTED;
    const CLI: &'static str = "automation pause";
    const SUMMARY: &'static str = "Let nobody into an automation, and keep those in it where they are, until it is \
                                   activated";
    type Path = AutomationPath;
    type Query = Empty;
    type Body = Empty;
    type Output = AutomationAction;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<AutomationAction, Error> {
        let Stored { record: automation, revision } = find(cx, call.path).await?;
        let automation = automation.pause(cx.now)?;
        let reading = automation.design.read();
        let put = cx.app.put_automation(&automation, &reading, Expect::Revision(revision)).await?;
        cx.change(put);
        Ok(AutomationAction { automation: AutomationView::of(automation), result: AutomationResult::Paused })
    }
}
