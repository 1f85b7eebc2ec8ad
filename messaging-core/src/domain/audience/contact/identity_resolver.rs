//! Which contact a request means, and what becomes of it.
//!
//! Contract section 6.2. The contacts that the identifiers of some requests name are read together;
//! the requests are then decided one after another, each of which sees what those before it changed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::input::ContactInput;
use super::{Contact, Identifier, IdentifierKind};
use crate::domain::audience::custom_field::FieldTypes;
use crate::error::DomainError;
use crate::ids::{ContactId, ListId, WorkspaceId};
use crate::patch::Patch;
use crate::revision::Expect;
use crate::revision::Stored;
use crate::time::Timestamp;
use crate::violation::{FieldCode, Violations};

/// The contacts, lists and types that some requests are about.
#[derive(Debug, Default)]
pub struct IdentityResolver<'a> {
    known: Known,
    /// What requests before these changed, where that may not be stored yet.
    earlier: Option<Arc<Known>>,
    lists: HashSet<ListId>,
    types: Option<&'a FieldTypes>,
}

/// Contacts as the requests so far left them, and whose each identifier is.
#[derive(Debug, Default)]
pub struct Known {
    contacts: HashMap<ContactId, (Arc<Contact>, u32)>,
    owners: HashMap<Identifier, ContactId>,
}

impl Known {
    fn learn(&mut self, contact: Arc<Contact>, revision: u32, identifiers: Vec<Identifier>) {
        self.owners.extend(identifiers.into_iter().map(|identifier| (identifier, contact.id)));
        self.contacts.insert(contact.id, (contact, revision));
    }
}

/// Outcome of a request about a contact: the contact as it will be, and what has to be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The contact as it will be, lists included.
    pub contact: Arc<Contact>,
    /// True if the request creates the contact.
    pub created: bool,
    /// What it takes to store it; `None` when nothing but lists changes.
    pub put: Option<Expect>,
    /// Lists it joins.
    pub joins: Vec<ListId>,
    /// Lists it leaves.
    pub leaves: Vec<ListId>,
}

/// Effect of `list_ids` in a request on the lists that the contact is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lists {
    /// The contact joins them.
    Add,
    /// The contact is on these alone.
    Replace,
}

/// When, and for whom, something new is made.
#[derive(Debug, Clone, Copy)]
pub struct UpsertContext {
    /// Workspace that owns what is made.
    pub workspace_id: WorkspaceId,
    /// The id of a new contact.
    pub new_id: ContactId,
    /// Now.
    pub now: Timestamp,
}

impl<'a> IdentityResolver<'a> {
    /// Puts together what was read: the contacts that have any of the identifiers, which of the lists
    /// exist, the declared types.
    pub fn new(contacts: Vec<Stored<Contact>>, lists: Vec<ListId>, types: &'a FieldTypes) -> Self {
        Self::after(None, contacts, lists, types)
    }

    /// The same where other requests were decided just before, whether or not that is stored by now.
    pub fn after(
        earlier: Option<Arc<Known>>,
        contacts: Vec<Stored<Contact>>,
        lists: Vec<ListId>,
        types: &'a FieldTypes,
    ) -> Self {
        let mut known = Known::default();
        for stored in contacts {
            // What was decided is at least as new as what was read.
            if earlier.as_ref().is_none_or(|earlier| !earlier.contacts.contains_key(&stored.record.id)) {
                let identifiers = stored.record.identifiers().collect();
                known.learn(Arc::new(stored.record), stored.revision, identifiers);
            }
        }
        Self { known, earlier, lists: lists.into_iter().collect(), types: Some(types) }
    }

    /// What those who come after these requests have to know; not what came before them.
    pub fn into_known(self) -> Known {
        self.known
    }

    fn owner(&self, identifier: &Identifier) -> Option<ContactId> {
        let here = self.known.owners.get(identifier).copied();
        here.or_else(|| {
            let owner = *self.earlier.as_ref()?.owners.get(identifier)?;
            // Of a contact that changed here, only what it has now counts.
            (!self.known.contacts.contains_key(&owner)).then_some(owner)
        })
    }

    fn contact(&self, id: ContactId) -> Option<&(Arc<Contact>, u32)> {
        self.known.contacts.get(&id).or_else(|| self.earlier.as_ref()?.contacts.get(&id))
    }

    /// Creates a contact or updates the one that the identifiers of the `keys` name, looked for in that
    /// order.
    ///
    /// `faults` is what is wrong with the request already: then nothing is decided, only more faults
    /// found.
    pub fn upsert(
        &mut self,
        sent: ContactInput,
        faults: Violations,
        keys: &[IdentifierKind],
        on: UpsertContext,
    ) -> Result<Decision, DomainError> {
        let mut violations = faults;
        sent.require_identifier(&mut violations);
        let named: Vec<_> = sent.identifiers().collect();
        let target = keys
            .iter()
            .filter_map(|key| named.iter().find(|identifier| identifier.kind() == *key))
            .find_map(|identifier| self.owner(identifier));
        let Some((before, revision)) = target.and_then(|id| self.contact(id)).cloned() else {
            let mut contact = Contact::new(on.new_id, on.workspace_id, on.now);
            self.change(sent, Lists::Add, &mut contact, &mut violations);
            violations.into_result()?;
            self.refuse_others(&named, contact.id)?;
            let joins = contact.list_ids.clone();
            let contact = Arc::new(contact);
            self.known.learn(Arc::clone(&contact), 1, named);
            return Ok(Decision { contact, created: true, put: Some(Expect::Absent), joins, leaves: Vec::new() });
        };
        // A target that was found by another identifier may have an external id of its own.
        let own = before.external_id.as_ref();
        let is_other = sent.external_id.as_value().is_some_and(|given| own.is_some_and(|own| own != given));
        let mut contact = Contact::clone(&before);
        self.change(sent, Lists::Add, &mut contact, &mut violations);
        violations.into_result()?;
        if is_other {
            return Err(DomainError::IdentifierConflict { pointer: "/external_id", contact_id: before.id });
        }
        self.settle(&before, revision, contact, &named, on.now)
    }

    /// Changes a contact that is named by its id.
    pub fn update(
        &mut self,
        stored: Stored<Contact>,
        sent: ContactInput,
        faults: Violations,
        now: Timestamp,
    ) -> Result<Decision, DomainError> {
        let mut violations = faults;
        let mut contact = stored.record.clone();
        let named: Vec<_> = sent.identifiers().collect();
        self.change(sent, Lists::Replace, &mut contact, &mut violations);
        violations.into_result()?;
        self.settle(&stored.record, stored.revision, contact, &named, now)
    }

    fn change(&self, mut sent: ContactInput, lists: Lists, contact: &mut Contact, violations: &mut Violations) {
        let mut found = Violations::new();
        let named = match std::mem::take(&mut sent.list_ids) {
            Patch::Set(ids) => Some(ids),
            Patch::Null if lists == Lists::Replace => Some(Vec::new()),
            Patch::Null | Patch::Absent => None,
        };
        if let Some(named) = named {
            let mut ids = if lists == Lists::Add { contact.list_ids.clone() } else { Vec::new() };
            for (index, text) in named.iter().enumerate() {
                match text.parse::<ListId>() {
                    Ok(id) if self.lists.contains(&id) => ids.push(id),
                    _ => {
                        let rule = "no such list in this workspace";
                        found.add(format!("/list_ids/{index}"), FieldCode::NotFound, rule);
                    }
                }
            }
            ids.sort_unstable();
            ids.dedup();
            contact.list_ids = ids;
        }
        let none = FieldTypes::new();
        sent.apply(contact, self.types.unwrap_or(&none), &mut found);
        violations.merge(found);
    }

    /// Refuses what belongs to another contact, and notes the rest.
    fn settle(
        &mut self,
        before: &Contact,
        revision: u32,
        mut contact: Contact,
        named: &[Identifier],
        now: Timestamp,
    ) -> Result<Decision, DomainError> {
        self.refuse_others(named, contact.id)?;
        let missing_in = |all: &[ListId], some: &[ListId]| -> Vec<ListId> {
            all.iter().filter(|id| !some.contains(id)).copied().collect()
        };
        let joins = missing_in(&contact.list_ids, &before.list_ids);
        let leaves = missing_in(&before.list_ids, &contact.list_ids);
        let put = (!contact.equals_but_for_lists(before)).then_some(Expect::Revision(revision));
        if put.is_some() {
            contact.updated_at = now;
        }
        for identifier in before.identifiers() {
            self.known.owners.remove(&identifier);
        }
        let contact = Arc::new(contact);
        let identifiers = contact.identifiers().collect();
        self.known.learn(Arc::clone(&contact), revision + u32::from(put.is_some()), identifiers);
        Ok(Decision { contact, created: false, put, joins, leaves })
    }

    fn refuse_others(&self, named: &[Identifier], id: ContactId) -> Result<(), DomainError> {
        for identifier in named {
            if let Some(contact_id) = self.owner(identifier).filter(|owner| *owner != id) {
                return Err(DomainError::IdentifierConflict { pointer: identifier.pointer(), contact_id });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
