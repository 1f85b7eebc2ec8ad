//! Simulation of an automation.
//!
//! Contract section 13.4, "Simulate". The input is checked here as for saving and activating; the simulation itself is
//! in [`dry_run`](crate::dry_run).

use std::collections::HashMap;

use http::{Method, StatusCode};
use jiff::ToSpan as _;
use messaging_core::DomainError;
use messaging_core::domain::audience::contact::identity_resolver::{IdentityResolver, UpsertContext};
use messaging_core::domain::audience::contact::input::ContactInput;
use messaging_core::domain::audience::contact::{Contact, IdentifierKind};
use messaging_core::domain::automation::Design;
use messaging_core::domain::automation::history::RunStep;
use messaging_core::domain::automation::run::{Run, RunStatus};
use messaging_core::domain::automation::simulation::{MAX_YEARS, SimulatedEvent, SimulationInput};
use messaging_core::domain::security::redaction::Redactor;
use messaging_core::ids::{ContactId, WorkspaceId};
use messaging_core::input::Empty;
use messaging_core::patch::Patch;
use messaging_core::scope::{Access, Scope};
use messaging_core::time::Timestamp;
use messaging_core::violation::{FieldCode, Violations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::runs::StepView;
use super::{AutomationPath, complete, find, judge};
use crate::app::App;
use crate::app::write_queues::ResourceKey;
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, Operation};
use crate::services::dry_runs::{DryRun, DryRunOutcome, Happening, Participant, Planned, made_id};

/// Result of a simulation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct SimulationReport {
    /// Steps of the runs with their reasons, in order of time.
    pub steps: Vec<SimulatedStep>,
    /// End of the last run; null while it is open, and if no contact entered.
    pub ended: Option<SimulatedEnd>,
}

/// One step of a simulated run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct SimulatedStep {
    /// Number of the run, from 1 in the order of entry.
    pub run: u32,
    /// The step.
    #[serde(flatten)]
    pub step: StepView,
}

/// Status, time and reason with which a simulated run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct SimulatedEnd {
    /// Status of the run.
    pub status: RunStatus,
    /// When it ended.
    pub at: Timestamp,
    /// Reason for the end; null if the run reached the end of the graph.
    pub reason: Option<String>,
}

impl SimulationReport {
    /// Reports the runs of a contact, in the order of their entries.
    pub(crate) fn of<'r>(runs: impl Iterator<Item = &'r (Run, Vec<RunStep>)>, redactor: Redactor) -> Self {
        let (mut steps, mut ended) = (Vec::new(), None);
        for ((run, history), number) in runs.zip(1..) {
            let mut latest = run.entered_at;
            for step in history {
                // The steps of a run stay in their order.
                latest = latest.max(step.at);
                steps.push((latest, number, step.clone()));
            }
            ended = run.ended_at.map(|at| {
                let reason = run.exit_reason.clone().map(|reason| redactor.text(reason));
                SimulatedEnd { status: run.status, at, reason }
            });
        }
        steps.sort_by_key(|(at, ..)| *at);
        let mut ids = Ids::default();
        let told = |(_, run, mut step): (Timestamp, u32, RunStep)| {
            ids.rename(&mut step.detail);
            SimulatedStep { run, step: StepView::of(step, redactor) }
        };
        Self { steps: steps.into_iter().map(told).collect(), ended }
    }
}

/// Names for messages and events of a dry run: numbers in the order in which they are reported, so that a repeated dry
/// run reports the same.
#[derive(Default)]
struct Ids {
    known: HashMap<String, usize>,
    given: HashMap<&'static str, usize>,
}

impl Ids {
    fn rename(&mut self, detail: &mut Map<String, Value>) {
        for (member, prefix) in [("message_id", "msg"), ("event_id", "evt")] {
            let Some(Value::String(id)) = detail.get_mut(member) else { continue };
            let given = self.given.entry(prefix).or_default();
            let number = *self.known.entry(id.clone()).or_insert_with(|| {
                *given += 1;
                *given
            });
            *id = format!("{prefix}_{number:026}");
        }
    }
}

/// `POST /workspaces/{workspace_id}/automations/{id}/simulate`
pub struct SimulateAutomation;

impl Operation for SimulateAutomation {
    const ID: &'static str = "simulateAutomation";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/automations/{id}/simulate";
    const ACCESS: Access = Access::Scope(Scope::AutomationsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "automation try";
    const SUMMARY: &'static str = "Try an automation of the workspace out with a contact and events of a time that \
                                   passes at once; nothing is changed and nothing is sent";
    const LOOKS_UP: bool = true;
    // The steps may contain data of the contact.
    const ANSWERS_SECRET: bool = true;
    type Path = AutomationPath;
    type Query = Empty;
    type Body = SimulationInput;
    type Output = SimulationReport;

    fn serialized_resources(_: &str, _: &Call<Self>) -> Vec<ResourceKey> {
        // The operation changes nothing.
        Vec::new()
    }

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<SimulationReport, Error> {
        let automation = find(cx, call.path).await?.record;
        let workspace = automation.workspace_id;
        let input = call.body;
        let at = input.at.unwrap_or(cx.now);
        if let Some(until) = input.until {
            check_span(at, until, &mut cx.violations);
        }
        let participant = participant(cx, workspace, &input, at).await?;
        let design = input.apply(automation.design.clone());
        check_events(&design, &input.events, at, "/events", &mut cx.violations);
        let (mut design, reading) = judge(cx, design, &automation.design).await?;
        // A filter could otherwise ask for a contact's own address, written into an attribute.
        design.masked |= !cx.sees_addresses();
        let Some((participant, until)) = participant.zip(input.until) else { return Err(Error::NotFound) };
        complete(cx, workspace, &reading).await?;
        let contact = participant.contact.id;
        let events = input.events.iter().filter_map(|event| planned(event, contact, at)).collect();
        let people = vec![participant];
        let dry_run =
            DryRun { workspace, automation: automation.id, design, people, events, at, until, is_replay: false };
        let DryRunOutcome { runs, .. } = cx.app.dry_run(dry_run).await?;
        Ok(SimulationReport::of(runs.iter(), cx.redactor()))
    }
}

/// Adds violations for the span of a dry run.
pub(crate) fn check_span(at: Timestamp, until: Timestamp, violations: &mut Violations) {
    let utc = at.to_jiff().to_zoned(jiff::tz::TimeZone::UTC);
    let latest = utc.checked_add(MAX_YEARS.years()).map_or(at, |latest| latest.timestamp().into());
    if until <= at {
        violations.add("/until", FieldCode::OutOfRange, "must be later than at");
    } else if until > latest {
        violations.add("/until", FieldCode::OutOfRange, "is at most 5 years after at");
    }
}

/// Adds violations for events of a dry run: times long before it, and nodes that send nothing.
pub(crate) fn check_events(
    design: &Design,
    events: &[SimulatedEvent],
    at: Timestamp,
    pointer: &str,
    violations: &mut Violations,
) {
    let utc = at.to_jiff().to_zoned(jiff::tz::TimeZone::UTC);
    let earliest = utc.checked_sub(MAX_YEARS.years()).map_or(at, |earliest| earliest.timestamp().into());
    let nodes = design.graph.get("nodes").and_then(Value::as_array);
    let sends = |id: &str| nodes.into_iter().flatten().any(|node| node["id"] == id && node["kind"] == "send");
    for (index, event) in events.iter().enumerate() {
        let rule = "is at most 5 years before at of the simulation";
        if event.occurred_at.is_some_and(|occurred| occurred < earliest) {
            violations.add(format!("{pointer}/{index}/occurred_at"), FieldCode::OutOfRange, rule);
        }
        if event.at.is_some_and(|happens| happens < at) {
            let rule = "is before at of the simulation, when nothing has been sent yet";
            violations.add(format!("{pointer}/{index}/at"), FieldCode::OutOfRange, rule);
        }
        if event.node_id.as_ref().is_some_and(|node| !sends(node)) {
            let rule = "is no send node of the graph";
            violations.add(format!("{pointer}/{index}/node_id"), FieldCode::NotFound, rule);
        }
    }
}

/// Returns the planned event of an input; `None` if a member that it needs is missing.
pub(crate) fn planned(event: &SimulatedEvent, contact: ContactId, at: Timestamp) -> Option<Planned> {
    let (at, what) = match event.message {
        Some(what) => (event.at?, Happening::Message(what, event.node_id.clone()?)),
        None => (event.occurred_at.unwrap_or(at), Happening::Product(Box::new(event.product()?))),
    };
    Some(Planned { at, contact, what })
}

/// Returns the contact that takes part. Faults are added to the violations, and then there is none.
async fn participant(
    cx: &mut Context<'_>,
    workspace: WorkspaceId,
    input: &SimulationInput,
    at: Timestamp,
) -> Result<Option<Participant>, Error> {
    if let Some(text) = &input.contact_id {
        let found = match text.parse() {
            Ok(id) => cx.store().contact(workspace, id).await?,
            Err(_) => None,
        };
        if found.is_none() {
            cx.violations.add("/contact_id", FieldCode::NotFound, "no such contact in this workspace");
        }
        return Ok(found.map(|stored| Participant {
            contact: stored.record,
            is_stored: true,
            enters_at: at,
            past: Vec::new(),
        }));
    }
    let Some(sent) = &input.contact else { return Ok(None) };
    // Events before the start are the history of the contact, which exists from the first of them on.
    let born = input.events.iter().filter_map(|event| event.occurred_at).fold(at, Timestamp::min);
    match cx.app.hypothetical_contact(workspace, sent.clone(), born).await? {
        Ok(contact) => Ok(Some(Participant { contact, is_stored: false, enters_at: at, past: Vec::new() })),
        Err(faults) => {
            cx.violations.merge(faults.below("/contact"));
            Ok(None)
        }
    }
}

impl App {
    /// Returns the contact that a request would create: by the same rules, with an id derived from the contact's
    /// identifiers.
    pub(crate) async fn hypothetical_contact(
        &self,
        workspace: WorkspaceId,
        sent: ContactInput,
        now: Timestamp,
    ) -> Result<Result<Contact, Violations>, Error> {
        let types = self.field_types(workspace).await?;
        let lists = match &sent.list_ids {
            Patch::Set(ids) => ids.iter().filter_map(|id| id.parse().ok()).collect(),
            Patch::Null | Patch::Absent => Vec::new(),
        };
        let lists = if lists.is_empty() { lists } else { self.store().lists_among(workspace, &lists).await? };
        let name = [&sent.external_id, &sent.email, &sent.phone].into_iter().find_map(Patch::as_value);
        let new_id = made_id(name.map_or("", String::as_str));
        let on = UpsertContext { workspace_id: workspace, new_id, now };
        let mut nobody = IdentityResolver::new(Vec::new(), lists, &types);
        match nobody.upsert(sent, Violations::new(), &IdentifierKind::ALL, on) {
            Ok(decision) => Ok(Ok((*decision.contact).clone())),
            Err(DomainError::Invalid(faults)) => Ok(Err(faults)),
            Err(error) => Err(error.into()),
        }
    }
}
