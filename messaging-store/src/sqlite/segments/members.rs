//! Calculation of all members of a segment, in slices.
//!
//! A slice of contacts is compared with the filter on the thread for scans, which takes most of the time. Then
//! the difference is written in a few short transactions. A contact that changes in between is in the outbox, as
//! always, and is followed afterwards; but a contact that is erased in between must not become a member again.

use std::time::{Duration, Instant};

use messaging_core::ids::{Id as _, SegmentId, WorkspaceId};
use messaging_core::ports::store::StoreCursor;
use messaging_core::ports::store::segments::{MemberQuery, MoveNotes};
use rusqlite::{CachedStatement, Connection, params};

use super::super::fault::Fault;
use super::super::listeners::{Happened, Listeners};
use super::super::numbers::{COUNT_BITS, segment_number};
use super::super::query::{many, one};
use super::super::row::{numbered_place, place_number};
use super::compile::compile;
use super::evaluate::Evaluation;
use crate::segment_moves::compare;
use crate::tables::segments::Difference;

/// Longest time for which one call of [`difference`] compares contacts; other scans wait for the thread meanwhile.
const SLICE_TIME: Duration = Duration::from_millis(25);
/// Number of contacts that are compared between two looks at the clock.
const PIECE: i64 = 1024;
/// Number of moves from which [`difference`] begins no further piece, so that its memory is bounded.
const MAX_MOVES: usize = 50_000;

/// The number of contacts that were ever created in a workspace, and how many of them were erased.
fn population(connection: &Connection, workspace: WorkspaceId) -> Result<(i64, i64), Fault> {
    let sql = "SELECT newest, newest - contacts FROM workspace_numbers WHERE workspace = ?1";
    let found = one(connection, sql, [workspace.to_bytes()], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(found.unwrap_or((0, 0)))
}

/// Compares the members of a segment with the contacts that match its filter, beginning at `from`, until [`SLICE_TIME`]
/// is over or [`MAX_MOVES`] are found. The answer says where the next call goes on; `None` if there is no such segment.
pub(super) fn difference(
    connection: &Connection,
    workspace: WorkspaceId,
    id: SegmentId,
    query: &MemberQuery,
    from: Option<StoreCursor>,
) -> Result<Option<Difference>, Fault> {
    let connection = &*connection.unchecked_transaction()?;
    let Some(segment) = segment_number(connection, workspace, id)? else { return Ok(None) };
    let Some(compiled) = compile(connection, workspace, query, [&query.filter])? else { return Ok(None) };
    let workspace_number = compiled.workspace_number;
    let (newest, erased) = population(connection, workspace)?;
    let (first, last) = (workspace_number << COUNT_BITS, (workspace_number << COUNT_BITS) | newest);
    let mut evaluation = Evaluation::of_ranges(connection, compiled)?;
    let mut members = connection.prepare_cached(
        "SELECT contact FROM segment_members WHERE segment = ?1 AND contact BETWEEN ?2 AND ?3 ORDER BY contact",
    )?;
    let mut moves = Vec::new();
    let mut start = first.saturating_add(from.map_or(0, place_number).max(0));
    // The time for preparing the evaluation does not count, so that every call compares at least one piece.
    let began = Instant::now();
    while start <= last && began.elapsed() < SLICE_TIME && moves.len() < MAX_MOVES {
        let range = start..=last.min(start + PIECE - 1);
        let wanted = evaluation.in_range(&range)?;
        compare(&wanted, &members_in_range(&mut members, segment, *range.start(), *range.end())?, &mut moves);
        start = range.end() + 1;
    }
    let next = (start <= last).then(|| numbered_place(start - first));
    Ok(Some(Difference { workspace, id, now: query.now, segment, moves, erased, next }))
}

/// The numbers of the members among contacts `first` to `last`, in order.
fn members_in_range(members: &mut CachedStatement<'_>, segment: i64, first: i64, last: i64) -> Result<Vec<i64>, Fault> {
    let mut rows = members.query([segment, first, last])?;
    let mut held = Vec::new();
    while let Some(row) = rows.next()? {
        held.push(row.get(0)?);
    }
    Ok(held)
}

/// Writes some moves of a difference: memberships, notes for automations that listen, and the count of members. Answers
/// how many contacts joined and how many left; none if the segment was removed meanwhile.
pub(super) fn write(
    connection: &Connection,
    listeners: &mut Listeners,
    difference: &Difference,
    moves: &[(i64, bool)],
    notes: MoveNotes,
) -> Result<(u64, u64), Fault> {
    if !segment_exists(connection, difference.segment)? {
        return Ok((0, 0));
    }
    // Checking that each contact still exists costs more than adding it, so it is done only if one was erased since the
    // difference was found.
    let (_, erased) = population(connection, difference.workspace)?;
    let mut writing = MembershipWriter::new(connection, erased != difference.erased)?;
    let (mut joined, mut left) = (0, 0);
    for (contact, member) in moves {
        if writing.write(difference.segment, *contact, *member)? {
            let is_silent = notes == MoveNotes::Silent;
            let happened = Happened::Segment { id: difference.id, member: *member, is_silent };
            listeners.hear(connection, difference.workspace, *contact, difference.now, happened)?;
            *(if *member { &mut joined } else { &mut left }) += 1;
        }
    }
    add_to_member_count(connection, difference.segment, joined - left)?;
    Ok((joined.unsigned_abs(), left.unsigned_abs()))
}

/// True if the segment with this number exists and was not removed.
pub(super) fn segment_exists(connection: &Connection, segment: i64) -> Result<bool, Fault> {
    Ok(connection.prepare_cached("SELECT 1 FROM segments WHERE n = ?1 AND NOT removed")?.exists([segment])?)
}

/// Adds to the count of members of a segment; `more` is negative if more left than joined.
pub(super) fn add_to_member_count(connection: &Connection, segment: i64, more: i64) -> Result<(), Fault> {
    if more != 0 {
        connection
            .prepare_cached("UPDATE segments SET members = members + ?2 WHERE n = ?1")?
            .execute([segment, more])?;
    }
    Ok(())
}

/// Prepared statements that add and remove single members. The caller has to count them ([`add_to_member_count`]).
pub(super) struct MembershipWriter<'c> {
    join: CachedStatement<'c>,
    leave: CachedStatement<'c>,
}

impl<'c> MembershipWriter<'c> {
    /// Prepares the statements. With `check_contact_exists`, a contact is added only if it still exists.
    pub(super) fn new(connection: &'c Connection, check_contact_exists: bool) -> Result<Self, Fault> {
        let join = if check_contact_exists {
            "INSERT OR IGNORE INTO segment_members (segment, contact) SELECT ?1, n FROM contacts WHERE n = ?2"
        } else {
            "INSERT OR IGNORE INTO segment_members (segment, contact) VALUES (?1, ?2)"
        };
        let leave = "DELETE FROM segment_members WHERE segment = ?1 AND contact = ?2";
        Ok(Self { join: connection.prepare_cached(join)?, leave: connection.prepare_cached(leave)? })
    }

    /// Adds the contact to the segment, or removes it if not `member`. Answers false if it was so already.
    pub(super) fn write(&mut self, segment: i64, contact: i64, member: bool) -> Result<bool, Fault> {
        let statement = if member { &mut self.join } else { &mut self.leave };
        Ok(statement.execute(params![segment, contact])? == 1)
    }
}

/// Removes an erased contact from all segments of its workspace, and its entry in the outbox.
pub(in super::super) fn remove_contact(
    connection: &Connection,
    workspace_number: i64,
    contact: i64,
) -> Result<(), Fault> {
    let segments: Vec<i64> =
        many(connection, "SELECT n FROM segments WHERE workspace_number = ?1", [workspace_number], |row| {
            Ok(row.get(0)?)
        })?;
    if !segments.is_empty() {
        let sql = "DELETE FROM segment_members WHERE segment = ?1 AND contact = ?2";
        let mut leave = connection.prepare_cached(sql)?;
        for segment in segments {
            if leave.execute([segment, contact])? == 1 {
                add_to_member_count(connection, segment, -1)?;
            }
        }
    }
    connection.prepare_cached("DELETE FROM changed_contacts WHERE contact = ?1")?.execute([contact])?;
    Ok(())
}
