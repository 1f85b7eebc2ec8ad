//! News of commits.
//!
//! The changes of commits through this handle are known; jobs that become due by notes for automations are announced by
//! the writer, which alone knows of them. Commits of other programs (the command line beside a server) are noticed by
//! `PRAGMA data_version`, which the writer reads when it begins a transaction, and at intervals while it has nothing to
//! do; such a commit may have changed anything.

use std::time::{Duration, Instant};

use messaging_core::ports::store::{News, Topic, Topics};
use tokio::sync::watch;

/// Interval at which commits of other programs are looked for, and announced at most: a program that commits all the
/// time would otherwise keep all caches empty.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Commits of other programs, as far as the writer has noticed them.
#[derive(Debug)]
pub(super) struct ForeignCommits {
    news: watch::Sender<News>,
    /// True if a commit is still to be announced.
    is_pending: bool,
    told_at: Option<Instant>,
}

impl ForeignCommits {
    pub(super) const fn new(news: watch::Sender<News>) -> Self {
        Self { news, is_pending: false, told_at: None }
    }

    /// Notes a commit of another program.
    pub(super) const fn note(&mut self) {
        self.is_pending = true;
    }

    /// Announces that jobs are due which no commit has announced.
    pub(super) fn tell_work(&self) {
        let mut work = Topics::NONE;
        work.insert(Topic::Work);
        tell(&self.news, work);
    }

    /// Announces noted commits, if the last time is long enough ago.
    pub(super) fn tell(&mut self) {
        if self.is_pending && self.told_at.is_none_or(|at| at.elapsed() >= LOOK_EVERY) {
            self.is_pending = false;
            self.told_at = Some(Instant::now());
            tell(&self.news, Topics::ALL);
        }
    }
}

/// Announces topics.
pub(super) fn tell(news: &watch::Sender<News>, topics: Topics) {
    if !topics.is_empty() {
        news.send_modify(|news| news.tell(topics));
    }
}
