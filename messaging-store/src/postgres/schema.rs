//! Brings the schema up to date.
//!
//! Servers of two versions work on one database while they are replaced one by one. So a migration only adds: a column has a
//! default, a table is one that older programs do not ask for. What they use goes away a release later, and the migration
//! that takes it away names the last migration that a program must know to be let in:
//! `UPDATE schema_compatibility SET oldest_reader = N`.

use std::error::Error;
use std::io;

use deadpool_postgres::{HookError, Pool, PoolError};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::migrations::{self, Applied, POSTGRES};
use crate::open_error::{OpenError, failed};

/// A number of ours for the lock under which one program at a time changes the schema.
const LOCK: i64 = 0x6d65_7373_6167_6501;

/// The time, as migrations note it.
const NOW: &str = r#"to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')"#;

/// Applies what is missing. To a database without our tables only with `create`.
pub(super) async fn bring_up_to_date(pool: &Pool, create: bool) -> Result<(), OpenError> {
    let mut connection = pool.get().await.map_err(not_connected)?;
    let version = "SELECT to_regclass('refinery_schema_history') IS NOT NULL";
    let has_history: bool =
        connection.query_one(version, &[]).await.map_err(failed("read the schema's version"))?.get(0);
    let known = migrations::latest(POSTGRES);
    if has_history {
        let row = connection.query_one(migrations::LATEST, &[]).await.map_err(failed("read the schema's version"))?;
        let (found, is_ours): (i32, bool) = (row.get(0), row.get(1));
        if !is_ours {
            return Err(OpenError::BeforeFirstRelease);
        }
        let found = i64::from(found);
        if found == known || found > known && lets_in(&connection, known).await? {
            return Ok(());
        }
        if found > known {
            return Err(OpenError::Newer { found, known });
        }
    } else if !create {
        return Err(OpenError::Empty);
    }
    connection
        .execute("SELECT pg_advisory_lock($1)", &[&LOCK])
        .await
        .map_err(failed("wait for another program that changes the schema"))?;
    let migrated = apply(&mut connection).await;
    // The lock goes with the connection where this fails.
    let unlocked = connection.execute("SELECT pg_advisory_unlock($1)", &[&LOCK]).await;
    migrated.map_err(failed("bring the schema up to date"))?;
    unlocked.map(drop).map_err(failed("let others change the schema"))
}

async fn apply(connection: &mut Client) -> Result<(), Box<dyn Error + Send + Sync>> {
    let transaction = connection.transaction().await?;
    transaction.batch_execute(migrations::HISTORY).await?;
    let rows = transaction.query(migrations::APPLIED, &[]).await?;
    let applied: Vec<_> =
        rows.iter().map(|row| Applied { version: row.get(0), name: row.get(1), checksum: row.get(2) }).collect();
    transaction.batch_execute(&migrations::missing(POSTGRES, &applied, NOW)?).await?;
    Ok(transaction.commit().await?)
}

/// Whether a newer schema says that a program may work with it which knows the migrations up to a number.
async fn lets_in(connection: &Client, known: i64) -> Result<bool, OpenError> {
    let sql = "SELECT oldest_reader FROM schema_compatibility";
    let row = connection.query_one(sql, &[]).await.map_err(failed("read whom the schema lets in"))?;
    Ok(row.get::<_, i64>(0) <= known)
}

/// Whether a server is away, which may pass, or refuses us, which does not.
fn not_connected(error: PoolError) -> OpenError {
    let is_away = match &error {
        PoolError::Backend(error) => {
            let cause = error.source().and_then(|source| source.downcast_ref::<io::Error>());
            // 08: connection; 53300: no connection is free; 57P03: it starts, stops or catches up.
            let says_so = error.code().is_some_and(|code| {
                let is_busy = [SqlState::TOO_MANY_CONNECTIONS, SqlState::CANNOT_CONNECT_NOW].contains(code);
                is_busy || code.code().starts_with("08")
            });
            says_so || error.code().is_none() && (error.is_closed() || cause.is_some())
        }
        PoolError::Timeout(_) | PoolError::PostCreateHook(HookError::Message(_)) => true,
        _ => false,
    };
    if is_away { OpenError::NoAnswer { source: error.into() } } else { failed("connect to the database")(error) }
}
