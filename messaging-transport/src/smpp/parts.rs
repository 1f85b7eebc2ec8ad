//! The parts of messages that were submitted in several: a message is delivered when all of them are, and the first
//! failure of one is its failure.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// The most parts whose receipts are waited for; of more the oldest are forgotten, and what is reported of them is
/// about the message with their own name.
const MAX_PARTS: usize = 100_000;

/// The parts of one message.
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

    /// Nothing more is to be reported.
    pub(super) fn settle(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_settled = true;
    }

    /// Takes note of the end of a part: the name of the message, if that tells what became of it.
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

/// The parts of an account by their names.
#[derive(Debug, Default)]
pub(super) struct Parts {
    by_id: HashMap<String, Part>,
    order: VecDeque<String>,
}

#[derive(Debug)]
struct Part {
    group: Arc<Group>,
    has_ended: bool,
}

impl Parts {
    /// A part was taken and got this name.
    pub(super) fn taken(&mut self, id: &str, group: Arc<Group>) {
        group.state.lock().unwrap_or_else(PoisonError::into_inner).first.get_or_insert_with(|| id.to_owned());
        if self.order.len() >= MAX_PARTS
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_id.remove(&oldest);
        }
        self.by_id.insert(id.to_owned(), Part { group, has_ended: false });
        self.order.push_back(id.to_owned());
    }

    /// What is reported of a name: the name of the message that it is about, if that tells what became of it.
    pub(super) fn ended(&mut self, id: &str, is_delivered: bool) -> Option<String> {
        match self.by_id.get_mut(id) {
            // The second report of a part says nothing new.
            Some(part) if part.has_ended => None,
            Some(part) => {
                part.has_ended = true;
                part.group.ended(is_delivered)
            }
            None => Some(id.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> (Parts, Arc<Group>) {
        let (mut parts, group) = (Parts::default(), Arc::new(Group::of(3)));
        for id in ["a", "b", "c"] {
            parts.taken(id, Arc::clone(&group));
        }
        (parts, group)
    }

    #[test]
    fn a_message_is_delivered_when_all_of_its_parts_are() {
        let (mut parts, _) = three();
        assert_eq!(parts.ended("c", true), None);
        assert_eq!(parts.ended("a", true), None);
        assert_eq!(parts.ended("a", true), None, "it is reported twice");
        assert_eq!(parts.ended("b", true).as_deref(), Some("a"), "it has the name of its first part");
        assert_eq!(parts.ended("alone", true).as_deref(), Some("alone"));
    }

    #[test]
    fn the_failure_of_a_part_is_that_of_the_message_once() {
        let (mut parts, _) = three();
        assert_eq!(parts.ended("b", true), None);
        assert_eq!(parts.ended("c", false).as_deref(), Some("a"));
        assert_eq!(parts.ended("a", false), None);
        let (mut parts, group) = three();
        group.settle();
        assert_eq!(parts.ended("a", false), None, "its submission has failed");
    }

    #[test]
    fn as_many_are_remembered_as_there_is_room_for() {
        let mut parts = Parts::default();
        let group = Arc::new(Group::of(2));
        for number in 0..=MAX_PARTS {
            parts.taken(&number.to_string(), Arc::clone(&group));
        }
        assert_eq!((parts.by_id.len(), parts.order.len()), (MAX_PARTS, MAX_PARTS));
        assert!(!parts.by_id.contains_key("0"));
    }
}
