//! Housekeeping: what is kept how long.

use std::time::Duration;

use messaging_core::ports::store::{Blobs as _, Messages as _};
use messaging_core::work::sweep::sweep;
use serde_json::json;

use crate::support::Product;

const DAY: Duration = Duration::from_hours(24);

#[tokio::test]
async fn content_and_files_are_kept_for_thirty_days_and_the_story_for_good() {
    let product = Product::start().await;
    let id = product
        .send(&json!({"channel": "email", "to": "ann@example.com", "subject": "s", "text": "t",
            "attachments": [{"filename": "a.txt", "content_b64": "eA=="}]}))
        .await;
    product.work().await;
    let content = async || {
        let found = product.store.message_with_content(product.workspace, id).await.unwrap().unwrap();
        let files = product.store.blobs_before(product.app.now(), 10).await.unwrap().len();
        (found.1.is_some(), files)
    };

    product.clock.advance(30 * DAY);
    sweep(&product.app).await.unwrap();
    assert_eq!(content().await, (true, 1));
    product.clock.advance(DAY);
    sweep(&product.app).await.unwrap();
    assert_eq!(content().await, (false, 0));
    assert_eq!(product.story(id).await, "delivered: Queued Sent Delivered");
}

#[tokio::test]
async fn a_forgotten_reply_frees_its_key() {
    let product = Product::start().await;
    let email = json!({"channel": "email", "to": "ann@example.com", "subject": "s", "text": "t"});
    let (first, _) = product.post(&email, Some("k")).await.unwrap();
    sweep(&product.app).await.unwrap();
    assert!(product.post(&email, Some("k")).await.unwrap().1, "it is kept for a day");
    product.clock.advance(DAY);
    sweep(&product.app).await.unwrap();
    let (second, replayed) = product.post(&email, Some("k")).await.unwrap();
    assert!(!replayed && second != first);
}
