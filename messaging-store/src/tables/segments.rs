//! Segments and their members.
//!
//! Beside this: following the changes of contacts ([`follow`]), looking for the owners of addresses ([`trace`]), and what a
//! preview counts ([`tally`]). Whom filters match each database finds in its own way.

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

/// How many transactions one call makes for the members of a removed list.
const LIST_SLICES: usize = 10;
/// How many entries of the outbox one transaction takes away.
const NOTES: usize = 500;
/// How many moves one transaction makes; of the outbox a contact's own are not divided.
const MOVES: usize = 2000;

/// Who has to become or cease to be a member.
pub(crate) struct Difference {
    pub(crate) workspace: WorkspaceId,
    pub(crate) id: SegmentId,
    /// As of when.
    pub(crate) now: Timestamp,
    pub(crate) segment: i64,
    /// The contact, and whether it becomes a member; in the order of their numbers.
    pub(crate) moves: Vec<(i64, bool)>,
    /// On SQLite, how many contacts of the workspace had been erased when it was found.
    pub(crate) erased: i64,
    /// The count of the first contact that was not looked at.
    pub(crate) next: Option<StoreCursor>,
}

/// What each database does in its own way.
#[async_trait]
pub(crate) trait SegmentRows {
    /// Fails when the claim of a job is lost.
    async fn require_claim(&self, job: &JobHandle) -> Result<(), CommitError>;

    /// Counts who matches a query, and each of the conditions.
    async fn count_matching(
        &self,
        workspace: WorkspaceId,
        query: &MemberQuery,
        conditions: &[Filter],
        sample: usize,
    ) -> Result<MatchCount, StoreError>;

    /// Compares members and filter for as many contacts as fit a look; `None` when there is no such segment.
    async fn difference(
        &self,
        workspace: WorkspaceId,
        id: SegmentId,
        query: &MemberQuery,
        from: Option<StoreCursor>,
    ) -> Result<Option<Difference>, StoreError>;

    /// Writes some moves of a difference under the claim of a job; answers how many joined and how many left.
    async fn write_moves(
        &self,
        difference: &Arc<Difference>,
        moves: Range<usize>,
        notes: MoveNotes,
        job: &JobHandle,
    ) -> Result<(u64, u64), CommitError>;

    /// See [`trace::trace`].
    async fn trace(&self, workspace: WorkspaceId) -> Result<Option<Traced>, StoreError>;

    /// Notes the contacts that were found, for segments and automations, and how far the search has come.
    async fn write_traced(&self, workspace: WorkspaceId, traced: Traced, job: &JobHandle) -> Result<(), CommitError>;

    /// Lets some members of a removed list go, each with a note; answers how many went.
    async fn forget_list(&self, workspace: WorkspaceId, list: i64, job: &JobHandle) -> Result<u64, CommitError>;

    /// See [`follow::look`].
    async fn look(
        &self,
        workspace: WorkspaceId,
        segments: &[(SegmentId, MemberQuery)],
        limit: usize,
    ) -> Result<(Vec<FollowedNote>, bool), StoreError>;

    /// Takes entries of the outbox away and writes what they lead to; answers who moved.
    async fn write_followed(
        &self,
        workspace: WorkspaceId,
        followed: Vec<FollowedNote>,
        job: &JobHandle,
    ) -> Result<Vec<Moved>, CommitError>;

    /// See [`Segments::forget_segment_members`].
    async fn forget_members_of_segments(&self, limit: usize) -> Result<u64, StoreError>;
}

/// Selects segments by the columns that [`segment`] reads. On PostgreSQL members are counted in several rows.
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

/// What is read of a contact to keep the members of a segment.
pub(crate) fn mask(segment: &Segment) -> ReadMask {
    match segment.kind {
        SegmentKind::Dynamic => segment.filter.tree().reads().mask,
        SegmentKind::Static => ReadMask::NONE,
    }
}

/// The row itself; what the segments of the workspace read together is renewed by whoever calls this.
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

/// Removes the row; its members go later.
pub(crate) fn remove_row(on: &mut dyn Statements, workspace: WorkspaceId, id: SegmentId) -> Result<(), Fault> {
    const SQL: Sql = sql!(concat!(
        "UPDATE segments SET removed = true, read_mask = 0, name = '', filter = '' WHERE workspace_number = ",
        workspace_number!(),
        " AND id = $2"
    ));
    on.run(SQL, params![key(workspace), key(id)])
}

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
        // Who is concerned by these is found out here; it leads to entries of the outbox like everybody else's.
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
