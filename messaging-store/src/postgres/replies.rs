//! Remembered answers to requests with an Idempotency-Key.

use async_trait::async_trait;
use messaging_core::changes::{Reply, ReplyKey};
use messaging_core::ports::store::{Replies, StoreError};
use messaging_core::time::Timestamp;
use uuid::Uuid;

use super::PostgresStore;
use super::fault::Fault;
use super::query::params;
use super::row::{get, small, sql_limit, time};
use super::sweep::sweep;
use super::transaction::Transaction;

/// Keeps a reply. Who comes second under its key waits for the first, and is refused unless that one has expired.
pub(super) fn remember(transaction: &mut Transaction, reply: &Reply) {
    transaction.add_one_row(
        "INSERT INTO replies (key, credential, route, created_at, expires_at, fingerprint, status, content_type, body)
         SELECT * FROM unnest($1::text[], $2::uuid[], $3::text[], $4::bigint[], $5::bigint[], $6::bytea[], $7::bigint[],
             $8::text[], $9::bytea[])
         ON CONFLICT (key, credential, route) DO UPDATE SET created_at = excluded.created_at,
             expires_at = excluded.expires_at, fingerprint = excluded.fingerprint, status = excluded.status,
             content_type = excluded.content_type, body = excluded.body
         WHERE replies.expires_at <= excluded.created_at",
        params![
            reply.key.key.clone(),
            Uuid::from_bytes(reply.key.credential),
            reply.key.route.clone(),
            reply.created_at.as_millis(),
            reply.expires_at.as_millis(),
            reply.fingerprint.to_be_bytes().to_vec(),
            i64::from(reply.status),
            reply.content_type.clone(),
            reply.body.to_vec(),
        ],
    );
}

#[async_trait]
impl Replies for PostgresStore {
    async fn reply(&self, key: &ReplyKey, now: Timestamp) -> Result<Option<Reply>, StoreError> {
        const SQL: &str = "SELECT created_at, expires_at, fingerprint, status, content_type, body FROM replies
            WHERE key = $1 AND credential = $2 AND route = $3 AND expires_at > $4";
        let wanted = params![key.key.clone(), Uuid::from_bytes(key.credential), key.route.clone(), now.as_millis()];
        self.reads
            .one(SQL, wanted, |row| {
                let fingerprint = get::<&[u8]>(row, 2)?.try_into();
                Ok(Reply {
                    key: key.clone(),
                    created_at: time(row, 0)?,
                    expires_at: time(row, 1)?,
                    fingerprint: fingerprint
                        .map(u128::from_be_bytes)
                        .map_err(|_| Fault::Malformed("a fingerprint has another length"))?,
                    status: small(row, 3)?,
                    content_type: get(row, 4)?,
                    body: get::<Vec<u8>>(row, 5)?.into(),
                })
            })
            .await
    }

    /// Replies first, then sessions and tickets.
    async fn forget_expired(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        const REPLIES: &str = "DELETE FROM replies WHERE ctid = ANY (ARRAY (
            SELECT ctid FROM replies WHERE expires_at <= $1
            ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED))";
        const SESSIONS: &str = "DELETE FROM sessions WHERE ctid = ANY (ARRAY (
            SELECT ctid FROM sessions WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED))";
        const TICKETS: &str = "DELETE FROM tickets WHERE ctid = ANY (ARRAY (
            SELECT ctid FROM tickets WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED))";
        let mut left = limit as u64;
        for sql in [REPLIES, SESSIONS, TICKETS] {
            if left == 0 {
                break;
            }
            let most = sql_limit(usize::try_from(left).unwrap_or(limit));
            left = left.saturating_sub(sweep(&self.writes, sql, params![now.as_millis(), most]).await?);
        }
        Ok(limit as u64 - left)
    }
}
