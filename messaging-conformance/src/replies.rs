//! Remembered replies.

use bytes::Bytes;
use messaging_core::changes::{AccountWrite, Reply, ReplyKey, Write};
use messaging_core::domain::security::digest::Digest;
use messaging_core::ports::store::Store;

use super::sample::{at, id, insert, message, reply, session, ticket};
use super::{put, refuse};

fn remember(reply: &Reply) -> Write {
    Write::Remember(Box::new(reply.clone()))
}

/// A reply is found under exactly its key, until it expires.
pub async fn replies_round_trip(store: &dyn Store) {
    let empty = Reply { body: Bytes::new(), fingerprint: 0, status: 200, ..reply("another", 0, 100) };
    for reply in [&reply("key", 0, 100), &empty] {
        put(store, [remember(reply)]).await;
        assert_eq!(store.reply(&reply.key, at(99)).await.unwrap().as_ref(), Some(reply));
        assert_eq!(store.reply(&reply.key, at(100)).await.unwrap(), None);
    }
    let key = reply("key", 0, 100).key;
    let others = [
        ReplyKey { credential: [8; 16], ..key.clone() },
        ReplyKey { route: "POST /events".to_owned(), ..key.clone() },
        ReplyKey { key: "Key".to_owned(), ..key },
    ];
    for other in others {
        assert_eq!(store.reply(&other, at(0)).await.unwrap(), None);
        put(store, [remember(&Reply { key: other, ..reply("", 0, 100) })]).await;
    }
}

/// A second reply under a live key is a conflict.
pub async fn a_live_reply_is_not_replaced(store: &dyn Store) {
    let first = reply("key", 0, 100);
    put(store, [remember(&first)]).await;
    refuse(store, [remember(&Reply { status: 201, ..reply("key", 99, 200) })]).await;
    assert_eq!(store.reply(&first.key, at(50)).await.unwrap(), Some(first));
}

/// An expired reply gives way.
pub async fn an_expired_reply_is_replaced(store: &dyn Store) {
    put(store, [remember(&reply("key", 0, 100))]).await;
    let second = reply("key", 100, 200);
    put(store, [remember(&second)]).await;
    assert_eq!(store.reply(&second.key, at(150)).await.unwrap(), Some(second));
}

/// Of two requests with one key, one has its effect and its reply, the other neither.
pub async fn reply_and_effect_appear_together(store: &dyn Store) {
    let (one, other) = (message(id()), message(id()));
    let outcomes = tokio::join!(
        super::commit(store, [insert(&one), remember(&reply("key", 0, 100))]),
        super::commit(store, [insert(&other), remember(&reply("key", 0, 100))]),
    );
    assert_eq!(i32::from(outcomes.0.is_ok()) + i32::from(outcomes.1.is_ok()), 1);
    for (message, outcome) in [(&one, outcomes.0), (&other, outcomes.1)] {
        assert_eq!(store.message(message.workspace_id, message.id).await.unwrap().is_some(), outcome.is_ok());
    }
    let third = message(id());
    refuse(store, [insert(&third), remember(&reply("key", 50, 150))]).await;
    assert_eq!(store.message(third.workspace_id, third.id).await.unwrap(), None);
    // Nor does a reply stay when its effect fails.
    refuse(store, [remember(&reply("fresh", 0, 100)), insert(&one), insert(&one)]).await;
    assert_eq!(store.reply(&reply("fresh", 0, 100).key, at(0)).await.unwrap(), None);
}

/// Sweeping removes what has expired, as much as allowed, and nothing else.
pub async fn expired_replies_and_sessions_are_forgotten(store: &dyn Store) {
    let writes = (0..6).map(|n| remember(&reply(&format!("key {n}"), 0, if n % 2 == 0 { 100 } else { 900 })));
    put(store, writes.collect::<Vec<_>>()).await;
    put(
        store,
        [
            Write::Account(AccountWrite::PutSession(session("old", at(100)))),
            Write::Account(AccountWrite::PutSession(session("new", at(900)))),
        ],
    )
    .await;
    put(
        store,
        [
            Write::Account(AccountWrite::PutTicket(ticket("old", at(100)))),
            Write::Account(AccountWrite::PutTicket(ticket("new", at(900)))),
        ],
    )
    .await;
    assert_eq!(store.forget_expired(at(99), 10).await.unwrap(), 0);
    let mut forgotten = 0;
    for _ in 0..4 {
        let now = store.forget_expired(at(100), 2).await.unwrap();
        assert!(now <= 2);
        forgotten += now;
    }
    assert_eq!(forgotten, 5);
    assert_eq!(store.session(&Digest::of("old")).await.unwrap(), None);
    assert!(store.session(&Digest::of("new")).await.unwrap().is_some());
    assert_eq!(store.ticket(&Digest::of("old")).await.unwrap(), None);
    assert!(store.ticket(&Digest::of("new")).await.unwrap().is_some());
    assert!(store.reply(&reply("key 1", 0, 0).key, at(100)).await.unwrap().is_some());
}

/// Replies that were remembered while the clock was wrong keep no later ones.
pub async fn replies_dated_in_the_future_are_passed_over(store: &dyn Store) {
    // More than a sweep looks at, so that they would fill its view.
    const FUTURE: i64 = 12_000;
    let future = (0..FUTURE).map(|n| remember(&reply(&format!("future {n}"), 1_000_000, 2_000_000)));
    put(store, future.collect::<Vec<_>>()).await;
    put(store, [remember(&reply("key", 0, 100))]).await;
    let mut forgotten = 0;
    for _ in 0..4 {
        forgotten += store.forget_expired(at(200), 10).await.unwrap();
    }
    assert_eq!(forgotten, 1);
}
