//! Latest date given to jobs, by which a clock that was set back is noticed; see [`super::redating`].

use messaging_core::time::Timestamp;
use rusqlite::Connection;

use super::fault::Fault;
use super::installation_values;

/// Milliseconds by which the clock may be behind an earlier time without effect; the latest time is also stored at most
/// once in that time.
const TOLERANCE: i64 = 60_000;

/// A clock before this (2020-01-01) was never set: its time is no reason to change a date.
const BELIEVED: i64 = 1_577_836_800_000;

/// State of the search for jobs with wrong dates.
#[derive(Debug, Default)]
pub(super) struct Redating {
    /// Latest time as stored; `None` if it has to be read.
    pub(super) latest: Option<i64>,
    /// Key of the job after which redating continues; `None` while no jobs are redated.
    pub(super) resume_after: Option<JobKey>,
}

/// The key of a job.
#[derive(Debug, Clone, Default)]
pub(super) struct JobKey {
    pub(super) lane: String,
    pub(super) due_at: i64,
    pub(super) id: Vec<u8>,
}

impl Redating {
    /// Notes that something was dated, and stores the time if it is much later than the stored one.
    pub(super) fn note(&mut self, connection: &Connection, time: Timestamp) -> Result<(), Fault> {
        let time = time.as_millis();
        if self.latest.is_none_or(|latest| time > latest.saturating_add(TOLERANCE))
            && time > self.latest(connection)?.saturating_add(TOLERANCE)
        {
            self.write(connection, time)?;
        }
        Ok(())
    }

    /// Notes a job that is not due yet and was dated at `dated_at`.
    pub(super) fn found(&mut self, dated_at: Timestamp, now: Timestamp) {
        if self.resume_after.is_none() && is_ahead(dated_at.as_millis(), now) {
            self.resume_after = Some(JobKey::default());
        }
    }

    /// Drops the cached time: the row may have been changed, by another program or by a roll-back.
    pub(super) fn forget(&mut self) {
        self.latest = None;
    }

    /// Returns true while jobs are being redated.
    pub(super) fn is_under_way(&self) -> bool {
        self.resume_after.is_some()
    }

    /// Returns the latest time as stored.
    pub(super) fn latest(&mut self, connection: &Connection) -> Result<i64, Fault> {
        if let Some(latest) = self.latest {
            return Ok(latest);
        }
        let written = installation_values::get(connection, installation_values::LATEST)?;
        let latest = written.and_then(|text| text.parse().ok()).unwrap_or(0);
        self.latest = Some(latest);
        Ok(latest)
    }

    /// Stores a time as the latest.
    pub(super) fn write(&mut self, connection: &Connection, time: i64) -> Result<(), Fault> {
        installation_values::set(connection, installation_values::LATEST, &time.to_string())?;
        self.latest = Some(time);
        Ok(())
    }
}

/// Returns true if the clock must have been set back since it showed a time.
pub(super) fn is_ahead(time: i64, now: Timestamp) -> bool {
    let now = now.as_millis();
    now >= BELIEVED && time > now.saturating_add(TOLERANCE)
}
