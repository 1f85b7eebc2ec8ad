//! Segments and their members.
//!
//! [`evaluate`] finds the contacts that filters match, with [`values`], [`tables`] and [`tree`]; [`members`] calculates
//! a whole segment, the outbox and [`follow`] keep it up to date, [`preview`] counts without storing, [`asks`] answers
//! questions of automations. Contacts are read in snapshots of some tenths of a second at most.

mod asks;
mod evaluate;
mod follow;
mod members;
mod preview;
mod tables;
mod tree;
mod values;

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use messaging_core::changes::{Expect, JobHandle};
use messaging_core::domain::segment::Segment;
use messaging_core::domain::segment::filter::Filter;
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{SegmentId, WorkspaceId};
use messaging_core::ports::store::segments::{MemberQuery, MoveNotes, Moved};
use messaging_core::ports::store::{CommitError, StoreCursor, StoreError};

use super::fault::Fault;
use super::query::{one, params};
use super::row::{get, uuid};
use super::sweep::end;
use super::transaction::Transaction;
use super::{Postgres, jobs, listeners, lists, outbox};
use crate::tables::segments::follow::FollowedNote;
use crate::tables::segments::tally::MatchCount;
use crate::tables::segments::trace::Traced;
use crate::tables::segments::{Difference, SegmentRows, mask, put_row, remove_row};

pub(super) use self::asks::answers;
pub(super) use self::evaluate::{Evaluation, PIECE as EVALUATED};
pub(super) use self::follow::tell_of_address;
pub(super) use self::members::remove_contact;
pub(super) use self::preview::{Parts, contact_count};

/// Number of rows that a sweep removes in one transaction.
const SLICE: usize = 2000;
/// Number of attempts of a transaction that collides with others.
const TRIES: usize = 4;

pub(super) async fn put(transaction: &mut Transaction, segment: &Segment, expect: Expect) -> Result<(), Fault> {
    let (workspace, mask) = (segment.workspace_id, mask(segment));
    let before = match expect {
        Expect::Absent => ReadMask::NONE,
        Expect::Revision(_) => stored_mask(transaction, workspace, segment.id).await?.ok_or(Fault::Conflict)?,
    };
    if mask == before {
        return put_row(transaction, segment, expect);
    }
    outbox::lock_alone(transaction, workspace);
    put_row(transaction, segment, expect)?;
    renew_read_mask(transaction, workspace).await
}

/// Read mask of a segment; `None` if it does not exist.
async fn stored_mask(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    id: SegmentId,
) -> Result<Option<ReadMask>, Fault> {
    const SQL: &str = "SELECT read_mask FROM segments
        WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1) AND id = $2 AND NOT removed";
    one(transaction, SQL, params![uuid(workspace), uuid(id)], |row| Ok(outbox::mask_of(get(row, 0)?))).await
}

pub(super) async fn delete(transaction: &mut Transaction, workspace: WorkspaceId, id: SegmentId) -> Result<(), Fault> {
    let Some(before) = stored_mask(transaction, workspace, id).await? else { return Ok(()) };
    if before.is_empty() {
        return remove_row(transaction, workspace, id);
    }
    outbox::lock_alone(transaction, workspace);
    remove_row(transaction, workspace, id)?;
    renew_read_mask(transaction, workspace).await
}

/// Stores the read mask of all dynamic segments of a workspace with its number.
async fn renew_read_mask(transaction: &mut Transaction, workspace: WorkspaceId) -> Result<(), Fault> {
    const RENEW: &str = "UPDATE workspace_numbers w SET read_mask = s.read_mask
        FROM (SELECT coalesce(bit_or(read_mask), 0) AS read_mask FROM segments
              WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1) AND NOT removed) s
        WHERE w.workspace = $1 AND w.read_mask <> s.read_mask";
    // These rows are read by nobody any more, and personal data shall not stay.
    const FORGET: &str = "DELETE FROM changed_addresses WHERE workspace_number =
        (SELECT number FROM workspace_numbers WHERE workspace = $1 AND read_mask & $2 = 0)";
    transaction.run(RENEW, params![uuid(workspace)]);
    if !listeners::hears_changes(transaction, workspace).await? {
        transaction.run(FORGET, params![uuid(workspace), outbox::mask_param(ReadMask::SUPPRESSIONS)]);
    }
    Ok(())
}

/// Removes members of removed segments, and the segments that have none left; returns the number of rows removed.
async fn forget(transaction: &mut Transaction, limit: u64) -> Result<u64, Fault> {
    const REMOVED: &str = "SELECT n FROM segments WHERE removed ORDER BY n LIMIT 1 FOR UPDATE SKIP LOCKED";
    const MEMBERS: &str = "DELETE FROM segment_members WHERE ctid = ANY (ARRAY (
        SELECT ctid FROM segment_members WHERE segment = $1 ORDER BY contact LIMIT $2))";
    transaction.run("SET LOCAL synchronous_commit = off", params![]);
    let Some(n) = one(transaction, REMOVED, params![], |row| get::<i64>(row, 0)).await? else { return Ok(0) };
    let room = i64::try_from(limit).unwrap_or(i64::MAX);
    let gone = transaction.execute(MEMBERS, params![n, room]).await?;
    if gone < limit {
        // A transaction that adds members keeps the segment locked until they are committed: these were all.
        transaction.run("DELETE FROM segment_sizes WHERE segment = $1", params![n]);
        return Ok(gone + transaction.execute("DELETE FROM segments WHERE n = $1", params![n]).await?);
    }
    Ok(gone)
}

impl Postgres {
    /// Begins a transaction that is kept only if the claim of a job is held until it ends. A crash may lose its writes:
    /// the next run of the job makes them again.
    async fn begin_for(&self, job: &JobHandle) -> Result<Transaction, Fault> {
        let mut transaction = self.writes.begin().await?;
        transaction.run("SET LOCAL synchronous_commit = off", params![]);
        jobs::require_lease(&mut transaction, job)?;
        Ok(transaction)
    }
}

/// Writes in a transaction under the claim of a job; repeats it if it collided with another one.
macro_rules! write_for {
    ($store:expr, $job:expr, $transaction:ident => $write:expr) => {{
        let mut tries = 0;
        loop {
            tries += 1;
            let mut $transaction = $store.begin_for($job).await?;
            let outcome = $write.await;
            match end($transaction, outcome).await {
                Err(fault) if fault.is_passing() && tries < TRIES => {}
                outcome => break outcome,
            }
        }
    }};
}

#[async_trait]
impl SegmentRows for Postgres {
    async fn require_claim(&self, job: &JobHandle) -> Result<(), CommitError> {
        self.hold(std::iter::once(job)).await
    }

    async fn count_matching(
        &self,
        workspace: WorkspaceId,
        query: &MemberQuery,
        conditions: &[Filter],
        sample: usize,
    ) -> Result<MatchCount, StoreError> {
        Ok(preview::counted(&self.reads, workspace, query, conditions, sample).await?)
    }

    async fn difference(
        &self,
        workspace: WorkspaceId,
        id: SegmentId,
        query: &MemberQuery,
        from: Option<StoreCursor>,
    ) -> Result<Option<Difference>, StoreError> {
        Ok(members::difference(&self.reads, workspace, id, query, from).await?)
    }

    async fn write_moves(
        &self,
        difference: &Arc<Difference>,
        moves: Range<usize>,
        notes: MoveNotes,
        job: &JobHandle,
    ) -> Result<(u64, u64), CommitError> {
        let moves = &difference.moves[moves];
        Ok(write_for!(self, job, transaction => members::write(&mut transaction, difference, moves, notes))?)
    }

    async fn trace(&self, workspace: WorkspaceId) -> Result<Option<Traced>, StoreError> {
        Ok(follow::trace(&self.reads, workspace).await?)
    }

    async fn write_traced(&self, workspace: WorkspaceId, traced: Traced, job: &JobHandle) -> Result<(), CommitError> {
        Ok(write_for!(self, job, transaction => follow::write_traced(&mut transaction, workspace, &traced))?)
    }

    async fn forget_list(&self, workspace: WorkspaceId, list: i64, job: &JobHandle) -> Result<u64, CommitError> {
        let forget = write_for!(self, job, transaction => lists::forget(&mut transaction, workspace, list, SLICE));
        Ok(forget? as u64)
    }

    async fn look(
        &self,
        workspace: WorkspaceId,
        segments: &[(SegmentId, MemberQuery)],
        limit: usize,
    ) -> Result<(Vec<FollowedNote>, bool), StoreError> {
        Ok(follow::look(&self.reads, workspace, segments, limit).await?)
    }

    async fn write_followed(
        &self,
        workspace: WorkspaceId,
        followed: Vec<FollowedNote>,
        job: &JobHandle,
    ) -> Result<Vec<Moved>, CommitError> {
        Ok(write_for!(self, job, transaction => follow::write(&mut transaction, workspace, &followed))?)
    }

    async fn forget_members_of_segments(&self, limit: usize) -> Result<u64, StoreError> {
        let mut forgotten = 0;
        while forgotten < limit as u64 {
            let room = (limit as u64 - forgotten).min(SLICE as u64);
            let mut transaction = self.writes.begin().await?;
            let outcome = forget(&mut transaction, room).await;
            match end(transaction, outcome).await? {
                0 => break,
                gone => forgotten += gone,
            }
        }
        Ok(forgotten)
    }
}
