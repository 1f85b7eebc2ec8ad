//! Contract sections 4.1 and 11: messages by template.

use http::Method;
use messaging_core::ports::transport::Content;
use messaging_engine::ops::{self, Request};
use serde_json::{Value, json};

use crate::support::Product;

/// Calls an operation by its id.
async fn call(product: &Product, id: &str, path: &[(&str, &Value)], body: Value) -> Value {
    let endpoint = ops::all().iter().find(|endpoint| endpoint.id == id).unwrap();
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    let mut parameters: Vec<_> = path.iter().map(|(name, value)| ((*name).to_owned(), text(value))).collect();
    parameters.push(("workspace_id".to_owned(), product.workspace.to_string()));
    let admitted = product.app.admit(product.caller.clone(), endpoint, &parameters, None).await.unwrap();
    let request = Request {
        path: endpoint.path,
        path_parameters: parameters,
        body: if (endpoint.method)() == Method::DELETE {
            Vec::new().into()
        } else {
            body.to_string().into_bytes().into()
        },
        ..Request::default()
    };
    let answer = admitted.run(request).await.unwrap();
    serde_json::from_slice(&answer.body).unwrap_or(Value::Null)
}

async fn template(product: &Product, members: Value) -> Value {
    let mut body = json!({"name": "t", "channel": "email", "subject": "s"});
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    call(product, "createTemplate", &[], body).await
}

fn by(template: &Value, variables: Value) -> Value {
    json!({"channel": "email", "to": "ann@example.com", "template_id": template["id"], "variables": variables})
}

async fn refused(product: &Product, body: &Value) -> String {
    let error = product.post_message(body, None).await.unwrap_err().to_body("r");
    let first = &error["error"]["details"]["errors"][0];
    match first["pointer"].as_str() {
        Some(pointer) => format!("{pointer} {}", first["code"].as_str().unwrap()),
        None => error["error"]["code"].as_str().unwrap().to_owned(),
    }
}

#[tokio::test]
async fn a_message_says_what_its_template_says() {
    let product = Product::start().await;
    let order = template(&product, json!({
        "subject": "Order {{ order.id }}", "preheader": "For {{ first_name }}",
        "from_name": "Shop", "from_email": "shop@sandbox.test", "reply_to": "help@acme.com",
        "html": "<body><p>Hi {{ first_name }} <{{ contact.email }}> {{ order.note }}</p><a href=\"{{ unsubscribe_url }}\">stop</a> {{ workspace.name }} {{ message_id }}</body>",
    }))
    .await;
    let contact = json!({"email": "ann@example.com", "attributes": {"first_name": "Ann", "order": "not this"}});
    call(&product, "upsertContact", &[], contact).await;
    let mut body = by(&order, json!({"order": {"id": 17, "note": "<b>"}, "unsubscribe_url": "https://evil.example"}));
    for (name, text) in [("subject", "ignored"), ("html", "<p>ignored"), ("text", "ignored")] {
        body[name] = json!(text);
    }
    let message = product.send(&body).await;
    product.work().await;
    assert_eq!(product.story(message).await, "delivered: Queued Sent Delivered");
    assert_eq!(serde_json::to_value(product.report(message).await).unwrap()["template_id"], order["id"]);
    let sent = product.transport.sent();
    let Content::Email(email) = &sent[0].content else { panic!("an email is expected") };
    assert_eq!(email.subject, "Order 17");
    assert_eq!((email.from.name.as_deref(), email.from.address.as_str()), (Some("Shop"), "shop@sandbox.test"));
    assert_eq!(email.reply_to.as_ref().unwrap().as_str(), "help@acme.com");
    let html = email.html.as_deref().unwrap();
    assert!(html.contains("Hi Ann <ann@example.com> &lt;b&gt;</p>"), "{html}");
    assert!(html.contains(">For Ann</div>"), "{html}");
    assert!(html.contains(&format!("Acme {message}")), "{html}");
    assert!(html.contains("/u/") && !html.contains("evil"), "{html}");
    let text = email.text.as_deref().unwrap();
    assert!(text.starts_with("Hi Ann") && text.contains("stop (http") && !text.contains("For Ann"), "{text}");

    let own = json!({"channel": "email", "to": "bob@example.com", "template_id": order["id"], "from_name": "Me", "from_email": "me@sandbox.test"});
    product.send(&own).await;
    product.work().await;
    let sent = product.transport.sent();
    let Content::Email(email) = &sent[1].content else { panic!("an email is expected") };
    assert_eq!((email.from.name.as_deref(), email.from.address.as_str()), (Some("Me"), "me@sandbox.test"));
    assert_eq!(email.subject, "Order");
}

#[tokio::test]
async fn the_version_is_the_one_at_acceptance() {
    let product = Product::start().await;
    let order = template(&product, json!({"text": "first {{ a }}"})).await;
    let before = product.send(&by(&order, json!({"a": 1}))).await;
    call(
        &product,
        "updateTemplate",
        &[("id", &order["id"])],
        json!({"name": "t", "channel": "email", "text": "second {{ a }}"}),
    )
    .await;
    product.send(&by(&order, json!({"a": 2}))).await;
    call(&product, "deleteTemplate", &[("id", &order["id"])], Value::Null).await;
    assert_eq!(refused(&product, &by(&order, json!({}))).await, "/template_id not_found");
    product.work().await;
    let mut texts: Vec<_> = product
        .transport
        .sent()
        .iter()
        .map(|sent| match &sent.content {
            Content::Email(email) => email.text.clone().unwrap(),
            Content::Sms(sms) => sms.text.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    texts.sort();
    assert_eq!(texts, ["first 1", "second 2"]);
    assert_eq!(product.story(before).await, "delivered: Queued Sent Delivered");
}

#[tokio::test]
async fn a_template_that_does_not_fit_is_refused_at_once() {
    let product = Product::start().await;
    let empty = template(&product, json!({})).await;
    assert_eq!(refused(&product, &by(&empty, json!({}))).await, "/template_id required");
    let nameless = template(&product, json!({"subject": null, "text": "x"})).await;
    assert_eq!(refused(&product, &by(&nameless, json!({}))).await, "/template_id required");
    let sms = call(&product, "createTemplate", &[], json!({"name": "t", "channel": "sms", "text": "x"})).await;
    assert_eq!(refused(&product, &by(&sms, json!({}))).await, "/template_id conflict");
    for unknown in ["tpl_01JB3Q8Z5N6W7X8Y9ZABCDEFGH", "nonsense"] {
        assert_eq!(refused(&product, &by(&json!({"id": unknown}), json!({}))).await, "/template_id not_found");
    }
    let good = template(&product, json!({"text": "x"})).await;
    assert_eq!(refused(&product, &by(&good, json!([1]))).await, "/variables invalid_type");
    assert_eq!(refused(&product, &by(&good, json!({"a": "x".repeat(600 << 10)}))).await, "/variables too_large");
    let foreign = template(&product, json!({"text": "x", "from_email": "a@elsewhere.example"})).await;
    assert_eq!(refused(&product, &by(&foreign, json!({}))).await, "sender_domain_not_verified");
}

#[tokio::test]
async fn what_cannot_be_rendered_fails() {
    let product = Product::start().await;
    for (members, variables) in [
        (json!({"text": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"}), json!({})),
        (json!({"text": "{{ a * 3 }}"}), json!({"a": "x"})),
        (json!({"text": "{{ a }}"}), json!({})),
        (json!({"subject": "{{ a }}", "text": "x"}), json!({})),
        (json!({"subject": "{{ a }}", "text": "x"}), json!({"a": "x".repeat(999)})),
    ] {
        let message = product.send(&by(&template(&product, members.clone()).await, variables)).await;
        product.work().await;
        assert_eq!(product.story(message).await, "failed: Queued Failed", "{members}");
        assert_eq!(product.last_meta(message).await["reason"], "render_error");
    }
    let lines = template(&product, json!({"subject": "a {{ x }}", "text": "x"})).await;
    product.send(&by(&lines, json!({"x": "b\r\nBcc: evil@example.com"}))).await;
    product.work().await;
    let sent = product.transport.sent();
    let Content::Email(email) = &sent.last().unwrap().content else { panic!("an email is expected") };
    assert_eq!(email.subject, "a b Bcc: evil@example.com");
}

#[tokio::test]
async fn erasing_a_contact_erases_the_values_too() {
    let product = Product::start().await;
    let order = template(&product, json!({"text": "{{ secret }}"})).await;
    let ann = call(&product, "upsertContact", &[], json!({"email": "ann@example.com"})).await;
    let message = product.send(&by(&order, json!({"secret": "very-private-value"}))).await;
    product.work().await;
    call(&product, "deleteContact", &[("id", &ann["id"])], Value::Null).await;
    product.work().await;
    let (_, content) =
        messaging_core::ports::store::Messages::message_with_content(&*product.store, product.workspace, message)
            .await
            .unwrap()
            .unwrap();
    assert!(content.is_none());
}
