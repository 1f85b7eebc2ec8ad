//! The threads that read, each with a connection of its own.
//!
//! Looking up a row by its key takes less time than waking a thread. Such point reads run on the calling thread, on
//! connections kept for them; if those are in use, on a reader thread like all others. Without threads all reads run on
//! the calling thread, one after the other.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, TryLockError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use messaging_core::ports::store::StoreError;
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::connection;
use super::fault::Fault;

type WriterTask = Box<dyn FnOnce(Result<&Connection, Fault>) + Send>;

/// Maximum time for a read, many times longer than any read of the store takes. A longer one is interrupted, because
/// the log cannot start over while a reader uses its beginning.
const LONGEST: Duration = Duration::from_secs(15);

/// A connection, and the start of its read.
#[derive(Debug)]
struct Reader {
    connection: Connection,
    clock: Arc<ReadClock>,
}

/// Tells a read that its time is over.
#[derive(Debug)]
struct ReadClock {
    epoch: Instant,
    /// Milliseconds from the epoch until the running read began.
    began: AtomicU64,
}

impl Reader {
    fn open(path: &Path, longest: Duration) -> rusqlite::Result<Self> {
        let clock = Arc::new(ReadClock { epoch: Instant::now(), began: AtomicU64::new(0) });
        let handle = Arc::clone(&clock);
        let connection = connection::reader(path, move || handle.is_over(longest))?;
        Ok(Self { connection, clock })
    }

    /// Returns the connection for one read that begins now.
    fn begin(&self) -> &Connection {
        self.clock.began.store(self.clock.millis(), Ordering::Relaxed);
        &self.connection
    }
}

impl ReadClock {
    fn millis(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn is_over(&self, longest: Duration) -> bool {
        Duration::from_millis(self.millis().saturating_sub(self.began.load(Ordering::Relaxed))) > longest
    }
}

/// Runs reads on a few threads.
#[derive(Debug)]
pub(super) struct Readers {
    queue: Arc<Queue>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    point_reads: Vec<Mutex<Option<Reader>>>,
    path: PathBuf,
    capacity: usize,
    /// False if all reads run on the calling thread.
    has_threads: bool,
}

#[derive(Default)]
struct Queue {
    waiting: Mutex<QueueState>,
    wake: Condvar,
}

#[derive(Default)]
struct QueueState {
    tasks: VecDeque<WriterTask>,
    /// Number of sleeping threads: waking costs a system call, and under load none sleeps.
    sleeping: usize,
    closed: bool,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").finish_non_exhaustive()
    }
}

impl Readers {
    /// Starts the threads, if there are to be any; each opens its connection on its first read.
    pub(super) fn start(path: &Path, threads: usize, capacity: usize) -> std::io::Result<Self> {
        let queue = Arc::<Queue>::default();
        let mut handles = Vec::new();
        for number in 0..threads {
            let (queue, path) = (Arc::clone(&queue), path.to_owned());
            handles.push(thread::Builder::new().name(format!("store-reader-{number}")).spawn(move || {
                let mut connection = None;
                while let Some(task) = queue.next() {
                    // The task answers its caller; one that panics leaves a caller with an error.
                    let _ = catch_unwind(AssertUnwindSafe(|| task(begin(&mut connection, &path))));
                }
            })?);
        }
        let point_reads = (0..threads.max(1)).map(|_| Mutex::default()).collect();
        let (path, has_threads) = (path.to_owned(), threads > 0);
        Ok(Self { queue, threads: Mutex::new(handles), point_reads, path, capacity, has_threads })
    }

    /// Looks up a few rows by their keys.
    pub(super) async fn point_read<T, F>(&self, read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        match self.glance_here(read) {
            Ok(answer) => answer,
            Err(read) => self.read(read).await,
        }
    }

    /// Runs a read on this thread; gives it back if no connection is free or can be opened.
    fn glance_here<T, F>(&self, read: F) -> Result<Result<T, StoreError>, F>
    where
        F: FnOnce(&Connection) -> Result<T, Fault>,
    {
        for point_read in &self.point_reads {
            let mut connection = match point_read.try_lock() {
                Ok(connection) => connection,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => continue,
            };
            if self.queue.lock().closed {
                return Ok(Err(StoreError::Unavailable));
            }
            return match begin(&mut connection, &self.path) {
                Ok(connection) => Ok(read(connection).map_err(StoreError::from)),
                Err(_) => Err(read),
            };
        }
        Err(read)
    }

    /// Runs a read on this thread, after those of other callers.
    fn read_here<T, F>(&self, read: F) -> Result<T, StoreError>
    where
        F: FnOnce(&Connection) -> Result<T, Fault>,
    {
        let Some(reader) = self.point_reads.first() else { return Err(StoreError::Unavailable) };
        let mut reader = reader.lock().unwrap_or_else(PoisonError::into_inner);
        if self.queue.lock().closed {
            return Err(StoreError::Unavailable);
        }
        Ok(read(begin(&mut reader, &self.path)?)?)
    }

    /// Runs a read and waits for it.
    pub(super) async fn read<T, F>(&self, read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        if !self.has_threads {
            return self.read_here(read);
        }
        let (reply, answer) = oneshot::channel();
        self.queue.put(
            Box::new(move |connection| {
                let _ = reply.send(connection.and_then(read));
            }),
            self.capacity,
        )?;
        Ok(answer.await.map_err(|_| Fault::Panicked)??)
    }

    /// Runs a read without a time limit, as one transaction on a connection of its own. While it runs, the log cannot
    /// start over.
    pub(super) async fn read_at_length<T, F>(&self, read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        let path = self.path.clone();
        let task = tokio::task::spawn_blocking(move || {
            let connection = connection::reader(&path, || false)?;
            let transaction = connection.unchecked_transaction()?;
            read(&transaction)
        });
        Ok(task.await.map_err(|_| Fault::Panicked)??)
    }

    /// Lets the threads finish the waiting reads, and waits for their end.
    pub(super) fn close(&self) {
        self.queue.lock().closed = true;
        self.queue.wake.notify_all();
        for point_read in &self.point_reads {
            *point_read.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        for thread in std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner)) {
            let _ = thread.join();
        }
    }
}

/// Returns the connection of a reader for one read that begins now; opened the first time.
fn begin<'a>(reader: &'a mut Option<Reader>, path: &Path) -> Result<&'a Connection, Fault> {
    if reader.is_none() {
        *reader = Some(Reader::open(path, LONGEST)?);
    }
    reader.as_ref().map(Reader::begin).ok_or(Fault::Panicked)
}

impl Queue {
    fn lock(&self) -> std::sync::MutexGuard<'_, QueueState> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, task: WriterTask, capacity: usize) -> Result<(), StoreError> {
        let mut waiting = self.lock();
        if waiting.closed || waiting.tasks.len() >= capacity {
            return Err(StoreError::Unavailable);
        }
        waiting.tasks.push_back(task);
        if waiting.sleeping > 0 {
            self.wake.notify_one();
        }
        Ok(())
    }

    fn next(&self) -> Option<WriterTask> {
        let mut waiting = self.lock();
        loop {
            if let Some(task) = waiting.tasks.pop_front() {
                return Some(task);
            }
            if waiting.closed {
                return None;
            }
            waiting.sleeping += 1;
            waiting = self.wake.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            waiting.sleeping -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn without_threads_a_read_is_done_on_the_thread_that_asks() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("x.db");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE t (n); INSERT INTO t VALUES (7);").unwrap();
        let readers = Readers::start(&path, 0, 8).unwrap();
        let look = |connection: &Connection| -> Result<_, Fault> {
            let number: i64 = connection.query_row("SELECT n FROM t", [], |row| row.get(0))?;
            Ok((number, thread::current().id()))
        };
        assert_eq!(readers.read(look).await.unwrap(), (7, thread::current().id()));
        assert_eq!(readers.point_read(look).await.unwrap(), (7, thread::current().id()));
        readers.close();
        assert!(matches!(readers.read(look).await, Err(StoreError::Unavailable)));
    }

    #[test]
    fn a_read_without_end_is_given_up_and_the_next_one_works() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("x.db");
        Connection::open(&path).unwrap().execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t (n);").unwrap();
        let reader = Reader::open(&path, Duration::from_millis(50)).unwrap();
        let endless = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n";
        let ended = reader.begin().query_row(endless, [], |row| row.get::<_, i64>(0)).map_err(Fault::from);
        assert!(matches!(StoreError::from(ended.unwrap_err()), StoreError::Unavailable));
        let answer: i64 = reader.begin().query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
        assert_eq!(answer, 0);
    }
}
