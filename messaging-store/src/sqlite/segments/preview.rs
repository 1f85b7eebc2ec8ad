//! Counting who matches without keeping it.
//!
//! Contacts are looked at in small pieces that are spread over all of them, the newest first, so that a
//! workspace that is too large for the time is estimated from everywhere. The order is the same every time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use messaging_core::domain::contact::Contact;
use messaging_core::domain::segment::filter::Filter;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::segments::{MemberQuery, Preview};
use rusqlite::Connection;

use super::super::contacts::numbered;
use super::super::fault::Fault;
use super::super::numbers::COUNT_BITS;
use super::super::query::one;
use super::compile::compile;
use super::evaluate::Evaluation;
use crate::sampling::{estimated, is_over, is_small, spread};

/// How long one look may take: others wait for the thread meanwhile.
const LOOK: Duration = Duration::from_millis(40);
/// How many numbers of contacts a piece has at least.
const PIECE: i64 = 512;

/// What is asked, and what was found so far.
pub(super) struct Count {
    workspace: WorkspaceId,
    query: MemberQuery,
    conditions: Vec<Filter>,
    sample: usize,
    found: Option<Found>,
}

struct Found {
    /// The count of the newest contact when counting began.
    newest: i64,
    /// How many contacts there are.
    contacts: u64,
    /// How many numbers a piece has: many where most contacts are gone, so that a small workspace is looked at whole.
    width: i64,
    /// How many pieces were looked at.
    pieces: i64,
    seen: u64,
    size: u64,
    sizes: Vec<u64>,
    /// The newest that match.
    sample: BinaryHeap<Reverse<i64>>,
}

impl Count {
    pub(super) fn new(workspace: WorkspaceId, query: &MemberQuery, conditions: &[Filter], sample: usize) -> Self {
        Self { workspace, query: query.clone(), conditions: conditions.to_vec(), sample, found: None }
    }

    /// Looks at some more contacts; answers whether that was all.
    pub(super) fn go_on(&mut self, connection: &Connection) -> Result<bool, Fault> {
        let connection = &*connection.unchecked_transaction()?;
        let filters = std::iter::once(&self.query.filter).chain(&self.conditions);
        let Some(compiled) = compile(connection, self.workspace, &self.query, filters)? else { return Ok(true) };
        let workspace_number = compiled.workspace_number;
        let found = match &mut self.found {
            Some(found) => found,
            None => self.found.insert(Found::begin(connection, workspace_number, self.conditions.len())?),
        };
        let all = found.pieces_of_all();
        let conditions = compiled.conditions.len();
        let mut evaluation = Evaluation::of_each(connection, compiled)?;
        // What was needed before does not count, so that every look gets somewhere.
        let began = Instant::now();
        while found.pieces < all && began.elapsed() < LOOK {
            let start = (workspace_number << COUNT_BITS) | (spread(found.pieces, all) * found.width);
            evaluation.each_in_range(&(start..=start + found.width - 1), conditions, |contact, holds| {
                found.note(contact, holds, self.sample);
            })?;
            found.pieces += 1;
        }
        Ok(found.pieces == all)
    }

    /// Whether what was found since then is enough for an estimate.
    pub(super) fn is_over(&self, began: Instant) -> bool {
        is_over(self.found.as_ref().map_or(0, |found| found.contacts), began)
    }

    /// What was found.
    pub(super) fn preview(self, connection: &Connection) -> Result<Preview, Fault> {
        let Some(found) = self.found else {
            return Ok(Preview { size: 0, sizes: vec![0; self.conditions.len()], exact: true, sample: Vec::new() });
        };
        let exact = found.pieces == found.pieces_of_all();
        let size = |seen: u64| if exact { seen } else { estimated(seen, found.contacts, found.seen) };
        let (size, sizes) = (size(found.size), found.sizes.iter().map(|seen| size(*seen)).collect());
        let mut sample: Vec<Contact> = Vec::new();
        // Sorted by what is reversed: from the newest on.
        for Reverse(contact) in found.sample.into_sorted_vec() {
            sample.extend(numbered(connection, self.workspace, contact)?.map(|stored| stored.record));
        }
        Ok(Preview { size, sizes, exact, sample })
    }
}

impl Found {
    fn begin(connection: &Connection, workspace_number: i64, conditions: usize) -> Result<Self, Fault> {
        let sql = "SELECT newest, contacts FROM workspace_numbers WHERE number = ?1";
        let population = one(connection, sql, [workspace_number], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let (newest, contacts): (i64, i64) = population.unwrap_or((0, 0));
        let contacts = contacts.unsigned_abs();
        Ok(Self {
            newest,
            contacts,
            width: if is_small(contacts) { PIECE.max(newest + 1) } else { PIECE },
            pieces: 0,
            seen: 0,
            size: 0,
            sizes: vec![0; conditions],
            sample: BinaryHeap::new(),
        })
    }

    const fn pieces_of_all(&self) -> i64 {
        self.newest / self.width + 1
    }

    fn note(&mut self, contact: i64, holds: &[bool], sample: usize) {
        self.seen += 1;
        let Some((matches, conditions)) = holds.split_first() else { return };
        for (size, holds) in self.sizes.iter_mut().zip(conditions) {
            *size += u64::from(*holds);
        }
        if *matches {
            self.size += 1;
            self.sample.push(Reverse(contact));
            if self.sample.len() > sample {
                self.sample.pop();
            }
        }
    }
}
