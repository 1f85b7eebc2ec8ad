//! Cases for the log of a workspace's events.

use messaging_core::changes::{Expect, LogEvent, Write};
use messaging_core::domain::message::{EventKind, Message, MessageEvent};
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::Store;

use super::put;
use super::sample::{at, event, id, insert, message, workspace};

/// Stores a new message of a workspace and answers it.
async fn stored(store: &dyn Store, workspace: WorkspaceId) -> Message {
    let message = message(workspace);
    put(store, [insert(&message)]).await;
    message
}

/// The writes that append an event to its message and add it to the log of its workspace.
pub(super) fn logged(event: &MessageEvent) -> [Write; 2] {
    let entry =
        LogEvent { workspace_id: event.workspace_id, message_id: event.message_id, at: event.at, event_id: event.id };
    [Write::AppendEvent(Box::new(event.clone())), Write::LogEvent(entry)]
}

/// Logged events are read with their messages, in the order of their commits whatever their times and ids. Events that
/// were only appended, and those of other workspaces, are not in the log.
pub async fn events_are_logged_in_the_order_of_commits(store: &dyn Store) {
    let home = id();
    let (one, other) = (stored(store, home).await, stored(store, home).await);
    let late = event(&one, EventKind::Sent, 50);
    let early = event(&other, EventKind::Bounce, 10);
    let same = event(&one, EventKind::Delivered, 50);
    for one in [&late, &early, &same] {
        put(store, logged(one)).await;
    }
    put(store, [Write::AppendEvent(Box::new(event(&one, EventKind::Open, 70)))]).await;
    let foreign = stored(store, id()).await;
    put(store, logged(&event(&foreign, EventKind::Sent, 60))).await;
    let all = store.events_after(home, None, 9).await.unwrap();
    let told: Vec<_> = all.iter().map(|(_, event, message)| (event.clone(), message.clone())).collect();
    assert_eq!(told, [(late.clone(), one.clone()), (early.clone(), other.clone()), (same.clone(), one.clone())]);
    let rest = store.events_after(home, Some(all[0].0), 1).await.unwrap();
    assert_eq!(rest, all[1..2]);
    assert_eq!(store.events_after(home, Some(all[2].0), 9).await.unwrap(), []);
    assert_eq!(store.event(home, one.id, at(50), same.id).await.unwrap(), Some((same.clone(), one.clone())));
    assert_eq!(store.event(id(), one.id, at(50), same.id).await.unwrap(), None);
    assert_eq!(store.event(home, one.id, at(51), same.id).await.unwrap(), None);
    let keys = all.iter().map(|(_, event, message)| (message.id, event.at, event.id)).collect::<Vec<_>>();
    let mut found = store.events_among(home, &keys).await.unwrap();
    found.sort_by_key(|(event, _)| keys.iter().position(|(_, _, id)| *id == event.id));
    assert_eq!(found, all.iter().map(|(_, event, message)| (event.clone(), message.clone())).collect::<Vec<_>>());
    let absent = [(one.id, at(51), same.id), (id(), at(50), same.id), (one.id, at(50), id())];
    assert_eq!(store.events_among(home, &absent).await.unwrap(), []);
    assert_eq!(store.events_among(id(), &keys).await.unwrap(), []);
    assert_eq!(store.events_among(home, &[]).await.unwrap(), []);
    assert_eq!(store.events_among(home, &[keys[0], keys[0]]).await.unwrap().len(), 2);
}

/// The log position of a time lies after the events that happened before that time, and before those that happened at
/// it or later.
pub async fn a_position_of_a_time_divides_the_log(store: &dyn Store) {
    let home = id();
    let one = stored(store, home).await;
    for millis in [10, 20, 30] {
        put(store, logged(&event(&one, EventKind::Open, millis))).await;
    }
    for (millis, left) in [(0, 3), (10, 3), (11, 2), (30, 1), (31, 0)] {
        let position = store.log_position(home, at(millis)).await.unwrap();
        assert_eq!(store.events_after(home, Some(position), 9).await.unwrap().len(), left, "{millis}");
    }
}

/// Old entries of the log are removed a few at a time, while the events themselves stay. The position of a removed
/// entry is never given to another one, so a reader can continue after it.
pub async fn old_entries_are_forgotten(store: &dyn Store) {
    let home = workspace();
    let one = stored(store, home.id).await;
    put(store, [Write::put(home.clone(), Expect::Absent)]).await;
    for millis in [10, 20, 30] {
        put(store, logged(&event(&one, EventKind::Open, millis))).await;
    }
    let last = store.events_after(home.id, None, 9).await.unwrap().pop().unwrap().0;
    for expected in [2, 1, 0] {
        assert_eq!(store.forget_log(at(31), 2).await.unwrap(), expected);
    }
    assert_eq!(store.events_after(home.id, None, 9).await.unwrap(), []);
    assert_eq!(store.message_events(home.id, one.id, 9).await.unwrap().len(), 3);
    put(store, logged(&event(&one, EventKind::Open, 40))).await;
    assert_eq!(store.events_after(home.id, Some(last), 9).await.unwrap().len(), 1);
}

/// Each workspace has its own time until which its events are wanted in the log, and a later write replaces it.
pub async fn a_workspace_is_followed_until_a_time(store: &dyn Store) {
    let home = id();
    assert_eq!(store.followed_until(home).await.unwrap(), None);
    for millis in [10, 20] {
        put(store, [Write::FollowEvents(home, at(millis))]).await;
        assert_eq!(store.followed_until(home).await.unwrap(), Some(at(millis)));
    }
    assert_eq!(store.followed_until(id()).await.unwrap(), None);
}
