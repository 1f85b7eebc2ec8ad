//! Job that updates the members of segments after changes of contacts.
//!
//! The store notes in the transaction of a change which data of which contact changed, and the same transaction adds
//! this job unless it waits already. That first job only ends and adds another that does the work: it ends before the
//! notes are read, so that a change is either seen by that work or adds a job of its own.

use messaging_core::changes::{Changes, Expect, JobWrite, Write};
use messaging_core::domain::segment::{Segment, SegmentKind, SegmentStatus};
use messaging_core::error::Chain;
use messaging_core::ids::{SegmentId, WorkspaceId};
use messaging_core::ports::store::segments::MemberQuery;
use messaging_core::ports::store::{CommitError, StoreError};

use crate::app::App;
use crate::jobs::JobData as _;
use crate::jobs::follow_changes::{FollowChanges, Stage};
use crate::work::job::{Job, JobContext, JobError};
use crate::work::recalculate_segment::RETRY;

/// Number of notes that are processed at a time.
const NOTES: usize = 500;
/// Largest number of rounds of one run.
const MAX_ROUNDS: usize = 50;
/// Number of failures after which the segment that causes them is searched for.
const PATIENCE: u32 = 3;

impl Job for FollowChanges {
    async fn run(self, cx: &JobContext) -> Result<(), JobError> {
        let app = &cx.app;
        if self.stage == Stage::Announced {
            let now = app.now();
            let work = Self { stage: Stage::Working, ..self };
            let job = work.enqueue(app.new_id(now), now);
            return Ok(cx.finish(Changes::from_iter([Write::Job(JobWrite::Enqueue(job))])).await?);
        }
        for _ in 0..MAX_ROUNDS {
            // The segments are read within the turn: a filter changed after it is calculated as a whole.
            let turn = app.turn_at_segments(self.workspace_id).await;
            let queries = queries(app, self.workspace_id).await?;
            match app.store().follow_changes(self.workspace_id, &queries, NOTES, cx.handle()).await {
                Ok((_, true)) => {}
                Ok((_, false)) => return Ok(cx.finish(Changes::default()).await?),
                Err(error @ (CommitError::Refused(_) | CommitError::Store(StoreError::Failed(_)))) => {
                    drop(turn);
                    tracing::warn!(error = %Chain(&error), workspace = %self.workspace_id, "changes were not followed");
                    let failures = self.failures.saturating_add(1);
                    let changes = if failures.is_multiple_of(PATIENCE) {
                        give_up_broken(app, self.workspace_id, &queries).await?
                    } else {
                        Changes::default()
                    };
                    return cx.again_at(app.now() + RETRY, &Self { failures, ..self }, changes).await;
                }
                // The claim was lost, or there is too much to do at the moment.
                Err(error) => return Err(error.into()),
            }
        }
        cx.again_at(app.now(), &Self { failures: 0, ..self }, Changes::default()).await
    }
}

/// Returns the query for the members of each segment to follow.
async fn queries(app: &App, workspace: WorkspaceId) -> Result<Vec<(SegmentId, MemberQuery)>, StoreError> {
    let graph = app.segment_graph(workspace).await?;
    let is_followed =
        |segment: &&Segment| segment.kind == SegmentKind::Dynamic && segment.status != SegmentStatus::Failed;
    let mut queries = Vec::new();
    for segment in graph.iter().filter(is_followed) {
        // A filter that cannot be resolved fails when it is calculated.
        if let Ok(filter) = graph.resolve(segment.filter.tree()) {
            queries.push((segment.id, filter));
        }
    }
    let Some((_, first)) = queries.first() else { return Ok(Vec::new()) };
    let MemberQuery { now, zone, .. } = app.member_query(workspace, first.clone()).await?;
    Ok(queries.into_iter().map(|(id, filter)| (id, MemberQuery { filter, now, zone: zone.clone() })).collect())
}

/// Marks segments that cannot be evaluated as failed, so that the others are followed.
async fn give_up_broken(
    app: &App,
    workspace: WorkspaceId,
    queries: &[(SegmentId, MemberQuery)],
) -> Result<Changes, StoreError> {
    let mut changes = Changes::default();
    for (id, query) in queries {
        let Err(StoreError::Failed(cause)) = app.store().preview(workspace, query, &[], 0).await else { continue };
        tracing::error!(error = %Chain(&*cause), segment = %id, "a segment cannot be evaluated and is not followed");
        if let Some(stored) = app.store().segment(workspace, *id).await? {
            let failed = Segment { status: SegmentStatus::Failed, ..stored.record };
            changes.push(Write::PutSegment(Box::new(failed), Expect::Revision(stored.revision)));
        }
    }
    Ok(changes)
}
