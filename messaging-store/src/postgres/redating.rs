//! Jobs that were dated by a wrong clock.
//!
//! Several processes follow the clock of the database, which may be set as well: it leaves jobs that are due on a date
//! that is years ahead. Each job stores the time when it was dated, and each place approximately the latest of these
//! times. If that is in the future, the clock has been set back: every job of the place that was dated in the future
//! gets a new date, as long after now as it was due after its old date.
//!
//! Jobs in work are left alone, because their claims name their due times.

use messaging_core::ids::Id as _;
use messaging_core::ports::store::Claim;
use messaging_core::time::Timestamp;
use uuid::Uuid;

use super::PostgresStore;
use super::fault::Fault;
use super::transaction::Transaction;
use crate::sql::{Params, params};

/// Number of jobs that get new dates in one transaction.
const SLICE: u64 = 20_000;

/// Milliseconds by which the clock may be behind an earlier time without effect; the latest time is also stored at most
/// once in that time.
const TOLERANCE: i64 = 60_000;

/// A clock before this (2020-01-01) was never set: its time is no reason to change a date.
const BELIEVED: i64 = 1_577_836_800_000;

/// Notes that a job of a place was dated, and stores the time if it is much later than the stored one.
pub(super) fn note(transaction: &mut Transaction, place: i16, time: i64) {
    if transaction.uses.is_later(place, time, TOLERANCE) {
        let sql = "UPDATE places SET latest = $2 WHERE place = $1 AND latest < $2::bigint - $3::bigint";
        transaction.run(sql, params![place, time, TOLERANCE]);
    }
}

/// Returns true if the clock must have been set back since it showed a time.
pub(super) fn is_ahead(time: i64, now: Timestamp) -> bool {
    let now = now.as_millis();
    now >= BELIEVED && time > now.saturating_add(TOLERANCE)
}

/// Query of the latest time given to jobs of a process's places, as far as it is stored.
pub(super) fn latest_of(term: i64) -> (&'static str, Params) {
    ("SELECT coalesce(max(latest), 0) FROM places WHERE term = $1", params![term])
}

impl PostgresStore {
    /// Gives jobs of this process's places new dates, if the clock was set back after the latest one was dated. Returns
    /// true if it was.
    pub(super) async fn redate(&self, claim: &Claim, latest: i64) -> Result<bool, Fault> {
        let leased: Vec<Uuid> = {
            let mut memory = self.lease_table.lock();
            // A claim that ran out names its job by its former date.
            let before = memory.leases.len();
            memory
                .leases
                .retain(|_, lease| lease.until > claim.monotonic || !is_ahead(lease.due_at.as_millis(), claim.now));
            memory.has_misdated |= memory.leases.len() < before;
            if !is_ahead(latest, claim.now) && !memory.has_misdated {
                return Ok(false);
            }
            memory.leases.keys().map(|id| Uuid::from_bytes(id.to_bytes())).collect()
        };
        tracing::warn!("the clock has been set back; jobs that were dated in the future are dated anew");
        let now = claim.now.as_millis();
        while self.redate_slice(now, &leased).await? >= SLICE {}
        self.lease_table.forget_latest();
        let mut memory = self.lease_table.lock();
        memory.has_misdated = false;
        memory.cursors.forget();
        drop(memory);
        Ok(true)
    }

    async fn redate_slice(&self, now: i64, leased: &[Uuid]) -> Result<u64, Fault> {
        const SQL: &str = "UPDATE jobs SET due_at = $2 + greatest(due_at - dated_at, 0), dated_at = $2,
                woken_at = CASE WHEN woken_at > $2 THEN $2 ELSE woken_at END
            WHERE (lane, due_at, id) IN (
                SELECT jobs.lane, jobs.due_at, jobs.id FROM places JOIN jobs ON jobs.place = places.place
                WHERE places.term = $1 AND jobs.due_at > $2 AND jobs.dated_at > $2 AND jobs.id <> ALL ($3) LIMIT $4)";
        let mut transaction = self.writes.begin().await?;
        let term = transaction.term();
        let slice = i64::try_from(SLICE).unwrap_or(i64::MAX);
        let touched = transaction.execute(SQL, params![term, now, leased.to_vec(), slice]).await?;
        if touched < SLICE {
            let sql = "UPDATE places SET latest = $2 WHERE term = $1 AND latest > $2";
            transaction.run(sql, params![term, now]);
        }
        transaction.commit().await?;
        Ok(touched)
    }
}
