//! Roles that a provider's groups give and take away.

use messaging_core::domain::security::oidc::OidcSettings;
use messaging_core::domain::security::oidc::group_roles::GroupRole;
use messaging_core::ids::WorkspaceId;
use messaging_core::scope::Role;
use messaging_engine::admin;
use messaging_engine::caller::Caller;
use serde_json::{Value, json};

use super::{SignOnBed, ann};
use crate::bed::Bed;

/// A bed with the workspaces Acme and Other. The groups `viewers`, `admins` and `owners` give roles in Acme; `others`
/// makes editors of Other.
async fn mapped() -> (SignOnBed, WorkspaceId, WorkspaceId, Caller) {
    let (bed, acme, owner) = Bed::with_owner().await;
    let other = admin::create_workspace(&bed.app, "Other", "owner@acme.com").await.unwrap().id;
    let gone = "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap();
    let given = |group: &str, workspace, role| GroupRole { group: group.to_owned(), workspace, role };
    let group_roles = vec![
        given("viewers", acme, Role::Viewer),
        given("admins", acme, Role::Admin),
        given("owners", acme, Role::Owner),
        given("others", other, Role::Editor),
        given("others", gone, Role::Editor),
    ];
    let sign_on = SignOnBed::on(bed, |settings| OidcSettings { group_roles, ..settings }).await;
    (sign_on, acme, other, owner)
}

/// Signs in with these groups; returns the person's workspaces as `name role`, sorted.
async fn with_groups(sign_on: &SignOnBed, groups: &[&str]) -> Vec<String> {
    let caller = sign_on.sign_in(ann(json!({"groups": groups}))).await.caller();
    let found = sign_on.bed.get(&caller, "/auth/me").await.body;
    let shown = |one: &Value| format!("{} {}", one["name"].as_str().unwrap(), one["role"].as_str().unwrap());
    let mut shown: Vec<_> = found["workspaces"].as_array().unwrap().iter().map(shown).collect();
    shown.sort();
    shown
}

#[tokio::test]
async fn groups_make_a_user_and_set_the_roles_at_each_sign_in() {
    let (sign_on, ..) = mapped().await;
    assert_eq!(sign_on.sign_in(ann(json!({"groups": ["strangers"]}))).await.word(), "no_account");
    assert_eq!(sign_on.sign_in(ann(json!({"groups": "Viewers"}))).await.word(), "no_account");
    for (groups, expected) in [
        (&["viewers", "admins", "strangers"][..], &["Acme admin"][..]),
        (&["viewers", "others"], &["Acme viewer", "Other editor"]),
        (&["viewers", "others"], &["Acme viewer", "Other editor"]),
        (&["others"], &["Other editor"]),
        (&[], &[]),
        (&["admins"], &["Acme admin"]),
    ] {
        assert_eq!(with_groups(&sign_on, groups).await, expected, "{groups:?}");
    }
}

#[tokio::test]
async fn a_provider_may_tell_email_and_groups_apart_from_the_token() {
    let (sign_on, ..) = mapped().await;
    sign_on.provider.tells_of("ann");
    assert_eq!(with_groups(&sign_on, &["viewers"]).await, ["Acme viewer"]);
    assert_eq!(sign_on.provider.asked("/userinfo"), 1);
    sign_on.provider.tells_of("bob");
    assert_eq!(sign_on.sign_in(ann(json!({"groups": ["owners"]}))).await.word(), "token", "it is about somebody else");
}

#[tokio::test]
async fn a_role_given_by_hand_stays() {
    let (sign_on, acme, _, owner) = mapped().await;
    assert_eq!(with_groups(&sign_on, &["viewers", "others"]).await, ["Acme viewer", "Other editor"]);
    let members = format!("/workspaces/{acme}/members");
    let listed = sign_on.bed.get(&owner, &members).await;
    let ann = listed["data"].as_array().unwrap().iter().find(|one| one["email"] == "ann@example.com").unwrap();
    let target = format!("{members}/{}", ann["user_id"].as_str().unwrap());
    // The same role again changes nothing; another one counts as given by hand.
    assert_eq!(sign_on.bed.patch(&owner, &target, json!({"role": "viewer"})).await.summary(), "200");
    assert_eq!(with_groups(&sign_on, &["admins", "others"]).await, ["Acme admin", "Other editor"]);
    assert_eq!(sign_on.bed.patch(&owner, &target, json!({"role": "editor"})).await.summary(), "200");
    for groups in [&["admins"][..], &["viewers"], &[]] {
        assert_eq!(with_groups(&sign_on, groups).await, ["Acme editor"], "{groups:?}");
    }
    assert_eq!(sign_on.bed.delete(&owner, &target).await.summary(), "204");
    assert_eq!(with_groups(&sign_on, &["viewers"]).await, ["Acme viewer"], "and what is removed comes by groups again");
}

#[tokio::test]
async fn groups_accept_an_invitation_in_their_own_role() {
    let (sign_on, acme, _, owner) = mapped().await;
    let members = format!("/workspaces/{acme}/members");
    let body = json!({"email": "ann@example.com", "role": "editor"});
    assert_eq!(sign_on.bed.post(&owner, &members, body).await.summary(), "201");
    assert_eq!(with_groups(&sign_on, &[]).await, Vec::<String>::new(), "an invitation opens nothing");
    assert_eq!(with_groups(&sign_on, &["viewers"]).await, ["Acme viewer"]);
    assert_eq!(with_groups(&sign_on, &[]).await, Vec::<String>::new());
}

#[tokio::test]
async fn the_last_owner_stays_whatever_the_groups_say() {
    let (sign_on, acme, _, owner) = mapped().await;
    assert_eq!(with_groups(&sign_on, &["owners"]).await, ["Acme owner"]);
    let left = sign_on.bed.delete(&owner, &format!("/auth/memberships/{acme}")).await;
    assert_eq!(left.summary(), "204");
    assert_eq!(with_groups(&sign_on, &["viewers"]).await, ["Acme owner"]);
    assert_eq!(with_groups(&sign_on, &[]).await, ["Acme owner"]);
    admin::create_user(&sign_on.bed.app, "bob@example.com", None, None).await.unwrap();
    let bob = json!({"sub": "bob", "email": "bob@example.com", "email_verified": true, "groups": ["owners"]});
    assert_eq!(sign_on.sign_in(bob).await.word(), "signed in");
    assert_eq!(with_groups(&sign_on, &["viewers"]).await, ["Acme viewer"]);
}
