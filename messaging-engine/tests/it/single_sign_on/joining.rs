//! Identity of a person who signs in by single sign-on: known by issuer and subject, joined by a verified email,
//! confirmed by a password.

use std::time::Duration;

use http::Method;
use messaging_core::domain::security::oidc::OidcSettings;
use messaging_core::domain::security::oidc::group_roles::GroupRole;
use messaging_core::scope::Role;
use messaging_engine::admin;
use messaging_engine::caller::Caller;
use serde_json::{Value, json};

use super::{Ended, SignOnBed, ann};
use crate::bed::{Bed, Call, PASSWORD, Reply};

const ANYBODY: Caller = Caller::Anonymous;

async fn me(sign_on: &SignOnBed, caller: &Caller) -> Value {
    sign_on.bed.get(caller, "/auth/me").await.body
}

async fn confirm(sign_on: &SignOnBed, ticket: &str, password: &str) -> Reply {
    sign_on.bed.post(&ANYBODY, "/auth/oidc/confirm", json!({"ticket": ticket, "password": password})).await
}

fn ticket_of(ended: Ended) -> String {
    match ended {
        Ended::Confirm(ticket) => ticket,
        other => panic!("no password is asked for: {other:?}"),
    }
}

#[tokio::test]
async fn a_user_without_a_password_is_joined_by_a_verified_email() {
    let sign_on = SignOnBed::start().await;
    admin::create_user(&sign_on.bed.app, "ann@example.com", None, None).await.unwrap();
    assert_eq!(sign_on.sign_in(ann(json!({"email_verified": false}))).await.word(), "email_unverified");
    assert_eq!(sign_on.sign_in(ann(json!({"email_verified": null}))).await.word(), "email_unverified");
    assert_eq!(sign_on.sign_in(ann(json!({"email": null}))).await.word(), "email_missing");
    assert_eq!(sign_on.sign_in(ann(json!({"email": "not an address"}))).await.word(), "email_missing");
    assert_eq!(sign_on.sign_in(ann(json!({"email": "bob@example.com"}))).await.word(), "no_account");

    let caller = sign_on.sign_in(ann(json!({}))).await.caller();
    let found = me(&sign_on, &caller).await;
    assert_eq!((&found["user"]["email"], &found["user"]["name"]), (&json!("ann@example.com"), &json!("Ann Lee")));
    // From now on only the subject counts.
    for claims in [
        json!({"email": "bob@example.com"}),
        json!({"email_verified": false}),
        json!({"email": null, "name": "Somebody"}),
    ] {
        let caller = sign_on.sign_in(ann(claims)).await.caller();
        assert_eq!(me(&sign_on, &caller).await["user"], found["user"]);
    }
    assert_eq!(sign_on.sign_in(ann(json!({"sub": "Ann"}))).await.caller().credential(), caller.credential());
}

#[tokio::test]
async fn a_user_with_a_password_confirms_it_once() {
    let sign_on = SignOnBed::start().await;
    sign_on.bed.user("ann@example.com").await;
    let ticket = ticket_of(sign_on.sign_in(ann(json!({}))).await);
    assert_eq!(confirm(&sign_on, &ticket, "not the password").await.summary(), "401 invalid_credentials");
    assert_eq!(confirm(&sign_on, "sealed:1:AAAA", PASSWORD).await.summary(), "410 link_expired");
    let again = ticket_of(sign_on.sign_in(ann(json!({}))).await);
    let session = confirm(&sign_on, &ticket, PASSWORD).await;
    assert_eq!((session.summary().as_str(), &session["user"]["email"]), ("200", &json!("ann@example.com")));
    assert!(sign_on.bed.app.authenticate(session["token"].as_str().unwrap()).await.is_ok());
    for ticket in [&ticket, &again] {
        assert_eq!(confirm(&sign_on, ticket, PASSWORD).await.summary(), "410 link_expired", "it is joined already");
    }
    assert_eq!(sign_on.sign_in(ann(json!({}))).await.word(), "signed in");
    assert!(sign_on.bed.sign_in("ann@example.com").await.credential().is_some(), "the password stays");
}

#[tokio::test]
async fn the_time_and_the_guesses_of_a_confirmation_are_bounded() {
    let sign_on = SignOnBed::start().await;
    sign_on.bed.user("ann@example.com").await;
    let late = ticket_of(sign_on.sign_in(ann(json!({}))).await);
    sign_on.bed.clock.advance(Duration::from_mins(10));
    assert_eq!(confirm(&sign_on, &late, PASSWORD).await.summary(), "410 link_expired");
    let ticket = ticket_of(sign_on.sign_in(ann(json!({}))).await);
    for _ in 0..10 {
        assert_eq!(confirm(&sign_on, &ticket, "not the password").await.summary(), "401 invalid_credentials");
    }
    assert_eq!(confirm(&sign_on, &ticket, PASSWORD).await.summary(), "429 rate_limited");
    let login = json!({"email": "ann@example.com", "password": PASSWORD});
    assert_eq!(
        sign_on.bed.post(&ANYBODY, "/auth/login", login).await.summary(),
        "429 rate_limited",
        "they count together"
    );
}

#[tokio::test]
async fn whoever_is_joined_is_vouched_for() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let sign_on = SignOnBed::on(bed, |settings| settings).await;
    let members = format!("/workspaces/{workspace}/members");
    let added = sign_on.bed.post(&owner, &members, json!({"email": "ann@example.com", "role": "editor"})).await;
    let target = format!("{members}/{}/ticket", added["user_id"].as_str().unwrap());
    let made = sign_on.bed.call(Call::new(&owner, Method::POST, &target)).await;
    let ticket = made["url"].as_str().unwrap().split_once("#ticket=").unwrap().1.to_owned();
    let opened = sign_on.bed.post(&ANYBODY, "/auth/redeem", json!({"ticket": ticket})).await;
    let token = opened["token"].as_str().unwrap().to_owned();
    assert!(sign_on.bed.app.authenticate(&token).await.is_ok());

    let caller = sign_on.sign_in(ann(json!({}))).await.caller();
    assert!(sign_on.bed.app.authenticate(&token).await.is_err(), "whoever had the link was perhaps somebody else");
    let workspaces = me(&sign_on, &caller).await["workspaces"].clone();
    assert_eq!(workspaces[0]["role"], "editor", "what was given by hand stays");
}

#[tokio::test]
async fn who_signs_in_at_once_for_the_first_time_is_joined_once() {
    let sign_on = SignOnBed::start().await;
    admin::create_user(&sign_on.bed.app, "ann@example.com", None, None).await.unwrap();
    sign_on.provider.person(ann(json!({})));
    let mut begun = Vec::new();
    for _ in 0..6 {
        begun.push(sign_on.begin().await);
    }
    let ended = begun.iter().map(|(cookie, query)| sign_on.come_back(Some(cookie), query));
    for ended in futures_util::future::join_all(ended).await {
        assert_eq!(ended.word(), "signed in");
    }
}

#[tokio::test]
async fn whoever_is_joined_has_set_no_password_meanwhile() {
    let sign_on = SignOnBed::start().await;
    let name = Some("Ann Lee".to_owned());
    admin::create_user(&sign_on.bed.app, "ann@example.com", None, name).await.unwrap();
    let revision = async || sign_on.bed.store.user_by_email("ann@example.com").await.unwrap().unwrap().revision;
    let before = revision().await;
    assert_eq!(sign_on.sign_in(ann(json!({}))).await.word(), "signed in");
    // The user is written although nothing about it changed: of two concurrent writers one begins again.
    let joined = revision().await;
    assert_ne!(joined, before);
    assert_eq!(sign_on.sign_in(ann(json!({}))).await.word(), "signed in");
    assert_eq!(revision().await, joined);
}

#[tokio::test]
async fn where_it_is_the_only_way_passwords_and_links_of_workspaces_are_refused() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let members = format!("/workspaces/{workspace}/members");
    let added = bed.post(&owner, &members, json!({"email": "ann@example.com", "role": "viewer"})).await;
    let target = format!("{members}/{}/ticket", added["user_id"].as_str().unwrap());
    let made = bed.call(Call::new(&owner, Method::POST, &target)).await;
    let of_workspace = made["url"].as_str().unwrap().split_once("#ticket=").unwrap().1.to_owned();

    let sign_on = SignOnBed::on(bed, |settings| OidcSettings { only: true, ..settings }).await;
    let bed = &sign_on.bed;
    let offer = bed.get(&ANYBODY, "/health").await["sign_on"].clone();
    assert_eq!(offer, json!({"name": "Acme", "url": "https://track.service.test/v1/auth/oidc", "only": true}));
    for password in [PASSWORD, "not the password"] {
        let login = json!({"email": "owner@acme.com", "password": password});
        assert_eq!(bed.post(&ANYBODY, "/auth/login", login).await.summary(), "409 invalid_state");
    }
    assert_eq!(bed.call(Call::new(&owner, Method::POST, &target)).await.summary(), "409 invalid_state");
    let redeemed = bed.post(&ANYBODY, "/auth/redeem", json!({"ticket": of_workspace})).await;
    assert_eq!(redeemed.summary(), "409 invalid_state");
    let link = admin::login_link(&bed.app, "owner@acme.com").await.unwrap().url.into_inner();
    let ticket = link.split_once("#ticket=").unwrap().1;
    assert_eq!(bed.post(&ANYBODY, "/auth/redeem", json!({"ticket": ticket})).await.summary(), "200");
    // A first sign-in is still confirmed by the password.
    let owner = ann(json!({"sub": "owner", "email": "owner@acme.com"}));
    let ticket = ticket_of(sign_on.sign_in(owner).await);
    assert_eq!(confirm(&sign_on, &ticket, PASSWORD).await.summary(), "200");
}

#[tokio::test]
async fn without_a_provider_nothing_of_it_is_there() {
    let bed = Bed::start();
    assert_eq!(bed.get(&ANYBODY, "/health").await.body, json!({"status": "ok"}));
    let body = json!({"ticket": "t", "password": "p"});
    assert_eq!(bed.post(&ANYBODY, "/auth/oidc/confirm", body).await.summary(), "404 not_found");
}

#[tokio::test]
async fn sign_ins_and_refusals_are_recorded() {
    let (bed, workspace, _) = Bed::with_owner().await;
    let role = GroupRole { group: "staff".to_owned(), workspace, role: Role::Viewer };
    let sign_on = SignOnBed::on(bed, |settings| OidcSettings { group_roles: vec![role], ..settings }).await;
    assert_eq!(sign_on.sign_in(ann(json!({}))).await.word(), "no_account");
    assert_eq!(sign_on.sign_in(ann(json!({"groups": ["staff"]}))).await.word(), "signed in");
    assert_eq!(sign_on.sign_in(ann(json!({"groups": ["staff"]}))).await.word(), "signed in");
    let operations = |log: Value| -> Vec<(String, Value)> {
        let entries = log["data"].as_array().unwrap().clone();
        let of = |entry: &Value| (entry["operation"].as_str().unwrap().to_owned(), entry["actor"]["name"].clone());
        entries.iter().map(of).collect()
    };
    let all = operations(sign_on.bed.get(&Caller::Operator(None), "/system/audit?limit=3").await.body);
    let by_ann = || json!("Ann Lee");
    assert_eq!(
        all,
        [("signOn".to_owned(), by_ann()), ("signOn".to_owned(), by_ann()), ("loginRefused".to_owned(), Value::Null)]
    );
    let target = format!("/workspaces/{workspace}/audit?limit=2");
    let there = operations(sign_on.bed.get(&Caller::Operator(Some(workspace)), &target).await.body);
    assert_eq!(there, [("signOn".to_owned(), by_ann()), ("followGroups".to_owned(), Value::Null)]);
}
