//! Counts of product events by name and time, read from their counters for each quarter of an hour.

use std::cmp::Reverse;
use std::collections::HashMap;

use messaging_core::domain::analytics::tally::buckets::{Buckets, Quarter};
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::StoreError;
use messaging_core::ports::store::product_events::EventActivity;

use crate::database::{Database, Query};
use crate::pages::sql_limit;
use crate::row::get;
use crate::sql::{Sql, key, params, sql};

/// Counts of events, each with the number that stands for the event's name.
pub(crate) type ActivityByName = Vec<(i64, EventActivity)>;

/// Selects the names with the most events, and the counts of each name by quarter of an hour. It is one statement, so that
/// names and counts are of the same moment.
macro_rules! activity {
    ($join:literal, $events:literal, $grouped:literal) => {
        concat!(
            "WITH top AS (
                SELECT names.n, names.name, sum(a.events) AS events FROM event_names names ",
            $join,
            " product_event_activity a ON a.name = names.n AND a.quarter >= $3 AND a.quarter < $4
                WHERE names.workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1)
                    AND (CAST($2 AS text) IS NULL OR names.name = $2)
                GROUP BY names.n, names.name HAVING sum(a.events) > 0 ORDER BY events DESC, names.name LIMIT $5
            )
            SELECT top.n, top.name, a.quarter, ",
            $events,
            " FROM top ",
            $join,
            " product_event_activity a ON a.name = top.n AND a.quarter >= $3 AND a.quarter < $4 ",
            $grouped
        )
    };
}

/// Counts events of the `limit` names that have the most, or of one name; in the order of the counts. Contacts are left 0.
pub(super) async fn count_events(
    database: &impl Database,
    workspace: WorkspaceId,
    name: Option<&str>,
    buckets: &Buckets,
    limit: usize,
) -> Result<ActivityByName, StoreError> {
    const SQL: Sql = sql!(
        sqlite: activity!("CROSS JOIN", "a.events", ""),
        postgres: activity!("JOIN", "sum(a.events)::bigint", "GROUP BY top.n, top.name, a.quarter"),
    );
    let (from, to) = buckets.quarters();
    let bounds = params![key(workspace), name, from.0, to.0, sql_limit(limit)];
    let query = Query::new(SQL, bounds, |row| {
        let events = u64::try_from(get::<i64>(row, 3)?).unwrap_or(0);
        Ok((get::<i64>(row, 0)?, get::<String>(row, 1)?, Quarter(get(row, 2)?), events))
    });
    let mut found = ActivityByName::new();
    let mut places: HashMap<i64, usize> = HashMap::new();
    for (n, name, quarter, events) in database.many(query).await? {
        let place = *places.entry(n).or_insert(found.len());
        if place == found.len() {
            let series = vec![0; buckets.starts().len()];
            found.push((n, EventActivity { name, count: 0, contacts: 0, series }));
        }
        if let Some(bucket) = buckets.place_of(quarter) {
            let activity = &mut found[place].1;
            activity.series[bucket] += events;
            activity.count += events;
        }
    }
    found.sort_by(|(_, a), (_, b)| Reverse(a.count).cmp(&Reverse(b.count)).then_with(|| a.name.cmp(&b.name)));
    Ok(found)
}

/// Completes counts whose contacts were counted in `looked_at` of `all` pieces only: scales them up to all pieces, at most
/// to the number of events.
pub(crate) fn estimated(found: ActivityByName, looked_at: i64, all: i64) -> Vec<EventActivity> {
    let estimate = |(_, activity): (i64, EventActivity)| {
        let contacts = match u64::try_from(looked_at) {
            Ok(looked_at) if looked_at > 0 => activity.contacts.saturating_mul(all.unsigned_abs()) / looked_at,
            _ => activity.contacts,
        };
        EventActivity { contacts: contacts.min(activity.count), ..activity }
    };
    found.into_iter().map(estimate).collect()
}
