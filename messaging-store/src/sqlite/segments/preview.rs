//! Counting the contacts that match, without storing the result.
//!
//! Contacts are examined in small pieces that are spread over all of them, the newest first, so that a workspace that
//! is too large for the time limit is estimated from all parts. The order is the same every time.

use std::time::{Duration, Instant};

use messaging_core::domain::segment::filter::Filter;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::segments::MemberQuery;
use rusqlite::Connection;

use super::super::fault::Fault;
use super::super::numbers::COUNT_BITS;
use super::super::query::one;
use super::compile::compile;
use super::evaluate::Evaluation;
use crate::database::at_once;
use crate::sampling::{is_over, is_small, spread};
use crate::tables::segments::tally::{MatchCount, Tally};

/// Time limit of one look: other reads wait for the thread meanwhile.
const LOOK: Duration = Duration::from_millis(40);
/// Least number of contact numbers in a piece.
const PIECE: i64 = 512;

/// A count in progress: the question, and the result so far.
pub(super) struct Count {
    workspace: WorkspaceId,
    query: MemberQuery,
    conditions: Vec<Filter>,
    sample: usize,
    progress: Option<CountProgress>,
}

struct CountProgress {
    /// Number of the newest contact within the workspace when counting began.
    newest: i64,
    /// Number of contact numbers in a piece: large if most contacts are gone, so that a small workspace is examined
    /// whole.
    width: i64,
    /// Number of pieces examined so far.
    pieces: i64,
    tally: Tally,
}

impl Count {
    pub(super) fn new(workspace: WorkspaceId, query: &MemberQuery, conditions: &[Filter], sample: usize) -> Self {
        Self { workspace, query: query.clone(), conditions: conditions.to_vec(), sample, progress: None }
    }

    /// Examines some more contacts; returns true if those were the last.
    pub(super) fn go_on(&mut self, connection: &Connection) -> Result<bool, Fault> {
        let connection = &*connection.unchecked_transaction()?;
        let filters = std::iter::once(&self.query.filter).chain(&self.conditions);
        let Some(compiled) = compile(connection, self.workspace, &self.query, filters)? else { return Ok(true) };
        let workspace_number = compiled.workspace_number;
        let progress = if let Some(progress) = &mut self.progress {
            progress
        } else {
            let progress = CountProgress::begin(connection, workspace_number, self.conditions.len() + 1, self.sample)?;
            self.progress.insert(progress)
        };
        let all = progress.pieces_of_all();
        let conditions = compiled.conditions.len();
        let mut evaluation = Evaluation::of_each(connection, compiled)?;
        // The preparation does not count, so that every look makes progress.
        let began = Instant::now();
        while progress.pieces < all && began.elapsed() < LOOK {
            let start = (workspace_number << COUNT_BITS) | (spread(progress.pieces, all) * progress.width);
            let range = start..=start + progress.width - 1;
            evaluation.each_in_range(&range, conditions, |contact, holds| progress.tally.note(contact, holds))?;
            progress.pieces += 1;
        }
        Ok(progress.pieces == all)
    }

    /// Returns true if the count ends with an estimate now: its time is over and the workspace is not small.
    pub(super) fn is_over(&self, began: Instant) -> bool {
        is_over(self.progress.as_ref().map_or(0, |progress| progress.tally.contacts), began)
    }

    /// Result of the count: sizes, exact if all contacts were examined, and a sample.
    pub(super) fn counted(self, connection: &Connection) -> Result<MatchCount, Fault> {
        let Some(progress) = self.progress else { return Ok(MatchCount::nobody(self.conditions.len() + 1)) };
        let exact = progress.pieces == progress.pieces_of_all();
        at_once(progress.tally.counted(&mut &*connection, exact))
    }
}

impl CountProgress {
    fn begin(connection: &Connection, workspace_number: i64, filters: usize, sample: usize) -> Result<Self, Fault> {
        let sql = "SELECT newest, contacts FROM workspace_numbers WHERE number = ?1";
        let population = one(connection, sql, [workspace_number], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let (newest, contacts): (i64, i64) = population.unwrap_or((0, 0));
        let contacts = contacts.unsigned_abs();
        Ok(Self {
            newest,
            width: if is_small(contacts) { PIECE.max(newest + 1) } else { PIECE },
            pieces: 0,
            tally: Tally::new(contacts, filters, sample),
        })
    }

    const fn pieces_of_all(&self) -> i64 {
        self.newest / self.width + 1
    }
}
