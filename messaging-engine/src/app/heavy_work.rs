//! Queue for work that keeps a processor busy, such as making RSA keys. It runs off the threads that serve requests,
//! with limits on running and on waiting work.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::error::Error;

/// A bounded queue for one kind of heavy work.
#[derive(Debug)]
pub(crate) struct HeavyWork {
    /// Permits of running work.
    working: Arc<Semaphore>,
    /// Permits of all callers, whose work is running or waits.
    admitted: Semaphore,
    /// True if work runs on the thread of the caller.
    is_inline: bool,
}

impl HeavyWork {
    /// A queue in which `at_a_time` pieces of work run at a time and `waiting` more may wait; further ones are refused.
    pub(crate) fn new(at_a_time: usize, waiting: usize) -> Self {
        Self {
            working: Arc::new(Semaphore::new(at_a_time)),
            admitted: Semaphore::new(at_a_time + waiting),
            is_inline: false,
        }
    }

    /// Sets whether the work runs on the thread of the caller.
    pub(crate) fn inline(self, is_inline: bool) -> Self {
        Self { is_inline, ..self }
    }

    /// Runs the work on a blocking thread when it is its turn. Fails at once with [`Error::Unavailable`] when the queue
    /// is full, and with an internal error when the work panics.
    pub(crate) async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
        let _place = self.admitted.try_acquire().map_err(|_| Error::Unavailable { retry_after: 1 })?;
        let turn = Arc::clone(&self.working).acquire_owned().await.map_err(Error::internal)?;
        if self.is_inline {
            return Ok(work());
        }
        let work = move || {
            // The thread holds the permit, because the work continues when the caller is dropped.
            let _turn = turn;
            work()
        };
        tokio::task::spawn_blocking(work).await.map_err(Error::internal)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn a_queue_that_is_too_long_sends_away() {
        let queue = Arc::new(HeavyWork::new(1, 1));
        let (started, mut is_started) = tokio::sync::mpsc::unbounded_channel();
        let begin = || {
            let (queue, started) = (Arc::clone(&queue), started.clone());
            let (finish, until) = mpsc::channel::<()>();
            let work = tokio::spawn(async move {
                let work = move || {
                    started.send(()).unwrap();
                    until.recv().unwrap();
                };
                queue.run(work).await
            });
            (work, finish)
        };
        let (first, finish_first) = begin();
        is_started.recv().await.unwrap();
        let (second, finish_second) = begin();
        while queue.admitted.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert!(matches!(queue.run(|| ()).await, Err(Error::Unavailable { .. })));
        assert!(is_started.is_empty(), "the second waits for the first");
        finish_first.send(()).unwrap();
        is_started.recv().await.unwrap();
        finish_second.send(()).unwrap();
        for work in [first, second] {
            work.await.unwrap().unwrap();
        }
        queue.run(|| ()).await.unwrap();
    }
}
