//! How many product events happened, and of how many contacts.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use messaging_core::domain::tally::buckets::{Buckets, Quarter};
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::product_events::EventActivity;

use super::super::fault::Fault;
use super::super::query::{many, one, params};
use super::super::reads::Reads;
use super::super::row::{count as count_at, get, sql_limit, uuid};
use crate::sampling::spread;

/// How long contacts are counted.
const COUNTING: Duration = Duration::from_secs(2);

/// About how many contacts stand in a piece.
const PIECE: i64 = 2048;

/// Events by the number of their name.
type Found = Vec<(i64, EventActivity)>;

/// Counts events from what is kept of them.
pub(super) async fn count(
    reads: &Reads,
    workspace: WorkspaceId,
    name: Option<&str>,
    buckets: &Buckets,
    limit: usize,
) -> Result<Found, Fault> {
    // One statement, so that the names are those of the series.
    const SQL: &str = "WITH top AS (
            SELECT names.n, names.name, sum(a.events) AS events FROM event_names names
            JOIN product_event_activity a ON a.name = names.n AND a.quarter >= $3 AND a.quarter < $4
            WHERE names.workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1)
                AND ($2::text IS NULL OR names.name = $2)
            GROUP BY names.n HAVING sum(a.events) > 0 ORDER BY events DESC, names.name LIMIT $5
        )
        SELECT top.n, top.name, a.quarter, sum(a.events)::bigint
        FROM top JOIN product_event_activity a ON a.name = top.n AND a.quarter >= $3 AND a.quarter < $4
        GROUP BY top.n, top.name, top.events, a.quarter ORDER BY top.events DESC, top.name, a.quarter";
    let (from, to) = buckets.quarters();
    let bounds = params![uuid(workspace), name.map(str::to_owned), from.0, to.0, sql_limit(limit)];
    let rows = many(&mut reads.clone(), SQL, bounds, |row| {
        let events = u64::try_from(get::<i64>(row, 3)?).unwrap_or(0);
        Ok((get::<i64>(row, 0)?, get::<String>(row, 1)?, Quarter(get(row, 2)?), events))
    })
    .await?;
    let mut found: Found = Vec::new();
    for (n, name, quarter, events) in rows {
        if found.last().is_none_or(|(last, _)| *last != n) {
            let series = vec![0; buckets.starts().len()];
            found.push((n, EventActivity { name, count: 0, contacts: 0, series }));
        }
        if let (Some(place), Some((_, activity))) = (buckets.place_of(quarter), found.last_mut()) {
            activity.series[place] += events;
            activity.count += events;
        }
    }
    Ok(found)
}

/// Counts the contacts of events.
///
/// Looked at are small pieces that are spread over all contacts, so that a workspace that is too large for the time is
/// estimated from everywhere.
pub(super) async fn with_contacts(
    reads: &Reads,
    workspace: WorkspaceId,
    buckets: &Buckets,
    mut found: Found,
) -> Result<Vec<EventActivity>, Fault> {
    const ALL: &str = "WITH w AS (SELECT number FROM workspace_numbers WHERE workspace = $1)
        SELECT
            (SELECT min(n) FROM contacts WHERE n >= (SELECT number << 40 FROM w)
                AND n < (SELECT (number + 1) << 40 FROM w)),
            (SELECT max(n) FROM contacts WHERE n >= (SELECT number << 40 FROM w)
                AND n < (SELECT (number + 1) << 40 FROM w)),
            (SELECT coalesce(sum(contacts), 0)::bigint FROM contact_counts
                WHERE workspace_number = (SELECT number FROM w))";
    const PART: &str = "SELECT name, count(DISTINCT contact) FROM product_events
        WHERE contact >= $1 AND contact < $2 AND at >= $3 AND at < $4 AND name = ANY ($5) GROUP BY name";
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let on = &mut reads.clone();
    let all =
        one(on, ALL, params![uuid(workspace)], |row| Ok((get(row, 0)?, get(row, 1)?, get::<i64>(row, 2)?))).await?;
    let (Some(lowest), Some(highest), contacts): (Option<i64>, Option<i64>, _) = all.unwrap_or_default() else {
        return Ok(found.into_iter().map(|(_, activity)| activity).collect());
    };
    let pieces = contacts / PIECE + 1;
    let width = (highest - lowest) / pieces + 1;
    let (from, to) = buckets.quarters();
    let names: Vec<i64> = found.iter().map(|(n, _)| *n).collect();
    let places: HashMap<i64, usize> = names.iter().enumerate().map(|(place, n)| (*n, place)).collect();
    let began = Instant::now();
    let mut seen = 0;
    while seen < pieces && began.elapsed() < COUNTING {
        let start = lowest + spread(seen, pieces) * width;
        let (from, to) = (from.start().as_millis(), to.start().as_millis());
        let part = params![start, start + width, from, to, names.clone()];
        for (name, number) in many(on, PART, part, |row| Ok((get::<i64>(row, 0)?, count_at(row, 1)?))).await? {
            if let Some(place) = places.get(&name) {
                found[*place].1.contacts += number;
            }
        }
        seen += 1;
    }
    let estimate = |activity: EventActivity| {
        let contacts = match u64::try_from(seen) {
            Ok(seen) if seen > 0 => activity.contacts.saturating_mul(pieces.unsigned_abs()) / seen,
            _ => activity.contacts,
        };
        EventActivity { contacts: contacts.min(activity.count), ..activity }
    };
    Ok(found.into_iter().map(|(_, activity)| estimate(activity)).collect())
}
