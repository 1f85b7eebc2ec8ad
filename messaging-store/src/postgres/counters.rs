//! Counters of messages, and series over time.

use super::fault::Fault;
use super::query::params;
use super::transaction::Transaction;

/// Writes each counter that changes once; the last thing before the transaction's commit.
pub(super) async fn settle(transaction: &mut Transaction) -> Result<(), Fault> {
    const EVENTS: &str = "INSERT INTO product_event_activity (name, quarter, shard, events)
        SELECT d.name, d.quarter, pg_backend_pid() % 16, d.events
        FROM unnest($1::bigint[], $2::integer[], $3::bigint[]) AS d(name, quarter, events)
        ORDER BY d.name, d.quarter
        ON CONFLICT (name, quarter, shard) DO UPDATE SET events = product_event_activity.events + excluded.events";
    let events = transaction.deltas.of_events();
    transaction.deltas.clear();
    if !events.is_empty() {
        let names: Vec<i64> = events.keys().map(|(name, _)| *name).collect();
        let quarters: Vec<i32> = events.keys().map(|(_, quarter)| quarter.0).collect();
        let numbers: Vec<i64> = events.into_values().collect();
        transaction.run(EVENTS, params![names, quarters, numbers]);
    }
    Ok(())
}
