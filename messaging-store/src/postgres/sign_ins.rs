//! Failed sign-ins.

use async_trait::async_trait;
use messaging_core::domain::login_attempts::{PER_EMAIL, PER_NETWORK, SignInAttempt, SignInBlocks};
use messaging_core::ports::store::{SignIns, StoreError};
use messaging_core::time::Timestamp;

use super::PostgresStore;
use super::query::{Params, params};
use super::row::{maybe_time, sql_limit};
use super::sweep::sweep;
use super::transaction::Transaction;

/// Counts an attempt as failed. One that a limit refuses is a conflict, and nothing is written.
pub(super) fn count(transaction: &mut Transaction, attempt: &SignInAttempt) {
    // Attempts from a network are counted one after another; those of an email are from one network.
    transaction.run(
        "SELECT pg_advisory_xact_lock(hashtextextended('sign-in:' || encode($1, 'hex'), 0))",
        params![attempt.network.to_vec()],
    );
    let mut values = counted(attempt);
    values.push(Box::new(attempt.at.as_millis()));
    transaction.run_one(
        "INSERT INTO sign_in_failures (at, network, email) SELECT $9::bigint, $5::bytea, $1::bytea
         WHERE NOT EXISTS (SELECT 1 FROM sign_in_failures WHERE email = $1 AND at > $2 AND at <= $3 OFFSET $4)
             AND NOT EXISTS (SELECT 1 FROM sign_in_failures WHERE network = $5 AND at > $6 AND at <= $7 OFFSET $8)",
        values,
    );
}

/// The email with what its limit counts, and the network.
fn counted(attempt: &SignInAttempt) -> Params {
    let mut values = params![];
    for (key, limit) in [(attempt.email.to_vec(), PER_EMAIL), (attempt.network.to_vec(), PER_NETWORK)] {
        let (after, until) = limit.counted(attempt.at);
        let others = sql_limit(limit.failures.saturating_sub(1));
        values.extend(params![key, after.as_millis(), until.as_millis(), others]);
    }
    values
}

pub(super) fn forget_email(transaction: &mut Transaction, attempt: &SignInAttempt) {
    transaction.run("DELETE FROM sign_in_failures WHERE email = $1", params![attempt.email.to_vec()]);
}

#[async_trait]
impl SignIns for PostgresStore {
    async fn sign_in_blocks(&self, attempt: &SignInAttempt) -> Result<SignInBlocks, StoreError> {
        const SQL: &str = "SELECT
            (SELECT at FROM sign_in_failures WHERE email = $1 AND at > $2 AND at <= $3
                ORDER BY at DESC LIMIT 1 OFFSET $4),
            (SELECT at FROM sign_in_failures WHERE network = $5 AND at > $6 AND at <= $7
                ORDER BY at DESC LIMIT 1 OFFSET $8)";
        let blocks = self
            .reads
            .one(SQL, counted(attempt), |row| {
                Ok(SignInBlocks { email: maybe_time(row, 0)?, network: maybe_time(row, 1)? })
            })
            .await?;
        Ok(blocks.unwrap_or_default())
    }

    async fn forget_sign_ins(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        const SQL: &str = "DELETE FROM sign_in_failures WHERE ctid = ANY (ARRAY (
            SELECT ctid FROM sign_in_failures WHERE at <= $1 OR at > $2 LIMIT $3 FOR UPDATE SKIP LOCKED))";
        let (before, after) = ((now - PER_NETWORK.window).as_millis(), (now + PER_NETWORK.window).as_millis());
        sweep(&self.writes, SQL, params![before, after, sql_limit(limit)]).await
    }
}
