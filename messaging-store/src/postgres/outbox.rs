//! The change outbox: contacts with changes in data that dynamic segments read.
//!
//! An entry is part of the transaction of the change, so none is ever missing. A transaction that may add entries takes
//! the lock of the workspace in shared mode, and then reads the read mask of its segments; a transaction that changes
//! the mask takes the lock exclusively. So a segment begins to be followed after the last commit has ended that did not
//! know of it. Entries are gathered in the transaction and written by one statement before it commits.

mod noted;

use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{ContactId, Id as _, WorkspaceId};
use tokio_postgres::Row;
use uuid::Uuid;

use super::fault::Fault;
use super::query::one;
use super::row::uuid;
use super::transaction::Transaction;
use crate::row::{get, id};
use crate::sql::{Params, key, params};

pub(super) use self::noted::Outbox;

/// First number of the locks of workspaces; the second is derived from the id of the workspace.
const SUBSCRIBERS_LOCK: i32 = 0x7365_6701;

/// Read mask of a workspace: the data that its dynamic segments read.
#[derive(Debug, Clone, Copy)]
pub(super) struct WorkspaceReadMask {
    mask: ReadMask,
    /// Number of automations in a row that led to the noted changes.
    depth: u8,
}

impl WorkspaceReadMask {
    /// Returns the same mask for changes that this many automations in a row led to.
    pub(super) const fn caused_at(self, depth: u8) -> Self {
        Self { depth, ..self }
    }
}

/// A mask as the parameter of a statement.
pub(super) fn mask_param(mask: ReadMask) -> i64 {
    i64::from(mask.bits())
}

/// The mask stored as a number.
pub(super) fn mask_of(bits: i64) -> ReadMask {
    ReadMask::from_bits(u32::try_from(bits).unwrap_or(0))
}

/// The second number of a workspace's locks.
pub(super) fn lock_number(workspace: WorkspaceId) -> i32 {
    let [.., a, b, c, d] = workspace.to_bytes();
    i32::from_le_bytes([a, b, c, d])
}

/// Returns the read mask of a workspace; `None` if it has no dynamic segments.
pub(super) async fn read_mask(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
) -> Result<Option<WorkspaceReadMask>, Fault> {
    let mask = match transaction.outbox.masks.get(&workspace) {
        Some(known) => *known,
        None => look(transaction, workspace).await?,
    };
    Ok((!mask.is_empty()).then_some(WorkspaceReadMask { mask, depth: transaction.depth }))
}

async fn look(transaction: &mut Transaction, workspace: WorkspaceId) -> Result<ReadMask, Fault> {
    const SQL: &str = "SELECT read_mask FROM workspace_numbers WHERE workspace = $1";
    share(transaction, workspace);
    let found = one(transaction, SQL, params![uuid(workspace)], |row| get::<i64>(row, 0)).await?;
    let mask = found.map_or(ReadMask::NONE, mask_of);
    transaction.outbox.masks.insert(workspace, mask);
    Ok(mask)
}

/// Query of the read masks of workspaces.
pub(super) fn masks_of(workspaces: &[WorkspaceId]) -> (&'static str, Params) {
    const SQL: &str = "SELECT workspace, read_mask FROM workspace_numbers WHERE workspace = ANY ($1)";
    (SQL, params![workspaces.iter().map(|workspace| key(*workspace)).collect::<Vec<_>>()])
}

/// Keeps the answer to [`masks_of`], which was read under the locks of the workspaces.
pub(super) fn know_all(transaction: &mut Transaction, workspaces: &[WorkspaceId], rows: &[Row]) -> Result<(), Fault> {
    for workspace in workspaces {
        know(transaction, *workspace, ReadMask::NONE);
    }
    for row in rows {
        know(transaction, id(row, 0)?, mask_of(get(row, 1)?));
    }
    Ok(())
}

/// Keeps the read mask of a workspace whose lock is held.
pub(super) fn know(transaction: &mut Transaction, workspace: WorkspaceId, mask: ReadMask) {
    transaction.outbox.masks.insert(workspace, mask);
}

/// Returns the read mask of a workspace, if it was looked up.
pub(super) fn known(transaction: &Transaction, workspace: WorkspaceId) -> Option<ReadMask> {
    transaction.outbox.masks.get(&workspace).copied()
}

/// Takes the lock of a workspace in shared mode.
pub(super) fn share(transaction: &mut Transaction, workspace: WorkspaceId) {
    if transaction.outbox.locked.insert(workspace) {
        let keys = params![SUBSCRIBERS_LOCK, lock_number(workspace)];
        transaction.run("SELECT pg_advisory_xact_lock_shared($1::integer, $2::integer)", keys);
    }
}

/// Like [`share`] for several workspaces, locked in the given order.
pub(super) fn share_all(transaction: &mut Transaction, workspaces: &[WorkspaceId]) {
    const SQL: &str = "SELECT pg_advisory_xact_lock_shared($1::integer, number) FROM unnest($2::integer[]) AS number";
    let locked = &mut transaction.outbox.locked;
    let numbers = workspaces.iter().filter(|workspace| locked.insert(**workspace)).map(|of| lock_number(*of));
    let numbers: Vec<i32> = numbers.collect();
    if !numbers.is_empty() {
        transaction.run(SQL, params![SUBSCRIBERS_LOCK, numbers]);
    }
}

/// Takes the lock of a workspace exclusively, before its read mask is changed, and drops what was known of it.
pub(super) fn lock_alone(transaction: &mut Transaction, workspace: WorkspaceId) {
    let keys = params![SUBSCRIBERS_LOCK, lock_number(workspace)];
    transaction.run("SELECT pg_advisory_xact_lock($1::integer, $2::integer)", keys);
    transaction.outbox.locked.insert(workspace);
    transaction.outbox.masks.remove(&workspace);
}

/// Returns the read mask of a workspace if it overlaps `mask`; `None` if no segment reads any of it.
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
    let mask = read_mask.mask & mask;
    if !mask.is_empty() {
        add(transaction.outbox.contacts.entry(contact).or_default(), mask, read_mask.depth);
    }
}

/// Notes changes of contacts by their numbers, each if a dynamic segment reads any of it.
pub(super) fn note_many(transaction: &mut Transaction, read_mask: WorkspaceReadMask, changes: &[(i64, ReadMask)]) {
    for (contact, mask) in changes {
        note(transaction, read_mask, *contact, *mask);
    }
}

fn add(noted: &mut (ReadMask, u8), mask: ReadMask, depth: u8) {
    *noted = (noted.0 | mask, noted.1.max(depth));
}

/// Notes a change of a contact, if a dynamic segment reads any of it.
#[expect(clippy::unused_async, reason = "looking for the contact is left to the statement that writes what was noted")]
pub(super) async fn note_contact(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    contact: ContactId,
    mask: ReadMask,
) -> Result<(), Fault> {
    let known = transaction.outbox.masks.get(&workspace);
    if known.is_none_or(|known| known.intersects(mask)) {
        share(transaction, workspace);
        let depth = transaction.depth;
        add(transaction.outbox.by_id.entry((workspace, contact)).or_default(), mask, depth);
    }
    Ok(())
}

/// Drops the noted changes of a contact that is erased.
pub(super) fn forget(transaction: &mut Transaction, contact: i64) {
    transaction.outbox.contacts.remove(&contact);
}

/// Queues the statements that write the gathered changes, in the order of the contacts: the last step before a commit.
pub(super) fn settle(transaction: &mut Transaction) {
    const BY_NUMBER: &str = "INSERT INTO changed_contacts (contact, read_mask, mark, depth)
        SELECT u.contact, u.mask, 1, u.depth
        FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS u (contact, mask, depth)
        ON CONFLICT (contact) DO UPDATE SET read_mask = changed_contacts.read_mask | excluded.read_mask,
            mark = changed_contacts.mark + 1, depth = greatest(changed_contacts.depth, excluded.depth)";
    // A contact that is erased meanwhile gets no entry.
    const BY_ID: &str = "INSERT INTO changed_contacts (contact, read_mask, mark, depth)
        SELECT c.n, u.mask & w.read_mask, 1, u.depth
        FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::bigint[]) AS u (workspace, contact, mask, depth)
        JOIN workspace_numbers w ON w.workspace = u.workspace AND w.read_mask & u.mask <> 0
        JOIN contacts c ON c.workspace_number = w.number AND c.id = u.contact
        ORDER BY c.n FOR KEY SHARE OF c
        ON CONFLICT (contact) DO UPDATE SET read_mask = changed_contacts.read_mask | excluded.read_mask,
            mark = changed_contacts.mark + 1, depth = greatest(changed_contacts.depth, excluded.depth)";
    let noted = std::mem::take(&mut transaction.outbox.contacts);
    if !noted.is_empty() {
        let contacts: Vec<i64> = noted.keys().copied().collect();
        let (masks, depths) = columns(noted.into_values());
        transaction.run(BY_NUMBER, params![contacts, masks, depths]);
    }
    let noted = std::mem::take(&mut transaction.outbox.by_id);
    if !noted.is_empty() {
        let (workspaces, contacts): (Vec<Uuid>, Vec<Uuid>) =
            noted.keys().map(|(workspace, contact)| (uuid(*workspace), uuid(*contact))).unzip();
        let (masks, depths) = columns(noted.into_values());
        transaction.run(BY_ID, params![workspaces, contacts, masks, depths]);
    }
}

/// Masks and depths as parameters.
fn columns(noted: impl Iterator<Item = (ReadMask, u8)>) -> (Vec<i64>, Vec<i64>) {
    noted.map(|(mask, depth)| (mask_param(mask), i64::from(depth))).unzip()
}
