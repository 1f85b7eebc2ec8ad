//! Moving an installation from SQLite to PostgreSQL.

use std::path::PathBuf;

pub use messaging_store::moving::{MoveError, MoveProgress, MoveReport, MovedBlobs, MovedTable};
use messaging_store::moving::{MoveOptions, move_to_postgres};
use messaging_store::{MalformedPostgresUrl, PostgresUrl, SqliteOptions};

use super::data_directory::EPOCH;
use crate::settings::Database;

/// Source and target of a move.
#[derive(Debug, Clone)]
pub struct Move {
    source: PathBuf,
    target: PostgresUrl,
}

/// Error of the source or target of a move.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoMove {
    /// The source is not a file of SQLite.
    #[error("--from must be a path or sqlite://PATH")]
    Source,
    /// The target is not a database of PostgreSQL.
    #[error("--to must be postgres://USER:PASSWORD@HOST:PORT/DATABASE")]
    Target,
    /// The PostgreSQL URL is malformed.
    #[error(transparent)]
    TargetUrl(#[from] MalformedPostgresUrl),
}

impl Move {
    /// Parses the source and the target.
    pub fn parse(from: &str, to: &str) -> Result<Self, NoMove> {
        let Ok(Database::Sqlite(source)) = Database::parse(from) else { return Err(NoMove::Source) };
        if !PostgresUrl::is_one(to) {
            return Err(NoMove::Target);
        }
        Ok(Self { source, target: PostgresUrl::parse(to)? })
    }

    /// Moves everything; then fences the source.
    pub async fn carry_out(self, progress: impl FnMut(MoveProgress) + Send) -> Result<MoveReport, MoveError> {
        let epoch = self.source.with_file_name(EPOCH);
        let mut source = SqliteOptions::new(self.source);
        source.epoch = Some(epoch);
        move_to_postgres(MoveOptions { source, target: self.target }, progress).await
    }
}
