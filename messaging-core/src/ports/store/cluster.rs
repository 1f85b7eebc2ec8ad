//! The processes that work on one database.

use std::time::Duration;

use crate::domain::delivery::lane::Lane;
use crate::time::Timestamp;

/// The processes of an installation, and the jobs that wait for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterView {
    /// Processes by term, the newest first.
    pub nodes: Vec<NodeView>,
    /// The number of places that jobs are divided into.
    pub places: u64,
    /// Places whose jobs no process claims.
    pub free_places: u64,
    /// Lane of the job that is overdue for longest, and the time since it was due.
    pub oldest_due_job: Option<(Lane, Duration)>,
    /// Age of the oldest open transaction that writes, which the event log waits for.
    pub event_log_lag: Duration,
    /// The version of the server.
    pub server_version: String,
    /// The server's timeline, which rises with every promotion.
    pub timeline: i64,
    /// Number of times that other processes ended the term of this one.
    pub fenced: u64,
    /// Commits of this process with an unknown outcome.
    pub unknown_commits: u64,
    /// Transactions that this process has committed.
    pub transactions: u64,
    /// Number of times that a transaction of this process waited for the database, without the first use of a
    /// statement.
    pub round_trips: u64,
}

/// A process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeView {
    /// The name of the process among the others.
    pub name: String,
    /// The number under which it writes.
    pub term: i64,
    /// Version of the program.
    pub version: String,
    /// `working`, `idle`, `draining`, `fenced` or `clock`.
    pub state: &'static str,
    /// True if the process claims jobs; false for a command that runs beside the servers.
    pub works: bool,
    /// True for the process that answers.
    pub is_this: bool,
    /// The number of places that the process owns.
    pub places: u64,
    /// Time at which the process was last seen, on the database's clock.
    pub seen_at: Timestamp,
    /// Milliseconds by which the database's clock is ahead of the process's clock.
    pub clock_offset_ms: i64,
}
