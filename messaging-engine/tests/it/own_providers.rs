//! Providers that a program adds: their settings are checked, encrypted and masked like those of any other.

use std::sync::Arc;

use async_trait::async_trait;
use http::Method;
use messaging_core::domain::channel::Channel;
use messaging_core::ports::Transport;
use messaging_core::ports::transport::{Acceptance, Outcome, Outgoing, Response, Sent, TransportError};
use messaging_engine::AnsweredRequest;
use serde_json::{Value, json};

use crate::bed::Bed;

#[derive(Debug)]
struct Archive;

#[async_trait]
impl Transport for Archive {
    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError> {
        let kept = Outcome::accepted(Acceptance::Delivered, Response::of_text("kept"));
        Ok(Sent { outcomes: vec![kept; outgoing.recipients.len()], ..Sent::default() })
    }

    fn settings_schema(&self) -> Option<Value> {
        Some(json!({
            "type": "object", "required": ["bucket", "key"],
            "properties": {
                "bucket": {"type": "string", "minLength": 3},
                "key": {"type": "string", "minLength": 8, "writeOnly": true},
                "retries": {"type": "integer", "minimum": 0, "maximum": 5, "x-detail": true},
            },
        }))
    }
}

#[tokio::test]
async fn settings_of_an_own_provider_are_checked_sealed_and_masked() {
    let bed = Bed::carrying("archive", Arc::new(Archive));
    let (bed, workspace, _) = bed.and_owner().await;
    let key = bed.key(workspace, &["*"]).await;
    let path = format!("/workspaces/{workspace}/channels/email");
    let put = async |config: Value| bed.put(&key, &path, json!({"provider": "archive", "config": config})).await;

    for (config, expected) in [
        (json!({}), "422 /config/bucket required /config/key required"),
        (json!({"bucket": "ab", "key": "12345678"}), "422 /config/bucket too_short"),
        (json!({"bucket": "mail", "key": "12345678", "retries": 6}), "422 /config/retries out_of_range"),
        (json!({"bucket": "mail", "key": "12345678", "buckets": 1}), "422 /config/buckets unknown_field"),
        (json!({"bucket": "mail", "key": 12_345_678}), "422 /config/key invalid_type"),
        (json!({"bucket": "mail", "key": "***"}), "422 /config/key required"),
    ] {
        let summary = put(config.clone()).await.summary();
        assert!(summary.starts_with(expected), "{config}: {summary}");
    }

    let set = put(json!({"bucket": "mail", "key": "a secret", "retries": 3})).await;
    assert_eq!(set.summary(), "200");
    assert_eq!(set["config"], json!({"bucket": "mail", "key": "***", "retries": 3}));
    assert_eq!(set["configured"], true);
    let stored = bed.store.channel(workspace, Channel::Email).await.unwrap().unwrap();
    assert!(!stored.record.config["key"].as_str().unwrap().contains("a secret"), "sealed");
    let provider = bed.app.provider(workspace, Channel::Email).await.unwrap().unwrap();
    assert_eq!(provider.settings["key"], "a secret");

    // It is kept while nothing changes that says where it goes.
    assert_eq!(put(json!({"bucket": "mail", "key": "***", "retries": 4})).await.summary(), "200");
    let elsewhere = put(json!({"bucket": "elsewhere", "key": "***"})).await;
    assert_eq!(elsewhere.summary(), "422 /config/key required");
    assert_eq!(bed.app.provider(workspace, Channel::Email).await.unwrap().unwrap().settings["key"], "a secret");
}

#[tokio::test]
async fn secrets_of_an_own_provider_are_in_no_log() {
    let (bed, workspace, owner) = Bed::carrying("archive", Arc::new(Archive)).and_owner().await;
    let path = format!("/workspaces/{workspace}/channels/email");
    let mut refused = AnsweredRequest::new(workspace, "req-1".to_owned(), Method::PUT, path, "setChannel");
    refused.is_write = true;
    refused.status = 422;
    refused.request = r#"{"provider":"archive","config":{"bucket":"ab","key":"12345678"}}"#.into();
    bed.app.log_request(refused);
    bed.app.requests_written().await;
    let shown = bed.get(&owner, &format!("/workspaces/{workspace}/requests/req-1")).await;
    assert_eq!(shown["request"], json!({"provider": "archive", "config": {"bucket": "ab", "key": "•••"}}));
}

#[tokio::test]
async fn a_name_without_a_transport_is_no_provider() {
    let (bed, workspace, _) = Bed::with_owner().await;
    let key = bed.key(workspace, &["*"]).await;
    let path = format!("/workspaces/{workspace}/channels/email");
    let set = bed.put(&key, &path, json!({"provider": "archive"})).await;
    assert_eq!(set.summary(), "422 /provider unknown_value");
}
