//! Cases for stored delivery attempts with their dialogs.

use messaging_core::changes::Write;
use messaging_core::domain::delivery::attempt::{
    AttemptOutcome, AttemptTls, Dialog, KEPT_ATTEMPTS, MessageAttempt, TlsVerification,
};
use messaging_core::ids::{MessageId, WorkspaceId};
use messaging_core::ports::store::Store;

use super::sample::{at, id};
use super::{all_pages, first, put};

pub(super) fn attempt(workspace_id: WorkspaceId, message_id: MessageId, attempt: u32, millis: i64) -> MessageAttempt {
    let dialog = Dialog {
        mx: Some("mx.example.org".to_owned()),
        remote_addr: Some("192.0.2.1:25".to_owned()),
        tls: Some(AttemptTls {
            version: "TLSv1.3".to_owned(),
            cipher: Some("TLS_AES_128_GCM_SHA256".to_owned()),
            verified: TlsVerification::Dane,
        }),
        tls_failure: Some("the certificate is not valid".to_owned()),
        outcome: AttemptOutcome::Deferred,
        transcript: vec!["> MAIL FROM:<a@b.co>".to_owned(), "< 450 4.2.0 später".to_owned()],
    };
    MessageAttempt {
        id: id(),
        workspace_id,
        message_id,
        attempt,
        at: at(millis),
        provider: Some("builtin".to_owned()),
        dialog,
    }
}

fn append(attempt: &MessageAttempt) -> Write {
    Write::AppendAttempt(Box::new(attempt.clone()))
}

/// Attempts come back newest first, with all fields, to their own workspace and message only.
pub async fn attempts_round_trip(store: &dyn Store) {
    let (workspace, message) = (id(), id());
    let bare = MessageAttempt {
        dialog: Dialog {
            mx: None,
            remote_addr: None,
            tls: None,
            tls_failure: None,
            outcome: AttemptOutcome::Bounced,
            transcript: Vec::new(),
        },
        ..attempt(workspace, message, 1, 0)
    };
    let mut all = vec![bare];
    all.extend((1..5).map(|number| attempt(workspace, message, number, i64::from(number))));
    put(store, all.iter().map(append).collect::<Vec<_>>()).await;
    put(store, [append(&attempt(workspace, id(), 1, 9))]).await;
    all.reverse();
    let listed = all_pages(2, async |page| store.attempts(workspace, message, page).await, async || ()).await;
    assert_eq!(listed, all);
    assert_eq!(store.attempts(id(), message, first(9)).await.unwrap().items, []);
}

/// Old ones go, young ones stay.
pub async fn old_attempts_are_forgotten(store: &dyn Store) {
    let (workspace, message) = (id(), id());
    let all: Vec<_> = (0..4).map(|number| attempt(workspace, message, number + 1, i64::from(number) * 10)).collect();
    put(store, all.iter().map(append).collect::<Vec<_>>()).await;
    assert_eq!(store.forget_attempts(at(30), 2).await.unwrap(), 2);
    assert_eq!(store.forget_attempts(at(30), 2).await.unwrap(), 1);
    assert_eq!(store.forget_attempts(at(30), 2).await.unwrap(), 0);
    assert_eq!(store.attempts(workspace, message, first(9)).await.unwrap().items, all[3..]);
}

/// Of a message that is tried for ever only the last attempts stay.
pub async fn only_the_last_attempts_are_kept(store: &dyn Store) {
    let (workspace, message) = (id(), id());
    for number in 1..=KEPT_ATTEMPTS + 2 {
        put(store, [append(&attempt(workspace, message, number, 0))]).await;
    }
    let kept = store.attempts(workspace, message, first(1000)).await.unwrap().items;
    let numbers: Vec<_> = kept.iter().map(|attempt| attempt.attempt).collect();
    assert_eq!(numbers, (3..=KEPT_ATTEMPTS + 2).rev().collect::<Vec<_>>());
}

/// Attempts that were made while the clock was wrong keep no later ones.
pub async fn attempts_dated_in_the_future_are_passed_over(store: &dyn Store) {
    let future: Vec<_> = (0..2_500).map(|_| append(&attempt(id(), id(), 1, 1_000_000))).collect();
    put(store, future).await;
    put(store, [append(&attempt(id(), id(), 1, 0))]).await;
    let mut forgotten = 0;
    for _ in 0..4 {
        forgotten += store.forget_attempts(at(30), 10).await.unwrap();
    }
    assert_eq!(forgotten, 1);
}
