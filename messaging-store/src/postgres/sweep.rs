//! Transactions outside of commits.

use messaging_core::ports::store::StoreError;

use super::fault::Fault;
use super::transaction::Transaction;
use super::writes::Writes;
use crate::sql::{Params, params};

/// Runs a statement that may be lost in a crash: what came back is swept again. Answers how many rows it touched.
pub(super) async fn sweep(on: &Writes, sql: &'static str, params: Params) -> Result<u64, StoreError> {
    let mut transaction = begin_undurably(on).await?;
    let touched = transaction.execute(sql, params).await;
    Ok(end(transaction, touched).await?)
}

/// Begins a transaction that does not wait for the disk.
pub(super) async fn begin_undurably(on: &Writes) -> Result<Transaction, Fault> {
    let mut transaction = on.begin().await?;
    transaction.run("SET LOCAL synchronous_commit = off", params![]);
    Ok(transaction)
}

/// Commits, unless something failed. Whoever waits for it hears in time when the database does not answer.
pub(super) async fn end<T>(transaction: Transaction, outcome: Result<T, Fault>) -> Result<T, Fault> {
    if outcome.is_ok() {
        transaction.health().commit(transaction.commit()).await?;
    } else {
        transaction.roll_back().await;
    }
    outcome
}
