//! The store on SQLite and on PostgreSQL.
//!
//! Nothing is decided here: rows go in and come out as core's types. [`SqliteStore`] implements
//! [`messaging_core::ports::store::Store`]; the crate
//! `messaging-conformance` holds the cases that a store of your own should pass as well.
//!
//! ```
//! use messaging_core::ports::Store as _;
//! use messaging_store::{SqliteOptions, SqliteStore};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("messaging.db");
//! let store = SqliteStore::open(SqliteOptions::new(path))?;
//! store.ping().await?;
//! store.close().await;
//! # Ok(())
//! # }
//! ```

mod audience_rows;
mod automation_rows;
pub mod backup;
mod comparing;
mod counter_deltas;
mod database;
mod fault;
mod file_error;
mod files;
mod happened;
pub mod key_file;
mod migrations;
#[cfg(feature = "postgres")]
pub mod moving;
mod observed;
mod open_error;
mod pages;
#[cfg(feature = "postgres")]
mod postgres;
mod row;
mod sampling;
mod segment_moves;
mod send_times;
mod several_statuses;
mod sql;
mod sqlite;
mod tables;
mod temporary;
mod workspace_rows;

pub use database::SqlStore;
pub use file_error::FileError;
pub use open_error::OpenError;
#[cfg(feature = "s3")]
pub use postgres::{Bucket, BucketError, BucketUrl, MalformedBucketUrl};
#[cfg(feature = "postgres")]
pub use postgres::{Heartbeats, MalformedPostgresUrl, PostgresOptions, PostgresStore, PostgresUrl};
pub use sqlite::SqliteStore;
pub use sqlite::health::disk_space;
pub use sqlite::open::SqliteOptions;
pub use temporary::TemporaryDatabases;
