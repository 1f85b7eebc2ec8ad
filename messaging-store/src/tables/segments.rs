//! Segments and their members.
//!
//! [`follow`] updates members after changes of contacts, [`trace`] finds the contacts of an address that came onto
//! the suppression list or off it, and [`tally`] holds the counts of a preview. Each database evaluates filters in its own
//! way ([`SegmentRows`]).

pub(crate) mod follow;
pub(crate) mod keys;
pub(crate) mod tally;
pub(crate) mod trace;

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use messaging_core::changes::{Expect, JobHandle};
use messaging_core::domain::audience::contact::{Contact, ContactFilter};
use messaging_core::domain::segment::filter::Filter;
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::domain::segment::{Segment, SegmentKind, SegmentStatus, StoredFilter};
use messaging_core::ids::{Id as _, SegmentId, WorkspaceId};
use messaging_core::ports::store::segments::{CalculationSlice, MemberQuery, MoveNotes, Moved, Preview};
use messaging_core::ports::store::{
    CommitError, Contacts, PageRequest, Segments, Slice, StoreCursor, StoreError, Stored,
};
use messaging_core::time::Timestamp;

use self::follow::FollowedNote;
use self::keys::{read_mask, workspace_number};
use self::tally::MatchCount;
use self::trace::Traced;
use super::{automations, lists};
use crate::database::{Database, Query, SqlStore, Statements};
use crate::fault::Fault;
use crate::pages::{below, number as stored_number, one_more};
use crate::row::{Row, count, get, id, maybe_time, numbered, time};
use crate::sql::{Sql, key, params, sql};

/// Most transactions that one call makes for the members of a removed list.
const LIST_SLICES: usize = 10;
/// Most entries of the outbox that one transaction removes.
const NOTES: usize = 500;
/// Moves after which the next transaction begins. The moves of one contact in the outbox are never divided.
const MOVES: usize = 2000;

/// Difference between a segment's members and the contacts that its filter matches, for a range of contacts.
pub(crate) struct Difference {
    pub(crate) workspace: WorkspaceId,
    pub(crate) id: SegmentId,
    /// Time at which the filter was evaluated.
    pub(crate) now: Timestamp,
    /// Number of the segment in its table.
    pub(crate) segment: i64,
    /// Numbers of contacts in ascending order, each with `true` if the contact joins and `false` if it leaves.
    pub(crate) moves: Vec<(i64, bool)>,
    /// Number of erased contacts of the workspace when the difference was calculated; on SQLite alone.
    pub(crate) erased: i64,
    /// Place of the first contact beyond the range; `None` if the range reaches the last contact.
    pub(crate) next: Option<StoreCursor>,
}

/// Methods that each database implements in its own way.
#[async_trait]
pub(crate) trait SegmentRows {
    /// Fails when the claim of a job is lost.
    async fn require_claim(&self, job: &JobHandle) -> Result<(), CommitError>;

    /// Counts the contacts that match a query, and for each of `conditions` those that match it.
    async fn count_matching(
        &self,
        workspace: WorkspaceId,
        query: &MemberQuery,
        conditions: &[Filter],
        sample: usize,
    ) -> Result<MatchCount, StoreError>;

    /// Compares members and filter for as many contacts as one read may examine; `None` if the segment does not exist.
    async fn difference(
        &self,
        workspace: WorkspaceId,
        id: SegmentId,
        query: &MemberQuery,
        from: Option<StoreCursor>,
    ) -> Result<Option<Difference>, StoreError>;

    /// Writes some moves of a difference while the job's claim is held. Answers how many contacts joined and left.
    async fn write_moves(
        &self,
        difference: &Arc<Difference>,
        moves: Range<usize>,
        notes: MoveNotes,
        job: &JobHandle,
    ) -> Result<(u64, u64), CommitError>;

    /// See [`trace::trace`].
    async fn trace(&self, workspace: WorkspaceId) -> Result<Option<Traced>, StoreError>;

    /// Adds the contacts that were found to the outbox, for segments and automations, and records the place of the search.
    async fn write_traced(&self, workspace: WorkspaceId, traced: Traced, job: &JobHandle) -> Result<(), CommitError>;

    /// Removes some members of a deleted list and adds each to the outbox. Answers how many were removed.
    async fn forget_list(&self, workspace: WorkspaceId, list: i64, job: &JobHandle) -> Result<u64, CommitError>;

    /// See [`follow::look`].
    async fn look(
        &self,
        workspace: WorkspaceId,
        segments: &[(SegmentId, MemberQuery)],
        limit: usize,
    ) -> Result<(Vec<FollowedNote>, bool), StoreError>;

    /// Removes entries of the outbox and writes the moves that they cause, which it also answers.
    async fn write_followed(
        &self,
        workspace: WorkspaceId,
        followed: Vec<FollowedNote>,
        job: &JobHandle,
    ) -> Result<Vec<Moved>, CommitError>;

    /// See [`Segments::forget_segment_members`].
    async fn forget_members_of_segments(&self, limit: usize) -> Result<u64, StoreError>;
}

/// Selects the columns of segments that [`segment`] reads. On PostgreSQL the number of members is the sum of several rows.
macro_rules! select {
    ($which:literal) => {
        sql!(sqlite: select!("members", $which), postgres: select!(
            "(SELECT coalesce(sum(members), 0)::bigint FROM segment_sizes WHERE segment_sizes.segment = segments.n)",
            $which
        ))
    };
    ($members:literal, $which:literal) => {
        concat!(
            "SELECT id, revision, kind, status, ",
            $members,
            ", calculation, calculated_at, created_at, updated_at, name, filter FROM segments WHERE workspace_number = ",
            workspace_number!(),
            " AND NOT removed AND ",
            $which
        )
    };
}

/// The data of a contact that the filter of a segment reads; none for static segments.
pub(crate) fn mask(segment: &Segment) -> ReadMask {
    match segment.kind {
        SegmentKind::Dynamic => segment.filter.tree().reads().mask,
        SegmentKind::Static => ReadMask::NONE,
    }
}

/// Creates or replaces the row of a segment. The caller then updates the read mask of the workspace, which joins those of
/// all its segments.
pub(crate) fn put_row(on: &mut dyn Statements, segment: &Segment, expect: Expect) -> Result<(), Fault> {
    const INSERT: Sql = sql!(
        "INSERT INTO segments (workspace_number, id, revision, removed, kind, status, read_mask, {members,} calculation,
             calculated_at, updated_at, name, filter, created_at)
         SELECT number, $2, 1, false, $3, $4, $5, {0,} $6, $7, $8, $9, $10, $11 FROM workspace_numbers WHERE workspace = $1"
    );
    const UPDATE: Sql = sql!(concat!(
        "UPDATE segments SET revision = revision + 1, kind = $3, status = $4, read_mask = $5, calculation = $6,
             calculated_at = $7, updated_at = $8, name = $9, filter = $10 WHERE workspace_number = ",
        workspace_number!(),
        " AND id = $2 AND revision = $11 AND NOT removed"
    ));
    let mut row = params![
        key(segment.workspace_id),
        key(segment.id),
        stored_number(&SegmentKind::ALL, &segment.kind),
        stored_number(&SegmentStatus::ALL, &segment.status),
        mask(segment).bits(),
        segment.calculation,
        segment.calculated_at,
        segment.updated_at,
        segment.name.as_str(),
        segment.filter.json(),
    ];
    match expect {
        Expect::Absent => {
            lists::number_workspace(on, segment.workspace_id)?;
            row.push(segment.created_at.into());
            on.run_one(INSERT, row)
        }
        Expect::Revision(revision) => {
            row.push(revision.into());
            on.run_one(UPDATE, row)
        }
    }
}

/// Marks the row as removed; a job deletes the members later.
pub(crate) fn remove_row(on: &mut dyn Statements, workspace: WorkspaceId, id: SegmentId) -> Result<(), Fault> {
    const SQL: Sql = sql!(concat!(
        "UPDATE segments SET removed = true, read_mask = 0, name = '', filter = '' WHERE workspace_number = ",
        workspace_number!(),
        " AND id = $2"
    ));
    on.run(SQL, params![key(workspace), key(id)])
}

/// A segment from the columns of `select`.
fn segment(workspace: WorkspaceId, row: &dyn Row) -> Result<Stored<Segment>, Fault> {
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
        calculation: get(row, 5)?,
    };
    Ok(Stored { record, revision: get(row, 1)? })
}

#[async_trait]
impl<D: Database + SegmentRows> Segments for SqlStore<D>
where
    Self: Contacts,
{
    async fn segment(&self, workspace: WorkspaceId, id: SegmentId) -> Result<Option<Stored<Segment>>, StoreError> {
        const SQL: Sql = select!("id = $2");
        let query = Query::new(SQL, params![key(workspace), key(id)], move |row| segment(workspace, row));
        self.one(query.point()).await
    }

    async fn segments(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<Segment>, StoreError> {
        const SQL: Sql = select!("id < $2 ORDER BY id DESC LIMIT $3");
        let bounds = params![key(workspace), below(&page), one_more(&page)];
        let query = Query::new(SQL, bounds, move |row| Ok(segment(workspace, row)?.record));
        self.page(query, page, |segment| segment.id.to_bytes()).await
    }

    async fn segment_read_mask(&self, workspace: WorkspaceId) -> Result<ReadMask, StoreError> {
        const SQL: Sql = sql!("SELECT read_mask FROM workspace_numbers WHERE workspace = $1");
        let query = Query::new(SQL, params![key(workspace)], |row| read_mask(row, 0));
        let Some(read_mask) = self.one(query.point().shared()).await? else { return Ok(ReadMask::NONE) };
        let subscriptions = self.many(automations::run_subscriptions(workspace)).await?;
        let hears = subscriptions.iter().any(|subscription| subscription.everything);
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
        let mut counted = self.count_matching(workspace, query, conditions, sample).await?;
        let mut sample = Vec::new();
        for id in counted.sample {
            // A contact that was deleted in the meantime is left out.
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
    ) -> Result<CalculationSlice, CommitError> {
        let found = self.difference(workspace, id, query, from).await?;
        self.require_claim(job).await?;
        let Some(difference) = found.map(Arc::new) else {
            return Ok(CalculationSlice { next: None, joined: 0, left: 0 });
        };
        let mut calculated = CalculationSlice { next: difference.next, joined: 0, left: 0 };
        let all = difference.moves.len();
        for start in (0..all).step_by(MOVES) {
            let slice = start..all.min(start + MOVES);
            let (joined, left) = self.write_moves(&difference, slice, moves, job).await?;
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
        self.require_claim(job).await?;
        // Suppressed addresses and deleted lists concern contacts that are found here and added to the outbox.
        let traced = self.trace(workspace).await?;
        let removed = self.one(follow::removed_list(workspace)).await?;
        let is_more = traced.is_some() || removed.is_some();
        if let Some(traced) = traced {
            self.write_traced(workspace, traced, job).await?;
        }
        if let Some(list) = removed {
            for _ in 0..LIST_SLICES {
                if self.forget_list(workspace, list, job).await? == 0 {
                    break;
                }
            }
        }
        let (mut followed, more) = self.look(workspace, segments, limit).await?;
        let mut moved = Vec::new();
        while !followed.is_empty() {
            let rest = followed.split_off(follow::slice(&followed, NOTES, MOVES));
            let slice = std::mem::replace(&mut followed, rest);
            moved.extend(self.write_followed(workspace, slice, job).await?);
        }
        Ok((moved, more || is_more))
    }

    async fn forget_segment_members(&self, limit: usize) -> Result<u64, StoreError> {
        self.forget_members_of_segments(limit).await
    }
}
