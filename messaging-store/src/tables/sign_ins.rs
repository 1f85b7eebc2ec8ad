//! Failed sign-ins.

use async_trait::async_trait;
use messaging_core::domain::security::login_attempts::{
    KEPT_FOR, PER_ACCOUNT, PER_EMAIL, PER_NETWORK, PER_SITE, SLOWED_FOR, SignInAttempt, SignInBlocks, SlowedAccount,
};
use messaging_core::ports::store::{SignIns, StoreError};
use messaging_core::time::Timestamp;

use crate::database::{Database, Query, SqlStore, Statements};
use crate::fault::Fault;
use crate::pages::sql_limit;
use crate::row::{get, maybe_time};
use crate::sql::{Params, Sql, params, sql};

/// That no limit is reached, and nothing was counted since that made others wait as long.
macro_rules! none_too_many {
    () => {
        "WHERE NOT EXISTS (
                SELECT 1 FROM sign_in_failures WHERE email = $1 AND at > $2 AND at <= $3 LIMIT 1 OFFSET $4)
            AND NOT EXISTS (
                SELECT 1 FROM sign_in_failures WHERE network = $5 AND at > $6 AND at <= $7 LIMIT 1 OFFSET $8)
            AND NOT EXISTS (
                SELECT 1 FROM sign_in_failures WHERE site = $9 AND at > $10 AND at <= $11 LIMIT 1 OFFSET $12)
            AND ($19 > 0 OR NOT EXISTS (
                SELECT 1 FROM sign_in_failures WHERE account = $13 AND at > $14 AND at <= $15 LIMIT 1 OFFSET $16))
            AND NOT EXISTS (
                SELECT 1 FROM sign_in_failures
                WHERE account = $13 AND at > $17 AND at <= $15 AND slowed >= $19 AND slowed >= 1)"
    };
}

/// Counts an attempt as failed. One that a limit refuses is a conflict, and nothing is written. Whether an email that is
/// guessed at has waited was asked before; here none may have been counted since.
pub(crate) fn count(on: &mut dyn Statements, attempt: &SignInAttempt) -> Result<(), Fault> {
    // On PostgreSQL attempts from a site, which holds the network, are counted one after another, and those of an email
    // too. All take the lock of the site first.
    const LOCK: Sql = sql!(
        sqlite: "",
        postgres: "SELECT pg_advisory_xact_lock(hashtextextended('sign-in:' || encode($1, 'hex'), 0))",
    );
    // PostgreSQL wants to know the types of what is selected.
    const COUNT: Sql = sql!(
        sqlite: concat!(
            "INSERT INTO sign_in_failures (at, network, site, email, account, slowed)
             SELECT $18, $5, $9, $1, $13, $19 ",
            none_too_many!()
        ),
        postgres: concat!(
            "INSERT INTO sign_in_failures (at, network, site, email, account, slowed)
             SELECT $18::bigint, $5::bytea, $9::bytea, $1::bytea, $13::bytea, $19::bigint ",
            none_too_many!()
        ),
    );
    for of in [attempt.site.as_slice(), attempt.account.as_slice()] {
        on.run(LOCK, params![of])?;
    }
    let mut values = counted(attempt);
    values.extend(params![attempt.at, attempt.slowed]);
    on.run_one(COUNT, values)
}

/// The keys, each with what its limit counts; behind them since when a failure that had to wait is remembered.
fn counted(attempt: &SignInAttempt) -> Params {
    let limits = [
        (attempt.email.as_slice(), PER_EMAIL),
        (&attempt.network, PER_NETWORK),
        (&attempt.site, PER_SITE),
        (&attempt.account, PER_ACCOUNT),
    ];
    let mut values = params![];
    for (of, limit) in limits {
        let (after, until) = limit.counted(attempt.at);
        values.extend(params![of, after, until, sql_limit(limit.failures.saturating_sub(1))]);
    }
    values.extend(params![attempt.at - SLOWED_FOR]);
    values
}

pub(crate) fn forget_email(on: &mut dyn Statements, attempt: &SignInAttempt) -> Result<(), Fault> {
    on.run(sql!("DELETE FROM sign_in_failures WHERE email = $1"), params![attempt.email.as_slice()])
}

#[async_trait]
impl<D: Database> SignIns for SqlStore<D> {
    async fn sign_in_blocks(&self, attempt: &SignInAttempt) -> Result<SignInBlocks, StoreError> {
        const SQL: Sql = sql!(
            "SELECT
                (SELECT at FROM sign_in_failures WHERE email = $1 AND at > $2 AND at <= $3
                    ORDER BY at DESC LIMIT 1 OFFSET $4),
                (SELECT at FROM sign_in_failures WHERE network = $5 AND at > $6 AND at <= $7
                    ORDER BY at DESC LIMIT 1 OFFSET $8),
                (SELECT at FROM sign_in_failures WHERE site = $9 AND at > $10 AND at <= $11
                    ORDER BY at DESC LIMIT 1 OFFSET $12),
                EXISTS (SELECT 1 FROM sign_in_failures WHERE account = $13 AND at > $14 AND at <= $15
                    LIMIT 1 OFFSET $16),
                latest.at, coalesce(latest.slowed, 0)
             FROM (SELECT 1) AS one LEFT JOIN (
                SELECT at, slowed FROM sign_in_failures WHERE account = $13 AND at > $17 AND at <= $15
                ORDER BY at DESC, slowed DESC LIMIT 1) AS latest ON true"
        );
        let query = Query::new(SQL, counted(attempt), |row| {
            let (is_used_up, slowed): (bool, u32) = (get(row, 3)?, get(row, 5)?);
            let latest = maybe_time(row, 4)?.map(|at| SlowedAccount { at, slowed });
            Ok(SignInBlocks {
                email: maybe_time(row, 0)?,
                network: maybe_time(row, 1)?,
                site: maybe_time(row, 2)?,
                account: latest.filter(|latest| latest.slowed > 0 || is_used_up),
            })
        });
        Ok(self.one(query).await?.unwrap_or_default())
    }

    async fn forget_sign_ins(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        const ANY: Sql = sql!(
            "SELECT 1 WHERE EXISTS (SELECT 1 FROM sign_in_failures WHERE at <= $1)
                OR EXISTS (SELECT 1 FROM sign_in_failures WHERE at > $2)"
        );
        const SQL: Sql = sql!(
            sqlite: "DELETE FROM sign_in_failures WHERE n IN (
                SELECT n FROM sign_in_failures WHERE at <= $1 OR at > $2 LIMIT $3)",
            postgres: "DELETE FROM sign_in_failures WHERE ctid = ANY (ARRAY (
                SELECT ctid FROM sign_in_failures WHERE at <= $1 OR at > $2 LIMIT $3 FOR UPDATE SKIP LOCKED))",
        );
        let (before, after) = (now - KEPT_FOR, now + KEPT_FOR);
        // Most times there are none, and then nothing is written.
        if self.one(Query::new(ANY, params![before, after], |_| Ok(())).point()).await?.is_none() {
            return Ok(0);
        }
        self.sweep(SQL, params![before, after, sql_limit(limit)]).await
    }
}
