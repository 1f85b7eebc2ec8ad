//! The slots of a term: rows of `writers`, of which each transaction that writes has one to itself.
//!
//! The row keeps the number of the slot's last transaction, so that the outcome of a commit whose answer was lost can be
//! asked for. Nothing here knows what a transaction does: [`Writes`](super::writes::Writes) begins one on what it takes.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deadpool_postgres::{Object, Pool};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::fault::Fault;
use super::lease_table::LeaseTable;
use super::line::Line;
use super::news::ChangeNotifier;

/// How long a commit waits for its slot, and how long the outcome of one is asked for.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a commit waits for a slot and a connection in all.
const LONGEST: Duration = Duration::from_secs(10);

/// How long is waited between two attempts to ask.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// The connections that write and the slots of the present term.
#[derive(Debug)]
pub(super) struct Slots {
    pool: Pool,
    pub(super) lease_table: Arc<LeaseTable>,
    pub(super) notifier: Arc<ChangeNotifier>,
    pub(super) line: Arc<Line>,
    term: AtomicI64,
    /// How many transactions there may be at a time, and the slots that none has.
    room: Arc<Semaphore>,
    free: Mutex<Vec<i64>>,
    /// The number of the last transaction.
    last: AtomicI64,
    pub(super) counters: TransactionCounters,
}

/// What is counted of the transactions of this process, for metrics.
#[derive(Debug, Default)]
pub(super) struct TransactionCounters {
    /// Those that were committed.
    pub(super) transactions: AtomicU64,
    /// How often one waited for the database.
    pub(super) round_trips: AtomicU64,
    /// Those of which nobody knows what became of them.
    pub(super) unknown: AtomicU64,
}

/// The row that a transaction touches.
#[derive(Debug)]
pub(super) struct Slot {
    slots: Arc<Slots>,
    pub(super) term: i64,
    pub(super) number: i64,
    /// The number of the transaction.
    pub(super) n: i64,
    _room: OwnedSemaphorePermit,
}

/// What became of a commit whose answer was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Committed,
    NotCommitted,
    Unknown,
}

impl Slots {
    pub(super) fn new(
        pool: Pool,
        slots: usize,
        lease_table: Arc<LeaseTable>,
        notifier: Arc<ChangeNotifier>,
        line: Arc<Line>,
    ) -> Self {
        Self {
            pool,
            lease_table,
            notifier,
            line,
            term: AtomicI64::new(0),
            room: Arc::new(Semaphore::new(slots)),
            free: Mutex::new((0..slots).rev().filter_map(|slot| i64::try_from(slot).ok()).collect()),
            last: AtomicI64::new(0),
            counters: TransactionCounters::default(),
        }
    }

    /// The present term.
    pub(super) fn term(&self) -> i64 {
        self.term.load(Ordering::Acquire)
    }

    /// Goes on under another term; all claims are dropped.
    pub(super) fn begin_term(&self, term: i64) {
        self.term.store(term, Ordering::Release);
        self.lease_table.begin_term(term);
    }

    /// A connection and a slot that no other transaction has, under the present term. Waits for both.
    pub(super) async fn take(self: &Arc<Self>) -> Result<(Object, Slot), Fault> {
        let began = Instant::now();
        let room = Arc::clone(&self.room).acquire_owned();
        let room = tokio::time::timeout(PATIENCE, room).await.map_err(|_| Fault::Unhealthy)?;
        let room = room.map_err(|_| Fault::Unhealthy)?;
        let connection = async { Ok(self.pool.get().await?) };
        let connection = self.line.wait(began, LONGEST, connection).await?;
        let number = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop().ok_or(Fault::Unhealthy)?;
        let n = self.next();
        Ok((connection, Slot { slots: Arc::clone(self), term: self.term(), number, n, _room: room }))
    }

    fn next(&self) -> i64 {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl Slot {
    pub(super) fn lease_table(&self) -> &Arc<LeaseTable> {
        &self.slots.lease_table
    }

    pub(super) fn counters(&self) -> &TransactionCounters {
        &self.slots.counters
    }

    pub(super) fn notifier(&self) -> &ChangeNotifier {
        &self.slots.notifier
    }

    pub(super) fn line(&self) -> &Arc<Line> {
        &self.slots.line
    }

    /// Finds out whether the transaction was committed whose answer was lost, and sees to it that it is not if it was not.
    pub(super) async fn outcome(&self) -> Outcome {
        let until = Instant::now() + PATIENCE;
        loop {
            let now = Instant::now();
            let rest = until.saturating_duration_since(now);
            if rest.is_zero() {
                break;
            }
            if let Ok(outcome) = self.line().answer(now, rest, self.ask()).await {
                return outcome;
            }
            tokio::time::sleep(ASK_AGAIN).await;
        }
        self.slots.counters.unknown.fetch_add(1, Ordering::Relaxed);
        Outcome::Unknown
    }

    async fn ask(&self) -> Result<Outcome, Fault> {
        let mut connection = self.slots.pool.get().await?;
        let transaction = connection.transaction().await?;
        // Waits for the transaction if it is still open; one that has not begun finds a number that is not below its own.
        let sql = "SELECT n FROM writers WHERE term = $1 AND slot = $2 FOR UPDATE";
        let found = transaction.query_opt(sql, &[&self.term, &self.number]).await?;
        let Some(row) = found else { return Ok(Outcome::Unknown) };
        if row.try_get::<_, i64>(0)? == self.n {
            return Ok(Outcome::Committed);
        }
        let sql = "UPDATE writers SET n = $3 WHERE term = $1 AND slot = $2";
        transaction.execute(sql, &[&self.term, &self.number, &self.slots.next()]).await?;
        transaction.commit().await?;
        Ok(Outcome::NotCommitted)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.free.lock().unwrap_or_else(PoisonError::into_inner).push(self.number);
    }
}
