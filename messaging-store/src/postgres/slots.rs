//! Slots: the rows of the table `writers` under the term of this process. Each transaction that writes has one to
//! itself.
//!
//! A term is the number under which this process is registered in the database; whoever declares the process dead
//! deletes the rows of its term, and with them its right to write. A row holds the number of the slot's last
//! transaction, which tells the outcome of a commit whose answer was lost. What a transaction does is not known here:
//! [`Writes`](super::writes::Writes) begins one on the connection and slot that it takes.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deadpool_postgres::{Object, Pool};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::connection_health::ConnectionHealth;
use super::fault::Fault;
use super::known_subscriptions::KnownSubscriptions;
use super::lease_table::LeaseTable;
use super::news::ChangeNotifier;

/// Longest time that a transaction waits for a slot, and longest time spent on finding out the outcome of a commit.
const SLOT_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest time that a transaction waits for a slot and a connection together.
const TAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause between two attempts to ask for the outcome of a commit.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// The connections for writing and the slots of the present term.
#[derive(Debug)]
pub(super) struct Slots {
    pool: Pool,
    pub(super) lease_table: Arc<LeaseTable>,
    pub(super) notifier: Arc<ChangeNotifier>,
    pub(super) health: Arc<ConnectionHealth>,
    /// The present term; 0 before the first one begins.
    term: AtomicI64,
    /// One permit for each slot. A holder of a permit finds a slot in `free`.
    permits: Arc<Semaphore>,
    /// Numbers of the slots that are not in use.
    free: Mutex<Vec<i64>>,
    /// The number of the last transaction of this process, whatever its slot and term.
    last_transaction: AtomicI64,
    pub(super) counters: TransactionCounters,
    /// Subscriptions as this process saw them last.
    pub(super) known_subscriptions: KnownSubscriptions,
}

/// Counters of the transactions of this process, for metrics.
#[derive(Debug, Default)]
pub(super) struct TransactionCounters {
    /// Transactions that were committed.
    pub(super) transactions: AtomicU64,
    /// Round trips to the database that transactions made.
    pub(super) round_trips: AtomicU64,
    /// Commits whose outcome could not be found out in time.
    pub(super) unknown: AtomicU64,
}

/// A slot that one transaction has until this is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    slots: Arc<Slots>,
    /// The term under which the slot was taken.
    pub(super) term: i64,
    /// The number of the slot, from 0 in each term.
    pub(super) number: i64,
    /// The number of the transaction, higher than that of every earlier one of this process.
    pub(super) transaction: i64,
    _permit: OwnedSemaphorePermit,
}

/// Outcome of a commit whose answer was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Committed,
    NotCommitted,
    /// The database did not answer in time, or the term is over and its rows are deleted.
    Unknown,
}

impl Slots {
    /// Slots with the numbers from 0 to `slots - 1`, before the first term begins.
    pub(super) fn new(
        pool: Pool,
        slots: usize,
        lease_table: Arc<LeaseTable>,
        notifier: Arc<ChangeNotifier>,
        health: Arc<ConnectionHealth>,
    ) -> Self {
        Self {
            pool,
            lease_table,
            notifier,
            health,
            term: AtomicI64::new(0),
            permits: Arc::new(Semaphore::new(slots)),
            free: Mutex::new((0..slots).rev().filter_map(|slot| i64::try_from(slot).ok()).collect()),
            last_transaction: AtomicI64::new(0),
            counters: TransactionCounters::default(),
            known_subscriptions: KnownSubscriptions::default(),
        }
    }

    /// The present term.
    pub(super) fn term(&self) -> i64 {
        self.term.load(Ordering::Acquire)
    }

    /// Continues under another term. The claims of jobs under the previous term are dropped.
    pub(super) fn begin_term(&self, term: i64) {
        self.term.store(term, Ordering::Release);
        self.lease_table.begin_term(term);
    }

    /// Waits for a slot and a connection that no other transaction has, under the present term. Without a slot within
    /// [`SLOT_TIMEOUT`] the error is `Fault::Unhealthy`; without a connection it is that of [`ConnectionHealth::wait`].
    pub(super) async fn take(self: &Arc<Self>) -> Result<(Object, Slot), Fault> {
        let began = Instant::now();
        let permit = Arc::clone(&self.permits).acquire_owned();
        let permit = tokio::time::timeout(SLOT_TIMEOUT, permit).await.map_err(|_| Fault::Unhealthy)?;
        let permit = permit.map_err(|_| Fault::Unhealthy)?;
        let connection = async { Ok(self.pool.get().await?) };
        let connection = self.health.wait(began, TAKE_TIMEOUT, connection).await?;
        let number = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop().ok_or(Fault::Unhealthy)?;
        let transaction = self.next();
        Ok((connection, Slot { slots: Arc::clone(self), term: self.term(), number, transaction, _permit: permit }))
    }

    /// A new transaction number.
    fn next(&self) -> i64 {
        self.last_transaction.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl Slot {
    pub(super) fn lease_table(&self) -> &Arc<LeaseTable> {
        &self.slots.lease_table
    }

    pub(super) fn counters(&self) -> &TransactionCounters {
        &self.slots.counters
    }

    pub(super) fn known_subscriptions(&self) -> &KnownSubscriptions {
        &self.slots.known_subscriptions
    }

    pub(super) fn notifier(&self) -> &ChangeNotifier {
        &self.slots.notifier
    }

    pub(super) fn health(&self) -> &Arc<ConnectionHealth> {
        &self.slots.health
    }

    /// Finds out if the transaction was committed, after the answer to its commit was lost. If it was not, this also
    /// makes sure that it never will be. Asks until an answer comes, at most for [`SLOT_TIMEOUT`].
    pub(super) async fn outcome(&self) -> Outcome {
        let until = Instant::now() + SLOT_TIMEOUT;
        loop {
            let now = Instant::now();
            let rest = until.saturating_duration_since(now);
            if rest.is_zero() {
                break;
            }
            if let Ok(outcome) = self.health().answer(now, rest, self.query_outcome()).await {
                return outcome;
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
        self.slots.counters.unknown.fetch_add(1, Ordering::Relaxed);
        Outcome::Unknown
    }

    /// Asks for the outcome once. If the transaction was not committed, this raises the number in the slot's row above
    /// that of the transaction, which then can no longer begin.
    async fn query_outcome(&self) -> Result<Outcome, Fault> {
        let mut connection = self.slots.pool.get().await?;
        let transaction = connection.transaction().await?;
        // `FOR UPDATE` waits for the transaction if it is still open. If its first statement is yet to arrive, that one
        // requires a number below its own (`Transaction::begin`), and fails on the number that is written below.
        let sql = "SELECT n FROM writers WHERE term = $1 AND slot = $2 FOR UPDATE";
        let found = transaction.query_opt(sql, &[&self.term, &self.number]).await?;
        let Some(row) = found else { return Ok(Outcome::Unknown) };
        if row.try_get::<_, i64>(0)? == self.transaction {
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
        // The permit is released after this, so its next holder finds the slot.
        self.slots.free.lock().unwrap_or_else(PoisonError::into_inner).push(self.number);
    }
}
