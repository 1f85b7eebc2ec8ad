//! The log of events on PostgreSQL: entries in the order of their commits.
//!
//! The position of an entry consists of the era, the number of the transaction that wrote it, and a number of a
//! sequence. Transactions end in another order than they begin in; so only entries of transactions are read that are
//! older than the oldest running one. A transaction that writes for long keeps the newest entries back; a reader waits
//! a moment for it. A snapshot covers all databases of the cluster: if it keeps something back, the reader finds out
//! which of the transactions are of this database.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use messaging_core::domain::message::{Message, MessageEvent};
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::{LogPosition, StoreCursor, StoreError};
use messaging_core::time::Timestamp;
use tokio_postgres::{Client, Row};

use super::Postgres;
use super::fault::Fault;
use crate::pages::sql_limit;
use crate::row::get;
use crate::sql::{key, params};
use crate::tables::event_log::LogRows;
use crate::tables::messages::{MESSAGE_COLUMNS, event_columns, with_event};

/// Time that a reader waits for transactions that keep back entries that exist already.
const PATIENCE: Duration = Duration::from_millis(800);

/// Time that a reader waits between two looks: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LAST_PAUSE: Duration = Duration::from_millis(40);

/// Begins an era if this is another cluster, or another timeline, than the one last written to; does nothing if there
/// is no schema yet. Runs before anything is written over a connection.
pub(super) async fn begin_era(connection: &Client) -> Result<(), tokio_postgres::Error> {
    const SQL: &str = "DO $$ BEGIN IF to_regclass('log_era') IS NOT NULL THEN PERFORM begin_log_era(); END IF; END $$";
    connection.batch_execute(SQL).await
}

/// The offset of an entry in the log: its era, the transaction that wrote it, and its number in the sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LogOffset {
    era: i16,
    xid: i64,
    n: i64,
}

impl LogOffset {
    /// Before all stored entries.
    const START: Self = Self { era: -1, xid: 0, n: 0 };

    /// Offset of a position; any offset if the position is from another store.
    fn of(position: LogPosition) -> Self {
        let bits = u128::from_be_bytes(position.to_bytes());
        Self {
            era: i16::try_from(bits >> 112).unwrap_or(i16::MAX),
            xid: i64::try_from(bits >> 64 & ((1 << 48) - 1)).unwrap_or(i64::MAX),
            n: i64::try_from(bits & u128::from(u64::MAX)).unwrap_or(i64::MAX),
        }
    }

    fn position(self) -> LogPosition {
        let bits = |number: i64| u128::from(number.max(0).unsigned_abs());
        let era = bits(i64::from(self.era)) << 112;
        StoreCursor::from_bytes((era | (bits(self.xid) & ((1 << 48) - 1)) << 64 | bits(self.n)).to_be_bytes())
    }

    fn at(row: &Row, column: usize) -> Result<Self, Fault> {
        Ok(Self { era: get(row, column)?, xid: get(row, column + 1)?, n: get(row, column + 2)? })
    }
}

/// Pauses, each longer than the last, while transactions keep entries back.
struct Backoff {
    since: Instant,
    pause: Duration,
    /// Newest transaction whose entries are waited for, because they existed at the first look.
    newest: Option<i64>,
    /// True if the reader finds out which transactions are of this database: not at the first look.
    is_close: bool,
}

impl Backoff {
    fn new() -> Self {
        Self { since: Instant::now(), pause: FIRST_PAUSE, newest: None, is_close: false }
    }

    /// Waits, and returns true, if the reader is to look again. `kept_back`: oldest and newest transaction whose
    /// entries exist and are kept back.
    async fn waits_for(&mut self, kept_back: Option<(i64, i64)>) -> bool {
        let Some((oldest, newest)) = kept_back else { return false };
        if oldest > *self.newest.get_or_insert(newest) || self.since.elapsed() >= PATIENCE {
            return false;
        }
        if self.is_close {
            tokio::time::sleep(self.pause).await;
            self.pause = (self.pause * 2).min(LAST_PAUSE);
        }
        self.is_close = true;
        true
    }
}

#[async_trait]
impl LogRows for Postgres {
    async fn entries_after(
        &self,
        workspace: WorkspaceId,
        after: Option<LogPosition>,
        limit: usize,
    ) -> Result<Vec<(LogPosition, MessageEvent, Message)>, StoreError> {
        // Entries that are kept back stand behind all others. The limit counts rows of the log, followed entry by
        // entry, because an event is kept longer than its entry.
        const SQL: &str = concat!(
            "SELECT ",
            event_columns!(),
            ", l.era, l.xid, l.n, l.era < (SELECT era FROM log_era)
                   OR l.xid < (SELECT CASE WHEN $6 THEN log_horizon(pg_current_snapshot())
                       ELSE pg_snapshot_xmin(pg_current_snapshot())::text::bigint END)
               FROM (SELECT era, xid, n, message AS of_message, at AS event_at, event FROM event_log
                     WHERE workspace = $1 AND (era, xid, n) > ($2, $3, $4) ORDER BY era, xid, n LIMIT $5) AS l
               CROSS JOIN LATERAL (SELECT id, at, kind, meta FROM message_events
                     WHERE workspace = $1 AND message = of_message AND at = event_at AND id = event OFFSET 0) AS e
               CROSS JOIN LATERAL (SELECT * FROM messages WHERE workspace = $1 AND id = of_message OFFSET 0) AS m
               ORDER BY l.era, l.xid, l.n"
        );
        let LogOffset { era, xid, n } = after.map_or(LogOffset::START, LogOffset::of);
        let mut backoff = Backoff::new();
        loop {
            let bounds = params![key(workspace), era, xid, n, sql_limit(limit), backoff.is_close];
            let mut rows = self
                .reads
                .many(SQL, bounds, |row| {
                    let (event, message) = with_event(workspace, row)?;
                    let is_over: bool = get(row, MESSAGE_COLUMNS + 7)?;
                    Ok((LogOffset::at(row, MESSAGE_COLUMNS + 4)?, is_over, event, message))
                })
                .await?;
            let over = rows.iter().take_while(|(_, is_over, _, _)| *is_over).count();
            let kept_back = rows[over..].first().zip(rows.last()).map(|(first, last)| (first.0.xid, last.0.xid));
            if !backoff.waits_for(kept_back).await {
                rows.truncate(over);
                return Ok(rows.into_iter().map(|(at, _, event, message)| (at.position(), event, message)).collect());
            }
        }
    }

    async fn position_at(&self, workspace: WorkspaceId, time: Timestamp) -> Result<LogPosition, StoreError> {
        // The first entry from the time on is the first of its piece, in one of the pieces from there on. It may not
        // stay the first while older transactions run.
        const SQL: &str = "WITH RECURSIVE pieces (piece) AS (
                SELECT min(at >> 22) FROM event_log WHERE (at >> 22) >= ($2::bigint >> 22)
                UNION ALL
                SELECT (SELECT min(at >> 22) FROM event_log WHERE (at >> 22) > piece) FROM pieces
                WHERE piece IS NOT NULL
            ), first (era, xid, n) AS (
                SELECT f.era, f.xid, f.n FROM pieces CROSS JOIN LATERAL (
                    SELECT era, xid, n FROM event_log WHERE (at >> 22) = piece AND workspace = $1 AND at >= $2
                    ORDER BY era, xid, n LIMIT 1) AS f
                ORDER BY era, xid, n LIMIT 1
            ), running (era, xid) AS (
                SELECT era, CASE WHEN $3 THEN log_horizon(pg_current_snapshot())
                    ELSE pg_snapshot_xmin(pg_current_snapshot())::text::bigint END FROM log_era
            )
            SELECT f.era, f.xid, f.n, r.era, r.xid,
                (SELECT xid FROM event_log WHERE workspace = $1 AND (era, xid) >= (r.era, r.xid)
                 ORDER BY era DESC, xid DESC LIMIT 1)
            FROM running r LEFT JOIN first f ON true";
        let mut backoff = Backoff::new();
        loop {
            let wanted = params![key(workspace), time.as_millis(), backoff.is_close];
            let found = self.reads.one(SQL, wanted, |row| {
                let first = if get::<Option<i16>>(row, 0)?.is_some() { Some(LogOffset::at(row, 0)?) } else { None };
                let end = LogOffset { era: get(row, 3)?, xid: get::<i64>(row, 4)? - 1, n: i64::MAX };
                Ok((first, end, get::<Option<i64>>(row, 5)?))
            });
            let (first, end, newest) = found.await?.ok_or(Fault::Malformed("the log has no era"))?;
            let kept_back = newest.map(|newest| (end.xid + 1, newest));
            if !backoff.waits_for(kept_back).await {
                let before_first = first.map(|first| LogOffset { n: first.n - 1, ..first });
                return Ok(before_first.map_or(end, |offset| offset.min(end)).position());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_back_in_their_order() {
        let offsets = [
            LogOffset { era: 0, xid: 0, n: 7 },
            LogOffset { era: 1, xid: 1, n: i64::MAX },
            LogOffset { era: 1, xid: 2, n: 0 },
            LogOffset { era: 1, xid: (1 << 48) - 1, n: 3 },
            LogOffset { era: i16::MAX, xid: 1, n: 1 },
        ];
        for offset in offsets {
            assert_eq!(LogOffset::of(offset.position()), offset);
        }
        assert!(offsets.is_sorted());
        assert!(offsets.map(|offset| offset.position().to_bytes()).is_sorted());
        let foreign = LogOffset::of(StoreCursor::from_bytes([0xFF; 16]));
        assert_eq!(foreign, LogOffset { era: i16::MAX, xid: (1 << 48) - 1, n: i64::MAX });
    }
}
