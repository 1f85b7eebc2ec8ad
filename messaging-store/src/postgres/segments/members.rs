//! Calculation of the members of a whole segment.
//!
//! A slice of contacts is compared in one snapshot, which takes most of the time, and the difference is written in a
//! few short transactions. Changes in between are noted like all others and followed afterwards; only a contact that is
//! erased in between must not become a member again: a transaction that writes members takes the members lock of the
//! workspace exclusively, and one that erases a contact takes it in shared mode.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use messaging_core::ids::{SegmentId, WorkspaceId};
use messaging_core::ports::store::StoreCursor;
use messaging_core::ports::store::segments::{MemberQuery, MoveNotes};

use super::super::fault::Fault;
use super::super::listeners::{self, Happened};
use super::super::numbers::{COUNT_BITS, segment_number};
use super::super::outbox;
use super::super::query::{many, one, params};
use super::super::reads::{Reads, Snapshot};
use super::super::row::{get, numbered_place, place_number};
use super::super::transaction::Transaction;
use super::evaluate::{Evaluation, PIECE, present};
use crate::segment_moves::compare;
use crate::tables::segments::Difference;

/// Maximum time for reading one snapshot.
const SLICE_TIME: Duration = Duration::from_millis(100);
/// Number of moves after which a look ends, so that memory stays bounded.
const MAX_MOVES: usize = 50_000;
/// First number of the locks of members; the second is derived from the id of the workspace.
const MEMBERS: i32 = 0x7365_6702;

/// Compares members and filter for as many contacts as fit a look; `None` if the segment does not exist.
pub(super) async fn difference(
    reads: &Reads,
    workspace: WorkspaceId,
    id: SegmentId,
    query: &MemberQuery,
    from: Option<StoreCursor>,
) -> Result<Option<Difference>, Fault> {
    let mut on = reads.snapshot().await?;
    let found = compared(&mut on, workspace, id, query, from).await?;
    on.end().await?;
    Ok(found)
}

async fn compared(
    on: &mut Snapshot,
    workspace: WorkspaceId,
    id: SegmentId,
    query: &MemberQuery,
    from: Option<StoreCursor>,
) -> Result<Option<Difference>, Fault> {
    const HELD: &str = "SELECT contact FROM segment_members
        WHERE segment = $1 AND contact BETWEEN $2 AND $3 ORDER BY contact";
    let Some(segment) = segment_number(on, workspace, id).await? else { return Ok(None) };
    let evaluation = Evaluation::new(on, workspace, &present(query), [&query.filter]).await?;
    let Some(evaluation) = evaluation else { return Ok(None) };
    let first = evaluation.workspace_number << COUNT_BITS;
    let last = first | ((1 << COUNT_BITS) - 1);
    let mut difference =
        Difference { workspace, id, now: query.now, segment, moves: Vec::new(), erased: 0, next: None };
    let mut start = first.saturating_add(from.map_or(0, place_number).max(0));
    // The preparation does not count, so that every look makes progress.
    let began = Instant::now();
    while start <= last {
        let evaluated = evaluation.in_range(on, &(start..=last), PIECE).await?;
        let end = evaluated.rest.map_or(last, |rest| rest - 1);
        let held = many(on, HELD, params![segment, start, end], |row| get::<i64>(row, 0)).await?;
        compare(&evaluated.matching(), &held, &mut difference.moves);
        let Some(rest) = evaluated.rest else { break };
        start = rest;
        if began.elapsed() >= SLICE_TIME || difference.moves.len() >= MAX_MOVES {
            difference.next = Some(numbered_place(start - first));
            break;
        }
    }
    Ok(Some(difference))
}

/// Writes some moves; returns the numbers of contacts that joined and left.
pub(super) async fn write(
    transaction: &mut Transaction,
    difference: &Difference,
    moves: &[(i64, bool)],
    notes: MoveNotes,
) -> Result<(u64, u64), Fault> {
    let Difference { workspace, id, now, segment, .. } = *difference;
    lock_alone(transaction, workspace);
    if !segment_exists(transaction, segment).await? {
        return Ok((0, 0));
    }
    let joined = change(transaction, segment, moves, true).await?;
    let left = change(transaction, segment, moves, false).await?;
    if listeners::is_any(transaction, workspace).await? {
        let is_silent = notes == MoveNotes::Silent;
        for (contact, member) in moves {
            if (if *member { &joined } else { &left }).contains(contact) {
                let happened = Happened::Segment { id, member: *member, is_silent };
                listeners::hear(transaction, workspace, *contact, now, happened).await?;
            }
        }
    }
    Ok((joined.len() as u64, left.len() as u64))
}

/// Returns true if a segment was not removed meanwhile; it cannot be removed until the transaction ends.
pub(super) async fn segment_exists(transaction: &mut Transaction, segment: i64) -> Result<bool, Fault> {
    const SQL: &str = "SELECT n FROM segments WHERE n = $1 AND NOT removed FOR SHARE";
    Ok(one(transaction, SQL, params![segment], |_| Ok(())).await?.is_some())
}

/// Adds or removes members of a segment and counts them; returns the contacts whose membership changed.
pub(super) async fn change(
    transaction: &mut Transaction,
    segment: i64,
    moves: &[(i64, bool)],
    member: bool,
) -> Result<HashSet<i64>, Fault> {
    // A contact may have been erased.
    const JOIN: &str = "INSERT INTO segment_members (segment, contact)
        SELECT $1, c.n FROM unnest($2::bigint[]) AS u (n) JOIN contacts c ON c.n = u.n
        ON CONFLICT DO NOTHING RETURNING contact";
    const LEAVE: &str = "DELETE FROM segment_members WHERE segment = $1 AND contact = ANY($2) RETURNING contact";
    const COUNT: &str = "INSERT INTO segment_sizes AS s (segment, shard, members)
        VALUES ($1, pg_backend_pid() % 64, $2) ON CONFLICT (segment, shard) DO UPDATE SET members = s.members + $2";
    let contacts: Vec<i64> = moves.iter().filter(|(_, joins)| *joins == member).map(|(contact, _)| *contact).collect();
    if contacts.is_empty() {
        return Ok(HashSet::new());
    }
    let sql = if member { JOIN } else { LEAVE };
    let changed = many(transaction, sql, params![segment, contacts], |row| get::<i64>(row, 0)).await?;
    let count = i64::try_from(changed.len()).unwrap_or(i64::MAX);
    if count > 0 {
        transaction.run(COUNT, params![segment, if member { count } else { -count }]);
    }
    Ok(changed.into_iter().collect())
}

/// Takes the members lock of a workspace exclusively.
pub(super) fn lock_alone(transaction: &mut Transaction, workspace: WorkspaceId) {
    let keys = params![MEMBERS, outbox::lock_number(workspace)];
    transaction.run("SELECT pg_advisory_xact_lock($1::integer, $2::integer)", keys);
}

/// Removes an erased contact from all segments of its workspace, and its entry in the outbox.
pub(in super::super) fn remove_contact(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    workspace_number: i64,
    contact: i64,
) {
    const LEAVE: &str = "WITH gone AS (
            DELETE FROM segment_members
            WHERE contact = $2 AND segment IN (SELECT n FROM segments WHERE workspace_number = $1) RETURNING segment
        )
        INSERT INTO segment_sizes AS s (segment, shard, members)
        SELECT segment, pg_backend_pid() % 64, -1 FROM gone ORDER BY segment
        ON CONFLICT (segment, shard) DO UPDATE SET members = s.members - 1";
    outbox::forget(transaction, contact);
    let keys = params![MEMBERS, outbox::lock_number(workspace)];
    transaction.run("SELECT pg_advisory_xact_lock_shared($1::integer, $2::integer)", keys);
    transaction.run(LEAVE, params![workspace_number, contact]);
    transaction.run("DELETE FROM changed_contacts WHERE contact = $1", params![contact]);
}
