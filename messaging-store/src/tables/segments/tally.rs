//! What a preview has counted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::sampling::estimated;

/// How many of the contacts that were looked at match each of some filters, and some whom the first matches.
pub(crate) struct Tally {
    /// How many contacts there are.
    pub(crate) contacts: u64,
    seen: u64,
    sizes: Vec<u64>,
    /// The newest that match.
    sample: BinaryHeap<Reverse<i64>>,
    /// How many are wanted.
    wanted: usize,
}

impl Tally {
    pub(crate) fn new(contacts: u64, filters: usize, wanted: usize) -> Self {
        Self { contacts, seen: 0, sizes: vec![0; filters], sample: BinaryHeap::new(), wanted }
    }

    /// Counts a contact; `holds` says which of the filters match it.
    pub(crate) fn note(&mut self, contact: i64, holds: &[bool]) {
        self.seen += 1;
        for (size, holds) in self.sizes.iter_mut().zip(holds) {
            *size += u64::from(*holds);
        }
        if holds.first() == Some(&true) {
            self.sample.push(Reverse(contact));
            if self.sample.len() > self.wanted {
                self.sample.pop();
            }
        }
    }

    /// How many contacts match each filter: estimates unless everybody was looked at.
    pub(crate) fn sizes(&self, exact: bool) -> Vec<u64> {
        let size = |seen: &u64| if exact { *seen } else { estimated(*seen, self.contacts, self.seen) };
        self.sizes.iter().map(size).collect()
    }

    /// Some contacts whom the first filter matches, from the newest on.
    pub(crate) fn sample(self) -> Vec<i64> {
        // Sorted by what is reversed.
        self.sample.into_sorted_vec().into_iter().map(|Reverse(contact)| contact).collect()
    }
}
