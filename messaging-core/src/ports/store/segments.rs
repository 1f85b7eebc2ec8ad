//! Segments and their members.
//!
//! Members are found by the store, from a condition: it never sees what a filter is for. What a change of a
//! contact means for its segments is worked off afterwards: every write that changes what a filter can read
//! notes the contact as changed, in the same transaction, if the workspace has a dynamic segment that reads it.

use async_trait::async_trait;

use super::{CommitError, PageRequest, Slice, StoreCursor, StoreError, Stored};
use crate::changes::JobHandle;
use crate::domain::audience::contact::Contact;
use crate::domain::segment::Segment;
use crate::domain::segment::filter::Filter;
use crate::domain::segment::reads::ReadMask;
use crate::ids::{ContactId, SegmentId, WorkspaceId};
use crate::time::Timestamp;

/// What a store needs to find members.
#[derive(Debug, Clone, PartialEq)]
pub struct MemberQuery {
    /// Whom to find. It names no dynamic segment: those were replaced by their filters.
    pub filter: Filter,
    /// The present.
    pub now: Timestamp,
    /// The workspace's time zone.
    pub zone: jiff::tz::TimeZone,
}

/// How many contacts match, and some of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Preview {
    /// How many match; an estimate when `exact` is false.
    pub size: u64,
    /// How many match each of the conditions that were asked for, in their order; estimates likewise.
    pub sizes: Vec<u64>,
    /// Whether every contact was looked at.
    pub exact: bool,
    /// Some that match, newest first.
    pub sample: Vec<Contact>,
}

/// How far a calculation has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calculated {
    /// Where the rest begins; `None` when all contacts were looked at.
    pub next: Option<StoreCursor>,
    /// The number of contacts that became members.
    pub joined: u64,
    /// How many ceased to be members.
    pub left: u64,
}

/// Whether a calculation tells automations who became or ceased to be a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoveNotes {
    /// It does: time has made the difference.
    Kept,
    /// It does not: the segment is new, or its filter has changed, and nobody has done anything.
    Silent,
}

/// A contact that became or ceased to be a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// Of which segment.
    pub segment: SegmentId,
    /// Which contact.
    pub contact: ContactId,
    /// Whether it is a member now.
    pub member: bool,
}

/// Reads of segments, and the upkeep of their members.
#[async_trait]
pub trait Segments {
    /// A segment.
    async fn segment(&self, workspace: WorkspaceId, id: SegmentId) -> Result<Option<Stored<Segment>>, StoreError>;
    /// The segments of the workspace, newest first.
    async fn segments(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<Segment>, StoreError>;
    /// What the dynamic segments of a workspace read of its contacts; nothing when it has none. Besides,
    /// [`ReadMask::TRACED_SUPPRESSIONS`] where runs of automations hear of every change of their contact.
    async fn segment_read_mask(&self, workspace: WorkspaceId) -> Result<ReadMask, StoreError>;
    /// The members of a segment, in the order of their creation, newest first.
    async fn segment_contacts(
        &self,
        workspace: WorkspaceId,
        id: SegmentId,
        page: PageRequest,
    ) -> Result<Slice<Contact>, StoreError>;

    /// Counts who matches, and who matches each of the conditions, within a time of about half a second: a
    /// workspace that is too large for it is estimated from some of its contacts.
    async fn preview(
        &self,
        workspace: WorkspaceId,
        query: &MemberQuery,
        conditions: &[Filter],
        sample: usize,
    ) -> Result<Preview, StoreError>;

    /// Makes members of a segment those who match, for the contacts from `from` on, as many as fit a slice;
    /// `None` begins with the first.
    ///
    /// A write outside of [`Changes`](crate::changes::Changes): it decides nothing and may stop anywhere. Members, their
    /// number and notes for automations change in the same transactions. Each of these is made under the claim of `job`, and nothing
    /// more is written once that is lost: `LeaseLost`, also when there was nothing to write. Nobody else may call it or
    /// [`Segments::follow_changes`] for the workspace at the same time: their jobs share a lane, which one process
    /// claims, and take turns in it.
    async fn calculate_members(
        &self,
        workspace: WorkspaceId,
        id: SegmentId,
        query: &MemberQuery,
        from: Option<StoreCursor>,
        moves: MoveNotes,
        job: &JobHandle,
    ) -> Result<Calculated, CommitError>;

    /// Takes up to `limit` contacts that were noted as changed, makes them members of those of the segments whom
    /// they match now and of no others, and takes their notes away. Looks at a segment only for contacts of
    /// whom something changed that its filter reads. Answers who moved and whether there are more;
    /// notes for automations are part of the same transactions, and an answer may be lost. Under the claim of `job`, as
    /// [`Segments::calculate_members`].
    async fn follow_changes(
        &self,
        workspace: WorkspaceId,
        segments: &[(SegmentId, MemberQuery)],
        limit: usize,
        job: &JobHandle,
    ) -> Result<(Vec<Moved>, bool), CommitError>;

    /// Lets go up to `limit` members of segments that were removed; answers how many.
    ///
    /// A write outside of [`Changes`](crate::changes::Changes): it decides nothing and may stop anywhere.
    async fn forget_segment_members(&self, limit: usize) -> Result<u64, StoreError>;
}
