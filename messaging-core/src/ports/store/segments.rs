//! Segments and their members.
//!
//! The store finds the members by evaluating a filter, without knowing what the filter is for. Memberships follow the
//! changes of contacts later: every write that changes what a filter can read also notes the contact as changed, in the
//! same transaction, if the workspace has a dynamic segment that reads it. [`Segments::follow_changes`] works these
//! notes off.

use async_trait::async_trait;

use super::{CommitError, PageRequest, Slice, StoreCursor, StoreError, Stored};
use crate::changes::JobHandle;
use crate::domain::audience::contact::Contact;
use crate::domain::segment::Segment;
use crate::domain::segment::filter::Filter;
use crate::domain::segment::reads::ReadMask;
use crate::ids::{ContactId, SegmentId, WorkspaceId};
use crate::time::Timestamp;

/// A condition on contacts with all that its evaluation depends on.
#[derive(Debug, Clone, PartialEq)]
pub struct MemberQuery {
    /// The condition that members match. It names no dynamic segment: those were replaced by their filters.
    pub filter: Filter,
    /// The present time, to which relative times in the filter refer.
    pub now: Timestamp,
    /// The workspace's time zone, which tells when days begin.
    pub zone: jiff::tz::TimeZone,
}

/// The number of contacts that match a filter, and some of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Preview {
    /// The number of contacts that match; an estimate when `exact` is false.
    pub size: u64,
    /// For each of the conditions that were asked for, in their order, the number of contacts that match it; estimates
    /// when `exact` is false.
    pub sizes: Vec<u64>,
    /// True if every contact was looked at, so that the sizes are no estimates.
    pub exact: bool,
    /// Some contacts that match, newest first.
    pub sample: Vec<Contact>,
}

/// Result of one slice of a calculation of members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CalculationSlice {
    /// Cursor at which the next slice begins; `None` when all contacts were looked at.
    pub next: Option<StoreCursor>,
    /// The number of contacts that became members.
    pub joined: u64,
    /// The number of contacts that ceased to be members.
    pub left: u64,
}

/// Choice whether a calculation makes notes for automations of contacts that became or ceased to be members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoveNotes {
    /// It makes notes: contacts joined or left because time has passed.
    Written,
    /// It makes notes for automations with `include_existing` alone: contacts joined or left because the segment is new
    /// or its filter has changed, not because of an event of theirs.
    Silent,
}

/// A contact that became or ceased to be a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// The segment.
    pub segment: SegmentId,
    /// The contact.
    pub contact: ContactId,
    /// True if it became a member, false if it ceased to be one.
    pub member: bool,
}

/// Reads of segments, and the upkeep of their members.
#[async_trait]
pub trait Segments {
    /// A segment by id.
    async fn segment(&self, workspace: WorkspaceId, id: SegmentId) -> Result<Option<Stored<Segment>>, StoreError>;
    /// The segments of the workspace, newest first.
    async fn segments(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<Segment>, StoreError>;
    /// Returns the union of the data that the dynamic segments of a workspace read of its contacts; empty if it has
    /// none. It also has [`ReadMask::TRACED_SUPPRESSIONS`] if runs of automations listen for every change of their
    /// contact.
    async fn segment_read_mask(&self, workspace: WorkspaceId) -> Result<ReadMask, StoreError>;
    /// The members of a segment, in the order of their creation, newest first.
    async fn segment_contacts(
        &self,
        workspace: WorkspaceId,
        id: SegmentId,
        page: PageRequest,
    ) -> Result<Slice<Contact>, StoreError>;

    /// Counts the contacts that match `query`, and those that match each of `conditions`, within about half a second:
    /// in a workspace too large for that, the counts are estimated from some of its contacts. Also answers up to
    /// `sample` contacts that match.
    async fn preview(
        &self,
        workspace: WorkspaceId,
        query: &MemberQuery,
        conditions: &[Filter],
        sample: usize,
    ) -> Result<Preview, StoreError>;

    /// Calculates the members of a segment for one slice of the workspace's contacts, which begins at `from`, or with
    /// the first contact: those that match become members, all others of the slice cease to be members.
    ///
    /// This is a write outside of [`Changes`](crate::changes::Changes): it decides nothing and may stop anywhere.
    /// Members, their number and the notes for automations change in the same transactions. Every transaction is made
    /// under the claim of `job`; once the claim is lost, nothing more is written and the error is
    /// [`CommitError::LeaseLost`], also when there was nothing to write. Neither this nor [`Segments::follow_changes`]
    /// may run twice at the same time for a workspace: their jobs share a lane, which one process claims, and take
    /// turns in it.
    async fn calculate_members(
        &self,
        workspace: WorkspaceId,
        id: SegmentId,
        query: &MemberQuery,
        from: Option<StoreCursor>,
        moves: MoveNotes,
        job: &JobHandle,
    ) -> Result<CalculationSlice, CommitError>;

    /// Updates the memberships of up to `limit` contacts that were noted as changed, and removes their notes: each
    /// becomes a member of those of `segments` that it matches now, and of no others. A segment is evaluated only for
    /// contacts with a change in data that its filter reads. Returns the contacts that joined or left, and whether more
    /// contacts are noted.
    ///
    /// Written under the claim of `job`, like [`Segments::calculate_members`]. Notes for automations are made in the
    /// same transactions, so they do not depend on this answer, which may be lost.
    async fn follow_changes(
        &self,
        workspace: WorkspaceId,
        segments: &[(SegmentId, MemberQuery)],
        limit: usize,
        job: &JobHandle,
    ) -> Result<(Vec<Moved>, bool), CommitError>;

    /// Deletes up to `limit` memberships of deleted segments, and returns how many were deleted.
    ///
    /// This is a write outside of [`Changes`](crate::changes::Changes): it decides nothing and may stop anywhere.
    async fn forget_segment_members(&self, limit: usize) -> Result<u64, StoreError>;
}
