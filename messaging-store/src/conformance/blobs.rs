//! Stored bytes.

use bytes::Bytes;
use messaging_core::changes::Write;
use messaging_core::domain::attachment::MessageBlob;
use messaging_core::ids::{BlobId, WorkspaceId};
use messaging_core::ports::store::{CommitError, Store};

use super::sample::{at, bare_message, id, id_at, insert};
use super::{commit, put};

/// A blob of some message.
fn blob_of(workspace_id: WorkspaceId, id: BlobId) -> MessageBlob {
    MessageBlob { workspace_id, message_id: super::sample::id(), id }
}

async fn store_bytes(store: &dyn Store, blob: MessageBlob) {
    store.put_blob(blob, Bytes::from_static(b"bytes")).await.unwrap();
}

async fn is_there(store: &dyn Store, blob: MessageBlob) -> bool {
    store.blob(blob.workspace_id, blob.id).await.unwrap().is_some()
}

/// Bytes of every size come back, before a commit keeps them and afterwards.
pub async fn bytes_come_back(store: &dyn Store) {
    let workspace: WorkspaceId = id();
    for size in [0, 1, 100_000, 5 << 20] {
        let (blob, bytes) = (blob_of(workspace, id()), Bytes::from(vec![0xA5; size]));
        store.put_blob(blob, bytes.clone()).await.unwrap();
        assert_eq!(store.blob(workspace, blob.id).await.unwrap(), Some(bytes.clone()));
        put(store, [Write::KeepBlob(blob)]).await;
        assert_eq!(store.blob(workspace, blob.id).await.unwrap(), Some(bytes));
        // The same commit may be done in another batch again.
        put(store, [Write::KeepBlob(blob)]).await;
    }
    assert_eq!(store.blob(workspace, id()).await.unwrap(), None);
}

/// A deleted blob is gone when the commit returns, others stay; deleting it twice is fine.
pub async fn deleted_blobs_are_gone(store: &dyn Store) {
    let workspace: WorkspaceId = id();
    let [other, kept, unkept] = [id(), id(), id()].map(|id| blob_of(workspace, id));
    for blob in [other, kept, unkept] {
        store_bytes(store, blob).await;
    }
    put(store, [Write::KeepBlob(other), Write::KeepBlob(kept)]).await;
    for _ in 0..2 {
        for deleted in [kept, unkept] {
            put(store, [Write::DeleteBlob(workspace, deleted.id)]).await;
            assert!(!is_there(store, deleted).await);
        }
    }
    assert!(is_there(store, other).await);
}

/// What no commit came to keep is kept where its message is there, and goes where it is not; what was put later is
/// left alone.
pub async fn blobs_without_a_commit_are_settled(store: &dyn Store) {
    const HOUR: i64 = 3_600_000;
    let message = bare_message(id());
    put(store, [insert(&message)]).await;
    let named = MessageBlob { workspace_id: message.workspace_id, message_id: message.id, id: id_at(1) };
    // The message of another workspace names nothing here.
    let unnamed = MessageBlob { workspace_id: id(), id: id_at(2), ..named };
    let [discarded, under_way] = [id_at(3), id_at(HOUR)].map(|id| blob_of(id_at(0), id));
    for blob in [named, unnamed, discarded, under_way] {
        store_bytes(store, blob).await;
    }
    store.discard_blob(discarded).await.unwrap();
    assert!(!is_there(store, discarded).await);
    assert_eq!(store.settle_blobs(at(0), 10).await.unwrap(), 0);
    assert_eq!(store.settle_blobs(at(HOUR), 1).await.unwrap(), 1, "not more than asked for");
    assert_eq!(store.settle_blobs(at(HOUR), 10).await.unwrap(), 1);
    assert_eq!(store.settle_blobs(at(HOUR), 10).await.unwrap(), 0);
    assert!(is_there(store, named).await && is_there(store, under_way).await);
    assert!(!is_there(store, unnamed).await);
    // Who comes too late must decide again.
    let late = commit(store, [insert(&bare_message(id())), Write::KeepBlob(unnamed)]).await;
    assert!(matches!(late, Err(CommitError::Conflict)), "{late:?}");
    put(store, [Write::KeepBlob(under_way)]).await;
    assert_eq!(store.blobs_before(at(HOUR), 10).await.unwrap(), [(named.workspace_id, named.id)]);
}

/// The sweep finds blobs by their age.
pub async fn old_blobs_are_found_oldest_first(store: &dyn Store) {
    const DAY: i64 = 86_400_000;
    let (one, other): (WorkspaceId, WorkspaceId) = (id(), id());
    let mut stored: Vec<(WorkspaceId, BlobId)> = Vec::new();
    for (workspace, time) in [(one, 3 * DAY), (other, DAY), (one, 1_000), (other, 2_000), (one, DAY + 5)] {
        let blob = blob_of(workspace, id_at(time));
        store_bytes(store, blob).await;
        put(store, [Write::KeepBlob(blob)]).await;
        stored.push((workspace, blob.id));
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
    let blob = blob_of(mine, id());
    store_bytes(store, blob).await;
    assert_eq!(store.blob(other, blob.id).await.unwrap(), None);
    put(store, [Write::DeleteBlob(other, blob.id)]).await;
    assert!(is_there(store, blob).await);
}
