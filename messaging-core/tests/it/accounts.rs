//! Contract section 2.3: signing in and out.

use std::time::Duration;

use http::Method;
use messaging_core::caller::Caller;
use messaging_core::domain::digest::Digest;
use serde_json::{Value, json};

use crate::bed::{Bed, Call, PASSWORD, Reply};

const ANYBODY: Caller = Caller::Anonymous;

async fn login(bed: &Bed, email: &str, password: &str, client: &str) -> Reply {
    let body = json!({"email": email, "password": password});
    bed.send(Call::new(&ANYBODY, Method::POST, "/auth/login").body(&body).from(client)).await
}

#[tokio::test]
async fn a_session_lasts_twelve_hours() {
    let bed = Bed::start();
    bed.user("ann@example.com").await;
    let reply = login(&bed, "Ann@Example.com", PASSWORD, "192.0.2.1").await;
    assert_eq!(reply.summary(), "200");
    let token = reply["token"].as_str().unwrap();
    assert!(token.starts_with("ms_") && token.len() >= 46, "{}", token.len());
    let user = json!({"id": reply["user"]["id"], "email": "ann@example.com", "name": null});
    assert_eq!(reply.body, json!({"token": token, "expires_at": "2026-01-31T21:15:00.000Z", "user": user}));

    let session = bed.app.authenticate(token).await.unwrap();
    assert_eq!(bed.get(&session, "/auth/me").await.body, json!({"user": user, "workspaces": []}));

    bed.clock.advance(Duration::from_hours(12) - Duration::from_millis(1));
    assert!(bed.app.authenticate(token).await.is_ok());
    bed.clock.advance(Duration::from_millis(1));
    assert_eq!(bed.app.authenticate(token).await.unwrap_err().code(), "invalid_credentials");
}

#[tokio::test]
async fn only_the_digest_of_a_token_is_kept() {
    let bed = Bed::start();
    bed.user("ann@example.com").await;
    let reply = login(&bed, "ann@example.com", PASSWORD, "192.0.2.1").await;
    let token = reply["token"].as_str().unwrap();
    let stored = bed.store.session(&Digest::of(token)).await.unwrap().unwrap();
    assert!(!serde_json::to_string(&stored).unwrap().contains(&token[3..]));
    assert_eq!(bed.app.authenticate("ms_unknown").await.unwrap_err().code(), "invalid_credentials");
}

#[tokio::test]
async fn wrong_passwords_and_unknown_people_look_the_same() {
    let bed = Bed::start();
    bed.user("ann@example.com").await;
    messaging_core::admin::create_user(&bed.app, "nopass@example.com", None, None).await.unwrap();
    let wrong = login(&bed, "ann@example.com", "wrong horse", "192.0.2.1").await;
    assert_eq!(wrong.summary(), "401 invalid_credentials");
    for email in ["nobody@example.com", "nopass@example.com", "not an email"] {
        let reply = login(&bed, email, PASSWORD, "192.0.2.1").await;
        assert_eq!((reply.summary(), &reply.body), ("401 invalid_credentials".to_owned(), &wrong.body), "{email}");
    }
}

#[tokio::test]
async fn the_eleventh_failure_waits_per_email_and_address() {
    let bed = Bed::start();
    bed.user("ann@example.com").await;
    for n in 0..10 {
        let reply = login(&bed, "ann@example.com", "wrong horse", "192.0.2.1").await;
        assert_eq!(reply.summary(), "401 invalid_credentials", "{n}");
    }
    // The right password does not help, and letter case makes no other person.
    for email in ["ann@example.com", "ANN@example.com"] {
        let reply = login(&bed, email, PASSWORD, "192.0.2.1").await;
        assert_eq!((reply.summary().as_str(), reply.retry_after), ("429 rate_limited", Some(900)));
    }
    assert_eq!(login(&bed, "ann@example.com", PASSWORD, "192.0.2.2").await.summary(), "200");
    assert_eq!(login(&bed, "bob@example.com", PASSWORD, "192.0.2.1").await.summary(), "401 invalid_credentials");

    bed.clock.advance(Duration::from_mins(15) - Duration::from_millis(1));
    assert_eq!(login(&bed, "ann@example.com", PASSWORD, "192.0.2.1").await.retry_after, Some(1));
    bed.clock.advance(Duration::from_millis(1));
    assert_eq!(login(&bed, "ann@example.com", PASSWORD, "192.0.2.1").await.summary(), "200");
}

#[tokio::test]
async fn guesses_at_the_same_moment_are_counted() {
    let bed = Bed::start();
    bed.user("ann@example.com").await;
    let guesses = (0..20).map(|_| login(&bed, "ann@example.com", "wrong horse", "192.0.2.1"));
    let replies = futures_util::future::join_all(guesses).await;
    let refused = replies.iter().filter(|reply| reply.status == 401).count();
    assert_eq!(refused, 10);
    assert_eq!(replies.iter().filter(|reply| reply.status == 429).count(), 10);
}

#[tokio::test]
async fn a_success_forgets_the_failures() {
    let bed = Bed::start();
    bed.user("ann@example.com").await;
    for _ in 0..3 {
        for _ in 0..9 {
            assert_eq!(login(&bed, "ann@example.com", "wrong horse", "192.0.2.1").await.status, 401);
        }
        assert_eq!(login(&bed, "ann@example.com", PASSWORD, "192.0.2.1").await.status, 200);
    }
}

#[tokio::test]
async fn what_is_missing_is_named() {
    let bed = Bed::start();
    let check = async |body: Value, expected: &str| {
        assert_eq!(bed.post(&ANYBODY, "/auth/login", body.clone()).await.summary(), expected, "{body}");
    };
    check(json!({}), "422 /email required /password required").await;
    check(json!({"email": "", "password": null}), "422 /email required /password required").await;
    check(json!({"email": 1, "password": true}), "422 /email invalid_type /password invalid_type").await;
    check(json!({"email": "a".repeat(255), "password": "a".repeat(1025)}), "422 /email too_long /password too_long")
        .await;
}

#[tokio::test]
async fn after_logout_the_token_is_dead_and_others_are_not() {
    let bed = Bed::start();
    bed.user("ann@example.com").await;
    let first = login(&bed, "ann@example.com", PASSWORD, "192.0.2.1").await;
    let second = login(&bed, "ann@example.com", PASSWORD, "192.0.2.1").await;
    let (first, second) = (first["token"].as_str().unwrap(), second["token"].as_str().unwrap());
    let session = bed.app.authenticate(first).await.unwrap();
    assert_eq!(bed.send(Call::new(&session, Method::POST, "/auth/logout")).await.summary(), "204");
    assert_eq!(bed.app.authenticate(first).await.unwrap_err().code(), "invalid_credentials");
    assert!(bed.app.authenticate(second).await.is_ok());
}

#[tokio::test]
async fn me_names_person_and_memberships() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let me = bed.get(&owner, "/auth/me").await;
    assert_eq!(me["user"]["email"], "owner@acme.com");
    assert_eq!(me["workspaces"], json!([{"workspace_id": workspace, "role": "owner"}]));
    let key = bed.key(workspace, &["*"]).await;
    assert_eq!(bed.get(&key, "/auth/me").await.summary(), "403 session_required");
    assert_eq!(bed.send(Call::new(&key, Method::POST, "/auth/logout")).await.summary(), "403 session_required");
    assert_eq!(bed.get(&ANYBODY, "/auth/me").await.summary(), "401 missing_credentials");
}
