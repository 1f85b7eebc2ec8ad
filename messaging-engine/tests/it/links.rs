//! The links of sent messages: contract sections 10 and 18.

use messaging_core::changes::{Changes, Write};
use messaging_core::domain::mail::link_token::{Link, UrlKey};
use messaging_core::ids::MessageId;
use messaging_core::ports::transport::{Content, Email};
use serde_json::json;

use crate::support::Product;

const PAGE: &str = r#"<body><p>Hi</p><a href="https://shop.example/a?b=1&amp;c=2">A</a></body>"#;

async fn sent(product: &Product) -> Email {
    product.work().await;
    match product.transport.take().remove(0).content {
        Content::Email(email) => *email,
        _ => unreachable!("an email was sent"),
    }
}

async fn send_page(product: &Product) -> MessageId {
    product.send(&json!({"channel": "email", "to": "ann@example.com", "subject": "s", "html": PAGE})).await
}

#[tokio::test]
async fn links_are_redirected_and_lead_on_to_where_they_did() {
    let product = Product::start().await;
    let body = json!({"channel": "email", "to": "ann@example.com", "subject": "s", "html": PAGE,
        "options": {"track_opens": true}});
    let id = product.send(&body).await;
    let email = sent(&product).await;
    let html = email.html.unwrap();
    let tokens: Vec<_> = html.split("https://track.service.test/t/").skip(1).collect();
    assert_eq!(tokens.len(), 2, "{html}");
    let read = |text: &str| {
        let token = &text[2..text.find('"').unwrap()];
        product.app.link_key().read_link(token)
    };
    let key = UrlKey::of("https://shop.example/a?b=1&c=2");
    assert_eq!(read(tokens[0]), Some((product.workspace, id, Link::Click(key, None))));
    assert_eq!(read(tokens[1]), Some((product.workspace, id, Link::Open)));
    let stored = product.store.url(product.workspace, key).await.unwrap();
    assert_eq!(stored.as_deref(), Some("https://shop.example/a?b=1&c=2"));
    assert!(email.text.unwrap().contains("https://shop.example/a"), "the text part keeps its links");
    assert!(email.headers.is_empty(), "nothing offers to unsubscribe from an order confirmation");
}

#[tokio::test]
async fn a_domain_without_tracking_sends_what_was_given() {
    let product = Product::start().await;
    let stored = product.store.domain_by_name(product.workspace, "sandbox.test").await.unwrap().unwrap();
    let mut domain = stored.record;
    (domain.open_tracking, domain.click_tracking) = (false, false);
    let expect = messaging_core::changes::Expect::Revision(stored.revision);
    product.commit(Changes::from_iter([Write::put(domain, expect)])).await;
    product.pass(std::time::Duration::from_secs(2)).await;
    send_page(&product).await;
    assert_eq!(sent(&product).await.html.as_deref(), Some(PAGE));
}
