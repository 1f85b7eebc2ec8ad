//! How many product events happened, and of how many contacts.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use messaging_core::domain::tally::buckets::{Buckets, Quarter};
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::product_events::EventActivity;
use rusqlite::{Connection, params};

use super::super::fault::Fault;
use super::super::numbers::{COUNT_BITS, workspace_number};
use super::super::query::{many, one};
use super::super::row::sql_limit;
use crate::sampling::spread;

/// How long one look at contacts may take: others wait for the thread meanwhile.
const LOOK: Duration = Duration::from_millis(25);

/// How long contacts are counted.
pub(super) const COUNTING: Duration = Duration::from_secs(2);

/// How many contacts stand in a piece.
const PIECE: i64 = 512;

/// The name of an event, with its number.
type Name = (i64, String);

/// Counts events from what is kept of them.
pub(super) fn count(
    connection: &Connection,
    workspace: WorkspaceId,
    name: Option<&str>,
    buckets: &Buckets,
    limit: usize,
) -> Result<Vec<(i64, EventActivity)>, Fault> {
    const TOP: &str = "SELECT names.n, names.name FROM event_names names
        CROSS JOIN product_event_activity a ON a.name = names.n AND a.quarter >= ?3 AND a.quarter < ?4
        WHERE names.workspace_number = ?1 AND (?2 IS NULL OR names.name = ?2)
        GROUP BY names.n HAVING sum(events) > 0 ORDER BY sum(events) DESC, names.name LIMIT ?5";
    const SERIES: &str = "SELECT quarter, events FROM product_event_activity
        WHERE name = ?1 AND quarter >= ?2 AND quarter < ?3 ORDER BY quarter";
    // One transaction, so that the names are those of the series.
    let connection = &*connection.unchecked_transaction()?;
    let Some(workspace_number) = workspace_number(connection, workspace)? else { return Ok(Vec::new()) };
    let (from, to) = buckets.quarters();
    let bounds = params![workspace_number, name, from.0, to.0, sql_limit(limit)];
    let names: Vec<Name> = many(connection, TOP, bounds, |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut found = Vec::with_capacity(names.len());
    for (n, name) in names {
        let mut statement = connection.prepare_cached(SERIES)?;
        let mut rows = statement.query(params![n, from.0, to.0])?;
        let mut series = vec![0; buckets.starts().len()];
        while let Some(row) = rows.next()? {
            let events = u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0);
            if let Some(place) = buckets.place_of(Quarter(row.get(0)?)) {
                series[place] += events;
            }
        }
        found.push((n, EventActivity { name, count: series.iter().sum(), contacts: 0, series }));
    }
    Ok(found)
}

/// Counts the contacts of events.
///
/// Looked at are small pieces that are spread over all contacts, so that a workspace that is too large for the time is
/// estimated from everywhere.
pub(super) struct Contacts {
    workspace: WorkspaceId,
    buckets: Arc<Buckets>,
    found: Vec<(i64, EventActivity)>,
    places: HashMap<i64, usize>,
    /// The count of the newest contact when counting began.
    newest: Option<i64>,
    /// How many pieces were looked at.
    pieces: i64,
}

impl Contacts {
    pub(super) fn of(workspace: WorkspaceId, buckets: &Arc<Buckets>, found: Vec<(i64, EventActivity)>) -> Self {
        let places = found.iter().enumerate().map(|(place, (n, _))| (*n, place)).collect();
        Self { workspace, buckets: Arc::clone(buckets), found, places, newest: None, pieces: 0 }
    }

    /// Looks at some more contacts; answers whether that was all.
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

    /// What was found; the contacts estimated, if not all were looked at.
    pub(super) fn finish(self) -> Vec<EventActivity> {
        let all = self.newest.unwrap_or(0) / PIECE + 1;
        let estimate = |activity: EventActivity| {
            let contacts = match u64::try_from(self.pieces) {
                Ok(pieces) if pieces > 0 && self.pieces < all => {
                    activity.contacts.saturating_mul(all.unsigned_abs()) / pieces
                }
                _ => activity.contacts,
            };
            EventActivity { contacts: contacts.min(activity.count), ..activity }
        };
        self.found.into_iter().map(|(_, activity)| estimate(activity)).collect()
    }
}
