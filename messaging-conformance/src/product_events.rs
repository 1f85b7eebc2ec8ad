//! Product events.

use std::time::Duration;

use messaging_core::changes::{Expect, MoveProductEvents, Write};
use messaging_core::domain::audience::contact::{Contact, Identifier};
use messaging_core::domain::audience::product_event::event_deduplicator::Known;
use messaging_core::domain::audience::product_event::{ProductEvent, Properties, UNIQUE_FOR};
use messaging_core::ids::{ContactId, EventId, WorkspaceId};
use messaging_core::ports::store::Store;
use messaging_core::ports::store::product_events::Named;

use super::commit::at_once;
use super::sample::{at, contact, id, id_at, product_event};
use super::{all_pages, commit, first, put, refuse};

/// Milliseconds of the time when the unique ids of the samples arrive.
const REMEMBERED: i64 = -1000;

async fn stored_contact(store: &dyn Store, workspace: WorkspaceId) -> Contact {
    let contact = contact(workspace);
    put(store, [Write::put_contact(contact.clone(), Expect::Absent)]).await;
    contact
}

fn unique(contact: &Contact, unique_id: &str) -> ProductEvent {
    ProductEvent { unique_id: Some(unique_id.to_owned()), ..product_event(contact, "order_placed") }
}

fn append(events: &[ProductEvent]) -> [Write; 1] {
    [Write::AppendProductEvents(events.to_vec())]
}

fn merge(from: &Contact, to: &Contact, limit: usize) -> Write {
    Write::MoveProductEvents(MoveProductEvents { workspace_id: to.workspace_id, from: from.id, to: to.id, limit })
}

fn remove(contact: &Contact) -> Write {
    Write::DeleteContact(contact.workspace_id, contact.id)
}

/// Returns the events of a contact, newest first.
async fn listed(store: &dyn Store, contact: &Contact) -> Vec<EventId> {
    let slice = store.product_events(contact.workspace_id, contact.id, first(1000)).await.unwrap();
    assert_eq!(slice.next, None);
    slice.items.iter().map(|event| event.id).collect()
}

async fn has_left(store: &dyn Store, contact: &Contact) -> bool {
    store.has_left_events(contact.workspace_id, contact.id).await.unwrap()
}

/// Returns the event that has a unique id, and its contact.
async fn holder(store: &dyn Store, workspace: WorkspaceId, unique_id: &str) -> Option<(EventId, ContactId)> {
    let named = Named { unique_ids: vec![unique_id.to_owned()], ..Named::default() };
    store.known_to_events(workspace, named, at(REMEMBERED)).await.unwrap().events.remove(unique_id)
}

/// Events come back with all fields, the last to arrive first.
pub async fn events_round_trip(store: &dyn Store) {
    let workspace = id();
    let (ann, bob) = (stored_contact(store, workspace).await, stored_contact(store, workspace).await);
    let events = [
        unique(&ann, "order «17»"),
        ProductEvent { properties: Properties::default(), ..product_event(&ann, "Seite besucht ü") },
        product_event(&bob, "order_placed"),
        ProductEvent { occurred_at: at(5), ..product_event(&ann, "order_placed") },
    ];
    put(store, append(&events[..3])).await;
    put(store, append(&events[3..])).await;
    let found = store.product_events(workspace, ann.id, first(10)).await.unwrap();
    assert_eq!(found.items, [events[3].clone(), events[1].clone(), events[0].clone()]);
    assert_eq!(listed(store, &bob).await, [events[2].id]);
    // Events of several workspaces in one write.
    let others = [stored_contact(store, id()).await, stored_contact(store, id()).await];
    let events = others.each_ref().map(|other| product_event(other, "order_placed"));
    put(store, append(&events)).await;
    for (other, event) in others.iter().zip(&events) {
        assert_eq!(listed(store, other).await, [event.id]);
    }
}

/// Contacts are looked up by id and identifier, events by unique id.
pub async fn what_events_name_is_looked_up(store: &dyn Store) {
    let workspace = id();
    let nothing = store.known_to_events(workspace, Named::default(), at(0)).await.unwrap();
    assert_eq!(nothing, Known::default());
    let (ann, bob) = (stored_contact(store, workspace).await, stored_contact(store, workspace).await);
    let event = unique(&ann, "order-17");
    put(store, append(std::slice::from_ref(&event))).await;
    let external_id = Identifier::ExternalId(ann.external_id.clone().unwrap());
    let email = Identifier::Email(bob.email.clone().unwrap());
    let nobody = Identifier::Email("nobody@example.org".to_owned());
    let mut named = Named {
        contacts: vec![ann.id, id(), bob.id, ann.id],
        identifiers: vec![vec![external_id.clone()], vec![nobody.clone(), email.clone()], vec![nobody], Vec::new()],
        unique_ids: vec!["order-17".to_owned(), "order-18".to_owned(), "order-17".to_owned()],
    };
    let expected = Known {
        contacts: [ann.id, bob.id].into(),
        owners: [(external_id, ann.id), (email, bob.id)].into(),
        events: [("order-17".to_owned(), (event.id, ann.id))].into(),
    };
    assert_eq!(store.known_to_events(workspace, named.clone(), at(REMEMBERED)).await.unwrap(), expected);
    // Many identifiers are looked up in another way than few.
    named.identifiers.resize(50, Vec::new());
    assert_eq!(store.known_to_events(workspace, named, at(REMEMBERED)).await.unwrap(), expected);
}

/// Of the identifiers of one event, the first that belongs to a contact decides.
pub async fn the_first_name_found_is_enough(store: &dyn Store) {
    let workspace = id();
    let (ann, bob) = (stored_contact(store, workspace).await, stored_contact(store, workspace).await);
    let external_id = Identifier::ExternalId(ann.external_id.clone().unwrap());
    let email = Identifier::Email(bob.email.clone().unwrap());
    let named = |identifiers| Named { identifiers, ..Named::default() };
    let both = vec![external_id.clone(), email.clone()];
    let known = store.known_to_events(workspace, named(vec![both.clone()]), at(0)).await.unwrap();
    assert_eq!(known.owners.get(&external_id), Some(&ann.id));
    let known = store.known_to_events(workspace, named(vec![both, vec![email.clone()]]), at(0)).await.unwrap();
    assert_eq!(known.owners.get(&email), Some(&bob.id), "asked for by another event");
}

/// A repetition is a conflict for seven days after the arrival of the first event; a later one takes over the unique
/// id.
pub async fn a_unique_id_counts_for_seven_days(store: &dyn Store) {
    let workspace = id();
    let (ann, bob) = (stored_contact(store, workspace).await, stored_contact(store, workspace).await);
    let week = i64::try_from(UNIQUE_FOR.as_millis()).unwrap();
    let arriving = |contact, millis| ProductEvent { id: id_at(millis), ..unique(contact, "order-17") };
    let first = arriving(&ann, 0);
    put(store, append(std::slice::from_ref(&first))).await;
    refuse(store, append(&[arriving(&bob, 0)])).await;
    refuse(store, append(&[product_event(&ann, "other"), arriving(&bob, week)])).await;
    assert_eq!(listed(store, &ann).await, [first.id], "a conflict leaves nothing");
    refuse(store, append(&[unique(&ann, "twice"), unique(&ann, "twice")])).await;

    let second = arriving(&bob, week + 1);
    put(store, append(std::slice::from_ref(&second))).await;
    assert_eq!(holder(store, workspace, "order-17").await, Some((second.id, bob.id)));
    let stored = store.product_events(workspace, ann.id, super::first(1)).await.unwrap().items;
    assert_eq!(stored, [ProductEvent { unique_id: None, ..first }], "the event itself stays");
    let named = Named { unique_ids: vec!["order-17".to_owned()], ..Named::default() };
    let late = at(week + 1) + Duration::from_millis(1);
    assert_eq!(store.known_to_events(workspace, named, late).await.unwrap(), Known::default());
}

/// Of many commits that use a unique id at once, one succeeds.
pub async fn unique_ids_are_unique_in_a_crowd(store: &dyn Store) {
    let workspace = id();
    let ann = stored_contact(store, workspace).await;
    let commits: Vec<_> = (0..20)
        .map(|_| Box::pin(commit(store, append(&[product_event(&ann, "seen"), unique(&ann, "order-17")]))))
        .collect();
    let outcomes = at_once(commits).await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    assert_eq!(listed(store, &ann).await.len(), 2);
}

/// An event of a contact that does not exist, or no longer, is a conflict.
pub async fn a_contact_must_be_there(store: &dyn Store) {
    let workspace = id();
    refuse(store, append(&[product_event(&contact(workspace), "seen")])).await;
    let (ann, bob) = (stored_contact(store, workspace).await, stored_contact(store, workspace).await);
    put(store, [remove(&bob)]).await;
    refuse(store, append(&[product_event(&ann, "seen"), product_event(&bob, "seen")])).await;
    refuse(store, append(&[product_event(&contact(workspace), "seen")])).await;
    assert_eq!(listed(store, &ann).await, []);
    // A contact may be created in the same commit.
    let carl = contact(workspace);
    let event = product_event(&carl, "seen");
    let create = Write::put_contact(carl.clone(), Expect::Absent);
    put(store, std::iter::once(create).chain(append(std::slice::from_ref(&event)))).await;
    assert_eq!(listed(store, &carl).await, [event.id]);
}

/// Events of a merged contact pass to the primary, a slice at a time; a unique id belongs to the primary at once.
pub async fn merged_events_move_in_slices(store: &dyn Store) {
    let workspace = id();
    let (ann, twin) = (stored_contact(store, workspace).await, stored_contact(store, workspace).await);
    let own = product_event(&ann, "seen");
    let moved: Vec<_> = (0..5).map(|n| unique(&twin, &format!("n-{n}"))).collect();
    put(store, append(std::slice::from_ref(&own))).await;
    put(store, append(&moved)).await;
    refuse(store, [merge(&twin, &contact(workspace), 2)]).await;
    put(store, [merge(&twin, &ann, 2), remove(&twin)]).await;
    assert_eq!((listed(store, &ann).await.len(), has_left(store, &twin).await), (3, true));
    for event in &moved {
        let unique_id = event.unique_id.as_deref().unwrap();
        assert_eq!(holder(store, workspace, unique_id).await, Some((event.id, ann.id)), "{unique_id}");
    }
    refuse(store, append(&[unique(&ann, "n-4")])).await;
    while has_left(store, &twin).await {
        put(store, [merge(&twin, &ann, 2)]).await;
    }
    let mut all: Vec<_> = moved.iter().map(|event| event.id).collect();
    all.reverse();
    all.push(own.id);
    assert_eq!(listed(store, &ann).await, all, "in the order of their arrival");
    put(store, [merge(&twin, &ann, 2), remove(&twin)]).await;
    assert_eq!(listed(store, &ann).await, all);
    // A contact without events leaves none.
    let silent = stored_contact(store, workspace).await;
    put(store, [merge(&silent, &ann, 2), remove(&silent)]).await;
    assert!(!has_left(store, &silent).await);
}

/// A primary is itself merged or erased before all events have passed to it.
pub async fn the_way_of_merged_events_is_followed(store: &dyn Store) {
    let workspace = id();
    for is_erased in [false, true] {
        let contacts = [(); 3].map(|()| contact(workspace));
        let [first, second, third] = &contacts;
        put(store, contacts.each_ref().map(|contact| Write::put_contact(contact.clone(), Expect::Absent))).await;
        let events: Vec<_> = (0..6).map(|n| unique(first, &format!("{is_erased} {n}"))).collect();
        put(store, append(&events)).await;
        put(store, [merge(first, second, 2), remove(first)]).await;
        if is_erased {
            put(store, [remove(second)]).await;
            assert_eq!(holder(store, workspace, "true 5").await, None, "nobody's");
            put(store, append(&[unique(third, "true 5")])).await;
        } else {
            put(store, [merge(second, third, 100), remove(second)]).await;
            assert_eq!(holder(store, workspace, "false 5").await, Some((events[5].id, third.id)));
        }
        while has_left(store, first).await {
            put(store, [merge(first, second, 2)]).await;
        }
        if is_erased {
            while has_left(store, second).await {
                put(store, [Write::DeleteProductEvents(workspace, second.id, 1)]).await;
            }
        }
        assert!(!has_left(store, second).await);
        let found = listed(store, third).await;
        if is_erased {
            assert_eq!(found.len(), 1, "its own alone");
        } else {
            assert!(found.iter().eq(events.iter().rev().map(|event| &event.id)));
        }
    }
}

/// Events of an erased contact are deleted, a slice at a time; its unique ids are free at once.
pub async fn erased_events_go_in_slices(store: &dyn Store) {
    let workspace = id();
    let (ann, bob) = (stored_contact(store, workspace).await, stored_contact(store, workspace).await);
    let kept = product_event(&bob, "seen");
    let events: Vec<_> = (0..5).map(|n| unique(&ann, &format!("n-{n}"))).collect();
    put(store, append(&[events.clone(), vec![kept.clone()]].concat())).await;
    put(store, [Write::DeleteProductEvents(workspace, ann.id, 100)]).await;
    assert_eq!(listed(store, &ann).await.len(), 5, "a contact that is there keeps its events");
    put(store, [remove(&ann)]).await;
    assert!(has_left(store, &ann).await);
    assert_eq!(holder(store, workspace, "n-4").await, None);
    let again = unique(&bob, "n-4");
    put(store, append(std::slice::from_ref(&again))).await;
    let mut slices = 0;
    while has_left(store, &ann).await {
        put(store, [Write::DeleteProductEvents(workspace, ann.id, 2)]).await;
        slices += 1;
    }
    assert_eq!(slices, 3);
    assert_eq!(listed(store, &bob).await, [again.id, kept.id]);
    assert_eq!(holder(store, workspace, "n-4").await, Some((again.id, bob.id)));
    put(store, [Write::DeleteProductEvents(workspace, ann.id, 2), remove(&ann)]).await;
}

/// A sweep removes the unique ids that arrived first, and no more than it is told to.
pub async fn unique_ids_are_forgotten(store: &dyn Store) {
    let workspace = id();
    let ann = stored_contact(store, workspace).await;
    let arriving = |n: i64| ProductEvent { id: id_at(n), ..unique(&ann, &format!("n-{n}")) };
    put(store, append(&(0..6).map(arriving).collect::<Vec<_>>())).await;
    assert_eq!(store.forget_unique_ids(at(0), 10).await.unwrap(), 0);
    assert_eq!(store.forget_unique_ids(at(4), 3).await.unwrap(), 3);
    assert_eq!(store.forget_unique_ids(at(4), 10).await.unwrap(), 1);
    assert_eq!(holder(store, workspace, "n-3").await, None);
    assert!(holder(store, workspace, "n-4").await.is_some());
    assert_eq!(listed(store, &ann).await.len(), 6, "the events stay");
}

/// Unique ids that arrived while the clock was wrong do not keep later ones from being removed.
pub async fn unique_ids_dated_in_the_future_are_passed_over(store: &dyn Store) {
    let workspace = id();
    let ann = stored_contact(store, workspace).await;
    let arriving = |n: i64| ProductEvent { id: id_at(n), ..unique(&ann, &format!("n-{n}")) };
    for thousand in 1..=11 {
        let events: Vec<_> = (0..1_000).map(|n| arriving(1_000_000 * thousand + n)).collect();
        put(store, append(&events)).await;
    }
    put(store, append(&[arriving(0)])).await;
    let mut forgotten = 0;
    for _ in 0..4 {
        forgotten += store.forget_unique_ids(at(4), 10).await.unwrap();
    }
    assert_eq!(forgotten, 1);
}

/// Later events do not disturb a listing.
pub async fn listing_is_exact_while_rows_are_inserted(store: &dyn Store) {
    let workspace = id();
    let ann = stored_contact(store, workspace).await;
    let events: Vec<_> = (0..7).map(|n| product_event(&ann, if n % 2 == 0 { "b" } else { "a" })).collect();
    put(store, append(&events)).await;
    let fetch = async |page| store.product_events(workspace, ann.id, page).await;
    let disturb = async || put(store, append(&[product_event(&ann, "later")])).await;
    for limit in [2, 7] {
        let mut all = all_pages(limit, fetch, disturb).await;
        all.retain(|event| event.name != "later");
        assert_eq!(all, events.iter().rev().cloned().collect::<Vec<_>>());
    }
}

/// Names, unique ids and events belong to a workspace.
pub async fn other_workspaces_are_not_there(store: &dyn Store) {
    let (mine, other) = (id(), id());
    let (ann, stranger) = (stored_contact(store, mine).await, stored_contact(store, other).await);
    put(store, append(&[unique(&ann, "order-17")])).await;
    put(store, append(&[unique(&stranger, "order-17")])).await;
    let named = Named {
        contacts: vec![ann.id],
        identifiers: vec![ann.identifiers().collect()],
        unique_ids: vec!["order-17".to_owned()],
    };
    let known = store.known_to_events(other, named, at(REMEMBERED)).await.unwrap();
    assert_eq!((known.contacts.len(), known.owners.len()), (0, 0));
    assert_eq!(known.events["order-17"].1, stranger.id);
    assert_eq!(store.product_events(other, ann.id, first(10)).await.unwrap().items, []);
    let misplaced = ProductEvent { workspace_id: other, ..product_event(&ann, "seen") };
    refuse(store, append(&[misplaced])).await;
    put(store, [Write::DeleteContact(mine, ann.id), Write::DeleteProductEvents(other, ann.id, 10)]).await;
    assert!(has_left(store, &ann).await);
    assert!(!store.has_left_events(other, ann.id).await.unwrap());
}
