//! Failed sign-ins.

use async_trait::async_trait;
use messaging_core::domain::login_attempts::{
    KEPT_FOR, PER_ACCOUNT, PER_EMAIL, PER_NETWORK, PER_SITE, SLOWED_FOR, SignInAttempt, SignInBlocks, SlowedAccount,
};
use messaging_core::ports::store::{SignIns, StoreError};
use messaging_core::time::Timestamp;

use super::PostgresStore;
use super::query::{Params, params};
use super::row::{get, maybe_time, small, sql_limit};
use super::sweep::sweep;
use super::transaction::Transaction;

/// Counts an attempt as failed. One that a limit refuses is a conflict, and nothing is written.
pub(super) fn count(transaction: &mut Transaction, attempt: &SignInAttempt) {
    // Attempts from a site, which holds the network, are counted one after another, and those of an email too. All take
    // the lock of the site first.
    for key in [attempt.site.to_vec(), attempt.account.to_vec()] {
        transaction
            .run("SELECT pg_advisory_xact_lock(hashtextextended('sign-in:' || encode($1, 'hex'), 0))", params![key]);
    }
    let mut values = counted(attempt);
    values.extend(params![attempt.at.as_millis(), i64::from(attempt.slowed)]);
    transaction.run_one(
        "INSERT INTO sign_in_failures (at, network, site, email, account, slowed)
         SELECT $18::bigint, $5::bytea, $9::bytea, $1::bytea, $13::bytea, $19::bigint
         WHERE NOT EXISTS (SELECT 1 FROM sign_in_failures WHERE email = $1 AND at > $2 AND at <= $3 OFFSET $4)
             AND NOT EXISTS (SELECT 1 FROM sign_in_failures WHERE network = $5 AND at > $6 AND at <= $7 OFFSET $8)
             AND NOT EXISTS (SELECT 1 FROM sign_in_failures WHERE site = $9 AND at > $10 AND at <= $11 OFFSET $12)
             AND (
                 $19 > 0
                 OR NOT EXISTS (
                     SELECT 1 FROM sign_in_failures WHERE account = $13 AND at > $14 AND at <= $15 OFFSET $16)
             )
             AND NOT EXISTS (
                 SELECT 1 FROM sign_in_failures
                 WHERE account = $13 AND at > $17 AND at <= $15 AND slowed >= greatest($19, 1))",
        values,
    );
}

/// The keys, each with what its limit counts; behind them since when a failure that had to wait is remembered.
fn counted(attempt: &SignInAttempt) -> Params {
    let mut values = params![];
    let limits = [
        (attempt.email.to_vec(), PER_EMAIL),
        (attempt.network.to_vec(), PER_NETWORK),
        (attempt.site.to_vec(), PER_SITE),
        (attempt.account.to_vec(), PER_ACCOUNT),
    ];
    for (key, limit) in limits {
        let (after, until) = limit.counted(attempt.at);
        let others = sql_limit(limit.failures.saturating_sub(1));
        values.extend(params![key, after.as_millis(), until.as_millis(), others]);
    }
    values.extend(params![(attempt.at - SLOWED_FOR).as_millis()]);
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
                ORDER BY at DESC LIMIT 1 OFFSET $8),
            (SELECT at FROM sign_in_failures WHERE site = $9 AND at > $10 AND at <= $11
                ORDER BY at DESC LIMIT 1 OFFSET $12),
            EXISTS (SELECT 1 FROM sign_in_failures WHERE account = $13 AND at > $14 AND at <= $15 OFFSET $16),
            latest.at, coalesce(latest.slowed, 0)
            FROM (SELECT 1) AS one LEFT JOIN (
                SELECT at, slowed FROM sign_in_failures WHERE account = $13 AND at > $17 AND at <= $15
                ORDER BY at DESC, slowed DESC LIMIT 1) AS latest ON true";
        let blocks = self
            .reads
            .one(SQL, counted(attempt), |row| {
                let (is_used_up, slowed): (bool, u32) = (get(row, 3)?, small(row, 5)?);
                let latest = maybe_time(row, 4)?.map(|at| SlowedAccount { at, slowed });
                Ok(SignInBlocks {
                    email: maybe_time(row, 0)?,
                    network: maybe_time(row, 1)?,
                    site: maybe_time(row, 2)?,
                    account: latest.filter(|latest| latest.slowed > 0 || is_used_up),
                })
            })
            .await?;
        Ok(blocks.unwrap_or_default())
    }

    async fn forget_sign_ins(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        const SQL: &str = "DELETE FROM sign_in_failures WHERE ctid = ANY (ARRAY (
            SELECT ctid FROM sign_in_failures WHERE at <= $1 OR at > $2 LIMIT $3 FOR UPDATE SKIP LOCKED))";
        let (before, after) = ((now - KEPT_FOR).as_millis(), (now + KEPT_FOR).as_millis());
        sweep(&self.writes, SQL, params![before, after, sql_limit(limit)]).await
    }
}
