//! Commit of a transaction: changes gathered in it are written first.
//!
//! The functions that write them take an open transaction and are in a layer above it, and so is this module. Nothing
//! else can commit an open transaction, so gathered changes cannot be forgotten.

use super::super::fault::Fault;
use super::super::{listeners, outbox};
use super::Transaction;

impl Transaction {
    /// Writes the gathered changes, sends the queue and commits. If it fails, nothing is kept, except perhaps with
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
