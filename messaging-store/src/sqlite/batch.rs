//! One transaction for many changes, each of them all or nothing.
//!
//! A savepoint around every set of changes would cost more than most of them: SQLite copies each page
//! it touches. So a batch is first applied without any, in the hope that nothing conflicts. A set whose
//! first write conflicts has left nothing and is simply refused. Only when a later write fails is the
//! whole batch rolled back and applied again, this time with savepoints.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use messaging_core::changes::{AutomationWrite, Changes, Document, DocumentKey, Write};
use messaging_core::ports::store::{CommitBatch, CommitObserver};

use super::apply::apply;
use super::connection::Overwriting;
use super::fault::Fault;
use super::write_connection::WriteConnection;
use super::writer::Commit;
use crate::observed::Observed;
use crate::tables::counters;

/// Maximum time for background work in a batch of its own: requests that come meanwhile wait for it.
const BACKGROUND_SLICE: Duration = Duration::from_millis(5);

/// Maximum time for background work in a batch together with requests.
const RIDING_SLICE: Duration = Duration::from_millis(2);

/// Commits waiting changes, many sets at a time.
pub(super) struct WriteBatch {
    observed: Arc<Observed>,
    /// Kept for its capacity.
    batch: Vec<(Commit, Result<(), Fault>)>,
}

/// Kind of failure of a set of changes.
enum ApplyFailure {
    /// Refused before anything was written.
    Clean(Fault),
    /// Something was written and has to be undone.
    Dirty(Fault),
}

impl WriteBatch {
    /// Creates a batch whose commits are reported to the observer.
    pub(super) fn new(observed: Arc<Observed>) -> Self {
        Self { observed, batch: Vec::new() }
    }

    /// Commits all of the foreground and as much of the background as fits, and answers the callers.
    pub(super) fn commit(
        &mut self,
        writing: &mut WriteConnection,
        foreground: &mut VecDeque<Commit>,
        background: &mut VecDeque<Commit>,
    ) {
        if foreground.is_empty() && background.is_empty() {
            return;
        }
        if writing.health.fault().is_some() {
            for commit in foreground.drain(..).chain(background.drain(..)) {
                commit.answer(Err(Fault::Unhealthy));
            }
            return;
        }
        let mut batch = std::mem::take(&mut self.batch);
        let outcome = writing.begin().and_then(|()| {
            let clean = Self::apply_in_hope(writing, foreground, background, &mut batch);
            if !clean {
                writing.roll_back();
                writing.begin()?;
                Self::apply_with_care(writing, &mut batch)?;
            }
            let has_woken = writing.subscribers.settle(&writing.connection, &mut writing.index)?;
            writing.index.settle(&writing.connection)?;
            counters::settle(&mut &writing.connection, &writing.deltas)?;
            let began = Instant::now();
            writing.statement("COMMIT").map_err(Fault::of_commit)?;
            Ok((has_woken, began.elapsed()))
        });
        match outcome {
            Ok((has_woken, sync)) => {
                if has_woken {
                    writing.tell_work();
                }
                writing.index.forget_undo();
                writing.deltas.clear();
                writing.checkpoints.note_growth();
                if let Some(observer) = self.observed.get() {
                    tell(observer.as_ref(), &batch, sync);
                }
                for (commit, outcome) in batch.drain(..) {
                    commit.answer(outcome);
                }
            }
            Err(fault) => {
                writing.roll_back();
                writing.health.report(&fault);
                let cause = Arc::new(fault);
                let unstarted = foreground.drain(..).chain(background.drain(..));
                for commit in batch.drain(..).map(|(commit, _)| commit).chain(unstarted) {
                    commit.answer(Err(Fault::Transaction(Arc::clone(&cause))));
                }
            }
        }
        self.batch = batch;
    }

    /// Applies everything without savepoints; returns false if a change has to be undone. `batch` then holds the
    /// commits that were taken, applied or not.
    fn apply_in_hope(
        writing: &mut WriteConnection,
        foreground: &mut VecDeque<Commit>,
        background: &mut VecDeque<Commit>,
        batch: &mut Vec<(Commit, Result<(), Fault>)>,
    ) -> bool {
        let mut clean = true;
        let mut take = |writing: &mut WriteConnection, commit: Commit| {
            let outcome = if clean { Self::apply(writing, &commit.changes) } else { Ok(()) };
            let outcome = match outcome {
                Ok(()) => Ok(()),
                Err(ApplyFailure::Clean(fault)) => Err(fault),
                Err(ApplyFailure::Dirty(fault)) => {
                    clean = false;
                    Err(fault)
                }
            };
            batch.push((commit, outcome));
            clean
        };
        let slice = if foreground.is_empty() { BACKGROUND_SLICE } else { RIDING_SLICE };
        for commit in foreground.drain(..) {
            take(writing, commit);
        }
        let started = Instant::now();
        while let Some(commit) = background.pop_front() {
            if !take(writing, commit) || started.elapsed() >= slice {
                break;
            }
        }
        clean
    }

    /// Applies the batch with a savepoint around each set of changes.
    fn apply_with_care(writing: &mut WriteConnection, batch: &mut [(Commit, Result<(), Fault>)]) -> Result<(), Fault> {
        for (commit, outcome) in batch {
            writing.statement("SAVEPOINT one")?;
            *outcome = match Self::apply(writing, &commit.changes) {
                Ok(()) => Ok(()),
                Err(ApplyFailure::Clean(fault) | ApplyFailure::Dirty(fault)) if !writing.connection.is_autocommit() => {
                    writing.statement("ROLLBACK TO one")?;
                    Err(fault)
                }
                // SQLite rolled the whole transaction back: the disk is full, or worse.
                Err(ApplyFailure::Clean(fault) | ApplyFailure::Dirty(fault)) => return Err(fault),
            };
            writing.statement("RELEASE one")?;
        }
        Ok(())
    }

    /// Applies one set of changes.
    fn apply(writing: &mut WriteConnection, changes: &Changes) -> Result<(), ApplyFailure> {
        let (mark, counted) = (writing.index.mark(), writing.deltas.mark());
        let begun = writing.subscribers.begin(changes);
        let is_reply = |write: &&Write| matches!(write, Write::Remember(_));
        // The stored reply causes the most conflicts, and no other write reads it: tried first, its conflict leaves
        // nothing to undo.
        let (first, rest) = (changes.writes().iter().filter(is_reply), changes.writes().iter());
        for (done, write) in first.chain(rest.filter(|write| !is_reply(write))).enumerate() {
            let prepared = if is_erasure(write) { writing.erase() } else { writing.overwrite(overwriting_for(write)) };
            let applied = prepared.and_then(|()| {
                let (index, deltas) = (&mut writing.index, &mut writing.deltas);
                apply(&writing.connection, index, deltas, &mut writing.subscribers, write)
            });
            if let Err(fault) = applied {
                writing.index.undo_to(mark);
                writing.deltas.undo_to(counted);
                writing.subscribers.undo_to(begun);
                let one_statement = !matches!(
                    write,
                    Write::InsertMessage(..)
                        | Write::PutContacts(..)
                        | Write::AppendProductEvents(..)
                        | Write::Put(Document::List(_) | Document::Campaign(_), _)
                        | Write::PutSegment(..)
                        | Write::InsertWaiting(..)
                        | Write::TakeWaiting(..)
                        | Write::PutAutomation(..)
                        | Write::Automation(AutomationWrite::PutRun(..) | AutomationWrite::MoveRuns(..))
                );
                let clean = done == 0 && one_statement && matches!(fault, Fault::Conflict);
                return Err(if clean { ApplyFailure::Clean(fault) } else { ApplyFailure::Dirty(fault) });
            }
        }
        Ok(())
    }
}

/// Reports durable commits to the observer, before their callers hear: an observer may count them by then.
fn tell(observer: &dyn CommitObserver, batch: &[(Commit, Result<(), Fault>)], sync: Duration) {
    let mut commits = 0;
    for (commit, _) in batch.iter().filter(|(_, outcome)| outcome.is_ok()) {
        commits += 1;
        observer.committed(&commit.changes, commit.waited());
    }
    if commits > 0 {
        observer.synced(CommitBatch { commits, sync });
    }
}

/// Returns true if a write erases personal data.
fn is_erasure(write: &Write) -> bool {
    matches!(
        write,
        Write::DeleteContact(..)
            | Write::DeleteProductEvents(..)
            | Write::Automation(AutomationWrite::DeleteRuns(..))
            | Write::Delete(DocumentKey::Url(..))
            | Write::RedactMessage(..)
            | Write::EraseCopy(..)
            | Write::ForgetRequestBodies(..)
            | Write::ForgetQuarantined(..)
    )
}

/// Replaced personal data is overwritten thoroughly, too.
fn overwriting_for(write: &Write) -> Overwriting {
    if matches!(write, Write::PutContacts(..)) { Overwriting::Pages } else { Overwriting::Rows }
}
