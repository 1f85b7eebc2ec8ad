//! The sandbox inbox.

use bytes::Bytes;
use messaging_core::changes::Write;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::Capture;
use messaging_core::ports::store::Store;

use super::sample::{capture, id, message};
use super::{all_pages, first, put};

fn keep(capture: &Capture) -> Write {
    Write::PutCapture(Box::new(capture.clone()))
}

/// A capture comes back with all fields; the listing leaves the source out.
pub async fn captures_round_trip(store: &dyn Store) {
    let workspace = id();
    let complete = capture(&message(workspace), "Subject: x\r\n\r\n\u{0}");
    let bare = Capture {
        channel: Channel::Sms,
        from: None,
        subject: None,
        source: Bytes::new(),
        ..capture(&message(workspace), "")
    };
    put(store, [keep(&complete), keep(&bare)]).await;
    for capture in [&complete, &bare] {
        assert_eq!(store.capture(workspace, capture.message_id).await.unwrap().as_ref(), Some(capture));
    }
    assert_eq!(store.capture(workspace, id()).await.unwrap(), None);
    let listed = store.captures(workspace, first(10)).await.unwrap();
    assert_eq!((listed.items, listed.next), (vec![bare, Capture { source: Bytes::new(), ..complete }], None));
}

/// A source of several megabytes comes back.
pub async fn a_large_source_comes_back(store: &dyn Store) {
    let workspace = id();
    let large = capture(&message(workspace), vec![b'x'; 3 << 20]);
    put(store, [keep(&large)]).await;
    assert_eq!(store.capture(workspace, large.message_id).await.unwrap().as_ref(), Some(&large));
    assert_eq!(store.trim_captures(0, 10).await.unwrap(), 1);
    assert_eq!(store.capture(workspace, large.message_id).await.unwrap(), None);
}

/// A second capture of a message replaces the first, whatever their sizes.
pub async fn a_later_capture_replaces(store: &dyn Store) {
    let message = message(id());
    for source in ["one".to_owned(), "two".repeat(100_000), "three".to_owned()] {
        let capture = capture(&message, source);
        put(store, [keep(&capture)]).await;
        assert_eq!(store.capture(message.workspace_id, message.id).await.unwrap(), Some(capture));
    }
    assert_eq!(store.captures(message.workspace_id, first(10)).await.unwrap().items.len(), 1);
}

/// Every workspace keeps its newest captures.
pub async fn only_the_newest_are_kept(store: &dyn Store) {
    let (busy, quiet) = (id(), id());
    let mut messages = Vec::new();
    for workspace in [busy, busy, busy, quiet, busy, busy, quiet] {
        let message = message(workspace);
        put(store, [keep(&capture(&message, "source"))]).await;
        messages.push(message);
    }
    assert_eq!(store.trim_captures(2, 2).await.unwrap(), 2);
    assert_eq!(store.trim_captures(2, 2).await.unwrap(), 1);
    assert_eq!(store.trim_captures(2, 2).await.unwrap(), 0);
    for (message, kept) in messages.iter().zip([false, false, false, true, true, true, true]) {
        assert_eq!(store.capture(message.workspace_id, message.id).await.unwrap().is_some(), kept);
    }
}

/// Pages neither skip nor repeat.
pub async fn listing_is_exact_while_rows_are_inserted(store: &dyn Store) {
    let workspace = id();
    let mut expected = Vec::new();
    for _ in 0..5 {
        let capture = capture(&message(workspace), "");
        put(store, [keep(&capture)]).await;
        expected.insert(0, capture);
    }
    let add_more = async || put(store, [keep(&capture(&message(workspace), ""))]).await;
    let listed = all_pages(2, async |page| store.captures(workspace, page).await, add_more).await;
    assert_eq!(listed, expected);
}

/// A capture belongs to its workspace.
pub async fn other_workspaces_are_not_there(store: &dyn Store) {
    let (mine, other) = (message(id()), id());
    put(store, [keep(&capture(&mine, "source"))]).await;
    assert_eq!(store.capture(other, mine.id).await.unwrap(), None);
    assert_eq!(store.captures(other, first(10)).await.unwrap().items, []);
}
