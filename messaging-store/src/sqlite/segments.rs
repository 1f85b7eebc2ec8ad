//! Segments and their members.
//!
//! [`compile`] translates filters to SQL, [`probe`] tests values for it, [`evaluate`] runs it; [`members`] calculates a
//! whole segment, [`outbox`] and [`follow`] keep it up to date, [`preview`] counts without storing. All of that runs on
//! one thread of its own, in looks of some milliseconds, so that it never uses more than one processor and no other
//! read waits for it.

mod compile;
mod evaluate;
mod follow;
mod members;
mod outbox;
mod preview;
mod probe;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use messaging_core::changes::{Expect, JobHandle};
use messaging_core::domain::segment::Segment;
use messaging_core::domain::segment::filter::Filter;
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{SegmentId, WorkspaceId};
use messaging_core::ports::store::segments::{MemberQuery, MoveNotes, Moved};
use messaging_core::ports::store::{CommitError, StoreCursor, StoreError};
use rusqlite::{Connection, params};

use self::preview::Count;
use super::Sqlite;
use super::change_subscribers::ChangeSubscribers;
use super::fault::Fault;
use super::lists;
use super::numbers::workspace_number;
use super::query::{many, one};
use super::row::sql_limit;
use crate::database::at_once;
use crate::database::open_commit::Answers as _;
use crate::tables::automations::run_subscriptions;
use crate::tables::segments::follow::FollowedNote;
use crate::tables::segments::tally::MatchCount;
use crate::tables::segments::trace::Traced;
use crate::tables::segments::{Difference, SegmentRows, put_row, remove_row};

pub(super) use compile::{compile, compile_asks};
pub(super) use evaluate::{AskEvaluation, Evaluation};
pub(super) use follow::tell_of_address;
pub(super) use members::remove_contact;
pub(super) use outbox::{ReadMasks, WorkspaceReadMask, note};

/// Number of rows that a sweep removes in one transaction.
const SLICE: usize = 500;

pub(super) fn put(
    connection: &Connection,
    read_masks: &mut ReadMasks,
    segment: &Segment,
    expect: Expect,
) -> Result<(), Fault> {
    put_row(&mut &*connection, segment, expect)?;
    renew_read_mask(connection, read_masks, segment.workspace_id)
}

pub(super) fn delete(
    connection: &Connection,
    read_masks: &mut ReadMasks,
    workspace: WorkspaceId,
    id: SegmentId,
) -> Result<(), Fault> {
    remove_row(&mut &*connection, workspace, id)?;
    renew_read_mask(connection, read_masks, workspace)
}

/// Stores the read mask of all dynamic segments of a workspace with its number.
fn renew_read_mask(
    mut connection: &Connection,
    read_masks: &mut ReadMasks,
    workspace: WorkspaceId,
) -> Result<(), Fault> {
    let Some(workspace_number) = workspace_number(connection, workspace)? else { return Ok(()) };
    let sql = "SELECT read_mask FROM segments WHERE workspace_number = ?1 AND NOT removed";
    let read = many(connection, sql, [workspace_number], |row| Ok(ReadMask::from_bits(row.get(0)?)))?;
    let read_mask = read.into_iter().fold(ReadMask::NONE, |all, one| all | one);
    connection
        .prepare_cached("UPDATE workspace_numbers SET read_mask = ?2 WHERE number = ?1 AND read_mask <> ?2")?
        .execute(params![workspace_number, read_mask.bits()])?;
    let subscriptions = at_once(connection.many(run_subscriptions(workspace)))?;
    let hears = subscriptions.iter().any(|subscription| subscription.everything);
    if !read_mask.intersects(ReadMask::SUPPRESSIONS) && !hears {
        // These rows are read by nobody any more, and personal data shall not stay.
        connection
            .prepare_cached("DELETE FROM changed_addresses WHERE workspace_number = ?1")?
            .execute([workspace_number])?;
    }
    read_masks.forget(workspace);
    Ok(())
}

#[async_trait]
impl SegmentRows for Sqlite {
    async fn require_claim(&self, job: &JobHandle) -> Result<(), CommitError> {
        self.writer.hold(vec![job.clone()]).await
    }

    async fn count_matching(
        &self,
        workspace: WorkspaceId,
        query: &MemberQuery,
        conditions: &[Filter],
        sample: usize,
    ) -> Result<MatchCount, StoreError> {
        let began = Instant::now();
        let mut count = Count::new(workspace, query, conditions, sample);
        loop {
            let (gone_on, is_all) = self
                .scans
                .read(move |connection| {
                    let is_all = count.go_on(connection)?;
                    Ok((count, is_all))
                })
                .await?;
            count = gone_on;
            if is_all || count.is_over(began) {
                return self.readers.read(move |connection| count.counted(connection)).await;
            }
        }
    }

    async fn difference(
        &self,
        workspace: WorkspaceId,
        id: SegmentId,
        query: &MemberQuery,
        from: Option<StoreCursor>,
    ) -> Result<Option<Difference>, StoreError> {
        let query = query.clone();
        self.scans.read(move |connection| members::difference(connection, workspace, id, &query, from)).await
    }

    async fn write_moves(
        &self,
        difference: &Arc<Difference>,
        moves: Range<usize>,
        notes: MoveNotes,
        job: &JobHandle,
    ) -> Result<(u64, u64), CommitError> {
        let difference = Arc::clone(difference);
        let write = move |connection: &Connection, subscribers: &mut ChangeSubscribers| {
            members::write(connection, &mut subscribers.listeners, &difference, &difference.moves[moves], notes)
        };
        self.writer.undurably_for(job, write).await
    }

    async fn trace(&self, workspace: WorkspaceId) -> Result<Option<Traced>, StoreError> {
        self.scans.read(move |connection| follow::trace(connection, workspace)).await
    }

    async fn write_traced(&self, workspace: WorkspaceId, traced: Traced, job: &JobHandle) -> Result<(), CommitError> {
        let write = move |connection: &Connection, subscribers: &mut ChangeSubscribers| {
            follow::write_traced(connection, subscribers, workspace, &traced)
        };
        self.writer.undurably_for(job, write).await
    }

    async fn forget_list(&self, _: WorkspaceId, list: i64, job: &JobHandle) -> Result<u64, CommitError> {
        let forget = move |connection: &Connection, _: &mut ChangeSubscribers| lists::forget(connection, list, SLICE);
        self.writer.undurably_for(job, forget).await
    }

    async fn look(
        &self,
        workspace: WorkspaceId,
        segments: &[(SegmentId, MemberQuery)],
        limit: usize,
    ) -> Result<(Vec<FollowedNote>, bool), StoreError> {
        let segments = segments.to_vec();
        self.scans.read(move |connection| follow::look(connection, workspace, &segments, limit)).await
    }

    async fn write_followed(
        &self,
        workspace: WorkspaceId,
        followed: Vec<FollowedNote>,
        job: &JobHandle,
    ) -> Result<Vec<Moved>, CommitError> {
        let write = move |connection: &Connection, subscribers: &mut ChangeSubscribers| {
            follow::write(connection, subscribers, workspace, &followed)
        };
        self.writer.undurably_for(job, write).await
    }

    async fn forget_members_of_segments(&self, limit: usize) -> Result<u64, StoreError> {
        let removed = self
            .readers
            .read(|connection| one(connection, "SELECT n FROM segments WHERE removed", [], |row| Ok(row.get(0)?)))
            .await?;
        let Some(n): Option<i64> = removed else { return Ok(0) };
        self.forget_in_slices(limit, SLICE, move |connection, slice| forget(connection, n, slice)).await
    }
}

/// Removes members of a removed segment, and if there are none, the segment; returns the number of rows removed.
fn forget(connection: &Connection, segment: i64, limit: usize) -> Result<u64, Fault> {
    let members: Vec<i64> = many(
        connection,
        "SELECT contact FROM segment_members WHERE segment = ?1 LIMIT ?2",
        params![segment, sql_limit(limit)],
        |row| Ok(row.get(0)?),
    )?;
    if members.is_empty() {
        let sql = "DELETE FROM segments WHERE n = ?1 AND removed";
        return Ok(connection.prepare_cached(sql)?.execute([segment])? as u64);
    }
    let mut delete = connection.prepare_cached("DELETE FROM segment_members WHERE segment = ?1 AND contact = ?2")?;
    for contact in &members {
        delete.execute([segment, *contact])?;
    }
    Ok(members.len() as u64)
}
