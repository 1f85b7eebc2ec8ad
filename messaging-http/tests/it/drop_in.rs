//! Contract section 18: the send calls of two other services.

use messaging_core::domain::channel::address::EmailAddress;
use messaging_core::ports::transport::{Content, Email, Outgoing};
use messaging_core::scope::Scope;
use serde_json::{Value, json};

use crate::harness::TestServer;
use crate::messages::sending_server;
use crate::wire::Response;

const FILE: &str = "cG5n";

async fn left(server: &TestServer) -> Vec<Outgoing> {
    server.app.run_until_idle().await.unwrap();
    let mut left = server.transport.take();
    left.sort_by_key(|out| out.message_id);
    left
}

async fn left_one(server: &TestServer) -> Email {
    let out = left(server).await.remove(0);
    let Content::Email(email) = out.content else { panic!("an email") };
    *email
}

fn mail(to: &str) -> Value {
    json!({"from": "Acme <shop@acme.com>", "to": to, "subject": "Hi", "html": "<p>Hello</p>"})
}

fn sendgrid(personalizations: Value) -> Value {
    json!({"personalizations": personalizations, "from": {"email": "shop@acme.com", "name": "Acme"}, "subject": "Hi",
        "content": [{"type": "text/plain", "value": "Hello"}, {"type": "text/html", "value": "<p>Hello</p>"}]})
}

fn to(address: &str) -> Value {
    json!([{"to": [{"email": address}]}])
}

async fn keyed(server: &TestServer, path: &str, token: &str, key: &str, body: &Value) -> Response {
    let authorization = format!("Bearer {token}");
    let headers = [("authorization", &*authorization), ("content-type", "application/json"), ("idempotency-key", key)];
    server.request("POST", path, &headers, Some(&body.to_string())).await
}

#[tokio::test]
async fn an_email_for_resend_is_ours_member_by_member() {
    let server = sending_server().await;
    let key = server.key(&[Scope::MessagesSend]).await;
    let body = json!({
        "from": "Acme, \"A\" <shop@acme.com>", "to": ["Ann <ann@example.com>", "bob@example.com"],
        "cc": "cid@example.com", "bcc": ["dan@example.com"], "reply_to": ["Help <help@acme.com>"], "subject": "Order 17",
        "html": "<img src=\"cid:logo\">", "text": "Thanks", "headers": {"X-Order": "17"},
        "tags": [{"name": "kind", "value": "order"}, {"name": "plain"}],
        "attachments": [{"filename": "l.png", "content": FILE, "content_type": "image/png", "content_id": "logo"},
            {"filename": "a.txt", "content": [97, 98]},
            {"filename": "b.txt", "content": {"type": "Buffer", "data": [99]}}],
        "template": null,
    });
    let answer = server.post("/emails", &key, &body.to_string()).await;
    assert_eq!(answer.status, 200);
    let id = answer.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(answer.json(), json!({"id": id}), "nothing else");
    assert!(answer.header("ratelimit").is_some() && answer.header("x-request-id").is_some());
    let out = left(&server).await;
    let recipients: Vec<_> = out.iter().flat_map(|out| &out.recipients).map(ToString::to_string).collect();
    for address in ["ann@example.com", "bob@example.com", "cid@example.com", "dan@example.com"] {
        assert!(recipients.contains(&address.to_owned()), "{recipients:?}");
    }
    let Content::Email(email) = &out[0].content else { panic!("an email") };
    assert_eq!((email.from.name.as_deref(), email.from.address.as_str()), (Some("Acme, \"A\""), "shop@acme.com"));
    assert_eq!((email.to.as_str(), email.cc.len()), ("ann@example.com", 2));
    assert_eq!(email.reply_to.as_ref().map(EmailAddress::as_str), Some("help@acme.com"));
    assert_eq!((email.subject.as_str(), email.text.as_deref()), ("Order 17", Some("Thanks")));
    assert!(email.headers.contains(&("X-Order".to_owned(), "17".to_owned())));
    let files: Vec<_> = email.attachments.iter().map(|file| (&*file.content, file.content_id.as_deref())).collect();
    assert_eq!(files, [(&b"png"[..], Some("logo")), (b"ab", None), (b"c", None)]);
    let shown = server.get(&format!("/v1/messages/{id}"), &key).await.json();
    assert_eq!(shown["tags"], json!(["kind:order", "plain"]));
}

#[tokio::test]
async fn an_email_for_resend_may_wait_for_its_time() {
    let server = sending_server().await;
    let key = server.key(&[Scope::MessagesSend]).await;
    let mut body = mail("ann@example.com");
    body["scheduled_at"] = json!("2026-01-31T10:15:00Z");
    let id = server.post("/emails", &key, &body.to_string()).await.json()["id"].as_str().unwrap().to_owned();
    let shown = server.get(&format!("/v1/messages/{id}"), &key).await.json();
    assert_eq!(shown["scheduled_for"], "2026-01-31T10:15:00.000Z");
    body["scheduled_at"] = json!("in 1 hour");
    let refused = server.post("/emails", &key, &body.to_string()).await;
    let message = refused.json()["message"].as_str().unwrap().to_owned();
    assert!(refused.status == 422 && message.contains("`scheduled_at`"), "{message}");
}

#[tokio::test]
async fn a_batch_for_resend_is_accepted_as_a_whole_or_not_at_all() {
    let server = sending_server().await;
    let key = server.key(&[Scope::MessagesSend]).await;
    let body = json!([mail("ann@example.com"), mail("bob@example.com")]);
    let answer = server.post("/emails/batch", &key, &body.to_string()).await;
    let ids = answer.json()["data"].as_array().unwrap().iter().map(|one| one["id"].clone()).collect::<Vec<_>>();
    assert_eq!((answer.status, answer.json()), (200, json!({"data": [{"id": ids[0]}, {"id": ids[1]}]})));
    assert_eq!(answer.header("ratelimit").map(|text| text.contains("r=99998;")), Some(true), "a token for each");
    assert_eq!(left(&server).await.len(), 2);
    let broken = json!([mail("ann@example.com"), mail("nobody")]);
    let refused = server.post("/emails/batch", &key, &broken.to_string()).await;
    assert_eq!(refused.status, 422);
    assert!(refused.json()["message"].as_str().unwrap().starts_with("Invalid `1.to` field: "), "{}", refused.json());
    for (body, status) in [(json!([]), 422), (json!(vec![mail("a@example.com"); 101]), 422), (json!({}), 400)] {
        assert_eq!(server.post("/emails/batch", &key, &body.to_string()).await.status, status);
    }
    let authorization = format!("Bearer {key}");
    let permissive = [
        ("authorization", &*authorization),
        ("content-type", "application/json"),
        ("x-batch-validation", "permissive"),
    ];
    let refused = server.request("POST", "/emails/batch", &permissive, Some(&body.to_string())).await;
    assert_eq!(refused.status, 422);
    assert!(left(&server).await.is_empty(), "nothing was sent");
}

#[tokio::test]
async fn what_resend_knows_and_we_do_not_is_refused_by_name() {
    let server = sending_server().await;
    let key = server.key(&[Scope::MessagesSend]).await;
    let with = |name: &str, value: Value| {
        let mut body = mail("ann@example.com");
        body[name] = value;
        body
    };
    for (body, name, field) in [
        (with("topic_id", json!("x")), "validation_error", "topic_id"),
        (with("react", json!("x")), "validation_error", "react"),
        (
            with("attachments", json!([{"filename": "a", "path": "https://x"}])),
            "invalid_attachment",
            "attachments.0.path",
        ),
        (with("attachments", json!([{"content": FILE}])), "missing_required_field", "attachments.0.filename"),
        (
            with("attachments", json!([{"filename": "a", "content": "!"}])),
            "invalid_attachment",
            "attachments.0.content",
        ),
        (
            with("attachments", json!([{"filename": "a", "content": [256]}])),
            "invalid_attachment",
            "attachments.0.content",
        ),
        (with("tags", json!([{"value": "x"}])), "missing_required_field", "tags.0.name"),
        (with("template", json!({"id": "tpl_x", "more": 1})), "validation_error", "template.more"),
        (with("template", json!({"id": "tpl_x"})), "validation_error", "template.id"),
        (with("reply_to", json!(["a@acme.com", "b@acme.com"])), "validation_error", "reply_to.1"),
        (with("from", Value::Null), "missing_required_field", "from"),
        (with("from", json!("Acme")), "invalid_from_address", "from"),
        (with("from", json!("")), "invalid_from_address", "from"),
        (with("reply_to", json!("")), "validation_error", "reply_to"),
        (with("to", json!([])), "missing_required_field", "to"),
        (with("to", json!(["a@example.com", 7])), "validation_error", "to.1"),
        (with("to", json!(["a@example.com", "nobody"])), "validation_error", "to.1"),
        (with("cc", json!(["nobody"])), "validation_error", "cc.0"),
        (with("headers", json!({"To": "x"})), "validation_error", "headers.To"),
    ] {
        let refused = server.post("/emails", &key, &body.to_string()).await;
        let told = refused.json();
        assert_eq!((refused.status, &told["statusCode"], &told["name"]), (422, &json!(422), &json!(name)), "{told}");
        assert!(told["message"].as_str().unwrap().contains(&format!("`{field}` field")), "{told} {field}");
        assert_eq!(told.as_object().unwrap().len(), 3);
    }
    assert!(left(&server).await.is_empty(), "nothing was sent");
}

#[tokio::test]
async fn refusals_have_the_shape_and_the_names_of_the_service() {
    let server = sending_server().await;
    let (sender, reader) = (server.key(&[Scope::MessagesSend]).await, server.key(&[Scope::MessagesRead]).await);
    let spent = server.key_with(&[Scope::MessagesSend], |key| key.rate_limit = 1).await;
    let good = mail("ann@example.com").to_string();
    server.post("/emails", &spent, &good).await;
    let mut elsewhere = mail("ann@example.com");
    elsewhere["from"] = json!("shop@else.where");
    let elsewhere = elsewhere.to_string();
    let mut foreign = sendgrid(to("ann@example.com"));
    foreign["from"] = json!({"email": "shop@else.where"});
    let (plain, foreign) = (sendgrid(to("ann@example.com")).to_string(), foreign.to_string());
    for (token, body, status, name, other, other_status) in [
        ("nobody", &good, 401, "invalid_api_key", &plain, 401),
        (&*reader, &good, 403, "restricted_api_key", &plain, 403),
        (&*spent, &good, 429, "rate_limit_exceeded", &plain, 429),
        (&*sender, &"{".to_owned(), 400, "validation_error", &"[]".to_owned(), 400),
        (&*sender, &elsewhere, 403, "validation_error", &foreign, 403),
    ] {
        let refused = server.post("/emails", token, body).await;
        let told = refused.json();
        assert_eq!(
            (refused.status, &told["statusCode"], &told["name"]),
            (status, &json!(status), &json!(name)),
            "{told}"
        );
        assert!(told["message"].is_string());
        assert_eq!(refused.header("www-authenticate").is_some(), status == 401);
        assert_eq!(refused.header("retry-after").is_some(), status == 429);
        let refused = server.post("/v3/mail/send", token, other).await;
        let told = refused.json();
        assert_eq!(refused.status, other_status, "{told}");
        assert!(told["errors"][0]["message"].is_string(), "{told}");
        assert_eq!((&told["errors"][0]["field"], &told["errors"][0]["help"]), (&Value::Null, &Value::Null));
    }
    let none = server.request("POST", "/emails", &[("content-type", "application/json")], Some(&good)).await;
    assert_eq!((none.status, &none.json()["name"]), (401, &json!("missing_api_key")));
    let authorization = format!("Bearer {sender}");
    let plain = server.request("POST", "/emails", &[("authorization", &authorization)], Some(&good)).await;
    assert_eq!((plain.status, &plain.json()["statusCode"]), (415, &json!(415)));
    assert_eq!(left(&server).await.len(), 1, "only the first");
}

#[tokio::test]
async fn a_key_of_256_characters_sends_once() {
    let server = sending_server().await;
    let key = server.key(&[Scope::MessagesSend]).await;
    let long = "k".repeat(256);
    let body = mail("ann@example.com");
    let first = keyed(&server, "/emails", &key, &long, &body).await;
    let second = keyed(&server, "/emails", &key, &long, &body).await;
    assert_eq!((second.status, second.json()), (200, first.json()));
    assert_eq!(second.header("idempotent-replayed"), Some("true"));
    let other = keyed(&server, "/emails", &key, &long, &mail("bob@example.com")).await;
    assert_eq!((other.status, &other.json()["name"]), (409, &json!("invalid_idempotent_request")));
    let refused = keyed(&server, "/emails", &key, &"k".repeat(257), &body).await;
    assert_eq!((refused.status, &refused.json()["name"]), (400, &json!("invalid_idempotency_key")));
    assert!(refused.json()["message"].as_str().unwrap().contains("1 to 256"), "{}", refused.json());
    let grid = sendgrid(to("ann@example.com"));
    let first = keyed(&server, "/v3/mail/send", &key, &long, &grid).await;
    let second = keyed(&server, "/v3/mail/send", &key, &long, &grid).await;
    assert_eq!((first.status, second.status), (202, 202));
    assert_eq!(first.header("x-message-id"), second.header("x-message-id"));
    assert_eq!(left(&server).await.len(), 2, "one each");
}

#[tokio::test]
async fn each_personalization_for_sendgrid_is_a_message() {
    let server = sending_server().await;
    let key = server.key(&[Scope::MessagesSend]).await;
    let mut body = sendgrid(json!([
        {"to": [{"email": "ann@example.com", "name": "Ann"}, {"email": "amy@example.com"}], "cc": [{"email": "cid@example.com"}],
         "bcc": [{"email": "dan@example.com"}], "subject": "For Ann", "headers": {"X-Order": "1"}, "custom_args": {"order": "1"}},
        {"to": [{"email": "bob@example.com"}], "from": {"email": "bob-desk@acme.com"}},
    ]));
    body["reply_to"] = json!({"email": "help@acme.com", "name": "Help"});
    body["headers"] = json!({"X-Order": "0", "X-All": "yes"});
    body["custom_args"] = json!({"order": "0", "shop": "x"});
    body["categories"] = json!(["order", "shop"]);
    body["attachments"] = json!([
        {"filename": "l.png", "content": FILE, "type": "image/png", "disposition": "inline", "content_id": "logo"},
        {"filename": "a.txt", "content": FILE, "content_id": "unused"}]);
    body["mail_settings"] = json!({"footer": {"enable": false}, "sandbox_mode": {"enable": false}});
    body["tracking_settings"] = json!({"click_tracking": {"enable": false, "enable_text": false}, "open_tracking": {"enable": true},
        "subscription_tracking": {"enable": false}});
    let answer = server.post("/v3/mail/send", &key, &body.to_string()).await;
    assert_eq!((answer.status, answer.body.len()), (202, 0), "{:?}", String::from_utf8_lossy(&answer.body));
    let ids: Vec<_> = answer.header("x-message-id").unwrap().split(", ").map(ToOwned::to_owned).collect();
    let out = left(&server).await;
    let emails: Vec<_> = ["ann@example.com", "bob@example.com"]
        .iter()
        .map(|to| {
            let of = |out: &Outgoing| match &out.content {
                Content::Email(email) if email.to.as_str() == *to => Some(email.clone()),
                _ => None,
            };
            out.iter().find_map(of).unwrap()
        })
        .collect();
    let header = |at: usize, name: &str| emails[at].headers.iter().find(|one| one.0 == name).map(|one| one.1.clone());
    assert_eq!((emails[0].subject.as_str(), emails[1].subject.as_str()), ("For Ann", "Hi"));
    assert_eq!((emails[0].cc.len(), emails[1].cc.len()), (2, 0));
    assert_eq!((header(0, "X-Order").unwrap(), header(1, "X-Order").unwrap()), ("1".to_owned(), "0".to_owned()));
    assert_eq!((emails[0].from.name.as_deref(), emails[1].from.address.as_str()), (Some("Acme"), "bob-desk@acme.com"));
    assert_eq!(emails[1].from.name, None, "the name is that of another sender");
    assert_eq!(emails[1].reply_to.as_ref().map(EmailAddress::as_str), Some("help@acme.com"));
    assert_eq!(emails[0].attachments[0].content_id.as_deref(), Some("logo"));
    assert_eq!(emails[0].attachments[1].content_id, None, "it is not shown by the HTML");
    assert!(emails[0].html.as_ref().unwrap().contains("/t/o/"), "the pixel that was asked for");
    let shown = server.get(&format!("/v1/messages/{}", ids[0]), &key).await.json();
    assert_eq!((&shown["tags"], &shown["metadata"]), (&json!(["order", "shop"]), &json!({"order": "1", "shop": "x"})));
    let shown = server.get(&format!("/v1/messages/{}", ids[1]), &key).await.json();
    assert_eq!(shown["metadata"], json!({"order": "0", "shop": "x"}));
}

#[tokio::test]
async fn the_sandbox_mode_of_sendgrid_checks_and_sends_nothing() {
    let server = sending_server().await;
    let key = server.key(&[Scope::MessagesSend]).await;
    let mut body = sendgrid(to("ann@example.com"));
    body["mail_settings"] = json!({"sandbox_mode": {"enable": true}});
    let answer = server.post("/v3/mail/send", &key, &body.to_string()).await;
    assert_eq!((answer.status, answer.body.len(), answer.header("x-message-id")), (200, 0, None));
    body["personalizations"] = to("nobody");
    assert_eq!(server.post("/v3/mail/send", &key, &body.to_string()).await.status, 400);
    assert!(left(&server).await.is_empty());
    assert_eq!(server.get("/v1/messages", &key).await.json()["data"], json!([]));
}

#[tokio::test]
async fn what_sendgrid_knows_and_we_do_not_is_refused_by_name() {
    let server = sending_server().await;
    let key = server.key(&[Scope::MessagesSend]).await;
    let with = |name: &str, value: Value| {
        let mut body = sendgrid(to("ann@example.com"));
        body[name] = value;
        body
    };
    for (body, field) in [
        (with("asm", json!({"group_id": 1})), "asm"),
        (with("ip_pool_name", json!("x")), "ip_pool_name"),
        (with("batch_id", json!("x")), "batch_id"),
        (with("sections", json!({})), "sections"),
        (with("mail_settings", json!({"footer": {"enable": true, "text": "x"}})), "mail_settings.footer"),
        (with("tracking_settings", json!({"ganalytics": {"enable": true}})), "tracking_settings.ganalytics"),
        (
            with("tracking_settings", json!({"click_tracking": {"enable": true, "enable_text": true}})),
            "tracking_settings.click_tracking.enable_text",
        ),
        (with("content", json!([{"type": "text/calendar", "value": "x"}])), "content.0.type"),
        (
            with("content", json!([{"type": "text/html", "value": "x"}, {"type": "text/html", "value": "y"}])),
            "content.1.type",
        ),
        (with("send_at", json!("tomorrow")), "send_at"),
        (with("send_at", json!(i64::MAX)), "send_at"),
        (with("personalizations", json!([])), "personalizations"),
        (with("personalizations", json!([{"subject": "x"}])), "personalizations.0.to"),
        (with("personalizations", json!([{"to": [{"name": "x"}]}])), "personalizations.0.to.0.email"),
        (
            with("personalizations", json!([{"to": [{"email": "a@b.co"}], "substitutions": {}}])),
            "personalizations.0.substitutions",
        ),
        (
            with(
                "personalizations",
                json!([{"to": [{"email": "a@b.co"}]}, {"to": [{"email": "a@b.co"}, {"email": "nobody"}]}]),
            ),
            "personalizations.1.to.1.email",
        ),
        (with("from", json!({"email": "nobody"})), "from.email"),
        (with("from", json!({"email": ""})), "from.email"),
        (with("reply_to", json!({"email": ""})), "reply_to"),
        (with("reply_to_list", json!([{"email": "a@b.co"}, {"email": "b@b.co"}])), "reply_to_list.1.email"),
        (with("template_id", json!("d-123")), "template_id"),
        (
            with("attachments", json!([{"content": FILE, "filename": "a", "disposition": "x"}])),
            "attachments.0.disposition",
        ),
    ] {
        let refused = server.post("/v3/mail/send", &key, &body.to_string()).await;
        let told = refused.json();
        assert_eq!((refused.status, &told["errors"][0]["field"]), (400, &json!(field)), "{told}");
    }
    assert!(left(&server).await.is_empty(), "nothing was sent");
}

#[tokio::test]
async fn a_body_that_personalizations_multiply_is_bounded() {
    let server = sending_server().await;
    let key = server.key(&[Scope::MessagesSend]).await;
    let people: Value = (0..100).map(|n| json!({"to": [{"email": format!("u{n}@example.com")}]})).collect();
    let mut body = sendgrid(people);
    body["content"][0]["value"] = json!("x".repeat(300 << 10));
    let refused = server.post("/v3/mail/send", &key, &body.to_string()).await;
    assert_eq!((refused.status, refused.json()["errors"][0]["field"].clone()), (413, Value::Null));
    body["content"][0]["value"] = json!("x".repeat(1 << 10));
    assert_eq!(server.post("/v3/mail/send", &key, &body.to_string()).await.status, 202);
    assert_eq!(left(&server).await.len(), 100);
}

#[tokio::test]
async fn one_message_of_a_file_reaches_the_wire_as_it_was() {
    let server = sending_server().await;
    let key = server.key(&[Scope::MessagesSend]).await;
    let mut body = sendgrid(to("ann@example.com"));
    body["attachments"] = json!([{"content": FILE, "filename": "a.bin", "type": "application/x-own"}]);
    assert_eq!(server.post("/v3/mail/send", &key, &body.to_string()).await.status, 202);
    let email = left_one(&server).await;
    assert_eq!(
        (&*email.attachments[0].content, &*email.attachments[0].content_type),
        (&b"png"[..], "application/x-own")
    );
}
