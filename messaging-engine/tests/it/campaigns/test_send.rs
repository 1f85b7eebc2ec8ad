//! Tests of campaigns, and copies of them (contract section 26).

use messaging_core::ports::transport::Content;
use serde_json::{Value, json};

use super::{Shop, template, with};

fn body(to: &[&str], more: Value) -> Value {
    with(json!({"to": to}), more)
}

#[tokio::test]
async fn a_test_says_what_the_campaign_will_and_counts_nowhere() {
    let shop = Shop::start().await;
    shop.contact("old@example.com").await;
    shop.contact("new@example.com").await;
    let html = "<p>Hi {{ contact.email }} <a href=\"https://acme.com/a\">a</a></p>";
    let made = template(json!({"html": html, "subject": "For {{ contact.email }}"}));
    let template = shop.made("/templates", made).await;
    let id = shop.campaign(json!({"template_id": template})).await;
    let reply = shop.request(&format!("/campaigns/{id}/test"), body(&["old@example.com"], json!({}))).await;
    assert_eq!(reply.summary(), "202", "{}", reply.body);
    let message = reply["message_ids"][0].as_str().unwrap().to_owned();
    shop.app.run_until_idle().await.unwrap();
    let sent = shop.transport.take();
    let Content::Email(email) = &sent[0].content else { panic!("no email") };
    assert_eq!(email.subject, "[Test] For new@example.com");
    let text = email.html.as_deref().unwrap();
    assert!(text.contains("Hi new@example.com") && text.contains("https://acme.com/a"), "{text}");
    assert!(!text.contains("/t/o/") && !text.contains("/t/c/"), "{text}");
    assert!(text.contains("/u/preview"), "{text}");
    assert!(email.headers.iter().all(|(name, _)| !name.starts_with("List-Unsubscribe")));
    let shown = shop.get(&shop.caller, &format!("/messages/{message}")).await;
    assert_eq!(
        (&shown["status"], &shown["campaign_id"], &shown["tags"]),
        (&json!("delivered"), &Value::Null, &json!(["test"]))
    );
    assert_eq!(shop.read(&format!("/campaigns/{id}/stats")).await["sent"], json!(0));
    let overview = shop.read("/analytics/overview").await;
    assert_eq!(overview["totals"]["sent"], json!(0), "{}", overview.body);
    assert_eq!(shop.read(&format!("/campaigns/{id}")).await["status"], json!("draft"));
}

#[tokio::test]
async fn a_test_goes_to_members_and_contacts_alone() {
    let shop = Shop::start().await;
    shop.contact("ann@example.com").await;
    shop.user("stranger@acme.com").await;
    shop.member(shop.workspace, "editor@acme.com", "editor").await;
    let id = shop.campaign(json!({})).await;
    let path = format!("/campaigns/{id}/test");
    let reply = shop.request(&path, body(&["editor@acme.com", "ANN@example.com"], json!({}))).await;
    assert_eq!(reply.summary(), "202", "{}", reply.body);
    assert_eq!(reply["message_ids"].as_array().unwrap().len(), 2);
    for (sent, faults) in [
        (
            body(&["stranger@acme.com", "nobody@example.com"], json!({})),
            vec![("/to/0", "not_allowed"), ("/to/1", "not_allowed")],
        ),
        (body(&["ann@example.com", "ann@example.com"], json!({})), vec![("/to/1", "duplicate")]),
        (body(&["+14155550123"], json!({})), vec![("/to/0", "invalid_format")]),
        (body(&[], json!({})), vec![("/to", "too_short")]),
        (body(&["ann@example.com"], json!({"contact_id": "con_1"})), vec![("/contact_id", "not_found")]),
        (body(&["ann@example.com"], json!({"variant": "B"})), vec![("/variant", "not_found")]),
    ] {
        let reply = shop.request(&path, sent.clone()).await;
        assert_eq!(reply.status, 422, "{sent}");
        let errors = reply.body["error"]["details"]["errors"].as_array().unwrap().clone();
        let found: Vec<_> =
            errors.iter().map(|one| (one["pointer"].as_str().unwrap(), one["code"].as_str().unwrap())).collect();
        assert_eq!(found, faults, "{sent}");
    }
    let key = shop.key(shop.workspace, &["campaigns:write"]).await;
    let reply = shop.post(&key, &shop.path(&path), body(&["ann@example.com"], json!({}))).await;
    assert_eq!(reply.body, json!({"error": "scope required: messages:send"}));
}

#[tokio::test]
async fn a_variant_is_tested_as_a_contact() {
    let shop = Shop::start().await;
    let ann = shop.contact("ann@example.com").await;
    shop.contact("bob@example.com").await;
    let variants = json!([{"name": "A", "subject": "One"}, {"name": "B", "subject": "Two for {{ contact.email }}"}]);
    let id = shop.campaign(json!({"kind": "ab_test", "variants": variants})).await;
    for (more, subject) in
        [(json!({"variant": "B", "contact_id": ann}), "[Test] Two for ann@example.com"), (json!({}), "[Test] One")]
    {
        let reply = shop.request(&format!("/campaigns/{id}/test"), body(&["bob@example.com"], more)).await;
        assert_eq!(reply.summary(), "202", "{}", reply.body);
        shop.app.run_until_idle().await.unwrap();
        let sent = shop.transport.take();
        let Content::Email(email) = &sent[0].content else { panic!("no email") };
        assert_eq!(email.subject, subject);
    }
}

#[tokio::test]
async fn a_copy_is_a_draft_with_what_the_author_gave() {
    let shop = Shop::start().await;
    let settings = json!({"rate_limit": 60, "quiet_hours": {"start": "22:00", "end": "08:00"}});
    let id = shop.campaign(json!({"subject_override": "Hi", "settings": settings})).await;
    shop.contact("ann@example.com").await;
    let sent = shop.request(&format!("/campaigns/{id}/schedule"), json!({"send_now": true})).await;
    assert_eq!(sent.summary(), "202", "{}", sent.body);
    let copy = shop.request(&format!("/campaigns/{id}/duplicate"), json!({})).await;
    assert_eq!(copy.summary(), "201", "{}", copy.body);
    let original = shop.read(&format!("/campaigns/{id}")).await;
    for member in ["channel", "kind", "template_id", "subject_override", "audience", "variants", "settings"] {
        assert_eq!(copy[member], original[member], "{member}");
    }
    assert_ne!(copy["id"], original["id"]);
    assert_eq!((&copy["name"], &copy["status"]), (&json!("Spring (copy)"), &json!("draft")));
    assert_eq!(
        (&copy["scheduled_at"], &copy["started_at"], &copy["recipients"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    assert_eq!(shop.request("/campaigns/cmp_1/duplicate", json!({})).await.status, 404);
}
