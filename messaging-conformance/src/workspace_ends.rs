//! Workspaces under deletion, their removal, and the removal of users.

use messaging_core::changes::{AccountWrite, Expect, Write};
use messaging_core::domain::installation::quarantine::Quarantined;
use messaging_core::domain::message::MessageFilter;
use messaging_core::domain::security::account::{Workspace, WorkspaceEnd};
use messaging_core::domain::security::digest::Digest;
use messaging_core::ids::{Id as _, WorkspaceId};
use messaging_core::ports::store::Store;
use messaging_core::scope::Role;

use super::sample::{at, bare_message, contact, id, insert, joined, key, reply, session, ticket, workspace};
use super::{first, put, refuse};

/// Returns the workspace with an end; `is_removing`: it has come.
fn ending(workspace: &Workspace, is_removing: bool) -> Workspace {
    let end = WorkspaceEnd { deletes_at: at(9), removing_since: is_removing.then(|| at(9)) };
    Workspace { end: Some(end), ..workspace.clone() }
}

/// Removes all rows of a workspace, few at a time; returns their number.
pub async fn remove_all(store: &dyn Store, workspace: WorkspaceId) -> u64 {
    let (mut step, mut removed) = (0, 0);
    while let Some(page) = store.remove_rows_of(workspace, step, 2).await.unwrap() {
        assert!(page.rows <= 4, "{page:?}");
        removed += page.rows;
        step += usize::from(page.rows == 0);
    }
    removed
}

/// A workspace counts as under deletion from the commit that sets its end to the one that withdraws it.
pub async fn workspaces_under_deletion_are_told(store: &dyn Store) {
    let (home, other) = (workspace(), workspace());
    put(store, [&home, &other].map(|one| Write::put(one.clone(), Expect::Absent))).await;
    assert_eq!(store.ending_workspaces().await.unwrap(), []);
    put(store, [Write::put(ending(&home, false), Expect::Revision(1))]).await;
    assert_eq!(store.ending_workspaces().await.unwrap(), [home.id]);
    assert_eq!(store.workspace(home.id).await.unwrap().unwrap().record, ending(&home, false));
    // Nothing of it is removed, and nothing ends it, before the removal has begun.
    assert_eq!(store.remove_rows_of(home.id, 0, 10).await.unwrap(), None);
    refuse(store, [Write::EndWorkspace(home.id)]).await;
    put(store, [Write::put(home.clone(), Expect::Revision(2))]).await;
    assert_eq!(store.ending_workspaces().await.unwrap(), []);
    assert_eq!(store.remove_rows_of(other.id, 0, 10).await.unwrap(), None);
}

/// The rows of one workspace are removed and those of another stay; the removed id stays taken.
pub async fn a_workspace_is_removed_alone_and_its_id_stays_taken(store: &dyn Store) {
    let (home, other) = (workspace(), workspace());
    for one in [&home, &other] {
        put(store, [Write::put(one.clone(), Expect::Absent)]).await;
        let (_, _, join) = joined(one.id, Role::Owner);
        put(store, join).await;
        put(store, [Write::put_contact(contact(one.id), Expect::Absent), Write::put(key(one.id), Expect::Absent)])
            .await;
        for _ in 0..5 {
            put(store, [insert(&bare_message(one.id))]).await;
        }
    }
    put(store, [Write::put(ending(&home, true), Expect::Revision(1))]).await;
    assert_eq!(store.ending_workspaces().await.unwrap(), [home.id]);
    assert!(remove_all(store, home.id).await >= 8);
    assert_eq!(remove_all(store, home.id).await, 0);
    put(store, [Write::EndWorkspace(home.id)]).await;
    assert_eq!(store.contact_count(home.id).await.unwrap(), 0);
    refuse(store, [Write::EndWorkspace(home.id)]).await;
    assert_eq!(store.workspace(home.id).await.unwrap(), None);
    assert_eq!(store.ending_workspaces().await.unwrap(), []);
    refuse(store, [Write::put(home.clone(), Expect::Absent)]).await;
    for (id, left) in [(home.id, 0), (other.id, 5)] {
        assert_eq!(store.messages(id, &MessageFilter::default(), first(9)).await.unwrap().items.len(), left);
        assert_eq!(store.api_keys(id, first(9)).await.unwrap().items.len(), left.min(1));
        assert_eq!(store.members(id, first(9)).await.unwrap().items.len(), left.min(1));
        let verified = store.verify_workspace(id).await.unwrap();
        assert!(verified.differences.is_empty(), "{id}: {:?}", verified.differences);
    }
    assert_eq!(store.contact_count(other.id).await.unwrap(), 1);
}

/// A quarantined record is removed with the workspace that owns it, or with the one that it names if no owner is known.
pub async fn what_was_put_aside_goes_with_its_owner(store: &dyn Store) {
    let (home, other) = (workspace(), workspace());
    put(store, [&home, &other].map(|one| Write::put(one.clone(), Expect::Absent))).await;
    let record = |owner: Option<WorkspaceId>, names: WorkspaceId| {
        Quarantined::new((id(), at(7)), owner, "deliver_message", names.to_string(), "too large")
    };
    let (kept, also_kept) = (record(Some(other.id), home.id), record(None, other.id));
    let all = [record(Some(home.id), other.id), kept.clone(), record(None, home.id), also_kept.clone()];
    put(store, all.map(|one| Write::Quarantine(Box::new(one)))).await;
    put(store, [Write::put(ending(&home, true), Expect::Revision(1))]).await;
    assert_eq!(remove_all(store, home.id).await, 2);
    let (count, left) = store.quarantined(9).await.unwrap();
    assert_eq!(count, 2);
    assert!(left.contains(&kept) && left.contains(&also_kept), "{left:?}");
}

/// Replies are stored under the keys of a workspace, its own id, and routes that name it, at their end or within.
pub async fn remembered_answers_go_with_the_workspace(store: &dyn Store) {
    let (home, other) = (workspace(), workspace());
    put(store, [&home, &other].map(|one| Write::put(one.clone(), Expect::Absent))).await;
    let mut kept = Vec::new();
    for one in [&other, &home] {
        let key = key(one.id);
        put(store, [Write::put(key.clone(), Expect::Absent)]).await;
        let (of_key, of_operator, of_person) = (key.id.to_bytes(), one.id.to_bytes(), [7; 16]);
        for (credential, route) in [
            (of_key, "POST /messages".to_owned()),
            (of_operator, "POST /messages".to_owned()),
            (of_person, format!("POST /messages {}", one.id)),
            (of_person, format!("POST /workspaces/{}/contacts {}", one.id, one.id)),
        ] {
            let mut reply = reply("key", 0, 100);
            (reply.key.credential, reply.key.route) = (credential, route);
            put(store, [Write::Remember(Box::new(reply.clone()))]).await;
            kept.push(reply.key);
        }
    }
    let removed = kept.split_off(4);
    put(store, [Write::put(ending(&home, true), Expect::Revision(1))]).await;
    remove_all(store, home.id).await;
    for (keys, is_there) in [(&kept, true), (&removed, false)] {
        for key in keys {
            assert_eq!(store.reply(key, at(2)).await.unwrap().is_some(), is_there, "{key:?}");
        }
    }
}

/// A user is removed with all credentials of theirs, and with nothing of others; not if they changed meanwhile.
pub async fn a_user_is_removed_with_what_opens_something(store: &dyn Store) {
    let (home, session, ticket) = (workspace(), session("token", at(1000)), ticket("ticket", at(1000)));
    put(store, [Write::put(home.clone(), Expect::Absent)]).await;
    let (mut user, mut member, _) = joined(home.id, Role::Owner);
    (user.id, member.user_id) = (session.user_id, session.user_id);
    let of_user = messaging_core::domain::security::account::Ticket { user_id: user.id, ..ticket.clone() };
    let (other, _, join) = joined(home.id, Role::Viewer);
    put(store, [Write::put(user.clone(), Expect::Absent), Write::put(member, Expect::Absent)]).await;
    put(store, join).await;
    put(store, [Write::Account(AccountWrite::PutSession(session)), Write::Account(AccountWrite::PutTicket(of_user))])
        .await;
    refuse(store, [Write::Account(AccountWrite::DeleteUser(user.id, 2))]).await;
    put(store, [Write::Account(AccountWrite::DeleteUser(user.id, 1))]).await;
    assert_eq!(store.user(user.id).await.unwrap(), None);
    assert_eq!(store.session(&Digest::of("token")).await.unwrap(), None);
    assert_eq!(store.ticket(&Digest::of("ticket")).await.unwrap(), None);
    assert_eq!(store.member(home.id, user.id).await.unwrap(), None);
    assert!(store.user(other.id).await.unwrap().is_some());
    assert!(store.member(home.id, other.id).await.unwrap().is_some());
}
