//! Binary and text formats of stored automations.

use messaging_core::domain::automation::history::{RunStep, StepOutcome};
use messaging_core::domain::automation::note::Cause;
use messaging_core::domain::automation::run::{Run, RunStatus};
use messaging_core::ids::{EventId, Id};
use messaging_core::time::Timestamp;
use serde_json::{Map, Value};

use crate::counter_deltas::{AutomationCounter, CounterDeltas};
use crate::happened::kinds;
use crate::pages::number;

/// Number of bytes at the start of an id that hold the time of its creation.
const TIME: usize = 6;

/// First bytes of an id made at a time, as far as they can hold it.
fn id_time(time: Timestamp) -> [u8; TIME] {
    let bytes = time.as_millis().to_be_bytes();
    let mut last = [0; TIME];
    last.copy_from_slice(&bytes[bytes.len() - TIME..]);
    last
}

/// Id of the event that entered a run, without its time if that equals the time of the entry.
pub(crate) fn entry_event(run: &Run) -> Option<Vec<u8>> {
    let id = run.entry_event?.to_bytes();
    let is_same = id[..TIME] == id_time(run.entered_at);
    Some(if is_same { id[TIME..].to_vec() } else { id.to_vec() })
}

/// Reads the id that [`entry_event`] stored; `None` for other bytes.
pub(crate) fn read_entry_event(bytes: &[u8], entered_at: Timestamp) -> Option<EventId> {
    let whole = if bytes.len() + TIME == 16 { [&id_time(entered_at), bytes].concat() } else { bytes.to_vec() };
    Some(EventId::from_bytes(whole.try_into().ok()?))
}

/// State and node of a stored run, on which its counters depend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunPosition {
    pub(crate) status: RunStatus,
    pub(crate) node: Option<i64>,
}

impl RunPosition {
    /// Adds `by` to the counters of a run at this position.
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

/// Stores steps as arrays without names, because there are many. A detail with nothing but the end of a wait is stored
/// as that time.
pub(crate) fn steps_text(steps: &[RunStep]) -> Result<String, serde_json::Error> {
    let rows: Vec<Vec<Value>> = steps
        .iter()
        .map(|step| {
            let text = |text: &Option<String>| text.clone().map_or(Value::Null, Value::String);
            let mut row = vec![
                Value::from(step.at.as_millis()),
                Value::from(number(&StepOutcome::ALL, &step.outcome)),
                text(&step.node_id),
                text(&step.branch),
                text(&step.reason),
                short(&step.detail),
            ];
            while row.last().is_some_and(Value::is_null) {
                row.pop();
            }
            row
        })
        .collect();
    serde_json::to_string(&rows)
}

/// The detail of a step: nothing, a time, or its members.
fn short(detail: &Map<String, Value>) -> Value {
    let until = detail.get("until").and_then(Value::as_str).and_then(|text| text.parse::<Timestamp>().ok());
    match until {
        Some(until) if *detail == waiting_until(until) => Value::from(until.as_millis()),
        _ if detail.is_empty() => Value::Null,
        _ => Value::Object(detail.clone()),
    }
}

fn waiting_until(until: Timestamp) -> Map<String, Value> {
    Map::from_iter([("until".to_owned(), Value::String(until.to_string()))])
}

/// Reads steps from text; `None` for another format.
pub(crate) fn read_steps(text: &str) -> Option<Vec<RunStep>> {
    let rows: Vec<Vec<Value>> = serde_json::from_str(text).ok()?;
    let step = |row: Vec<Value>| {
        let mut row = row.into_iter();
        let mut next = || row.next().unwrap_or(Value::Null);
        let text = |value: Value| if let Value::String(text) = value { Some(text) } else { None };
        let at = Timestamp::from_millis(next().as_i64()?);
        let outcome = *StepOutcome::ALL.get(usize::try_from(next().as_u64()?).ok()?)?;
        let (node_id, branch, reason) = (text(next()), text(next()), text(next()));
        let detail = match next() {
            Value::Object(detail) => detail,
            Value::Number(until) => waiting_until(Timestamp::from_millis(until.as_i64()?)),
            _ => Map::new(),
        };
        Some(RunStep { at, node_id, outcome, branch, reason, detail })
    };
    rows.into_iter().map(step).collect()
}

/// Returns true if the first steps of a run follow from its row: it entered, and waits at its node until it is due.
/// Then [`untold_steps`] derives them, and they are stored only once the run moves on.
pub(crate) fn are_untold(run: &Run, steps: &[RunStep]) -> bool {
    let (Some(due_at), Some(node)) = (run.due_at, &run.node_id) else { return false };
    if !node.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_') {
        return false;
    }
    let step = |at, node_id: Option<String>, outcome, detail| RunStep {
        at,
        node_id,
        outcome,
        branch: None,
        reason: None,
        detail,
    };
    let entered = step(run.entered_at, None, StepOutcome::Entered, Map::new());
    *steps == [entered, step(run.arrived_at, run.node_id.clone(), StepOutcome::Waiting, waiting_until(due_at))]
}

/// Steps that follow from the row of a run `r` at a node `node`, in the format of [`read_steps`]. Ids of nodes need no
/// escapes.
macro_rules! untold_steps {
    () => {
        "'[[' || r.entered_at || ',0],[' || (r.entered_at + r.arrived) || ',4,\"' || node.id || '\",null,null,' || r.due_at || ']]'"
    };
}
pub(crate) use untold_steps;

/// The id at a position among the ids of a note.
fn part<I: Id>(what: &[u8], place: usize) -> Option<I> {
    what.as_chunks::<16>().0.get(place).map(|bytes| I::from_bytes(*bytes))
}

/// Cause of a note, from its kind and its ids; `None` if they are malformed.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn steps_are_read_as_they_were_written() {
        let step = |at, outcome, node: Option<&str>, detail: Value| RunStep {
            at: Timestamp::from_millis(at),
            node_id: node.map(ToOwned::to_owned),
            outcome,
            branch: None,
            reason: None,
            detail: detail.as_object().cloned().unwrap_or_default(),
        };
        let steps = [
            step(1_769_850_900_000, StepOutcome::Entered, None, json!({})),
            step(1_769_850_900_000, StepOutcome::Sent, Some("s"), json!({"message_id": "msg_1"})),
            step(1_769_850_900_000, StepOutcome::Waiting, Some("w"), json!({"until": "2026-01-31T10:15:00.000Z"})),
            step(1_769_850_900_001, StepOutcome::Waiting, Some("w"), json!({"until": "tomorrow"})),
            step(5, StepOutcome::Waiting, Some("w"), json!({"until": "2026-01-31T10:15:00.000Z", "x": 1})),
        ];
        let text = steps_text(&steps).unwrap();
        assert!(text.contains("[1769850900000,4,\"w\",null,null,1769854500000]"), "{text}");
        assert_eq!(read_steps(&text).unwrap(), steps);
        assert_eq!(read_steps("[[null,0]]"), None);
    }
}
