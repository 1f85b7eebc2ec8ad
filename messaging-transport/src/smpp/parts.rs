//! Parts of messages that were submitted in several: a message is delivered when all of its parts are, and the first
//! part that fails makes it fail.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use super::names::{has_letters, other_spellings};

/// Maximum number of parts whose receipts are awaited; beyond it the oldest are forgotten, and their receipts then
/// count for a message with the part's own id.
const MAX_PARTS: usize = 100_000;

/// Maximum number of ids of one-part messages that are remembered; the newest are kept.
const MAX_SINGLE: usize = 20_000;

/// Parts of one message.
#[derive(Debug)]
pub(super) struct Group {
    total: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    first: Option<String>,
    delivered: usize,
    is_settled: bool,
}

impl Group {
    pub(super) fn of(total: usize) -> Self {
        Self { total, state: Mutex::default() }
    }

    /// Settles the message: later receipts of its parts are not reported.
    pub(super) fn settle(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_settled = true;
    }

    /// Notes the final state of a part; returns the id of the message if that decides its outcome.
    fn ended(&self, is_delivered: bool) -> Option<String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_settled {
            return None;
        }
        if is_delivered {
            state.delivered += 1;
        }
        if is_delivered && state.delivered < self.total {
            return None;
        }
        state.is_settled = true;
        state.first.clone()
    }
}

/// Parts of an account, by their ids.
#[derive(Debug, Default)]
pub(super) struct Parts {
    by_id: HashMap<String, Part>,
    order: VecDeque<String>,
    /// Ids of messages with one part.
    single: HashSet<String>,
    single_order: VecDeque<String>,
    /// True if receipts are known to spell ids in hexadecimal.
    is_hexadecimal: bool,
}

#[derive(Debug)]
struct Part {
    group: Arc<Group>,
    has_ended: bool,
}

/// The message that a receipt concerns.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Named {
    /// The message center's id of it.
    pub(super) name: String,
    /// Other spellings of an id that was not given since the process started: one of them may be the message's.
    pub(super) spellings: Vec<String>,
}

impl Parts {
    /// Notes that a part was accepted under this id; without a group it is the only one of its message.
    pub(super) fn taken(&mut self, id: &str, group: Option<Arc<Group>>) {
        let Some(group) = group else { return self.note_single(id) };
        group.state.lock().unwrap_or_else(PoisonError::into_inner).first.get_or_insert_with(|| id.to_owned());
        if self.order.len() >= MAX_PARTS
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_id.remove(&oldest);
        }
        self.by_id.insert(id.to_owned(), Part { group, has_ended: false });
        self.order.push_back(id.to_owned());
    }

    fn note_single(&mut self, id: &str) {
        if self.single_order.len() >= MAX_SINGLE
            && let Some(oldest) = self.single_order.pop_front()
        {
            self.single.remove(&oldest);
        }
        if self.single.insert(id.to_owned()) {
            self.single_order.push_back(id.to_owned());
        }
    }

    /// Notes the final state of a part; returns the message that it concerns if that decides its outcome.
    pub(super) fn ended(&mut self, id: &str, is_delivered: bool) -> Option<Named> {
        self.is_hexadecimal |= has_letters(id);
        let (name, spellings) = match self.find(id) {
            Some(name) => (name, Vec::new()),
            None => (id.to_owned(), other_spellings(id, self.is_hexadecimal)),
        };
        match self.by_id.get_mut(&name) {
            // A second receipt of a part says nothing new.
            Some(part) if part.has_ended => None,
            Some(part) => {
                part.has_ended = true;
                part.group.ended(is_delivered).map(|name| Named { name, spellings: Vec::new() })
            }
            None => Some(Named { name, spellings }),
        }
    }

    /// Returns the given id that a receipt means: the same one, else the only one that is the same number.
    fn find(&self, id: &str) -> Option<String> {
        let is_given = |name: &str| self.by_id.contains_key(name) || self.single.contains(name);
        if is_given(id) {
            return Some(id.to_owned());
        }
        let mut given = other_spellings(id, self.is_hexadecimal).into_iter().filter(|name| is_given(name));
        let only = given.next()?;
        given.next().is_none().then_some(only)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> (Parts, Arc<Group>) {
        let (mut parts, group) = (Parts::default(), Arc::new(Group::of(3)));
        for id in ["a", "b", "c"] {
            parts.taken(id, Some(Arc::clone(&group)));
        }
        (parts, group)
    }

    fn name(named: Option<Named>) -> Option<String> {
        named.map(|named| named.name)
    }

    #[test]
    fn a_message_is_delivered_when_all_of_its_parts_are() {
        let (mut parts, _) = three();
        assert_eq!(name(parts.ended("c", true)), None);
        assert_eq!(name(parts.ended("a", true)), None);
        assert_eq!(name(parts.ended("a", true)), None, "it is reported twice");
        assert_eq!(name(parts.ended("b", true)).as_deref(), Some("a"), "it has the name of its first part");
        assert_eq!(name(parts.ended("alone", true)).as_deref(), Some("alone"));
    }

    #[test]
    fn the_failure_of_a_part_is_that_of_the_message_once() {
        let (mut parts, _) = three();
        assert_eq!(name(parts.ended("b", true)), None);
        assert_eq!(name(parts.ended("c", false)).as_deref(), Some("a"));
        assert_eq!(name(parts.ended("a", false)), None);
        let (mut parts, group) = three();
        group.settle();
        assert_eq!(name(parts.ended("a", false)), None, "its submission has failed");
    }

    #[test]
    fn as_many_are_remembered_as_there_is_room_for() {
        let mut parts = Parts::default();
        let group = Arc::new(Group::of(2));
        for number in 0..=MAX_PARTS {
            parts.taken(&number.to_string(), Some(Arc::clone(&group)));
            parts.taken(&format!("s{number}"), None);
        }
        assert_eq!((parts.by_id.len(), parts.order.len()), (MAX_PARTS, MAX_PARTS));
        assert_eq!((parts.single.len(), parts.single_order.len()), (MAX_SINGLE, MAX_SINGLE));
        assert!(!parts.by_id.contains_key("0") && !parts.single.contains("s0"));
    }

    #[test]
    fn a_name_is_known_in_another_spelling_unless_that_may_be_somebody_elses() {
        let mut parts = Parts::default();
        let group = Arc::new(Group::of(2));
        parts.taken("1F3A", Some(Arc::clone(&group)));
        parts.taken("1F3B", Some(group));
        parts.taken("0000007996", None);
        assert_eq!(name(parts.ended("7994", true)), None, "a part is missing");
        assert_eq!(name(parts.ended("00007995", true)).as_deref(), Some("1F3A"));
        assert_eq!(name(parts.ended("7996", true)).as_deref(), Some("0000007996"));
        // The same name goes before another spelling.
        parts.taken("1F3D", None);
        parts.taken("7997", None);
        assert_eq!(name(parts.ended("7997", true)).as_deref(), Some("7997"));
        // What two messages may be called means neither.
        parts.taken("1F3E", None);
        parts.taken("007998", None);
        let unsure = parts.ended("7998", true).unwrap();
        assert_eq!(unsure.name, "7998");
        assert!(unsure.spellings.contains(&"1F3E".to_owned()));
        // A center that reports in hexadecimal always does so.
        parts.ended("abc", true);
        parts.taken("1F3F", None);
        assert_eq!(name(parts.ended("7999", true)).as_deref(), Some("7999"));
    }
}
