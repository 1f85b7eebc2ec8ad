//! What stores keep of automations, as bytes and text.

use messaging_core::domain::automation::history::{RunStep, StepOutcome};
use messaging_core::domain::automation::note::Cause;
use messaging_core::domain::automation::run::{Run, RunStatus};
use messaging_core::ids::{EventId, Id};
use messaging_core::time::Timestamp;
use serde_json::{Map, Value};

use crate::counter_deltas::{AutomationCounter, CounterDeltas};
use crate::happened::kinds;
use crate::pages::number;

/// How many bytes of an id are the time that it was made at.
const TIME: usize = 6;

/// The time that an id begins with, as far as it can say it.
fn id_time(time: Timestamp) -> [u8; TIME] {
    let bytes = time.as_millis().to_be_bytes();
    let mut last = [0; TIME];
    last.copy_from_slice(&bytes[bytes.len() - TIME..]);
    last
}

/// The id of the event that entered a run, without its time where that is the time of the entry.
pub(crate) fn entry_event(run: &Run) -> Option<Vec<u8>> {
    let id = run.entry_event?.to_bytes();
    let is_same = id[..TIME] == id_time(run.entered_at);
    Some(if is_same { id[TIME..].to_vec() } else { id.to_vec() })
}

/// The id that [`entry_event`] made bytes of; `None` of other bytes.
pub(crate) fn read_entry_event(bytes: &[u8], entered_at: Timestamp) -> Option<EventId> {
    let whole = if bytes.len() + TIME == 16 { [&id_time(entered_at), bytes].concat() } else { bytes.to_vec() };
    Some(EventId::from_bytes(whole.try_into().ok()?))
}

/// What of a stored run its counts follow from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) status: RunStatus,
    pub(crate) node: Option<i64>,
}

impl Place {
    /// Counts a run that stands here, or does no more.
    pub(crate) fn count(self, deltas: &mut CounterDeltas, automation: i64, by: i64) {
        // A refused entry is no run.
        if self.status != RunStatus::Failed || self.node.is_some() {
            deltas.add_automation(AutomationCounter::Runs(automation, number(&RunStatus::ALL, &self.status)), by);
        }
        if let Some(node) = self.node.filter(|_| self.status.is_open()) {
            deltas.add_automation(AutomationCounter::Waiting(node), by);
        }
    }
}

/// Steps as arrays without names: there are many of them.
pub(crate) fn steps_text(steps: &[RunStep]) -> Result<String, serde_json::Error> {
    let rows: Vec<Vec<Value>> = steps
        .iter()
        .map(|step| {
            let text = |text: &Option<String>| text.clone().map_or(Value::Null, Value::String);
            let detail = if step.detail.is_empty() { Value::Null } else { Value::Object(step.detail.clone()) };
            let mut row = vec![
                Value::from(step.at.as_millis()),
                Value::from(number(&StepOutcome::ALL, &step.outcome)),
                text(&step.node_id),
                text(&step.branch),
                text(&step.reason),
                detail,
            ];
            while row.last().is_some_and(Value::is_null) {
                row.pop();
            }
            row
        })
        .collect();
    serde_json::to_string(&rows)
}

/// The steps of a text; `None` of another text.
pub(crate) fn read_steps(text: &str) -> Option<Vec<RunStep>> {
    let rows: Vec<Vec<Value>> = serde_json::from_str(text).ok()?;
    let step = |row: Vec<Value>| {
        let mut row = row.into_iter();
        let mut next = || row.next().unwrap_or(Value::Null);
        let text = |value: Value| if let Value::String(text) = value { Some(text) } else { None };
        let at = Timestamp::from_millis(next().as_i64()?);
        let outcome = *StepOutcome::ALL.get(usize::try_from(next().as_u64()?).ok()?)?;
        let (node_id, branch, reason) = (text(next()), text(next()), text(next()));
        let detail = if let Value::Object(detail) = next() { detail } else { Map::new() };
        Some(RunStep { at, node_id, outcome, branch, reason, detail })
    };
    rows.into_iter().map(step).collect()
}

/// The id at a place of the ids of a note.
fn part<I: Id>(what: &[u8], place: usize) -> Option<I> {
    what.as_chunks::<16>().0.get(place).map(|bytes| I::from_bytes(*bytes))
}

/// What a note tells of, by its kind and its ids; `None` of what says nothing.
pub(crate) fn cause(kind: i64, what: &[u8]) -> Option<Cause> {
    Some(match kind {
        kinds::EVENT => Cause::Event(part(what, 0)?),
        kinds::MESSAGE => Cause::Message { event_id: part(what, 0)?, message_id: part(what, 1)? },
        kinds::CREATED => Cause::Created,
        kinds::CHANGED => Cause::Changed,
        kinds::LIST_ADDED => Cause::ListAdded(part(what, 0)?),
        kinds::SEGMENT_ENTERED => Cause::SegmentEntered(part(what, 0)?),
        kinds::SEGMENT_LEFT => Cause::SegmentLeft(part(what, 0)?),
        _ => return None,
    })
}
