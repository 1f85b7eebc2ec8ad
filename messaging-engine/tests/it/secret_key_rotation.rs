//! The secret key is rotated while everything runs, and values made with the old key stay valid.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::mail::link_token::{Link, LinkKey, ReturnPurpose};
use messaging_core::domain::security::totp::TotpSecret;
use messaging_core::ports::Transport;
use messaging_core::ports::resolver::NoResolver;
use messaging_engine::services::callbacks::CallbackCall;
use messaging_engine::vault::{KeyRefused, Vault};
use messaging_engine::{App, Caller, Error, KeyRing, SecretKey, admin};
use messaging_testing::{CallingProvider, MemoryFetch};
use serde_json::{Value, json};

use crate::bed::{Bed, KEY, PASSWORD};
use crate::support::Product;

const NEW: SecretKey = SecretKey::from_bytes([9; 32]);

fn both() -> KeyRing {
    KeyRing::from(KEY).with_first(NEW).unwrap()
}

/// Changes to the new key, and encrypts stored secrets again.
async fn rotate(app: &App) {
    app.take_secret_keys(&both()).await.unwrap();
    assert_eq!(*app.secret_keys().first(), KEY, "a key that is held is not yet the one that seals");
    assert!(admin::switch_secret_key(app, &NEW).await.unwrap());
    assert_eq!(app.secret_keys(), both());
}

/// Number of stored secrets, and number of them that a key opens.
async fn opened_by(bed: &Bed, key: SecretKey) -> (usize, usize) {
    let secrets = bed.store.sealed_secrets(100).await.unwrap();
    let vault = Vault::new(key.as_bytes());
    let opened = secrets.iter().filter(|secret| vault.open(&secret.place, &secret.sealed).is_ok()).count();
    (secrets.len(), opened)
}

#[tokio::test]
async fn tokens_in_mail_that_was_sent_stay_good_and_new_ones_are_made_with_the_new_key() {
    let product = Product::start().await;
    let before = product.send_to("ann@example.com").await;
    product.work().await;
    let (old, new) = (LinkKey::new(KEY.as_bytes()), LinkKey::new(NEW.as_bytes()));
    let link = old.link(product.workspace, before, Link::Unsubscribe);
    rotate(&product.app).await;

    assert_eq!(product.app.link_key().read_link(&link), Some((product.workspace, before, Link::Unsubscribe)));
    let tag = Some(old.recipient_tag(before, "ann@example.com"));
    let local_part = old.local_part(ReturnPurpose::Bounce, product.workspace, before, tag);
    let address = product.app.return_address(&format!("{local_part}@bounce.sandbox.test")).await.unwrap().unwrap();
    assert_eq!((address.message_id, address.recipient), (before, tag));

    let after = product.send_to("bob@example.com").await;
    product.work().await;
    assert_eq!(product.story(after).await, "delivered: Queued Sent Delivered", "it is signed");
    let made = product.app.link_key().link(product.workspace, after, Link::Open);
    assert!(new.read_link(&made).is_some() && old.read_link(&made).is_none());
}

#[tokio::test]
async fn everything_sealed_is_sealed_anew_and_nothing_twice() {
    let product = Product::start().await;
    let hooks = format!("/workspaces/{}/webhooks", product.workspace);
    let body = json!({"url": "https://hooks.example.com/a", "events": ["sent"]});
    let hook = product.bed.post(&product.caller, &hooks, body).await;
    let rotate_secret = format!("{hooks}/{}/rotate-secret", hook["id"].as_str().unwrap());
    assert_eq!(product.bed.post(&product.caller, &rotate_secret, Value::Null).await.summary(), "200");
    let (all, old) = opened_by(&product, KEY).await;
    assert!(all >= 2 && old == all, "{all} {old}");

    rotate(&product.app).await;
    assert_eq!(opened_by(&product, NEW).await, (all, 0));
    let report = admin::reseal(&product.app).await.unwrap();
    assert_eq!((report.domains, report.webhooks, report.unreadable), (1, 1, 0));
    assert_eq!(opened_by(&product, NEW).await, (all, all));
    // The previous secret of the webhook as well.
    let id = hook["id"].as_str().unwrap().parse().unwrap();
    let stored = product.store.webhook(product.workspace, id).await.unwrap().unwrap().record;
    let (previous, _) = stored.previous_secret.as_ref().unwrap();
    let opened = Vault::new(NEW.as_bytes()).open(&stored.secret_place(), previous).unwrap();
    assert_eq!(opened, hook["secret"].as_str().unwrap());
    assert_eq!(admin::reseal(&product.app).await.unwrap().records(), 0, "nothing is sealed twice");
}

#[tokio::test]
async fn secrets_of_second_factors_are_sealed_anew() {
    let bed = Bed::start();
    bed.user("ann@example.com").await;
    let token =
        bed.post(&Caller::Anonymous, "/auth/login", json!({"email": "ann@example.com", "password": PASSWORD})).await;
    let token = token["token"].as_str().unwrap();
    let caller = bed.app.authenticate(token).await.unwrap();
    let made = bed.post(&caller, "/auth/factors", json!({"kind": "totp"})).await;
    let secret = TotpSecret::from_base32(made["secret"].as_str().unwrap()).unwrap();
    assert_eq!(opened_by(&bed, KEY).await, (1, 1));
    rotate(&bed.app).await;
    let report = admin::reseal(&bed.app).await.unwrap();
    assert_eq!((report.factors, report.records(), report.unreadable), (1, 1, 0));
    assert_eq!(opened_by(&bed, NEW).await, (1, 1));
    let confirm = format!("/auth/factors/{}/confirm", made["id"].as_str().unwrap());
    let code = secret.code_at(bed.app.now());
    assert_eq!(bed.post(&caller, &confirm, json!({"code": code})).await.summary(), "200");
    assert_eq!(admin::reseal(&bed.app).await.unwrap().records(), 0);
}

#[tokio::test]
async fn a_key_that_another_process_does_not_hold_is_not_switched_to() {
    let product = Product::start().await;
    assert!(!admin::switch_secret_key(&product.app, &NEW).await.unwrap());
    assert_eq!(opened_by(&product, KEY).await.0, opened_by(&product, KEY).await.1);
    rotate(&product.app).await;
    assert!(admin::switch_secret_key(&product.app, &NEW).await.unwrap(), "it is so already");
}

#[tokio::test]
async fn after_a_rotation_a_process_starts_with_the_new_key_or_not_at_all() {
    let product = Product::start().await;
    rotate(&product.app).await;
    let start = |ring: KeyRing| App::builder(Arc::clone(&product.store), ring).build();
    assert!(matches!(start(KEY.into()).await, Err(KeyRefused::WrongKey)));
    // In either order: the database decides which key encrypts.
    for ring in [both(), both().led_by(1), NEW.into()] {
        assert_eq!(*start(ring).await.unwrap().secret_keys().first(), NEW);
    }
}

#[tokio::test]
async fn a_provider_may_call_at_the_address_from_before_a_rotation() {
    let provider: Arc<dyn Transport> = CallingProvider::new();
    let carriers = vec![(Channel::Sms, "twilio", provider)];
    let bed = Bed::build(Arc::new(NoResolver), Arc::new(MemoryFetch::default()), carriers);
    let (bed, workspace, owner) = bed.and_owner().await;
    let config = json!({"account_sid": "AC1", "auth_token": "secret", "sender": "ACME"});
    let channels = format!("/workspaces/{workspace}/channels");
    let body = json!({"provider": "twilio", "config": config});
    let shown = bed.put(&owner, &format!("{channels}/sms"), body.clone()).await;
    let before = shown["callback_url"].as_str().unwrap().to_owned();
    assert_eq!(called(&bed.app, &before).await, 200);

    rotate(&bed.app).await;
    assert_eq!(called(&bed.app, &before).await, 200);
    assert_eq!(admin::reseal(&bed.app).await.unwrap().channels, 1);
    assert_eq!(opened_by(&bed, NEW).await, (1, 1));
    assert_eq!(called(&bed.app, &before).await, 200);
    let shown = bed.put(&owner, &format!("{channels}/sms"), body).await;
    let after = shown["callback_url"].as_str().unwrap();
    assert_ne!(after, before);
    assert_eq!(called(&bed.app, after).await, 200);
    // Other settings have another callback address, whichever key made it.
    let other =
        json!({"provider": "twilio", "config": {"account_sid": "AC2", "auth_token": "secret", "sender": "ACME"}});
    assert_eq!(bed.put(&owner, &format!("{channels}/sms"), other).await.status, 200);
    for address in [before.as_str(), after] {
        assert_eq!(called(&bed.app, address).await, 404);
    }
}

/// Calls a callback address of text messages as the provider does; returns the status of the answer.
async fn called(app: &App, url: &str) -> u16 {
    let token = url.rsplit('/').next().unwrap();
    let headers = HeaderMap::from_iter([("x-signature".parse().unwrap(), HeaderValue::from_static("secret"))]);
    let body = Bytes::from(json!({"receipts": [{"id": "SM1", "status": "delivered"}]}).to_string());
    let call = CallbackCall { method: &Method::POST, query: None, headers: &headers, body: &body };
    let Some(target) = app.callback_target("sms", token) else { return 404 };
    match app.receive_callback(target, token, call).await {
        Ok(reply) => reply.status.as_u16(),
        Err(error) => Error::status(&error).as_u16(),
    }
}

#[tokio::test]
async fn whoever_was_copied_before_a_rotation_is_found_when_erased_after() {
    let product = Product::start().await;
    let contacts = format!("/workspaces/{}/contacts", product.workspace);
    let upserted = product.bed.post(&product.caller, &contacts, json!({"email": "ann@example.com"})).await;
    let id = upserted["id"].as_str().unwrap();
    let body =
        json!({"channel": "email", "to": "bob@example.com", "cc": ["ann@example.com"], "subject": "s", "text": "t"});
    let message = product.send(&body).await;
    product.work().await;
    rotate(&product.app).await;
    let erased = product.bed.delete(&product.caller, &format!("{contacts}/{id}")).await;
    assert!(erased.status < 300, "{}", erased.body);
    product.work().await;
    let stored = product.store.message_with_content(product.workspace, message).await.unwrap().unwrap();
    assert!(!format!("{stored:?}").contains("ann@example.com"));
}
