//! Writing what counters change by.

use messaging_core::domain::channel::Channel;
use messaging_core::domain::tally::Counts;
use messaging_core::ids::Id as _;
use rusqlite::{CachedStatement, Connection, ToSql};

use super::super::fault::Fault;
use super::super::numbers::campaign_number;
use super::super::row::number;
use super::columns::{ADD_ACTIVITY, ADD_CAMPAIGN_ACTIVITY, ADD_CAMPAIGN_COUNTS, SERIES, TOTALS};
use crate::counter_deltas::{AutomationCounter, CounterDeltas, Key, SourceKind};

/// Writes each counter that changes once; the last thing before the transaction's commit.
pub(in super::super) fn settle(deltas: &CounterDeltas, connection: &Connection) -> Result<(), Fault> {
    for (key, counts) in &deltas.of_messages() {
        add(connection, *key, counts)?;
    }
    settle_automations(deltas, connection)?;
    let sums = deltas.of_events();
    if sums.is_empty() {
        return Ok(());
    }
    let mut addition = connection.prepare_cached(
        "INSERT INTO product_event_activity (name, quarter, events) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET events = events + excluded.events",
    )?;
    for ((name, quarter), number) in sums {
        addition.execute([name, quarter.0.into(), number])?;
    }
    Ok(())
}

fn settle_automations(deltas: &CounterDeltas, connection: &Connection) -> Result<(), Fault> {
    for (counter, number) in deltas.of_automations() {
        let (sql, key): (_, [&dyn ToSql; 2]) = match counter {
            AutomationCounter::Runs(automation, status) => (
                "INSERT INTO automation_run_counts (automation, status, runs) VALUES (?1, ?2, ?3)
                 ON CONFLICT DO UPDATE SET runs = runs + excluded.runs",
                [automation, status],
            ),
            AutomationCounter::Version(automation, version) => (
                "UPDATE automation_versions SET runs = runs + ?3 WHERE automation = ?1 AND version = ?2",
                [automation, version],
            ),
            AutomationCounter::Entered(node) => {
                ("UPDATE automation_nodes SET entered = entered + ?3 WHERE n = ?1 AND ?2 = 0", [node, &0])
            }
            AutomationCounter::Waiting(node) => {
                ("UPDATE automation_nodes SET waiting = waiting + ?3 WHERE n = ?1 AND ?2 = 0", [node, &0])
            }
            AutomationCounter::Branch(node, branch) => (
                "INSERT INTO automation_branches (node, branch, taken) VALUES (?1, ?2, ?3)
                 ON CONFLICT DO UPDATE SET taken = taken + excluded.taken",
                [node, branch],
            ),
        };
        bind(connection.prepare_cached(sql)?, &key, [number])?;
    }
    Ok(())
}

/// Adds to a row, which is made when it is not there. Nothing is counted for a campaign that is gone.
fn add(connection: &Connection, key: Key, counts: &Counts) -> Result<(), Fault> {
    match key {
        Key::Campaign(workspace, campaign, variant) => {
            let Some(campaign) = campaign_number(connection, workspace, campaign)? else { return Ok(()) };
            let key: [&dyn ToSql; 2] = [&campaign, &variant];
            bind(connection.prepare_cached(ADD_CAMPAIGN_COUNTS)?, &key, TOTALS.map(|counter| counts.get(counter)))
        }
        Key::CampaignActivity(workspace, campaign, quarter) => {
            let Some(campaign) = campaign_number(connection, workspace, campaign)? else { return Ok(()) };
            let key: [&dyn ToSql; 2] = [&campaign, &quarter.0];
            bind(connection.prepare_cached(ADD_CAMPAIGN_ACTIVITY)?, &key, SERIES.map(|counter| counts.get(counter)))
        }
        Key::Activity(workspace, quarter, channel, kind) => {
            let (channel, kind) = (number(&Channel::ALL, &channel), number(&SourceKind::ALL, &kind));
            let key: [&dyn ToSql; 4] = [&workspace.to_bytes(), &quarter.0, &channel, &kind];
            bind(connection.prepare_cached(ADD_ACTIVITY)?, &key, SERIES.map(|counter| counts.get(counter)))
        }
    }
}

/// Runs a statement whose parameters are a key and then numbers.
fn bind<const N: usize>(
    mut statement: CachedStatement<'_>,
    key: &[&dyn ToSql],
    numbers: [i64; N],
) -> Result<(), Fault> {
    for (place, part) in key.iter().enumerate() {
        statement.raw_bind_parameter(place + 1, part)?;
    }
    for (place, number) in numbers.into_iter().enumerate() {
        statement.raw_bind_parameter(key.len() + place + 1, number)?;
    }
    statement.raw_execute()?;
    Ok(())
}
