//! Failed sign-ins.

use async_trait::async_trait;
use messaging_core::domain::login_attempts::{Limit, PER_EMAIL, PER_NETWORK, SignInAttempt, SignInBlocks};
use messaging_core::ports::store::{SignIns, StoreError};
use messaging_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::fault::Fault;
use super::query::one;
use super::row::{sql_limit, time};

/// Counts an attempt as failed. One that a limit refuses is a conflict, and nothing is written.
pub(super) fn count(connection: &Connection, attempt: &SignInAttempt) -> Result<(), Fault> {
    if blocks(connection, attempt)? != SignInBlocks::default() {
        return Err(Fault::Conflict);
    }
    connection
        .prepare_cached("INSERT INTO sign_in_failures (at, network, email) VALUES (?1, ?2, ?3)")?
        .execute(params![attempt.at.as_millis(), attempt.network, attempt.email])?;
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
    let earliest = |sql: &'static str, key: &[u8], limit: Limit| {
        let (after, until) = limit.counted(attempt.at);
        let others = sql_limit(limit.failures.saturating_sub(1));
        one(connection, sql, params![key, after.as_millis(), until.as_millis(), others], |row| time(row, 0))
    };
    Ok(SignInBlocks {
        email: earliest(OF_EMAIL, &attempt.email, PER_EMAIL)?,
        network: earliest(OF_NETWORK, &attempt.network, PER_NETWORK)?,
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
        let (before, after) = ((now - PER_NETWORK.window).as_millis(), (now + PER_NETWORK.window).as_millis());
        let any = self.readers.point_read(move |connection| one(connection, ANY, [before, after], |_| Ok(()))).await?;
        if any.is_none() {
            return Ok(0);
        }
        let forget = move |connection: &Connection| {
            let sql = "DELETE FROM sign_in_failures WHERE n IN (
                SELECT n FROM sign_in_failures WHERE at <= ?1 OR at > ?2 LIMIT ?3)";
            Ok(connection.prepare_cached(sql)?.execute(params![before, after, sql_limit(limit)])? as u64)
        };
        self.writer.task(move |batch| batch.undurably(|connection, _| forget(connection))).await
    }
}
