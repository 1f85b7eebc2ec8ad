//! Conformance cases of the port [`BlobStore`] alone, and of a [`Store`] together with its blob store.
//!
//! An id begins with its time, so `id_at` makes the id of a blob of any age. A blob is pending from its put until it is
//! kept.

use bytes::Bytes;
use messaging_core::changes::Write;
use messaging_core::domain::message::attachment::MessageBlob;
use messaging_core::ids::{BlobId, WorkspaceId};
use messaging_core::ports::settle_blobs;
use messaging_core::ports::{BlobStore, Store};

use super::sample::{at, bare_message, id, id_at, insert};
use super::{put, refuse};

/// An hour in milliseconds.
const HOUR: i64 = 3_600_000;

/// A blob of a message that is in no store.
fn blob_of(workspace_id: WorkspaceId, id: BlobId) -> MessageBlob {
    MessageBlob { workspace_id, message_id: super::sample::id(), id }
}

/// Puts a blob with some bytes; it is pending then.
async fn store_bytes(blobs: &dyn BlobStore, blob: MessageBlob) {
    blobs.put_blob(blob, Bytes::from_static(b"bytes")).await.unwrap();
}

/// True if the blob can be read, pending or kept.
async fn is_there(blobs: &dyn BlobStore, blob: MessageBlob) -> bool {
    blobs.blob(blob.workspace_id, blob.id).await.unwrap().is_some()
}

/// Bytes of every size can be read while the blob is pending and after it is kept; keeping it twice is allowed.
pub async fn bytes_come_back(blobs: &dyn BlobStore) {
    let workspace: WorkspaceId = id();
    for size in [0, 1, 100_000, 5 << 20] {
        let (blob, bytes) = (blob_of(workspace, id()), Bytes::from(vec![0xA5; size]));
        blobs.put_blob(blob, bytes.clone()).await.unwrap();
        assert_eq!(blobs.blob(workspace, blob.id).await.unwrap(), Some(bytes.clone()));
        // The second time the blob is kept already.
        for _ in 0..2 {
            blobs.keep_blobs(&[blob]).await.unwrap();
            assert_eq!(blobs.blob(workspace, blob.id).await.unwrap(), Some(bytes.clone()));
        }
    }
    assert_eq!(blobs.blob(workspace, id()).await.unwrap(), None);
}

/// A blob that is removed or discarded is gone, whether it was pending or kept, and others stay. Removing it twice is
/// allowed; keeping it afterwards is an error.
pub async fn removed_blobs_are_gone(blobs: &dyn BlobStore) {
    let workspace: WorkspaceId = id();
    let [other, kept, pending, discarded] = [id(), id(), id(), id()].map(|id| blob_of(workspace, id));
    for blob in [other, kept, pending, discarded] {
        store_bytes(blobs, blob).await;
    }
    blobs.keep_blobs(&[other, kept]).await.unwrap();
    for _ in 0..2 {
        blobs.remove_blobs(&[(workspace, kept.id), (workspace, pending.id)]).await.unwrap();
        blobs.discard_blob(discarded).await.unwrap();
        for removed in [kept, pending, discarded] {
            assert!(!is_there(blobs, removed).await);
        }
    }
    assert!(blobs.keep_blobs(&[discarded]).await.is_err());
    assert!(is_there(blobs, other).await);
    assert_eq!(blobs.pending_blobs(at(i64::MAX / 2), 10).await.unwrap(), []);
}

/// Pending blobs are found by their age until they are kept, and kept blobs by theirs.
pub async fn pending_blobs_are_found_until_kept(blobs: &dyn BlobStore) {
    let [old, young] = [id_at(1), id_at(HOUR)].map(|blob| blob_of(id(), blob));
    for blob in [old, young] {
        store_bytes(blobs, blob).await;
    }
    let pending = async |time| blobs.pending_blobs(at(time), 10).await.unwrap();
    assert_eq!(pending(0).await, []);
    assert_eq!(pending(HOUR).await, [old]);
    assert_eq!(pending(HOUR + 1).await.len(), 2);
    assert_eq!(blobs.pending_blobs(at(HOUR + 1), 1).await.unwrap().len(), 1, "not more than asked for");
    assert_eq!(blobs.blobs_before(at(HOUR + 1), 10).await.unwrap(), []);
    blobs.keep_blobs(&[old]).await.unwrap();
    assert_eq!(pending(HOUR + 1).await, [young]);
    assert_eq!(blobs.blobs_before(at(HOUR + 1), 10).await.unwrap(), [(old.workspace_id, old.id)]);
}

/// Kept blobs put before a time are found, oldest first, over all workspaces.
pub async fn old_blobs_are_found_oldest_first(blobs: &dyn BlobStore) {
    const DAY: i64 = 24 * HOUR;
    let (one, other): (WorkspaceId, WorkspaceId) = (id(), id());
    let mut stored: Vec<(WorkspaceId, BlobId)> = Vec::new();
    for (workspace, time) in [(one, 3 * DAY), (other, DAY), (one, 1_000), (other, 2_000), (one, DAY + 5)] {
        let blob = blob_of(workspace, id_at(time));
        store_bytes(blobs, blob).await;
        blobs.keep_blobs(&[blob]).await.unwrap();
        stored.push((workspace, blob.id));
    }
    let by_age = [2, 3, 1, 4, 0].map(|index| stored[index]);
    assert_eq!(blobs.blobs_before(at(4 * DAY), 10).await.unwrap(), by_age);
    assert_eq!(blobs.blobs_before(at(4 * DAY), 3).await.unwrap(), by_age[..3]);
    assert_eq!(blobs.blobs_before(at(DAY + 5), 10).await.unwrap(), by_age[..3]);
    assert_eq!(blobs.blobs_before(at(0), 10).await.unwrap(), []);
}

/// A blob belongs to its workspace: under another workspace it can be neither read nor removed nor discarded.
pub async fn other_workspaces_are_not_there(blobs: &dyn BlobStore) {
    let (mine, other): (WorkspaceId, WorkspaceId) = (id(), id());
    for kept in [false, true] {
        let blob = blob_of(mine, id());
        store_bytes(blobs, blob).await;
        if kept {
            blobs.keep_blobs(&[blob]).await.unwrap();
        }
        assert_eq!(blobs.blob(other, blob.id).await.unwrap(), None);
        blobs.remove_blobs(&[(other, blob.id)]).await.unwrap();
        blobs.discard_blob(MessageBlob { workspace_id: other, ..blob }).await.unwrap();
        assert!(is_there(blobs, blob).await);
    }
}

/// [`settle_blobs`] keeps a pending blob whose message exists, and abandons and removes one whose message does not. It
/// leaves blobs alone that were put after the given time. A later commit that names a removed blob is refused.
pub async fn blobs_without_a_commit_are_settled(store: &dyn Store) {
    let blobs = &*store.blobs();
    let message = bare_message(id());
    put(store, [insert(&message)]).await;
    let named = MessageBlob { workspace_id: message.workspace_id, message_id: message.id, id: id_at(1) };
    // Its message exists, but in another workspace, which does not count.
    let unnamed = MessageBlob { workspace_id: id(), id: id_at(2), ..named };
    let under_way = blob_of(id(), id_at(HOUR));
    for blob in [named, unnamed, under_way] {
        store_bytes(blobs, blob).await;
    }
    let settle = async |time, limit| settle_blobs(store, blobs, at(time), limit).await.unwrap();
    assert_eq!(settle(0, 10).await, 0);
    assert_eq!(settle(HOUR, 1).await, 1, "not more than asked for");
    assert_eq!(settle(HOUR, 10).await, 1);
    assert_eq!(settle(HOUR, 10).await, 0);
    assert!(is_there(blobs, named).await && is_there(blobs, under_way).await);
    assert!(!is_there(blobs, unnamed).await);
    refuse(store, [insert(&bare_message(id())), Write::KeepBlob(unnamed)]).await;
    // The same id in another workspace is another blob.
    put(store, [Write::KeepBlob(under_way), Write::KeepBlob(MessageBlob { workspace_id: id(), ..unnamed })]).await;
    assert_eq!(blobs.blobs_before(at(HOUR), 10).await.unwrap(), [(named.workspace_id, named.id)]);
}

/// The blobs of a workspace are found, pending or kept, and none of another workspace.
pub async fn blobs_of_a_workspace_are_found(blobs: &dyn BlobStore) {
    let home: WorkspaceId = id();
    let (pending, kept) = (blob_of(home, id_at(1)), blob_of(home, id_at(HOUR)));
    for blob in [pending, kept, blob_of(id(), id_at(2))] {
        store_bytes(blobs, blob).await;
    }
    blobs.keep_blobs(&[kept]).await.unwrap();
    let mut found = blobs.blobs_of(home, 10).await.unwrap();
    found.sort_unstable();
    assert_eq!(found, [pending.id, kept.id]);
    assert_eq!(blobs.blobs_of(home, 1).await.unwrap().len(), 1);
    blobs.remove_blobs(&[(home, pending.id), (home, kept.id)]).await.unwrap();
    assert_eq!(blobs.blobs_of(home, 10).await.unwrap(), []);
}

/// A blob whose message exists cannot be abandoned. After one was abandoned, a commit that names it is refused, until
/// the store forgets the abandoned blobs of its age.
pub async fn an_abandoned_blob_is_named_by_no_commit(store: &dyn Store) {
    let message = bare_message(id());
    put(store, [insert(&message)]).await;
    let named = MessageBlob { workspace_id: message.workspace_id, message_id: message.id, id: id_at(1) };
    refuse(store, [Write::AbandonBlob(named)]).await;
    put(store, [Write::KeepBlob(named)]).await;
    let left = blob_of(id(), id_at(5));
    for _ in 0..2 {
        put(store, [Write::AbandonBlob(left)]).await;
        refuse(store, [Write::KeepBlob(left)]).await;
    }
    assert_eq!(store.forget_abandoned_blobs(at(5), 10).await.unwrap(), 0);
    put(store, [Write::AbandonBlob(blob_of(id(), id_at(2))), Write::AbandonBlob(blob_of(id(), id_at(3)))]).await;
    assert_eq!(store.forget_abandoned_blobs(at(5), 1).await.unwrap(), 1);
    assert_eq!(store.forget_abandoned_blobs(at(5), 9).await.unwrap(), 1);
    refuse(store, [Write::KeepBlob(left)]).await;
    assert_eq!(store.forget_abandoned_blobs(at(6), 9).await.unwrap(), 1);
    put(store, [Write::KeepBlob(left)]).await;
}
