//! Contract section 2.3: members.

use messaging_core::changes::{Changes, Expect, Write};
use messaging_core::domain::campaign::archive::ReaderSettings;
use messaging_core::domain::security::account::{Member, MemberStatus, Workspace};
use messaging_core::domain::security::request_log::RequestLog;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::Priority;
use messaging_core::scope::Role;
use messaging_engine::caller::Caller;
use serde_json::{Value, json};

use crate::bed::{Bed, PASSWORD, Reply};

fn members(workspace: impl std::fmt::Display) -> String {
    format!("/workspaces/{workspace}/members")
}

fn id_of(caller: &Caller) -> String {
    match caller {
        Caller::Session(session) => session.user.id.to_string(),
        _ => panic!("not a session"),
    }
}

#[tokio::test]
async fn a_member_is_added_listed_changed_and_removed() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    bed.user("ann@example.com").await;
    let added = bed.post(&owner, &members(workspace), json!({"email": "Ann@Example.com", "role": "editor"})).await;
    assert_eq!(added.summary(), "201");
    let user = added["user_id"].as_str().unwrap().to_owned();
    let mut expected = json!({"user_id": user, "email": "ann@example.com", "name": null, "role": "editor",
        "status": "invited", "created_at": "2026-01-31T09:15:00.000Z"});
    assert_eq!(added.body, expected);
    let listed = bed.get(&owner, &members(workspace)).await;
    assert_eq!(listed["data"].as_array().unwrap().len(), 2);
    assert_eq!(listed["data"][0], expected);
    assert_eq!(listed["next_cursor"], Value::Null);

    let ann = bed.sign_in("ann@example.com").await;
    assert_eq!(bed.get(&ann, &members(workspace)).await.summary(), "403 workspace_forbidden", "not before she accepts");
    bed.accept(&ann, workspace).await;
    expected["status"] = json!("active");
    let path = format!("{}/{user}", members(workspace));
    assert_eq!(bed.get(&ann, &members(workspace)).await.summary(), "403 role_forbidden");
    expected["role"] = json!("admin");
    assert_eq!(bed.patch(&owner, &path, json!({"role": "admin"})).await.body, expected);
    let ann = bed.sign_in("ann@example.com").await;
    assert_eq!(bed.get(&ann, &members(workspace)).await.summary(), "200");

    assert_eq!(bed.delete(&owner, &path).await.summary(), "204");
    let ann = bed.sign_in("ann@example.com").await;
    assert_eq!(bed.get(&ann, &members(workspace)).await.summary(), "403 workspace_forbidden");
    assert_eq!(bed.delete(&owner, &path).await.summary(), "404 not_found");
}

#[tokio::test]
async fn a_session_loses_its_workspace_at_once() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    bed.member(workspace, "ann@example.com", "admin").await;
    let login = json!({"email": "ann@example.com", "password": PASSWORD});
    let token = bed.post(&Caller::Anonymous, "/auth/login", login).await["token"].as_str().unwrap().to_owned();
    let ann = bed.app.authenticate(&token).await.unwrap();
    assert_eq!(bed.get(&ann, &members(workspace)).await.summary(), "200");
    assert_eq!(bed.delete(&owner, &format!("{}/{}", members(workspace), id_of(&ann))).await.summary(), "204");
    let ann = bed.app.authenticate(&token).await.unwrap();
    assert_eq!(bed.get(&ann, &members(workspace)).await.summary(), "403 workspace_forbidden");
}

#[tokio::test]
async fn an_email_that_nobody_has_becomes_a_user_without_password() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let added = bed.post(&owner, &members(workspace), json!({"email": "new@localhost", "role": "viewer"})).await;
    assert_eq!(added.summary(), "201");
    let login = json!({"email": "new@localhost", "password": PASSWORD});
    let refused = bed.post(&Caller::Anonymous, "/auth/login", login).await;
    assert_eq!(refused.summary(), "401 invalid_credentials");
    bed.user("new@localhost").await;
    let new = bed.sign_in("new@localhost").await;
    assert_eq!(id_of(&new), added["user_id"].as_str().unwrap());
}

#[tokio::test]
async fn nobody_is_added_twice() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let body = json!({"email": "ann@example.com", "role": "viewer"});
    let path = members(workspace);
    let both = [(); 4].map(|()| bed.post(&owner, &path, body.clone()));
    let mut summaries: Vec<_> = futures_util::future::join_all(both).await.iter().map(Reply::summary).collect();
    summaries.sort();
    assert_eq!(summaries, ["201", "409 already_exists", "409 already_exists", "409 already_exists"]);
    assert_eq!(bed.get(&owner, &path).await["data"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn the_last_owner_stays() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let path = format!("{}/{}", members(workspace), id_of(&owner));
    let refused = bed.delete(&owner, &path).await;
    assert_eq!(refused.summary(), "409 in_use");
    assert_eq!(refused["error"]["details"], json!({"by": [workspace]}));
    assert_eq!(bed.patch(&owner, &path, json!({"role": "admin"})).await.summary(), "409 in_use");
    // Nothing changes, nothing is refused.
    assert_eq!(bed.patch(&owner, &path, json!({"role": "owner"})).await.summary(), "200");
    assert_eq!(bed.patch(&owner, &path, json!({})).await.summary(), "200");

    let second = bed.member(workspace, "second@acme.com", "owner").await;
    assert_eq!(bed.patch(&owner, &path, json!({"role": "viewer"})).await.summary(), "200");
    let path = format!("{}/{}", members(workspace), id_of(&second));
    assert_eq!(bed.delete(&second, &path).await.summary(), "409 in_use");
}

#[tokio::test]
async fn owners_who_leave_at_the_same_moment_leave_one_behind() {
    let (bed, workspace, first) = Bed::with_owner().await;
    let mut owners = vec![first];
    for n in 0..3 {
        owners.push(bed.member(workspace, &format!("owner{n}@acme.com"), "owner").await);
    }
    let paths: Vec<_> = owners.iter().map(|owner| format!("{}/{}", members(workspace), id_of(owner))).collect();
    let leaving = owners.iter().zip(&paths).enumerate().map(|(n, (owner, path))| {
        let bed = &bed;
        async move {
            if n % 2 == 0 {
                bed.delete(owner, path).await.summary()
            } else {
                bed.patch(owner, path, json!({"role": "viewer"})).await.summary()
            }
        }
    });
    let answers = futures_util::future::join_all(leaving).await;
    assert_eq!(answers.iter().filter(|answer| *answer == "409 in_use").count(), 1, "{answers:?}");
    assert_eq!(bed.store.owner_count(workspace).await.unwrap(), 1);
}

#[tokio::test]
async fn only_owners_make_and_unmake_owners() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let admin = bed.member(workspace, "admin@acme.com", "admin").await;
    bed.member(workspace, "second@acme.com", "owner").await;
    let path = |caller| format!("{}/{}", members(workspace), id_of(caller));
    let new = json!({"email": "new@acme.com", "role": "owner"});
    assert_eq!(bed.post(&admin, &members(workspace), new.clone()).await.summary(), "403 role_forbidden");
    assert_eq!(bed.patch(&admin, &path(&admin), json!({"role": "owner"})).await.summary(), "403 role_forbidden");
    assert_eq!(bed.patch(&admin, &path(&owner), json!({"role": "viewer"})).await.summary(), "403 role_forbidden");
    assert_eq!(bed.delete(&admin, &path(&owner)).await.summary(), "403 role_forbidden");
    assert_eq!(bed.post(&owner, &members(workspace), new).await.summary(), "201");
    assert_eq!(bed.patch(&owner, &path(&admin), json!({"role": "owner"})).await.summary(), "200");
}

#[tokio::test]
async fn each_rule_of_the_input() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let check = async |body: Value, expected: &str| {
        assert_eq!(bed.post(&owner, &members(workspace), body.clone()).await.summary(), expected, "{body}");
    };
    check(json!({}), "422 /email required /role required").await;
    check(json!({"email": "", "role": ""}), "422 /email required /role required").await;
    check(json!({"email": "x", "role": "boss"}), "422 /email invalid_format /role unknown_value").await;
    check(json!({"email": 1, "role": 1}), "422 /email invalid_type /role invalid_type").await;
    check(json!({"email": format!("{}@b", "a".repeat(253)), "role": "viewer"}), "422 /email too_long").await;
    check(json!({"email": format!("{}@b", "a".repeat(252)), "role": "viewer"}), "201").await;

    let path = format!("{}/{}", members(workspace), id_of(&owner));
    assert_eq!(bed.patch(&owner, &path, json!({"role": null})).await.summary(), "422 /role required");
    assert_eq!(bed.patch(&owner, &path, json!({"role": ""})).await.summary(), "422 /role required");
    assert_eq!(bed.patch(&owner, &path, json!({"role": "boss"})).await.summary(), "422 /role unknown_value");
    // Section 1.3: the resource of the path comes before the body.
    let nobody = format!("{}/usr_01JB3Q8Z5N6W7X8Y9ZABCDEFGH", members(workspace));
    assert_eq!(bed.patch(&owner, &nobody, json!({"role": "boss"})).await.summary(), "404 not_found");
}

#[tokio::test]
async fn strangers_neither_lock_a_member_out_nor_hide_a_workspace() {
    const STRANGERS: usize = 1001;
    let (bed, workspace, owner) = Bed::with_owner().await;
    let user = id_of(&owner).parse().unwrap();
    let now = bed.app.now();
    let mut writes = Vec::new();
    for _ in 0..STRANGERS {
        let theirs: WorkspaceId = bed.app.new_id(now);
        let (name, timezone) = ("Stranger".to_owned(), "UTC".to_owned());
        writes.push(Write::put(
            Workspace {
                id: theirs,
                name,
                timezone,
                opt_out_keywords: Vec::new(),
                request_log: RequestLog::default(),
                require_second_factor: false,
                readers: ReaderSettings::default(),
                end: None,
                created_at: now,
            },
            Expect::Absent,
        ));
        let member = Member { status: MemberStatus::Invited, ..Member::active(theirs, user, Role::Viewer, now) };
        writes.push(Write::put(member, Expect::Absent));
    }
    bed.store.commit(Changes::from_iter(writes), Priority::Foreground).await.unwrap();

    let owner = bed.sign_in("owner@acme.com").await;
    assert_eq!(bed.get(&owner, &members(workspace)).await.summary(), "200");
    let me = bed.get(&owner, "/auth/me").await;
    assert_eq!(me["workspaces"].as_array().unwrap().len(), 1);
    assert_eq!(me["workspaces"][0]["workspace_id"], json!(workspace));
    assert_eq!(bed.get(&owner, "/workspaces").await["data"].as_array().unwrap().len(), 1);
    // The invitations are listed separately, page by page.
    let (mut found, mut query) = (0, "limit=200".to_owned());
    loop {
        let page = bed.get(&owner, &format!("/auth/invitations?{query}")).await;
        found += page["data"].as_array().unwrap().len();
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        query = format!("limit=200&cursor={cursor}");
    }
    assert_eq!(found, STRANGERS);
}
