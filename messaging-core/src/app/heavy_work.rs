//! Work that keeps a processor busy: off the threads that serve requests, and only some at a time.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::error::Error;

/// A queue for one kind of heavy work.
#[derive(Debug)]
pub(super) struct HeavyWork {
    working: Arc<Semaphore>,
    waiting: Semaphore,
}

impl HeavyWork {
    /// A queue of which so many are done at a time and so many more may wait; further ones are told to
    /// come back.
    pub(super) fn new(at_a_time: usize, waiting: usize) -> Self {
        Self { working: Arc::new(Semaphore::new(at_a_time)), waiting: Semaphore::new(at_a_time + waiting) }
    }

    /// Does the work when it is its turn.
    pub(super) async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
        let _place = self.waiting.try_acquire().map_err(|_| Error::Unavailable { retry_after: 1 })?;
        let turn = Arc::clone(&self.working).acquire_owned().await.map_err(Error::internal)?;
        let work = move || {
            // The thread holds the turn: it goes on when the caller gives up.
            let _turn = turn;
            work()
        };
        tokio::task::spawn_blocking(work).await.map_err(Error::internal)
    }
}
