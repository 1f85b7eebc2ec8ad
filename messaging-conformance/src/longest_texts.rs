//! Texts of the maximum length, of random characters, so that they cannot be compressed: every store takes them in
//! keys.

use std::hash::{BuildHasher as _, RandomState};

use messaging_core::changes::{AutomationWrite, Expect, Write};
use messaging_core::domain::audience::contact::Contact;
use messaging_core::domain::audience::product_event::ProductEvent;
use messaging_core::domain::audience::soft_bounce::Streak;
use messaging_core::domain::audience::suppression::{Suppression, SuppressionFilter};
use messaging_core::domain::automation::run::Entry;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::provider_link::ProviderLink;
use messaging_core::ports::store::Store;

use super::automation_samples::create;
use super::sample::{at, automation, contact, id, product_event, suppression};
use super::segments::add_contact;
use super::{first, put, refuse};

/// Number of characters of an address: a token of a device.
const ADDRESS: usize = 4096;

/// Returns random characters of four bytes each.
fn text(length: usize) -> String {
    let draw = |place: usize| RandomState::new().hash_one(place);
    let character = |place| char::from_u32(0x1_0000 + u32::try_from(draw(place) % 0xFF00).unwrap()).unwrap();
    (0..length).map(character).collect()
}

/// A suppression of the longest address is stored once, found by it, raised and deleted.
pub async fn the_longest_address_is_suppressed(store: &dyn Store) {
    let workspace = id();
    let address = text(ADDRESS);
    let one = suppression(workspace, Channel::Push, &address);
    put(store, [Write::PutSuppression(one.clone(), Expect::Absent)]).await;
    // Another one that differs in its last character.
    let mut other = address.clone();
    other.pop();
    other.push('x');
    let second = suppression(workspace, Channel::Push, &other);
    put(store, [Write::PutSuppression(second.clone(), Expect::Absent)]).await;
    refuse(store, [Write::PutSuppression(suppression(workspace, Channel::Push, &address), Expect::Absent)]).await;
    let raised = Suppression { detail: Some("again".to_owned()), ..one.clone() };
    put(store, [Write::PutSuppression(raised.clone(), Expect::Revision(1))]).await;
    let found = store.suppressed(workspace, Channel::Push, std::slice::from_ref(&address)).await.unwrap();
    assert_eq!(found.iter().map(|stored| &stored.record).collect::<Vec<_>>(), [&raised]);
    let asked = [(Channel::Push, address.clone()), (Channel::Push, other)];
    assert_eq!(store.suppressed_anywhere(workspace, &asked).await.unwrap().len(), 2);
    let filter = SuppressionFilter { address: Some(address.clone()), ..SuppressionFilter::default() };
    assert_eq!(store.suppressions(workspace, &filter, first(9)).await.unwrap().items, [raised]);
    put(store, [Write::DeleteSuppression(workspace, one.id, at(9))]).await;
    assert_eq!(store.suppressed(workspace, Channel::Push, std::slice::from_ref(&address)).await.unwrap(), []);
}

/// Streaks of soft bounces are stored by digests; names of messages have the maximum length of providers.
pub async fn the_longest_names_of_deliveries_are_kept(store: &dyn Store) {
    let workspace_id = id();
    let address = text(ADDRESS);
    let read = store.soft_bounces(workspace_id, Channel::Push, &address).await.unwrap();
    put(store, [Write::CountSoftBounce(read)]).await;
    let expected = Streak { workspace_id, channel: Channel::Push, address: address.clone(), length: 1 };
    assert_eq!(store.soft_bounces(workspace_id, Channel::Push, &address).await.unwrap(), expected);
    let link = ProviderLink {
        workspace_id,
        channel: Channel::Push,
        provider: "fcm".to_owned(),
        provider_message_id: text(255),
        message_id: id(),
        at: at(3),
    };
    put(store, [Write::PutProviderLink(Box::new(link.clone()))]).await;
    let found = store.message_of_provider(workspace_id, Channel::Push, "fcm", &link.provider_message_id).await;
    assert_eq!(found.unwrap(), Some(link.message_id));
}

/// Identifiers of contacts and events, and names that group them, have the maximum length of the contract.
pub async fn the_longest_names_of_contacts_and_events_are_kept(store: &dyn Store) {
    let workspace = id();
    let one = Contact {
        external_id: Some(text(255)),
        email: Some(format!("{}@example.org", "a".repeat(242))),
        tags: (0..100).map(|_| text(64)).collect(),
        ..contact(workspace)
    };
    put(store, [add_contact(&one)]).await;
    let event = ProductEvent { name: text(128), unique_id: Some(text(128)), ..product_event(&one, "x") };
    put(store, [Write::AppendProductEvents(vec![event])]).await;
    let of = automation(workspace);
    put(store, [create(&of)]).await;
    let entry = Entry {
        workspace_id: workspace,
        automation_id: of.id,
        contact_id: one.id,
        key: Some(text(64)),
        entered_at: at(1),
        open: 0,
    };
    put(store, [Write::Automation(AutomationWrite::PutEntry(Box::new(entry.clone()), Expect::Absent))]).await;
    let found = store.entries(workspace, of.id, &[(one.id, entry.key.clone())]).await.unwrap();
    assert_eq!(found[0].as_ref().map(|stored| &stored.record), Some(&entry));
}
