//! An automation against what has happened: who would have entered, and how far they would have come.
//!
//! Contract section 13.4, "Command line": `--past`. All contacts are in one world, in which nothing reaches anybody.

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

use super::files::{DryRunFiles, FilesFault, Stage, body};
use crate::error::Error;
use crate::ops::automations::simulate::planned;
use crate::ops::automations::stats::{NodeStats, nodes_of};
use crate::services::dry_runs::{DryRun, Participant};

/// Contacts that are gone through.
pub const MAX_CONTACTS: usize = 10_000;

/// What is known of a contact, and what it did.
#[derive(Debug, Clone)]
pub struct PastContact {
    /// The contact as the API shows it.
    pub contact: Value,
    /// Its product events as the API shows them, in any order. Those before the span are history.
    pub events: Vec<Value>,
}

/// Who would have entered, and how far they would have come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct PastReport {
    /// How many contacts were looked at.
    pub contacts: u64,
    /// Number of runs that would have begun.
    pub entered: u64,
    /// By node, as in the stats of an automation.
    pub nodes: Vec<NodeStats>,
}

/// Goes through what contacts did between `at` and `until` of the files, whose own contacts and events are left out.
pub async fn replay(
    stores: Arc<dyn TemporaryStores>,
    fetch: Arc<dyn Fetch>,
    mut files: DryRunFiles,
    contacts: Vec<PastContact>,
) -> Result<PastReport, FilesFault> {
    files.events = Vec::new();
    files.contacts = contacts.iter().map(|one| one.contact.clone()).collect();
    let (at, until) = (files.at, files.until);
    let stage = Stage::set_up(stores, fetch, &files).await?;
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
        let found = stage.app.thought_of(stage.workspace, contact, created_at).await.map_err(refused)?;
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
            id: past_id(occurred_at, index as u64, number),
            workspace_id: stage.workspace,
            contact_id: contact.id,
            name: event.name.unwrap_or_default(),
            occurred_at,
            properties: event.properties.unwrap_or_default(),
            unique_id: None,
        });
        let past = past.collect();
        // Who was there before does not enter by being created.
        let enters_at = if created_at < at { until + Duration::from_secs(1) } else { created_at };
        people.push(Participant { contact, is_known: false, enters_at, past });
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

/// The members of a contact that are sent to create it.
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

fn read_event(shown: &Value) -> Option<SimulatedEvent> {
    let mut event = SimulatedEvent::default();
    event.name = Some(shown["name"].as_str()?.to_owned());
    event.occurred_at = shown["occurred_at"].as_str()?.parse().ok();
    event.properties =
        shown.get("properties").filter(|value| value.is_object()).map(|value| Properties::from_json(value.to_string()));
    Some(event)
}

/// An id of an event that was accepted at a time, told apart by contact and place.
fn past_id(at: Timestamp, contact: u64, number: u64) -> EventId {
    let millis = u64::try_from(at.as_millis()).unwrap_or(0).to_be_bytes();
    let mut bytes = [0; 16];
    bytes[..6].copy_from_slice(&millis[2..]);
    bytes[6..11].copy_from_slice(&contact.to_be_bytes()[3..]);
    bytes[11..].copy_from_slice(&number.to_be_bytes()[3..]);
    EventId::from_bytes(bytes)
}
