//! Templates and their versions.

use messaging_core::changes::{Expect, Write};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::template::Template;
use messaging_core::ports::store::Store;

use super::sample::{at, id, template};
use super::{all_pages, first, put, refuse};

fn add(template: &Template) -> Write {
    Write::put(Box::new(template.clone()), Expect::Absent)
}

pub(super) fn next(template: &Template, name: &str) -> Template {
    let mut next = Template { version: template.version + 1, updated_at: at(99), ..template.clone() };
    name.clone_into(&mut next.design.name);
    next
}

/// A template comes back with all members, and each version stays as it was.
pub async fn versions_round_trip(store: &dyn Store) {
    let workspace = id();
    let first_version = template(workspace, Channel::Email);
    put(store, [add(&first_version)]).await;
    let found = store.template(workspace, first_version.id).await.unwrap().unwrap();
    assert_eq!((&found.record, found.revision), (&first_version, 1));
    assert_eq!(store.template_head(workspace, first_version.id).await.unwrap().unwrap(), first_version.head());

    let second = Template { reverted_from: Some(1), ..next(&first_version, "Second") };
    put(store, [Write::put(Box::new(second.clone()), Expect::Revision(1))]).await;
    refuse(store, [Write::put(Box::new(next(&second, "Third")), Expect::Revision(1))]).await;
    let found = store.template(workspace, first_version.id).await.unwrap().unwrap();
    assert_eq!((&found.record, found.revision), (&second, 2));
    for version in [&first_version, &second] {
        let found = store.template_version(workspace, version.id, version.version).await.unwrap().unwrap();
        assert_eq!(&found, version);
    }
    assert_eq!(store.template_version(workspace, first_version.id, 3).await.unwrap(), None);
    refuse(store, [add(&second)]).await;
}

/// A removed template is not there any more, but its versions are until they are forgotten.
pub async fn removed_templates_go_later(store: &dyn Store) {
    let workspace = id();
    let (gone, stays) = (template(workspace, Channel::Email), template(workspace, Channel::Sms));
    put(store, [add(&gone), add(&stays)]).await;
    put(store, [Write::put(Box::new(next(&gone, "Second")), Expect::Revision(1))]).await;
    put(store, [Write::DeleteTemplate(workspace, gone.id, at(1000))]).await;
    put(store, [Write::DeleteTemplate(workspace, gone.id, at(2000))]).await;
    assert_eq!(store.template(workspace, gone.id).await.unwrap(), None);
    assert_eq!(store.template_head(workspace, gone.id).await.unwrap(), None);
    assert_eq!(store.templates(workspace, None, first(9)).await.unwrap().items, [stays.head()]);
    refuse(store, [Write::put(Box::new(next(&next(&gone, "x"), "y")), Expect::Revision(3))]).await;
    assert_eq!(store.forget_templates(at(1000), 9).await.unwrap(), 0);
    assert_eq!(store.template_version(workspace, gone.id, 1).await.unwrap(), Some(gone.clone()));
    let mut forgotten = 0;
    while store.forget_templates(at(1001), 1).await.unwrap() > 0 {
        forgotten += 1;
    }
    assert!(forgotten >= 2, "a little at a time");
    assert_eq!(store.template_version(workspace, gone.id, 1).await.unwrap(), None);
    assert_eq!(store.template_version(workspace, gone.id, 2).await.unwrap(), None);
    assert_eq!(store.template_version(workspace, stays.id, 1).await.unwrap(), Some(stays));
}

/// Pages neither skip nor repeat; a channel narrows.
pub async fn listing_is_exact_while_rows_are_inserted(store: &dyn Store) {
    let workspace = id();
    let mut expected = Vec::new();
    for number in 0..6 {
        let channel = if number % 2 == 0 { Channel::Email } else { Channel::Push };
        let template = template(workspace, channel);
        put(store, [add(&template)]).await;
        expected.insert(0, template.head());
    }
    let add_more = async || put(store, [add(&template(workspace, Channel::Email))]).await;
    let listed = all_pages(2, async |page| store.templates(workspace, None, page).await, add_more).await;
    assert_eq!(listed, expected);
    expected.retain(|template| template.channel == Channel::Push);
    let fetch = async |page| store.templates(workspace, Some(Channel::Push), page).await;
    assert_eq!(all_pages(2, fetch, async || ()).await, expected);
}

/// Versions are listed newest first.
pub async fn versions_are_listed(store: &dyn Store) {
    let workspace = id();
    let mut current = template(workspace, Channel::Email);
    put(store, [add(&current)]).await;
    let mut expected = vec![current.head()];
    for revision in 1..5 {
        current = next(&current, "again");
        put(store, [Write::put(Box::new(current.clone()), Expect::Revision(revision))]).await;
        expected.insert(0, current.head());
    }
    let fetch = async |page| store.template_versions(workspace, current.id, page).await;
    assert_eq!(all_pages(2, fetch, async || ()).await, expected);
}

/// A template belongs to its workspace.
pub async fn other_workspaces_are_not_there(store: &dyn Store) {
    let other = id();
    let mine = template(id(), Channel::Email);
    put(store, [add(&mine)]).await;
    assert_eq!(store.template(other, mine.id).await.unwrap(), None);
    assert_eq!(store.template_head(other, mine.id).await.unwrap(), None);
    assert_eq!(store.template_version(other, mine.id, 1).await.unwrap(), None);
    assert_eq!(store.templates(other, None, first(9)).await.unwrap().items, []);
    assert_eq!(store.template_versions(other, mine.id, first(9)).await.unwrap().items, []);
    let moved = Template { workspace_id: other, ..next(&mine, "x") };
    refuse(store, [Write::put(Box::new(moved), Expect::Revision(1))]).await;
    put(store, [Write::DeleteTemplate(other, mine.id, at(5))]).await;
    assert_eq!(store.template(mine.workspace_id, mine.id).await.unwrap().unwrap().record, mine);
}
