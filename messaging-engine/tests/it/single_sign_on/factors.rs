//! Single sign-on of people with a second factor: the provider's word alone opens nothing of theirs.

use std::time::Duration;

use http::Method;
use messaging_core::domain::security::oidc::OidcSettings;
use messaging_core::domain::security::oidc::group_roles::GroupRole;
use messaging_core::domain::security::totp::TotpSecret;
use messaging_core::scope::Role;
use messaging_engine::admin;
use messaging_engine::caller::Caller;
use serde_json::{Value, json};

use super::{CLIENT, Ended, SignOnBed, ann};
use crate::bed::{Bed, Call, PASSWORD, Reply};
use crate::second_factors::{STEP, add, confirm, enrolled, first_step, second_step};

const ANYBODY: Caller = Caller::Anonymous;
const ANN: &str = "ann@example.com";

fn ticket_of(ended: Ended) -> String {
    match ended {
        Ended::Confirm(ticket) => ticket,
        other => panic!("no password is asked for: {other:?}"),
    }
}

/// The token of a sign-in that waits for a factor.
fn token_of(ended: Ended) -> String {
    match ended {
        Ended::Factor(token) => token,
        other => panic!("no factor is asked for: {other:?}"),
    }
}

fn pending(reply: &Reply) -> String {
    assert_eq!(reply.summary(), "401 second_factor_required");
    reply["error"]["details"]["token"].as_str().unwrap().to_owned()
}

async fn by_password(bed: &Bed, ticket: &str) -> Reply {
    bed.post(&ANYBODY, "/auth/oidc/confirm", json!({"ticket": ticket, "password": PASSWORD})).await
}

async fn by_link(bed: &Bed, email: &str) -> Reply {
    let url = admin::login_link(&bed.app, email).await.unwrap().url.into_inner();
    let ticket = url.split_once("#ticket=").unwrap().1;
    bed.post(&ANYBODY, "/auth/redeem", json!({"ticket": ticket})).await
}

/// A user without a password who has an authenticator app.
async fn without_password(bed: &Bed) -> TotpSecret {
    admin::create_user(&bed.app, ANN, None, None).await.unwrap();
    let opened = by_link(bed, ANN).await;
    let caller = bed.app.authenticate(opened["token"].as_str().unwrap()).await.unwrap();
    let (factor, secret) = add(bed, &caller).await;
    assert_eq!(confirm(bed, &caller, &factor, &secret.code_at(bed.app.now())).await.summary(), "200");
    bed.clock.advance(STEP);
    secret
}

#[tokio::test]
async fn a_password_that_confirms_a_sign_on_opens_nothing_without_the_factor() {
    let (bed, workspace, _) = Bed::with_owner().await;
    bed.user(ANN).await;
    let person = enrolled(&bed, ANN).await;
    bed.clock.advance(STEP);
    let role = GroupRole { group: "staff".to_owned(), workspace, role: Role::Viewer };
    let sign_on = SignOnBed::on(bed, |settings| OidcSettings { group_roles: vec![role], ..settings }).await;
    let bed = &sign_on.bed;
    let claims = || ann(json!({"groups": ["staff", "others"]}));

    let ticket = ticket_of(sign_on.sign_in(claims()).await);
    let asked = by_password(bed, &ticket).await;
    assert_eq!(asked["token"], Value::Null);
    let token = pending(&asked);
    let wrong = person.secret.code_at(bed.app.now() + 100 * STEP);
    assert_eq!(second_step(bed, &token, &wrong).await.summary(), "401 invalid_credentials");
    assert_eq!(sign_on.sign_in(claims()).await.word(), "confirm", "they are not joined yet");

    let session = second_step(bed, &token, &person.code(bed)).await;
    assert_eq!((session.summary().as_str(), &session["user"]["email"]), ("200", &json!(ANN)));
    let caller = bed.app.authenticate(session["token"].as_str().unwrap()).await.unwrap();
    let me = bed.get(&caller, "/auth/me").await;
    assert_eq!((&me["user"]["name"], &me["workspaces"][0]["role"]), (&json!("Ann Lee"), &json!("viewer")));
    assert_eq!(by_password(bed, &ticket).await.summary(), "410 link_expired", "they are joined");

    // From now on no password is asked for, but still the factor.
    bed.clock.advance(STEP);
    let token = token_of(sign_on.sign_in(claims()).await);
    assert_eq!(second_step(bed, &token, &person.code(bed)).await.summary(), "200");
}

#[tokio::test]
async fn a_second_step_is_over_when_the_person_is_joined_to_somebody_else_meanwhile() {
    let bed = Bed::start();
    bed.user(ANN).await;
    bed.user("bob@example.com").await;
    let person = enrolled(&bed, ANN).await;
    bed.clock.advance(STEP);
    let sign_on = SignOnBed::on(bed, |settings| settings).await;
    let ticket = ticket_of(sign_on.sign_in(ann(json!({}))).await);
    let token = pending(&by_password(&sign_on.bed, &ticket).await);
    let ticket = ticket_of(sign_on.sign_in(ann(json!({"email": "bob@example.com"}))).await);
    assert_eq!(by_password(&sign_on.bed, &ticket).await.summary(), "200");
    let over = second_step(&sign_on.bed, &token, &person.code(&sign_on.bed)).await;
    assert_eq!(over.summary(), "401 invalid_credentials");
}

#[tokio::test]
async fn a_verified_email_alone_joins_nobody_who_has_a_factor() {
    let bed = Bed::start();
    let secret = without_password(&bed).await;
    let sign_on = SignOnBed::on(bed, |settings| settings).await;
    let bed = &sign_on.bed;
    for _ in 0..2 {
        assert_eq!(sign_on.sign_in(ann(json!({}))).await.word(), "factor");
    }
    let token = token_of(sign_on.sign_in(ann(json!({}))).await);
    let wrong = secret.code_at(bed.app.now() + 100 * STEP);
    for _ in 0..5 {
        assert_eq!(second_step(bed, &token, &wrong).await.summary(), "401 invalid_credentials");
    }
    let good = || secret.code_at(bed.app.now());
    assert_eq!(second_step(bed, &token, &good()).await.summary(), "401 invalid_credentials", "five tries end it");
    let token = token_of(sign_on.sign_in(ann(json!({}))).await);
    let session = second_step(bed, &token, &good()).await;
    assert_eq!(session.status, 200);
    // The session of a browser is a cookie.
    assert_eq!(session["token"], Value::Null);
    bed.clock.advance(STEP);
    // It is the subject that counts now.
    let token = token_of(sign_on.sign_in(ann(json!({"email_verified": false}))).await);
    assert_eq!(second_step(bed, &token, &good()).await.summary(), "200");
}

#[tokio::test]
async fn where_it_is_the_only_way_factors_open_what_the_operator_or_the_provider_began() {
    let bed = Bed::start();
    bed.user(ANN).await;
    let person = enrolled(&bed, ANN).await;
    bed.clock.advance(STEP);
    let before = first_step(&bed, ANN).await;
    let sign_on = SignOnBed::on(bed, |settings| OidcSettings { only: true, ..settings }).await;
    let bed = &sign_on.bed;
    assert_eq!(second_step(bed, &before, &person.code(bed)).await.summary(), "409 invalid_state", "a password");
    assert_eq!(bed.post(&ANYBODY, "/auth/login/passkey", json!({})).await.summary(), "409 invalid_state");
    let alone = json!({"token": "mp_AAAA", "assertion": {}});
    assert_eq!(bed.post(&ANYBODY, "/auth/login/factor", alone).await.summary(), "409 invalid_state", "a passkey");

    let by_link = pending(&by_link(bed, ANN).await);
    assert_eq!(second_step(bed, &by_link, &person.code(bed)).await.summary(), "200");
    bed.clock.advance(STEP);
    let ticket = ticket_of(sign_on.sign_in(ann(json!({}))).await);
    let by_provider = pending(&by_password(bed, &ticket).await);
    assert_eq!(second_step(bed, &by_provider, &person.code(bed)).await.summary(), "200");
}

#[tokio::test]
async fn a_workspace_that_demands_factors_demands_them_of_who_came_by_the_provider() {
    let (bed, workspace, _) = Bed::with_owner().await;
    let boss = enrolled(&bed, "owner@acme.com").await;
    bed.clock.advance(STEP);
    let role = GroupRole { group: "staff".to_owned(), workspace, role: Role::Editor };
    let sign_on = SignOnBed::on(bed, |settings| OidcSettings { group_roles: vec![role], ..settings }).await;
    let bed = &sign_on.bed;
    let token = first_step(bed, "owner@acme.com").await;
    let session = second_step(bed, &token, &boss.code(bed)).await;
    let owner = bed.app.authenticate(session["token"].as_str().unwrap()).await.unwrap();
    let demand = json!({"require_second_factor": true});
    assert_eq!(bed.patch(&owner, &format!("/workspaces/{workspace}"), demand).await.summary(), "200");

    let lists = format!("/workspaces/{workspace}/lists");
    // Several factors at the provider are not ours to check.
    let caller = sign_on.sign_in(ann(json!({"groups": ["staff"], "amr": ["pwd", "otp", "mfa"]}))).await.caller();
    assert_eq!(bed.get(&caller, &lists).await.summary(), "403 second_factor_required");
    assert_eq!(bed.get(&caller, "/auth/me").await["workspaces"][0]["require_second_factor"], true);
    let (factor, secret) = add(bed, &caller).await;
    assert_eq!(confirm(bed, &caller, &factor, &secret.code_at(bed.app.now())).await.summary(), "200");
    bed.clock.advance(STEP);
    let token = token_of(sign_on.sign_in(ann(json!({"groups": ["staff"]}))).await);
    let request = json!({"token": token, "code": secret.code_at(bed.app.now())});
    assert_eq!(bed.post(&ANYBODY, "/auth/login/factor", request).await.summary(), "200");
}

#[tokio::test]
async fn whoever_guesses_codes_waits_before_the_provider_is_believed_again() {
    let bed = Bed::start();
    let secret = without_password(&bed).await;
    let sign_on = SignOnBed::on(bed, |settings| settings).await;
    let bed = &sign_on.bed;
    let wrong = secret.code_at(bed.app.now() + 100 * STEP);
    // The first step of each counts, too.
    for guesses in [5, 3] {
        let token = token_of(sign_on.sign_in(ann(json!({}))).await);
        let body = json!({"token": token, "code": wrong});
        for _ in 0..guesses {
            let call = Call::new(&ANYBODY, Method::POST, "/auth/login/factor").body(&body).from(&CLIENT.to_string());
            assert_eq!(bed.call(call).await.summary(), "401 invalid_credentials");
        }
    }
    assert_eq!(sign_on.sign_in(ann(json!({}))).await.word(), "busy");
    bed.clock.advance(Duration::from_mins(15));
    assert_eq!(sign_on.sign_in(ann(json!({}))).await.word(), "factor");
}
