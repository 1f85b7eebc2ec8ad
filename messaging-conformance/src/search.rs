//! Cases for searching contacts and messages.

use messaging_core::changes::{Expect, Write};
use messaging_core::domain::audience::contact::{Contact, ContactFilter};
use messaging_core::domain::message::{Message, MessageFilter, MessageStatus};
use messaging_core::domain::search::messages::{DueMessages, MessageBlock};
use messaging_core::domain::search::{Search, SearchTexts};
use messaging_core::ids::{ContactId, MessageId, WorkspaceId};
use messaging_core::ports::store::{PageRequest, Store};
use messaging_core::time::Timestamp;

use super::redaction::redaction;
use super::sample::{self, at, bare_message, change, contact, contact_list, id, id_at, insert};
use super::{all_pages, first, put, refuse};

/// Indexes due blocks: messages accepted before a time, each with a subject that names its recipient.
async fn index(store: &dyn Store, before: Timestamp) {
    loop {
        let contacts = store.contact_blocks_due(3).await.unwrap();
        let messages = store.message_blocks_due(before, at(-1000), 3).await.unwrap();
        if contacts.is_empty() && messages.is_empty() {
            return;
        }
        put(store, contacts.into_iter().map(|block| Write::PutContactBlock(Box::new(block))).collect::<Vec<_>>()).await;
        for due in messages {
            put(store, [Write::PutMessageBlock(Box::new(block(due)))]).await;
        }
    }
}

fn block(due: DueMessages) -> MessageBlock {
    let DueMessages { workspace_id, replaces, messages } = due;
    let mut texts = SearchTexts::default();
    for message in &messages {
        let name = message.to.split('@').next().unwrap_or_default();
        texts.add_message(
            message,
            Some(name).filter(|name| !name.is_empty()).map(|name| format!("For {name}")).as_deref(),
        );
    }
    let (first, last) = (messages[0].id, messages[messages.len() - 1].id);
    MessageBlock {
        workspace_id,
        replaces,
        first,
        last,
        messages: u32::try_from(messages.len()).unwrap(),
        is_aged: false,
        texts,
    }
}

fn for_contacts(text: &str, sees: bool) -> ContactFilter {
    ContactFilter { search: Some(Search::new(text, sees)), ..ContactFilter::default() }
}

async fn contacts(store: &dyn Store, workspace: WorkspaceId, filter: &ContactFilter) -> Vec<ContactId> {
    let page = async |page: PageRequest| store.contacts(workspace, filter, page).await;
    all_pages(2, page, async || {}).await.into_iter().map(|contact| contact.id).collect()
}

fn named(workspace: WorkspaceId, email: &str, name: &str) -> Contact {
    let mut contact = Contact { email: Some(email.to_owned()), tags: Vec::new(), ..contact(workspace) };
    contact.attributes.edit().insert("last_name".to_owned(), name.into());
    contact
}

/// Contacts are found by a part of their names, whether they are in the index already or not.
pub async fn contacts_are_found_by_a_piece_of_text(store: &dyn Store) {
    let (workspace, other): (WorkspaceId, WorkspaceId) = (id(), id());
    let ann = named(workspace, "ann.smith@example.org", "Smith");
    let bob = named(workspace, "bob@example.net", "Smithers");
    let elsewhere = named(other, "ann.smith@example.org", "Smith");
    put(store, [&ann, &bob, &elsewhere].map(|contact| Write::put_contact(contact.clone(), Expect::Absent))).await;
    let found = async |text: &str, sees| contacts(store, workspace, &for_contacts(text, sees)).await;
    let all_is_found = async || {
        assert_eq!(found("SMITH", true).await, [bob.id, ann.id]);
        assert_eq!(found("ith@ex", true).await, [ann.id]);
        assert_eq!(found("smith", false).await, []);
        let external = ann.external_id.clone().unwrap();
        assert_eq!(found(&external[3..], false).await, [ann.id]);
        assert_eq!(found("no such text", true).await, []);
    };
    all_is_found().await;
    index(store, at(0)).await;
    all_is_found().await;
    let renamed = Contact { updated_at: at(50), ..named(workspace, "ann@example.org", "Miller") };
    let renamed = Contact { id: ann.id, external_id: ann.external_id.clone(), phone: ann.phone.clone(), ..renamed };
    put(store, [Write::put_contact(renamed, Expect::Revision(1))]).await;
    for _ in 0..2 {
        assert_eq!(found("smith", true).await, [bob.id]);
        assert_eq!(found("mill", true).await, [ann.id]);
        index(store, at(0)).await;
    }
    put(store, [Write::DeleteContact(workspace, bob.id)]).await;
    for _ in 0..2 {
        assert_eq!(found("smith", true).await, []);
        index(store, at(0)).await;
    }
    assert_eq!(contacts(store, other, &for_contacts("smith", true)).await, [elsewhere.id]);
}

/// A search narrows the result of other filters, and continues from page to page through many blocks.
pub async fn a_search_of_contacts_combines_with_filters(store: &dyn Store) {
    let workspace: WorkspaceId = id();
    let list = contact_list(workspace);
    put(store, [Write::put(list.clone(), Expect::Absent)]).await;
    let mut all = Vec::new();
    for n in 0..100 {
        let contact = named(workspace, &format!("person{n}@example.org"), if n % 10 == 0 { "Round" } else { "Other" });
        put(store, [Write::put_contact(contact.clone(), Expect::Absent)]).await;
        if n % 20 == 0 {
            put(store, [Write::JoinList(workspace, list.id, contact.id, at(1))]).await;
        }
        all.push(contact.id);
        if n == 60 {
            index(store, at(0)).await;
        }
    }
    let every = |step: usize| -> Vec<ContactId> { all.iter().copied().step_by(step).rev().collect() };
    for _ in 0..2 {
        assert_eq!(contacts(store, workspace, &for_contacts("round", true)).await, every(10));
        assert_eq!(contacts(store, workspace, &for_contacts("person", true)).await, every(1));
        let on_list = ContactFilter { list_id: Some(list.id), ..for_contacts("round", true) };
        assert_eq!(contacts(store, workspace, &on_list).await, every(20));
        let nobody = ContactFilter { tag: Some("no such tag".to_owned()), ..for_contacts("round", true) };
        assert_eq!(contacts(store, workspace, &nobody).await, []);
        let one = ContactFilter { email: Some("person7@example.org".to_owned()), ..for_contacts("person", true) };
        assert_eq!(contacts(store, workspace, &one).await, [all[7]]);
        let none = ContactFilter { email: Some("person7@example.org".to_owned()), ..for_contacts("round", true) };
        assert_eq!(contacts(store, workspace, &none).await, []);
        index(store, at(0)).await;
    }
}

/// A note that was followed meanwhile is not followed twice.
pub async fn a_note_is_followed_once(store: &dyn Store) {
    put(store, [Write::put_contact(contact(id()), Expect::Absent)]).await;
    let due = store.contact_blocks_due(9).await.unwrap();
    assert_eq!(due.len(), 1);
    put(store, [Write::PutContactBlock(Box::new(due[0].clone()))]).await;
    refuse(store, [Write::PutContactBlock(Box::new(due[0].clone()))]).await;
    assert_eq!(store.contact_blocks_due(9).await.unwrap(), []);
}

fn for_messages(text: &str, sees: bool) -> MessageFilter {
    MessageFilter { search: Some(Search::new(text, sees)), ..MessageFilter::default() }
}

async fn messages(store: &dyn Store, workspace: WorkspaceId, filter: &MessageFilter) -> Vec<MessageId> {
    let page = async |page: PageRequest| store.messages(workspace, filter, page).await;
    all_pages(2, page, async || {}).await.into_iter().map(|message| message.id).collect()
}

/// Creates a workspace; only its messages are indexed.
async fn home(store: &dyn Store) -> WorkspaceId {
    let workspace = sample::workspace();
    put(store, [Write::put(workspace.clone(), Expect::Absent)]).await;
    workspace.id
}

fn message_to(workspace: WorkspaceId, millis: i64, to: &str) -> Message {
    Message { id: id_at(millis), to: to.to_owned(), ..bare_message(workspace) }
}

/// Messages are found by recipient and id at once, and by their subject once they are indexed.
pub async fn messages_are_found_by_a_piece_of_text(store: &dyn Store) {
    let (workspace, other) = (home(store).await, home(store).await);
    let one = message_to(workspace, 10, "Ann@example.org");
    let two = message_to(workspace, 20, "bob@example.org");
    let elsewhere = message_to(other, 15, "ann@example.org");
    put(store, [&one, &two, &elsewhere].map(insert)).await;
    let found = async |text: &str, sees| messages(store, workspace, &for_messages(text, sees)).await;
    for is_indexed in [false, true] {
        assert_eq!(found("ann@", true).await, [one.id]);
        assert_eq!(found("ann@", false).await, []);
        assert_eq!(found("@EXAMPLE", true).await, [two.id, one.id]);
        assert_eq!(found(&two.id.to_string()[8..], false).await, [two.id]);
        let by_subject = if is_indexed { vec![one.id] } else { Vec::new() };
        assert_eq!(found("for ann", false).await, by_subject);
        index(store, at(100)).await;
    }
    assert_eq!(messages(store, other, &for_messages("for ann", false)).await, [elsewhere.id]);
    let of_status = MessageFilter { statuses: vec![MessageStatus::Bounced], ..for_messages("for", false) };
    assert_eq!(messages(store, workspace, &of_status).await, []);
    put(store, [change(&one, 1, MessageStatus::Bounced)]).await;
    assert_eq!(messages(store, workspace, &of_status).await, [one.id]);
    let later = MessageFilter { since: Some(at(15)), ..for_messages("for", false) };
    assert_eq!(messages(store, workspace, &later).await, [two.id]);
    let earlier = MessageFilter { until: Some(at(15)), ..for_messages("for", false) };
    assert_eq!(messages(store, workspace, &earlier).await, [one.id]);
}

/// Many messages fill many blocks; later messages join the last one that has room.
pub async fn a_search_of_messages_goes_through_all_blocks(store: &dyn Store) {
    let workspace = home(store).await;
    let mut all = Vec::new();
    for n in 0..70_i64 {
        let to = if n % 7 == 0 { format!("seven{n}@example.org") } else { format!("other{n}@example.org") };
        let message = message_to(workspace, 10 * n, &to);
        all.push(message.id);
        put(store, [insert(&message)]).await;
        if n % 9 == 0 {
            index(store, at(10 * n - 5)).await;
        }
    }
    let every = |step: usize| -> Vec<MessageId> { all.iter().copied().step_by(step).rev().collect() };
    for _ in 0..2 {
        assert_eq!(messages(store, workspace, &for_messages("seven", true)).await, every(7));
        assert_eq!(messages(store, workspace, &for_messages("@example", true)).await, every(1));
        index(store, at(10_000)).await;
    }
    assert_eq!(messages(store, workspace, &for_messages("for seven", false)).await, every(7));
    assert_eq!(store.message_blocks_due(at(10_000), at(-1000), 9).await.unwrap(), []);
    // Blocks of removed contents are built anew, once.
    let aged = store.message_blocks_due(at(10_000), at(10_000), 9).await.unwrap();
    assert!(!aged.is_empty());
    for due in aged {
        put(store, [Write::PutMessageBlock(Box::new(MessageBlock { is_aged: true, ..block(due) }))]).await;
    }
    assert_eq!(store.message_blocks_due(at(10_000), at(10_000), 9).await.unwrap(), []);
    assert_eq!(messages(store, workspace, &for_messages("seven", true)).await, every(7));
}

/// A message whose recipient was erased is not found by any text, and its texts do not come back.
pub async fn erased_messages_are_not_found(store: &dyn Store) {
    let workspace = home(store).await;
    let (one, two) = (message_to(workspace, 10, "ann@example.org"), message_to(workspace, 20, "bob@example.org"));
    put(store, [&one, &two].map(insert)).await;
    let stale = block(store.message_blocks_due(at(100), at(-1000), 9).await.unwrap().remove(0));
    index(store, at(100)).await;
    refuse(store, [Write::PutMessageBlock(Box::new(stale.clone()))]).await;
    put(store, [Write::RedactMessage(Box::new(redaction(&one)))]).await;
    let again = MessageBlock { replaces: Some((stale.first, stale.last)), ..stale };
    refuse(store, [Write::PutMessageBlock(Box::new(again))]).await;
    for _ in 0..2 {
        assert_eq!(messages(store, workspace, &for_messages("ann", true)).await, []);
        assert_eq!(messages(store, workspace, &for_messages("bob@", true)).await, [two.id]);
        index(store, at(100)).await;
    }
    assert_eq!(messages(store, workspace, &for_messages("for bob", false)).await, [two.id]);
    assert_eq!(messages(store, id(), &for_messages("bob", true)).await, []);
    assert_eq!(store.messages(workspace, &for_messages("bob", true), first(1)).await.unwrap().items.len(), 1);
}
