//! Contract section 2.3: signing in and out.

use std::time::Duration;

use http::Method;
use messaging_core::changes::{AccountWrite, Changes, Write};
use messaging_core::domain::security::account::Session;
use messaging_core::domain::security::digest::Digest;
use messaging_core::domain::security::login_attempts::SignInAttempt;
use messaging_core::ports::store::Priority;
use messaging_engine::admin;
use messaging_engine::caller::Caller;
use serde_json::{Value, json};

use crate::bed::{Bed, Call, PASSWORD, Reply, START};

const ANYBODY: Caller = Caller::Anonymous;

const V6: &str = "2001:db8::1";

async fn login(bed: &Bed, email: &str, password: &str, client: &str) -> Reply {
    let body = json!({"email": email, "password": password});
    bed.call(Call::new(&ANYBODY, Method::POST, "/auth/login").body(&body).from(client)).await
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
    assert_eq!(
        bed.get(&session, "/auth/me").await.body,
        json!({"user": user, "has_password": true, "second_factor": false, "recovery_codes_left": 0, "operator": false,
            "workspaces": []})
    );

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
    messaging_engine::admin::create_user(&bed.app, "nopass@example.com", None, None).await.unwrap();
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
async fn failures_count_over_restarts_and_processes() {
    let bed = Bed::start();
    bed.user("ann@example.com").await;
    for n in 0..10 {
        // Each attempt reaches another process.
        let app = bed.another_process();
        let body = json!({"email": "ann@example.com", "password": "wrong horse"});
        let call = Call::new(&ANYBODY, Method::POST, "/auth/login").body(&body).from("192.0.2.1");
        assert_eq!(crate::bed::send(&app, call).await.summary(), "401 invalid_credentials", "{n}");
    }
    let reply = login(&bed, "ann@example.com", PASSWORD, "192.0.2.1").await;
    assert_eq!((reply.summary().as_str(), reply.retry_after), ("429 rate_limited", Some(900)));
}

#[tokio::test]
async fn a_network_has_a_hundred_failures_an_hour() {
    let bed = Bed::start();
    bed.user("ann@example.com").await;
    let attempt = |n: usize| SignInAttempt::new(&format!("user-{n}@example.com"), Some(V6.parse().unwrap()), START);
    for n in 0..99 {
        bed.store
            .commit(Changes::from_iter([Write::Account(AccountWrite::CountSignIn(attempt(n)))]), Priority::Foreground)
            .await
            .unwrap();
    }
    // A success is not counted, and clears no failures of other accounts.
    assert_eq!(login(&bed, "ann@example.com", PASSWORD, V6).await.summary(), "200");
    assert_eq!(login(&bed, "bob@example.com", PASSWORD, V6).await.summary(), "401 invalid_credentials");
    for same in [V6, "2001:db8::ffff:1"] {
        let reply = login(&bed, "ann@example.com", PASSWORD, same).await;
        assert_eq!((reply.summary().as_str(), reply.retry_after), ("429 rate_limited", Some(3600)), "{same}");
    }
    assert_eq!(login(&bed, "ann@example.com", PASSWORD, "2001:db8:0:1::1").await.summary(), "200");
    bed.clock.advance(Duration::from_hours(1));
    assert_eq!(login(&bed, "ann@example.com", PASSWORD, V6).await.summary(), "200");
}

#[tokio::test]
async fn guesses_at_one_email_from_everywhere_have_to_wait() {
    let bed = Bed::start();
    bed.user("ann@example.com").await;
    let open = bed.sign_in("ann@example.com").await;
    let from = |n: usize| format!("198.51.100.{n}");
    for n in 0..50 {
        let attempt = SignInAttempt::new("ann@example.com", Some(from(n).parse().unwrap()), START);
        bed.store
            .commit(Changes::from_iter([Write::Account(AccountWrite::CountSignIn(attempt))]), Priority::Foreground)
            .await
            .unwrap();
    }
    // The right password waits too, here and in every other process; an open session stays valid.
    let right = json!({"email": "ann@example.com", "password": PASSWORD});
    for app in [&bed.app, &bed.another_process()] {
        let call = Call::new(&ANYBODY, Method::POST, "/auth/login").body(&right).from("192.0.2.1");
        let reply = crate::bed::send(app, call).await;
        assert_eq!((reply.summary().as_str(), reply.retry_after), ("429 rate_limited", Some(60)));
    }
    assert_eq!(bed.get(&open, "/auth/me").await.summary(), "200");
    assert_eq!(login(&bed, "bob@example.com", PASSWORD, "192.0.2.1").await.summary(), "401 invalid_credentials");
    for (n, wait) in [60, 120, 240, 480, 960, 1920, 3600, 3600].into_iter().enumerate() {
        bed.clock.advance(Duration::from_secs(wait) - Duration::from_millis(1));
        assert_eq!(login(&bed, "ann@example.com", "wrong horse", &from(n)).await.retry_after, Some(1), "{wait}");
        bed.clock.advance(Duration::from_millis(1));
        assert_eq!(login(&bed, "ann@example.com", "wrong horse", &from(n)).await.summary(), "401 invalid_credentials");
    }
    bed.clock.advance(Duration::from_hours(1));
    assert_eq!(login(&bed, "ann@example.com", PASSWORD, "192.0.2.1").await.summary(), "200");
}

#[tokio::test]
async fn a_flood_of_sign_ins_has_a_queue_of_its_own() {
    let bed = Bed::start();
    bed.user("ann@example.com").await;
    let started = std::cell::Cell::new(0);
    let flood = (0..40).map(async |n| {
        let reply = login(&bed, &format!("user-{n}@example.com"), "wrong horse", "192.0.2.1").await;
        started.set(started.get() + 1);
        reply
    });
    let other = async {
        let reply = login(&bed, "ann@example.com", PASSWORD, "192.0.2.2").await;
        (reply, started.get())
    };
    let (flood, (other, before)) = tokio::join!(futures_util::future::join_all(flood), other);
    assert_eq!(other.summary(), "200");
    let count = |status| flood.iter().filter(|reply| reply.status == status).count();
    let (judged, sent_away) = (count(401), count(429));
    assert_eq!(judged + sent_away, 40);
    assert!(sent_away >= 20, "{sent_away}");
    assert!(flood.iter().all(|reply| reply.status == 401 || reply.retry_after == Some(1)));
    assert!(before < sent_away + 6, "it waited for {} others", before - sent_away);
}

#[tokio::test]
async fn a_new_password_ends_the_sessions_of_the_old_one() {
    let bed = Bed::start();
    bed.user("ann@example.com").await;
    bed.user("bob@example.com").await;
    let sign_in =
        async |email, password| login(&bed, email, password, "192.0.2.1").await["token"].as_str().unwrap().to_owned();
    let (old, bobs) = (sign_in("ann@example.com", PASSWORD).await, sign_in("bob@example.com", PASSWORD).await);
    for token in [&old, &bobs] {
        assert!(bed.app.authenticate(token).await.is_ok());
    }
    // By the command line, beside the server: it is noticed within a second.
    let set = async |name: Option<&str>, password: Option<&str>| {
        let (app, owned) = (bed.another_process(), |text: &str| text.to_owned());
        admin::create_user(&app, "ann@example.com", password.map(owned), name.map(owned)).await.unwrap();
        bed.clock.advance(Duration::from_secs(1));
    };
    set(Some("Ann"), None).await;
    assert!(bed.app.authenticate(&old).await.is_ok(), "only a password ends sessions");
    set(None, Some("another horse")).await;
    assert_eq!(bed.app.authenticate(&old).await.unwrap_err().code(), "invalid_credentials");
    assert!(bed.app.authenticate(&bobs).await.is_ok());
    let new = sign_in("ann@example.com", "another horse").await;
    assert!(bed.app.authenticate(&new).await.is_ok());
}

#[tokio::test]
async fn a_sign_in_that_meets_a_new_password_opens_nothing() {
    let bed = Bed::start();
    bed.user("ann@example.com").await;
    let user = bed.store.user_by_email("ann@example.com").await.unwrap().unwrap().record;
    admin::create_user(&bed.app, "ann@example.com", Some("another horse".to_owned()), None).await.unwrap();
    // The session of a sign-in that had checked the old password before.
    let session = Session {
        id: bed.app.new_id(START),
        token_digest: Digest::of("ms_late"),
        user_id: user.id,
        password_version: user.password_version,
        created_at: START,
        expires_at: START + Duration::from_hours(12),
        ip: None,
        user_agent: None,
    };
    bed.store
        .commit(Changes::from_iter([Write::Account(AccountWrite::PutSession(session))]), Priority::Foreground)
        .await
        .unwrap();
    assert_eq!(bed.app.authenticate("ms_late").await.unwrap_err().code(), "invalid_credentials");
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
    assert_eq!(bed.call(Call::new(&session, Method::POST, "/auth/logout")).await.summary(), "204");
    assert_eq!(bed.app.authenticate(first).await.unwrap_err().code(), "invalid_credentials");
    assert!(bed.app.authenticate(second).await.is_ok());
}

#[tokio::test]
async fn me_names_person_and_memberships() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let me = bed.get(&owner, "/auth/me").await;
    assert_eq!(me["user"]["email"], "owner@acme.com");
    let membership = &me["workspaces"][0];
    assert_eq!(
        (&membership["workspace_id"], &membership["name"], &membership["role"]),
        (&json!(workspace), &json!("Acme"), &json!("owner"))
    );
    let scopes = membership["scopes"].as_array().unwrap();
    assert!(scopes.contains(&json!("contacts:read")) && !scopes.contains(&json!("*")), "{scopes:?}");
    let key = bed.key(workspace, &["*"]).await;
    assert_eq!(bed.get(&key, "/auth/me").await.summary(), "403 session_required");
    assert_eq!(bed.call(Call::new(&key, Method::POST, "/auth/logout")).await.summary(), "403 session_required");
    assert_eq!(bed.get(&ANYBODY, "/auth/me").await.summary(), "401 missing_credentials");
}
