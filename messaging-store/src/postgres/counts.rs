//! Counts of the contacts of workspaces and of the members of lists.
//!
//! With one row for each count, every commit of a workspace would wait for the row lock of another until that is on
//! disk. So a count is the sum of up to 64 rows, its shards, and the connection's process id chooses the shard that a
//! commit adds to. A transaction collects its changes in memory and writes them once, at its end and in the order of
//! the keys, so locks are short and cannot deadlock. The rows are part of the transaction, so a count is exact after
//! every commit. Counting the members on each read instead would cost more the larger a list is.

mod deltas;

use super::transaction::Transaction;
use crate::sql::{Value, key, params};

pub(super) use self::deltas::CountDeltas;

/// Writes the collected changes of counts, each row once. Called at the end of the transaction.
pub(super) fn settle(transaction: &mut Transaction) {
    const CONTACTS: &str = "INSERT INTO contact_counts (workspace_number, shard, contacts)
        SELECT w.number, pg_backend_pid() % 64, d.contacts
        FROM unnest($1::uuid[], $2::bigint[]) AS d(workspace, contacts)
        JOIN workspace_numbers w ON w.workspace = d.workspace
        ORDER BY w.number
        ON CONFLICT (workspace_number, shard) DO UPDATE SET contacts = contact_counts.contacts + excluded.contacts";
    const MEMBERS: &str = "INSERT INTO list_counts (list, shard, members)
        SELECT l.n, pg_backend_pid() % 64, d.members
        FROM unnest($1::uuid[], $2::uuid[], $3::bigint[]) AS d(workspace, list, members)
        JOIN workspace_numbers w ON w.workspace = d.workspace
        JOIN lists l ON l.workspace_number = w.number AND l.id = d.list AND NOT l.removed
        ORDER BY l.n
        ON CONFLICT (list, shard) DO UPDATE SET members = list_counts.members + excluded.members";
    let CountDeltas { contacts, members } = std::mem::take(&mut transaction.counts);
    let (workspaces, numbers): (Vec<Value>, Vec<i64>) =
        contacts.into_iter().filter(|(_, number)| *number != 0).map(|(id, number)| (key(id), number)).unzip();
    if !workspaces.is_empty() {
        transaction.run(CONTACTS, params![workspaces, numbers]);
    }
    let members: Vec<_> = members.into_iter().filter(|(_, number)| *number != 0).collect();
    if !members.is_empty() {
        let workspaces: Vec<Value> = members.iter().map(|((workspace, _), _)| key(*workspace)).collect();
        let lists: Vec<Value> = members.iter().map(|((_, list), _)| key(*list)).collect();
        let numbers: Vec<i64> = members.iter().map(|(_, number)| *number).collect();
        transaction.run(MEMBERS, params![workspaces, lists, numbers]);
    }
}
