//! The content of messages, and subject and provider in answers about them: contract sections 4 and 4.2.

use std::time::Duration;

use http::Method;
use messaging_core::domain::delivery::attempt::{AttemptOutcome, Dialog};
use messaging_core::ids::{CampaignId, MessageId};
use messaging_core::ports::transport::{Acceptance, Answer, Content, Email, OutcomeClass, ProviderAnswer, Response};
use serde_json::{Value, json};

use crate::bed::{self, Call, Reply};
use crate::support::Product;

async fn content(product: &Product, id: MessageId) -> Reply {
    product.get(&product.caller, &format!("/messages/{id}/content")).await
}

async fn created(product: &Product, what: &str, body: Value) -> String {
    let path = format!("/workspaces/{}/{what}", product.workspace);
    let reply = product.post(&product.caller, &path, body).await;
    assert_eq!(reply.summary(), "201", "{}", reply.body);
    reply["id"].as_str().unwrap().to_owned()
}

/// The sent emails, each with the id of its message.
fn emails(product: &Product) -> Vec<(MessageId, Email)> {
    let taken = product.transport.take().into_iter().map(|outgoing| match outgoing.content {
        Content::Email(email) => (outgoing.message_id, *email),
        _ => panic!("only emails here"),
    });
    taken.collect()
}

/// Checks that the shown content is that of the sent email.
fn assert_shows(shown: &Reply, email: &Email) {
    assert_eq!(shown.summary(), "200", "{}", shown.body);
    assert_eq!(shown["subject"], email.subject);
    assert_eq!(shown["html"], json!(email.html));
    assert_eq!(shown["text"], json!(email.text));
    let headers = shown["headers"].as_array().unwrap();
    let value = |name: &str| headers.iter().find(|header| header[0] == name).map(|header| header[1].clone());
    assert_eq!(value("Message-ID"), Some(json!(format!("<{}>", email.message_id))));
    assert_eq!(value("To"), Some(json!(email.to.to_string())));
    for (name, text) in &email.headers {
        assert_eq!(value(name), Some(json!(text)), "{name}");
    }
    assert!(value("DKIM-Signature").is_none() && value("Bcc").is_none());
    let length = |part: &str| shown[part].as_str().map_or(0, str::len);
    let files: usize = email.attachments.iter().map(|file| file.content.len()).sum();
    assert_eq!(shown["size"], length("subject") + length("html") + length("text") + files);
}

#[tokio::test]
async fn a_message_shows_its_request_and_what_left() {
    let product = Product::start().await;
    let file = json!({"filename": "a.txt", "content_type": "text/plain", "content_b64": "b25l"});
    let picture =
        json!({"filename": "l.png", "content_type": "image/png", "content_b64": "b25l", "content_id": "logo"});
    let request = json!({
        "channel": "email", "to": "ann@example.com", "cc": ["bob@example.com", "gone@example.com"],
        "bcc": ["quiet@example.com"], "subject": "Order 17", "from_name": "Acme", "reply_to": "help@acme.com",
        "html": "<p>Thanks <a href=\"https://shop.example/\">shop</a></p>", "headers": {"X-Order": "17"},
        "attachments": [file, picture],
    });
    let listed = product
        .suppression("gone@example.com", messaging_core::domain::audience::suppression::SuppressionReason::Manual);
    product.commit([listed].into_iter().collect()).await;
    let id = product.send(&request).await;
    // It shows the content before and after sending.
    let before = content(&product, id).await;
    product.work().await;
    let (of, email) = emails(&product).remove(0);
    assert_eq!(of, id);
    assert_shows(&before, &email);
    let after = content(&product, id).await;
    assert_shows(&after, &email);
    let headers = after["headers"].as_array().unwrap();
    assert!(headers.contains(&json!(["Cc", "bob@example.com"])), "whoever was left out is in no header: {headers:?}");
    assert!(headers[0][1].as_str().unwrap().starts_with("Acme <"), "{headers:?}");
    let mut expected = request;
    expected["attachments"] = json!([{"filename": "a.txt", "content_type": "text/plain", "size": 3},
        {"filename": "l.png", "content_type": "image/png", "size": 3, "content_id": "logo"}]);
    let ids: Vec<_> = email.attachments.iter().map(|file| file.content_id.as_deref()).collect();
    assert_eq!(ids, [None, Some("logo")]);
    assert_eq!(after["request"], expected);
    assert_eq!(after["template"], Value::Null);
    assert_eq!(product.get(&product.caller, &format!("/messages/{id}")).await["subject"], "Order 17");
}

#[tokio::test]
async fn a_message_by_template_shows_what_its_version_made() {
    let product = Product::start().await;
    let template = json!({"name": "t", "channel": "email", "subject": "Hi {{ name }}", "html": "<p>{{ name }}</p>"});
    let template = created(&product, "templates", template).await;
    let send = async |name: Value| {
        let body =
            json!({"channel": "email", "to": "ann@example.com", "template_id": template, "variables": {"name": name}});
        product.send(&body).await
    };
    let id = send(json!("Ann & Bob")).await;
    let path = format!("/workspaces/{}/templates/{template}", product.workspace);
    let bye = json!({"name": "t", "channel": "email", "subject": "Bye", "text": "Bye"});
    let changed = Call::new(&product.caller, Method::PATCH, &path).body(&bye);
    assert_eq!(bed::send(&product.app, changed).await.summary(), "200");
    product.work().await;
    let shown = content(&product, id).await;
    assert_shows(&shown, &emails(&product).remove(0).1);
    assert_eq!(shown["template"], json!({"id": template, "version": 1}));
    assert_eq!(shown["subject"], "Hi Ann & Bob");
    assert!(shown["html"].as_str().unwrap().starts_with("<p>Ann &amp; Bob</p>"), "{}", shown.body);
    assert_eq!(shown["request"]["variables"], json!({"name": "Ann & Bob"}));
    let listed = product.get(&product.caller, "/messages").await;
    assert_eq!(listed["data"][0]["subject"], "Hi Ann & Bob");

    // A message that cannot be rendered has no parts, and is listed all the same.
    let template = json!({"name": "f", "channel": "email", "subject": "{{ n }}", "text": "t"});
    let template = created(&product, "templates", template).await;
    let body = json!({"channel": "email", "to": "ann@example.com", "template_id": template, "variables": {"n": ""}});
    let empty = product.send(&body).await;
    product.work().await;
    let shown = content(&product, empty).await;
    assert_eq!((shown.summary().as_str(), &shown["subject"], &shown["text"]), ("200", &Value::Null, &Value::Null));
}

/// A campaign to Ann and Bob that is sent now, unless its settings hold it.
async fn campaign(product: &Product, settings: Value) -> CampaignId {
    let list = created(product, "lists", json!({"name": "news"})).await;
    for (email, name) in [("ann@example.com", "Ann"), ("bob@example.com", "Bob")] {
        let consent = json!({"marketing_email": true});
        let contact = json!({"email": email, "consent": consent, "list_ids": [list], "attributes": {"given": name}});
        created(product, "contacts", contact).await;
    }
    let html = "<p>Dear {{ given }} <a href=\"https://shop.example/\">shop</a></p>";
    let template = json!({
        "name": "t", "channel": "email", "subject": "For {{ given }}", "html": html, "from_email": "shop@sandbox.test",
    });
    let template = created(product, "templates", template).await;
    let body = json!({
        "name": "Spring", "channel": "email", "template_id": template, "audience": {"list_ids": [list]},
        "settings": settings,
    });
    let id = created(product, "campaigns", body).await;
    let path = format!("/workspaces/{}/campaigns/{id}/schedule", product.workspace);
    assert_eq!(product.post(&product.caller, &path, json!({"send_now": true})).await.summary(), "202");
    product.work().await;
    id.parse().unwrap()
}

#[tokio::test]
async fn a_message_of_a_campaign_shows_what_it_says_before_and_after_it_is_sent() {
    let product = Product::start().await;
    // It waits for the end of the quiet hours.
    let quiet = json!({"quiet_hours": {"start": "08:00", "end": "10:00"}, "utm": {"source": "news"}});
    let id = campaign(&product, quiet).await;
    let listed = product.get(&product.caller, &format!("/messages?campaign_id={id}")).await;
    let waiting: Vec<MessageId> = listed["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["message_id"].as_str().unwrap().parse().unwrap())
        .collect();
    assert_eq!((waiting.len(), emails(&product).len()), (2, 0));
    let mut subjects: Vec<_> = listed["data"].as_array().unwrap().iter().map(|one| one["subject"].clone()).collect();
    subjects.sort_by_key(ToString::to_string);
    assert_eq!(subjects, ["For Ann", "For Bob"]);
    let mut before = Vec::new();
    for one in &waiting {
        before.push(content(&product, *one).await);
    }
    product.pass(Duration::from_hours(2)).await;
    let left = emails(&product);
    assert_eq!(left.len(), 2);
    for (of, email) in left {
        let place = waiting.iter().position(|one| *one == of).unwrap();
        assert_shows(&before[place], &email);
        let after = content(&product, of).await;
        assert_shows(&after, &email);
        assert!(after["html"].as_str().unwrap().contains("https://track.service.test/u/"), "{}", after.body);
        assert_eq!(after["request"]["to"], email.to.to_string());
        assert_eq!(after["request"]["template_id"], after["template"]["id"]);
    }
}

#[tokio::test]
async fn what_was_erased_forgotten_or_is_another_workspaces_has_no_content() {
    let product = Product::start().await;
    let id = campaign(&product, Value::Null).await;
    let listed = product.get(&product.caller, &format!("/messages?campaign_id={id}")).await;
    let of_campaign: MessageId = listed["data"][0]["message_id"].as_str().unwrap().parse().unwrap();
    let contact = listed["data"][0]["contact_id"].as_str().unwrap().to_owned();
    let other: MessageId = listed["data"][1]["message_id"].as_str().unwrap().parse().unwrap();
    let sent = product.send_to("cid@example.com").await;
    product.work().await;
    assert_eq!(content(&product, sent).await.summary(), "200");

    // Both scopes are needed, and a key of another workspace finds nothing.
    for (scopes, expected) in
        [(vec!["messages:send"], 403), (vec!["pii:read"], 403), (vec!["messages:send", "pii:read"], 200)]
    {
        let key = product.key(product.workspace, &scopes).await;
        assert_eq!(product.get(&key, &format!("/messages/{sent}/content")).await.status, expected, "{scopes:?}");
    }
    let elsewhere =
        messaging_engine::admin::create_workspace(&product.app, "Other", "owner@acme.com").await.unwrap().id;
    let stranger = product.key(elsewhere, &["messages:send", "pii:read"]).await;
    for id in [sent, other] {
        assert_eq!(product.get(&stranger, &format!("/messages/{id}/content")).await.summary(), "404 not_found");
    }

    let path = format!("/workspaces/{}/contacts/{contact}", product.workspace);
    let erased = bed::send(&product.app, Call::new(&product.caller, Method::DELETE, &path)).await;
    assert!(erased.status < 300, "{}", erased.body);
    product.work().await;
    assert_eq!(content(&product, of_campaign).await.summary(), "404 not_found");
    assert_eq!(product.get(&product.caller, &format!("/messages/{of_campaign}")).await["subject"], Value::Null);
    assert_eq!(content(&product, other).await.summary(), "200");

    product.store.forget_contents(product.app.now() + Duration::from_hours(1), 1000).await.unwrap();
    assert_eq!(content(&product, sent).await.summary(), "404 not_found");
    let shown = product.get(&product.caller, &format!("/messages/{sent}")).await;
    assert_eq!((shown.summary().as_str(), &shown["subject"]), ("200", &Value::Null));
}

#[tokio::test]
async fn the_provider_and_its_name_for_a_message_are_shown() {
    let product = Product::start().await;
    let path = format!("/workspaces/{}/channels/sms", product.workspace);
    let settings = json!({"provider": "sandbox", "config": {}});
    let put = Call::new(&product.caller, Method::PUT, &path).body(&settings);
    assert_eq!(bed::send(&product.app, put).await.summary(), "200");
    let named = ProviderAnswer { message_id: Some("SM17".to_owned()), ..ProviderAnswer::default() };
    let class = OutcomeClass::Accepted(Acceptance::Delivered);
    let outcome = Answer::new(class, Response::of_text("ok")).provider(named).into();
    product.transport.outcome_next("+14155550100", outcome);
    let sms = product.send(&json!({"channel": "sms", "to": "+14155550100", "text": "t"})).await;
    let facts = async |id: MessageId| {
        let shown = product.get(&product.caller, &format!("/messages/{id}")).await;
        let list = product.get(&product.caller, "/messages").await;
        let id = id.to_string();
        let listed = list["data"].as_array().unwrap().iter().find(|one| one["message_id"] == *id).unwrap().clone();
        for member in ["provider", "provider_message_id", "subject", "fallback_of"] {
            assert!(shown.body.get(member).is_some(), "{member}");
            assert_eq!(shown[member], listed[member], "{member}");
        }
        json!([shown["provider"], shown["provider_message_id"]])
    };
    assert_eq!(facts(sms).await, json!([null, null]));
    product.work().await;
    assert_eq!(facts(sms).await, json!(["sandbox", "SM17"]));

    product.transport.speak_next(Dialog {
        mx: Some("mx.example.com".to_owned()),
        remote_addr: None,
        tls: None,
        tls_failure: None,
        source: None,
        outcome: AttemptOutcome::Delivered,
        transcript: vec!["< 250 ok".to_owned()],
    });
    let email = product.send_to("ann@example.com").await;
    product.work().await;
    assert_eq!(facts(email).await, json!(["sandbox", null]));
}
