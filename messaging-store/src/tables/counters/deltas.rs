//! Writing what counters change by: each once, in the order of their keys. PostgreSQL adds to all rows of a table by one
//! statement.

use messaging_core::domain::analytics::tally::Counter;
use messaging_core::domain::channel::Channel;

use super::columns::{ADD_ACTIVITY, ADD_CAMPAIGN_ACTIVITY, ADD_CAMPAIGN_COUNTS, ADD_SITE_ACTIVITY, SERIES, TOTALS};
use crate::counter_deltas::{AutomationCounter, CounterDeltas, Key, SourceKind};
use crate::database::Statements;
use crate::fault::Fault;
use crate::pages::number;
use crate::sql::{Params, Sql, key, params, sql};

/// Writes each counter that changes once; the last thing before the transaction's commit.
pub(crate) fn settle(on: &mut dyn Statements, deltas: &CounterDeltas) -> Result<(), Fault> {
    settle_messages(on, deltas)?;
    settle_sites(on, deltas)?;
    settle_automations(on, deltas)?;
    settle_events(on, deltas)
}

/// Nothing is counted for a campaign that is gone.
fn settle_messages(on: &mut dyn Statements, deltas: &CounterDeltas) -> Result<(), Fault> {
    for (of, counts) in deltas.of_messages() {
        let (sql, counters, key): (Sql, &[Counter], Params) = match of {
            Key::Campaign(workspace, campaign, variant) => {
                (ADD_CAMPAIGN_COUNTS, &TOTALS, params![key(workspace), key(campaign), variant])
            }
            Key::CampaignActivity(workspace, campaign, quarter) => {
                (ADD_CAMPAIGN_ACTIVITY, &SERIES, params![key(workspace), key(campaign), quarter.0])
            }
            Key::Activity(workspace, quarter, channel, kind) => {
                let (channel, kind) = (number(&Channel::ALL, &channel), number(&SourceKind::ALL, &kind));
                (ADD_ACTIVITY, &SERIES, params![key(workspace), quarter.0, channel, kind])
            }
        };
        let mut row: Params = counters.iter().map(|counter| counts.get(*counter).into()).collect();
        row.extend(key);
        on.gather(sql, row)?;
    }
    Ok(())
}

fn settle_sites(on: &mut dyn Statements, deltas: &CounterDeltas) -> Result<(), Fault> {
    for ((workspace, quarter, site), counts) in deltas.of_sites() {
        let mut row: Params = counts.numbers().iter().map(|number| (*number).into()).collect();
        row.extend(params![key(*workspace), quarter.0, site.as_str()]);
        on.gather(ADD_SITE_ACTIVITY, row)?;
    }
    Ok(())
}

fn settle_automations(on: &mut dyn Statements, deltas: &CounterDeltas) -> Result<(), Fault> {
    const RUNS: Sql = sql!(
        sqlite: "INSERT INTO automation_run_counts (automation, status, runs) VALUES ($1, $2, $3)
            ON CONFLICT DO UPDATE SET runs = runs + excluded.runs",
        postgres: "INSERT INTO automation_run_counts AS t (automation, status, shard, runs)
            SELECT automation, status, pg_backend_pid() & 63, runs
            FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS given (automation, status, runs)
            ON CONFLICT (automation, status, shard) DO UPDATE SET runs = t.runs + excluded.runs",
    );
    const VERSIONS: Sql = sql!(
        sqlite: "UPDATE automation_versions SET runs = runs + $3 WHERE automation = $1 AND version = $2",
        postgres: "INSERT INTO automation_version_counts AS t (automation, version, shard, runs)
            SELECT automation, version, pg_backend_pid() & 63, runs
            FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS given (automation, version, runs)
            ON CONFLICT (automation, version, shard) DO UPDATE SET runs = t.runs + excluded.runs",
    );
    const NODES: Sql = sql!(
        sqlite: "UPDATE automation_nodes SET entered = entered + $2, waiting = waiting + $3 WHERE n = $1",
        postgres: "INSERT INTO automation_node_counts AS t (node, shard, entered, waiting)
            SELECT node, pg_backend_pid() & 63, sum(entered)::bigint, sum(waiting)::bigint
            FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS given (node, entered, waiting)
            GROUP BY node ORDER BY node
            ON CONFLICT (node, shard)
                DO UPDATE SET entered = t.entered + excluded.entered, waiting = t.waiting + excluded.waiting",
    );
    const BRANCHES: Sql = sql!(
        sqlite: "INSERT INTO automation_branches (node, branch, taken) VALUES ($1, $2, $3)
            ON CONFLICT DO UPDATE SET taken = taken + excluded.taken",
        postgres: "INSERT INTO automation_branches AS t (node, branch, shard, taken)
            SELECT node, branch, pg_backend_pid() & 63, taken
            FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS given (node, branch, taken)
            ON CONFLICT (node, branch, shard) DO UPDATE SET taken = t.taken + excluded.taken",
    );
    for (counter, number) in deltas.of_automations() {
        let (sql, row) = match counter {
            AutomationCounter::Runs(automation, status) => (RUNS, params![*automation, *status, number]),
            AutomationCounter::Version(automation, version) => (VERSIONS, params![*automation, *version, number]),
            AutomationCounter::Entered(node) => (NODES, params![*node, number, 0]),
            AutomationCounter::Waiting(node) => (NODES, params![*node, 0, number]),
            AutomationCounter::Branch(node, branch) => (BRANCHES, params![*node, branch.as_str(), number]),
        };
        on.gather(sql, row)?;
    }
    Ok(())
}

fn settle_events(on: &mut dyn Statements, deltas: &CounterDeltas) -> Result<(), Fault> {
    const SQL: Sql = sql!(
        sqlite: "INSERT INTO product_event_activity (name, quarter, events) VALUES ($1, $2, $3)
            ON CONFLICT DO UPDATE SET events = events + excluded.events",
        postgres: "INSERT INTO product_event_activity AS t (name, quarter, shard, events)
            SELECT name, quarter, pg_backend_pid() & 63, events
            FROM unnest($1::bigint[], $2::integer[], $3::bigint[]) AS given (name, quarter, events)
            ON CONFLICT (name, quarter, shard) DO UPDATE SET events = t.events + excluded.events",
    );
    for ((name, quarter), number) in deltas.of_events() {
        on.gather(SQL, params![name, quarter.0, number])?;
    }
    Ok(())
}
