//! What is known of when jobs were dated; see [`super::redating`].

use messaging_core::time::Timestamp;
use rusqlite::Connection;

use super::fault::Fault;
use super::installation_values;

/// By so many milliseconds the clock may be behind what it said before, and nothing is done; the latest time is
/// written once in as many.
const TOLERANCE: i64 = 60_000;

/// A clock that says less was never set (2020-01-01): what it says is no reason to change a date.
const BELIEVED: i64 = 1_577_836_800_000;

/// What is known about the dates of jobs.
#[derive(Debug, Default)]
pub(super) struct Redating {
    /// The latest time that is written down; `None` when that has to be read.
    pub(super) latest: Option<i64>,
    /// The job after which to go on, while jobs are dated anew.
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
    /// Something was dated. Writes the time down when it is much later than what was written last.
    pub(super) fn note(&mut self, connection: &Connection, time: Timestamp) -> Result<(), Fault> {
        let time = time.as_millis();
        if self.latest.is_none_or(|latest| time > latest.saturating_add(TOLERANCE))
            && time > self.latest(connection)?.saturating_add(TOLERANCE)
        {
            self.write(connection, time)?;
        }
        Ok(())
    }

    /// A job was met that is not due yet and was dated at `dated_at`.
    pub(super) fn found(&mut self, dated_at: Timestamp, now: Timestamp) {
        if self.resume_after.is_none() && is_ahead(dated_at.as_millis(), now) {
            self.resume_after = Some(JobKey::default());
        }
    }

    /// The row may have been changed, by somebody else or by a roll-back.
    pub(super) fn forget(&mut self) {
        self.latest = None;
    }

    /// Whether jobs are still to be dated anew.
    pub(super) fn is_under_way(&self) -> bool {
        self.resume_after.is_some()
    }

    /// The latest time that is written down.
    pub(super) fn latest(&mut self, connection: &Connection) -> Result<i64, Fault> {
        if let Some(latest) = self.latest {
            return Ok(latest);
        }
        let written = installation_values::get(connection, installation_values::LATEST)?;
        let latest = written.and_then(|text| text.parse().ok()).unwrap_or(0);
        self.latest = Some(latest);
        Ok(latest)
    }

    /// Writes down that a time is the latest.
    pub(super) fn write(&mut self, connection: &Connection, time: i64) -> Result<(), Fault> {
        installation_values::set(connection, installation_values::LATEST, &time.to_string())?;
        self.latest = Some(time);
        Ok(())
    }
}

/// Whether the clock must have been set back since it said a time.
pub(super) fn is_ahead(time: i64, now: Timestamp) -> bool {
    let now = now.as_millis();
    now >= BELIEVED && time > now.saturating_add(TOLERANCE)
}
