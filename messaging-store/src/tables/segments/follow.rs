//! Following the changes of contacts.
//!
//! Notes are read together with whom the changed contacts match now, in one moment of the database. Then each
//! note is taken away together with what it leads to, if its mark is still the one that was read: a contact
//! that changed once more keeps its note and is looked at again.

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

/// What finds whom filters match, at one moment.
pub(crate) trait Matching: Answers {
    /// How long one look may take.
    const LOOK: Duration;
    /// How many contacts are looked at together.
    const PIECE: usize;

    /// Those of some contacts whom a query matches, by number and in their order; `None` when the workspace has none.
    async fn matching(
        &mut self,
        workspace: WorkspaceId,
        query: &MemberQuery,
        contacts: &[i64],
    ) -> Result<Option<Vec<i64>>, Fault>;
}

/// A note that was read, and what it leads to.
#[derive(Debug)]
pub(crate) struct FollowedNote {
    pub(crate) contact: i64,
    pub(crate) id: ContactId,
    pub(crate) mark: i64,
    /// By how many automations in a row it was caused.
    pub(crate) depth: u8,
    pub(crate) moves: Vec<Move>,
}

/// A contact becomes a member of a segment, or ceases to be one, as of some moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Move {
    pub(crate) segment: i64,
    pub(crate) id: SegmentId,
    pub(crate) member: bool,
    pub(crate) at: Timestamp,
}

impl FollowedNote {
    /// What is told of a move.
    pub(crate) fn moved(&self, by: &Move) -> Moved {
        Moved { segment: by.id, contact: self.id, member: by.member }
    }
}

/// Reads up to `limit` entries of the outbox and what they lead to. Also answers whether there are more.
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

/// Entries of the outbox, and what changed.
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

/// The number of a segment, and who of some contacts has to become or cease to be a member; `None` when there is no such
/// segment.
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

/// How many of the first may be written together: so many entries, or so many moves.
pub(crate) fn slice(followed: &[FollowedNote], outbox: usize, moves: usize) -> usize {
    let mut sum = 0;
    let fit = followed.iter().take(outbox).take_while(|one| {
        let fits = sum < moves;
        sum += one.moves.len();
        fits
    });
    fit.count()
}

/// A removed list whose members are not let go yet, if a dynamic segment reads lists. They are noted as they go.
pub(super) fn removed_list(workspace: WorkspaceId) -> Query<i64> {
    const SQL: Sql = sql!(concat!(
        "SELECT n FROM lists WHERE removed AND workspace_number = ",
        workspace_number!(),
        " AND (SELECT read_mask FROM workspace_numbers WHERE workspace = $1) & $2 <> 0 LIMIT 1"
    ));
    Query::new(SQL, params![key(workspace), ReadMask::LISTS.bits()], |row| get(row, 0)).point()
}
