//! Contract section 10.

use messaging_core::ids::WorkspaceId;
use messaging_engine::caller::Caller;
use serde_json::{Value, json};

use crate::bed::{Bed, Reply};

async fn bed() -> (Bed, WorkspaceId, Caller) {
    let (bed, workspace, _) = Bed::with_owner().await;
    let key = bed.key(workspace, &["contacts:write", "pii:read"]).await;
    (bed, workspace, key)
}

fn list(workspace: WorkspaceId) -> String {
    format!("/workspaces/{workspace}/suppressions")
}

async fn add(bed: &Bed, key: &Caller, workspace: WorkspaceId, channel: &str, address: &str, reason: &str) -> Reply {
    let body = json!({"channel": channel, "address": address, "reason": reason});
    bed.post(key, &list(workspace), body).await
}

/// The addresses of a page.
fn addresses(page: &Reply) -> Vec<&str> {
    page["data"].as_array().unwrap().iter().map(|item| item["address"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_address_is_listed_once_and_its_reason_only_rises() {
    let (bed, workspace, key) = bed().await;
    let first = add(&bed, &key, workspace, "email", "Ann@Example.com", "manual").await;
    assert_eq!(first.status, 201);
    assert_eq!(
        first.body,
        json!({"id": first["id"], "channel": "email", "address": "ann@example.com", "reason": "manual",
            "detail": null, "source": "api", "created_at": "2026-01-31T09:15:00.000Z"})
    );
    for (reason, becomes) in [
        ("unsubscribe", "manual"),
        ("manual", "manual"),
        ("bounce", "bounce"),
        ("invalid", "bounce"),
        ("complaint", "complaint"),
    ] {
        let again = add(&bed, &key, workspace, "email", "ANN@example.com", reason).await;
        assert_eq!((again.status, &again["reason"], &again["id"]), (200, &json!(becomes), &first["id"]), "{reason}");
    }
    let page = bed.get(&key, &list(workspace)).await;
    assert_eq!((addresses(&page), &page["data"][0]["reason"]), (vec!["ann@example.com"], &json!("complaint")));
}

#[tokio::test]
async fn both_spellings_of_a_domain_are_one_address() {
    let (bed, workspace, key) = bed().await;
    let first = add(&bed, &key, workspace, "email", "Ann@B\u{dc}CHER.example", "manual").await;
    assert_eq!((first.status, &first["address"]), (201, &json!("ann@xn--bcher-kva.example")));
    for spelling in ["ann@xn--bcher-kva.example", "ANN@XN--BCHER-KVA.EXAMPLE", "ann@b\u{fc}cher.example"] {
        let again = add(&bed, &key, workspace, "email", spelling, "manual").await;
        assert_eq!((again.status, &again["id"]), (200, &first["id"]), "{spelling}");
    }
    // Not the letter k, whatever Unicode lower-cases it to.
    add(&bed, &key, workspace, "email", "\u{212a}im@example.com", "manual").await;
    assert_eq!(add(&bed, &key, workspace, "email", "kim@example.com", "manual").await.status, 201);
}

#[tokio::test]
async fn addresses_have_the_format_of_their_channel() {
    let (bed, workspace, key) = bed().await;
    for (channel, good, bad) in [
        ("email", "a@b.co", "a@b"),
        ("sms", "+14155550123", "14155550123"),
        ("whatsapp", "+14155550123", "a@b.co"),
        ("viber", "+14155550123", "+0"),
        ("telegram", "@someone", "@abc"),
        ("push", "token", "a b"),
    ] {
        assert_eq!(add(&bed, &key, workspace, channel, good, "manual").await.summary(), "201", "{channel}");
        let refused = add(&bed, &key, workspace, channel, bad, "manual").await.summary();
        assert_eq!(refused, "422 /address invalid_format", "{channel}");
    }
    for (body, expected) in [
        (json!({}), "422 /address required /channel required /reason required"),
        (json!({"channel": "email", "address": "", "reason": "manual"}), "422 /address required"),
        (json!({"channel": "fax", "address": "a@b.co", "reason": "manual"}), "422 /channel unknown_value"),
        (
            json!({"channel": "email", "address": "a@b", "reason": "x"}),
            "422 /address invalid_format /reason unknown_value",
        ),
        (json!({"channel": "email", "address": "a@b"}), "422 /address invalid_format /reason required"),
        (json!({"channel": "email", "address": "a@b.co", "reason": null}), "422 /reason required"),
        (json!({"channel": "push", "address": "t".repeat(4097), "reason": "manual"}), "422 /address too_long"),
    ] {
        assert_eq!(bed.post(&key, &list(workspace), body).await.summary(), expected);
    }
    assert_eq!(bed.get(&key, &list(workspace)).await["data"].as_array().unwrap().len(), 6);
}

#[tokio::test]
async fn email_and_phone_are_masked_without_the_scope_and_filters_take_them_in_clear() {
    let (bed, workspace, key) = bed().await;
    let blind = bed.key(workspace, &["contacts:write"]).await;
    for (channel, address) in [("email", "ann@example.com"), ("sms", "+14155550123"), ("telegram", "@someone")] {
        add(&bed, &key, workspace, channel, address, "manual").await;
    }
    let page = bed.get(&blind, &list(workspace)).await;
    assert_eq!(addresses(&page), ["@someone", "+*******0123", "a***@example.com"]);
    let again = add(&bed, &blind, workspace, "email", "ann@example.com", "bounce").await;
    assert_eq!((again.status, &again["address"]), (200, &json!("a***@example.com")));
    for (query, expected) in [
        ("address=Ann%40example.com", vec!["a***@example.com"]),
        ("address=%2B14155550123", vec!["+*******0123"]),
        ("address=a***%40example.com", vec![]),
        ("channel=telegram", vec!["@someone"]),
        ("reason=manual", vec!["@someone", "+*******0123"]),
        ("reason=manual&channel=sms&address=%2B14155550123", vec!["+*******0123"]),
        ("reason=bounce&channel=sms", vec![]),
    ] {
        let page = bed.get(&blind, &format!("{}?{query}", list(workspace))).await;
        assert_eq!((addresses(&page), &page["next_cursor"]), (expected, &Value::Null), "{query}");
    }
    let refused = bed.get(&blind, &format!("{}?channel=fax&reason=x&limit=201", list(workspace))).await;
    assert_eq!(refused.summary(), "422 channel unknown_value limit out_of_range reason unknown_value");
}

#[tokio::test]
async fn a_deleted_address_is_free_again() {
    let (bed, workspace, key) = bed().await;
    let (other_bed_workspace, other) = {
        let workspace =
            messaging_engine::admin::create_workspace(&bed.app, "Other", "owner@acme.com").await.unwrap().id;
        (workspace, bed.key(workspace, &["*"]).await)
    };
    let first = add(&bed, &key, workspace, "email", "ann@example.com", "complaint").await;
    let path = |workspace| format!("{}/{}", list(workspace), first["id"].as_str().unwrap());
    assert_eq!(bed.delete(&other, &path(other_bed_workspace)).await.summary(), "404 not_found");
    assert_eq!(bed.delete(&key, &path(workspace)).await.summary(), "204");
    assert_eq!(bed.delete(&key, &path(workspace)).await.summary(), "404 not_found");
    assert_eq!(bed.delete(&key, &format!("{}/nobody", list(workspace))).await.summary(), "404 not_found");
    let again = add(&bed, &key, workspace, "email", "ann@example.com", "unsubscribe").await;
    assert_eq!((again.status, &again["reason"]), (201, &json!("unsubscribe")));
    assert_ne!(again["id"], first["id"]);
}

#[tokio::test]
async fn a_workspace_that_is_not_there_is_told_before_anything_else() {
    let (bed, ..) = bed().await;
    let nowhere: WorkspaceId = "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap();
    let operator = Caller::Operator(Some(nowhere));
    assert_eq!(add(&bed, &operator, nowhere, "email", "a@b", "manual").await.summary(), "404 not_found");
}
