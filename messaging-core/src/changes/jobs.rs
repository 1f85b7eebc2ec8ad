//! Jobs, added and given back.

use bytes::Bytes;

use crate::domain::delivery::lane::Lane;
use crate::ids::JobId;
use crate::time::Timestamp;

/// A job to be done, written in the transaction of its cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewJob {
    /// Id of the job; its time is when `due_at` was decided.
    pub id: JobId,
    /// Name of the job type that runs it.
    pub kind: &'static str,
    /// Lane of jobs that share concurrency, pace and back-off; claims are fair over lanes.
    pub lane: Lane,
    /// Earliest time of its run.
    pub due_at: Timestamp,
    /// The job's own data, JSON.
    pub payload: Bytes,
}

/// Key of a job that no process has claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobPlace {
    /// The job.
    pub id: JobId,
    /// Its lane.
    pub lane: Lane,
    /// When it is due.
    pub due_at: Timestamp,
}

/// Key of a claimed job, which proves that the claim is still held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobHandle {
    /// The job.
    pub id: JobId,
    /// Its lane.
    pub lane: Lane,
    /// When it was due.
    pub due_at: Timestamp,
    /// Fencing token of the claim; a later claim of the same job has another.
    pub token: u64,
}

/// Time and payload with which a job continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reschedule {
    /// Earliest time of the next run.
    pub due_at: Timestamp,
    /// When this was decided, on the clock that `due_at` was taken from.
    pub at: Timestamp,
    /// New payload.
    pub payload: Bytes,
}

/// Continuation of a job that could not do its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PutBack {
    /// Earliest time of the next run.
    pub due_at: Timestamp,
    /// When this was decided, on the clock that `due_at` was taken from.
    pub at: Timestamp,
    /// True if the run itself failed; such runs are counted.
    pub is_failure: bool,
}

/// A change of the queue.
#[derive(Debug, Clone)]
pub enum JobWrite {
    /// Adds a job.
    Enqueue(NewJob),
    /// Adds a job unless its lane has one, claimed or not.
    EnqueueOnce(NewJob),
    /// Makes the jobs of a lane due, claimed ones as soon as they are put back; `at` is the present. No conflict if
    /// there are none.
    WakeLane(Lane, Timestamp),
    /// Makes some jobs due at once that are not due yet; the time is the present. Claimed, deleted and rescheduled jobs
    /// stay as they are.
    MakeDue(Vec<JobPlace>, Timestamp),
    /// Removes a claimed job. `LeaseLost` if the claim is not held.
    Finish(JobHandle),
    /// Removes an unclaimed job; no conflict if it is gone already, one if it is claimed. Only for the process that
    /// claims jobs.
    Remove(JobPlace),
    /// Puts a claimed job back for later. `LeaseLost` if the claim is not held.
    Reschedule(JobHandle, Reschedule),
    /// Puts a claimed job back for later with its stored payload: [`Save`](Self::Save) may have changed it since it was
    /// claimed. `LeaseLost` if the claim is not held.
    PutBack(JobHandle, PutBack),
    /// Replaces the payload of a claimed job, which stays claimed: state that must survive a run that does not end.
    /// `LeaseLost` if the claim is not held.
    Save(JobHandle, Bytes),
    /// Changes nothing. `LeaseLost` if the claim is not held. Part of the last commit before something leaves the
    /// process, and of every later commit of a job that continues after it: a process that lost its claim is stopped
    /// here.
    Hold(JobHandle),
}

impl JobWrite {
    /// Returns the claim that must be held for the write; `None` if it is not about a claimed job.
    pub(super) const fn claim(&self) -> Option<&JobHandle> {
        match self {
            Self::Finish(handle)
            | Self::Reschedule(handle, _)
            | Self::PutBack(handle, _)
            | Self::Save(handle, _)
            | Self::Hold(handle) => Some(handle),
            _ => None,
        }
    }
}
