//! Signing keys: rotated, opened, made by `dev`.

use std::sync::Arc;
use std::time::Duration;

use messaging_core::domain::mail::sending_domain::{DomainStatus, RecordStatus};
use messaging_engine::admin;
use messaging_engine::caller::Caller;
use messaging_engine::services::UnusableKey;
use serde_json::{Value, json};

use super::Domains;

fn selectors(domain: &Value) -> Vec<String> {
    domain["dkim"].as_array().unwrap().iter().map(|key| key["selector"].as_str().unwrap().to_owned()).collect()
}

/// The selectors that sign.
async fn signing(domains: &Domains, id: &str) -> Vec<String> {
    let stored = domains.stored(id).await;
    domains.bed.app.signers(&stored).unwrap().iter().map(|signer| signer.selector.clone()).collect()
}

#[tokio::test]
async fn new_keys_sign_once_they_are_published_and_old_ones_stay_a_week() {
    let domains = Domains::start().await;
    let created = domains.create(json!({"domain": "acme.test"})).await.body;
    let id = created["id"].as_str().unwrap().to_owned();
    let old = selectors(&created);
    domains.dns.publish(&created);
    assert_eq!(domains.verify(&id).await["status"], "verified");
    assert_eq!(signing(&domains, &id).await, old);

    let rotated = domains.act(&id, "rotate-dkim").await;
    assert_eq!(rotated.summary(), "202");
    let all = selectors(&rotated.body);
    assert_eq!((all.len(), &all[..2]), (4, &old[..]), "in the same millisecond as well");
    assert_eq!(rotated["status"], "verified");
    assert_eq!(domains.get(&id).await, rotated.body);
    domains.verify(&id).await;
    assert_eq!(signing(&domains, &id).await, old, "the new ones are not published");

    domains.dns.publish(&rotated.body);
    assert_eq!(selectors(&domains.verify(&id).await), all);
    assert_eq!(signing(&domains, &id).await, all[2..]);

    domains.bed.clock.advance(Duration::from_hours(6 * 24));
    domains.bed.app.run_until_idle().await.unwrap();
    assert_eq!(selectors(&domains.get(&id).await), all);
    domains.bed.clock.advance(Duration::from_hours(24));
    assert_eq!(selectors(&domains.verify(&id).await), all[2..]);
    assert_eq!(signing(&domains, &id).await, all[2..]);
}

#[tokio::test]
async fn a_fourth_pair_of_keys_has_to_wait() {
    let domains = Domains::start().await;
    let id = domains.add("acme.test").await;
    for pairs in [2, 3] {
        let rotated = domains.act(&id, "rotate-dkim").await;
        assert_eq!((rotated.summary(), selectors(&rotated.body).len()), ("202".to_owned(), 2 * pairs - 1));
    }
    let refused = domains.act(&id, "rotate-dkim").await;
    assert_eq!(refused.summary(), "409 in_use");
    assert_eq!(refused["error"]["details"], json!({"by": ["mk01234567"]}));
}

#[tokio::test]
async fn keys_are_opened_once_and_sealed_in_the_store() {
    let domains = Domains::start().await;
    let id = domains.add("acme.test").await;
    let mut stored = domains.stored(&id).await;
    assert_eq!(
        domains.bed.app.signers(&stored).err(),
        Some(UnusableKey),
        "an Ed25519 key alone signs when it is published"
    );
    stored.dkim[0].check.status = RecordStatus::Verified;
    let first = domains.bed.app.signers(&stored).unwrap();
    assert_eq!(first.len(), 1);
    assert_eq!((first[0].domain.as_str(), first[0].selector.as_str()), ("acme.test", "mk01234567"));
    assert!(Arc::ptr_eq(&first[0], &domains.bed.app.signers(&stored).unwrap()[0]));
    // A key of another domain does not open here: nothing of this one leaves unsigned.
    let other = domains.add("other.test").await;
    let mut moved = domains.stored(&other).await;
    moved.dkim[0].check.status = RecordStatus::Verified;
    moved.dkim[0].sealed.clone_from(&stored.dkim[0].sealed);
    for _ in 0..2 {
        assert_eq!(domains.bed.app.signers(&moved).err(), Some(UnusableKey));
    }
}

#[tokio::test]
async fn what_dev_sets_up_has_keys_and_is_never_looked_up() {
    let domains = Domains::start().await;
    let app = &domains.bed.app;
    let workspace = admin::prepare_dev(app).await.unwrap().workspace_id;
    let stored = app.store().domain_by_name(workspace, "sandbox.test").await.unwrap().unwrap();
    assert_eq!(app.signers(&stored.record).unwrap().len(), 2, "both algorithms sign");
    admin::prepare_dev(app).await.unwrap();
    assert_eq!(app.store().domain_by_name(workspace, "sandbox.test").await.unwrap().unwrap(), stored, "once");

    let caller = Caller::Operator(Some(workspace));
    let path = format!("/workspaces/{workspace}/sending-domains/{}", stored.record.id);
    for _ in 0..4 {
        domains.bed.clock.advance(Duration::from_hours(24));
        app.run_until_idle().await.unwrap();
        let looked = domains.bed.post(&caller, &format!("{path}/verify"), json!({})).await;
        assert_eq!((looked.summary(), &looked["status"]), ("200".to_owned(), &json!("verified")));
        assert_eq!(looked["dkim"][0]["status"], "verified");
    }
    assert_eq!(domains.dns.questions(), 0);
    let rotated = domains.bed.post(&caller, &format!("{path}/rotate-dkim"), json!({})).await;
    assert_eq!(rotated.summary(), "202");
    let stored = app.store().domain_by_name(workspace, "sandbox.test").await.unwrap().unwrap().record;
    assert_eq!(stored.status, DomainStatus::Verified);
    let signing: Vec<_> = app.signers(&stored).unwrap().iter().map(|signer| signer.selector.clone()).collect();
    assert_eq!(signing, selectors(&rotated.body)[2..]);
}
