//! Contract section 25: second factors, and attempts to get past one.

mod passkeys;
mod proofs;

use std::time::Duration;

use http::Method;
use messaging_core::domain::security::digest::Digest;
use messaging_core::domain::security::totp::TotpSecret;
use messaging_engine::{Caller, admin};
use serde_json::{Value, json};

use crate::bed::{Bed, Call, PASSWORD, Reply, send};

const ANYBODY: Caller = Caller::Anonymous;
const ANN: &str = "ann@example.com";
pub(crate) const STEP: Duration = Duration::from_secs(30);

/// A person with a second factor.
pub(crate) struct Person {
    email: &'static str,
    token: String,
    factor: String,
    pub(crate) secret: TotpSecret,
    recovery_codes: Vec<String>,
}

impl Person {
    /// The person as a caller, as they are now.
    async fn caller(&self, bed: &Bed) -> Caller {
        bed.app.authenticate(&self.token).await.unwrap()
    }

    pub(crate) fn code(&self, bed: &Bed) -> String {
        self.secret.code_at(bed.app.now())
    }
}

async fn login(bed: &Bed, email: &str) -> Reply {
    bed.post(&ANYBODY, "/auth/login", json!({"email": email, "password": PASSWORD})).await
}

/// The token of a sign-in whose first step is done.
pub(crate) async fn first_step(bed: &Bed, email: &str) -> String {
    let reply = login(bed, email).await;
    assert_eq!(reply.summary(), "401 second_factor_required");
    pending(&reply)
}

fn pending(reply: &Reply) -> String {
    assert_eq!(reply["error"]["details"]["kinds"], json!(["totp"]));
    reply["error"]["details"]["token"].as_str().unwrap().to_owned()
}

pub(crate) async fn second_step(bed: &Bed, token: &str, code: &str) -> Reply {
    bed.post(&ANYBODY, "/auth/login/factor", json!({"token": token, "code": code})).await
}

/// Adds a factor for the signed-in person; returns its id and secret.
pub(crate) async fn add(bed: &Bed, caller: &Caller) -> (String, TotpSecret) {
    let made = bed.post(caller, "/auth/factors", json!({"kind": "totp", "name": "Phone"})).await;
    assert_eq!(made.summary(), "201");
    let secret = TotpSecret::from_base32(made["secret"].as_str().unwrap()).unwrap();
    (made["id"].as_str().unwrap().to_owned(), secret)
}

pub(crate) async fn confirm(bed: &Bed, caller: &Caller, factor: &str, code: &str) -> Reply {
    bed.post(caller, &format!("/auth/factors/{factor}/confirm"), json!({"code": code})).await
}

async fn remove(bed: &Bed, caller: &Caller, factor: &str, proof: Value) -> Reply {
    let target = format!("/auth/factors/{factor}");
    bed.call(Call::new(caller, Method::DELETE, &target).body(&proof)).await
}

/// Adds a second factor for a person who has a password. This uses up the code of the current time step.
pub(crate) async fn enrolled(bed: &Bed, email: &'static str) -> Person {
    let token = login(bed, email).await["token"].as_str().unwrap().to_owned();
    let caller = bed.app.authenticate(&token).await.unwrap();
    let (factor, secret) = add(bed, &caller).await;
    let confirmed = confirm(bed, &caller, &factor, &secret.code_at(bed.app.now())).await;
    assert_eq!(confirmed.summary(), "200");
    let codes = confirmed["recovery_codes"].as_array().unwrap();
    let recovery_codes = codes.iter().map(|code| code.as_str().unwrap().to_owned()).collect();
    Person { email, token, factor, secret, recovery_codes }
}

async fn with_ann() -> (Bed, Person) {
    let bed = Bed::start();
    bed.user(ANN).await;
    let ann = enrolled(&bed, ANN).await;
    bed.clock.advance(STEP);
    (bed, ann)
}

#[tokio::test]
async fn a_factor_is_added_confirmed_and_asked_for() {
    let bed = Bed::start();
    bed.user(ANN).await;
    let (first, second) = (login(&bed, ANN).await, login(&bed, ANN).await);
    let (first, second) = (first["token"].as_str().unwrap(), second["token"].as_str().unwrap());
    let caller = bed.app.authenticate(first).await.unwrap();
    let made = bed.post(&caller, "/auth/factors", json!({"kind": "totp"})).await;
    assert_eq!((made.summary().as_str(), &made["name"]), ("201", &json!("Authenticator app")));
    assert_eq!(made["expires_at"], "2026-01-31T09:30:00.000Z");
    let text = made["secret"].as_str().unwrap();
    assert_eq!(
        made["uri"].as_str().unwrap(),
        format!(
            "otpauth://totp/mx.service.test:ann%40example.com?secret={text}&issuer=mx.service.test&algorithm=SHA1&digits=6&period=30"
        )
    );
    let (id, secret) = (made["id"].as_str().unwrap(), TotpSecret::from_base32(text).unwrap());
    assert!(id.starts_with("fac_"), "{id}");
    // It does not count yet.
    assert_eq!(login(&bed, ANN).await.summary(), "200");
    assert_eq!(bed.get(&caller, "/auth/me").await["second_factor"], false);

    let wrong = secret.code_at(bed.app.now() + 10 * STEP);
    assert_eq!(confirm(&bed, &caller, id, &wrong).await.summary(), "422 /code conflict");
    let confirmed = confirm(&bed, &caller, id, &secret.code_at(bed.app.now())).await;
    assert_eq!((confirmed.summary().as_str(), &confirmed["kind"]), ("200", &json!("totp")));
    assert_eq!(confirmed["recovery_codes"].as_array().unwrap().len(), 10);
    let caller = bed.app.authenticate(first).await.unwrap();
    assert_eq!(confirm(&bed, &caller, id, "123456").await.summary(), "409 invalid_state");
    assert_eq!(
        bed.app.authenticate(second).await.unwrap_err().code(),
        "invalid_credentials",
        "opened without a factor"
    );
    let me = bed.get(&caller, "/auth/me").await;
    assert_eq!((&me["second_factor"], &me["recovery_codes_left"]), (&json!(true), &json!(10)));
    let listed = bed.get(&caller, "/auth/factors").await;
    assert_eq!((&listed["data"][0]["id"], &listed["data"][0]["expires_at"]), (&json!(id), &Value::Null));
    assert!(!listed.body.to_string().contains(text));

    bed.clock.advance(STEP);
    let token = first_step(&bed, ANN).await;
    assert!(token.starts_with("mf_"), "{token}");
    assert_eq!(
        bed.app.authenticate(&token).await.unwrap_err().code(),
        "invalid_credentials",
        "it opens nothing itself"
    );
    let session = second_step(&bed, &token, &secret.code_at(bed.app.now())).await;
    assert_eq!((session.summary().as_str(), &session["user"]["email"]), ("200", &json!(ANN)));
    assert!(bed.app.authenticate(session["token"].as_str().unwrap()).await.is_ok());
    assert_eq!(second_step(&bed, &token, "123456").await.summary(), "401 invalid_credentials", "it is used up");
}

#[tokio::test]
async fn secrets_and_codes_are_not_stored_in_clear() {
    let (bed, ann) = with_ann().await;
    let token = first_step(&bed, ANN).await;
    let user = bed.store.user_by_email(ANN).await.unwrap().unwrap().record.id;
    let stored = bed.store.factor(user, ann.factor.parse().unwrap()).await.unwrap().unwrap().record;
    let stored = serde_json::to_string(&stored).unwrap();
    assert!(stored.contains("sealed:1:") && !stored.contains(&ann.secret.to_base32()), "{stored}");
    let (pending, _) = bed.store.pending_sign_in(&Digest::of(&token)).await.unwrap().unwrap();
    assert!(!serde_json::to_string(&pending).unwrap().contains(&token[3..]));
    assert!(!bed.store.has_recovery_code(user, &Digest::of(&ann.recovery_codes[0])).await.unwrap(), "it is salted");
}

#[tokio::test]
async fn a_code_that_was_seen_is_not_taken_again() {
    let (bed, ann) = with_ann().await;
    let code = ann.code(&bed);
    let (first, second) = (first_step(&bed, ANN).await, first_step(&bed, ANN).await);
    assert_eq!(second_step(&bed, &first, &code).await.summary(), "200");
    for _ in 0..2 {
        let reply = second_step(&bed, &second, &code).await;
        assert_eq!(reply.summary(), "401 invalid_credentials");
        bed.clock.advance(STEP);
    }
    // Nor one of before the last that was used, nor after the clock was set back.
    let code = ann.code(&bed);
    assert_eq!(second_step(&bed, &second, &code).await.summary(), "200");
    let third = first_step(&bed, ANN).await;
    let earlier = ann.secret.code_at(bed.app.now() - STEP);
    assert_eq!(second_step(&bed, &third, &earlier).await.summary(), "401 invalid_credentials");
    bed.clock.set(bed.app.now() - STEP);
    assert_eq!(second_step(&bed, &third, &code).await.summary(), "401 invalid_credentials");
    assert_eq!(second_step(&bed, &third, &ann.code(&bed)).await.summary(), "401 invalid_credentials");
}

#[tokio::test]
async fn of_two_who_come_with_one_code_at_once_one_gets_in() {
    let (bed, ann) = with_ann().await;
    let code = ann.code(&bed);
    let mut tokens = Vec::new();
    for _ in 0..4 {
        tokens.push(first_step(&bed, ANN).await);
    }
    let replies = futures_util::future::join_all(tokens.iter().map(|token| second_step(&bed, token, &code))).await;
    assert_eq!(replies.iter().filter(|reply| reply.status == 200).count(), 1);
    assert!(replies.iter().all(|reply| [200, 401, 429].contains(&reply.status)), "{replies:?}");
}

#[tokio::test]
async fn codes_are_good_a_step_earlier_and_later() {
    let (bed, ann) = with_ann().await;
    bed.clock.advance(10 * STEP);
    let now = bed.app.now();
    let token = first_step(&bed, ANN).await;
    for far in [now - 2 * STEP, now + 2 * STEP] {
        assert_eq!(second_step(&bed, &token, &ann.secret.code_at(far)).await.summary(), "401 invalid_credentials");
    }
    assert_eq!(second_step(&bed, &token, &ann.secret.code_at(now - STEP)).await.summary(), "200");
    let token = first_step(&bed, ANN).await;
    assert_eq!(second_step(&bed, &token, &ann.secret.code_at(now + STEP)).await.summary(), "200");
}

#[tokio::test]
async fn five_wrong_codes_end_a_sign_in_on_all_nodes() {
    let (bed, ann) = with_ann().await;
    let token = first_step(&bed, ANN).await;
    let wrong = ann.secret.code_at(bed.app.now() + 100 * STEP);
    for left in (0..5).rev() {
        // Each reaches another process, from another place.
        let app = bed.another_process();
        let body = json!({"token": token, "code": wrong});
        let from = format!("198.51.100.{left}");
        let reply = send(&app, Call::new(&ANYBODY, Method::POST, "/auth/login/factor").body(&body).from(&from)).await;
        assert_eq!(reply.summary(), "401 invalid_credentials");
        assert_eq!(reply["error"]["details"]["tries_left"], left);
    }
    let over = second_step(&bed, &token, &ann.code(&bed)).await;
    assert_eq!((over.summary().as_str(), &over["error"]["details"]), ("401 invalid_credentials", &Value::Null));
    let token = first_step(&bed, ANN).await;
    assert_eq!(second_step(&bed, &token, &ann.code(&bed)).await.summary(), "200");
}

#[tokio::test]
async fn wrong_codes_are_failed_sign_ins() {
    let (bed, ann) = with_ann().await;
    let wrong = ann.secret.code_at(bed.app.now() + 100 * STEP);
    // A right password forgives none of them.
    let token = first_step(&bed, ANN).await;
    for _ in 0..5 {
        assert_eq!(second_step(&bed, &token, &wrong).await.summary(), "401 invalid_credentials");
    }
    let token = first_step(&bed, ANN).await;
    for _ in 0..3 {
        assert_eq!(second_step(&bed, &token, &wrong).await.summary(), "401 invalid_credentials");
    }
    let reply = second_step(&bed, &token, &ann.code(&bed)).await;
    assert_eq!((reply.summary().as_str(), reply.retry_after), ("429 rate_limited", Some(900)));
    assert_eq!(login(&bed, ANN).await.summary(), "429 rate_limited");
    bed.clock.advance(Duration::from_mins(15));
    let token = first_step(&bed, ANN).await;
    assert_eq!(second_step(&bed, &token, &ann.code(&bed)).await.summary(), "200");
}

#[tokio::test]
async fn a_sign_in_waits_ten_minutes_and_for_the_same_password() {
    let (bed, ann) = with_ann().await;
    let token = first_step(&bed, ANN).await;
    bed.clock.advance(Duration::from_mins(10));
    assert_eq!(second_step(&bed, &token, &ann.code(&bed)).await.summary(), "401 invalid_credentials");
    let token = first_step(&bed, ANN).await;
    admin::create_user(&bed.app, ANN, Some("another horse".to_owned()), None).await.unwrap();
    assert_eq!(second_step(&bed, &token, &ann.code(&bed)).await.summary(), "401 invalid_credentials");
}

#[tokio::test]
async fn codes_of_somebody_else_are_worth_nothing() {
    let (bed, ann) = with_ann().await;
    bed.user("bob@example.com").await;
    let bob = enrolled(&bed, "bob@example.com").await;
    bed.clock.advance(STEP);
    let token = first_step(&bed, ann.email).await;
    for code in [bob.code(&bed), bob.recovery_codes[0].clone()] {
        assert_eq!(second_step(&bed, &token, &code).await.summary(), "401 invalid_credentials");
    }
    let caller = bob.caller(&bed).await;
    let proof = json!({"code": bob.code(&bed)});
    assert_eq!(remove(&bed, &caller, &ann.factor, proof.clone()).await.summary(), "404 not_found");
    assert_eq!(confirm(&bed, &caller, &ann.factor, &bob.code(&bed)).await.summary(), "404 not_found");
    let listed = bed.get(&caller, "/auth/factors").await;
    assert_eq!(listed["data"].as_array().unwrap().len(), 1);
    // His own is still good: nothing was used up.
    assert_eq!(remove(&bed, &caller, &bob.factor, proof).await.summary(), "204");
}

#[tokio::test]
async fn a_recovery_code_signs_in_once() {
    let (bed, ann) = with_ann().await;
    for code in &ann.recovery_codes[..2] {
        let token = first_step(&bed, ANN).await;
        let typed = code.to_uppercase().replace('-', " ");
        assert_eq!(second_step(&bed, &token, &typed).await.summary(), "200");
        let token = first_step(&bed, ANN).await;
        assert_eq!(second_step(&bed, &token, code).await.summary(), "401 invalid_credentials", "it was used");
    }
    let caller = ann.caller(&bed).await;
    assert_eq!(bed.get(&caller, "/auth/me").await["recovery_codes_left"], 8);
    assert_eq!(bed.post(&caller, "/auth/recovery-codes", json!({})).await.summary(), "422 /code required");
    let made = bed.post(&caller, "/auth/recovery-codes", json!({"password": PASSWORD})).await;
    assert_eq!(made.summary(), "201");
    let token = first_step(&bed, ANN).await;
    assert_eq!(second_step(&bed, &token, &ann.recovery_codes[5]).await.summary(), "401 invalid_credentials");
    let code = made["recovery_codes"][0].as_str().unwrap();
    assert_eq!(second_step(&bed, &token, code).await.summary(), "200");
}

#[tokio::test]
async fn links_of_the_operator_are_asked_for_the_factor_too() {
    let (bed, ann) = with_ann().await;
    let url = admin::login_link(&bed.app, ANN).await.unwrap().url.into_inner();
    let ticket = url.split_once("#ticket=").unwrap().1;
    let body = json!({"ticket": ticket, "password": "a battery staple"});
    let asked = bed.post(&ANYBODY, "/auth/redeem", body.clone()).await;
    assert_eq!(asked.summary(), "401 second_factor_required");
    assert_eq!(bed.post(&ANYBODY, "/auth/redeem", body).await.summary(), "410 link_expired", "it works once");
    // The password that came with it is not set before the second step.
    let token = pending(&asked);
    assert_eq!(login(&bed, ANN).await.summary(), "401 second_factor_required");
    assert_eq!(second_step(&bed, &token, "0000-0000-0000-0000").await.summary(), "401 invalid_credentials");
    assert_eq!(second_step(&bed, &token, &ann.code(&bed)).await.summary(), "200");
    assert_eq!(login(&bed, ANN).await.summary(), "401 invalid_credentials", "the password is another one now");
    let body = json!({"email": ANN, "password": "a battery staple"});
    assert_eq!(bed.post(&ANYBODY, "/auth/login", body).await.summary(), "401 second_factor_required");
}

#[tokio::test]
async fn with_two_factors_each_signs_in() {
    let (bed, ann) = with_ann().await;
    let caller = ann.caller(&bed).await;
    let (other, secret) = add(&bed, &caller).await;
    let confirmed = confirm(&bed, &caller, &other, &secret.code_at(bed.app.now())).await;
    assert_eq!((confirmed.summary().as_str(), &confirmed["recovery_codes"]), ("200", &Value::Null));
    bed.clock.advance(STEP);
    for code in [ann.code(&bed), secret.code_at(bed.app.now())] {
        let token = first_step(&bed, ANN).await;
        assert_eq!(second_step(&bed, &token, &code).await.summary(), "200");
    }
    let caller = ann.caller(&bed).await;
    assert_eq!(remove(&bed, &caller, &ann.factor, json!({"password": PASSWORD})).await.summary(), "204");
    bed.clock.advance(STEP);
    let token = first_step(&bed, ANN).await;
    assert_eq!(second_step(&bed, &token, &ann.code(&bed)).await.summary(), "401 invalid_credentials");
    assert_eq!(second_step(&bed, &token, &secret.code_at(bed.app.now())).await.summary(), "200");
    assert_eq!(bed.get(&ann.caller(&bed).await, "/auth/me").await["recovery_codes_left"], 10);
}

#[tokio::test]
async fn factors_are_few_and_expire_unless_they_are_confirmed() {
    let bed = Bed::start();
    bed.user(ANN).await;
    let caller = bed.sign_in(ANN).await;
    let mut made = Vec::new();
    for _ in 0..10 {
        made.push(add(&bed, &caller).await);
    }
    let body = json!({"kind": "totp"});
    assert_eq!(bed.post(&caller, "/auth/factors", body.clone()).await.summary(), "422 /kind too_many_items");
    assert_eq!(remove(&bed, &caller, &made[0].0, json!({})).await.summary(), "204", "it protects nothing yet");
    assert_eq!(bed.post(&caller, "/auth/factors", body.clone()).await.summary(), "201");
    bed.clock.advance(Duration::from_mins(15));
    let (id, secret) = &made[1];
    assert_eq!(confirm(&bed, &caller, id, &secret.code_at(bed.app.now())).await.summary(), "404 not_found");
    assert_eq!(bed.get(&caller, "/auth/factors").await["data"], json!([]));
    assert_eq!(bed.post(&caller, "/auth/factors", body).await.summary(), "201");
    assert_eq!(bed.post(&caller, "/auth/factors", json!({"kind": "sms"})).await.summary(), "422 /kind unknown_value");
    let long = json!({"kind": "totp", "name": "n".repeat(101)});
    assert_eq!(bed.post(&caller, "/auth/factors", long).await.summary(), "422 /name too_long");
}

#[tokio::test]
async fn a_workspace_may_demand_factors_of_its_members() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let member = bed.member(workspace, ANN, "editor").await;
    let elsewhere = admin::create_workspace(&bed.app, "Elsewhere", ANN).await.unwrap().id;
    let (path, lists) = (format!("/workspaces/{workspace}"), format!("/workspaces/{workspace}/lists"));
    let demand = json!({"require_second_factor": true});
    assert_eq!(bed.patch(&owner, &path, demand.clone()).await.summary(), "422 /require_second_factor not_allowed");
    assert_eq!(bed.patch(&member, &path, demand.clone()).await.summary(), "403 role_forbidden");
    let boss = enrolled(&bed, "owner@acme.com").await;
    let owner = boss.caller(&bed).await;
    let patched = bed.patch(&owner, &path, demand).await;
    assert_eq!((patched.summary().as_str(), &patched["require_second_factor"]), ("200", &json!(true)));

    assert_eq!(bed.get(&owner, &lists).await.summary(), "200");
    for call in [
        Call::new(&member, Method::GET, &lists),
        Call::new(&member, Method::POST, &lists).body(&json!({"name": "News"})),
        Call::new(&member, Method::GET, "/messages").in_workspace(&workspace.to_string()),
    ] {
        assert_eq!(bed.call(call).await.summary(), "403 second_factor_required");
    }
    // Their own account, other workspaces and the workspace's keys are not concerned.
    let me = bed.get(&member, "/auth/me").await;
    let demands = me["workspaces"].as_array().unwrap().iter().map(|one| one["require_second_factor"].clone());
    assert_eq!(demands.filter(|demand| *demand == json!(true)).count(), 1);
    assert_eq!(bed.get(&member, &format!("/workspaces/{elsewhere}/lists")).await.summary(), "200");
    let listed = async |who: &Caller| {
        let reply = bed.get(who, "/workspaces").await;
        reply["data"].as_array().unwrap().iter().map(|one| one["name"].clone()).collect::<Vec<_>>()
    };
    assert_eq!((listed(&member).await, listed(&owner).await), (vec![json!("Elsewhere")], vec![json!("Acme")]));
    let key = bed.key(workspace, &["contacts:read"]).await;
    assert_eq!(bed.get(&key, &lists).await.summary(), "200");

    let (factor, secret) = add(&bed, &member).await;
    assert_eq!(bed.get(&member, &lists).await.summary(), "403 second_factor_required", "it is not confirmed");
    let ann_token = {
        bed.clock.advance(STEP);
        assert_eq!(confirm(&bed, &member, &factor, &secret.code_at(bed.app.now())).await.summary(), "200");
        bed.clock.advance(STEP);
        let token = first_step(&bed, ANN).await;
        second_step(&bed, &token, &secret.code_at(bed.app.now())).await["token"].as_str().unwrap().to_owned()
    };
    let member = bed.app.authenticate(&ann_token).await.unwrap();
    assert_eq!(bed.get(&member, &lists).await.summary(), "200");
    assert_eq!(remove(&bed, &member, &factor, json!({"password": PASSWORD})).await.summary(), "204");
    let member = bed.app.authenticate(&ann_token).await.unwrap();
    assert_eq!(bed.get(&member, &lists).await.summary(), "403 second_factor_required");
    assert_eq!(bed.patch(&owner, &path, json!({"require_second_factor": null})).await["require_second_factor"], false);
    assert_eq!(bed.get(&member, &lists).await.summary(), "200");
}

#[tokio::test]
async fn the_operator_resets_lost_factors() {
    let (bed, ann) = with_ann().await;
    let token = first_step(&bed, ANN).await;
    let report = admin::reset_factors(&bed.app, "Ann@Example.com").await.unwrap();
    assert_eq!((report.email.as_str(), report.removed), (ANN, 1));
    assert_eq!(bed.app.authenticate(&ann.token).await.unwrap_err().code(), "invalid_credentials");
    for code in [ann.code(&bed), ann.recovery_codes[0].clone()] {
        assert_eq!(second_step(&bed, &token, &code).await.summary(), "401 invalid_credentials");
    }
    assert_eq!(login(&bed, ANN).await.summary(), "200");
    assert_eq!(admin::reset_factors(&bed.app, ANN).await.unwrap().removed, 0);
    assert!(admin::reset_factors(&bed.app, "nobody@example.com").await.is_err());
}

#[tokio::test]
async fn factors_are_in_the_audit_log_and_their_secrets_are_not() {
    let (bed, workspace, _) = Bed::with_owner().await;
    let boss = enrolled(&bed, "owner@acme.com").await;
    bed.clock.advance(STEP);
    let token = first_step(&bed, "owner@acme.com").await;
    second_step(&bed, &token, &boss.secret.code_at(bed.app.now() + 9 * STEP)).await;
    second_step(&bed, &token, &boss.code(&bed)).await;
    let owner = boss.caller(&bed).await;
    bed.post(&owner, "/auth/recovery-codes", json!({"password": PASSWORD})).await;
    remove(&bed, &owner, &boss.factor, json!({"password": PASSWORD})).await;
    admin::reset_factors(&bed.app, "owner@acme.com").await.unwrap();
    let owner = bed.sign_in("owner@acme.com").await;
    let log = bed.get(&owner, &format!("/workspaces/{workspace}/audit?limit=200")).await;
    let entries = log["data"].as_array().unwrap();
    let operations: Vec<_> = entries.iter().rev().map(|entry| entry["operation"].as_str().unwrap()).collect();
    let expected =
        ["createFactor", "confirmFactor", "loginRefused", "loginWithFactor", "createRecoveryCodes", "deleteFactor"];
    let found: Vec<_> = operations.iter().filter(|operation| expected.contains(operation)).copied().collect();
    assert_eq!(found, expected, "{operations:?}");
    let told = log.body.to_string();
    for secret in [&boss.secret.to_base32(), &boss.recovery_codes[0], &token] {
        assert!(!told.contains(secret.as_str()), "{told}");
    }
}

#[tokio::test]
async fn an_idempotent_repetition_answers_the_same_secret() {
    let bed = Bed::start();
    bed.user(ANN).await;
    let caller = bed.sign_in(ANN).await;
    let body = json!({"kind": "totp"});
    let call = || Call::new(&caller, Method::POST, "/auth/factors").body(&body).key("once");
    let (first, second) = (bed.call(call()).await, bed.call(call()).await);
    assert_eq!((first.status, second.replayed, &first.body), (201, true, &second.body));
    assert_eq!(bed.get(&caller, "/auth/factors").await["data"].as_array().unwrap().len(), 1);
}
