//! The processes that work on one database.

use std::time::Duration;

use crate::domain::delivery::lane::Lane;
use crate::time::Timestamp;

/// The processes of an installation, and what waits for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterView {
    /// By term, the newest first.
    pub nodes: Vec<NodeView>,
    /// The number of places that jobs are divided into.
    pub places: u64,
    /// Places whose jobs nobody claims.
    pub free_places: u64,
    /// The job that is due for longest, and for how long.
    pub oldest_due_job: Option<(Lane, Duration)>,
    /// How long the oldest open transaction that writes is open, which the event log waits for.
    pub event_log_lag: Duration,
    /// The version of the server.
    pub server_version: String,
    /// The server's timeline, which rises with every promotion.
    pub timeline: i64,
    /// How often the term of this process was ended by others.
    pub fenced: u64,
    /// Commits of this process of which nobody knows whether they are kept.
    pub unknown_commits: u64,
    /// Transactions that this process has committed.
    pub transactions: u64,
    /// How often a transaction of this process waited for the database, but for the first use of a statement.
    pub round_trips: u64,
}

/// A process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeView {
    /// The name of the process among the others.
    pub name: String,
    /// The number under which it writes.
    pub term: i64,
    /// Its version.
    pub version: String,
    /// `working`, `idle`, `draining`, `fenced` or `clock`.
    pub state: &'static str,
    /// Whether the process claims jobs at all; a command beside the servers does not.
    pub works: bool,
    /// Whether this is the process that is asked.
    pub is_this: bool,
    /// The number of places that the process owns.
    pub places: u64,
    /// When it was there last, on the database's clock.
    pub seen_at: Timestamp,
    /// By how many milliseconds the database's clock is ahead of its own.
    pub clock_offset_ms: i64,
}
