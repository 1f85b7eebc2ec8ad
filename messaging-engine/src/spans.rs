//! Spans: how long requests, commits, attempts and calls of webhooks take, and which belongs to which.
//!
//! They are of one target, so that whoever exports them takes no others, and log lines do without. No field holds an
//! address or another text that somebody wrote. While nobody takes them each costs an atomic load.

/// The target of all spans.
pub const TARGET: &str = "messaging_spans";
