//! The store on SQLite, and the conformance suite that every store passes.
//!
//! Nothing is decided here: rows go in and come out as core's types. [`SqliteStore`] implements
//! [`messaging_core::ports::store::Store`]; the module `conformance` (feature of the same name) holds
//! the cases that a store of your own should pass as well.

#[cfg(feature = "conformance")]
pub mod conformance;
mod file_error;
pub mod key_file;
mod sqlite;

pub use file_error::FileError;
pub use sqlite::SqliteStore;
pub use sqlite::open::{OpenError, SqliteOptions};
