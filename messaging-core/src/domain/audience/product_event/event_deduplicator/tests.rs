use serde_json::{Value, json};

use super::*;
use crate::entropy::SeededEntropy;
use crate::ids::{Id, IdSource};
use crate::input;

/// A workspace in memory, with its contacts and events.
struct World {
    known: Known,
    contacts: Vec<ContactId>,
    events: Vec<EventId>,
    ids: IdSource,
    entropy: SeededEntropy,
    workspace: WorkspaceId,
}

const NOW: Timestamp = Timestamp::from_millis(1_769_850_900_000);

impl World {
    /// The contacts 0, called `u-0`, and 1, with the address `ann@example.com`.
    fn new() -> Self {
        let (ids, entropy) = (IdSource::default(), SeededEntropy::new(5));
        let contacts: Vec<ContactId> = (0..2).map(|_| ids.next(NOW, &entropy)).collect();
        let owners = [Identifier::ExternalId("u-0".to_owned()), Identifier::Email("ann@example.com".to_owned())];
        let known = Known {
            contacts: contacts.iter().copied().collect(),
            owners: owners.into_iter().zip(contacts.iter().copied()).collect(),
            events: HashMap::new(),
        };
        let workspace = ids.next(NOW, &entropy);
        Self { known, contacts, events: Vec::new(), ids, entropy, workspace }
    }

    fn new_id<I: Id>(&self) -> I {
        self.ids.next(NOW, &self.entropy)
    }

    /// Enters events in one call; returns `event 0 of contact 1`, `repeats event 0 of contact 1`, `… new`, or the
    /// violations. Numbers count in the order of creation.
    fn enter(&mut self, bodies: &[Value]) -> Vec<String> {
        let mut deduplicator = EventDeduplicator::new(self.known.clone(), NOW);
        let mut told = Vec::new();
        for body in bodies {
            let (sent, faults) =
                input::body_with_faults(body.to_string().as_bytes(), input::UnknownMembers::default()).unwrap();
            let on = IngestContext {
                workspace_id: self.workspace,
                event_id: self.new_id(),
                contact_id: self.new_id(),
                now: NOW,
            };
            told.push(match deduplicator.enter(sent, faults, on) {
                Ok(entry) => self.note(&entry),
                Err(error) => faults_of(&error),
            });
        }
        self.known = deduplicator.known;
        told
    }

    fn note(&mut self, entry: &Entry) -> String {
        let is_new = entry.contact.as_ref().is_some_and(|contact| {
            assert_eq!(contact.id, entry.contact_id);
            assert!(
                contact.has_identifier() && contact.consent == crate::domain::audience::contact::Consent::default()
            );
            self.contacts.push(contact.id);
            true
        });
        let word = if let Some(event) = &entry.event {
            assert_eq!((event.id, event.contact_id), (entry.event_id, entry.contact_id));
            self.events.push(event.id);
            "event"
        } else {
            "repeats event"
        };
        let event = self.events.iter().position(|id| *id == entry.event_id).unwrap();
        let contact = self.contacts.iter().position(|id| *id == entry.contact_id).unwrap();
        format!("{word} {event} of {}contact {contact}", if is_new { "new " } else { "" })
    }
}

fn faults_of(error: &DomainError) -> String {
    let DomainError::Invalid(violations) = error else { panic!("{error}") };
    let errors = serde_json::to_value(violations.as_slice()).unwrap();
    let text = |one: &Value| format!("{} {}", one["pointer"].as_str().unwrap(), one["code"].as_str().unwrap());
    errors.as_array().unwrap().iter().map(text).collect::<Vec<_>>().join(", ")
}

#[track_caller]
fn check(bodies: &[Value], expected: &[&str]) {
    assert_eq!(World::new().enter(bodies), expected, "{bodies:?}");
}

fn of(contact: Value) -> Value {
    json!({"name": "order_placed", "contact": contact})
}

fn unique(unique_id: &str, contact: Value) -> Value {
    json!({"name": "order_placed", "contact": contact, "unique_id": unique_id})
}

#[test]
fn the_first_match_wins() {
    let world = World::new();
    let [first, second] = [world.contacts[0], world.contacts[1]];
    check(
        &[
            of(json!({"id": second, "external_id": "u-0", "email": "new@example.com"})),
            of(json!({"external_id": "u-0", "email": "ann@example.com"})),
            of(json!({"external_id": "u-9", "email": "Ann@Example.com"})),
            of(json!({"id": first})),
        ],
        &["event 0 of contact 1", "event 1 of contact 0", "event 2 of contact 1", "event 3 of contact 0"],
    );
}

#[test]
fn an_id_must_be_there() {
    for id in ["con_01JB3Q8Z5N6W7X8Y9ZABCDEFGH", "u-0", ""] {
        check(&[of(json!({"id": id, "external_id": "u-0"}))], &["/contact/id not_found"]);
    }
}

#[test]
fn nobody_is_created_once() {
    let body = of(json!({"external_id": "u-9", "email": "bob@example.com"}));
    check(
        &[
            body.clone(),
            body,
            of(json!({"email": "BOB@example.com"})),
            of(json!({"external_id": "u-9", "email": "other@example.com"})),
            // The contact u-9 has only the data with which its event created it.
            of(json!({"email": "other@example.com"})),
        ],
        &[
            "event 0 of new contact 2",
            "event 1 of contact 2",
            "event 2 of contact 2",
            "event 3 of contact 2",
            "event 4 of new contact 3",
        ],
    );
}

#[test]
fn a_repetition_has_no_effect() {
    let mut world = World::new();
    let told = world.enter(&[
        unique("a", json!({"external_id": "u-0"})),
        unique("a", json!({"external_id": "u-9"})),
        unique("a", json!({"id": "con_gone"})),
        unique("b", json!({"external_id": "u-9"})),
    ]);
    assert_eq!(
        told,
        [
            "event 0 of contact 0",
            "repeats event 0 of contact 0",
            "repeats event 0 of contact 0",
            "event 1 of new contact 2"
        ]
    );
    // A later request reads what was stored.
    assert_eq!(world.enter(&[unique("a", json!({"email": "x@example.com"}))]), ["repeats event 0 of contact 0"]);
}

#[test]
fn a_refused_event_leaves_nothing() {
    let mut refused = unique("a", json!({"external_id": "u-9"}));
    refused["name"] = json!("$x");
    check(
        &[refused, unique("a", json!({"external_id": "u-9"}))],
        &["/name invalid_format", "event 0 of new contact 2"],
    );
}

#[test]
fn times_at_their_limits() {
    let at = |time: &str| {
        let mut body = of(json!({"external_id": "u-0"}));
        body["occurred_at"] = json!(time);
        body
    };
    check(
        &[
            at("2026-01-31T10:15:00Z"),
            at("2026-01-31T10:15:00.001Z"),
            at("2021-01-31T09:15:00Z"),
            at("2021-01-31T09:14:59.999Z"),
        ],
        &["event 0 of contact 0", "/occurred_at out_of_range", "event 1 of contact 0", "/occurred_at out_of_range"],
    );
}

#[test]
fn what_is_looked_up_is_reported_with_the_rest() {
    let body = json!({"name": "", "contact": {"id": "con_x"}, "occurred_at": "1999-01-01T00:00:00Z", "unique_id": 5});
    check(&[body], &["/name required, /unique_id invalid_type, /occurred_at out_of_range, /contact/id not_found"]);
}
