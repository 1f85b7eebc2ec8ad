//! The right of this process to write: its term, and its transactions.
//!
//! Every transaction that writes first touches one of the rows of its term, its [slot](super::slots). A process that
//! declares this one dead deletes these rows, and all later writes are refused.

use std::sync::Arc;

use deadpool_postgres::Pool;

use super::connection_health::ConnectionHealth;
use super::fault::Fault;
use super::lease_table::LeaseTable;
use super::news::ChangeNotifier;
use super::slots::Slots;
use super::transaction::Transaction;

/// Begins transactions.
#[derive(Debug, Clone)]
pub(super) struct Writes(pub(super) Arc<Slots>);

impl Writes {
    pub(super) fn new(
        pool: Pool,
        slots: usize,
        lease_table: Arc<LeaseTable>,
        notifier: Arc<ChangeNotifier>,
        health: Arc<ConnectionHealth>,
    ) -> Self {
        Self(Arc::new(Slots::new(pool, slots, lease_table, notifier, health)))
    }

    /// Current term.
    pub(super) fn term(&self) -> i64 {
        self.0.term()
    }

    /// Continues under another term; all claims are dropped.
    pub(super) fn begin_term(&self, term: i64) {
        self.0.begin_term(term);
    }

    /// Begins a transaction that writes, under the current term. Nothing is sent yet.
    pub(super) async fn begin(&self) -> Result<Transaction, Fault> {
        let (connection, slot) = self.0.take().await?;
        Ok(Transaction::begin(connection, slot))
    }
}
