//! Replay of past events through an automation: how many runs would have begun, and how far they would have come.
//!
//! Contract section 13.4, "Command line": `messaging automation simulate --past`. The replay is one dry run with all
//! contacts, in a temporary store; nothing is sent.

use messaging_core::domain::audience::contact::input::ContactInput;
use messaging_core::domain::audience::product_event::{ProductEvent, Properties};
use messaging_core::domain::automation::simulation::SimulatedEvent;
use messaging_core::ids::{EventId, Id as _};
use messaging_core::ports::store::NodeCounts;
use messaging_core::ports::{Fetch, TemporaryStores};
use messaging_core::time::Timestamp;
use messaging_core::violation::{FieldCode, refuse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

use super::files::{DryRunFiles, DryRunWorkspace, FilesFault, body};
use crate::error::Error;
use crate::ops::automations::simulate::planned;
use crate::ops::automations::stats::{NodeStats, nodes_of};
use crate::services::dry_runs::{DryRun, Participant};

/// Largest number of contacts that `messaging automation simulate --past` replays; [`replay`] itself does not check it.
pub const MAX_CONTACTS: usize = 10_000;

/// A contact of the replay with its product events.
#[derive(Debug, Clone)]
pub struct PastContact {
    /// The contact as the API shows it.
    pub contact: Value,
    /// Its product events as the API shows them, in any order. Those before the span are its history; those after it
    /// are left out, as are events that cannot be read.
    pub events: Vec<Value>,
}

/// Number of the runs that would have begun, and how far they would have come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct PastReport {
    /// Number of contacts that were replayed.
    pub contacts: u64,
    /// Number of runs that would have begun.
    pub entered: u64,
    /// Counts for each node, as in the statistics of an automation.
    pub nodes: Vec<NodeStats>,
}

/// Replays what `contacts` did from `at` to `until` of the files through the automation of the files. The contacts and
/// events of the files are ignored. The dry run takes place in a store of `stores`; `fetch` judges the addresses of
/// webhook nodes, and none is called.
///
/// Fails with [`FilesFault::Automation`] if its trigger is not `event`, `date` or `contact_created`, and with
/// [`FilesFault::Contact`] if a contact breaks the rules for contacts.
pub async fn replay(
    stores: Arc<dyn TemporaryStores>,
    fetch: Arc<dyn Fetch>,
    mut files: DryRunFiles,
    contacts: Vec<PastContact>,
) -> Result<PastReport, FilesFault> {
    files.events = Vec::new();
    files.contacts = contacts.iter().map(|one| one.contact.clone()).collect();
    let (at, until) = (files.at, files.until);
    let stage = DryRunWorkspace::set_up(stores, fetch, &files).await?;
    let kind = stage.design.trigger.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    if !["event", "date", "contact_created"].contains(&kind.as_str()) {
        let rule = "has no past that could be gone through: event, date and contact_created have one";
        return Err(FilesFault::Automation(refuse("/trigger/kind", FieldCode::NotAllowed, rule).into()));
    }
    let (mut people, mut events) = (Vec::with_capacity(contacts.len()), Vec::new());
    for (index, one) in contacts.into_iter().enumerate() {
        let refused = |error| FilesFault::Contact(index, error);
        let created_at = one.contact["created_at"].as_str().and_then(|text| text.parse().ok()).unwrap_or(at);
        let contact = sent_contact(&one.contact).map_err(refused)?;
        let found = stage.app.hypothetical_contact(stage.workspace, contact, created_at).await.map_err(refused)?;
        let mut contact = found.map_err(|faults| refused(faults.into()))?;
        if let Some(id) = one.contact["id"].as_str().and_then(|id| id.parse().ok()) {
            contact.id = id;
        }
        let mut past = Vec::new();
        for sent in one.events {
            let Some(event) = read_event(&sent) else { continue };
            let Some(occurred_at) = event.occurred_at else { continue };
            if occurred_at < at {
                past.push((occurred_at, event));
            } else if occurred_at <= until {
                events.extend(planned(&event, contact.id, at));
            }
        }
        past.sort_by_key(|(occurred_at, _)| *occurred_at);
        let past = past.into_iter().zip(0_u64..).map(|((occurred_at, event), number)| ProductEvent {
            id: history_event_id(occurred_at, index as u64, number),
            workspace_id: stage.workspace,
            contact_id: contact.id,
            name: event.name.unwrap_or_default(),
            occurred_at,
            properties: event.properties.unwrap_or_default(),
            unique_id: None,
        });
        let past = past.collect();
        // A contact that was created before the span must not enter as a new one, so its entry is put after the end.
        let enters_at = if created_at < at { until + Duration::from_secs(1) } else { created_at };
        people.push(Participant { contact, is_stored: false, enters_at, past });
    }
    let contacts = people.len() as u64;
    events.sort_by_key(|event| event.at);
    let dry_run = DryRun {
        workspace: stage.workspace,
        automation: stage.automation,
        design: stage.design.clone(),
        people,
        events,
        at,
        until,
        is_replay: true,
    };
    let outcome = stage.app.dry_run(dry_run).await.map_err(FilesFault::DryRun)?;
    stage.app.store().close().await;
    let counts: Vec<NodeCounts> = outcome.counts.nodes;
    let entered = outcome.counts.runs.iter().sum();
    Ok(PastReport { contacts, entered, nodes: nodes_of(&stage.design, counts) })
}

/// The body that creates a contact from the form in which the API shows it: without null and what the server sets.
fn sent_contact(shown: &Value) -> Result<ContactInput, Error> {
    let mut sent = shown.clone();
    if let Some(members) = sent.as_object_mut() {
        members.retain(|name, value| {
            !["id", "suppressed_channels", "created_at", "updated_at"].contains(&name.as_str()) && !value.is_null()
        });
    }
    let (sent, faults) = body::<ContactInput>(&sent)?;
    faults.into_result().map_err(Error::from)?;
    Ok(sent)
}

/// The product event of an event as the API shows it; `None` without a name or a time. Its `occurred_at` is `None` if
/// the time cannot be read.
fn read_event(shown: &Value) -> Option<SimulatedEvent> {
    let mut event = SimulatedEvent::default();
    event.name = Some(shown["name"].as_str()?.to_owned());
    event.occurred_at = shown["occurred_at"].as_str()?.parse().ok();
    event.properties =
        shown.get("properties").filter(|value| value.is_object()).map(|value| Properties::from_json(value.to_string()));
    Some(event)
}

/// A made-up id of an event in a contact's history. It begins with the time, as ids do; `contact` and `number`, the
/// places of the contact in the replay and of the event in its history, make it unique.
fn history_event_id(at: Timestamp, contact: u64, number: u64) -> EventId {
    let millis = u64::try_from(at.as_millis()).unwrap_or(0).to_be_bytes();
    let mut bytes = [0; 16];
    bytes[..6].copy_from_slice(&millis[2..]);
    bytes[6..11].copy_from_slice(&contact.to_be_bytes()[3..]);
    bytes[11..].copy_from_slice(&number.to_be_bytes()[3..]);
    EventId::from_bytes(bytes)
}
