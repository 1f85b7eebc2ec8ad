//! Moving an installation from SQLite to PostgreSQL: offline, counted, verified.
//!
//! The source is open alone and read in one snapshot; the target gets everything in one transaction. Each table is read
//! back in it, and the sum of the digests of its rows compared with that of what was read from the source, so that what
//! the target answers is what the source holds. Then the source is fenced, and only after that the target commits: at no
//! moment two databases would send the same.

pub(crate) mod digest;
pub(crate) mod tables;

use std::path::PathBuf;
use std::sync::Arc;

use rusqlite::types::Value;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use self::digest::Digested;
use self::tables::{TABLES, Table};
use crate::open_error::OpenError;
use crate::postgres::PostgresUrl;
use crate::postgres::moved::{Committed, Target};
use crate::sqlite::moved::Source;
use crate::sqlite::open::SqliteOptions;

/// How many slices of rows wait for the target.
const WAITING: usize = 4;

/// A row of the source.
pub(crate) type SourceRow = Vec<Value>;

/// What is moved, and where to.
#[derive(Debug, Clone)]
pub struct MoveOptions {
    /// The database file, and where its attachments, its uploads and the number of its latest start are.
    pub source: SqliteOptions,
    /// The database that gets everything.
    pub target: PostgresUrl,
}

/// How far a move is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoveProgress {
    /// The table that is being moved.
    pub table: &'static str,
    /// Tables that are done.
    pub done: usize,
    /// Tables in all.
    pub total: usize,
    /// Rows that were moved, of all tables.
    pub rows: u64,
}

/// What was moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MoveReport {
    /// Tables of the target, with as many rows as the source has.
    pub tables: Vec<MovedTable>,
    /// Attachments.
    pub blobs: MovedBlobs,
    /// Whether what the target answers was compared with the source. A move that finds a difference fails.
    pub verified: bool,
}

/// A table of the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MovedTable {
    /// Its name.
    pub name: String,
    /// Its rows.
    pub rows: u64,
}

/// Attachments that were moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MovedBlobs {
    /// How many there are.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Why nothing was moved. The target is empty and the source as it was, unless the error says otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MoveError {
    /// There is no database file.
    #[error("there is no database {}", .0.display())]
    NoDatabase(PathBuf),
    /// The source cannot be opened, or a server works on it.
    #[error("failed to open the source")]
    Source(#[source] OpenError),
    /// The target cannot be opened.
    #[error("failed to open the target")]
    Target(#[source] OpenError),
    /// A process is there that uses the target.
    #[error("{0} uses the target; stop it and try again 30 s later")]
    TargetInUse(String),
    /// The target holds something.
    #[error("the target is not empty: its table {0} has rows; name a database without an installation")]
    NotEmpty(&'static str),
    /// Another program wrote to the source meanwhile.
    #[error("another program wrote to the source while it was moved; stop what uses it and try again")]
    SourceChanged,
    /// A value of the source is none that the target takes.
    #[error("a row of {table} cannot be moved: {column} {problem}")]
    Unfit {
        /// Its table.
        table: &'static str,
        /// The column.
        column: String,
        /// What is wrong with the value.
        problem: &'static str,
    },
    /// The target answers something else than it was given.
    #[error("{table} is not the same on both sides: {given} rows were given, {found} found")]
    Different {
        /// The table.
        table: &'static str,
        /// Rows that the source has.
        given: u64,
        /// Rows that the target has.
        found: u64,
    },
    /// The source cannot be read, or not be fenced.
    #[error("failed to {attempt}")]
    Reading {
        /// What was attempted.
        attempt: String,
        /// Why it failed.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The target does not take what it is given.
    #[error("failed to {attempt}")]
    Writing {
        /// What was attempted.
        attempt: String,
        /// Why it failed.
        #[source]
        source: tokio_postgres::Error,
    },
    /// The connection ended while the target committed, and it does not answer whether it did.
    #[error(
        "the target does not answer whether it has everything; the source is fenced. If the target turns out to be empty, \
         `messaging admin resume` lets the source send again"
    )]
    Unknown(#[source] tokio_postgres::Error),
}

impl MoveError {
    /// Whether a side is not ready to be moved from or to: in use, or not empty.
    pub const fn is_not_ready(&self) -> bool {
        matches!(
            self,
            Self::Source(OpenError::InUse | OpenError::ServerIsOlder)
                | Self::TargetInUse(_)
                | Self::NotEmpty(_)
                | Self::SourceChanged
        )
    }

    pub(crate) fn reading<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
        attempt: impl Into<String>,
    ) -> impl FnOnce(E) -> Self {
        let attempt = attempt.into();
        move |source| Self::Reading { attempt, source: source.into() }
    }

    pub(crate) fn writing(attempt: impl Into<String>) -> impl FnOnce(tokio_postgres::Error) -> Self {
        let attempt = attempt.into();
        move |source| Self::Writing { attempt, source }
    }
}

/// Moves everything of an installation, then fences the source. Servers of both sides must be stopped.
pub async fn move_to_postgres(
    options: MoveOptions,
    mut progress: impl FnMut(MoveProgress) + Send,
) -> Result<MoveReport, MoveError> {
    let MoveOptions { source, target: url } = options;
    let source = Arc::new(blocking(move || Source::open(source)).await?);
    let outcome = moved(&source, &url, &mut progress).await;
    source.close().await;
    outcome
}

async fn moved(
    source: &Arc<Source>,
    url: &PostgresUrl,
    progress: &mut (impl FnMut(MoveProgress) + Send),
) -> Result<MoveReport, MoveError> {
    let target = Target::open(url).await?;
    target.begin().await?;
    let (mut tables, mut rows) = (Vec::new(), 0);
    for (done, table) in TABLES.iter().enumerate() {
        progress(MoveProgress { table: table.name, done, total: TABLES.len(), rows });
        let given = copy(source, &target, table).await?;
        let found = target.digested(table).await?;
        if given != found {
            return Err(MoveError::Different { table: table.name, given: given.rows, found: found.rows });
        }
        rows += given.rows;
        tables.push(MovedTable { name: table.name.to_owned(), rows: given.rows });
    }
    let counters = Arc::clone(source);
    target.go_on_from(blocking(move || counters.counters()).await?).await?;
    let blobs = target.blobs().await?;
    let fencing = Arc::clone(source);
    let before = blocking(move || fencing.fence()).await?;
    let committed = target.commit(url).await;
    if let Committed::No(error) = committed {
        let fenced = Arc::clone(source);
        blocking(move || fenced.put_back(before)).await?;
        return Err(error);
    }
    if let Committed::Unknown(error) = committed {
        return Err(MoveError::Unknown(error));
    }
    Ok(MoveReport { tables, blobs, verified: true })
}

/// Gives the target the rows of a table, as the source reads them.
async fn copy(source: &Arc<Source>, target: &Target, table: &'static Table) -> Result<Digested, MoveError> {
    let (give, rows) = mpsc::channel(WAITING);
    let source = Arc::clone(source);
    let reading = tokio::task::spawn_blocking(move || source.read(table, &give));
    let written = target.copy(table, rows).await;
    let read = reading.await.map_err(MoveError::reading("read the source"))?;
    // A reader that nobody listens to has nothing to say.
    let written = written?;
    read.map(|()| written)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, MoveError> + Send + 'static,
) -> Result<T, MoveError> {
    tokio::task::spawn_blocking(work).await.map_err(MoveError::reading("work on the source"))?
}
