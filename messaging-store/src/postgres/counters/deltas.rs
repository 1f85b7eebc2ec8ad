//! Writing what counters change by: a statement for each table, its rows in the order of their keys.

use messaging_core::domain::channel::Channel;
use messaging_core::domain::tally::buckets::Quarter;
use messaging_core::domain::tally::{Counter, Counts};
use messaging_core::ids::{CampaignId, WorkspaceId};

use super::super::query::{Params, params};
use super::super::row::{number, uuid};
use super::super::transaction::Transaction;
use super::columns::{ADD_ACTIVITY, ADD_CAMPAIGN_ACTIVITY, ADD_CAMPAIGN_COUNTS, SERIES, TOTALS};
use crate::counter_deltas::{AutomationCounter, CounterDeltas, Key, SourceKind};
use crate::sql::Value;

/// Writes each counter that changes once; the last thing before the transaction's commit.
pub(in super::super) fn settle(transaction: &mut Transaction) {
    let deltas = std::mem::take(&mut transaction.deltas);
    settle_messages(transaction, &deltas);
    settle_runs(transaction, &deltas);
    settle_nodes(transaction, &deltas);
    settle_events(transaction, &deltas);
}

/// Nothing is counted for a campaign that is gone.
fn settle_messages(transaction: &mut Transaction, deltas: &CounterDeltas) {
    let (mut campaigns, mut of_campaigns, mut of_workspaces) = (Vec::new(), Vec::new(), Vec::new());
    for (key, counts) in deltas.of_messages() {
        match key {
            Key::Campaign(workspace, campaign, variant) => {
                campaigns.push(((workspace, campaign, i16::from(variant)), counts));
            }
            Key::CampaignActivity(workspace, campaign, quarter) => {
                of_campaigns.push(((workspace, campaign, quarter.0), counts));
            }
            Key::Activity(workspace, quarter, channel, source) => {
                of_workspaces.push(((workspace, quarter, channel, source), counts));
            }
        }
    }
    if !campaigns.is_empty() {
        let numbers = numbers(&TOTALS, &campaigns);
        transaction.run(&ADD_CAMPAIGN_COUNTS, columns(of_campaign(&campaigns), numbers));
    }
    if !of_campaigns.is_empty() {
        let numbers = numbers(&SERIES, &of_campaigns);
        transaction.run(&ADD_CAMPAIGN_ACTIVITY, columns(of_campaign(&of_campaigns), numbers));
    }
    if !of_workspaces.is_empty() {
        let numbers = numbers(&SERIES, &of_workspaces);
        transaction.run(&ADD_ACTIVITY, columns(of_workspace(&of_workspaces), numbers));
    }
}

/// The columns of keys of campaigns.
fn of_campaign<T: Copy + Into<Value>>(rows: &[((WorkspaceId, CampaignId, T), Counts)]) -> Params {
    params![
        rows.iter().map(|((workspace, ..), _)| uuid(*workspace)).collect::<Vec<_>>(),
        rows.iter().map(|((_, campaign, _), _)| uuid(*campaign)).collect::<Vec<_>>(),
        Value::List(rows.iter().map(|((.., last), _)| (*last).into()).collect()),
    ]
}

/// What messages of a workspace are summed up by.
type ActivityKey = (WorkspaceId, Quarter, Channel, SourceKind);

fn of_workspace(rows: &[(ActivityKey, Counts)]) -> Params {
    params![
        rows.iter().map(|((workspace, ..), _)| uuid(*workspace)).collect::<Vec<_>>(),
        rows.iter().map(|((_, quarter, ..), _)| quarter.0).collect::<Vec<_>>(),
        rows.iter().map(|((_, _, channel, _), _)| number(&Channel::ALL, channel)).collect::<Vec<_>>(),
        rows.iter().map(|((.., source), _)| number(&SourceKind::ALL, source)).collect::<Vec<_>>(),
    ]
}

/// A column for each counter.
fn numbers<K>(counters: &[Counter], rows: &[(K, Counts)]) -> Params {
    let column = |counter: &Counter| rows.iter().map(|(_, counts)| counts.get(*counter)).collect::<Vec<_>>();
    counters.iter().flat_map(|counter| params![column(counter)]).collect()
}

fn columns(mut key: Params, numbers: Params) -> Params {
    key.extend(numbers);
    key
}

fn settle_runs(transaction: &mut Transaction, deltas: &CounterDeltas) {
    const RUNS: &str = "INSERT INTO automation_run_counts AS t (automation, status, shard, runs)
        SELECT automation, status, pg_backend_pid() & 15, runs
        FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS given (automation, status, runs)
        ON CONFLICT (automation, status, shard) DO UPDATE SET runs = t.runs + excluded.runs";
    const VERSIONS: &str = "INSERT INTO automation_version_counts AS t (automation, version, shard, runs)
        SELECT automation, version, pg_backend_pid() & 15, runs
        FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS given (automation, version, runs)
        ON CONFLICT (automation, version, shard) DO UPDATE SET runs = t.runs + excluded.runs";
    let (mut by_status, mut by_version) = (Vec::new(), Vec::new());
    for (counter, number) in deltas.of_automations() {
        match counter {
            AutomationCounter::Runs(automation, status) => by_status.push((*automation, *status, number)),
            AutomationCounter::Version(automation, version) => {
                by_version.push((*automation, i64::from(*version), number));
            }
            AutomationCounter::Entered(_) | AutomationCounter::Waiting(_) | AutomationCounter::Branch(..) => {}
        }
    }
    for (sql, rows) in [(RUNS, by_status), (VERSIONS, by_version)] {
        if !rows.is_empty() {
            let column = |of: fn(&(i64, i64, i64)) -> i64| rows.iter().map(of).collect::<Vec<_>>();
            transaction.run(sql, params![column(|row| row.0), column(|row| row.1), column(|row| row.2)]);
        }
    }
}

fn settle_nodes(transaction: &mut Transaction, deltas: &CounterDeltas) {
    const NODES: &str = "INSERT INTO automation_node_counts AS t (node, shard, entered, waiting)
        SELECT node, pg_backend_pid() & 15, sum(entered)::bigint, sum(waiting)::bigint
        FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS given (node, entered, waiting)
        GROUP BY node ORDER BY node
        ON CONFLICT (node, shard)
            DO UPDATE SET entered = t.entered + excluded.entered, waiting = t.waiting + excluded.waiting";
    const BRANCHES: &str = "INSERT INTO automation_branches AS t (node, branch, shard, taken)
        SELECT node, branch, pg_backend_pid() & 15, taken
        FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS given (node, branch, taken)
        ON CONFLICT (node, branch, shard) DO UPDATE SET taken = t.taken + excluded.taken";
    let (mut nodes, mut branches) = (Vec::new(), Vec::new());
    for (counter, number) in deltas.of_automations() {
        match counter {
            AutomationCounter::Entered(node) => nodes.push((*node, number, 0)),
            AutomationCounter::Waiting(node) => nodes.push((*node, 0, number)),
            AutomationCounter::Branch(node, branch) => branches.push((*node, branch.clone(), number)),
            AutomationCounter::Runs(..) | AutomationCounter::Version(..) => {}
        }
    }
    if !nodes.is_empty() {
        let column = |of: fn(&(i64, i64, i64)) -> i64| nodes.iter().map(of).collect::<Vec<_>>();
        transaction.run(NODES, params![column(|row| row.0), column(|row| row.1), column(|row| row.2)]);
    }
    if !branches.is_empty() {
        let of_nodes: Vec<_> = branches.iter().map(|(node, ..)| *node).collect();
        let taken: Vec<_> = branches.iter().map(|(.., taken)| *taken).collect();
        let names: Vec<_> = branches.into_iter().map(|(_, branch, _)| branch).collect();
        transaction.run(BRANCHES, params![of_nodes, names, taken]);
    }
}

fn settle_events(transaction: &mut Transaction, deltas: &CounterDeltas) {
    const SQL: &str = "INSERT INTO product_event_activity AS t (name, quarter, shard, events)
        SELECT name, quarter, pg_backend_pid() & 15, events
        FROM unnest($1::bigint[], $2::integer[], $3::bigint[]) AS given (name, quarter, events)
        ON CONFLICT (name, quarter, shard) DO UPDATE SET events = t.events + excluded.events";
    let sums = deltas.of_events();
    if sums.is_empty() {
        return;
    }
    let names: Vec<_> = sums.keys().map(|(name, _)| *name).collect();
    let quarters: Vec<_> = sums.keys().map(|(_, quarter)| quarter.0).collect();
    let numbers: Vec<_> = sums.into_values().collect();
    transaction.run(SQL, params![names, quarters, numbers]);
}
