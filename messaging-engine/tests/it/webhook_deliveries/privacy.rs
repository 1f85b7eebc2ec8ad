use std::time::Duration;

use http::Method;
use messaging_testing::fetched;
use serde_json::{Value, json};

use super::{Hooks, URL, body};
use crate::bed::{self, Call};

#[tokio::test]
async fn a_webhook_whose_creator_saw_no_addresses_gets_them_masked() {
    let hooks = Hooks::hearing(&["bounce"]).await;
    let scopes = json!({"name": "blind", "scopes": ["webhooks:write"]});
    let path = format!("/workspaces/{}/api-keys", hooks.product.workspace);
    let key = hooks.post(&path, scopes).await;
    let blind = hooks.product.app.authenticate(key["key"].as_str().unwrap()).await.unwrap();
    let input = json!({"url": "https://acme.com/masked", "events": ["sent"]});
    let call = Call::new(&blind, Method::POST, &hooks.base).body(&input);
    assert_eq!(bed::send(&hooks.product.app, call).await["pii"], false);
    hooks.message("ann@example.com").await;
    let told = body(&hooks.fetch.take()[0]);
    assert_eq!(told["data"]["to"], "a***@example.com");
    assert_eq!(told["data"]["meta"]["recipient"], "a***@example.com");
}

#[tokio::test]
async fn what_is_retried_after_an_erasure_names_nobody() {
    let hooks = Hooks::hearing(&["sent", "cancelled"]).await;
    let contacts = format!("/workspaces/{}/contacts", hooks.product.workspace);
    let contact = hooks.post(&contacts, json!({"email": "ann@example.com"})).await;
    hooks.fetch.next_with(Ok(fetched(500, &[], "cannot take ANN@example.com")));
    hooks.message("ann@example.com").await;
    let delivery = hooks.deliveries().await.remove(0);
    assert_eq!(delivery["response_body"], "cannot take ***");
    hooks.fetch.take();
    let path = format!("{contacts}/{}", contact["id"].as_str().unwrap());
    let call = Call::new(hooks.caller(), Method::DELETE, &path);
    assert_eq!(bed::send(&hooks.product.app, call).await.summary(), "204");
    hooks.product.work().await;
    hooks.product.pass(Duration::from_mins(10)).await;
    let told = body(&hooks.fetch.take()[0]);
    assert_eq!((&told["type"], &told["data"]["to"]), (&json!("sent"), &Value::Null));
    assert!(!told.to_string().contains("ann@"), "{told}");
}

#[tokio::test]
async fn secrets_are_in_no_file() {
    let hooks = Hooks::start().await;
    hooks.fetch.always(URL, Ok(fetched(200, &[], "")));
    hooks.message("ann@example.com").await;
    let rotated = hooks.act("rotate-secret", json!({})).await["secret"].as_str().unwrap().to_owned();
    messaging_core::ports::store::Store::close(&*hooks.product.store).await;
    for entry in std::fs::read_dir(hooks.product.directory.path()).unwrap() {
        let path = entry.unwrap().path();
        let Ok(bytes) = std::fs::read(&path) else { continue };
        for secret in [&hooks.secret, &rotated] {
            let coded = secret.strip_prefix("whsec_").unwrap().as_bytes();
            assert!(!bytes.windows(coded.len()).any(|window| window == coded), "{}", path.display());
        }
    }
}
