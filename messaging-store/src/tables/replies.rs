//! Remembered answers to requests with an Idempotency-Key.

use async_trait::async_trait;
use messaging_core::changes::{Reply, ReplyKey};
use messaging_core::ports::store::{Replies, StoreError};
use messaging_core::time::Timestamp;

use crate::database::{Aged, Database, Query, SqlStore, Statements};
use crate::fault::Fault;
use crate::pages::sql_limit;
use crate::row::{get, time};
use crate::sql::{Sql, params, sql};

const EXPIRED: Aged = Aged {
    table: "replies",
    window: 10_000,
    slice: 200,
    find: "SELECT n, expires_at <= ?3 FROM replies WHERE n > ?1 ORDER BY n LIMIT ?2",
    delete: sql!(
        sqlite: "DELETE FROM replies WHERE n = ?1 AND expires_at <= ?2",
        postgres: "DELETE FROM replies WHERE ctid = ANY (ARRAY (
            SELECT ctid FROM replies WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED))",
    ),
};

/// Keeps a reply. Who comes second under its key waits for the first, and is refused unless that one has expired, which
/// then goes to the end of the table: sweeps look at replies in the order in which they came.
pub(crate) fn remember(on: &mut dyn Statements, reply: &Reply) -> Result<(), Fault> {
    const SQL: Sql = sql!(
        sqlite: "INSERT INTO replies
                (key, credential, route, created_at, expires_at, fingerprint, status, content_type, body)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
            ON CONFLICT (key, credential, route) DO UPDATE SET n = (SELECT max(n) + 1 FROM replies),
                created_at = excluded.created_at, expires_at = excluded.expires_at, fingerprint = excluded.fingerprint,
                status = excluded.status, content_type = excluded.content_type, body = excluded.body
            WHERE replies.expires_at <= excluded.created_at",
        postgres: "INSERT INTO replies
                (key, credential, route, created_at, expires_at, fingerprint, status, content_type, body)
            SELECT * FROM unnest($1::text[], $2::uuid[], $3::text[], $4::bigint[], $5::bigint[], $6::bytea[],
                $7::bigint[], $8::text[], $9::bytea[])
            ON CONFLICT (key, credential, route) DO UPDATE SET created_at = excluded.created_at,
                expires_at = excluded.expires_at, fingerprint = excluded.fingerprint, status = excluded.status,
                content_type = excluded.content_type, body = excluded.body
            WHERE replies.expires_at <= excluded.created_at",
    );
    let Reply { key: ReplyKey { key, credential, route, .. }, created_at, expires_at, fingerprint, .. } = reply;
    on.gather_one(
        SQL,
        params![
            key.as_str(),
            *credential,
            route.as_str(),
            *created_at,
            *expires_at,
            fingerprint.to_be_bytes().as_slice(),
            i64::from(reply.status),
            reply.content_type.as_str(),
            reply.body.clone(),
        ],
    )
}

#[async_trait]
impl<D: Database> Replies for SqlStore<D> {
    async fn reply(&self, key: &ReplyKey, now: Timestamp) -> Result<Option<Reply>, StoreError> {
        const SQL: Sql = sql!(
            "SELECT created_at, expires_at, fingerprint, status, content_type, body FROM replies
             WHERE key = $1 AND credential = $2 AND route = $3 AND expires_at > $4"
        );
        let key = key.clone();
        let wanted = params![key.key.as_str(), key.credential, key.route.as_str(), now];
        let query = Query::new(SQL, wanted, move |row| {
            Ok(Reply {
                key: key.clone(),
                created_at: time(row, 0)?,
                expires_at: time(row, 1)?,
                fingerprint: u128::from_be_bytes(get(row, 2)?),
                status: get(row, 3)?,
                content_type: get(row, 4)?,
                body: get::<Vec<u8>>(row, 5)?.into(),
            })
        });
        self.one(query.point()).await
    }

    /// Replies first, then sessions, tickets and what second factors leave.
    async fn forget_expired(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        const SESSIONS: Sql = sql!(
            sqlite: "DELETE FROM sessions WHERE token IN (SELECT token FROM sessions WHERE expires_at <= ?1 LIMIT ?2)",
            postgres: "DELETE FROM sessions WHERE ctid = ANY (ARRAY (
                SELECT ctid FROM sessions WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED))",
        );
        const TICKETS: Sql = sql!(
            sqlite: "DELETE FROM tickets WHERE digest IN (SELECT digest FROM tickets WHERE expires_at <= ?1 LIMIT ?2)",
            postgres: "DELETE FROM tickets WHERE ctid = ANY (ARRAY (
                SELECT ctid FROM tickets WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED))",
        );
        const PENDING: Sql = sql!(
            sqlite: "DELETE FROM pending_sign_ins WHERE digest IN (
                SELECT digest FROM pending_sign_ins WHERE expires_at <= ?1 LIMIT ?2)",
            postgres: "DELETE FROM pending_sign_ins WHERE ctid = ANY (ARRAY (
                SELECT ctid FROM pending_sign_ins WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2
                FOR UPDATE SKIP LOCKED))",
        );
        const FACTORS: Sql = sql!(
            sqlite: "DELETE FROM factors WHERE (user_id, id) IN (
                SELECT user_id, id FROM factors WHERE expires_at <= ?1 LIMIT ?2)",
            postgres: "DELETE FROM factors WHERE ctid = ANY (ARRAY (
                SELECT ctid FROM factors WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED))",
        );
        let mut forgotten = self.sweep_aged(&EXPIRED, now, limit).await?;
        for sql in [SESSIONS, TICKETS, PENDING, FACTORS] {
            let left = limit.saturating_sub(usize::try_from(forgotten).unwrap_or(limit));
            if left > 0 {
                forgotten += self.sweep(sql, params![now, sql_limit(left)]).await?;
            }
        }
        Ok(forgotten)
    }
}
