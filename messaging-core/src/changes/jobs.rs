//! Jobs, added and given back.

use bytes::Bytes;

use crate::domain::delivery::lane::Lane;
use crate::ids::JobId;
use crate::time::Timestamp;

/// A job to be done, written in the transaction of its cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewJob {
    /// Its id; its time is when `due_at` was decided.
    pub id: JobId,
    /// Which job type runs it.
    pub kind: &'static str,
    /// What it shares concurrency, pace and back-off with; claims are fair over lanes.
    pub lane: Lane,
    /// Not before.
    pub due_at: Timestamp,
    /// The job's own data, JSON.
    pub payload: Bytes,
}

/// Where a job stands that nobody has claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobPlace {
    /// The job.
    pub id: JobId,
    /// Its lane.
    pub lane: Lane,
    /// When it is due.
    pub due_at: Timestamp,
}

/// Names a claimed job, and proves that the claim is still held.
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
    /// Not before.
    pub due_at: Timestamp,
    /// When this was decided, on the clock that `due_at` was taken from.
    pub at: Timestamp,
    /// Replaces the payload.
    pub payload: Bytes,
}

/// How a job that could not do its work goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PutBack {
    /// Not before.
    pub due_at: Timestamp,
    /// When this was decided, on the clock that `due_at` was taken from.
    pub at: Timestamp,
    /// Whether the run failed for a reason of its own; these are counted.
    pub is_failure: bool,
}

/// A change of the queue.
#[derive(Debug, Clone)]
pub enum JobWrite {
    /// Adds a job.
    Enqueue(NewJob),
    /// Adds a job unless its lane has one, claimed or not.
    EnqueueOnce(NewJob),
    /// Makes the jobs of a lane due, those that are in work as soon as they are put back; `at` is the present. Nothing
    /// happens when there are none.
    WakeLane(Lane, Timestamp),
    /// Makes some jobs due at once that are not due yet; the time is the present. Those that are claimed, gone or dated
    /// anew stay as they are.
    MakeDue(Vec<JobPlace>, Timestamp),
    /// Removes a claimed job. `LeaseLost` when the claim is not held.
    Finish(JobHandle),
    /// Removes a job that nobody has claimed; no conflict when it is gone already, one when it is claimed. Only for the
    /// process that claims jobs.
    Remove(JobPlace),
    /// Puts a claimed job back for later. `LeaseLost` when the claim is not held.
    Reschedule(JobHandle, Reschedule),
    /// Puts a claimed job back for later as it is stored: [`Save`](Self::Save) may have changed it since it was
    /// claimed. `LeaseLost` when the claim is not held.
    PutBack(JobHandle, PutBack),
    /// Replaces the payload of a claimed job, which stays claimed: what has to be known if its run does not end.
    /// `LeaseLost` when the claim is not held.
    Save(JobHandle, Bytes),
    /// Changes nothing. `LeaseLost` when the claim is not held. In the last commit before something leaves the process,
    /// and in every commit of a job that goes on after it: whoever lost its claim is stopped here.
    Hold(JobHandle),
}

impl JobWrite {
    /// The claim that must be held for the write; `None` for one that is not about a claimed job.
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
