//! Warnings before API keys end.

use std::time::Duration;

use messaging_core::domain::security::api_key::expiry::SOON;
use messaging_core::ports::store::PageRequest;
use messaging_engine::work::sweep::sweep;
use messaging_engine::{App, Caller};
use serde_json::{Value, json};

use crate::bed::START;
use crate::support::Product;

const DAY: Duration = Duration::from_hours(24);

struct Warned {
    product: Product,
    operator: Caller,
    base: String,
}

impl Warned {
    /// A workspace with a webhook that hears of keys, and one that hears of everything about messages.
    async fn start() -> Self {
        let product = Product::start().await;
        let base = format!("/workspaces/{}", product.workspace);
        let warned = Self { operator: Caller::Operator(Some(product.workspace)), product, base };
        for (url, topic) in [("https://hooks.test/all", "*"), ("https://hooks.test/keys", "api_key.expiring")] {
            let body = json!({"url": url, "events": [topic]});
            let made = warned.product.post(&warned.operator, &format!("{}/webhooks", warned.base), body).await;
            assert_eq!(made.summary(), "201");
        }
        warned
    }

    /// A key that ends after so many days.
    async fn key(&self, days: u32) -> Value {
        let body = json!({"name": "backend", "scopes": ["*"], "expires_at": START + DAY * days});
        let made = self.product.post(&self.operator, &format!("{}/api-keys", self.base), body).await;
        assert_eq!(made.summary(), "201");
        made.body
    }

    /// Deliveries of the two webhooks; those of the webhook for keys are the first.
    async fn deliveries(&self) -> [Vec<Value>; 2] {
        let hooks = self.product.get(&self.operator, &format!("{}/webhooks", self.base)).await;
        let mut told = Vec::new();
        for hook in hooks["data"].as_array().unwrap() {
            let path = format!("{}/webhooks/{}/deliveries", self.base, hook["id"].as_str().unwrap());
            told.push(self.product.get(&self.operator, &path).await["data"].as_array().unwrap().clone());
        }
        told.try_into().unwrap()
    }

    async fn count(&self) -> usize {
        let [of_keys, others] = self.deliveries().await;
        assert_eq!(others, [] as [Value; 0]);
        assert!(of_keys.iter().all(|one| one["event_type"] == "api_key.expiring"));
        of_keys.len()
    }
}

/// Looks for keys that end soon, as the jobs of a process do.
async fn look(app: &App) {
    sweep(app).await.unwrap();
}

#[tokio::test]
async fn each_warning_is_given_once_by_whoever_looks() {
    let warned = Warned::start().await;
    warned.key(60).await;
    let (app, other) = (warned.product.app.clone(), warned.product.another_process());
    let mut told = Vec::new();
    for day in 0..62 {
        // Both processes sweep at the same time.
        tokio::join!(look(&app), look(&other));
        told.push(warned.count().await);
        // The clock is set back for a moment, and forward again.
        if day % 10 == 9 {
            let now = warned.product.app.now();
            warned.product.clock.set(now - 5 * DAY);
            look(&app).await;
            warned.product.clock.set(now);
        }
        warned.product.clock.advance(DAY);
    }
    let days: Vec<_> = (1..told.len()).filter(|day| told[*day] != told[day - 1]).collect();
    assert_eq!((days, told.last()), (vec![46, 57], Some(&2)));
}

#[tokio::test]
async fn the_event_says_which_key_ends_when() {
    let warned = Warned::start().await;
    let key = warned.key(60).await;
    warned.product.clock.advance(47 * DAY);
    look(&warned.product.app).await;
    let page = PageRequest { after: None, limit: 10 };
    let hooks = warned.product.store.webhooks(warned.product.workspace, page).await.unwrap().items;
    let told = warned.product.store.deliveries(warned.product.workspace, hooks[0].id, None, page).await.unwrap();
    let subject = format!("{:?}", told.items[0].subject);
    for word in [key["id"].as_str().unwrap(), key["prefix"].as_str().unwrap(), "2026-04-01T09:15:00.000Z", "Number(13)"]
    {
        assert!(subject.contains(word), "{word} in {subject}");
    }
    assert!(!subject.contains(key["key"].as_str().unwrap().split_once('.').unwrap().1));
}

#[tokio::test]
async fn nobody_is_warned_of_keys_that_need_nobody() {
    let warned = Warned::start().await;
    let (revoked, rotated) = (warned.key(60).await, warned.key(60).await);
    warned.key(2).await;
    let one = |key: &Value| format!("{}/api-keys/{}", warned.base, key["id"].as_str().unwrap());
    assert_eq!(warned.product.delete(&warned.operator, &one(&revoked)).await.summary(), "204");
    let new = warned.product.post(&warned.operator, &format!("{}/rotate", one(&rotated)), json!({})).await;
    assert_eq!(new.summary(), "201");
    for day in 0..70 {
        look(&warned.product.app).await;
        // The new key lives 60 days as well and is the only one with warnings.
        assert_eq!(warned.count().await, usize::from(day >= 46) + usize::from(day >= 57), "{day}");
        warned.product.clock.advance(DAY);
    }
}

#[tokio::test]
async fn only_administrators_have_a_webhook_told_of_keys() {
    let warned = Warned::start().await;
    let path = format!("{}/webhooks", warned.base);
    let body = json!({"url": "https://acme.com/hook", "events": ["api_key.expiring"]});
    let writer = warned.product.key(warned.product.workspace, &["webhooks:write"]).await;
    assert_eq!(warned.product.post(&writer, &path, body).await.body, json!({"error": "scope required: *"}));
}

#[tokio::test]
async fn the_store_knows_the_keys_that_end_soon() {
    let warned = Warned::start().await;
    let (late, early, _) = (warned.key(12).await, warned.key(4).await, warned.key(20).await);
    let now = warned.product.app.now();
    let ending = async |limit| {
        let keys = warned.product.store.api_keys_ending(now, now + SOON, limit).await.unwrap();
        keys.iter().map(|key| json!(key.id)).collect::<Vec<_>>()
    };
    assert_eq!(ending(10).await, [early["id"].clone(), late["id"].clone()]);
    assert_eq!(ending(1).await, [early["id"].clone()]);
}
