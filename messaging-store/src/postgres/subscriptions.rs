//! Subscriptions of segments and automations, looked up for all writes of a transaction at once.
//!
//! A write whose subscriptions are not known yet looks them up itself, with a round trip. A transaction that knows its
//! writes beforehand looks once, in the round trip that begins it: under the shared locks of the workspaces, as in
//! [`outbox`] and [`listeners`]. A change of subscriptions later in the transaction drops what was looked up.

use std::collections::BTreeSet;

use messaging_core::changes::{Changes, Write};
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::WorkspaceId;

use super::fault::Fault;
use super::transaction::Transaction;
use super::{listeners, outbox, product_events};
use crate::happened::counted_kind;
use crate::sql::{key, params};

/// Knowledge of its workspace that a write needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// The data that segments read, and the events that automations listen for.
    Subscriptions(WorkspaceId),
    /// None, and the write may change the subscriptions: it takes the lock of the workspace exclusively.
    Change(WorkspaceId),
}

/// Returns the knowledge that a write needs; `None` if it needs none.
fn need(write: &Write) -> Option<Need> {
    Some(match write {
        Write::AppendEvent(event) if counted_kind(event.kind).is_some() => Need::Subscriptions(event.workspace_id),
        Write::PutContacts(puts) => Need::Subscriptions(puts.first()?.contact.workspace_id),
        Write::AppendProductEvents(events) => Need::Subscriptions(events.first()?.workspace_id),
        Write::JoinList(workspace, ..) | Write::LeaveList(workspace, ..) => Need::Subscriptions(*workspace),
        Write::PutSegment(segment, _) => Need::Change(segment.workspace_id),
        Write::PutAutomation(put, _) => Need::Change(put.automation.workspace_id),
        Write::DeleteSegment(workspace, _) | Write::DeleteAutomation(workspace, _) => Need::Change(*workspace),
        _ => return None,
    })
}

/// Looks up the subscriptions that the writes of a transaction need, and the numbers of the names of their product
/// events. If this process has seen all of them before, nothing is queried: the database confirms them with the writes.
pub(super) async fn look_up(transaction: &mut Transaction, all: &[&Changes]) -> Result<(), Fault> {
    let (mut wanted, mut changed) = (BTreeSet::new(), BTreeSet::new());
    for write in all.iter().flat_map(|changes| changes.writes()) {
        match need(write) {
            Some(Need::Subscriptions(workspace)) => wanted.insert(workspace),
            Some(Need::Change(workspace)) => changed.insert(workspace),
            None => continue,
        };
    }
    // An exclusive lock is taken before any shared lock here.
    wanted.retain(|workspace| !changed.contains(workspace));
    if wanted.is_empty() {
        return Ok(());
    }
    let names = unknown_names(transaction, all);
    let wanted: Vec<WorkspaceId> = wanted.into_iter().collect();
    outbox::share_all(transaction, &wanted);
    listeners::share_all(transaction, &wanted);
    match transaction.known_subscriptions().masks(&wanted) {
        Some(masks) if names.is_empty() && transaction.may_assume => assume(transaction, wanted, &masks),
        _ => ask(transaction, &wanted, &names).await?,
    }
    Ok(())
}

/// Names of product events without a known number.
fn unknown_names(transaction: &mut Transaction, all: &[&Changes]) -> BTreeSet<(WorkspaceId, String)> {
    let mut unknown = BTreeSet::new();
    for write in all.iter().flat_map(|changes| changes.writes()) {
        let Write::AppendProductEvents(events) = write else { continue };
        for event in events {
            let name = (event.workspace_id, event.name.clone());
            if transaction.event_names.contains_key(&name) || unknown.contains(&name) {
                continue;
            }
            match transaction.known_subscriptions().name(&name) {
                Some(number) => {
                    transaction.event_names.insert(name, number);
                }
                None => {
                    unknown.insert(name);
                }
            }
        }
    }
    unknown
}

/// Relies on the subscriptions seen last, and has the database confirm them.
fn assume(transaction: &mut Transaction, workspaces: Vec<WorkspaceId>, masks: &[ReadMask]) {
    const SQL: &str = "SELECT expect_rows((SELECT count(*)
            FROM unnest($1::uuid[], $2::bigint[]) AS known (workspace, mask)
            LEFT JOIN workspace_numbers w ON w.workspace = known.workspace
            WHERE coalesce(w.read_mask, 0) <> known.mask) +
        (SELECT count(*) FROM automations a WHERE a.workspace = ANY ($1) AND NOT a.removed AND a.lanes <> '[]'), 0)";
    let keys: Vec<_> = workspaces.iter().map(|workspace| key(*workspace)).collect();
    let numbers: Vec<_> = masks.iter().map(|mask| outbox::mask_param(*mask)).collect();
    transaction.run(SQL, params![keys, numbers]);
    for (workspace, mask) in workspaces.iter().zip(masks) {
        outbox::know(transaction, *workspace, *mask);
        listeners::know_none(transaction, *workspace);
    }
    transaction.assumed = workspaces;
}

async fn ask(
    transaction: &mut Transaction,
    workspaces: &[WorkspaceId],
    names: &BTreeSet<(WorkspaceId, String)>,
) -> Result<(), Fault> {
    let mut questions = vec![outbox::masks_of(workspaces), listeners::those_of(workspaces)];
    if !names.is_empty() {
        questions.push(product_events::names_of(names));
    }
    let mut answers = transaction.rows_of_each(questions).await?.into_iter();
    let mut next = || answers.next().unwrap_or_default();
    let (masks, listening, names) = (next(), next(), next());
    outbox::know_all(transaction, workspaces, &masks)?;
    listeners::know_all(transaction, workspaces, &listening)?;
    for workspace in workspaces {
        if let (Some(mask), true) =
            (outbox::known(transaction, *workspace), listeners::is_none(transaction, *workspace))
        {
            transaction.known_subscriptions().remember(*workspace, mask);
        }
    }
    for row in &names {
        let (name, number) = product_events::name_of(row)?;
        transaction.known_subscriptions().remember_name(name.clone(), number);
        transaction.event_names.insert(name, number);
    }
    Ok(())
}
