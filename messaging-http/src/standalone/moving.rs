//! Moving an installation from SQLite to PostgreSQL.

use std::path::PathBuf;

pub use messaging_store::moving::{MoveError, MoveProgress, MoveReport, MovedBlobs, MovedTable};
use messaging_store::moving::{MoveOptions, move_to_postgres};
use messaging_store::{MalformedPostgresUrl, PostgresUrl, SqliteOptions};

use super::data_directory::EPOCH;
use crate::settings::Database;

/// What is moved, and where to.
#[derive(Debug, Clone)]
pub struct Move {
    source: PathBuf,
    target: PostgresUrl,
}

/// Why something cannot be moved from or to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoMove {
    /// The source is no file of SQLite.
    #[error("--from must be a path or sqlite://PATH")]
    Source,
    /// The target is no database of PostgreSQL.
    #[error("--to must be postgres://USER:PASSWORD@HOST:PORT/DATABASE")]
    Target,
    /// The target begins like one.
    #[error(transparent)]
    TargetUrl(#[from] MalformedPostgresUrl),
}

impl Move {
    /// Reads what the two sides are called.
    pub fn parse(from: &str, to: &str) -> Result<Self, NoMove> {
        let Ok(Database::Sqlite(source)) = Database::parse(from) else { return Err(NoMove::Source) };
        if !PostgresUrl::is_one(to) {
            return Err(NoMove::Target);
        }
        Ok(Self { source, target: PostgresUrl::parse(to)? })
    }

    /// Moves everything; then the source is fenced.
    pub async fn carry_out(self, progress: impl FnMut(MoveProgress) + Send) -> Result<MoveReport, MoveError> {
        let epoch = self.source.with_file_name(EPOCH);
        let mut source = SqliteOptions::new(self.source);
        source.epoch = Some(epoch);
        move_to_postgres(MoveOptions { source, target: self.target }, progress).await
    }
}
