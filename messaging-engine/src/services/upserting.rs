//! Creating and updating contacts, one or many.
//!
//! A long list is done in parts, each a commit of its own: items are independent by contract, and the writer is never
//! held for long. A part whose contacts changed meanwhile is decided again.

use std::collections::HashSet;

use messaging_core::DomainError;
use messaging_core::changes::{Changes, PutContact, Write};
use messaging_core::domain::audience::contact::IdentifierKind;
use messaging_core::domain::audience::contact::identity_resolver::{Decision, IdentityResolver, UpsertContext};
use messaging_core::domain::audience::contact::input::ContactInput;
use messaging_core::domain::audience::custom_field::FieldTypes;
use messaging_core::ids::{ContactId, ListId, WorkspaceId};
use messaging_core::patch::Patch;
use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;
use messaging_core::violation::Violations;

use crate::app::App;
use crate::error::Error;
use crate::services::subscribing::Admitting;

/// An item as far as it could be parsed, and its faults.
pub(crate) type CheckedItem = Result<(ContactInput, Violations), Violations>;

/// Result for an item: its contact and true if that was created, or the reason why it was refused.
pub(crate) type Upserted = Result<(ContactId, bool), DomainError>;

impl App {
    /// Reads the contacts that are needed to decide on some requests: those that have an identifier, and the one that a
    /// request names by its id.
    pub(crate) async fn identities<'a, 's>(
        &self,
        workspace: WorkspaceId,
        types: &'a FieldTypes,
        sent: impl Iterator<Item = &'s ContactInput> + Clone + Send,
        named: Option<ContactId>,
    ) -> Result<IdentityResolver<'a>, StoreError> {
        let identifiers: Vec<_> = sent.clone().flat_map(ContactInput::identifiers).collect();
        let lists: HashSet<ListId> = sent.flat_map(named_lists).collect();
        let lists: Vec<_> = lists.into_iter().collect();
        let contacts = self.store().contacts_identified(workspace, identifiers).await?;
        let lists = if lists.is_empty() { Vec::new() } else { self.store().lists_among(workspace, &lists).await? };
        let known: Vec<_> = contacts.iter().map(|stored| stored.record.id).chain(named).collect();
        let left = self.left_lists(workspace, &lists, &known).await?;
        Ok(IdentityResolver::new(contacts, lists, types).with_left(left))
    }

    /// Decides on contacts in order, each independent of the others. A faulty item is refused alone.
    pub(crate) async fn decide_part(
        &self,
        workspace: WorkspaceId,
        types: &FieldTypes,
        items: Vec<CheckedItem>,
    ) -> Result<(Changes, Vec<Upserted>), Error> {
        let readable = items.iter().filter_map(|item| item.as_ref().ok().map(|(sent, _)| sent));
        let mut identities = self.identities(workspace, types, readable, None).await?;
        let (writes, done) = self.decide_items(workspace, &mut identities, items, &IdentifierKind::ALL);
        let writes = self.with_subscriptions(workspace, writes, &Admitting::by_api(identities.left())).await?;
        Ok((writes.into_iter().collect(), done))
    }

    /// Decides on items in order, each independent of the others; returns the writes, and the result of each. A contact
    /// is looked up by the identifiers in `keys`.
    pub(crate) fn decide_items(
        &self,
        workspace: WorkspaceId,
        identities: &mut IdentityResolver<'_>,
        items: Vec<CheckedItem>,
        keys: &[IdentifierKind],
    ) -> (Vec<Write>, Vec<Upserted>) {
        let now = self.now();
        let mut puts = Vec::with_capacity(items.len());
        let mut memberships = Vec::new();
        let mut done = Vec::with_capacity(items.len());
        for item in items {
            let outcome = match item {
                Ok((sent, faults)) => {
                    let on = UpsertContext { workspace_id: workspace, new_id: self.new_id(now), now };
                    identities.upsert(sent, faults, keys, on)
                }
                Err(faults) => Err(faults.into()),
            };
            done.push(outcome.map(|decision| {
                memberships.extend(membership_writes(&decision, now));
                let Decision { contact, created, put_expectation: put, .. } = decision;
                let told = (contact.id, created);
                puts.extend(put.map(|expect| PutContact { contact, expect }));
                told
            }));
        }
        // All contacts in one write, which is faster than one for each; the memberships follow, when the contacts
        // exist.
        let puts = (!puts.is_empty()).then_some(Write::PutContacts(puts));
        (puts.into_iter().chain(memberships).collect(), done)
    }
}

/// Returns the lists that a request names and that may exist.
pub(super) fn named_lists(sent: &ContactInput) -> impl Iterator<Item = ListId> + '_ {
    let named = match &sent.list_ids {
        Patch::Set(ids) => ids.as_slice(),
        Patch::Null | Patch::Absent => &[],
    };
    named.iter().filter_map(|id| id.parse().ok())
}

/// Returns the writes of a decision.
pub(crate) fn writes(decision: Decision, now: Timestamp) -> Vec<Write> {
    let memberships = membership_writes(&decision, now);
    let put = decision.put_expectation.map(|expect| Write::put_contact(decision.contact, expect));
    put.into_iter().chain(memberships).collect()
}

fn membership_writes(decision: &Decision, now: Timestamp) -> Vec<Write> {
    let (workspace, id) = (decision.contact.workspace_id, decision.contact.id);
    let joins = decision.joins.iter().map(|list| Write::JoinList(workspace, *list, id, now));
    let leaves = decision.leaves.iter().map(|list| Write::LeaveList(workspace, *list, id, now));
    joins.chain(leaves).collect()
}
