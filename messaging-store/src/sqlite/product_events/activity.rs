//! Numbers of contacts with product events.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use messaging_core::domain::analytics::tally::buckets::Buckets;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::product_events::EventActivity;
use rusqlite::{Connection, params};

use super::super::fault::Fault;
use super::super::numbers::{COUNT_BITS, workspace_number};
use super::super::query::one;
use crate::sampling::spread;
use crate::tables::product_events::{ActivityByName, estimated};

/// Time limit of one look: other reads wait for the thread meanwhile.
const LOOK: Duration = Duration::from_millis(25);

/// Time limit for counting contacts; the rest is estimated.
pub(super) const COUNTING: Duration = Duration::from_secs(2);

/// Number of contact numbers in a piece.
const PIECE: i64 = 512;

/// Counts the contacts with events.
///
/// Small pieces are examined that are spread over all contacts, so that a workspace that is too large for the time
/// limit is estimated from all parts.
pub(super) struct Contacts {
    workspace: WorkspaceId,
    buckets: Arc<Buckets>,
    found: ActivityByName,
    places: HashMap<i64, usize>,
    /// Number of the newest contact within the workspace when counting began.
    newest: Option<i64>,
    /// Number of pieces examined so far.
    pieces: i64,
}

impl Contacts {
    pub(super) fn of(workspace: WorkspaceId, buckets: &Arc<Buckets>, found: ActivityByName) -> Self {
        let places = found.iter().enumerate().map(|(place, (n, _))| (*n, place)).collect();
        Self { workspace, buckets: Arc::clone(buckets), found, places, newest: None, pieces: 0 }
    }

    /// Examines some more contacts; returns true if those were the last.
    pub(super) fn go_on(&mut self, connection: &Connection) -> Result<bool, Fault> {
        const NEWEST: &str = "SELECT newest FROM workspace_numbers WHERE number = ?1";
        const ACTIVE: &str = "SELECT DISTINCT contact, name FROM product_events INDEXED BY product_events_by_contact
            WHERE contact BETWEEN ?1 AND ?2 AND at >= ?3 AND at < ?4";
        let connection = &*connection.unchecked_transaction()?;
        let Some(workspace_number) = workspace_number(connection, self.workspace)? else { return Ok(true) };
        if self.found.is_empty() {
            return Ok(true);
        }
        let newest = if let Some(newest) = self.newest {
            newest
        } else {
            let newest = one(connection, NEWEST, [workspace_number], |row| Ok(row.get(0)?))?.unwrap_or(0);
            *self.newest.insert(newest)
        };
        let all = newest / PIECE + 1;
        let (from, to) = self.buckets.quarters();
        let (from, to) = (from.start().as_millis(), to.start().as_millis());
        let mut statement = connection.prepare_cached(ACTIVE)?;
        let began = Instant::now();
        while self.pieces < all && began.elapsed() < LOOK {
            let start = (workspace_number << COUNT_BITS) | (spread(self.pieces, all) * PIECE);
            let mut rows = statement.query(params![start, start + PIECE - 1, from, to])?;
            while let Some(row) = rows.next()? {
                if let Some(place) = self.places.get(&row.get(1)?) {
                    self.found[*place].1.contacts += 1;
                }
            }
            self.pieces += 1;
        }
        Ok(self.pieces == all)
    }

    /// Result of the count; estimated unless all contacts were examined.
    pub(super) fn finish(self) -> Vec<EventActivity> {
        estimated(self.found, self.pieces, self.newest.unwrap_or(0) / PIECE + 1)
    }
}
