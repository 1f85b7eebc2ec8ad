//! Users, sessions, workspaces, memberships.

use messaging_core::changes::{AccountWrite, DocumentKey, Expect, Write};
use messaging_core::domain::security::account::{
    Member, MemberStatus, Session, Ticket, TicketInvitation, User, Workspace,
};
use messaging_core::domain::security::digest::Digest;
use messaging_core::ids::SessionId;
use messaging_core::ports::store::Store;
use messaging_core::scope::Role;

use super::sample::{at, id, identity, joined, member, session, ticket, user, workspace};
use super::{all_pages, first, put, refuse};

/// A user is found by id and by email, with all fields, at its revision.
pub async fn users_round_trip(store: &dyn Store) {
    let complete = user();
    let bare = User::new(id(), "bare@example.org".to_owned(), at(1));
    put(store, [&complete, &bare].map(|user| Write::put(user.clone(), Expect::Absent))).await;
    for user in [&complete, &bare] {
        let by_id = store.user(user.id).await.unwrap().unwrap();
        assert_eq!((&by_id.record, by_id.revision), (user, 1));
        assert_eq!(store.user_by_email(&user.email).await.unwrap(), Some(by_id));
    }
    assert_eq!(store.user(id()).await.unwrap(), None);
    assert_eq!(store.user_by_email("nobody@example.org").await.unwrap(), None);

    let renamed = User { email: "new@example.org".to_owned(), ..complete.clone() };
    put(store, [Write::put(renamed.clone(), Expect::Revision(1))]).await;
    let found = store.user_by_email("new@example.org").await.unwrap().unwrap();
    assert_eq!((&found.record, found.revision), (&renamed, 2));
    assert_eq!(store.user_by_email(&complete.email).await.unwrap(), None);
}

/// Two users cannot share an email, neither from the start nor later.
pub async fn email_is_unique(store: &dyn Store) {
    let (one, other) = (user(), user());
    put(store, [&one, &other].map(|user| Write::put(user.clone(), Expect::Absent))).await;
    let twin = User { email: one.email.clone(), ..user() };
    refuse(store, [Write::put(twin, Expect::Absent)]).await;
    refuse(store, [Write::put(User { email: one.email.clone(), ..other.clone() }, Expect::Revision(1))]).await;
    assert_eq!(store.user(other.id).await.unwrap().unwrap().record, other);
}

/// A session is found until it is deleted, expired or not; deleting it twice is fine.
pub async fn sessions_begin_and_end(store: &dyn Store) {
    let opened = session("token", at(-100));
    put(store, [Write::Account(AccountWrite::PutSession(opened.clone()))]).await;
    assert_eq!(store.session(&Digest::of("token")).await.unwrap(), Some(opened));
    assert_eq!(store.session(&Digest::of("another")).await.unwrap(), None);
    for _ in 0..2 {
        put(store, [Write::Account(AccountWrite::DeleteSession(Digest::of("token")))]).await;
        assert_eq!(store.session(&Digest::of("token")).await.unwrap(), None);
    }
}

/// A user's sessions are listed newest first, with their last use; not those of others, that have ended, or that were
/// opened under another password.
pub async fn sessions_are_listed_by_user(store: &dyn Store) {
    let owner = user();
    put(store, [Write::put(owner.clone(), Expect::Absent)]).await;
    let of = |token: &str, expires_at, password_version| Session {
        user_id: owner.id,
        password_version,
        ..session(token, expires_at)
    };
    let (first_one, second) = (of("first", at(200), 3), of("second", at(200), 3));
    let others = [of("ended", at(100), 3), of("earlier password", at(200), 2), session("somebody's", at(200))];
    put(
        store,
        [&first_one, &second]
            .into_iter()
            .chain(&others)
            .map(|one| Write::Account(AccountWrite::PutSession(one.clone()))),
    )
    .await;
    for used_at in [at(50), at(90), at(70)] {
        put(store, [Write::Account(AccountWrite::TouchSession(first_one.token_digest, used_at))]).await;
    }
    put(store, [Write::Account(AccountWrite::TouchSession(Digest::of("nobody's"), at(90)))]).await;

    let listed = store.sessions_of(owner.id, 3, at(100), first(10)).await.unwrap();
    assert_eq!(listed.items, [(second.clone(), second.created_at), (first_one.clone(), at(90))]);
    assert_eq!(listed.next, None);
    assert_eq!(store.session_by_id(owner.id, second.id).await.unwrap(), Some(second.clone()));
    assert_eq!(store.session_by_id(id(), second.id).await.unwrap(), None);

    let open_more = async || {
        put(store, [Write::Account(AccountWrite::PutSession(of(&format!("{:?}", id::<SessionId>()), at(200), 3)))])
            .await;
    };
    let paged = all_pages(1, async |page| store.sessions_of(owner.id, 3, at(100), page).await, open_more).await;
    assert_eq!(paged, listed.items);
}

/// A ticket is found until it is taken, expired or not; whoever comes second is told.
pub async fn tickets_are_taken_once(store: &dyn Store) {
    let made = ticket("ticket", at(-100));
    let invitation = TicketInvitation { workspace_id: id(), role: Role::Editor, up_to: Role::Admin };
    let of_workspace = Ticket { invitation: Some(invitation), ..ticket("another", at(100)) };
    put(store, [&made, &of_workspace].map(|ticket| Write::Account(AccountWrite::PutTicket(ticket.clone())))).await;
    assert_eq!(store.ticket(&made.digest).await.unwrap(), Some(made.clone()));
    assert_eq!(store.ticket(&Digest::of("unknown")).await.unwrap(), None);
    put(store, [Write::Account(AccountWrite::TakeTicket(made.digest))]).await;
    assert_eq!(store.ticket(&made.digest).await.unwrap(), None);
    refuse(store, [Write::Account(AccountWrite::TakeTicket(made.digest))]).await;
    assert_eq!(store.ticket(&of_workspace.digest).await.unwrap(), Some(of_workspace));
}

/// A person at a provider is one user, whoever comes second; a user may be several people there.
pub async fn identities_are_linked_once(store: &dyn Store) {
    let (ann, bob) = (user(), user());
    put(store, [&ann, &bob].map(|user| Write::put(user.clone(), Expect::Absent))).await;
    let link = |subject: &str, user: &User| Write::Account(AccountWrite::LinkIdentity(identity(subject, user.id)));
    put(store, [link("ann", &ann)]).await;
    put(store, [link("ann at home", &ann)]).await;
    refuse(store, [link("ann", &bob)]).await;
    refuse(store, [link("ann", &ann)]).await;
    let issuer = identity("ann", ann.id).issuer;
    for subject in ["ann", "ann at home"] {
        let found = store.user_by_identity(&issuer, subject).await.unwrap().unwrap();
        assert_eq!((&found.record, found.revision), (&ann, 1));
    }
    for (issuer, subject) in [(issuer.as_str(), "Ann"), ("https://id.example.org/", "ann"), (issuer.as_str(), "")] {
        assert_eq!(store.user_by_identity(issuer, subject).await.unwrap(), None, "{issuer} {subject}");
    }
    put(store, [Write::Account(AccountWrite::DeleteUser(ann.id, 1))]).await;
    assert_eq!(store.user_by_identity(&issuer, "ann").await.unwrap(), None);
    put(store, [link("ann", &bob)]).await;
}

/// All users and all workspaces, newest first, page by page.
pub async fn the_operator_lists_everybody(store: &dyn Store) {
    let (mut users, mut workspaces) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let (one, other) = (user(), workspace());
        let writes = [Write::put(one.clone(), Expect::Absent), Write::put(other.clone(), Expect::Absent)];
        put(store, writes).await;
        users.insert(0, one);
        workspaces.insert(0, other);
    }
    let add = async || {
        put(store, [Write::put(user(), Expect::Absent), Write::put(workspace(), Expect::Absent)]).await;
    };
    assert_eq!(all_pages(2, async |page| store.users(page).await, add).await, users);
    let add = async || put(store, [Write::put(workspace(), Expect::Absent)]).await;
    let listed = all_pages(2, async |page| store.workspaces(page).await, add).await;
    assert!(listed.ends_with(&workspaces), "{listed:?}");
}

/// Memberships are found from the workspace and from the user, newest first.
pub async fn memberships_list_both_ways(store: &dyn Store) {
    let (older, newer) = (workspace(), workspace());
    put(store, [&older, &newer].map(|workspace| Write::put(workspace.clone(), Expect::Absent))).await;
    let found = store.workspace(older.id).await.unwrap().unwrap();
    assert_eq!((&found.record, found.revision), (&older, 1));

    let (first_user, first_member, writes) = joined(older.id, Role::Editor);
    put(store, writes).await;
    let (second_user, second_member, writes) = joined(older.id, Role::Viewer);
    put(store, writes).await;
    let elsewhere = member(newer.id, first_user.id, Role::Admin);
    put(store, [Write::put(elsewhere.clone(), Expect::Absent)]).await;

    let members = store.members(older.id, first(10)).await.unwrap();
    assert_eq!(members.items, [(second_member, second_user.clone()), (first_member.clone(), first_user.clone())]);
    assert_eq!(members.next, None);
    let workspaces = store.workspaces_of(first_user.id, MemberStatus::Active, first(10)).await.unwrap();
    assert_eq!(workspaces.items, [(newer.clone(), elsewhere), (older.clone(), first_member.clone())]);

    let one = store.member(older.id, first_user.id).await.unwrap().unwrap();
    assert_eq!((&one.record, one.revision), (&first_member, 1));
    assert_eq!(store.member(newer.id, second_user.id).await.unwrap(), None);

    for _ in 0..2 {
        put(store, [Write::Delete(DocumentKey::Member(older.id, first_user.id))]).await;
    }
    assert_eq!(store.member(older.id, first_user.id).await.unwrap(), None);
    assert_eq!(store.workspaces_of(first_user.id, MemberStatus::Active, first(10)).await.unwrap().items.len(), 1);
    assert!(store.user(first_user.id).await.unwrap().is_some());

    let renamed = Workspace { name: "Other".to_owned(), ..newer };
    put(store, [Write::put(renamed.clone(), Expect::Revision(1))]).await;
    assert_eq!(store.workspace(renamed.id).await.unwrap().unwrap().record, renamed);
}

/// Owners are counted per workspace, and a changed role counts.
pub async fn owners_are_counted(store: &dyn Store) {
    let (one, other) = (workspace(), workspace());
    let mut owners = Vec::new();
    for (workspace, role) in [(&one, Role::Owner), (&one, Role::Owner), (&one, Role::Admin), (&other, Role::Owner)] {
        let (_, member, writes) = joined(workspace.id, role);
        put(store, writes).await;
        owners.push(member);
    }
    assert_eq!(store.owner_count(one.id).await.unwrap(), 2);
    let mut lowered = owners[0].clone();
    lowered.role = Role::Viewer;
    put(store, [Write::put(lowered, Expect::Revision(1))]).await;
    assert_eq!(store.owner_count(one.id).await.unwrap(), 1);
    assert_eq!(store.owner_count(id()).await.unwrap(), 0);
}

/// Invitations are listed apart, in pages of their own, and count for no owner until they are accepted.
pub async fn invitations_are_listed_apart(store: &dyn Store) {
    let (person, mut invitations) = (user(), Vec::new());
    put(store, [Write::put(person.clone(), Expect::Absent)]).await;
    let invite = async || {
        let theirs = workspace();
        let invited = Member { status: MemberStatus::Invited, ..member(theirs.id, person.id, Role::Owner) };
        let writes = [Write::put(theirs.clone(), Expect::Absent), Write::put(invited.clone(), Expect::Absent)];
        put(store, writes).await;
        (theirs, invited)
    };
    for _ in 0..5 {
        invitations.insert(0, invite().await);
    }
    let listed = |status| async move { store.workspaces_of(person.id, status, first(100)).await.unwrap().items };
    assert_eq!(listed(MemberStatus::Invited).await, invitations);
    assert_eq!(listed(MemberStatus::Active).await, []);
    let (home, invited) = invitations.remove(2);
    assert_eq!(store.owner_count(home.id).await.unwrap(), 0);
    assert_eq!(store.members(home.id, first(10)).await.unwrap().items[0].0, invited);

    let accepted = Member { status: MemberStatus::Active, ..invited };
    put(store, [Write::put(accepted.clone(), Expect::Revision(1))]).await;
    assert_eq!(listed(MemberStatus::Active).await, [(home.clone(), accepted)]);
    assert_eq!(store.owner_count(home.id).await.unwrap(), 1);
    let add = async || {
        invite().await;
    };
    let paged = all_pages(2, async |page| store.workspaces_of(person.id, MemberStatus::Invited, page).await, add);
    assert_eq!(paged.await, invitations);
}

/// Pages of members and of workspaces neither skip nor repeat.
pub async fn listings_are_exact_while_rows_are_inserted(store: &dyn Store) {
    let home = workspace();
    put(store, [Write::put(home.clone(), Expect::Absent)]).await;
    let mut expected = Vec::new();
    for _ in 0..7 {
        let (user, member, writes) = joined(home.id, Role::Viewer);
        put(store, writes).await;
        expected.insert(0, (member, user));
    }
    let join_more = async || put(store, joined(home.id, Role::Viewer).2).await;
    let listed = all_pages(3, async |page| store.members(home.id, page).await, join_more).await;
    assert_eq!(listed, expected);

    let user = expected[0].1.clone();
    let found_more = async || {
        let workspace = workspace();
        let member = member(workspace.id, user.id, Role::Owner);
        put(store, [Write::put(workspace, Expect::Absent), Write::put(member, Expect::Absent)]).await;
    };
    for _ in 0..5 {
        found_more().await;
    }
    let expected = store.workspaces_of(user.id, MemberStatus::Active, first(100)).await.unwrap();
    assert_eq!((expected.items.len(), expected.next), (6, None));
    let listed =
        all_pages(2, async |page| store.workspaces_of(user.id, MemberStatus::Active, page).await, found_more).await;
    assert_eq!(listed, expected.items);
}

/// A membership is a matter of its workspace.
pub async fn other_workspaces_are_not_there(store: &dyn Store) {
    let (mine, other) = (workspace(), workspace());
    let (user, _, writes) = joined(mine.id, Role::Owner);
    put(store, writes).await;
    assert_eq!(store.member(other.id, user.id).await.unwrap(), None);
    assert_eq!(store.members(other.id, first(10)).await.unwrap().items, []);
    assert_eq!(store.owner_count(other.id).await.unwrap(), 0);
    put(store, [Write::Delete(DocumentKey::Member(other.id, user.id))]).await;
    assert!(store.member(mine.id, user.id).await.unwrap().is_some());
}
