//! Making jobs due that wait for something: for an operation or a job that asks for it, and with notes for automations.

use messaging_core::changes::JobPlace;
use messaging_core::domain::delivery::lane::Lane;
use messaging_core::ids::{Id as _, JobId};
use messaging_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::fault::Fault;
use super::lanes::LaneIndex;
use super::row;

/// Makes the jobs of a lane due; answers whether any is due earlier than before. Those that are claimed keep their due
/// time, which their handle names, until they are put back.
pub(super) fn wake_lane(
    connection: &Connection,
    index: &mut LaneIndex,
    lane: &Lane,
    at: Timestamp,
) -> Result<bool, Fault> {
    let mut statement = connection.prepare_cached("SELECT due_at, id FROM jobs WHERE lane = ?1")?;
    let jobs = statement.query_map([lane.as_str()], |row| Ok((row::time(row, 0), row::id(row, 1))))?;
    let mut has_woken = false;
    for job in jobs.collect::<Result<Vec<_>, _>>()? {
        let (due_at, id): (Timestamp, JobId) = (job.0?, job.1?);
        if index.wake_when_put_back(id) || due_at <= at {
            continue;
        }
        has_woken |= date(connection, index, lane, (due_at, id), at)?;
    }
    Ok(has_woken)
}

/// Makes jobs due that are not due yet and not claimed.
pub(super) fn make_due(
    connection: &Connection,
    index: &mut LaneIndex,
    jobs: &[JobPlace],
    at: Timestamp,
) -> Result<(), Fault> {
    for job in jobs.iter().filter(|job| job.due_at > at) {
        if !index.is_leased(job.id) {
            date(connection, index, &job.lane, (job.due_at, job.id), at)?;
        }
    }
    Ok(())
}

/// Dates a job anew; answers whether it is there.
fn date(
    connection: &Connection,
    index: &mut LaneIndex,
    lane: &Lane,
    (due_at, id): (Timestamp, JobId),
    at: Timestamp,
) -> Result<bool, Fault> {
    let rows = connection
        .prepare_cached("UPDATE jobs SET due_at = ?4, dated_at = ?4 WHERE lane = ?1 AND due_at = ?2 AND id = ?3")?
        .execute(params![lane.as_str(), due_at.as_millis(), id.to_bytes(), at.as_millis()])?;
    if rows == 0 {
        return Ok(false);
    }
    index.redating().note(connection, at)?;
    index.note_added(lane.as_str(), at);
    Ok(true)
}
