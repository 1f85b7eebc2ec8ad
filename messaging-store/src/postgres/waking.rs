//! Making jobs due that wait for something: for an operation or a job that asks for it, and with notes for automations.
//!
//! Which process has claimed a job is not known here, so its key stays as it is: the row says since when it is wanted,
//! and the process that claims the lane finds it there, and takes the mark away before the job runs (`claim.rs`). Whoever
//! wakes a lane holds its lock with others, and taking the mark away waits for them all: a job that runs has a mark that
//! is new, or sees what it was woken for.

use messaging_core::changes::JobPlace;
use messaging_core::domain::delivery::lane::Lane;
use messaging_core::time::Timestamp;

use super::fault::Fault;
use super::places::lock_of;
use super::transaction::Transaction;
use crate::sql::{key, params};

/// Makes the jobs of a lane due; answers whether any may be due earlier than before. Those that are claimed are due when
/// they are put back.
#[expect(clippy::unused_async, reason = "whether it looks first is its own business")]
pub(super) async fn wake_lane(transaction: &mut Transaction, lane: &Lane, at: Timestamp) -> Result<bool, Fault> {
    transaction.run("SELECT pg_advisory_xact_lock_shared($1)", params![lock_of(lane)]);
    transaction.run(
        "UPDATE jobs SET woken_at = $2 WHERE lane = $1 AND woken_at IS NULL",
        params![lane.as_str().to_owned(), at.as_millis()],
    );
    transaction.has_woken = true;
    Ok(true)
}

/// Makes jobs due that are not due yet, unless they are woken already. A claimed job was due when it was claimed, so none of
/// them is touched.
pub(super) fn make_due(transaction: &mut Transaction, jobs: &[JobPlace], at: Timestamp) {
    transaction.run(
        "UPDATE jobs SET woken_at = $4 FROM unnest($1::text[], $2::bigint[], $3::uuid[]) AS key (lane, due_at, id)
         WHERE jobs.lane = key.lane AND jobs.due_at = key.due_at AND jobs.id = key.id AND jobs.due_at > $4
             AND woken_at IS NULL",
        params![
            jobs.iter().map(|job| job.lane.as_str().to_owned()).collect::<Vec<_>>(),
            jobs.iter().map(|job| job.due_at.as_millis()).collect::<Vec<_>>(),
            jobs.iter().map(|job| key(job.id)).collect::<Vec<_>>(),
            at.as_millis(),
        ],
    );
    transaction.has_woken = true;
}
