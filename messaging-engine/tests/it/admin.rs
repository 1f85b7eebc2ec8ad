//! Administration without HTTP: users, workspaces, keys, and the setup of `dev`.

use std::time::Duration;

use messaging_core::domain::channel::Channel;
use messaging_core::domain::mail::sending_domain::DomainStatus;
use messaging_core::domain::security::ip_block::IpBlock;
use messaging_core::scope::Scope;
use messaging_engine::admin::{self, DEV_EMAIL};
use messaging_engine::caller::Caller;
use messaging_engine::ops::PageQuery;
use messaging_engine::ops::keys::ApiKeyInput;
use serde_json::json;

use crate::bed::{Bed, PASSWORD, fault};

fn faults(error: &messaging_engine::Error) -> String {
    let body = error.to_body("r");
    let list = body["error"]["details"]["errors"].as_array().cloned().unwrap_or_default();
    let list: Vec<_> = list.iter().map(fault).collect();
    format!("{} {}", error.code(), list.join(" "))
}

async fn signs_in(bed: &Bed, email: &str, password: &str) -> bool {
    let body = json!({"email": email, "password": password});
    bed.post(&Caller::Anonymous, "/auth/login", body).await.status == 200
}

#[tokio::test]
async fn a_user_is_created_once_and_then_changed() {
    let bed = Bed::start();
    let created = admin::create_user(&bed.app, "Ann@Localhost", None, Some("Ann".to_owned())).await.unwrap();
    assert_eq!((created.email.as_str(), created.name.as_deref()), ("ann@localhost", Some("Ann")));
    assert_eq!(
        serde_json::to_value(&created).unwrap(),
        json!({"id": created.id, "email": "ann@localhost", "name": "Ann", "operator": false, "created_at": "2026-01-31T09:15:00.000Z"})
    );
    assert!(!signs_in(&bed, "ann@localhost", PASSWORD).await);

    let again = admin::create_user(&bed.app, "ann@localhost", Some(PASSWORD.to_owned()), None).await.unwrap();
    assert_eq!(again, created);
    assert!(signs_in(&bed, "ann@localhost", PASSWORD).await);
    let again = admin::create_user(&bed.app, "ann@localhost", None, Some("Ann Lee".to_owned())).await.unwrap();
    assert_eq!((again.id, again.name.as_deref()), (created.id, Some("Ann Lee")));
    assert!(signs_in(&bed, "ann@localhost", PASSWORD).await);
}

#[tokio::test]
async fn each_rule_of_a_user() {
    let bed = Bed::start();
    let check = async |email: &str, password: Option<&str>, name: Option<&str>, expected: &str| {
        let result =
            admin::create_user(&bed.app, email, password.map(ToOwned::to_owned), name.map(ToOwned::to_owned)).await;
        assert_eq!(result.map_or_else(|error| faults(&error), |_| "ok".to_owned()), expected);
    };
    check("a@b", Some("a fine horse"), None, "ok").await;
    check("a@b", Some("äöüßäöüßäöüß"), None, "ok").await;
    check("a@b", Some("a fine hors"), None, "validation_failed /password too_short").await;
    check("a@b", Some(&"xy".repeat(101)), None, "validation_failed /password too_long").await;
    check("ab", Some(""), Some(""), "validation_failed /email invalid_format /password required /name required").await;
    check("a@b", None, Some(&"x".repeat(200)), "ok").await;
    check("a@b", None, Some(&"x".repeat(201)), "validation_failed /name too_long").await;
}

#[tokio::test]
async fn a_workspace_needs_an_owner_that_exists() {
    let bed = Bed::start();
    let refused = admin::create_workspace(&bed.app, "", "nobody@example.com").await.unwrap_err();
    assert_eq!(faults(&refused), "validation_failed /name required /owner not_found");
    bed.user("ann@example.com").await;
    let workspace = admin::create_workspace(&bed.app, "Acme", "ANN@example.com").await.unwrap();
    assert_eq!((workspace.name.as_str(), workspace.plan.as_str()), ("Acme", "free"));
    let ann = bed.sign_in("ann@example.com").await;
    let me = bed.get(&ann, "/auth/me").await;
    assert_eq!(me["workspaces"].as_array().map(Vec::len), Some(1));
    let known = &me["workspaces"][0];
    assert_eq!((&known["workspace_id"], &known["role"]), (&json!(workspace.id), &json!("owner")));
}

#[tokio::test]
async fn a_key_is_created_listed_and_revoked() {
    let (bed, workspace, _) = Bed::with_owner().await;
    let block: IpBlock = "10.0.0.0/8".parse().unwrap();
    let input = ApiKeyInput::new("backend", [Scope::MessagesSend]).ip_allowlist([block]);
    let created = admin::create_key(&bed.app, workspace, &input).await.unwrap();
    let text = created.key.clone().unwrap();
    assert!(bed.app.authenticate(text.expose()).await.is_ok());
    assert!(!format!("{created:?}").contains(text.expose()));
    let mut unnamed = input;
    unnamed.name.clear();
    assert_eq!(
        faults(&admin::create_key(&bed.app, workspace, &unnamed).await.unwrap_err()),
        "validation_failed /name required"
    );

    let page = admin::list_keys(&bed.app, workspace, &PageQuery::default()).await.unwrap();
    assert_eq!((page.data.len(), page.data[0].id, page.data[0].key.clone()), (1, created.id, None));

    let revoked = admin::revoke_key(&bed.app, created.id).await.unwrap();
    assert_eq!(revoked.revoked_at, Some(created.created_at));
    assert!(bed.app.authenticate(text.expose()).await.is_err());
    bed.clock.advance(Duration::from_secs(9));
    let again = admin::revoke_key(&bed.app, created.id).await.unwrap();
    assert_eq!(again.revoked_at, revoked.revoked_at);

    let unknown = "key_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap();
    assert_eq!(admin::revoke_key(&bed.app, unknown).await.unwrap_err().code(), "not_found");
    let nowhere = "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap();
    assert_eq!(admin::list_keys(&bed.app, nowhere, &PageQuery::default()).await.unwrap_err().code(), "not_found");
}

#[tokio::test]
async fn dev_is_prepared_once() {
    let bed = Bed::start();
    let first = admin::prepare_dev(&bed.app).await.unwrap();
    let password = first.console_password.clone().unwrap();
    assert!(signs_in(&bed, DEV_EMAIL, password.expose()).await);
    let key = bed.app.authenticate(first.api_key.clone().unwrap().expose()).await.unwrap();
    let page = bed.get(&key, "/workspaces").await;
    assert_eq!((&page["data"][0]["id"], &page["data"][0]["name"]), (&json!(first.workspace_id), &json!("Dev")));
    let domains = bed.app.sending_domains(first.workspace_id).await.unwrap();
    assert_eq!((domains[0].domain.as_str(), domains[0].status), ("sandbox.test", DomainStatus::Verified));
    assert!(first.from_email.ends_with("@sandbox.test"));
    let provider = bed.app.provider(first.workspace_id, Channel::Email).await.unwrap().unwrap();
    assert_eq!(provider.name, "sandbox");

    let operator = bed.sign_in_with(DEV_EMAIL, password.expose()).await;
    assert_eq!(bed.get(&operator, "/auth/me").await["operator"], true);
    admin::set_operator(&bed.app, DEV_EMAIL, false).await.unwrap();
    let second = admin::prepare_dev(&bed.app).await.unwrap();
    let operator = bed.sign_in_with(DEV_EMAIL, password.expose()).await;
    assert_eq!(bed.get(&operator, "/auth/me").await["operator"], true, "given again");
    let mut without_secrets = first;
    (without_secrets.console_password, without_secrets.api_key) = (None, None);
    assert_eq!(second, without_secrets);
}

#[tokio::test]
async fn dev_uses_a_user_that_is_there() {
    let bed = Bed::start();
    admin::create_user(&bed.app, DEV_EMAIL, Some(PASSWORD.to_owned()), None).await.unwrap();
    let setup = admin::prepare_dev(&bed.app).await.unwrap();
    assert!(setup.console_password.is_none() && setup.api_key.is_some());
    assert!(signs_in(&bed, DEV_EMAIL, PASSWORD).await);
}

#[tokio::test]
async fn two_starts_at_the_same_moment_prepare_one_dev() {
    let bed = Bed::start();
    let (first, second) = tokio::join!(admin::prepare_dev(&bed.app), admin::prepare_dev(&bed.app));
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!(first.workspace_id, second.workspace_id);
    assert_ne!(first.api_key.is_some(), second.api_key.is_some());
    assert_ne!(first.console_password.is_some(), second.console_password.is_some());
}
