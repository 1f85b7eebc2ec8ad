//! Jobs that were dated by a wrong clock.
//!
//! A clock that was ahead for a while, by hours or by ten years, leaves jobs that are due on that date. Each job
//! keeps what the clock said when it was dated, and `installation` keeps nearly the latest of these times. When
//! that lies in the future, at a start or while the process runs, the clock has been set back: every job that was
//! dated in the future is dated anew, as long after now as it was due after its date. A job that was due at once
//! is due at once.
//!
//! Jobs in work are left alone, because their claims name their due times.

use messaging_core::ids::{Id as _, JobId};
use messaging_core::time::{Monotonic, Timestamp};
use rusqlite::{Connection, params};

use super::dating::{JobKey, is_ahead};
use super::fault::Fault;
use super::lanes::LaneIndex;
use super::row;
use super::write_connection::WriteConnection;

/// Jobs that are looked at in one transaction: some ten milliseconds.
const SLICE: usize = 20_000;

/// Dates jobs anew, a slice of them, if the clock has been set back.
pub(super) fn redate(writing: &mut WriteConnection, now: Timestamp, monotonic: Monotonic) -> Result<(), Fault> {
    let known = writing.index().redating().latest;
    let latest = match known {
        Some(latest) => latest,
        None => writing.look_and_note(|connection, index| index.redating().latest(connection))?,
    };
    if writing.index().redating().resume_after.is_none() && is_ahead(latest, now) {
        tracing::warn!("the clock has been set back; jobs that were dated in the future are dated anew");
        writing.index().redating().resume_after = Some(JobKey::default());
    }
    let Some(after) = writing.index().redating().resume_after.take() else { return Ok(()) };
    let start = after.clone();
    let outcome = writing.undurably(|connection, index, _| redate_slice(connection, index, &after, now, monotonic));
    // What failed is done again from the same place.
    writing.index().redating().resume_after = outcome.as_ref().map_or(Some(start), Clone::clone);
    outcome.map(drop)
}

/// Answers where to go on.
fn redate_slice(
    connection: &Connection,
    index: &mut LaneIndex,
    after: &JobKey,
    now: Timestamp,
    monotonic: Monotonic,
) -> Result<Option<JobKey>, Fault> {
    let (mut count, mut last) = (0, after.clone());
    let mut misdated = Vec::new();
    {
        let mut statement = connection.prepare_cached(
            "SELECT lane, due_at, id, dated_at FROM jobs WHERE (lane, due_at, id) > (?1, ?2, ?3)
             ORDER BY lane, due_at, id LIMIT ?4",
        )?;
        let mut rows = statement.query(params![after.lane, after.due_at, after.id, row::sql_limit(SLICE)])?;
        while let Some(row) = rows.next()? {
            count += 1;
            let (id, dated_at): (JobId, i64) = (row::id(row, 2)?, row.get(3)?);
            last = JobKey { lane: row.get(0)?, due_at: row.get(1)?, id: id.to_bytes().to_vec() };
            if dated_at > now.as_millis() && last.due_at > now.as_millis() && index.lease_end(id, monotonic).is_none() {
                misdated.push((last.clone(), id, dated_at));
            }
        }
    }
    let mut statement = connection
        .prepare_cached("UPDATE jobs SET due_at = ?4, dated_at = ?5 WHERE lane = ?1 AND due_at = ?2 AND id = ?3")?;
    for (job, id, dated_at) in misdated {
        // A claim that ran out named the job by its former date.
        index.end_claim(&job.lane, id);
        let wait = job.due_at.saturating_sub(dated_at).max(0);
        let due_at = now.as_millis().saturating_add(wait);
        statement.execute(params![job.lane, job.due_at, job.id, due_at, now.as_millis()])?;
    }
    if count == SLICE {
        return Ok(Some(last));
    }
    index.look_at_all(connection)?;
    index.redating().write(connection, now.as_millis())?;
    Ok(None)
}
