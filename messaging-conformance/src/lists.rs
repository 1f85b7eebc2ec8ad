//! Lists of contacts and their members.

use jiff::tz::TimeZone;
use messaging_core::changes::{DocumentKey, Expect, Write};
use messaging_core::domain::audience::contact::{Contact, ContactFilter};
use messaging_core::domain::audience::form::{Form, FormTheme, with_email};
use messaging_core::domain::audience::list::{ContactList, OptIn, Visibility};
use messaging_core::domain::audience::subscription::{Proof, Subscription, SubscriptionAct, SubscriptionStatus};
use messaging_core::domain::segment::filter::{Condition, Filter, Leaf};
use messaging_core::ids::{ListId, WorkspaceId};
use messaging_core::ports::store::{EventSpan, FilterQuery, Store, Stored};

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

/// Members are counted, however a membership begins or ends.
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

/// A contact can only join a list if both exist.
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

/// A removed list is gone at once; its members are removed in slices and stay contacts.
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
    // The two remaining members, and the list itself.
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

fn public_list(workspace: WorkspaceId) -> ContactList {
    let description = Some("Each Friday «»".to_owned());
    ContactList { visibility: Visibility::Public, opt_in: OptIn::Double, description, ..contact_list(workspace) }
}

fn subscription(list: &ContactList, contact: &Contact, status: SubscriptionStatus) -> Subscription {
    let proof =
        Proof::of_reader(SubscriptionAct::Form, at(5), Some("2001:db8::1".parse().unwrap()), Some("Mozilla «»"));
    let proof = Proof { form_id: Some(id()), ..proof };
    let ids = (list.workspace_id, list.id, contact.id);
    Subscription {
        asked: vec![at(5), at(6)],
        brought_contact: true,
        is_weekly: true,
        ..Subscription::new(ids, status, proof)
    }
}

fn record(subscription: &Subscription, expect: Expect) -> Write {
    Write::PutSubscription(Box::new(subscription.clone()), expect)
}

/// Public lists are found apart from private ones; the settings for their readers are stored.
pub async fn public_lists_are_found(store: &dyn Store) {
    let workspace = id();
    let (private, first_public, second) = (contact_list(workspace), public_list(workspace), public_list(workspace));
    put(store, [add(&private), add(&first_public), add(&second), add(&public_list(id()))]).await;
    assert_eq!(store.list(workspace, second.id).await.unwrap().unwrap().record, second);
    assert_eq!(store.public_lists(workspace, 10).await.unwrap(), [second.clone(), first_public.clone()]);
    assert_eq!(store.public_lists(workspace, 1).await.unwrap(), std::slice::from_ref(&second));
    let asked = [private.id, first_public.id, id()];
    assert_eq!(store.public_lists_among(workspace, &asked).await.unwrap(), [first_public.id]);
    let closed = ContactList { visibility: Visibility::Private, description: None, ..second };
    put(store, [Write::put(closed.clone(), Expect::Revision(1))]).await;
    assert_eq!(store.list(workspace, closed.id).await.unwrap().unwrap().record, closed);
    put(store, [Write::Delete(DocumentKey::List(workspace, first_public.id))]).await;
    assert_eq!(store.public_lists(workspace, 10).await.unwrap(), []);
    assert_eq!(store.public_lists_among(workspace, &asked).await.unwrap(), []);
}

/// A subscription of a contact to a list is written under its revision, and removed with either.
pub async fn subscriptions_are_kept_under_their_revision(store: &dyn Store) {
    let workspace = id();
    let (list, other) = (public_list(workspace), public_list(workspace));
    let (ann, bob) = (contact(workspace), contact(workspace));
    put(store, [add(&list), add(&other), add_contact(&ann), add_contact(&bob)]).await;
    let asked = subscription(&list, &ann, SubscriptionStatus::Unconfirmed);
    put(store, [record(&asked, Expect::Absent)]).await;
    refuse(store, [record(&asked, Expect::Absent)]).await;
    let confirmed = asked.with(SubscriptionStatus::Confirmed, Proof::of_workspace(SubscriptionAct::Api, at(9)));
    put(store, [record(&confirmed, Expect::Revision(1))]).await;
    refuse(store, [record(&asked, Expect::Revision(1))]).await;
    let found = store.subscriptions_among(workspace, &[list.id, id()], &[ann.id, bob.id]).await.unwrap();
    assert_eq!(found, [Stored { record: confirmed.clone(), revision: 2 }]);
    // A subscription alone makes nobody a member.
    assert_eq!(count(store, workspace, list.id).await, 0);

    let left = subscription(&other, &ann, SubscriptionStatus::Left);
    put(store, [record(&left, Expect::Absent)]).await;
    let mut all = store.subscriptions_of(workspace, ann.id, 10).await.unwrap();
    all.sort_by_key(|stored| stored.record.status != SubscriptionStatus::Confirmed);
    assert_eq!(all.into_iter().map(|stored| stored.record).collect::<Vec<_>>(), [confirmed.clone(), left]);
    assert_eq!(store.subscriptions_of(workspace, ann.id, 1).await.unwrap().len(), 1);
    assert_eq!(store.subscriptions_of(id(), ann.id, 10).await.unwrap(), []);

    let ghost = Contact { id: id(), ..ann.clone() };
    refuse(store, [record(&subscription(&list, &ghost, SubscriptionStatus::Left), Expect::Absent)]).await;
    let nowhere = ContactList { id: id(), ..list.clone() };
    refuse(store, [record(&subscription(&nowhere, &bob, SubscriptionStatus::Left), Expect::Absent)]).await;

    // Removed as it was read, or not at all; and then there is nothing to remove.
    let forget = || Write::ForgetSubscription(workspace, other.id, ann.id);
    let left = subscription(&other, &ann, SubscriptionStatus::Left);
    refuse(store, [record(&left, Expect::Revision(2)), forget()]).await;
    assert_eq!(store.subscriptions_of(workspace, ann.id, 10).await.unwrap().len(), 2);
    put(store, [record(&left, Expect::Revision(1)), forget()]).await;
    put(store, [forget()]).await;
    assert_eq!(store.subscriptions_of(workspace, ann.id, 10).await.unwrap().len(), 1);
    // A contact that is on no list may leave it; a subscription that comes with the end of its contact is removed with
    // it.
    put(store, [Write::LeaveList(workspace, other.id, ann.id, at(9))]).await;
    refuse(store, [record(&confirmed, Expect::Absent), Write::DeleteContact(workspace, ann.id)]).await;
    put(store, [record(&left, Expect::Absent), Write::DeleteContact(workspace, ann.id)]).await;
    assert_eq!(store.subscriptions_among(workspace, &[list.id], &[ann.id]).await.unwrap(), []);
    put(store, [record(&subscription(&list, &bob, SubscriptionStatus::Left), Expect::Absent)]).await;
    put(store, [Write::Delete(DocumentKey::List(workspace, list.id))]).await;
    assert_eq!(store.subscriptions_of(workspace, bob.id, 10).await.unwrap(), []);
    // The subscription, and the list itself.
    assert_eq!(store.forget_members(10).await.unwrap(), 2);
    assert_eq!(store.forget_members(10).await.unwrap(), 0);
}

/// Subscriptions with a status are listed by contact, newest first, and old ones that wait for confirmation are found
/// in all workspaces.
pub async fn subscriptions_are_listed_by_status(store: &dyn Store) {
    let workspace = id();
    let list = public_list(workspace);
    put(store, [add(&list)]).await;
    let mut expected = Vec::new();
    for n in 0..5 {
        let contact = contact(workspace);
        let since = at(-1000 + n);
        let one = Subscription { since, ..subscription(&list, &contact, SubscriptionStatus::Unconfirmed) };
        put(store, [add_contact(&contact), record(&one, Expect::Absent)]).await;
        expected.insert(0, one);
    }
    let gone = contact(workspace);
    let left = subscription(&list, &gone, SubscriptionStatus::Left);
    put(store, [add_contact(&gone), record(&left, Expect::Absent)]).await;
    let status = SubscriptionStatus::Unconfirmed;
    let listed =
        all_pages(2, async |page| store.subscriptions(workspace, list.id, status, page).await, async || ()).await;
    assert_eq!(listed, expected);
    let listed = store.subscriptions(workspace, list.id, SubscriptionStatus::Left, first(10)).await.unwrap();
    assert_eq!(listed.items, [left]);
    assert_eq!(store.subscriptions(id(), list.id, status, first(10)).await.unwrap().items, []);
    let overdue = store.unconfirmed_since_before(at(-997), 10).await.unwrap();
    let mine: Vec<_> =
        overdue.into_iter().map(|stored| stored.record).filter(|one| one.workspace_id == workspace).collect();
    assert_eq!(mine, expected.into_iter().rev().take(3).collect::<Vec<_>>());
}

/// Filters find a status on a list, and its changes are followed.
pub async fn filters_find_a_status_on_a_list(store: &dyn Store) {
    let workspace = id();
    let list = public_list(workspace);
    let (ann, bob) = (contact(workspace), contact(workspace));
    put(store, [add(&list), add_contact(&ann), add_contact(&bob)]).await;
    put(store, [Write::JoinList(workspace, list.id, bob.id, at(0))]).await;
    put(store, [record(&subscription(&list, &ann, SubscriptionStatus::Unconfirmed), Expect::Absent)]).await;
    let ask = async |status: SubscriptionStatus, member: bool| {
        let filter = Filter::Where(Condition::Leaf(Leaf::List { id: list.id, member, status }));
        let one = |contact: &Contact| FilterQuery {
            contact_id: contact.id,
            filter: filter.clone(),
            span: EventSpan::default(),
            at: at(0),
        };
        store.answers(workspace, &[one(&ann), one(&bob)], &TimeZone::UTC).await.unwrap()
    };
    assert_eq!(ask(SubscriptionStatus::Unconfirmed, true).await, [true, false]);
    assert_eq!(ask(SubscriptionStatus::Unconfirmed, false).await, [false, true]);
    assert_eq!(ask(SubscriptionStatus::Confirmed, true).await, [false, true]);
    assert_eq!(ask(SubscriptionStatus::Left, true).await, [false, false]);
    put(store, [record(&subscription(&list, &ann, SubscriptionStatus::Left), Expect::Revision(1))]).await;
    assert_eq!(ask(SubscriptionStatus::Left, true).await, [true, false]);
    assert_eq!(ask(SubscriptionStatus::Unconfirmed, true).await, [false, false]);
}

/// A form is found by id; a change replaces it.
pub async fn forms_round_trip(store: &dyn Store) {
    let workspace = id();
    let form = Form {
        id: id(),
        workspace_id: workspace,
        name: "«News»".to_owned(),
        list_ids: vec![id()],
        fields: with_email(Vec::new()),
        redirect_url: Some("https://acme.com/thanks".to_owned()),
        allowed_origins: vec!["https://acme.com".to_owned()],
        theme: FormTheme::default(),
        created_at: at(1),
        updated_at: at(2),
    };
    let newer = Form { id: id(), name: "second".to_owned(), ..form.clone() };
    put(store, [Write::put(form.clone(), Expect::Absent), Write::put(newer.clone(), Expect::Absent)]).await;
    let found = store.form(workspace, form.id).await.unwrap().unwrap();
    assert_eq!((&found.record, found.revision), (&form, 1));
    assert_eq!(store.forms(workspace, first(10)).await.unwrap().items, [newer.clone(), form.clone()]);
    let changed = Form { name: "other".to_owned(), ..form.clone() };
    put(store, [Write::put(changed.clone(), Expect::Revision(1))]).await;
    refuse(store, [Write::put(changed.clone(), Expect::Revision(1))]).await;
    assert_eq!(store.form(workspace, form.id).await.unwrap().unwrap().record, changed);
    assert_eq!(
        (store.form(id(), form.id).await.unwrap(), store.forms(id(), first(10)).await.unwrap().items),
        (None, Vec::new())
    );
    put(store, [Write::Delete(DocumentKey::Form(workspace, form.id))]).await;
    assert_eq!(store.forms(workspace, first(10)).await.unwrap().items, [newer]);
}
