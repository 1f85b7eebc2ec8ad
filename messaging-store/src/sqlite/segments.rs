//! Segments and their members.
//!
//! What finds members is beside this: [`compile`] makes SQL of a filter, [`probe`] tests values
//! for it, [`evaluate`] runs it; [`members`] calculates a segment as a whole, [`outbox`] and [`follow`] keep
//! it, [`preview`] counts without keeping. All of that runs on one thread of its own, in looks of some
//! milliseconds, so that it never takes more than one processor and no other read waits for it.

mod compile;
mod evaluate;
mod follow;
mod members;
mod outbox;
mod preview;
mod probe;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Instant;

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
use rusqlite::{Connection, Row, params};

use self::preview::Count;
use super::SqliteStore;
use super::fault::{Fault, expect_one};
use super::interests::Interests;
use super::numbers::{make_workspace_number, workspace_number};
use super::query::{many, one};
use super::row::{below, count, id, number as stored_number, numbered, one_more, slice, sql_limit, time};
use super::{listeners, lists};

pub(super) use compile::{compile, compile_asks};
pub(super) use evaluate::{Answering, Evaluation};
pub(super) use follow::tell_of_address;
pub(super) use members::let_go;
pub(super) use outbox::{ReadMasks, WorkspaceReadMask, note};
pub(super) use probe::addresses as attribute_addresses;

/// How many rows a sweep removes in one transaction.
const SLICE: usize = 500;
/// How many such transactions one call makes for the members of a removed list.
const LIST_SLICES: usize = 10;
/// How many entries of the outbox one transaction takes away: it holds the writer for a few milliseconds.
const NOTES: usize = 500;
/// How many moves one transaction of the outbox makes; a contact's own are not divided.
const NOTED_MOVES: usize = 2000;

/// The columns that [`segment`] reads, in its order.
macro_rules! segment_columns {
    () => {
        "id, revision, kind, status, members, calculation, calculated_at, created_at, updated_at, name, filter"
    };
}

pub(super) fn put(
    connection: &Connection,
    read_masks: &mut ReadMasks,
    segment: &Segment,
    expect: Expect,
) -> Result<(), Fault> {
    let mask = match segment.kind {
        SegmentKind::Dynamic => segment.filter.tree().reads().mask,
        SegmentKind::Static => ReadMask::NONE,
    };
    let workspace_number = make_workspace_number(connection, segment.workspace_id)?;
    let (kind, status) =
        (stored_number(&SegmentKind::ALL, &segment.kind), stored_number(&SegmentStatus::ALL, &segment.status));
    let (filter, calculated_at) = (segment.filter.json(), segment.calculated_at.map(Timestamp::as_millis));
    expect_one(match expect {
        Expect::Absent => connection
            .prepare_cached(
                "INSERT INTO segments (workspace_number, id, revision, removed, kind, status, read_mask, members, calculation,
                     calculated_at, created_at, updated_at, name, filter)
                 VALUES (?1, ?2, 1, 0, ?3, ?4, ?5, 0, ?6, ?7, ?8, ?9, ?10, ?11)",
            )?
            .execute(params![
                workspace_number,
                segment.id.to_bytes(),
                kind,
                status,
                mask.bits(),
                segment.calculation,
                calculated_at,
                segment.created_at.as_millis(),
                segment.updated_at.as_millis(),
                segment.name,
                filter,
            ])?,
        Expect::Revision(revision) => connection
            .prepare_cached(
                "UPDATE segments SET revision = revision + 1, kind = ?4, status = ?5, read_mask = ?6, calculation = ?7,
                     calculated_at = ?8, updated_at = ?9, name = ?10, filter = ?11
                 WHERE workspace_number = ?1 AND id = ?2 AND revision = ?3 AND removed = 0",
            )?
            .execute(params![
                workspace_number,
                segment.id.to_bytes(),
                revision,
                kind,
                status,
                mask.bits(),
                segment.calculation,
                calculated_at,
                segment.updated_at.as_millis(),
                segment.name,
                filter,
            ])?,
    })?;
    renew_read_mask(connection, read_masks, segment.workspace_id, workspace_number)
}

pub(super) fn delete(
    connection: &Connection,
    read_masks: &mut ReadMasks,
    workspace: WorkspaceId,
    id: SegmentId,
) -> Result<(), Fault> {
    let Some(workspace_number) = workspace_number(connection, workspace)? else { return Ok(()) };
    connection
        .prepare_cached(
            "UPDATE segments SET removed = 1, read_mask = 0, name = '', filter = '' WHERE workspace_number = ?1 AND id = ?2",
        )?
        .execute(params![workspace_number, id.to_bytes()])?;
    renew_read_mask(connection, read_masks, workspace, workspace_number)
}

/// Stores with the number of the workspace what its dynamic segments read.
fn renew_read_mask(
    connection: &Connection,
    read_masks: &mut ReadMasks,
    workspace: WorkspaceId,
    workspace_number: i64,
) -> Result<(), Fault> {
    let sql = "SELECT read_mask FROM segments WHERE workspace_number = ?1 AND removed = 0";
    let read = many(connection, sql, [workspace_number], |row| Ok(ReadMask::from_bits(row.get(0)?)))?;
    let read_mask = read.into_iter().fold(ReadMask::NONE, |all, one| all | one);
    connection
        .prepare_cached("UPDATE workspace_numbers SET read_mask = ?2 WHERE number = ?1 AND read_mask <> ?2")?
        .execute(params![workspace_number, read_mask.bits()])?;
    if !read_mask.intersects(ReadMask::SUPPRESSIONS) && !listeners::runs_hear_changes(connection, workspace)? {
        // Nobody will look for them; they are about people and shall not stay.
        connection
            .prepare_cached("DELETE FROM changed_addresses WHERE workspace_number = ?1")?
            .execute([workspace_number])?;
    }
    read_masks.forget(workspace);
    Ok(())
}

/// A segment from the columns of `segment_columns`.
fn segment(workspace: WorkspaceId, row: &Row<'_>) -> Result<Stored<Segment>, Fault> {
    let calculated_at: Option<i64> = row.get(6)?;
    let record = Segment {
        id: id(row, 0)?,
        workspace_id: workspace,
        name: row.get(9)?,
        kind: numbered(&SegmentKind::ALL, row.get(2)?)?,
        filter: StoredFilter::read(row.get_ref(10)?.as_str().unwrap_or_default())
            .map_err(|_| Fault::Malformed("a filter cannot be read"))?,
        status: numbered(&SegmentStatus::ALL, row.get(3)?)?,
        size: if calculated_at.is_some() { Some(count(row, 4)?) } else { None },
        calculated_at: calculated_at.map(Timestamp::from_millis),
        created_at: time(row, 7)?,
        updated_at: time(row, 8)?,
        calculation: row.get(5)?,
    };
    Ok(Stored { record, revision: row.get(1)? })
}

#[async_trait]
impl Segments for SqliteStore {
    async fn segment(&self, workspace: WorkspaceId, id: SegmentId) -> Result<Option<Stored<Segment>>, StoreError> {
        const SQL: &str = concat!(
            "SELECT ",
            segment_columns!(),
            " FROM segments
             WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = ?1) AND id = ?2 AND removed = 0"
        );
        self.readers
            .point_read(move |connection| {
                one(connection, SQL, [workspace.to_bytes(), id.to_bytes()], |row| segment(workspace, row))
            })
            .await
    }

    async fn segments(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<Segment>, StoreError> {
        const SQL: &str = concat!(
            "SELECT ",
            segment_columns!(),
            " FROM segments WHERE workspace_number = ?1 AND id < ?2 AND removed = 0 ORDER BY id DESC LIMIT ?3"
        );
        self.readers
            .read(move |connection| {
                let workspace_number = workspace_number(connection, workspace)?;
                let bounds = params![workspace_number, below(&page), one_more(&page)];
                let items = many(connection, SQL, bounds, |row| Ok(segment(workspace, row)?.record))?;
                Ok(slice(items, page.limit, |segment: &Segment| segment.id.to_bytes()))
            })
            .await
    }

    async fn segment_read_mask(&self, workspace: WorkspaceId) -> Result<ReadMask, StoreError> {
        const SQL: &str = "SELECT read_mask FROM workspace_numbers WHERE workspace = ?1";
        self.readers
            .point_read(move |connection| {
                let found = one(connection, SQL, [workspace.to_bytes()], |row| Ok(ReadMask::from_bits(row.get(0)?)))?;
                let Some(read_mask) = found else { return Ok(ReadMask::NONE) };
                let hears = listeners::runs_hear_changes(connection, workspace)?;
                Ok(if hears { read_mask | ReadMask::TRACED_SUPPRESSIONS } else { read_mask })
            })
            .await
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
                return self.readers.read(move |connection| count.preview(connection)).await;
            }
        }
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
        let query = query.clone();
        let found =
            self.scans.read(move |connection| members::difference(connection, workspace, id, &query, from)).await?;
        self.writer.hold(vec![job.clone()]).await?;
        let Some(difference) = found else { return Ok(Calculated { next: None, joined: 0, left: 0 }) };
        let mut calculated = Calculated { next: difference.next, joined: 0, left: 0 };
        let difference = Arc::new(difference);
        for start in (0..difference.moves.len()).step_by(members::SLICE) {
            let difference = Arc::clone(&difference);
            let end = difference.moves.len().min(start + members::SLICE);
            let (joined, left) = self
                .writer
                .undurably_for(job, move |connection, interests| {
                    let slice = &difference.moves[start..end];
                    members::write(connection, &mut interests.listeners, &difference, slice, moves)
                })
                .await?;
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
        self.writer.hold(vec![job.clone()]).await?;
        // Who is concerned by these is found out here; it leads to entries of the outbox like everybody else's.
        let (traced, removed) = self
            .scans
            .read(move |connection| {
                Ok((follow::trace(connection, workspace)?, follow::removed_list(connection, workspace)?))
            })
            .await?;
        let is_more = traced.is_some() || removed.is_some();
        if let Some(traced) = traced {
            let write = move |connection: &Connection, interests: &mut Interests| {
                follow::write_traced(connection, interests, workspace, &traced)
            };
            self.writer.undurably_for(job, write).await?;
        }
        if let Some(list) = removed {
            for _ in 0..LIST_SLICES {
                let forget = move |connection: &Connection, _: &mut Interests| lists::forget(connection, list, SLICE);
                let gone = self.writer.undurably_for(job, forget).await?;
                if gone == 0 {
                    break;
                }
            }
        }
        let segments = segments.to_vec();
        let (mut followed, more) =
            self.scans.read(move |connection| follow::look(connection, workspace, &segments, limit)).await?;
        let mut moved = Vec::new();
        while !followed.is_empty() {
            let rest = followed.split_off(follow::slice(&followed, NOTES, NOTED_MOVES));
            let slice = std::mem::replace(&mut followed, rest);
            let write = move |connection: &Connection, interests: &mut Interests| {
                follow::write(connection, interests, workspace, &slice)
            };
            moved.extend(self.writer.undurably_for(job, write).await?);
        }
        Ok((moved, more || is_more))
    }

    async fn forget_segment_members(&self, limit: usize) -> Result<u64, StoreError> {
        let removed = self
            .readers
            .read(|connection| one(connection, "SELECT n FROM segments WHERE removed = 1", [], |row| Ok(row.get(0)?)))
            .await?;
        let Some(n): Option<i64> = removed else { return Ok(0) };
        self.forget_in_slices(limit, SLICE, move |connection, slice| forget(connection, n, slice)).await
    }
}

/// Lets members of a removed segment go, and when there are none, the segment; answers how many rows went.
fn forget(connection: &Connection, segment: i64, limit: usize) -> Result<u64, Fault> {
    let members: Vec<i64> = many(
        connection,
        "SELECT contact FROM segment_members WHERE segment = ?1 LIMIT ?2",
        params![segment, sql_limit(limit)],
        |row| Ok(row.get(0)?),
    )?;
    if members.is_empty() {
        let sql = "DELETE FROM segments WHERE n = ?1 AND removed = 1";
        return Ok(connection.prepare_cached(sql)?.execute([segment])? as u64);
    }
    let mut delete = connection.prepare_cached("DELETE FROM segment_members WHERE segment = ?1 AND contact = ?2")?;
    for contact in &members {
        delete.execute([segment, *contact])?;
    }
    Ok(members.len() as u64)
}
