//! What automations hear of: notes, which are part of the transaction of their cause, so that none is ever missing.

use messaging_core::ids::WorkspaceId;
use messaging_core::time::Timestamp;

use super::fault::Fault;
use super::query::Queries;
use super::transaction::Transaction;

pub(super) use crate::happened::{Happened, MessageHappened};

/// Whether any automation of a workspace listens.
pub(super) async fn is_any(transaction: &mut Transaction, workspace: WorkspaceId) -> Result<bool, Fault> {
    let _ = (transaction, workspace);
    Ok(false)
}

/// Whether runs of a workspace may go on or end by any change of their contact.
pub(super) async fn hears_changes(transaction: &mut Transaction, workspace: WorkspaceId) -> Result<bool, Fault> {
    let _ = (transaction, workspace);
    Ok(false)
}

/// The same outside of a commit.
pub(super) async fn runs_hear_changes(on: &mut impl Queries, workspace: WorkspaceId) -> Result<bool, Fault> {
    let _ = (on, workspace);
    Ok(false)
}

/// Keeps notes of what happened to a contact, by its number, for the automations that listen for it.
pub(super) async fn hear(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    contact: i64,
    at: Timestamp,
    happened: Happened<'_>,
) -> Result<(), Fault> {
    let _ = (transaction, workspace, contact, at, happened);
    Ok(())
}
