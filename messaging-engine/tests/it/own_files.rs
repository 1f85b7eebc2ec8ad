//! A program that stores attachments and uploads elsewhere than in the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use messaging_conformance::memory_files::MemoryFiles;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::attachment::MessageBlob;
use messaging_core::ids::{BlobId, WorkspaceId};
use messaging_core::ports::BlobStore;
use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;
use messaging_engine::App;
use messaging_engine::work::sweep::sweep;
use serde_json::json;

use crate::bed::{Bed, KEY};
use crate::imports;
use crate::support::Product;

const HOUR: Duration = Duration::from_hours(1);

/// A blob store that cannot keep pending blobs while it is out of order, as after a crash at that moment.
#[derive(Debug, Default)]
struct Bucket {
    files: MemoryFiles,
    is_out_of_order: AtomicBool,
}

#[async_trait]
impl BlobStore for Bucket {
    async fn put_blob(&self, blob: MessageBlob, bytes: Bytes) -> Result<(), StoreError> {
        self.files.put_blob(blob, bytes).await
    }
    async fn keep_blobs(&self, blobs: &[MessageBlob]) -> Result<(), StoreError> {
        if self.is_out_of_order.load(Ordering::Relaxed) {
            return Err(StoreError::Unavailable);
        }
        self.files.keep_blobs(blobs).await
    }
    async fn discard_blob(&self, blob: MessageBlob) -> Result<(), StoreError> {
        self.files.discard_blob(blob).await
    }
    async fn remove_blobs(&self, blobs: &[(WorkspaceId, BlobId)]) -> Result<(), StoreError> {
        self.files.remove_blobs(blobs).await
    }
    async fn blob(&self, workspace: WorkspaceId, id: BlobId) -> Result<Option<Bytes>, StoreError> {
        self.files.blob(workspace, id).await
    }
    async fn pending_blobs(&self, before: Timestamp, limit: usize) -> Result<Vec<MessageBlob>, StoreError> {
        self.files.pending_blobs(before, limit).await
    }
    async fn blobs_before(&self, before: Timestamp, limit: usize) -> Result<Vec<(WorkspaceId, BlobId)>, StoreError> {
        self.files.blobs_before(before, limit).await
    }
    async fn blobs_of(&self, workspace: WorkspaceId, limit: usize) -> Result<Vec<BlobId>, StoreError> {
        self.files.blobs_of(workspace, limit).await
    }
}

/// Number of kept blobs, and number of pending blobs.
async fn count(bucket: &Bucket) -> (usize, usize) {
    let all_time = Timestamp::from_millis(i64::MAX / 2);
    let kept = bucket.blobs_before(all_time, 10).await.unwrap().len();
    (kept, bucket.pending_blobs(all_time, 10).await.unwrap().len())
}

async fn product(bucket: &Arc<Bucket>) -> Product {
    let mut product = Product::start().await;
    product.bed.app = App::builder(Arc::clone(&product.store), KEY)
        .clock(Arc::clone(&product.clock) as _)
        .transport(Channel::Email, "sandbox", Arc::clone(&product.transport) as _)
        .blobs(Arc::clone(bucket) as _)
        .build()
        .await
        .unwrap();
    product
}

#[tokio::test]
async fn attachments_are_put_kept_sent_and_removed_elsewhere() {
    let bucket = Arc::new(Bucket::default());
    let product = product(&bucket).await;
    let message = json!({"channel": "email", "to": "ann@example.com", "subject": "s", "text": "t",
        "attachments": [{"filename": "a.txt", "content_b64": "eA=="}]});
    let id = product.send(&message).await;
    assert_eq!(count(&bucket).await, (1, 0));
    product.work().await;
    assert_eq!(product.story(id).await, "delivered: Queued Sent Delivered");
    // A request that is refused leaves nothing.
    let same_key = async || product.post_message(&message, Some("k")).await;
    same_key().await.unwrap();
    assert_eq!(count(&bucket).await, (2, 0));
    same_key().await.unwrap();
    assert_eq!(count(&bucket).await, (2, 0));
    assert!(!product.directory.path().join("attachments").exists(), "nothing is beside the database");

    product.clock.advance(31 * 24 * HOUR);
    sweep(&product.app).await.unwrap();
    assert_eq!(count(&bucket).await, (0, 0));
}

#[tokio::test]
async fn what_was_not_kept_after_its_commit_is_read_and_kept_by_the_sweep() {
    let bucket = Arc::new(Bucket::default());
    let product = product(&bucket).await;
    bucket.is_out_of_order.store(true, Ordering::Relaxed);
    let message = json!({"channel": "email", "to": "ann@example.com", "subject": "s", "text": "t",
        "attachments": [{"filename": "a.txt", "content_b64": "eA=="}]});
    let id = product.send(&message).await;
    let now = product.app.now();
    let left = MessageBlob {
        workspace_id: product.workspace,
        message_id: product.app.new_id(now),
        id: product.app.new_id(now),
    };
    bucket.put_blob(left, Bytes::from_static(b"x")).await.unwrap();
    assert_eq!(count(&bucket).await, (0, 2));
    product.work().await;
    assert_eq!(product.story(id).await, "delivered: Queued Sent Delivered");

    product.clock.advance(2 * HOUR);
    bucket.is_out_of_order.store(false, Ordering::Relaxed);
    sweep(&product.app).await.unwrap();
    assert_eq!(count(&bucket).await, (1, 0), "what a message names is kept, what none names is gone");
    assert_eq!(bucket.blob(left.workspace_id, left.id).await.unwrap(), None);
}

#[tokio::test]
async fn a_file_is_imported_from_elsewhere() {
    let files = Arc::new(MemoryFiles::default());
    let mut bed = Bed::start();
    bed.app = App::builder(Arc::clone(&bed.store), KEY)
        .clock(Arc::clone(&bed.clock) as _)
        .uploads(Arc::clone(&files) as _)
        .build()
        .await
        .unwrap();
    let (bed, workspace, owner) = bed.and_owner().await;
    let text = b"email\nann@example.com\nbob@example.com\n";
    let path = format!("/workspaces/{workspace}/contacts");
    let announced = bed.post(&owner, &format!("{path}/import"), imports::announcement(text, json!({}))).await;
    assert_eq!(announced.summary(), "200");
    imports::upload(&bed.app, &announced.body, text).await.unwrap();
    bed.app.run_until_idle().await.unwrap();
    assert_eq!(bed.get(&owner, &path).await["data"].as_array().unwrap().len(), 2);
    assert!(!bed.directory.path().join("uploads").exists());
    let import = announced["import_id"].as_str().unwrap().parse().unwrap();
    assert_eq!(messaging_core::ports::Uploads::uploads(&*files, workspace, import).await.unwrap(), []);
}
