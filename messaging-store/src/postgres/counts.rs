//! How many contacts workspaces have, and how many members lists.
//!
//! A row that every commit of a workspace changes would let one commit wait for another one's disk. So a count is the sum
//! of sixteen rows, its shards; the connection decides which of them a commit adds to. What the commits of a transaction
//! change is collected in memory and written once, at its end and in the order of the keys: whoever waits for a shard waits
//! for one commit, and nobody waits in a circle. The rows are part of the transaction, so a count is exact after every
//! commit. Counting members instead would take longer the larger a list is, and lists are shown with their counts.

mod deltas;

use super::transaction::Transaction;
use crate::sql::{Value, key, params};

pub(super) use self::deltas::CountDeltas;

/// Writes each count that changes once.
pub(super) fn settle(transaction: &mut Transaction) {
    const CONTACTS: &str = "INSERT INTO contact_counts (workspace_number, shard, contacts)
        SELECT w.number, pg_backend_pid() % 16, d.contacts
        FROM unnest($1::uuid[], $2::bigint[]) AS d(workspace, contacts)
        JOIN workspace_numbers w ON w.workspace = d.workspace
        ORDER BY w.number
        ON CONFLICT (workspace_number, shard) DO UPDATE SET contacts = contact_counts.contacts + excluded.contacts";
    const MEMBERS: &str = "INSERT INTO list_counts (list, shard, members)
        SELECT l.n, pg_backend_pid() % 16, d.members
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
