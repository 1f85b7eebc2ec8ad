//! Admission of a contact to an automation, and the run that it gets.
//!
//! Contract sections 13.3 and 13.4, "Entry". A refusal by the rule of re-entry leaves no row; a refusal by a limit
//! against loops leaves a row in the list of runs.

use std::time::Duration;

use serde_json::{Map, Value};

use super::history::{RunStep, StepOutcome};
use super::run::{Entry, Run, RunStatus};
use super::{MAX_DEPTH, MAX_ENTRIES_A_DAY, ReEntry};
use crate::domain::security::digest::Digest;
use crate::ids::{AutomationId, ContactId, EventId, RunId, WorkspaceId};
use crate::time::Timestamp;

/// Period for which entries are counted, and within which a listed refusal is not repeated.
pub const DAY: Duration = Duration::from_hours(24);

/// Maximum length of a value of the re-entry key, in bytes; a longer one is kept as its digest.
const MAX_KEY: usize = 256;

/// Reason why a contact does not enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The rule of re-entry forbids it; only a caller of the API is told.
    ReEntry,
    /// Too many automations have caused one another.
    Depth,
    /// The contact has entered too often within a day.
    DailyLimit,
}

impl Refusal {
    /// Returns the reason in the list of runs; `None` for a refusal that is not listed.
    pub const fn reason(self) -> Option<&'static str> {
        match self {
            Self::ReEntry => None,
            Self::Depth => Some("depth"),
            Self::DailyLimit => Some("daily_limit"),
        }
    }
}

/// Decides on an entry: returns the depth of the run, or the reason of the refusal.
///
/// `known` has the earlier entries with the same key, `cause_depth` is the number of automations that caused one
/// another up to the cause (0 if it came from outside), `today` the contact's number of entries within [`DAY`],
/// whatever the key.
pub fn admit(rule: ReEntry, known: Option<&Entry>, cause_depth: u8, today: u32) -> Result<u8, Refusal> {
    let may_enter = match rule {
        ReEntry::Never => known.is_none(),
        ReEntry::AfterExit => known.is_none_or(|entry| entry.open == 0),
        ReEntry::Always => true,
    };
    match () {
        () if !may_enter => Err(Refusal::ReEntry),
        () if cause_depth >= MAX_DEPTH => Err(Refusal::Depth),
        () if today >= MAX_ENTRIES_A_DAY => Err(Refusal::DailyLimit),
        () => Ok(cause_depth + 1),
    }
}

/// Returns the value at `path` (`event.…`) in an event as JSON, for the rule of re-entry; a long one as its digest.
/// `None` where the automation has no path. A missing value is `null`, which is a value of its own.
pub fn key_of(path: Option<&str>, event: &Map<String, Value>) -> Option<String> {
    let mut names = path?.split('.');
    let found = match names.next() {
        Some("event") => {
            let first = names.next().and_then(|name| event.get(name));
            first.and_then(|value| names.try_fold(value, |value, name| value.as_object()?.get(name)))
        }
        _ => None,
    };
    let key = sorted(found.unwrap_or(&Value::Null)).to_string();
    Some(if key.len() > MAX_KEY { format!("sha256:{}", Digest::of(&key).to_text()) } else { key })
}

/// Sorts the members of objects, so that equal values are equal texts.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            members.into_iter().map(|(name, member)| (name.clone(), sorted(member))).collect()
        }
        other => other.clone(),
    }
}

/// An entry of a contact, admitted or not.
#[derive(Debug, Clone)]
pub struct Entrance {
    /// The id that its run gets.
    pub id: RunId,
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The automation.
    pub automation_id: AutomationId,
    /// Present version of the automation.
    pub version: u32,
    /// Contact that enters the automation.
    pub contact_id: ContactId,
    /// When the cause was accepted.
    pub at: Timestamp,
    /// Value of the variable `event` of the run, a JSON object: the properties of the event that enters the contact, or
    /// the variables of the call.
    pub event: Map<String, Value>,
    /// The event that enters it.
    pub entry_event: Option<EventId>,
    /// See [`key_of`].
    pub key: Option<String>,
}

impl Entrance {
    /// Returns the new run: it has not arrived at a node yet and is due at once.
    pub fn run(self, depth: u8) -> Run {
        Run {
            id: self.id,
            workspace_id: self.workspace_id,
            automation_id: self.automation_id,
            version: self.version,
            contact_id: self.contact_id,
            status: RunStatus::Active,
            node_id: None,
            due_at: Some(self.at),
            entered_at: self.at,
            arrived_at: self.at,
            ended_at: None,
            exit_reason: None,
            steps: 0,
            depth,
            event: self.event,
            entry_event: self.entry_event,
            key: self.key,
            held: None,
        }
    }

    /// Returns the row that shows a refusal, with its one step; `None` for a refusal that is not listed.
    pub fn refused(self, refusal: Refusal, cause_depth: u8) -> Option<(Run, RunStep)> {
        let reason = refusal.reason()?.to_owned();
        let at = self.at;
        let mut run = self.run(cause_depth.saturating_add(1));
        let step = run.end(RunStatus::Failed, Some(reason), Map::new(), at);
        Some((run, RunStep { outcome: StepOutcome::Refused, ..step }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(open: u32) -> Entry {
        Entry {
            workspace_id: "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
            automation_id: "aut_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
            contact_id: "con_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
            key: None,
            entered_at: Timestamp::from_millis(1),
            open,
        }
    }

    #[test]
    fn the_rule_of_re_entry_asks_for_the_entry_and_for_open_runs() {
        let (ended, open) = (entry(0), entry(2));
        let told = |rule| [None, Some(&ended), Some(&open)].map(|known| admit(rule, known, 0, 0).is_ok());
        assert_eq!(told(ReEntry::Never), [true, false, false]);
        assert_eq!(told(ReEntry::AfterExit), [true, true, false]);
        assert_eq!(told(ReEntry::Always), [true, true, true]);
    }

    #[test]
    fn the_ninth_automation_in_a_row_and_the_hundred_and_first_entry_of_a_day_are_refused() {
        assert_eq!(admit(ReEntry::Always, None, 0, 0), Ok(1));
        assert_eq!(admit(ReEntry::Always, None, 7, 99), Ok(8));
        assert_eq!(admit(ReEntry::Always, None, 8, 0), Err(Refusal::Depth));
        assert_eq!(admit(ReEntry::Always, None, 0, 100), Err(Refusal::DailyLimit));
        assert_eq!(admit(ReEntry::Always, None, u8::MAX, 100), Err(Refusal::Depth));
        assert_eq!(admit(ReEntry::Never, Some(&entry(0)), 8, 100), Err(Refusal::ReEntry));
    }

    #[test]
    fn a_key_is_the_value_at_its_path() {
        let event = json!({"cart": {"id": "c-1", "b": 1, "a": {"d": 2, "c": 3}}, "n": null, "long": "x".repeat(300)});
        let key = |path| key_of(Some(path), event.as_object().unwrap());
        assert_eq!(key_of(None, event.as_object().unwrap()), None);
        assert_eq!(key("event.cart.id").as_deref(), Some("\"c-1\""));
        assert_eq!(key("event.cart").as_deref(), Some(r#"{"a":{"c":3,"d":2},"b":1,"id":"c-1"}"#));
        for missing in ["event.n", "event.cart.x", "event.cart.id.x", "event", "cart.id", "event.nothing"] {
            assert_eq!(key(missing).as_deref(), Some("null"), "{missing}");
        }
        let long = key("event.long").unwrap();
        assert!(long.starts_with("sha256:") && long.len() < 60, "{long}");
    }
}
