//! Of how many contacts product events are.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use messaging_core::domain::analytics::tally::buckets::Buckets;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::product_events::EventActivity;

use super::super::fault::Fault;
use super::super::query::{many, one};
use super::super::reads::Reads;
use crate::row::{count as count_at, get};
use crate::sampling::spread;
use crate::sql::{key, params};
use crate::tables::product_events::{ActivityByName, estimated};

/// Time limit for counting contacts; what was not looked at by then is estimated.
const COUNTING: Duration = Duration::from_secs(2);

/// About how many contacts stand in a piece.
const PIECE: i64 = 2048;

/// Counts the contacts of events.
///
/// Looked at are small pieces that are spread over all contacts, so that a workspace that is too large for the time is
/// estimated from everywhere.
pub(super) async fn with_contacts(
    reads: &Reads,
    workspace: WorkspaceId,
    buckets: &Buckets,
    mut found: ActivityByName,
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
        one(on, ALL, params![key(workspace)], |row| Ok((get(row, 0)?, get(row, 1)?, get::<i64>(row, 2)?))).await?;
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
    Ok(estimated(found, seen, pieces))
}
