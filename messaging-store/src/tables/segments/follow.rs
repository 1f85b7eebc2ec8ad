//! Following the changes of contacts.
//!
//! Notes are read together with the segments that the changed contacts match now, in one snapshot of the database. Then
//! each note is removed in the transaction that writes its moves, if its mark is still the one that was read: a contact
//! that changed once more keeps its note and is evaluated again.

use std::time::{Duration, Instant};

use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{ContactId, SegmentId, WorkspaceId};
use messaging_core::ports::store::segments::{MemberQuery, Moved};
use messaging_core::time::Timestamp;

use super::keys::{read_mask, workspace_number};
use crate::database::Query;
use crate::database::open_commit::Answers;
use crate::fault::Fault;
use crate::pages::sql_limit;
use crate::row::{get, id};
use crate::segment_moves::compare;
use crate::sql::{Sql, key, params, sql};
use crate::tables::numbers;

/// Evaluates filters in one snapshot.
pub(crate) trait Matching: Answers {
    /// Time limit of one look: other reads may wait meanwhile.
    const LOOK: Duration;
    /// Number of contacts evaluated together.
    const PIECE: usize;

    /// Returns the contacts among `contacts` that a query matches, by number and in their order; `None` if the
    /// workspace has none.
    async fn matching(
        &mut self,
        workspace: WorkspaceId,
        query: &MemberQuery,
        contacts: &[i64],
    ) -> Result<Option<Vec<i64>>, Fault>;
}

/// A note of a changed contact, and the moves that follow from it.
#[derive(Debug)]
pub(crate) struct FollowedNote {
    pub(crate) contact: i64,
    pub(crate) id: ContactId,
    pub(crate) mark: i64,
    /// Number of automations in a row that led to the change.
    pub(crate) depth: u8,
    pub(crate) moves: Vec<Move>,
}

/// The entry of a contact into a segment, or its exit, at some time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Move {
    pub(crate) segment: i64,
    pub(crate) id: SegmentId,
    pub(crate) member: bool,
    pub(crate) at: Timestamp,
}

impl FollowedNote {
    /// Notice of a move, for those who observe members.
    pub(crate) fn moved(&self, by: &Move) -> Moved {
        Moved { segment: by.id, contact: self.id, member: by.member }
    }
}

/// Reads up to `limit` entries of the outbox and the moves that follow from them. Also returns true if there are more
/// entries.
pub(crate) async fn look<M: Matching>(
    on: &mut M,
    workspace: WorkspaceId,
    segments: &[(SegmentId, MemberQuery)],
    limit: usize,
) -> Result<(Vec<FollowedNote>, bool), Fault> {
    let began = Instant::now();
    let Some(workspace_number) = on.one(numbers::workspace(workspace)).await? else { return Ok((Vec::new(), false)) };
    let outbox = on.many(outbox(workspace_number, limit.saturating_add(1))).await?;
    let more = outbox.len() > limit;
    let mut outbox = outbox.into_iter().take(limit).peekable();
    let mut followed: Vec<FollowedNote> = Vec::new();
    while outbox.peek().is_some() {
        if !followed.is_empty() && began.elapsed() >= M::LOOK {
            return Ok((followed, true));
        }
        let begin = followed.len();
        let (notes, masks): (Vec<FollowedNote>, Vec<ReadMask>) = outbox.by_ref().take(M::PIECE).unzip();
        followed.extend(notes);
        for (segment, query) in segments {
            let mask = query.filter.reads().mask;
            let changed = followed[begin..].iter().zip(&masks).filter(|(_, of_note)| of_note.intersects(mask));
            let contacts: Vec<i64> = changed.map(|(note, _)| note.contact).collect();
            if contacts.is_empty() {
                continue;
            }
            let Some((n, moves)) = moves(on, workspace, *segment, query, &contacts).await? else { continue };
            for (contact, member) in moves {
                // Both are in the order of the numbers.
                if let Ok(place) = followed[begin..].binary_search_by_key(&contact, |one| one.contact) {
                    followed[begin + place].moves.push(Move { segment: n, id: *segment, member, at: query.now });
                }
            }
        }
    }
    Ok((followed, more))
}

/// Reads entries of the outbox, each with the changed data as a mask.
fn outbox(workspace_number: i64, limit: usize) -> Query<(FollowedNote, ReadMask)> {
    const SQL: Sql = sql!(
        "SELECT n.contact, c.id, n.read_mask, n.mark, n.depth FROM changed_contacts n {CROSS} JOIN contacts c ON c.n = n.contact
         WHERE n.contact BETWEEN $1 AND $2 ORDER BY n.contact LIMIT $3"
    );
    let (first, last) = numbers::contacts_of(workspace_number).into_inner();
    Query::new(SQL, params![first, last, sql_limit(limit)], |row| {
        let (contact, mark, depth) = (get(row, 0)?, get(row, 3)?, get(row, 4)?);
        Ok((FollowedNote { contact, id: id(row, 1)?, mark, depth, moves: Vec::new() }, read_mask(row, 2)?))
    })
}

/// Returns the number of a segment and the contacts that have to become or cease to be members; `None` if there is no
/// such segment.
async fn moves(
    on: &mut impl Matching,
    workspace: WorkspaceId,
    segment: SegmentId,
    query: &MemberQuery,
    contacts: &[i64],
) -> Result<Option<(i64, Vec<(i64, bool)>)>, Fault> {
    const HELD: Sql = sql!(
        sqlite: "SELECT m.contact FROM json_each($2) j CROSS JOIN segment_members m
            WHERE m.segment = $1 AND m.contact = j.value ORDER BY m.contact",
        postgres: "SELECT contact FROM segment_members WHERE segment = $1 AND contact = ANY ($2) ORDER BY contact",
    );
    let Some(n) = on.one(numbers::segment(workspace, segment)).await? else { return Ok(None) };
    let Some(wanted) = on.matching(workspace, query, contacts).await? else { return Ok(None) };
    let held = on.many(Query::new(HELD, params![n, contacts.to_vec()], |row| get(row, 0))).await?;
    let mut moves = Vec::new();
    compare(&wanted, &held, &mut moves);
    Ok(Some((n, moves)))
}

/// Returns how many of the first notes may be written together: at most `outbox` notes, with about `moves` moves.
pub(crate) fn slice(followed: &[FollowedNote], outbox: usize, moves: usize) -> usize {
    let mut sum = 0;
    let fit = followed.iter().take(outbox).take_while(|one| {
        let fits = sum < moves;
        sum += one.moves.len();
        fits
    });
    fit.count()
}

/// Finds a removed list that still has members, if a dynamic segment reads lists. The members are noted as they are
/// removed.
pub(super) fn removed_list(workspace: WorkspaceId) -> Query<i64> {
    const SQL: Sql = sql!(concat!(
        "SELECT n FROM lists WHERE removed AND workspace_number = ",
        workspace_number!(),
        " AND (SELECT read_mask FROM workspace_numbers WHERE workspace = $1) & $2 <> 0 LIMIT 1"
    ));
    Query::new(SQL, params![key(workspace), ReadMask::LISTS.bits()], |row| get(row, 0)).point()
}
