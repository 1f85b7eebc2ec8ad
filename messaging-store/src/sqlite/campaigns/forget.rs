//! Removal of the rows of removed campaigns, and of sends that no cap counts any more.

use std::sync::PoisonError;

use messaging_core::domain::delivery::recipient_time::frequency_cap::WEEK;
use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::super::Sqlite;
use super::super::audiences;
use super::super::fault::Fault;
use super::super::query::{many, one};
use crate::pages::sql_limit;

/// Number of rows that a sweep removes in one transaction.
const SLICE: usize = 500;

/// Number of rows of sends that one look examines.
const WINDOW: usize = 10_000;

/// Statements that remove rows of a removed campaign, `?1`, at most `?2`; tried in their order until one finds some.
const OF_A_CAMPAIGN: [&str; 6] = [
    "DELETE FROM campaign_waiting WHERE (campaign, track, due_at, message) IN (
         SELECT campaign, track, due_at, message FROM campaign_waiting WHERE campaign = ?1 LIMIT ?2)",
    "DELETE FROM campaign_engagements WHERE (campaign, seen, message) IN (
         SELECT campaign, seen, message FROM campaign_engagements WHERE campaign = ?1 LIMIT ?2)",
    "DELETE FROM campaign_progress WHERE campaign = ?1 AND ?2 > 0",
    "DELETE FROM campaign_counts WHERE (campaign, variant) IN
         (SELECT campaign, variant FROM campaign_counts WHERE campaign = ?1 LIMIT ?2)",
    "DELETE FROM campaign_links WHERE (campaign, variant, link) IN
         (SELECT campaign, variant, link FROM campaign_links WHERE campaign = ?1 LIMIT ?2)",
    "DELETE FROM campaign_activity WHERE (campaign, quarter) IN
         (SELECT campaign, quarter FROM campaign_activity WHERE campaign = ?1 LIMIT ?2)",
];

/// A row of sends: contact, channel, revision.
type SendsKey = (i64, i64, i64);

impl Sqlite {
    /// Removes rows of one removed campaign, and if there are none, the campaign; returns the number of rows removed.
    pub(super) async fn forget_removed_campaigns(&self, limit: usize) -> Result<u64, StoreError> {
        const REMOVED: &str = "SELECT n FROM campaigns INDEXED BY campaigns_removed WHERE removed LIMIT 1";
        let removed = self.readers.read(|connection| one(connection, REMOVED, [], |row| Ok(row.get(0)?))).await?;
        let Some(n): Option<i64> = removed else { return Ok(0) };
        self.forget_in_slices(limit, SLICE, move |connection, slice| forget(connection, n, slice)).await
    }

    /// Removes sends that are so old that no cap counts them; examines the rows after those of the last time.
    pub(super) async fn forget_contact_sends(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        if limit == 0 {
            return Ok(0);
        }
        let after = *self.due.sends.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (stale, reached) = self.readers.read(move |connection| stale_sends(connection, after, now, limit)).await?;
        let mut forgotten = 0;
        for slice in stale.chunks(SLICE) {
            let slice = slice.to_vec();
            forgotten += self.writer.undurably(move |connection| forget_sends(connection, &slice)).await?;
        }
        *self.due.sends.0.lock().unwrap_or_else(PoisonError::into_inner) = reached;
        Ok(forgotten)
    }
}

fn forget(connection: &Connection, n: i64, limit: usize) -> Result<u64, Fault> {
    for sql in OF_A_CAMPAIGN {
        let gone = connection.prepare_cached(sql)?.execute(params![n, sql_limit(limit)])?;
        if gone > 0 {
            return Ok(gone as u64);
        }
    }
    let gone = audiences::forget_campaign(connection, n, limit)?;
    if gone > 0 {
        return Ok(gone as u64);
    }
    // Last: its number is free from then on.
    Ok(connection.prepare_cached("DELETE FROM campaigns WHERE n = ?1 AND removed")?.execute([n])? as u64)
}

/// Returns rows whose sends are all older than any cap counts, and the row that was examined last.
fn stale_sends(
    connection: &Connection,
    after: (i64, i64),
    now: Timestamp,
    limit: usize,
) -> Result<(Vec<SendsKey>, (i64, i64)), Fault> {
    const SQL: &str = "SELECT contact, channel, revision, last_at FROM contact_sends
        WHERE (contact, channel) > (?1, ?2) ORDER BY contact, channel LIMIT ?3";
    let rows = many(connection, SQL, params![after.0, after.1, sql_limit(WINDOW)], |row| {
        let is_stale = row.get::<_, i64>(3)? <= (now - WEEK).as_seconds();
        Ok(((row.get(0)?, row.get(1)?, row.get(2)?), is_stale))
    })?;
    let mut reached = (i64::MIN, i64::MIN);
    let is_end = rows.len() < WINDOW;
    let mut stale: Vec<SendsKey> = Vec::new();
    for (key, is_stale) in rows {
        if is_stale {
            if stale.len() == limit {
                return Ok((stale, reached));
            }
            stale.push(key);
        }
        reached = (key.0, key.1);
    }
    Ok((stale, if is_end { (i64::MIN, i64::MIN) } else { reached }))
}

fn forget_sends(connection: &Connection, stale: &[SendsKey]) -> Result<u64, Fault> {
    let mut delete =
        connection.prepare_cached("DELETE FROM contact_sends WHERE contact = ?1 AND channel = ?2 AND revision = ?3")?;
    let mut forgotten = 0;
    for (contact, channel, revision) in stale {
        forgotten += delete.execute([contact, channel, revision])? as u64;
    }
    Ok(forgotten)
}
