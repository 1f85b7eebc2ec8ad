//! Stored bytes.

use bytes::Bytes;
use messaging_core::changes::Write;
use messaging_core::ids::{BlobId, WorkspaceId};
use messaging_core::ports::store::Store;

use super::put;
use super::sample::{at, id, id_at};

/// Bytes of every size come back.
pub async fn bytes_come_back(store: &dyn Store) {
    let workspace: WorkspaceId = id();
    for size in [0, 1, 100_000, 5 << 20] {
        let (blob, bytes): (BlobId, _) = (id(), Bytes::from(vec![0xA5; size]));
        store.put_blob(workspace, blob, bytes.clone()).await.unwrap();
        assert_eq!(store.blob(workspace, blob).await.unwrap(), Some(bytes));
    }
    assert_eq!(store.blob(workspace, id()).await.unwrap(), None);
}

/// A deleted blob is gone when the commit returns, others stay; deleting it twice is fine.
pub async fn deleted_blobs_are_gone(store: &dyn Store) {
    let workspace: WorkspaceId = id();
    let (kept, deleted): (BlobId, BlobId) = (id(), id());
    for blob in [kept, deleted] {
        store.put_blob(workspace, blob, Bytes::from_static(b"bytes")).await.unwrap();
    }
    for _ in 0..2 {
        put(store, [Write::DeleteBlob(workspace, deleted)]).await;
        assert_eq!(store.blob(workspace, deleted).await.unwrap(), None);
    }
    assert!(store.blob(workspace, kept).await.unwrap().is_some());
}

/// The sweep finds blobs by their age.
pub async fn old_blobs_are_found_oldest_first(store: &dyn Store) {
    const DAY: i64 = 86_400_000;
    let (one, other): (WorkspaceId, WorkspaceId) = (id(), id());
    let mut stored: Vec<(WorkspaceId, BlobId)> = Vec::new();
    for (workspace, time) in [(one, 3 * DAY), (other, DAY), (one, 1_000), (other, 2_000), (one, DAY + 5)] {
        let blob = id_at(time);
        store.put_blob(workspace, blob, Bytes::from_static(b"bytes")).await.unwrap();
        stored.push((workspace, blob));
    }
    let by_age = [2, 3, 1, 4, 0].map(|index| stored[index]);
    assert_eq!(store.blobs_before(at(4 * DAY), 10).await.unwrap(), by_age);
    assert_eq!(store.blobs_before(at(4 * DAY), 3).await.unwrap(), by_age[..3]);
    assert_eq!(store.blobs_before(at(DAY + 5), 10).await.unwrap(), by_age[..3]);
    assert_eq!(store.blobs_before(at(0), 10).await.unwrap(), []);
}

/// A blob belongs to its workspace.
pub async fn other_workspaces_are_not_there(store: &dyn Store) {
    let (mine, other): (WorkspaceId, WorkspaceId) = (id(), id());
    let blob = id();
    store.put_blob(mine, blob, Bytes::from_static(b"bytes")).await.unwrap();
    assert_eq!(store.blob(other, blob).await.unwrap(), None);
    put(store, [Write::DeleteBlob(other, blob)]).await;
    assert!(store.blob(mine, blob).await.unwrap().is_some());
}
