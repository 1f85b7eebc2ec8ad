//! Failed sign-ins.

use async_trait::async_trait;
use messaging_core::domain::login_attempts::{
    KEPT_FOR, Limit, PER_ACCOUNT, PER_EMAIL, PER_NETWORK, PER_SITE, SLOWED_FOR, SignInAttempt, SignInBlocks,
    SlowedAccount, latest_counted,
};
use messaging_core::ports::store::{SignIns, StoreError};
use messaging_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::fault::Fault;
use super::query::one;
use super::row::{sql_limit, time};

/// Counts an attempt as failed. One that a limit refuses is a conflict, and nothing is written. Whether an email that is
/// guessed at has waited was asked before; here none may have been counted since.
pub(super) fn count(connection: &Connection, attempt: &SignInAttempt) -> Result<(), Fault> {
    let blocks = blocks(connection, attempt)?;
    let is_full = blocks.email.or(blocks.network).or(blocks.site).is_some();
    if is_full || attempt.after(blocks) != *attempt {
        return Err(Fault::Conflict);
    }
    connection
        .prepare_cached(
            "INSERT INTO sign_in_failures (at, network, site, email, account, slowed) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            attempt.at.as_millis(),
            attempt.network,
            attempt.site,
            attempt.email,
            attempt.account,
            attempt.slowed
        ])?;
    Ok(())
}

pub(super) fn forget_email(connection: &Connection, attempt: &SignInAttempt) -> Result<(), Fault> {
    connection.prepare_cached("DELETE FROM sign_in_failures WHERE email = ?1")?.execute([attempt.email])?;
    Ok(())
}

fn blocks(connection: &Connection, attempt: &SignInAttempt) -> Result<SignInBlocks, Fault> {
    const OF_EMAIL: &str = "SELECT at FROM sign_in_failures WHERE email = ?1 AND at > ?2 AND at <= ?3
        ORDER BY at DESC LIMIT 1 OFFSET ?4";
    const OF_NETWORK: &str = "SELECT at FROM sign_in_failures WHERE network = ?1 AND at > ?2 AND at <= ?3
        ORDER BY at DESC LIMIT 1 OFFSET ?4";
    const OF_SITE: &str = "SELECT at FROM sign_in_failures WHERE site = ?1 AND at > ?2 AND at <= ?3
        ORDER BY at DESC LIMIT 1 OFFSET ?4";
    const OF_ACCOUNT: &str = "SELECT at FROM sign_in_failures WHERE account = ?1 AND at > ?2 AND at <= ?3
        ORDER BY at DESC LIMIT 1 OFFSET ?4";
    const LATEST: &str = "SELECT at, slowed FROM sign_in_failures WHERE account = ?1 AND at > ?2 AND at <= ?3
        ORDER BY at DESC, slowed DESC LIMIT 1";
    let earliest = |sql: &'static str, key: &[u8], limit: Limit| {
        let (after, until) = limit.counted(attempt.at);
        let others = sql_limit(limit.failures.saturating_sub(1));
        one(connection, sql, params![key, after.as_millis(), until.as_millis(), others], |row| time(row, 0))
    };
    let (since, until) = (attempt.at - SLOWED_FOR, latest_counted(attempt.at));
    let latest = one(connection, LATEST, params![attempt.account, since.as_millis(), until.as_millis()], |row| {
        Ok(SlowedAccount { at: time(row, 0)?, slowed: row.get(1)? })
    })?;
    let is_used_up = earliest(OF_ACCOUNT, &attempt.account, PER_ACCOUNT)?.is_some();
    Ok(SignInBlocks {
        email: earliest(OF_EMAIL, &attempt.email, PER_EMAIL)?,
        network: earliest(OF_NETWORK, &attempt.network, PER_NETWORK)?,
        site: earliest(OF_SITE, &attempt.site, PER_SITE)?,
        account: latest.filter(|latest| latest.slowed > 0 || is_used_up),
    })
}

#[async_trait]
impl SignIns for SqliteStore {
    async fn sign_in_blocks(&self, attempt: &SignInAttempt) -> Result<SignInBlocks, StoreError> {
        let attempt = *attempt;
        self.readers.read(move |connection| blocks(connection, &attempt)).await
    }

    async fn forget_sign_ins(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        const ANY: &str = "SELECT 1 WHERE EXISTS (SELECT 1 FROM sign_in_failures WHERE at <= ?1)
            OR EXISTS (SELECT 1 FROM sign_in_failures WHERE at > ?2)";
        let (before, after) = ((now - KEPT_FOR).as_millis(), (now + KEPT_FOR).as_millis());
        let any = self.readers.point_read(move |connection| one(connection, ANY, [before, after], |_| Ok(()))).await?;
        if any.is_none() {
            return Ok(0);
        }
        let forget = move |connection: &Connection| {
            let sql = "DELETE FROM sign_in_failures WHERE n IN (
                SELECT n FROM sign_in_failures WHERE at <= ?1 OR at > ?2 LIMIT ?3)";
            Ok(connection.prepare_cached(sql)?.execute(params![before, after, sql_limit(limit)])? as u64)
        };
        self.writer.undurably(move |connection| forget(connection)).await
    }
}
