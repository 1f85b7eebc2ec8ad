//! Automations: an event enters its contact once, a visit of a node has one effect, and every run ends.

use std::collections::{BTreeMap, BTreeSet};

use messaging_core::changes::RunKey;
use messaging_core::domain::automation::AutomationStatus;
use messaging_core::domain::automation::history::{RunStep, StepOutcome};
use messaging_core::domain::automation::run::{Run, RunStatus};
use messaging_core::domain::message::Message;
use messaging_core::ids::{AutomationId, EventId, MessageId};
use messaging_core::ports::store::{PageRequest, RunFilter, StoreError};
use messaging_engine::App;
use serde_json::Value;

use super::PAGE;
use crate::fixture::Fixture;
use crate::requests::automations::EVENTS;
use crate::world::World;

/// Effects of the runs of an automation.
#[derive(Debug, Default)]
struct Done {
    /// Number of runs that each event began.
    entered_by: BTreeMap<EventId, u32>,
    /// Number of steps that sent each message.
    sent: BTreeMap<MessageId, u32>,
}

/// Checks every automation.
pub(super) async fn automations(
    world: &World,
    app: &App,
    messages: &BTreeMap<MessageId, Message>,
) -> Result<(), StoreError> {
    let fixture = Fixture::shared();
    for (place, id) in fixture.automations.iter().enumerate() {
        let Ok(id) = id.parse::<AutomationId>() else { continue };
        let Some(automation) = app.store().automation(fixture.workspace, id).await?.map(|stored| stored.record) else {
            world.ledger().broken(format!("{id} is not there any more"));
            continue;
        };
        if automation.status == AutomationStatus::Paused {
            world.ledger().broken(format!("{id} stays paused"));
        }
        let mut done = Done::default();
        for run in all_runs(app, id).await? {
            let key = RunKey { workspace_id: fixture.workspace, automation_id: id, run_id: run.id };
            let steps = app.store().run_steps(key).await?;
            story(world, &run, &steps);
            calls(world, &run, &steps);
            for message in steps.iter().filter_map(message_of) {
                *done.sent.entry(message).or_default() += 1;
            }
            if let Some(event) = run.entry_event {
                *done.entered_by.entry(event).or_default() += 1;
            }
        }
        sends(world, id, &done, messages);
        entries(world, place, &done);
    }
    Ok(())
}

async fn all_runs(app: &App, id: AutomationId) -> Result<Vec<Run>, StoreError> {
    let mut found = Vec::new();
    let mut page = PageRequest { after: None, limit: PAGE };
    loop {
        let slice = app.store().runs(Fixture::shared().workspace, id, &RunFilter::default(), page).await?;
        found.extend(slice.items);
        match slice.next {
            Some(next) => page.after = Some(next),
            None => return Ok(found),
        }
    }
}

fn message_of(step: &RunStep) -> Option<MessageId> {
    if step.outcome != StepOutcome::Sent {
        return None;
    }
    step.detail.get("message_id").and_then(Value::as_str)?.parse().ok()
}

const fn is_end(outcome: StepOutcome) -> bool {
    matches!(outcome, StepOutcome::Completed | StepOutcome::Exited | StepOutcome::Failed)
}

/// A run begins with its entry, ends once, and does nothing twice: no graph of a simulation leads to a node twice.
fn story(world: &World, run: &Run, steps: &[RunStep]) {
    let mut broken = Vec::new();
    if run.status.is_open() {
        broken.push(format!("{} is stuck at {:?}, due at {:?}", run.id, run.node_id, run.due_at));
    }
    if run.status == RunStatus::Failed {
        broken.push(format!("{} failed: {:?}", run.id, run.exit_reason));
    }
    let is_whole = steps.first().is_some_and(|step| step.outcome == StepOutcome::Entered)
        && steps.iter().position(|step| is_end(step.outcome)) == steps.len().checked_sub(1);
    let mut visits = BTreeSet::new();
    let is_once = steps.iter().all(|step| visits.insert((step.node_id.as_deref(), format!("{:?}", step.outcome))));
    if !(is_whole && is_once) {
        let told: Vec<_> = steps.iter().map(|step| (step.node_id.as_deref(), step.outcome)).collect();
        broken.push(format!("{} went no way of its graph: {told:?}", run.id));
    }
    world.ledger().broken.append(&mut broken);
}

/// A visit of a webhook node uses one key, and a call that it reports as successful was accepted.
fn calls(world: &World, run: &Run, steps: &[RunStep]) {
    let mut ledger = world.ledger();
    let made = ledger.calls.get(&run.id.to_string()).cloned().unwrap_or_default();
    if made.len() > 1 {
        ledger.broken(format!("{} called under several keys: {made:?}", run.id));
    }
    let succeeded = |step: &RunStep| step.outcome == StepOutcome::Called && step.branch.as_deref() == Some("next");
    if steps.iter().any(succeeded) && made.values().all(|taken| *taken == 0) {
        ledger.broken(format!("{} calls a call a success that nobody took", run.id));
    }
}

/// Every message of the automation was sent by one step, and every step that reports a message sent one.
fn sends(world: &World, id: AutomationId, done: &Done, messages: &BTreeMap<MessageId, Message>) {
    let mut ledger = world.ledger();
    for (message, steps) in &done.sent {
        if *steps != 1 || messages.get(message).is_none_or(|message| message.automation_id != Some(id)) {
            ledger.broken(format!("{message} is of {id} and was sent by {steps} steps"));
        }
    }
    // Runs of erased contacts are gone.
    if has_erased(world) {
        return;
    }
    for message in messages.values().filter(|message| message.automation_id == Some(id)) {
        if !done.sent.contains_key(&message.id) {
            ledger.broken(format!("{} was sent by no run of {id}", message.id));
        }
    }
}

fn has_erased(world: &World) -> bool {
    world.plan.requests.iter().any(|planned| planned.call.operation == "deleteContact")
}

/// No event began two runs; and if the automation was active for certain, each began one.
fn entries(world: &World, place: usize, done: &Done) {
    let mut ledger = world.ledger();
    let mut broken = Vec::new();
    for (event, runs) in done.entered_by.iter().filter(|(_, runs)| **runs > 1) {
        broken.push(format!("event {event} began {runs} runs"));
    }
    let id = &Fixture::shared().automations[place];
    let all = || world.plan.requests.iter().zip(&ledger.requests);
    let asked = |operation: &str| {
        let is_it = |named: &(&str, String)| named.1 == *id;
        let operation = operation.to_owned();
        all().filter(move |(planned, _)| planned.call.operation == operation && planned.call.path.iter().any(is_it))
    };
    let active_since = asked("activateAutomation").filter_map(|(_, record)| record.known_at).min();
    let may_be_paused = asked("pauseAutomation").next().is_some();
    // After a change of the clock an event may be too long ago.
    let is_certain = !may_be_paused && !has_erased(world) && world.plan.jumps.is_empty();
    for (planned, record) in all().filter(|(planned, _)| planned.call.operation == "sendEvent") {
        let Some((_, answer)) = record.success.as_ref().filter(|_| planned.call.body["name"] == EVENTS[place]) else {
            continue;
        };
        let answer: Value = serde_json::from_str(answer).unwrap_or_default();
        let Some(Ok(event)) = answer["event_id"].as_str().map(str::parse::<EventId>) else {
            broken.push(format!("an event was accepted without an id: {answer}"));
            continue;
        };
        let is_heard = active_since.is_some_and(|since| record.first_asked.is_some_and(|asked| asked > since));
        if is_certain && is_heard && !done.entered_by.contains_key(&event) {
            broken.push(format!("event {event} began no run of {id}"));
        }
    }
    ledger.broken.append(&mut broken);
}
