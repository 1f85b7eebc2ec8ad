//! Segments and their members.
//!
//! What finds members is beside this: [`evaluate`] finds whom filters match, with [`values`], [`tables`] and [`tree`];
//! [`members`] calculates a segment as a whole, the outbox and [`follow`] keep it, [`preview`] counts without keeping,
//! [`asks`] answers automations. Looks at contacts are snapshots of some tenths of a second at most.

mod asks;
mod evaluate;
mod follow;
mod members;
mod preview;
mod tables;
mod tree;
mod values;

use async_trait::async_trait;
use messaging_core::changes::{Expect, JobHandle};
use messaging_core::domain::contact::{Contact, ContactFilter};
use messaging_core::domain::segment::filter::Filter;
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::domain::segment::{Segment, SegmentKind, SegmentStatus, StoredFilter};
use messaging_core::ids::{Id as _, SegmentId, WorkspaceId};
use messaging_core::ports::store::segments::{Calculated, MemberQuery, MoveNotes, Moved, Preview};
use messaging_core::ports::store::{
    CommitError, Contacts as _, PageRequest, Segments, Slice, StoreCursor, StoreError, Stored,
};
use messaging_core::time::Timestamp;
use tokio_postgres::Row;

use super::fault::Fault;
use super::numbers::make_workspace_number;
use super::query::{one, params};
use super::row::{
    below_id, count, get, id, maybe_time, number as stored_number, numbered, one_more, revision_param, slice, small,
    time, uuid,
};
use super::sweep::end;
use super::transaction::Transaction;
use super::{PostgresStore, jobs, listeners, lists, outbox};

pub(super) use self::asks::answers;
pub(super) use self::evaluate::{Evaluation, PIECE as EVALUATED};
pub(super) use self::follow::tell_of_address;
pub(super) use self::members::let_go;
pub(super) use self::preview::{Parts, contact_count};
pub(super) use self::values::attribute_addresses;

/// How many rows a sweep removes in one transaction.
const SLICE: usize = 2000;
/// How many such transactions one call makes for the members of a removed list.
const LIST_SLICES: usize = 10;
/// How many entries of the outbox one transaction takes away.
const NOTES: usize = 500;
/// How many moves one transaction of the outbox makes; a contact's own are not divided.
const NOTED_MOVES: usize = 2000;
/// How often a transaction that met another one is tried again.
const TRIES: usize = 4;

/// The columns that [`segment`] reads, in its order.
macro_rules! segment_columns {
    () => {
        "id, revision, kind, status, \
         (SELECT coalesce(sum(members), 0)::bigint FROM segment_sizes WHERE segment_sizes.segment = segments.n), \
         calculation, calculated_at, created_at, updated_at, name, filter"
    };
}

pub(super) async fn put(transaction: &mut Transaction, segment: &Segment, expect: Expect) -> Result<(), Fault> {
    let mask = match segment.kind {
        SegmentKind::Dynamic => segment.filter.tree().reads().mask,
        SegmentKind::Static => ReadMask::NONE,
    };
    let workspace = segment.workspace_id;
    let before = match expect {
        Expect::Absent => ReadMask::NONE,
        Expect::Revision(_) => stored_mask(transaction, workspace, segment.id).await?.ok_or(Fault::Conflict)?,
    };
    let workspace_number = match expect {
        Expect::Absent => Some(make_workspace_number(transaction, workspace).await?),
        Expect::Revision(_) => None,
    };
    if mask != before {
        outbox::lock_alone(transaction, workspace);
    }
    let mut row = params![
        uuid(segment.id),
        stored_number(&SegmentKind::ALL, &segment.kind),
        stored_number(&SegmentStatus::ALL, &segment.status),
        outbox::mask_param(mask),
        i64::from(segment.calculation),
        segment.calculated_at.map(Timestamp::as_millis),
        segment.updated_at.as_millis(),
        segment.name.clone(),
        segment.filter.json().to_owned(),
    ];
    match expect {
        Expect::Absent => {
            row.extend(params![workspace_number, segment.created_at.as_millis()]);
            transaction.run(
                "INSERT INTO segments (workspace_number, id, revision, removed, kind, status, read_mask, calculation,
                     calculated_at, created_at, updated_at, name, filter)
                 VALUES ($10, $1, 1, false, $2, $3, $4, $5, $6, $11, $7, $8, $9)",
                row,
            );
        }
        Expect::Revision(revision) => {
            row.extend(params![uuid(workspace), revision_param(revision)]);
            transaction.run_one(
                "UPDATE segments SET revision = revision + 1, kind = $2, status = $3, read_mask = $4, calculation = $5,
                     calculated_at = $6, updated_at = $7, name = $8, filter = $9
                 WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $10) AND id = $1
                     AND revision = $11 AND NOT removed",
                row,
            );
        }
    }
    if mask == before { Ok(()) } else { renew_read_mask(transaction, workspace).await }
}

/// What a segment reads; `None` when it is not there.
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
    const SQL: &str = "UPDATE segments SET removed = true, read_mask = 0, name = '', filter = ''
        WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1) AND id = $2";
    let Some(before) = stored_mask(transaction, workspace, id).await? else { return Ok(()) };
    if before.is_empty() {
        transaction.run(SQL, params![uuid(workspace), uuid(id)]);
        return Ok(());
    }
    outbox::lock_alone(transaction, workspace);
    transaction.run(SQL, params![uuid(workspace), uuid(id)]);
    renew_read_mask(transaction, workspace).await
}

/// Stores with the number of the workspace what its dynamic segments read.
async fn renew_read_mask(transaction: &mut Transaction, workspace: WorkspaceId) -> Result<(), Fault> {
    const RENEW: &str = "UPDATE workspace_numbers w SET read_mask = s.read_mask
        FROM (SELECT coalesce(bit_or(read_mask), 0) AS read_mask FROM segments
              WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1) AND NOT removed) s
        WHERE w.workspace = $1 AND w.read_mask <> s.read_mask";
    // Nobody will look for them; they are about people and shall not stay.
    const FORGET: &str = "DELETE FROM changed_addresses WHERE workspace_number =
        (SELECT number FROM workspace_numbers WHERE workspace = $1 AND read_mask & $2 = 0)";
    transaction.run(RENEW, params![uuid(workspace)]);
    if !listeners::hears_changes(transaction, workspace).await? {
        transaction.run(FORGET, params![uuid(workspace), outbox::mask_param(ReadMask::SUPPRESSIONS)]);
    }
    Ok(())
}

/// A segment from the columns of `segment_columns`.
fn segment(workspace: WorkspaceId, row: &Row) -> Result<Stored<Segment>, Fault> {
    let calculated_at = maybe_time(row, 6)?;
    let record = Segment {
        id: id(row, 0)?,
        workspace_id: workspace,
        name: get(row, 9)?,
        kind: numbered(&SegmentKind::ALL, get(row, 2)?)?,
        filter: StoredFilter::read(get(row, 10)?).map_err(|_| Fault::Malformed("a filter cannot be read"))?,
        status: numbered(&SegmentStatus::ALL, get(row, 3)?)?,
        size: if calculated_at.is_some() { Some(count(row, 4)?) } else { None },
        calculated_at,
        created_at: time(row, 7)?,
        updated_at: time(row, 8)?,
        calculation: small(row, 5)?,
    };
    Ok(Stored { record, revision: small(row, 1)? })
}

/// Lets members of removed segments go, and the segments that have none left; answers how many rows went.
async fn forget(transaction: &mut Transaction, limit: u64) -> Result<u64, Fault> {
    const REMOVED: &str = "SELECT n FROM segments WHERE removed ORDER BY n LIMIT 1 FOR UPDATE SKIP LOCKED";
    const MEMBERS: &str = "DELETE FROM segment_members WHERE ctid = ANY (ARRAY (
        SELECT ctid FROM segment_members WHERE segment = $1 ORDER BY contact LIMIT $2))";
    transaction.run("SET LOCAL synchronous_commit = off", params![]);
    let Some(n) = one(transaction, REMOVED, params![], |row| get::<i64>(row, 0)).await? else { return Ok(0) };
    let room = i64::try_from(limit).unwrap_or(i64::MAX);
    let gone = transaction.execute(MEMBERS, params![n, room]).await?;
    if gone < limit {
        // Whoever adds members keeps the segment locked until they are there: these were all.
        transaction.run("DELETE FROM segment_sizes WHERE segment = $1", params![n]);
        return Ok(gone + transaction.execute("DELETE FROM segments WHERE n = $1", params![n]).await?);
    }
    Ok(gone)
}

impl PostgresStore {
    /// Begins a transaction that is kept only if a job's claim is held until it ends. What it writes may be lost in a crash:
    /// whoever runs the job anew finds it again.
    async fn begin_for(&self, job: &JobHandle) -> Result<Transaction, Fault> {
        let mut transaction = self.writes.begin().await?;
        transaction.run("SET LOCAL synchronous_commit = off", params![]);
        require_lease(&mut transaction, job)?;
        Ok(transaction)
    }
}

/// Fails the transaction unless a job's claim is held until it ends.
fn require_lease(transaction: &mut Transaction, job: &JobHandle) -> Result<(), Fault> {
    jobs::require_lease(transaction, job)
}

/// Writes in a transaction under the claim of a job; again if it met another one.
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
impl Segments for PostgresStore {
    async fn segment(&self, workspace: WorkspaceId, id: SegmentId) -> Result<Option<Stored<Segment>>, StoreError> {
        const SQL: &str = concat!(
            "SELECT ",
            segment_columns!(),
            " FROM segments
             WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1) AND id = $2 AND NOT removed"
        );
        self.reads.one(SQL, params![uuid(workspace), uuid(id)], |row| segment(workspace, row)).await
    }

    async fn segments(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<Segment>, StoreError> {
        const SQL: &str = concat!(
            "SELECT ",
            segment_columns!(),
            " FROM segments
             WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1) AND id < $2 AND NOT removed
             ORDER BY id DESC LIMIT $3"
        );
        let bounds = params![uuid(workspace), below_id(&page), one_more(&page)];
        let items = self.reads.many(SQL, bounds, |row| Ok(segment(workspace, row)?.record)).await?;
        Ok(slice(items, page.limit, |segment: &Segment| segment.id.to_bytes()))
    }

    async fn segment_read_mask(&self, workspace: WorkspaceId) -> Result<ReadMask, StoreError> {
        const SQL: &str = "SELECT read_mask FROM workspace_numbers WHERE workspace = $1";
        let found =
            self.reads.one_shared(SQL, params![uuid(workspace)], |row| Ok(outbox::mask_of(get(row, 0)?))).await?;
        let Some(read_mask) = found else { return Ok(ReadMask::NONE) };
        let hears = listeners::runs_hear_changes(&mut self.reads.clone(), workspace).await?;
        Ok(if hears { read_mask | ReadMask::TRACED_SUPPRESSIONS } else { read_mask })
    }

    async fn segment_contacts(
        &self,
        workspace: WorkspaceId,
        id: SegmentId,
        page: PageRequest,
    ) -> Result<Slice<Contact>, StoreError> {
        let filter = ContactFilter { segment_id: Some(id), ..ContactFilter::default() };
        self.contacts(workspace, &filter, page).await
    }

    async fn preview(
        &self,
        workspace: WorkspaceId,
        query: &MemberQuery,
        conditions: &[Filter],
        sample: usize,
    ) -> Result<Preview, StoreError> {
        let mut counted = preview::counted(&self.reads, workspace, query, conditions, sample).await?;
        let mut sample = Vec::new();
        for id in counted.sample {
            // One that is gone meanwhile is left out.
            sample.extend(self.contact(workspace, id).await?.map(|stored| stored.record));
        }
        let size = counted.sizes.remove(0);
        Ok(Preview { size, sizes: counted.sizes, exact: counted.exact, sample })
    }

    async fn calculate_members(
        &self,
        workspace: WorkspaceId,
        id: SegmentId,
        query: &MemberQuery,
        from: Option<StoreCursor>,
        moves: MoveNotes,
        job: &JobHandle,
    ) -> Result<Calculated, CommitError> {
        let found = members::difference(&self.reads, workspace, id, query, from).await?;
        self.hold(std::iter::once(job)).await?;
        let Some(difference) = found else { return Ok(Calculated { next: None, joined: 0, left: 0 }) };
        let mut calculated = Calculated { next: difference.next, joined: 0, left: 0 };
        for slice in difference.moves.chunks(members::SLICE) {
            let (joined, left) =
                write_for!(self, job, transaction => members::write(&mut transaction, &difference, slice, moves))?;
            calculated.joined += joined;
            calculated.left += left;
        }
        Ok(calculated)
    }

    async fn follow_changes(
        &self,
        workspace: WorkspaceId,
        segments: &[(SegmentId, MemberQuery)],
        limit: usize,
        job: &JobHandle,
    ) -> Result<(Vec<Moved>, bool), CommitError> {
        self.hold(std::iter::once(job)).await?;
        // Who is concerned by these is found out here; it leads to entries of the outbox like everybody else's.
        let traced = follow::trace(&self.reads, workspace).await?;
        let removed = follow::removed_list(&self.reads, workspace).await?;
        let is_more = traced.is_some() || removed.is_some();
        if let Some(traced) = traced {
            write_for!(self, job, transaction => follow::write_traced(&mut transaction, workspace, &traced))?;
        }
        if let Some(list) = removed {
            for _ in 0..LIST_SLICES {
                let forget = write_for!(self, job, transaction =>
                    lists::forget(&mut transaction, workspace, list, SLICE));
                let gone = forget?;
                if gone == 0 {
                    break;
                }
            }
        }
        let (followed, more) = follow::look(&self.reads, workspace, segments, limit).await?;
        let mut rest = followed.as_slice();
        let mut moved = Vec::new();
        while !rest.is_empty() {
            let (slice, others) = rest.split_at(follow::slice(rest, NOTES, NOTED_MOVES));
            rest = others;
            moved.extend(write_for!(self, job, transaction => follow::write(&mut transaction, workspace, slice))?);
        }
        Ok((moved, more || is_more))
    }

    async fn forget_segment_members(&self, limit: usize) -> Result<u64, StoreError> {
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
