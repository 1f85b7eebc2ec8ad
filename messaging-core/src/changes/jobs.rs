//! Jobs, added and given back.

use bytes::Bytes;

use crate::domain::lane::Lane;
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

/// When and with what a job goes on.
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
