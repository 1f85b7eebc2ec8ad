//! Lists of contacts and their members.

use messaging_core::changes::{DocumentKey, Expect, Write};
use messaging_core::domain::audience::contact::{Contact, ContactFilter};
use messaging_core::domain::audience::list::ContactList;
use messaging_core::ids::{ListId, WorkspaceId};
use messaging_core::ports::store::Store;

use super::sample::{at, contact, contact_list, id};
use super::{all_pages, first, put, refuse};

fn add(list: &ContactList) -> Write {
    Write::put(list.clone(), Expect::Absent)
}

fn add_contact(contact: &Contact) -> Write {
    Write::put_contact(contact.clone(), Expect::Absent)
}

async fn count(store: &dyn Store, workspace: WorkspaceId, list: ListId) -> u64 {
    store.list(workspace, list).await.unwrap().unwrap().record.contact_count
}

/// A list is found by id; a change replaces its name.
pub async fn lists_round_trip(store: &dyn Store) {
    let workspace = id();
    let list = contact_list(workspace);
    put(store, [add(&list)]).await;
    let found = store.list(workspace, list.id).await.unwrap().unwrap();
    assert_eq!((&found.record, found.revision), (&list, 1));
    let renamed = ContactList { name: "«other»".to_owned(), updated_at: at(50), ..list };
    put(store, [Write::put(renamed.clone(), Expect::Revision(1))]).await;
    let found = store.list(workspace, renamed.id).await.unwrap().unwrap();
    assert_eq!((&found.record, found.revision), (&renamed, 2));
    refuse(store, [Write::put(renamed.clone(), Expect::Revision(1))]).await;
    let missing = id();
    assert_eq!(store.lists_among(workspace, &[missing, renamed.id]).await.unwrap(), [renamed.id]);
}

/// Members are counted, whatever makes or ends a membership.
pub async fn members_are_counted(store: &dyn Store) {
    let workspace = id();
    let (list, other) = (contact_list(workspace), contact_list(workspace));
    let contacts: Vec<_> = (0..3).map(|_| contact(workspace)).collect();
    put(store, [add(&list), add(&other)]).await;
    put(store, contacts.iter().map(add_contact).collect::<Vec<_>>()).await;
    let join = |list: &ContactList, n: usize| Write::JoinList(workspace, list.id, contacts[n].id, at(0));
    let leave = |n: usize| Write::LeaveList(workspace, list.id, contacts[n].id, at(0));
    put(store, [join(&list, 0), join(&list, 1), join(&other, 0)]).await;
    assert_eq!((count(store, workspace, list.id).await, count(store, workspace, other.id).await), (2, 1));
    refuse(store, [join(&list, 2), join(&list, 0)]).await;
    assert_eq!(count(store, workspace, list.id).await, 2);
    let of_first = store.contact(workspace, contacts[0].id).await.unwrap().unwrap().record;
    let mut both = vec![list.id, other.id];
    both.sort_unstable();
    assert_eq!(of_first, Contact { list_ids: both, ..contacts[0].clone() });

    let asked: Vec<_> = contacts.iter().map(|contact| contact.id).chain([id()]).collect();
    let mut members = store.memberships(workspace, list.id, &asked).await.unwrap();
    members.sort_unstable();
    let mut expected = vec![(contacts[0].id, true), (contacts[1].id, true), (contacts[2].id, false)];
    expected.sort_unstable();
    assert_eq!(members, expected);

    put(store, [leave(0)]).await;
    put(store, [leave(0), leave(2)]).await;
    assert_eq!(count(store, workspace, list.id).await, 1);
    // Storing a contact leaves its lists alone.
    let stale = Contact { list_ids: Vec::new(), locale: Some("fr".to_owned()), ..contacts[1].clone() };
    put(store, [Write::put_contact(stale, Expect::Revision(1))]).await;
    assert_eq!(count(store, workspace, list.id).await, 1);
    assert_eq!(store.contact(workspace, contacts[1].id).await.unwrap().unwrap().record.list_ids, [list.id]);
}

/// Nobody joins a list that is not there, and nobody who is not there joins a list.
pub async fn both_must_be_there_to_join(store: &dyn Store) {
    let workspace = id();
    let (list, contact) = (contact_list(workspace), contact(workspace));
    put(store, [add(&list), add_contact(&contact)]).await;
    refuse(store, [Write::JoinList(workspace, id(), contact.id, at(0))]).await;
    refuse(store, [Write::JoinList(workspace, list.id, id(), at(0))]).await;
    refuse(store, [Write::JoinList(id(), list.id, contact.id, at(0))]).await;
    put(store, [Write::Delete(DocumentKey::List(workspace, list.id))]).await;
    refuse(store, [Write::JoinList(workspace, list.id, contact.id, at(0))]).await;
}

/// A removed list is gone at once; its members are let go in slices and stay contacts.
pub async fn a_removed_list_lets_its_members_go(store: &dyn Store) {
    let workspace = id();
    let (gone, stays) = (contact_list(workspace), contact_list(workspace));
    put(store, [add(&gone), add(&stays)]).await;
    let contacts: Vec<_> = (0..5).map(|_| contact(workspace)).collect();
    for contact in &contacts {
        let join = |list: &ContactList| Write::JoinList(workspace, list.id, contact.id, at(0));
        put(store, [add_contact(contact), join(&gone), join(&stays)]).await;
    }
    put(store, [Write::Delete(DocumentKey::List(workspace, gone.id))]).await;
    put(store, [Write::Delete(DocumentKey::List(workspace, gone.id))]).await;
    assert_eq!(store.list(workspace, gone.id).await.unwrap(), None);
    assert_eq!(store.lists_among(workspace, &[gone.id, stays.id]).await.unwrap(), [stays.id]);
    assert_eq!(store.lists(workspace, first(10)).await.unwrap().items.len(), 1);
    refuse(store, [Write::put(gone.clone(), Expect::Revision(1))]).await;
    let on = |list_id| ContactFilter { list_id: Some(list_id), ..ContactFilter::default() };
    assert_eq!(store.contacts(workspace, &on(gone.id), first(10)).await.unwrap().items, []);
    assert_eq!(store.contact(workspace, contacts[0].id).await.unwrap().unwrap().record.list_ids, [stays.id]);

    assert_eq!(store.forget_members(3).await.unwrap(), 3);
    // The two that are left, and the list itself.
    assert_eq!(store.forget_members(100).await.unwrap(), 3);
    assert_eq!(store.forget_members(100).await.unwrap(), 0);
    assert_eq!(store.contacts(workspace, &on(stays.id), first(10)).await.unwrap().items.len(), 5);
    assert_eq!(count(store, workspace, stays.id).await, 5);
}

/// Pages neither skip nor repeat.
pub async fn listing_is_exact_while_rows_are_inserted(store: &dyn Store) {
    let workspace = id();
    let mut expected = Vec::new();
    for _ in 0..5 {
        let list = contact_list(workspace);
        put(store, [add(&list)]).await;
        expected.insert(0, list);
    }
    let add_more = async || put(store, [add(&contact_list(workspace))]).await;
    let listed = all_pages(2, async |page| store.lists(workspace, page).await, add_more).await;
    assert_eq!(listed, expected);
}

/// A list and its members belong to their workspace.
pub async fn other_workspaces_are_not_there(store: &dyn Store) {
    let (mine, other): (WorkspaceId, WorkspaceId) = (id(), id());
    let (list, contact) = (contact_list(mine), contact(mine));
    put(store, [add(&list), add_contact(&contact), add(&contact_list(other))]).await;
    put(store, [Write::JoinList(mine, list.id, contact.id, at(0))]).await;
    assert_eq!(store.list(other, list.id).await.unwrap(), None);
    assert_eq!(store.lists_among(other, &[list.id]).await.unwrap(), []);
    assert_eq!(store.memberships(other, list.id, &[contact.id]).await.unwrap(), []);
    assert_eq!(store.lists(id(), first(10)).await.unwrap().items, []);
    let stolen = ContactList { workspace_id: other, ..list.clone() };
    refuse(store, [Write::put(stolen, Expect::Revision(1))]).await;
    put(store, [Write::Delete(DocumentKey::List(other, list.id)), Write::LeaveList(other, list.id, contact.id, at(0))])
        .await;
    assert_eq!(count(store, mine, list.id).await, 1);
}
