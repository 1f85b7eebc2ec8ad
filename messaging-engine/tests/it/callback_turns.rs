//! Callbacks of providers while the store hangs: some wait, the others are refused with `Retry-After`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
use messaging_core::domain::channel::Channel;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::Transport;
use messaging_core::ports::resolver::NoResolver;
use messaging_engine::caller::Caller;
use messaging_engine::services::callbacks::CallbackCall;
use messaging_engine::{App, Error, admin};
use messaging_testing::{CallingProvider, MemoryFetch};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::bed::Bed;
use crate::mortal::MortalStore;

/// Calls of one workspace that are worked on at a time: a quarter of all.
const AT_A_TIME: usize = 16;
/// Calls of one workspace that wait for their turn.
const WAITING: usize = 64;

/// Sets a workspace's provider of text messages; returns the token of its callback address.
async fn set(bed: &Bed, workspace: WorkspaceId) -> String {
    let caller = Caller::Operator(Some(workspace));
    let config = json!({"account_sid": "AC1", "auth_token": "secret", "sender": "ACME"});
    let path = format!("/workspaces/{workspace}/channels/sms");
    let shown = bed.put(&caller, &path, json!({"provider": "twilio", "config": config})).await;
    shown["callback_url"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()
}

/// Sends a receipt for an unknown message; returns the status of the answer, and its `Retry-After` in seconds.
async fn call(app: App, token: String, number: usize) -> (u16, Option<u64>) {
    let headers = HeaderMap::from_iter([("x-signature".parse().unwrap(), HeaderValue::from_static("secret"))]);
    let body = json!({"receipts": [{"id": format!("SM{number}"), "status": "delivered"}]}).to_string();
    let call = CallbackCall { method: &Method::POST, query: None, headers: &headers, body: &Bytes::from(body) };
    let target = app.callback_target("sms", &token).unwrap();
    match app.receive_callback(target, &token, call).await {
        Ok(reply) => (reply.status.as_u16(), None),
        Err(error) => (Error::status(&error).as_u16(), error.retry_after()),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_store_hangs_a_workspace_has_80_calls_and_others_have_their_own() {
    const CALLS: usize = 200;
    let provider: Arc<dyn Transport> = CallingProvider::new();
    let carriers = vec![(Channel::Sms, "twilio", provider)];
    let bed = Bed::build(Arc::new(NoResolver), Arc::new(MemoryFetch::default()), carriers);
    let (bed, workspace, _) = bed.and_owner().await;
    let other = admin::create_workspace(&bed.app, "Other", "owner@acme.com").await.unwrap().id;
    let (token, of_other) = (set(&bed, workspace).await, set(&bed, other).await);
    let store = MortalStore::immortal(Arc::clone(&bed.store));
    let app = bed.another_process_on(store.clone());

    store.hang();
    let (told, mut answers) = mpsc::unbounded_channel();
    let spawn = |token: &String, number: usize| {
        let (app, token, told) = (app.clone(), token.clone(), told.clone());
        tokio::spawn(async move { told.send(call(app, token, number).await) });
    };
    (0..CALLS).for_each(|number| spawn(&token, number));
    let refused = CALLS - AT_A_TIME - WAITING;
    for number in 0..refused {
        let answer = timeout(Duration::from_secs(15), answers.recv()).await.expect("a refusal at once").unwrap();
        assert_eq!(answer, (503, Some(5)), "{number}");
    }
    spawn(&of_other, CALLS);
    assert!(answers.try_recv().is_err(), "the others are neither refused nor answered");
    store.go_on();
    for number in 0..=AT_A_TIME + WAITING {
        assert_eq!(answers.recv().await, Some((200, None)), "{number}");
    }
    // Each accepted receipt has a job that looks for its message, and no refused one has.
    let kept = bed.store.jobs_of(&["settle_receipt"], CALLS).await.unwrap().len();
    assert_eq!(kept, AT_A_TIME + WAITING + 1);
    assert_eq!(call(app, token, 0).await.0, 200, "and there is room again");
}
