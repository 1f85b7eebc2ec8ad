//! Committing a transaction: what was gathered in it is written first.
//!
//! What writes it stands above the transaction, as functions over an open one, so this does too. Nothing else can
//! commit an open transaction, so nobody can forget what was gathered.

use super::super::fault::Fault;
use super::super::{listeners, outbox};
use super::Transaction;

impl Transaction {
    /// Writes what was gathered, sends what is queued and commits. Fails without a trace, but for
    /// [`Fault::OutcomeUnknown`].
    pub(in super::super) async fn commit(mut self) -> Result<(), Fault> {
        if let Err(fault) = listeners::settle(&mut self).await {
            self.roll_back().await;
            return Err(fault);
        }
        outbox::settle(&mut self);
        self.send_commit().await
    }
}
