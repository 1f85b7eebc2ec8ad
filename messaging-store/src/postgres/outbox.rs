//! The change outbox: which contacts changed in what a dynamic segment reads.

use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{ContactId, WorkspaceId};

use super::fault::Fault;
use super::transaction::Transaction;

/// What the dynamic segments of a workspace read.
#[derive(Debug, Clone, Copy)]
pub(super) struct WorkspaceReadMask {
    mask: ReadMask,
    /// What is noted was caused by so many automations in a row.
    depth: u8,
}

/// What the dynamic segments of a workspace read; `None` when it has none.
pub(super) async fn read_mask(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
) -> Result<Option<WorkspaceReadMask>, Fault> {
    let _ = (transaction, workspace);
    Ok(None)
}

/// The same, if it meets some mask; `None` when nobody reads any of them.
pub(super) async fn read_mask_in(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    mask: ReadMask,
) -> Result<Option<WorkspaceReadMask>, Fault> {
    let found = read_mask(transaction, workspace).await?;
    Ok(found.filter(|found| !(found.mask & mask).is_empty()))
}

/// Notes a change of a contact by its number, if a dynamic segment reads any of it.
pub(super) fn note(transaction: &mut Transaction, read_mask: WorkspaceReadMask, contact: i64, mask: ReadMask) {
    let _ = (transaction, read_mask.depth, contact, mask);
}

/// Notes changes of contacts by their numbers, each if a dynamic segment reads any of it.
pub(super) fn note_many(transaction: &mut Transaction, read_mask: WorkspaceReadMask, changes: &[(i64, ReadMask)]) {
    for (contact, mask) in changes {
        note(transaction, read_mask, *contact, *mask);
    }
}

/// Notes a change of a contact, if a dynamic segment reads any of it.
pub(super) async fn note_contact(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    contact: ContactId,
    mask: ReadMask,
) -> Result<(), Fault> {
    let _ = (transaction, workspace, contact, mask);
    Ok(())
}
