use serde_json::{Value, json};

use super::*;
use crate::entropy::SeededEntropy;
use crate::ids::{Id as _, IdSource};
use crate::input;

/// A workspace in memory, with its contacts.
struct World {
    contacts: Vec<Stored<Contact>>,
    lists: Vec<ListId>,
    ids: IdSource,
    entropy: SeededEntropy,
    workspace: WorkspaceId,
}

impl World {
    fn new() -> Self {
        let (ids, entropy) = (IdSource::default(), SeededEntropy::new(3));
        let now = Timestamp::from_millis(1);
        let lists = vec![ids.next(now, &entropy), ids.next(now, &entropy)];
        let workspace = ids.next(now, &entropy);
        Self { contacts: Vec::new(), lists, ids, entropy, workspace }
    }

    /// Upserts in one call; returns `created 0`, `updated 1`, `same 1`, or the refusal. Numbers count contacts in the
    /// order of their creation.
    fn upsert(&mut self, bodies: &[Value]) -> Vec<String> {
        self.upsert_after(None, self.contacts.clone(), bodies).0
    }

    /// Upserts as `upsert` does, with `read` as the contacts that were read, and `earlier` decided since.
    fn upsert_after(
        &mut self,
        earlier: Option<Arc<DecidedContacts>>,
        read: Vec<Stored<Contact>>,
        bodies: &[Value],
    ) -> (Vec<String>, Arc<DecidedContacts>) {
        let types = FieldTypes::new();
        let mut identities = IdentityResolver::new_after_batch(earlier, read, self.lists.clone(), &types);
        let now = Timestamp::from_millis(2);
        let mut told = Vec::new();
        for body in bodies {
            let sent: ContactInput = input::body(body.to_string().as_bytes()).unwrap();
            let new_id = self.ids.next(now, &self.entropy);
            let on = UpsertContext { workspace_id: self.workspace, new_id, now };
            told.push(match identities.upsert(sent, Violations::new(), &IdentifierKind::ALL, on) {
                Ok(decision) => self.store(decision),
                Err(DomainError::IdentifierConflict { pointer, contact_id }) => {
                    format!("conflict {pointer} {}", self.number(contact_id))
                }
                Err(error) => error.to_string(),
            });
        }
        (told, Arc::new(identities.into_decided()))
    }

    /// Upserts `size` at a time, each time without having read the decisions of the time before.
    fn upsert_in_slices(&mut self, bodies: &[Value], size: usize) -> Vec<String> {
        let (mut all, mut earlier, mut read) = (Vec::new(), None, self.contacts.clone());
        for slice in bodies.chunks(size) {
            let stored_by_now = self.contacts.clone();
            let (told, known) = self.upsert_after(earlier, read, slice);
            all.extend(told);
            (earlier, read) = (Some(known), stored_by_now);
        }
        all
    }

    /// Stores a decision as a store does, conflicts included.
    fn store(&mut self, decision: Decision) -> String {
        let Decision { contact, created, put_expectation, .. } = decision;
        let contact = Arc::unwrap_or_clone(contact);
        let id = contact.id;
        match put_expectation {
            Some(Expect::Absent) => self.contacts.push(Stored { record: contact, revision: 1 }),
            Some(Expect::Revision(revision)) => {
                let stored = self.contacts.iter_mut().find(|stored| stored.record.id == id).unwrap();
                assert_eq!(stored.revision, revision, "the revision that was read");
                *stored = Stored { record: contact, revision: revision + 1 };
            }
            None => return format!("same {}", self.number(id)),
        }
        let mut identifiers: Vec<_> = self.contacts.iter().flat_map(|stored| stored.record.identifiers()).collect();
        let all = identifiers.len();
        identifiers.sort();
        identifiers.dedup();
        assert_eq!(identifiers.len(), all, "every identifier has one owner after every step");
        format!("{} {}", if created { "created" } else { "updated" }, self.number(id))
    }

    fn number(&self, id: ContactId) -> usize {
        self.contacts.iter().position(|stored| stored.record.id == id).unwrap()
    }
}

fn contact(external_id: &str, email: &str, phone: &str) -> Value {
    let mut body = json!({});
    for (name, value) in [("external_id", external_id), ("email", email), ("phone", phone)] {
        match value {
            "" => {}
            "-" => body[name] = Value::Null,
            value => body[name] = json!(value),
        }
    }
    body
}

/// Checks the result of each request, first in one transaction each, then all in one, then some at a time.
#[track_caller]
fn check(requests: &[(Value, &str)]) {
    let bodies: Vec<_> = requests.iter().map(|(body, _)| body.clone()).collect();
    let expected: Vec<_> = requests.iter().map(|(_, told)| (*told).to_owned()).collect();
    let mut world = World::new();
    let one_by_one: Vec<_> = bodies.iter().flat_map(|body| world.upsert(std::slice::from_ref(body))).collect();
    assert_eq!(one_by_one, expected);
    assert_eq!(World::new().upsert(&bodies), expected, "later ones see earlier ones");
    for size in 1..bodies.len() {
        assert_eq!(World::new().upsert_in_slices(&bodies, size), expected, "{size} at a time");
    }
}

#[test]
fn the_first_match_is_the_target() {
    check(&[
        (contact("u-1", "a@example.com", "+14155550100"), "created 0"),
        (contact("u-1", "", ""), "same 0"),
        (contact("", "A@Example.com", ""), "same 0"),
        (contact("", "", "+14155550100"), "same 0"),
        (contact("u-2", "", ""), "created 1"),
        (contact("u-2", "b@example.com", ""), "updated 1"),
        (contact("", "b@example.com", "+14155550101"), "updated 1"),
        (contact("", "c@example.com", ""), "created 2"),
        // It has no external id yet.
        (contact("u-3", "c@example.com", ""), "updated 2"),
        (contact("u-3", "d@example.com", ""), "updated 2"),
        // The address it had is free again.
        (contact("", "c@example.com", ""), "created 3"),
    ]);
}

#[test]
fn an_identifier_of_another_is_a_conflict() {
    check(&[
        (contact("u-1", "a@example.com", "+14155550100"), "created 0"),
        (contact("u-2", "b@example.com", ""), "created 1"),
        (contact("u-1", "b@example.com", ""), "conflict /email 1"),
        (contact("u-2", "", "+14155550100"), "conflict /phone 0"),
        (contact("", "b@example.com", "+14155550100"), "conflict /phone 0"),
        // Found by email, but somebody else by external id.
        (contact("u-9", "a@example.com", ""), "conflict /external_id 0"),
        (contact("u-9", "", "+14155550100"), "conflict /external_id 0"),
        (contact("u-2", "b@example.com", ""), "same 1"),
    ]);
}

#[test]
fn addresses_change_hands() {
    check(&[
        (contact("u-1", "a@example.com", ""), "created 0"),
        (contact("u-2", "b@example.com", ""), "created 1"),
        (contact("u-1", "-", ""), "updated 0"),
        (contact("u-2", "a@example.com", ""), "updated 1"),
        (contact("u-1", "b@example.com", ""), "updated 0"),
    ]);
}

#[test]
fn lists_are_added_or_replaced() {
    let mut world = World::new();
    let [one, other] = [world.lists[0], world.lists[1]];
    let types = FieldTypes::new();
    let decide = |identities: &mut IdentityResolver<'_>, body: Value| {
        let sent: ContactInput = input::body(body.to_string().as_bytes()).unwrap();
        let new_id = ContactId::from_bytes([7; 16]);
        let on = UpsertContext { workspace_id: world.workspace, new_id, now: Timestamp::from_millis(5) };
        identities.upsert(sent, Violations::new(), &IdentifierKind::ALL, on)
    };
    let mut identities = IdentityResolver::new(Vec::new(), world.lists.clone(), &types);
    let created = decide(&mut identities, json!({"external_id": "u-1", "list_ids": [one, one]})).unwrap();
    assert_eq!((created.joins, created.leaves), (vec![one], vec![]));
    let updated = decide(&mut identities, json!({"external_id": "u-1", "list_ids": [other]})).unwrap();
    assert_eq!((updated.joins, updated.leaves, updated.put_expectation), (vec![other], vec![], None));
    assert_eq!(updated.contact.list_ids, [one, other]);
    let unchanged = decide(&mut identities, json!({"external_id": "u-1", "list_ids": null})).unwrap();
    assert_eq!((unchanged.joins, unchanged.leaves), (vec![], vec![]));
    let unknown = json!({"external_id": "u-1", "list_ids": [one, "lst_01JB3Q8Z5N6W7X8Y9ZABCDEFGH", "x"]});
    assert!(
        matches!(decide(&mut identities, unknown), Err(DomainError::Invalid(found)) if found.as_slice().len() == 2)
    );

    let stored = Stored { record: Arc::unwrap_or_clone(updated.contact), revision: 1 };
    let replace = |identities: &mut IdentityResolver<'_>, body: Value| {
        let sent: ContactInput = input::body(body.to_string().as_bytes()).unwrap();
        identities.update(stored.clone(), sent, Violations::new(), Timestamp::from_millis(6)).unwrap()
    };
    let replaced = replace(&mut identities, json!({"list_ids": [other]}));
    assert_eq!((replaced.joins, replaced.leaves, replaced.put_expectation), (vec![], vec![one], None));
    assert_eq!(replace(&mut identities, json!({"list_ids": null})).leaves, [one, other]);
    assert_eq!(replace(&mut identities, json!({})).leaves, []);
    world.contacts.clear();
}
