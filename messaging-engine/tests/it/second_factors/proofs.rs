//! Changes of factors require a proof: an intruder who finds an open session cannot make the account their own.

use std::time::Duration;

use messaging_engine::admin;
use serde_json::{Value, json};

use super::{ANN, ANYBODY, STEP, add, confirm, first_step, login, remove, second_step, with_ann};
use crate::bed::{Bed, PASSWORD};

#[tokio::test]
async fn an_open_session_that_somebody_finds_adds_nothing_that_proves_who_it_is() {
    let (bed, ann) = with_ann().await;
    let caller = ann.caller(&bed).await;
    // A person who has just signed in has shown a factor.
    assert_eq!(bed.post(&caller, "/auth/factors", json!({"kind": "totp"})).await.summary(), "201");
    bed.clock.advance(Duration::from_mins(15));
    let wrong = ann.secret.code_at(bed.app.now() + 100 * STEP);
    for (body, expected) in [
        (json!({"kind": "totp"}), "422 /code required"),
        (json!({"kind": "passkey"}), "422 /code required"),
        (json!({"kind": "totp", "code": wrong}), "401 invalid_credentials"),
        (json!({"kind": "passkey", "password": "wrong horse"}), "401 invalid_credentials"),
        (json!({"kind": "passkey", "code": ann.code(&bed)}), "201"),
        (json!({"kind": "totp", "code": ann.code(&bed)}), "401 invalid_credentials"),
        (json!({"kind": "totp", "password": PASSWORD}), "201"),
        (json!({"kind": "totp", "code": ann.recovery_codes[0]}), "201"),
    ] {
        assert_eq!(bed.post(&caller, "/auth/factors", body.clone()).await.summary(), expected, "{body}");
    }
    assert_eq!(bed.get(&caller, "/auth/me").await["recovery_codes_left"], 9);
    // A new sign-in shows one, too.
    bed.clock.advance(STEP);
    let token = first_step(&bed, ANN).await;
    let session = second_step(&bed, &token, &ann.code(&bed)).await;
    let caller = bed.app.authenticate(session["token"].as_str().unwrap()).await.unwrap();
    assert_eq!(bed.post(&caller, "/auth/factors", json!({"kind": "passkey"})).await.summary(), "201");
}

#[tokio::test]
async fn a_first_password_is_set_by_whoever_has_the_factor() {
    let bed = Bed::start();
    for (email, is_late) in [(ANN, true), ("bob@example.com", false)] {
        admin::create_user(&bed.app, email, None, None).await.unwrap();
        let url = admin::login_link(&bed.app, email).await.unwrap().url.into_inner();
        let ticket = url.split_once("#ticket=").unwrap().1;
        let opened = bed.post(&ANYBODY, "/auth/redeem", json!({"ticket": ticket})).await;
        let token = opened["token"].as_str().unwrap();
        let caller = bed.app.authenticate(token).await.unwrap();
        let (factor, secret) = add(&bed, &caller).await;
        assert_eq!(confirm(&bed, &caller, &factor, &secret.code_at(bed.app.now())).await.summary(), "200");
        bed.clock.advance(STEP);
        let set = async |body: Value| {
            let caller = bed.app.authenticate(token).await.unwrap();
            bed.post(&caller, "/auth/password", body).await.summary()
        };
        if is_late {
            bed.clock.advance(Duration::from_mins(15));
            assert_eq!(set(json!({"password": "a battery staple"})).await, "422 /code required");
            let wrong = secret.code_at(bed.app.now() + 100 * STEP);
            let body = json!({"password": "a battery staple", "code": wrong});
            assert_eq!(set(body).await, "401 invalid_credentials");
            let code = secret.code_at(bed.app.now());
            assert_eq!(set(json!({"password": "a battery staple", "code": code})).await, "204");
        } else {
            assert_eq!(set(json!({"password": "a battery staple"})).await, "204");
        }
    }
}

#[tokio::test]
async fn a_factor_is_not_removed_without_proof() {
    let (bed, ann) = with_ann().await;
    let caller = ann.caller(&bed).await;
    let check = async |proof: Value, expected: &str| {
        assert_eq!(remove(&bed, &caller, &ann.factor, proof.clone()).await.summary(), expected, "{proof}");
    };
    check(json!({}), "422 /code required").await;
    check(json!({"code": null, "password": null}), "422 /code required").await;
    check(json!({"code": ann.secret.code_at(bed.app.now() - STEP)}), "401 invalid_credentials").await;
    check(json!({"password": "wrong horse"}), "401 invalid_credentials").await;
    assert_eq!(login(&bed, ANN).await.summary(), "401 second_factor_required");
    check(json!({"code": ann.code(&bed)}), "204").await;
    assert_eq!(login(&bed, ANN).await.summary(), "200");
    let caller = ann.caller(&bed).await;
    let me = bed.get(&caller, "/auth/me").await;
    assert_eq!((&me["second_factor"], &me["recovery_codes_left"]), (&json!(false), &json!(0)));
    assert_eq!(
        bed.post(&caller, "/auth/recovery-codes", json!({"password": PASSWORD})).await.summary(),
        "409 invalid_state"
    );
}

#[tokio::test]
async fn guesses_of_a_proof_are_limited() {
    let (bed, ann) = with_ann().await;
    let caller = ann.caller(&bed).await;
    let wrong = json!({"code": ann.secret.code_at(bed.app.now() + 100 * STEP)});
    for _ in 0..10 {
        assert_eq!(remove(&bed, &caller, &ann.factor, wrong.clone()).await.summary(), "401 invalid_credentials");
    }
    let right = json!({"code": ann.code(&bed)});
    assert_eq!(remove(&bed, &caller, &ann.factor, right).await.summary(), "429 rate_limited");
}
