//! Segments in the application: the graph of a workspace's segments, turns at their members, and noticing changes of
//! contacts that concern them.

use messaging_core::changes::{Changes, DocumentKey, Expect, JobWrite, Write};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::EventKind;
use messaging_core::domain::segment::filter::Filter;
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::domain::segment::resolve::SegmentGraph;
use messaging_core::domain::segment::{MAX_SEGMENTS, Segment, SegmentKind, SegmentStatus};
use messaging_core::error::Chain;
use messaging_core::ids::{SegmentId, WorkspaceId};
use messaging_core::ports::store::segments::MemberQuery;
use messaging_core::ports::store::{PageRequest, StoreError, Stored};
use messaging_core::time::Timestamp;

use crate::app::App;
use crate::jobs::JobData as _;
use crate::jobs::follow_changes::FollowChanges;
use crate::jobs::recalculate_segment::RecalculateSegment;

/// Number of segments that are read at a time.
const PAGE: usize = 100;

impl App {
    /// Waits for the turn to work on the members of the workspace's segments.
    pub(crate) async fn turn_at_segments(&self, workspace: WorkspaceId) -> tokio::sync::OwnedMutexGuard<()> {
        self.segment_turns().of(workspace).lock_owned().await
    }

    /// Returns all segments of a workspace.
    pub(crate) async fn segment_graph(&self, workspace: WorkspaceId) -> Result<SegmentGraph, StoreError> {
        let mut page = PageRequest { after: None, limit: PAGE };
        let mut graph = SegmentGraph::default();
        // Segments that were created beyond the limit at the same moment are read as well.
        for _ in 0..=2 * MAX_SEGMENTS / PAGE {
            let slice = self.store().segments(workspace, page).await?;
            slice.items.into_iter().for_each(|segment| graph.insert(segment));
            page.after = slice.next;
            if page.after.is_none() {
                break;
            }
        }
        Ok(graph)
    }

    /// Returns the query for the current members of a resolved filter.
    pub(crate) async fn member_query(&self, workspace: WorkspaceId, filter: Filter) -> Result<MemberQuery, StoreError> {
        // Not read from the cache: another process may just have changed the zone and asked for a calculation.
        let found = self.store().workspace(workspace).await?;
        let zone = found.map_or(jiff::tz::TimeZone::UTC, |stored| stored.record.zone());
        Ok(MemberQuery { filter, now: self.now(), zone })
    }

    /// Returns the segment and the writes that have its members recalculated.
    pub(crate) fn calculate_anew(&self, stored: Stored<Segment>, now: Timestamp) -> (Segment, [Write; 2]) {
        let Stored { record, revision } = stored;
        let segment =
            Segment { status: SegmentStatus::Recalculating, calculation: record.calculation.wrapping_add(1), ..record };
        let job = RecalculateSegment::of(&segment).enqueue(self.new_id(now), now);
        let put = Write::PutSegment(Box::new(segment.clone()), Expect::Revision(revision));
        (segment, [put, Write::Job(JobWrite::Enqueue(job))])
    }

    /// Returns the writes that have the members of several segments recalculated; segments that are gone are left out.
    pub(crate) async fn calculate_all_anew(
        &self,
        workspace: WorkspaceId,
        ids: impl IntoIterator<Item = SegmentId, IntoIter: Send> + Send,
        now: Timestamp,
    ) -> Result<Vec<Write>, StoreError> {
        let mut writes = Vec::new();
        for id in ids {
            if let Some(stored) = self.store().segment(workspace, id).await? {
                writes.extend(self.calculate_anew(stored, now).1);
            }
        }
        Ok(writes)
    }

    /// Returns the dynamic segments whose members depend on where days begin.
    pub(crate) async fn segments_with_zone(&self, workspace: WorkspaceId) -> Result<Vec<SegmentId>, StoreError> {
        let graph = self.segment_graph(workspace).await?;
        let reads_zone = |segment: &&Segment| {
            segment.kind == SegmentKind::Dynamic
                && graph.resolve(segment.filter.tree()).is_ok_and(|filter| filter.reads().zone)
        };
        Ok(graph.iter().filter(reads_zone).map(|segment| segment.id).collect())
    }

    /// Adds the job that follows the changes, if a segment reads them.
    pub(super) async fn have_changes_followed(&self, changes: &mut Changes) {
        for (workspace, mask) in concerned(changes) {
            let read_mask = match self.segment_read_mask(workspace).await {
                Ok(read_mask) => read_mask,
                Err(error) => {
                    // A store that takes no work logs the cause itself; each request would repeat it.
                    if !matches!(error, StoreError::Unavailable) {
                        tracing::warn!(error = %Chain(&error), "what segments read is not known; changes are followed");
                    }
                    ReadMask::ALL | ReadMask::TRACED_SUPPRESSIONS
                }
            };
            if !read_mask.intersects(mask) {
                continue;
            }
            let now = self.now();
            let job = FollowChanges::announced(workspace).enqueue(self.new_id(now), now);
            changes.push(Write::Job(JobWrite::EnqueueOnce(job)));
        }
    }
}

/// Returns the changed data of contacts, by workspace. Allocates nothing if there is none.
fn concerned(changes: &Changes) -> Vec<(WorkspaceId, ReadMask)> {
    let mut found: Vec<(WorkspaceId, ReadMask)> = Vec::new();
    for (workspace, mask) in changes.writes().iter().filter_map(concern) {
        match found.iter_mut().find(|(known, _)| *known == workspace) {
            Some((_, all)) => *all = *all | mask,
            None => found.push((workspace, mask)),
        }
    }
    found
}

/// Returns the contact data that a write changes and a filter can read. It may be more than is changed, never less: the
/// store knows exactly which contacts changed, but only a job asks it.
fn concern(write: &Write) -> Option<(WorkspaceId, ReadMask)> {
    match write {
        Write::PutContacts(puts) => {
            let workspace = puts.first()?.contact.workspace_id;
            let is_new = puts.iter().any(|put| put.expect == Expect::Absent);
            let changed = ReadMask::FIELDS
                | ReadMask::UPDATED_AT
                | ReadMask::ATTRIBUTES
                | ReadMask::TAGS
                | ReadMask::CONSENT
                | ReadMask::SUPPRESSIONS;
            Some((workspace, if is_new { ReadMask::ALL } else { changed }))
        }
        Write::JoinList(workspace, ..)
        | Write::LeaveList(workspace, ..)
        | Write::ForgetSubscription(workspace, ..)
        | Write::Delete(DocumentKey::List(workspace, _)) => Some((*workspace, ReadMask::LISTS)),
        Write::PutSubscription(subscription, _) => Some((subscription.workspace_id, ReadMask::LISTS)),
        Write::PutSuppression(suppression, _) => {
            let is_traced = matches!(suppression.channel, Channel::Telegram | Channel::Push | Channel::Viber);
            let traced = if is_traced { ReadMask::TRACED_SUPPRESSIONS } else { ReadMask::NONE };
            Some((suppression.workspace_id, ReadMask::SUPPRESSIONS | traced))
        }
        Write::DeleteSuppression(workspace, ..) => {
            Some((*workspace, ReadMask::SUPPRESSIONS | ReadMask::TRACED_SUPPRESSIONS))
        }
        Write::AppendEvent(event) => match event.kind {
            EventKind::Sent
            | EventKind::Delivered
            | EventKind::Open
            | EventKind::Click
            | EventKind::Bounce
            | EventKind::Complaint
            | EventKind::Unsubscribe => Some((event.workspace_id, ReadMask::MESSAGES)),
            EventKind::Queued
            | EventKind::Deferred
            | EventKind::Failed
            | EventKind::Suppressed
            | EventKind::Cancelled => None,
        },
        Write::AppendProductEvents(events) => Some((events.first()?.workspace_id, ReadMask::EVENTS)),
        Write::MoveProductEvents(change) => Some((change.workspace_id, ReadMask::EVENTS)),
        Write::AttributeMessage(change) => Some((change.workspace_id, ReadMask::MESSAGES)),
        Write::RedactMessage(redaction) => Some((redaction.workspace_id, ReadMask::MESSAGES)),
        Write::EraseCopy(erasure) => Some((erasure.workspace_id, ReadMask::MESSAGES)),
        _ => None,
    }
}
