//! The rule that decides which contact a request means and how the request changes it.
//!
//! Contract section 6.2. The contacts that the identifiers of a batch of requests name are read together;
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

/// The contacts, lists and custom field types that a batch of requests refers to, updated by every decision.
#[derive(Debug, Default)]
pub struct IdentityResolver<'a> {
    /// The contacts of this batch: as they were read, then as its decisions left them.
    known: DecidedContacts,
    /// The contacts that the batch before this one changed, as it left them: the store may not have them yet.
    earlier: Option<Arc<DecidedContacts>>,
    /// Lists that a request may name, because they exist in the workspace.
    lists: HashSet<ListId>,
    /// Public lists that contacts have left: only a request that says `resubscribe` takes them back.
    left: HashSet<(ContactId, ListId)>,
    /// Types that the workspace declared for custom fields; `None` means no field has one.
    types: Option<&'a FieldTypes>,
}

/// Contacts as the requests decided so far left them, and the owner of each identifier.
#[derive(Debug, Default)]
pub struct DecidedContacts {
    /// Each contact with its revision.
    contacts: HashMap<ContactId, (Arc<Contact>, u32)>,
    owners: HashMap<Identifier, ContactId>,
}

impl DecidedContacts {
    /// Keeps a contact with its revision and makes it the owner of the identifiers.
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
    /// Precondition under which the contact is stored; `None` if its row need not be written, because at most its
    /// lists change.
    pub put_expectation: Option<Expect>,
    /// Lists that the contact joins.
    pub joins: Vec<ListId>,
    /// Lists that the contact leaves.
    pub leaves: Vec<ListId>,
}

/// Effect of `list_ids` in a request on the lists that the contact is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListMode {
    /// The contact joins the named lists and stays on those it is on.
    Add,
    /// The contact is on the named lists alone afterwards.
    Replace,
}

/// Workspace, id and time that [`IdentityResolver::upsert`] gives to a contact that it creates or changes.
#[derive(Debug, Clone, Copy)]
pub struct UpsertContext {
    /// Workspace that owns a new contact.
    pub workspace_id: WorkspaceId,
    /// Id of a new contact; unused if the contact exists.
    pub new_id: ContactId,
    /// Time of the creation or change.
    pub now: Timestamp,
}

impl<'a> IdentityResolver<'a> {
    /// Builds the resolver from what was read: the contacts that have any of the identifiers, those of the
    /// named lists that exist, the declared types.
    pub fn new(contacts: Vec<Stored<Contact>>, lists: Vec<ListId>, types: &'a FieldTypes) -> Self {
        Self::new_after_batch(None, contacts, lists, types)
    }

    /// Like [`new`](Self::new), but `earlier` holds the contacts of a batch decided just before, which may or may
    /// not be stored by now. Of a contact in both, the earlier decision counts, not what was read.
    pub fn new_after_batch(
        earlier: Option<Arc<DecidedContacts>>,
        contacts: Vec<Stored<Contact>>,
        lists: Vec<ListId>,
        types: &'a FieldTypes,
    ) -> Self {
        let mut known = DecidedContacts::default();
        for stored in contacts {
            // An earlier decision about a contact is at least as new as its row.
            if earlier.as_ref().is_none_or(|earlier| !earlier.contacts.contains_key(&stored.record.id)) {
                let identifiers = stored.record.identifiers().collect();
                known.learn(Arc::new(stored.record), stored.revision, identifiers);
            }
        }
        Self { known, earlier, lists: lists.into_iter().collect(), left: HashSet::new(), types: Some(types) }
    }

    /// Adds the public lists that contacts have left, as pairs of contact and list.
    #[must_use]
    pub fn with_left(self, left: HashSet<(ContactId, ListId)>) -> Self {
        Self { left, ..self }
    }

    /// Public lists that contacts had left when that was read.
    pub const fn left(&self) -> &HashSet<(ContactId, ListId)> {
        &self.left
    }

    /// The contacts of this batch as it left them, for [`new_after_batch`](Self::new_after_batch) of the next batch.
    /// Those of the batch before it are not included, because they are stored by then.
    pub fn into_decided(self) -> DecidedContacts {
        self.known
    }

    /// The contact that has the identifier now.
    fn owner(&self, identifier: &Identifier) -> Option<ContactId> {
        let here = self.known.owners.get(identifier).copied();
        here.or_else(|| {
            let owner = *self.earlier.as_ref()?.owners.get(identifier)?;
            // The identifiers that a contact had in the earlier batch no longer count if this batch knows the contact.
            (!self.known.contacts.contains_key(&owner)).then_some(owner)
        })
    }

    /// A contact and its revision, from this batch or else from the earlier one.
    fn contact(&self, id: ContactId) -> Option<&(Arc<Contact>, u32)> {
        self.known.contacts.get(&id).or_else(|| self.earlier.as_ref()?.contacts.get(&id))
    }

    /// Creates a contact or updates the one that an identifier of the request names. Only identifiers of the kinds in
    /// `keys` are looked for, in that order; the first that a contact has decides.
    ///
    /// `faults` are the violations found in the request before. If there are any, here or there, the request is
    /// refused with all of them. An identifier that belongs to another contact is
    /// [`DomainError::IdentifierConflict`].
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
            self.apply_input(sent, ListMode::Add, &mut contact, &mut violations);
            violations.into_result()?;
            self.require_unowned(&named, contact.id)?;
            let joins = contact.list_ids.clone();
            let contact = Arc::new(contact);
            self.known.learn(Arc::clone(&contact), 1, named);
            let put_expectation = Some(Expect::Absent);
            return Ok(Decision { contact, created: true, put_expectation, joins, leaves: Vec::new() });
        };
        // A target that was found by another identifier may have an external id of its own.
        let own = before.external_id.as_ref();
        let is_other = sent.external_id.as_value().is_some_and(|given| own.is_some_and(|own| own != given));
        let mut contact = Contact::clone(&before);
        self.apply_input(sent, ListMode::Add, &mut contact, &mut violations);
        violations.into_result()?;
        if is_other {
            return Err(DomainError::IdentifierConflict { pointer: "/external_id", contact_id: before.id });
        }
        self.decide_change(&before, revision, contact, &named, on.now)
    }

    /// Changes a contact that is named by its id. Errors as in [`upsert`](Self::upsert).
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
        self.apply_input(sent, ListMode::Replace, &mut contact, &mut violations);
        violations.into_result()?;
        self.decide_change(&stored.record, stored.revision, contact, &named, now)
    }

    /// Writes the members that were sent into `contact`, and adds a violation for each list that does not exist and
    /// each member that breaks a rule.
    fn apply_input(&self, mut sent: ContactInput, lists: ListMode, contact: &mut Contact, violations: &mut Violations) {
        let mut found = Violations::new();
        let named = match std::mem::take(&mut sent.list_ids) {
            Patch::Set(ids) => Some(ids),
            Patch::Null if lists == ListMode::Replace => Some(Vec::new()),
            Patch::Null | Patch::Absent => None,
        };
        if let Some(named) = named {
            let mut ids = if lists == ListMode::Add { contact.list_ids.clone() } else { Vec::new() };
            for (index, text) in named.iter().enumerate() {
                let stays_away = |id: &ListId| sent.resubscribe != Some(true) && self.left.contains(&(contact.id, *id));
                match text.parse::<ListId>() {
                    Ok(id) if self.lists.contains(&id) && stays_away(&id) => {
                        let rule = "the contact has left this list; resubscribe true takes it back";
                        found.add(format!("/list_ids/{index}"), FieldCode::NotAllowed, rule);
                    }
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

    /// Decides on the change of `before` to `contact`: refuses it if one of the `named` identifiers belongs to another
    /// contact, otherwise learns the new state and answers the difference.
    fn decide_change(
        &mut self,
        before: &Contact,
        revision: u32,
        mut contact: Contact,
        named: &[Identifier],
        now: Timestamp,
    ) -> Result<Decision, DomainError> {
        self.require_unowned(named, contact.id)?;
        let missing_in = |all: &[ListId], some: &[ListId]| -> Vec<ListId> {
            all.iter().filter(|id| !some.contains(id)).copied().collect()
        };
        let joins = missing_in(&contact.list_ids, &before.list_ids);
        let leaves = missing_in(&before.list_ids, &contact.list_ids);
        let put_expectation = (!contact.equals_but_for_lists(before)).then_some(Expect::Revision(revision));
        if put_expectation.is_some() {
            contact.updated_at = now;
        }
        for identifier in before.identifiers() {
            self.known.owners.remove(&identifier);
        }
        let contact = Arc::new(contact);
        let identifiers = contact.identifiers().collect();
        self.known.learn(Arc::clone(&contact), revision + u32::from(put_expectation.is_some()), identifiers);
        Ok(Decision { contact, created: false, put_expectation, joins, leaves })
    }

    /// Fails with [`DomainError::IdentifierConflict`] if one of the identifiers belongs to a contact other than `id`.
    fn require_unowned(&self, named: &[Identifier], id: ContactId) -> Result<(), DomainError> {
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
