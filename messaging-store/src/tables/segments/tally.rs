//! Counts that the preview of a segment has gathered, and a sample of its members.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use messaging_core::ids::ContactId;

use crate::database::Query;
use crate::database::open_commit::Answers;
use crate::fault::Fault;
use crate::row::id;
use crate::sampling::estimated;
use crate::sql::{Sql, params, sql};

/// Counts of the contacts that match each of some filters, and a sample of those that the first one matches.
pub(crate) struct Tally {
    /// The number of contacts in the workspace.
    pub(crate) contacts: u64,
    seen: u64,
    sizes: Vec<u64>,
    /// The newest contacts that match the first filter.
    sample: BinaryHeap<Reverse<i64>>,
    /// Maximum number of contacts in the sample.
    wanted: usize,
}

impl Tally {
    pub(crate) fn new(contacts: u64, filters: usize, wanted: usize) -> Self {
        Self { contacts, seen: 0, sizes: vec![0; filters], sample: BinaryHeap::new(), wanted }
    }

    /// Counts a contact; `holds` has one value for each filter, true if it matches.
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

    /// Result of the count; `exact` if all contacts were examined.
    pub(crate) async fn counted(self, on: &mut impl Answers, exact: bool) -> Result<MatchCount, Fault> {
        const SAMPLE: Sql = sql!(
            sqlite: "SELECT c.id FROM json_each($1) j CROSS JOIN contacts c ON c.n = j.value ORDER BY c.n DESC",
            postgres: "SELECT id FROM contacts WHERE n = ANY ($1) ORDER BY n DESC",
        );
        let size = |seen: &u64| if exact { *seen } else { estimated(*seen, self.contacts, self.seen) };
        let sizes = self.sizes.iter().map(size).collect();
        let numbers: Vec<i64> = self.sample.into_iter().map(|Reverse(contact)| contact).collect();
        let sample = on.many(Query::new(SAMPLE, params![numbers], |row| id(row, 0))).await?;
        Ok(MatchCount { sizes, exact, sample })
    }
}

/// Result of counting the contacts that match some filters.
pub(crate) struct MatchCount {
    /// Number of contacts that match each filter; estimates unless all contacts were examined.
    pub(crate) sizes: Vec<u64>,
    pub(crate) exact: bool,
    /// Some contacts that the first filter matches, newest first.
    pub(crate) sample: Vec<ContactId>,
}

impl MatchCount {
    /// Empty result, for a workspace without contacts.
    pub(crate) fn nobody(filters: usize) -> Self {
        Self { sizes: vec![0; filters], exact: true, sample: Vec::new() }
    }
}
