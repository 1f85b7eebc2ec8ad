//! Brings the schema up to date.
//!
//! Servers of two versions work on one database while they are replaced one by one. So a migration only adds: a column
//! has a default, a table is one that older programs do not read. A table or column that they use is removed a release
//! later, and that migration names the last migration that a program must know to be admitted:
//! `UPDATE schema_compatibility SET oldest_reader = N`.

use std::error::Error;
use std::io;

use deadpool_postgres::{HookError, Pool, PoolError};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::fault::Fault;
use crate::migrations::{self, Applied, POSTGRES};
use crate::open_error::{OpenError, failed};

/// Attempted action if the database is read-only, with a remedy, for messages of errors.
const READ_ONLY: &str = "write to the database: its server is a standby or read-only, so name the primary in the URL, or all \
                         hosts with target_session_attrs=read-write";

/// Number of the advisory lock under which one program at a time changes the schema.
const LOCK: i64 = 0x6d65_7373_6167_6501;

/// Timeouts for a change of the schema: none for large tables, and 30 minutes to wait for another program's change.
const PATIENCE: &str = "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '30min'";

/// Time that a change waits for a table. Other users of the table, such as a running server, wait behind it meanwhile.
const TABLE_PATIENCE: &str = "SET LOCAL lock_timeout = '4s'";

/// Current time in the format of the history of migrations.
const NOW: &str = r#"to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')"#;

/// Applies the missing migrations. A database without our tables is only set up if `create`.
pub(super) async fn bring_up_to_date(pool: &Pool, create: bool) -> Result<(), OpenError> {
    let mut connection = pool.get().await.map_err(not_connected)?;
    let version = "SELECT to_regclass('refinery_schema_history') IS NOT NULL";
    let has_history: bool =
        connection.query_one(version, &[]).await.map_err(failed("read the schema's version"))?.get(0);
    let known = migrations::latest(POSTGRES);
    let mut older = None;
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
        older = Some(found);
    } else if !create {
        return Err(OpenError::Empty);
    } else {
        check_encoding(&connection).await?;
    }
    if let Some(found) = older {
        tracing::info!(
            found,
            known,
            "the schema of the database is brought up to date, which takes long on a large one"
        );
    }
    apply(&mut connection).await.map_err(not_changed)?;
    if older.is_some() {
        tracing::info!(known, "the schema of the database is up to date");
    }
    Ok(())
}

/// Refuses a database that cannot store every text.
async fn check_encoding(connection: &Client) -> Result<(), OpenError> {
    let row = connection.query_one("SELECT current_setting('server_encoding')", &[]).await;
    let encoding: String = row.map_err(failed("read the encoding of the database"))?.get(0);
    if encoding == "UTF8" { Ok(()) } else { Err(OpenError::Encoding(encoding)) }
}

/// Applies the missing migrations in one transaction, by one program at a time.
async fn apply(connection: &mut Client) -> Result<(), Box<dyn Error + Send + Sync>> {
    let transaction = connection.transaction().await?;
    transaction.batch_execute(PATIENCE).await?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    transaction.batch_execute(TABLE_PATIENCE).await?;
    transaction.batch_execute(migrations::HISTORY).await?;
    let rows = transaction.query(migrations::APPLIED, &[]).await?;
    let applied: Vec<_> =
        rows.iter().map(|row| Applied { version: row.get(0), name: row.get(1), checksum: row.get(2) }).collect();
    transaction.batch_execute(&migrations::missing(POSTGRES, &applied, NOW)?).await?;
    Ok(transaction.commit().await?)
}

/// Returns true if a newer schema admits a program that knows the migrations up to `known`.
async fn lets_in(connection: &Client, known: i64) -> Result<bool, OpenError> {
    let sql = "SELECT oldest_reader FROM schema_compatibility";
    let row = connection.query_one(sql, &[]).await.map_err(failed("read whom the schema lets in"))?;
    Ok(row.get::<_, i64>(0) <= known)
}

/// Error for a schema that was not changed, with a remedy if one is known.
fn not_changed(error: Box<dyn Error + Send + Sync>) -> OpenError {
    let code = error.downcast_ref::<tokio_postgres::Error>().and_then(tokio_postgres::Error::code);
    let attempt = match code {
        Some(code) if *code == SqlState::LOCK_NOT_AVAILABLE => {
            "bring the schema up to date while another session has a table locked, such as pg_dump: pg_stat_activity shows \
             it; start again once it has ended"
        }
        Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
            "bring the schema up to date: the user of the URL has to own the database (`ALTER DATABASE … OWNER TO …`)"
        }
        _ => "bring the schema up to date",
    };
    OpenError::Failed { attempt, source: error }
}

/// Error for a process that could not join the installation.
pub(super) fn not_joined(fault: Fault) -> OpenError {
    let is_read_only =
        matches!(&fault, Fault::Postgres(error) if error.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION));
    failed(if is_read_only { READ_ONLY } else { "take part in the installation" })(fault)
}

/// Attempted action if a server refuses the connection, with a remedy if one is known, for messages of errors.
fn refused(error: &PoolError) -> &'static str {
    let code = match error {
        PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => error.code(),
        _ => None,
    };
    match code {
        Some(code) if code.code().starts_with("28") => {
            "sign in to the database: look at user and password of its URL, and at pg_hba.conf of its server"
        }
        Some(code) if *code == SqlState::UNDEFINED_DATABASE => {
            "find the database: make it with `createdb --owner USER --encoding UTF8 --template template0 NAME`"
        }
        Some(code) if *code == SqlState::READ_ONLY_SQL_TRANSACTION => READ_ONLY,
        _ => "connect to the database",
    }
}

/// Error for a failed connection: an absent server, which may come back, or a refusal, which is final.
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
    let attempt = refused(&error);
    // The pool adds its own text to that of the server.
    let source: Box<dyn Error + Send + Sync> = match error {
        PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => error.into(),
        error => error.into(),
    };
    if is_away { OpenError::NoAnswer { source } } else { OpenError::Failed { attempt, source } }
}
