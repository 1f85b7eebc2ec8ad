//! Automations and runs as the cases about them put them.

use messaging_core::changes::{AutomationWrite, Expect, PutAutomation, PutRun, Write};
use messaging_core::domain::automation::Automation;
use messaging_core::domain::automation::history::{RunStep, StepOutcome};
use messaging_core::domain::automation::note::{EntrySubscription, EventSubscription, RunSubscription};
use messaging_core::domain::automation::run::Run;
use messaging_core::domain::campaign::Reference;
use messaging_core::domain::delivery::lane::Lane;
use messaging_core::ids::ContactId;
use messaging_core::ports::store::Store;
use serde_json::Map;

use super::sample::at;

/// The lanes of the jobs of an automation.
pub(super) fn lanes(automation: &Automation) -> Vec<Lane> {
    (0..4).map(|shard| Lane::from(format!("{}/{shard}", automation.id).as_str())).collect()
}

/// Puts an automation that listens for something and holds something.
pub(super) fn listening(
    automation: &Automation,
    subscription: EventSubscription,
    holds: Vec<Reference>,
    expect: Expect,
) -> Write {
    let put = PutAutomation { automation: automation.clone(), subscription, lanes: lanes(automation), holds };
    Write::PutAutomation(Box::new(put), expect)
}

/// Creates an automation that contacts enter by something, and whose runs wait for nothing.
pub(super) fn entered_by(automation: &Automation, entry: EntrySubscription) -> Write {
    let subscription = EventSubscription { entry: Some(entry), runs: RunSubscription::default() };
    listening(automation, subscription, Vec::new(), Expect::Absent)
}

/// Creates an automation that listens for nothing.
pub(super) fn create(automation: &Automation) -> Write {
    listening(automation, EventSubscription::default(), Vec::new(), Expect::Absent)
}

/// Puts a run that did one step.
pub(super) fn put_run(run: &Run, expect: Expect) -> Write {
    Write::Automation(AutomationWrite::PutRun(Box::new(PutRun {
        run: run.clone(),
        expect,
        steps: vec![step(StepOutcome::Waiting, run.node_id.as_deref())],
        messages: Vec::new(),
    })))
}

pub(super) fn step(outcome: StepOutcome, node: Option<&str>) -> RunStep {
    let node_id = node.map(ToOwned::to_owned);
    RunStep { at: at(7), node_id, outcome, branch: None, reason: None, detail: Map::new() }
}

/// A run at another node.
pub(super) fn standing(run: &Run, node: &str) -> Run {
    Run { node_id: Some(node.to_owned()), ..run.clone() }
}

/// The share of the contacts that a contact belongs to, as the store tells by where a run of it is due.
pub(super) async fn shard_of(store: &dyn Store, automation: &Automation, contact: ContactId) -> u8 {
    let workspace = automation.workspace_id;
    for shard in 0..4 {
        let due = store.due_runs(workspace, automation.id, shard, at(1_000_000_000), 999).await.unwrap();
        if due.iter().any(|run| run.record.contact_id == contact) {
            return shard;
        }
    }
    panic!("no run of the contact is due");
}
