//! Moving an installation from SQLite to PostgreSQL: offline, counted, verified.
//!
//! The source is opened exclusively and read in one snapshot; the target receives everything in one transaction. Each
//! table is read back in it, and the sum of the digests of its rows is compared with that of the rows read from the
//! source, so that the target holds exactly the rows of the source. Then the source is fenced, and only after that the
//! target commits: at no moment two databases would send the same.

pub(crate) mod digest;
pub(crate) mod error;
pub(crate) mod report;
pub(crate) mod tables;

use std::sync::Arc;

use tokio::sync::mpsc;

use self::digest::Digested;
use self::tables::{TABLES, Table};
use crate::postgres::PostgresUrl;
use crate::postgres::moved::{Committed, Target};
use crate::sqlite::moved::Source;
use crate::sqlite::open::SqliteOptions;

pub use self::error::MoveError;
pub use self::report::{MoveProgress, MoveReport, MovedBlobs, MovedTable};

/// Number of slices of rows that wait for the target.
const WAITING: usize = 4;

/// Source and target of a move.
#[derive(Debug, Clone)]
pub struct MoveOptions {
    /// The database file, and the paths of its attachments, its uploads and the number of its latest start.
    pub source: SqliteOptions,
    /// The database that receives everything.
    pub target: PostgresUrl,
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

/// Copies the rows of a table to the target, as the source reads them.
async fn copy(source: &Arc<Source>, target: &Target, table: &'static Table) -> Result<Digested, MoveError> {
    let (give, rows) = mpsc::channel(WAITING);
    let source = Arc::clone(source);
    let reading = tokio::task::spawn_blocking(move || source.read(table, &give));
    let written = target.copy(table, rows).await;
    let read = reading.await.map_err(MoveError::reading("read the source"))?;
    // If the target failed, the error of the reader only follows from that.
    let written = written?;
    read.map(|()| written)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, MoveError> + Send + 'static,
) -> Result<T, MoveError> {
    tokio::task::spawn_blocking(work).await.map_err(MoveError::reading("work on the source"))?
}
