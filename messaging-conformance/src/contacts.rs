//! Contacts.

use messaging_core::changes::{Changes, Expect, PutContact, Write};
use messaging_core::domain::audience::contact::attributes::Attributes;
use messaging_core::domain::audience::contact::{Consent, Contact, ContactFilter, Identifier};
use messaging_core::ids::{ContactId, WorkspaceId};
use messaging_core::ports::store::{CommitError, Priority, Store};

use super::commit::at_once;
use super::sample::{at, contact, contact_list, id, object};
use super::{all_pages, first, put, refuse};

fn add(contact: &Contact) -> Write {
    Write::put_contact(contact.clone(), Expect::Absent)
}

fn change(contact: &Contact, revision: u32) -> Write {
    Write::put_contact(contact.clone(), Expect::Revision(revision))
}

/// A contact with nothing but an external id.
fn bare(workspace: WorkspaceId) -> Contact {
    Contact {
        email: None,
        phone: None,
        attributes: Attributes::default(),
        tags: Vec::new(),
        locale: None,
        timezone: None,
        consent: Consent::default(),
        ..contact(workspace)
    }
}

async fn listed(store: &dyn Store, workspace: WorkspaceId, filter: &ContactFilter) -> Vec<ContactId> {
    let slice = store.contacts(workspace, filter, first(1000)).await.unwrap();
    assert_eq!(slice.next, None);
    slice.items.iter().map(|contact| contact.id).collect()
}

/// A contact is found by its id and by each identifier, with all fields.
pub async fn contacts_round_trip(store: &dyn Store) {
    let workspace = id();
    assert_eq!(store.contact_count(workspace).await.unwrap(), 0);
    let (complete, bare) = (contact(workspace), bare(workspace));
    put(store, [add(&complete), add(&bare)]).await;
    assert_eq!(store.contact_count(workspace).await.unwrap(), 2);
    for contact in [&complete, &bare] {
        let found = store.contact(workspace, contact.id).await.unwrap().unwrap();
        assert_eq!((&found.record, found.revision), (contact, 1));
        for identifier in contact.identifiers() {
            let named = store.contact_identified(workspace, &identifier).await.unwrap();
            assert_eq!(named, Some(contact.id), "{identifier:?}");
            let named = store.contacts_identified(workspace, vec![identifier]).await.unwrap();
            assert_eq!(named, std::slice::from_ref(&found));
        }
    }
    let nobody = Identifier::Email("nobody@example.org".to_owned());
    assert_eq!(store.contact_identified(workspace, &nobody).await.unwrap(), None);
    let mut all: Vec<_> = complete.identifiers().chain(bare.identifiers()).collect();
    all.push(nobody);
    assert_eq!(store.contacts_identified(workspace, all).await.unwrap().len(), 2, "each once");
}

/// A change replaces what the contact is like; it happens at the revision that was read.
pub async fn a_contact_changes_with_its_revision(store: &dyn Store) {
    let workspace = id();
    let before = contact(workspace);
    put(store, [add(&before)]).await;
    let after = Contact {
        tags: vec!["beta".to_owned(), "new".to_owned()],
        attributes: object(&serde_json::json!({"plan": "team"})).into(),
        locale: None,
        consent: Consent { marketing_email: Some(false), sms: None },
        updated_at: at(99),
        ..before.clone()
    };
    put(store, [change(&after, 1)]).await;
    let found = store.contact(workspace, before.id).await.unwrap().unwrap();
    assert_eq!((&found.record, found.revision), (&after, 2));
    refuse(store, [change(&before, 1)]).await;

    let renamed = Contact {
        external_id: None,
        email: Some("other@example.org".to_owned()),
        phone: None,
        tags: Vec::new(),
        ..after.clone()
    };
    put(store, [change(&renamed, 2)]).await;
    assert_eq!(store.contact(workspace, before.id).await.unwrap().unwrap().record, renamed);
    for gone in before.identifiers() {
        assert_eq!(store.contact_identified(workspace, &gone).await.unwrap(), None, "{gone:?}");
    }
    // What it had is free for others.
    let merge_target = Contact { id: id(), ..before };
    put(store, [add(&merge_target)]).await;
    assert_eq!(store.contact_count(workspace).await.unwrap(), 2);
}

/// Each identifier is unique in its workspace, and a conflict leaves nothing.
pub async fn identifiers_are_unique(store: &dyn Store) {
    let (mine, other): (WorkspaceId, WorkspaceId) = (id(), id());
    let first = contact(mine);
    put(store, [add(&first)]).await;
    let fresh = || contact(mine);
    let clashes = [
        Contact { external_id: first.external_id.clone(), ..fresh() },
        Contact { email: first.email.clone(), ..fresh() },
        Contact { phone: first.phone.clone(), ..fresh() },
        Contact { id: first.id, ..fresh() },
    ];
    for clash in &clashes {
        refuse(store, [add(clash)]).await;
    }
    let second = fresh();
    put(store, [add(&second)]).await;
    refuse(store, [change(&Contact { email: first.email.clone(), ..second.clone() }, 1)]).await;
    assert_eq!(store.contact(mine, second.id).await.unwrap().unwrap().revision, 1);
    assert_eq!(store.contact_count(mine).await.unwrap(), 2);
    let everything = ContactFilter::default();
    assert_eq!(listed(store, mine, &everything).await, [second.id, first.id]);
    let elsewhere = Contact { id: id(), workspace_id: other, ..first };
    put(store, [add(&elsewhere)]).await;
    assert_eq!(store.contact(other, elsewhere.id).await.unwrap().unwrap().record, elsewhere);
}

/// Contacts of one write are put in order, several times if need be, and of several workspaces.
pub async fn contacts_are_put_in_order(store: &dyn Store) {
    let (mine, other): (WorkspaceId, WorkspaceId) = (id(), id());
    let one = contact(mine);
    let two = Contact { email: one.email.clone(), ..contact(mine) };
    let moved = Contact { email: None, tags: vec!["new".to_owned()], ..one.clone() };
    let elsewhere = Contact { workspace_id: other, ..contact(other) };
    let put_one = |contact: &Contact, expect| PutContact { contact: contact.clone().into(), expect };
    let all = vec![
        put_one(&one, Expect::Absent),
        put_one(&elsewhere, Expect::Absent),
        put_one(&moved, Expect::Revision(1)),
        put_one(&two, Expect::Absent),
    ];
    put(store, [Write::PutContacts(all)]).await;
    assert_eq!(store.contact(mine, one.id).await.unwrap().unwrap().record, moved);
    assert_eq!(store.contact(mine, two.id).await.unwrap().unwrap().record, two);
    assert_eq!(store.contact(other, elsewhere.id).await.unwrap().unwrap().record, elsewhere);
    assert_eq!((store.contact_count(mine).await.unwrap(), store.contact_count(other).await.unwrap()), (2, 1));
    let everything = ContactFilter::default();
    assert_eq!(listed(store, mine, &everything).await, [two.id, one.id]);
    // One conflict refuses them all.
    let fresh = contact(mine);
    refuse(store, [Write::PutContacts(vec![put_one(&fresh, Expect::Absent), put_one(&two, Expect::Revision(9))])])
        .await;
    assert_eq!(store.contact(mine, fresh.id).await.unwrap(), None);
    assert_eq!(store.contact_count(mine).await.unwrap(), 2);
    put(store, [add(&contact(mine))]).await;
    assert_eq!(listed(store, mine, &everything).await.len(), 3);
}

/// An identifier may change hands within one commit, if it is free before it is taken.
pub async fn identifiers_change_hands_in_one_commit(store: &dyn Store) {
    let workspace = id();
    let (one, other) = (contact(workspace), contact(workspace));
    put(store, [add(&one), add(&other)]).await;
    let gives = Contact { email: None, ..one.clone() };
    let takes = Contact { email: one.email.clone(), ..other.clone() };
    refuse(store, [change(&takes, 1), change(&gives, 1)]).await;
    put(store, [change(&gives, 1), change(&takes, 1)]).await;
    let again = Contact { email: other.email, ..gives };
    put(store, [change(&again, 2)]).await;
    assert_eq!(store.contact(workspace, one.id).await.unwrap().unwrap().record, again);
}

/// A removed contact is gone with its tags and memberships, and its identifiers are free.
pub async fn a_removed_contact_leaves_nothing(store: &dyn Store) {
    let workspace = id();
    let (gone, stays, list) = (contact(workspace), contact(workspace), contact_list(workspace));
    let join = |contact: &Contact| Write::JoinList(workspace, list.id, contact.id, at(0));
    put(store, [Write::put(list.clone(), Expect::Absent), add(&gone), add(&stays)]).await;
    put(store, [join(&gone), join(&stays)]).await;
    let delete = || Write::DeleteContact(workspace, gone.id);
    put(store, [delete()]).await;
    put(store, [delete()]).await;
    assert_eq!(store.contact(workspace, gone.id).await.unwrap(), None);
    assert_eq!(store.contact_count(workspace).await.unwrap(), 1);
    assert_eq!(store.list(workspace, list.id).await.unwrap().unwrap().record.contact_count, 1);
    let tagged = ContactFilter { tag: gone.tags.first().cloned(), ..ContactFilter::default() };
    assert_eq!(listed(store, workspace, &tagged).await, [stays.id]);
    let on_list = ContactFilter { list_id: Some(list.id), ..ContactFilter::default() };
    assert_eq!(listed(store, workspace, &on_list).await, [stays.id]);
    refuse(store, [change(&gone, 1)]).await;
    let merge_target = Contact { id: id(), ..gone };
    put(store, [add(&merge_target)]).await;
    assert_eq!(store.contact(workspace, merge_target.id).await.unwrap().unwrap().record.list_ids, []);
}

/// Each filter narrows, alone and with others.
pub async fn every_filter_narrows(store: &dyn Store) {
    let workspace = id();
    let list = contact_list(workspace);
    let other_list = contact_list(workspace);
    put(store, [&list, &other_list].map(|list| Write::put(list.clone(), Expect::Absent))).await;
    let tags: [&[&str]; 4] = [&["vip"], &["vip", "beta"], &["Vip"], &[]];
    let mut contacts = Vec::new();
    for (n, tags) in tags.into_iter().enumerate() {
        let tags = tags.iter().map(ToString::to_string).collect();
        contacts.push(Contact { tags, updated_at: at(100 + i64::try_from(n).unwrap()), ..contact(workspace) });
    }
    put(store, contacts.iter().map(add).collect::<Vec<_>>()).await;
    for n in [0, 2, 3] {
        put(store, [Write::JoinList(workspace, list.id, contacts[n].id, at(0))]).await;
    }
    let all = ContactFilter::default();
    let check = async |filter: ContactFilter, expected: &[usize]| {
        let expected: Vec<_> = expected.iter().map(|n| contacts[*n].id).collect();
        assert_eq!(listed(store, workspace, &filter).await, expected, "{filter:?}");
    };
    let tagged = |tag: &str| ContactFilter { tag: Some(tag.to_owned()), ..ContactFilter::default() };
    let on = |list_id| ContactFilter { list_id: Some(list_id), ..ContactFilter::default() };
    check(all.clone(), &[3, 2, 1, 0]).await;
    check(tagged("vip"), &[1, 0]).await;
    check(tagged("Vip"), &[2]).await;
    check(tagged("nobody has it"), &[]).await;
    check(on(list.id), &[3, 2, 0]).await;
    check(on(other_list.id), &[]).await;
    check(on(id()), &[]).await;
    check(ContactFilter { updated_since: Some(at(102)), ..all.clone() }, &[3, 2]).await;
    let by_email = |n: usize| ContactFilter { email: contacts[n].email.clone(), ..ContactFilter::default() };
    check(by_email(1), &[1]).await;
    check(ContactFilter { external_id: contacts[2].external_id.clone(), ..all.clone() }, &[2]).await;
    check(ContactFilter { phone: contacts[3].phone.clone(), ..all.clone() }, &[3]).await;
    check(ContactFilter { email: Some("nobody@example.org".to_owned()), ..all }, &[]).await;
    // Together.
    check(ContactFilter { list_id: Some(list.id), ..tagged("vip") }, &[0]).await;
    check(ContactFilter { updated_since: Some(at(101)), ..tagged("vip") }, &[1]).await;
    check(ContactFilter { phone: contacts[2].phone.clone(), ..by_email(1) }, &[]).await;
    check(ContactFilter { list_id: Some(list.id), ..by_email(1) }, &[]).await;
    check(ContactFilter { tag: Some("beta".to_owned()), ..by_email(1) }, &[1]).await;
}

/// Pages neither skip nor repeat, filtered or not.
pub async fn listing_is_exact_while_rows_are_inserted(store: &dyn Store) {
    let workspace = id();
    let list = contact_list(workspace);
    put(store, [Write::put(list.clone(), Expect::Absent)]).await;
    let all = ContactFilter::default();
    let filters = [
        all.clone(),
        ContactFilter { tag: contact(workspace).tags.first().cloned(), ..all.clone() },
        ContactFilter { list_id: Some(list.id), ..all },
    ];
    for filter in filters {
        let add_one = async || {
            let contact = contact(workspace);
            put(store, [add(&contact), Write::JoinList(workspace, list.id, contact.id, at(0))]).await;
        };
        for _ in 0..5 {
            add_one().await;
        }
        let expected = store.contacts(workspace, &filter, first(1000)).await.unwrap().items;
        let listed = all_pages(2, async |page| store.contacts(workspace, &filter, page).await, add_one).await;
        assert_eq!(listed, expected, "{filter:?}");
    }
}

/// The place of an erased newest contact is not taken by the next one.
pub async fn a_page_goes_on_after_its_last_contact_is_gone(store: &dyn Store) {
    let workspace = id();
    let contacts: Vec<_> = (0..4).map(|_| contact(workspace)).collect();
    put(store, contacts.iter().map(add).collect::<Vec<_>>()).await;
    let all = ContactFilter::default();
    let slice = store.contacts(workspace, &all, first(1)).await.unwrap();
    assert_eq!(slice.items[0].id, contacts[3].id);
    put(store, [Write::DeleteContact(workspace, contacts[3].id)]).await;
    put(store, [add(&contact(workspace))]).await;
    let page = messaging_core::ports::store::PageRequest { after: slice.next, limit: 10 };
    let rest = store.contacts(workspace, &all, page).await.unwrap().items;
    assert_eq!(rest.iter().map(|contact| contact.id).collect::<Vec<_>>(), [2, 1, 0].map(|n: usize| contacts[n].id));
}

/// Of writers that all want an address, one gets it.
pub async fn one_of_many_gets_an_address(store: &dyn Store) {
    let workspace = id();
    let email = contact(workspace).email;
    let wanting: Vec<_> = (0..20).map(|_| Contact { email: email.clone(), ..contact(workspace) }).collect();
    let commits = wanting.iter().map(|one| store.commit(Changes::from_iter([add(one)]), Priority::Foreground));
    let mut done = 0;
    for outcome in at_once(commits.collect()).await {
        match outcome {
            Ok(()) => done += 1,
            Err(CommitError::Conflict) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(done, 1);
    assert_eq!(store.contact_count(workspace).await.unwrap(), 1);
}

/// Contacts belong to their workspace.
pub async fn other_workspaces_are_not_there(store: &dyn Store) {
    let other: WorkspaceId = id();
    let mine = contact(id());
    put(store, [add(&mine), add(&contact(other))]).await;
    assert_eq!(store.contact(other, mine.id).await.unwrap(), None);
    let all: Vec<_> = mine.identifiers().collect();
    assert_eq!(store.contacts_identified(other, all.clone()).await.unwrap(), []);
    for identifier in &all {
        assert_eq!(store.contact_identified(other, identifier).await.unwrap(), None);
    }
    let filters = [
        ContactFilter { email: mine.email.clone(), ..ContactFilter::default() },
        ContactFilter { external_id: mine.external_id.clone(), ..ContactFilter::default() },
    ];
    for filter in filters {
        assert_eq!(listed(store, other, &filter).await, []);
    }
    let everybody = listed(store, other, &ContactFilter::default()).await;
    assert!(everybody.len() == 1 && everybody[0] != mine.id);
    let moved = Contact { workspace_id: other, ..mine.clone() };
    refuse(store, [change(&moved, 1)]).await;
    put(store, [Write::DeleteContact(other, mine.id)]).await;
    assert_eq!(store.contact(mine.workspace_id, mine.id).await.unwrap().unwrap().record, mine);
    assert_eq!(store.contact_count(id()).await.unwrap(), 0);
}
