//! Report of a move: rows by table, attachments and bytes.

use serde::{Deserialize, Serialize};

/// Progress of a move to PostgreSQL while it runs.
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

/// Summary of a completed move: the tables and attachments that were copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MoveReport {
    /// Tables of the target, with as many rows as the source has.
    pub tables: Vec<MovedTable>,
    /// Attachments.
    pub blobs: MovedBlobs,
    /// True if the rows read from the target were compared with the source. A move that finds a difference fails.
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
    /// The number of attachments that were moved.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}
