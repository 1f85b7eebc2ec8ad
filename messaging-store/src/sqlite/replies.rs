//! Remembered answers to requests with an Idempotency-Key.

use std::sync::Arc;

use async_trait::async_trait;
use messaging_core::changes::{Reply, ReplyKey};
use messaging_core::ports::store::{Replies, StoreError};
use messaging_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::SqliteStore;
use super::due_rows::{Dated, WINDOW};
use super::fault::{Fault, expect_one};
use super::query::{many, one};
use super::row::{sql_limit, time};

/// How many rows a sweep removes in one transaction.
const SLICE: usize = 200;

pub(super) fn remember(connection: &Connection, reply: &Reply) -> Result<(), Fault> {
    if insert(connection, reply)? == 1 {
        return Ok(());
    }
    // Taken: by a reply that is still good, or by one that the sweep has not come to yet.
    let key = &reply.key;
    let rows = connection
        .prepare_cached("DELETE FROM replies WHERE key = ?1 AND credential = ?2 AND route = ?3 AND expires_at <= ?4")?
        .execute(params![key.key, key.credential, key.route, reply.created_at.as_millis()])?;
    expect_one(rows)?;
    expect_one(insert(connection, reply)?)
}

fn insert(connection: &Connection, reply: &Reply) -> Result<usize, Fault> {
    Ok(connection
        .prepare_cached(
            "INSERT OR IGNORE INTO replies
                 (key, credential, route, created_at, expires_at, fingerprint, status, content_type, body)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute(params![
            reply.key.key,
            reply.key.credential,
            reply.key.route,
            reply.created_at.as_millis(),
            reply.expires_at.as_millis(),
            reply.fingerprint.to_be_bytes(),
            reply.status,
            reply.content_type,
            &reply.body[..]
        ])?)
}

#[async_trait]
impl Replies for SqliteStore {
    async fn reply(&self, key: &ReplyKey, now: Timestamp) -> Result<Option<Reply>, StoreError> {
        const SQL: &str = "SELECT created_at, expires_at, fingerprint, status, content_type, body FROM replies
            WHERE key = ?1 AND credential = ?2 AND route = ?3 AND expires_at > ?4";
        let key = key.clone();
        self.readers
            .point_read(move |connection| {
                let wanted = params![key.key, key.credential, key.route, now.as_millis()];
                one(connection, SQL, wanted, |row| {
                    Ok(Reply {
                        key: key.clone(),
                        created_at: time(row, 0)?,
                        expires_at: time(row, 1)?,
                        fingerprint: u128::from_be_bytes(row.get(2)?),
                        status: row.get(3)?,
                        content_type: row.get(4)?,
                        body: row.get::<_, Vec<u8>>(5)?.into(),
                    })
                })
            })
            .await
    }

    async fn forget_expired(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        const ROWS: &str = "SELECT n, expires_at FROM replies WHERE n > ?1 ORDER BY n LIMIT ?2";
        let rows = Arc::clone(&self.due.replies);
        let expired: Vec<i64> = self
            .readers
            .read(move |connection| {
                rows.find(WINDOW, limit, |after| {
                    many(connection, ROWS, params![after, sql_limit(WINDOW)], |row| {
                        let n = row.get(0)?;
                        Ok(Dated { n, due: (time(row, 1)? <= now).then_some(n) })
                    })
                })
            })
            .await?;
        let mut forgotten = 0;
        for slice in expired.chunks(SLICE) {
            let slice = slice.to_vec();
            forgotten += self.writer.undurably(move |connection| forget_replies(connection, &slice, now)).await?;
        }
        let left = sql_limit(limit) - forgotten;
        let sessions = self.writer.undurably(move |connection| forget_sessions(connection, now, left));
        Ok((forgotten + sessions.await?).unsigned_abs())
    }
}

fn forget_replies(connection: &Connection, rows: &[i64], now: Timestamp) -> Result<i64, Fault> {
    let mut statement = connection.prepare_cached("DELETE FROM replies WHERE n = ?1 AND expires_at <= ?2")?;
    let mut forgotten = 0;
    for n in rows {
        forgotten += i64::try_from(statement.execute(params![n, now.as_millis()])?).unwrap_or(0);
    }
    Ok(forgotten)
}

/// Forgets sessions and tickets that have expired.
fn forget_sessions(connection: &Connection, now: Timestamp, limit: i64) -> Result<i64, Fault> {
    const TABLES: [(&str, &str); 2] = [
        ("SELECT token FROM sessions WHERE expires_at <= ?1 LIMIT ?2", "DELETE FROM sessions WHERE token = ?1"),
        ("SELECT digest FROM tickets WHERE expires_at <= ?1 LIMIT ?2", "DELETE FROM tickets WHERE digest = ?1"),
    ];
    let mut forgotten = 0;
    for (expired, delete) in TABLES {
        let (mut expired, mut delete) = (connection.prepare_cached(expired)?, connection.prepare_cached(delete)?);
        while forgotten < limit {
            let token: Option<[u8; 32]> =
                expired.query_row(params![now.as_millis(), 1], |row| row.get(0)).optional()?;
            let Some(token) = token else { break };
            delete.execute([token])?;
            forgotten += 1;
        }
    }
    Ok(forgotten)
}
