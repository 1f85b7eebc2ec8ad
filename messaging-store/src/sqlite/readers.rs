//! The threads that read, each with a connection of its own.
//!
//! Looking up a row by its key takes less time than waking a thread. Such glances are taken where they
//! are asked for, on connections kept for them; when those are taken, by a thread like everything else.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError, TryLockError};
use std::thread::{self, JoinHandle};

use messaging_core::ports::store::StoreError;
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::connection;
use super::fault::Fault;

type Errand = Box<dyn FnOnce(Result<&Connection, Fault>) + Send>;

/// Runs reads on a few threads.
#[derive(Debug)]
pub(super) struct Readers {
    desk: Arc<Desk>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    glances: Vec<Mutex<Option<Connection>>>,
    path: PathBuf,
    capacity: usize,
}

#[derive(Default)]
struct Desk {
    waiting: Mutex<Waiting>,
    wake: Condvar,
}

#[derive(Default)]
struct Waiting {
    errands: VecDeque<Errand>,
    /// How many threads sleep: waking costs a system call, and under load nobody sleeps.
    sleeping: usize,
    closed: bool,
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk").finish_non_exhaustive()
    }
}

impl Readers {
    /// Starts the threads; each opens its connection when it has something to read.
    pub(super) fn start(path: &Path, threads: usize, capacity: usize) -> std::io::Result<Self> {
        let desk = Arc::<Desk>::default();
        let mut handles = Vec::new();
        for number in 0..threads.max(1) {
            let (desk, path) = (Arc::clone(&desk), path.to_owned());
            handles.push(thread::Builder::new().name(format!("store-reader-{number}")).spawn(move || {
                let mut connection = None;
                while let Some(errand) = desk.next() {
                    // The errand answers its caller; one that panics leaves a caller with an error.
                    let _ = catch_unwind(AssertUnwindSafe(|| serve(&mut connection, &path, errand)));
                }
            })?);
        }
        let glances = (0..threads.max(1)).map(|_| Mutex::default()).collect();
        Ok(Self { desk, threads: Mutex::new(handles), glances, path: path.to_owned(), capacity })
    }

    /// Looks up a few rows by their keys.
    pub(super) async fn glance<T, F>(&self, read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        match self.glance_here(read) {
            Ok(answer) => answer,
            Err(read) => self.read(read).await,
        }
    }

    /// Gives the read back when no connection is free.
    fn glance_here<T, F>(&self, read: F) -> Result<Result<T, StoreError>, F>
    where
        F: FnOnce(&Connection) -> Result<T, Fault>,
    {
        for glance in &self.glances {
            let mut connection = match glance.try_lock() {
                Ok(connection) => connection,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => continue,
            };
            if self.desk.lock().closed {
                return Ok(Err(StoreError::Unavailable));
            }
            if connection.is_none() {
                *connection = connection::reader(&self.path).ok();
            }
            if let Some(connection) = connection.as_ref() {
                return Ok(read(connection).map_err(StoreError::from));
            }
        }
        Err(read)
    }

    /// Runs a read and waits for it.
    pub(super) async fn read<T, F>(&self, read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        self.desk.put(
            Box::new(move |connection| {
                let _ = reply.send(connection.and_then(read));
            }),
            self.capacity,
        )?;
        Ok(answer.await.map_err(|_| Fault::Panicked)??)
    }

    /// Lets the threads finish what waits, and waits for them.
    pub(super) fn close(&self) {
        self.desk.lock().closed = true;
        self.desk.wake.notify_all();
        for glance in &self.glances {
            *glance.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        for thread in std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner)) {
            let _ = thread.join();
        }
    }
}

fn serve(connection: &mut Option<Connection>, path: &Path, errand: Errand) {
    if connection.is_none() {
        match connection::reader(path) {
            Ok(opened) => *connection = Some(opened),
            Err(error) => return errand(Err(error.into())),
        }
    }
    match connection {
        Some(connection) => errand(Ok(connection)),
        None => errand(Err(Fault::Panicked)),
    }
}

impl Desk {
    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, errand: Errand, capacity: usize) -> Result<(), StoreError> {
        let mut waiting = self.lock();
        if waiting.closed || waiting.errands.len() >= capacity {
            return Err(StoreError::Unavailable);
        }
        waiting.errands.push_back(errand);
        if waiting.sleeping > 0 {
            self.wake.notify_one();
        }
        Ok(())
    }

    fn next(&self) -> Option<Errand> {
        let mut waiting = self.lock();
        loop {
            if let Some(errand) = waiting.errands.pop_front() {
                return Some(errand);
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
