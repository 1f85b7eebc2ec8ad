//! Telling what changed.
//!
//! Of commits through this handle it is known what they change; jobs that notes for automations make due are told by the
//! writer, which alone knows of them. That another program has committed (the command line
//! beside a server) SQLite tells by `PRAGMA data_version`, which the writer asks when it begins a transaction, and now
//! and then while it has nothing to do; then anything may have changed.

use std::time::{Duration, Instant};

use messaging_core::ports::store::{News, Topic, Topics};
use tokio::sync::watch;

/// How often it is looked whether another program has committed, and told at most: a program that commits all the time
/// would otherwise keep everything from being remembered.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(200);

/// What the writer knows of commits by others.
#[derive(Debug)]
pub(super) struct ForeignCommits {
    news: watch::Sender<News>,
    /// Whether something is still to be told.
    is_pending: bool,
    told_at: Option<Instant>,
}

impl ForeignCommits {
    pub(super) const fn new(news: watch::Sender<News>) -> Self {
        Self { news, is_pending: false, told_at: None }
    }

    /// Another program has committed.
    pub(super) const fn note(&mut self) {
        self.is_pending = true;
    }

    /// Tells that jobs are due which nobody who committed knows of.
    pub(super) fn tell_work(&self) {
        let mut work = Topics::NONE;
        work.insert(Topic::Work);
        tell(&self.news, work);
    }

    /// Tells what is to be told, if the last time is long enough ago.
    pub(super) fn tell(&mut self) {
        if self.is_pending && self.told_at.is_none_or(|at| at.elapsed() >= LOOK_EVERY) {
            self.is_pending = false;
            self.told_at = Some(Instant::now());
            tell(&self.news, Topics::ALL);
        }
    }
}

/// Tells of some topics.
pub(super) fn tell(news: &watch::Sender<News>, topics: Topics) {
    if !topics.is_empty() {
        news.send_modify(|news| news.tell(topics));
    }
}
