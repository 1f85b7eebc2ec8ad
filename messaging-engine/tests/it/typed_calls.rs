//! Calls with typed values: they are processed in the same way as calls with bytes.

use http::Method;
use messaging_core::ids::WorkspaceId;
use messaging_core::scope::Scope;
use messaging_engine::ops::PageQuery;
use messaging_engine::ops::health::GetHealth;
use messaging_engine::ops::keys::{ApiKeyInput, CreateApiKey};
use messaging_engine::ops::lists::{CreateList, GetList, ListInput, ListLists, ListPatch, ListPath, UpdateList};
use messaging_engine::ops::messages::{GetMessage, MessagePath, SendMessage};
use messaging_engine::{Caller, Error, Message, admin};
use serde_json::{Value, json};

use crate::bed::{Bed, Call, fault};
use crate::support::Product;

/// `422 workspace_id required`
fn summary<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    let error = result.unwrap_err();
    let body = error.to_body("req_test");
    let code = body["error"]["code"].as_str().unwrap();
    let faults = body["error"]["details"]["errors"].as_array();
    let mut faults: Vec<_> = faults.into_iter().flatten().map(fault).collect();
    faults.sort();
    [error.status().as_u16().to_string(), code.to_owned()].into_iter().chain(faults).collect::<Vec<_>>().join(" ")
}

async fn another_workspace(bed: &Bed) -> WorkspaceId {
    admin::create_workspace(&bed.app, "Other", "owner@acme.com").await.unwrap().id
}

#[tokio::test]
async fn a_repetition_is_answered_as_the_first_call() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let make = |name: &str| {
        bed.app.run(CreateList).body(ListInput::new(name)).workspace(workspace).idempotency_key("list-1").by(&owner)
    };
    let first = make("Customers").await.unwrap();
    bed.clock.advance(std::time::Duration::from_mins(1));
    assert_eq!(make("Customers").await.unwrap(), first);
    assert_eq!(summary(make("Others").await), "422 idempotency_key_reused");

    // The same idempotency key in a call with bytes, and a list that was created by one.
    let target = format!("/workspaces/{workspace}/lists");
    let call = |name: &str, key| {
        let body = json!({ "name": name });
        Call::new(&owner, Method::POST, &target).body(&body).key(key)
    };
    let reply = bed.call(call("Customers", "list-1")).await;
    assert_eq!((reply.summary().as_str(), &reply.body), ("201 replayed", &serde_json::to_value(&first).unwrap()));
    let reply = bed.call(call("Third", "list-3")).await;
    let third = bed.app.run(CreateList).body(ListInput::new("Third")).workspace(workspace).idempotency_key("list-3");
    assert_eq!(serde_json::to_value(third.by(&owner).await.unwrap()).unwrap(), reply.body);
    let lists = bed.app.run(ListLists).workspace(workspace).by(&owner).await.unwrap();
    assert_eq!(lists.data.len(), 2);

    let bad = bed.app.run(CreateList).body(ListInput::new("n")).workspace(workspace).idempotency_key("a b");
    assert_eq!(summary(bad.by(&owner).await), "400 invalid_idempotency_key");
}

#[tokio::test]
async fn a_secret_is_answered_again() {
    let (bed, workspace, _) = Bed::with_owner().await;
    let operator = Caller::Operator(Some(workspace));
    let make = || {
        let input = ApiKeyInput::new("k", [Scope::MessagesSend]).rate_limit(7);
        bed.app.run(CreateApiKey).body(input).idempotency_key("key-1").by(&operator)
    };
    let (first, again) = (make().await.unwrap(), make().await.unwrap());
    assert_eq!(first.key.unwrap().expose(), again.key.unwrap().expose());
}

#[tokio::test]
async fn a_call_names_its_workspace_or_its_caller_does() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let anyone = Caller::Operator(None);
    let missing = "422 validation_failed workspace_id required";
    assert_eq!(summary(bed.app.run(CreateList).body(ListInput::new("n")).by(&anyone).await), missing);
    let message = || Message::email("ann@example.com").subject("Hi").text("…");
    assert_eq!(summary(bed.app.send(message(), &anyone).await), missing);
    // A person may have several.
    assert_eq!(summary(bed.app.run(CreateList).body(ListInput::new("n")).by(&owner).await), missing);
    bed.app.run(GetHealth).by(&anyone).await.unwrap();

    let key = bed.key(workspace, &["*"]).await;
    for (caller, named) in
        [(&key, None), (&key, Some(workspace)), (&anyone, Some(workspace)), (&owner, Some(workspace))]
    {
        let call = bed.app.run(CreateList).body(ListInput::new("n"));
        let call = if let Some(named) = named { call.workspace(named) } else { call };
        call.by(caller).await.unwrap();
    }
}

#[tokio::test]
async fn another_workspace_is_refused() {
    let (bed, workspace, _) = Bed::with_owner().await;
    let other = another_workspace(&bed).await;
    let list = bed.app.run(CreateList).body(ListInput::new("n")).workspace(other).by(&Caller::Operator(None)).await;
    let path = ListPath { workspace_id: other, id: list.unwrap().id };
    let refused = "403 workspace_forbidden";
    let message = || Message::email("ann@example.com").subject("Hi").text("…");
    for caller in [bed.key(workspace, &["*"]).await, Caller::Operator(Some(workspace))] {
        let app = &bed.app;
        let call = app.run(CreateList).body(ListInput::new("n")).workspace(other);
        assert_eq!(summary(call.by(&caller).await), refused, "{caller:?}");
        assert_eq!(summary(app.run(SendMessage).body(message()).workspace(other).by(&caller).await), refused);
        assert_eq!(summary(app.run(GetList).path(path).by(&caller).await), refused);
        // The workspace of the call and that of the path must be the same.
        assert_eq!(summary(app.run(GetList).path(path).workspace(workspace).by(&caller).await), refused);
        // The id of another workspace in one's own is not there.
        let mixed = ListPath { workspace_id: workspace, ..path };
        assert_eq!(summary(app.run(GetList).path(mixed).by(&caller).await), "404 not_found");
        assert!(app.run(ListLists).by(&caller).await.unwrap().data.is_empty());
    }
    assert_eq!(
        summary(bed.app.run(ListLists).workspace(other).by(&Caller::Anonymous).await),
        "401 missing_credentials"
    );
}

#[tokio::test]
async fn values_are_checked_like_bytes() {
    let product = Product::start().await;
    let (app, caller) = (&product.app, &product.caller);
    for (name, expected) in [("", "/name required"), ("a\0b", "/name invalid_format")] {
        let made = app.run(CreateList).body(ListInput::new(name)).by(caller).await;
        assert_eq!(summary(made), format!("422 validation_failed {expected}"), "{name:?}");
    }
    // A backslash before the letters is no escape.
    app.run(CreateList).body(ListInput::new(r"a\u0000b")).by(caller).await.unwrap();
    let query = PageQuery::new().limit(0);
    assert_eq!(summary(app.run(ListLists).query(query).by(caller).await), "422 validation_failed limit out_of_range");

    // Faults that are found by look-ups are reported together with those of the rules.
    let broken = Message::email("nobody").subject("Hi").text("…").template_id("tpl_01HF7YAT00PJMZ00WXZQRGJXC4");
    let broken = broken.tag("");
    let expected = "422 validation_failed /tags/0 too_short /template_id not_found /to invalid_format";
    assert_eq!(summary(app.send(broken, caller).await), expected);
}

#[tokio::test]
async fn a_message_put_together_is_the_one_that_is_sent() {
    let product = Product::start().await;
    let message = Message::email("ann@example.com")
        .subject("Hi")
        .text("Hello, Ann.")
        .cc("cc@example.com")
        .header("X-Order", "17")
        .metadata("order", 17)
        .tag("welcome");
    let sent = json!({
        "channel": "email", "to": "ann@example.com", "subject": "Hi", "text": "Hello, Ann.",
        "cc": ["cc@example.com"], "headers": {"X-Order": "17"}, "metadata": {"order": 17}, "tags": ["welcome"],
    });
    assert_eq!(serde_json::to_value(&message).unwrap(), sent);
    let typed = product.app.send(message.clone(), &product.caller).await.unwrap().message_id;
    let with_file = product.app.send(message.attachment("a.txt", "file"), &product.caller).await.unwrap().message_id;
    let bytes = product.send(&sent).await;
    product.work().await;
    let report = async |id| {
        let report = product.app.run(GetMessage).path(MessagePath { id }).by(&product.caller).await.unwrap();
        let Value::Object(mut report) = serde_json::to_value(report).unwrap() else { panic!("an object") };
        let kinds: Vec<_> = report["events"].as_array().unwrap().iter().map(|event| event["type"].clone()).collect();
        report.retain(|name, _| !["id", "message_id", "events"].contains(&name.as_str()));
        (report, kinds)
    };
    assert_eq!(report(typed).await, report(bytes).await);
    assert_eq!(report(typed).await.1.last(), report(with_file).await.1.last());
    assert!(product.story(typed).await.starts_with("delivered: Queued Sent Delivered"));
}

#[tokio::test]
async fn keys_of_operators_are_of_their_workspace() {
    let (bed, workspace, _) = Bed::with_owner().await;
    let other = another_workspace(&bed).await;
    let body = |workspace| {
        let call = bed.app.run(CreateList).body(ListInput::new("n")).idempotency_key("k").workspace(workspace);
        call.by(&Caller::Operator(None))
    };
    assert_ne!(body(workspace).await.unwrap().id, body(other).await.unwrap().id);
    // The path of this operation does not tell the workspaces apart.
    let event = json!({"name": "signed_up", "contact": {"external_id": "u1"}});
    for workspace in [workspace, other] {
        let caller = Caller::Operator(Some(workspace));
        let reply = bed.call(Call::new(&caller, Method::POST, "/events").body(&event).key("k")).await;
        assert_eq!(reply.summary(), "202");
    }
}

#[tokio::test]
async fn a_call_runs_again_when_its_data_changed() {
    let (bed, workspace, _) = Bed::with_owner().await;
    let operator = Caller::Operator(Some(workspace));
    let id = bed.app.run(CreateList).body(ListInput::new("n")).by(&operator).await.unwrap().id;
    let apps = [bed.app.clone(), bed.another_process(), bed.another_process()];
    let path = ListPath { workspace_id: workspace, id };
    let calls = (0..30).map(|n| {
        let patch: ListPatch = serde_json::from_value(json!({"name": format!("name {n}")})).unwrap();
        apps[n % 3].run(UpdateList).path(path).body(patch).by(&operator)
    });
    for updated in futures_util::future::join_all(calls).await {
        updated.unwrap();
    }
}
