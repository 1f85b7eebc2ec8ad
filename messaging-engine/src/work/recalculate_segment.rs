//! Job that finds all members of a segment.
//!
//! Contract section 9. Contacts are evaluated piece by piece, and the progress is stored with the job. Each requested
//! calculation has a number; the job of an earlier one ends as soon as it notices. Contacts that change meanwhile are
//! followed as always, and once more at the end. If the members depend on the current time, the job stays and begins
//! again every `--segment-refresh`.

use std::time::Duration;

use messaging_core::changes::{Changes, Expect, JobWrite, Write};
use messaging_core::domain::segment::filter::Filter;
use messaging_core::domain::segment::resolve::SegmentGraph;
use messaging_core::domain::segment::{Segment, SegmentKind, SegmentStatus};
use messaging_core::error::Chain;
use messaging_core::ports::store::segments::MoveNotes;
use messaging_core::ports::store::{CommitError, StoreError, Stored};

use crate::app::App;
use crate::jobs::JobData as _;
use crate::jobs::follow_changes::FollowChanges;
use crate::jobs::recalculate_segment::RecalculateSegment;
use crate::work::job::{Job, JobContext, JobError};

/// Number of pieces of one run before the progress is stored.
const PIECES: usize = 32;
/// Failures in a row after which the segment is marked as failed.
const MAX_FAILURES: u32 = 5;
/// Wait before a failed piece is tried again.
pub(super) const RETRY: Duration = Duration::from_secs(5);
/// Time after which a process that does not know of a new segment certainly does.
const LATER: Duration = Duration::from_secs(2);
/// Number of tries to store the end while the segment keeps changing.
const MAX_COMMITS: usize = 8;

impl RecalculateSegment {
    /// Returns the segment, if this calculation of it is still wanted.
    async fn wanted(&self, app: &App) -> Result<Option<Stored<Segment>>, StoreError> {
        let stored = app.store().segment(self.workspace_id, self.segment_id).await?;
        Ok(stored.filter(|stored| stored.record.calculation == self.calculation))
    }
}

impl Job for RecalculateSegment {
    async fn run(mut self, cx: &JobContext) -> Result<(), JobError> {
        let app = &cx.app;
        let Some(stored) = self.wanted(app).await? else {
            return Ok(cx.finish(Changes::default()).await?);
        };
        let graph = app.segment_graph(self.workspace_id).await?;
        let filter = match graph.resolve(stored.record.filter.tree()) {
            Ok(filter) => filter,
            Err(error) => return self.fail(cx, &error.to_string()).await,
        };
        let query = app.member_query(self.workspace_id, filter).await?;
        let moves = if self.is_refresh { MoveNotes::Written } else { MoveNotes::Silent };
        for _ in 0..PIECES {
            let turn = app.turn_at_segments(self.workspace_id).await;
            // A later calculation works on the members after this piece, not during it.
            if self.wanted(app).await?.is_none() {
                return Ok(cx.finish(Changes::default()).await?);
            }
            let store = app.store();
            let (segment, rest) = (self.segment_id, self.rest);
            let piece = store.calculate_members(self.workspace_id, segment, &query, rest, moves, cx.handle()).await;
            drop(turn);
            match piece {
                Ok(piece) => {
                    self.failures = 0;
                    match piece.next {
                        Some(next) => self.rest = Some(next),
                        None => return self.end(cx, &graph, &query.filter).await,
                    }
                }
                Err(CommitError::Refused(cause) | CommitError::Store(StoreError::Failed(cause))) => {
                    self.failures += 1;
                    let cause = Chain(&*cause).to_string();
                    if self.failures >= MAX_FAILURES {
                        return self.fail(cx, &cause).await;
                    }
                    tracing::warn!(cause, segment = %self.segment_id, "a calculation was cut short");
                    return cx.again_at(app.now() + RETRY, &self, Changes::default()).await;
                }
                // The claim was lost, or there is too much to do at the moment, which says nothing about the segment.
                Err(error) => return Err(error.into()),
            }
        }
        cx.again_at(app.now(), &self, Changes::default()).await
    }
}

impl RecalculateSegment {
    /// Ends the calculation when all contacts were evaluated.
    async fn end(self, cx: &JobContext, graph: &SegmentGraph, filter: &Filter) -> Result<(), JobError> {
        let app = &cx.app;
        for _ in 0..MAX_COMMITS {
            let Some(stored) = self.wanted(app).await? else {
                return Ok(cx.finish(Changes::default()).await?);
            };
            let now = app.now();
            let is_dynamic = stored.record.kind == SegmentKind::Dynamic;
            let ready = Segment { status: SegmentStatus::Ready, calculated_at: Some(now), ..stored.record };
            let mut changes =
                Changes::from_iter([Write::PutSegment(Box::new(ready), Expect::Revision(stored.revision))]);
            if is_dynamic {
                let announced = FollowChanges::announced(self.workspace_id).enqueue(app.new_id(now), now);
                let later = FollowChanges::later(self.workspace_id).enqueue(app.new_id(now), now + LATER);
                for job in [announced, later] {
                    changes.push(Write::Job(JobWrite::EnqueueOnce(job)));
                }
            } else {
                // Its members changed all at once, which is no change of a contact.
                let dependents = graph.dependents(self.segment_id);
                let writes = app.calculate_all_anew(self.workspace_id, dependents, now).await;
                changes.extend(writes?);
            }
            let committed = if is_dynamic && filter.reads().present {
                let again = Self { rest: None, is_refresh: true, failures: 0, ..self };
                cx.again_at(now + app.settings().segment_refresh, &again, changes).await
            } else {
                cx.finish(changes).await.map_err(JobError::from)
            };
            match committed {
                Err(JobError::Commit(CommitError::Conflict)) => {}
                outcome => return outcome,
            }
        }
        // The segment keeps being changed.
        cx.again_at(app.now() + RETRY, &self, Changes::default()).await
    }

    /// Marks the segment as failed: its members cannot be found.
    async fn fail(self, cx: &JobContext, cause: &str) -> Result<(), JobError> {
        tracing::error!(cause, segment = %self.segment_id, "the members of a segment cannot be found");
        for _ in 0..MAX_COMMITS {
            let Some(stored) = self.wanted(&cx.app).await? else {
                return Ok(cx.finish(Changes::default()).await?);
            };
            let failed = Segment { status: SegmentStatus::Failed, ..stored.record };
            let put = Write::PutSegment(Box::new(failed), Expect::Revision(stored.revision));
            match cx.finish(Changes::from_iter([put])).await {
                Err(CommitError::Conflict) => {}
                outcome => return Ok(outcome?),
            }
        }
        cx.again_at(cx.app.now() + RETRY, &self, Changes::default()).await
    }
}
