//! The setting `database`: a path, or the URL of SQLite or PostgreSQL.

use std::fmt;
use std::path::{Path, PathBuf};

#[cfg(feature = "postgres")]
use messaging_store::PostgresUrl;

use super::SettingsError;

/// Schemes by which a text is recognized as the URL of a database.
const SCHEMES: [&str; 5] = ["sqlite:", "postgres:", "postgresql:", "mysql:", "file:"];

/// A database, as the settings name it. It is shown without its password.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Database {
    /// A file of SQLite.
    Sqlite(PathBuf),
    /// A database on a PostgreSQL server.
    #[cfg(feature = "postgres")]
    Postgres(PostgresUrl),
}

impl Database {
    /// Parses the value of `--database`: a path, `sqlite://PATH` or `postgres://…`.
    pub(crate) fn parse(text: &str) -> Result<Self, SettingsError> {
        #[cfg(feature = "postgres")]
        if PostgresUrl::is_one(text) {
            return Ok(Self::Postgres(PostgresUrl::parse(text)?));
        }
        match text.split_once("://") {
            Some(("sqlite", path)) if !path.is_empty() => Ok(Self::Sqlite(path.into())),
            // A URL that lacks its slashes; the name of a file may have a colon.
            None if SCHEMES.iter().any(|scheme| text.starts_with(scheme)) => Err(SettingsError::UnknownDatabase),
            None if !text.is_empty() => Ok(Self::Sqlite(text.into())),
            _ => Err(SettingsError::UnknownDatabase),
        }
    }

    /// The file, if the database is one on this machine.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(path) => Some(path),
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => None,
        }
    }

    /// Returns true if the database exists, as far as that is known without asking a server. A file that cannot be
    /// examined counts as existing: opening it reports the error.
    pub fn exists(&self) -> bool {
        self.file().is_none_or(|file| !matches!(file.try_exists(), Ok(false)))
    }
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => path.display().fmt(f),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => url.fmt(f),
        }
    }
}
