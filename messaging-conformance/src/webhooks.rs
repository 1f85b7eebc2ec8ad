//! Webhooks and their deliveries.

use messaging_core::changes::{Condition, DocumentKey, Expect, UpdateDelivery, WebhookWrite, Write};
use messaging_core::domain::webhook::delivery::{Delivery, DeliveryError, DeliveryStatus, Replayed, Subject};
use messaging_core::domain::webhook::{EventType, Webhook, WebhookStatus};
use messaging_core::ids::{DeliveryId, Id as _, MessageId, WebhookId, WorkspaceId};
use messaging_core::ports::store::{ReplayRange, Store, Stored};

use super::sample::{at, id, object, webhook};
use super::{all_pages, first, put, refuse};

fn put_webhook(webhook: &Webhook, expect: Expect) -> Write {
    Write::put(Box::new(webhook.clone()), expect)
}

/// Returns a due delivery of a bounce.
pub(super) fn delivery(workspace: WorkspaceId, webhook: WebhookId, millis: i64) -> Delivery {
    let subject = Subject::Event { message_id: id(), at: at(millis) };
    Delivery::new(id(), (workspace, webhook), (id(), EventType::Bounce), subject, at(millis))
}

/// Returns a delivery with every optional field set.
pub(super) fn full(workspace: WorkspaceId, webhook: WebhookId) -> Delivery {
    Delivery {
        status: DeliveryStatus::Failed,
        attempts: 10,
        next_attempt_at: Some(at(3)),
        response_status: Some(503),
        response_body: Some("später".to_owned()),
        error: Some(DeliveryError::HttpStatus),
        duration_ms: Some(15_000),
        replay_of: Some(id()),
        delivered_at: Some(at(4)),
        ..delivery(workspace, webhook, 2)
    }
}

pub(super) fn insert(delivery: &Delivery) -> Write {
    Write::Webhook(WebhookWrite::InsertDelivery(Box::new(delivery.clone())))
}

fn update(delivery: &Delivery, read: (DeliveryStatus, u32)) -> Write {
    Write::Webhook(WebhookWrite::UpdateDelivery(Box::new(UpdateDelivery { delivery: delivery.clone(), read })))
}

/// A commit that expects a status of a webhook is refused if the webhook has another status, or does not exist.
pub async fn the_state_of_a_webhook_is_expected(store: &dyn Store) {
    let hook = Webhook { status: WebhookStatus::Paused, ..webhook(id()) };
    let (workspace, hook_id) = (hook.workspace_id, hook.id);
    put(store, [put_webhook(&hook, Expect::Absent)]).await;
    let hold = |workspace| {
        let held = delivery(workspace, hook_id, 1).hold();
        [Write::Expect(Condition::Webhook(workspace, hook_id, WebhookStatus::Paused)), insert(&held)]
    };
    put(store, hold(workspace)).await;
    refuse(store, hold(id())).await;
    let resumed = Webhook { status: WebhookStatus::Active, ..hook.clone() };
    put(store, [put_webhook(&resumed, Expect::Revision(1))]).await;
    refuse(store, hold(workspace)).await;
    let [expected, held] = hold(workspace);
    refuse(store, [held, expected]).await;
    assert_eq!(store.backlog(workspace, hook_id, 9).await.unwrap().len(), 1);
    put(store, [put_webhook(&hook, Expect::Revision(2))]).await;
    put(store, hold(workspace)).await;
    put(store, [Write::Delete(DocumentKey::Webhook(workspace, hook_id))]).await;
    refuse(store, hold(workspace)).await;
}

/// Webhooks are read with all fields as they were written, and are only changed at their revision.
pub async fn webhooks_round_trip(store: &dyn Store) {
    let mut hook = webhook(id());
    let (workspace, hook_id) = (hook.workspace_id, hook.id);
    put(store, [put_webhook(&hook, Expect::Absent)]).await;
    refuse(store, [put_webhook(&hook, Expect::Absent)]).await;
    hook.status = WebhookStatus::Disabled;
    hook.previous_secret = None;
    put(store, [put_webhook(&hook, Expect::Revision(1))]).await;
    refuse(store, [put_webhook(&hook, Expect::Revision(1))]).await;
    let stored = store.webhook(workspace, hook_id).await.unwrap();
    assert_eq!(stored, Some(Stored { record: hook.clone(), revision: 2 }));
    assert_eq!(store.webhooks(workspace, first(9)).await.unwrap().items, [hook]);
    for _ in 0..2 {
        put(store, [Write::Delete(DocumentKey::Webhook(workspace, hook_id))]).await;
    }
    assert_eq!(store.webhook(workspace, hook_id).await.unwrap(), None);
}

/// Nothing is listed twice or left out while webhooks and deliveries are added.
pub async fn listing_is_exact_while_rows_are_inserted(store: &dyn Store) {
    let workspace = id();
    let hooks: Vec<_> = (0..5).map(|_| webhook(workspace)).collect();
    put(store, hooks.iter().map(|hook| put_webhook(hook, Expect::Absent)).collect::<Vec<_>>()).await;
    let more = async || put(store, [put_webhook(&webhook(workspace), Expect::Absent)]).await;
    let listed = all_pages(2, async |page| store.webhooks(workspace, page).await, more).await;
    assert_eq!(listed, hooks.iter().rev().cloned().collect::<Vec<_>>());
    let hook = hooks[0].id;
    for status in DeliveryStatus::ALL {
        let deliveries: Vec<_> =
            (0..5).map(|millis| Delivery { status, ..delivery(workspace, hook, millis) }).collect();
        put(store, deliveries.iter().map(insert).collect::<Vec<_>>()).await;
        let more = async || put(store, [insert(&Delivery { status, ..delivery(workspace, hook, 9) })]).await;
        let fetch = async |page| store.deliveries(workspace, hook, Some(status), page).await;
        let listed = all_pages(2, fetch, more).await;
        assert_eq!(listed, deliveries.iter().rev().cloned().collect::<Vec<_>>(), "{status:?}");
    }
    let all = all_pages(7, async |page| store.deliveries(workspace, hook, None, page).await, async || ()).await;
    assert_eq!(all.len(), 5 * (5 + 2));
    assert!(all.is_sorted_by(|one, other| one.id > other.id));
}

/// Webhooks and deliveries of another workspace are not found.
pub async fn other_workspaces_are_not_there(store: &dyn Store) {
    let (hook, other) = (webhook(id()), id());
    let mine = full(hook.workspace_id, hook.id);
    put(
        store,
        [
            put_webhook(&hook, Expect::Absent),
            insert(&mine),
            Write::Webhook(WebhookWrite::NoteFailure(other, hook.id, at(1))),
        ],
    )
    .await;
    assert_eq!(store.webhook(other, hook.id).await.unwrap(), None);
    assert_eq!(store.webhooks(other, first(9)).await.unwrap().items, []);
    assert_eq!(store.delivery(other, mine.id).await.unwrap(), None);
    for status in [None, Some(DeliveryStatus::Failed)] {
        assert_eq!(store.deliveries(other, hook.id, status, first(9)).await.unwrap().items, []);
    }
    assert_eq!(store.failing_since(hook.workspace_id, hook.id).await.unwrap(), None);
    let elsewhere = Delivery { workspace_id: other, ..mine.clone() };
    refuse(store, [update(&elsewhere, (DeliveryStatus::Failed, 10))]).await;
    put(
        store,
        [
            Write::Delete(DocumentKey::Webhook(other, hook.id)),
            Write::Webhook(WebhookWrite::MarkReplayed(other, mine.id)),
        ],
    )
    .await;
    assert!(store.webhook(hook.workspace_id, hook.id).await.unwrap().is_some());
    assert_eq!(store.replayable(hook.workspace_id, hook.id, &everything(Replayed::Failed), 9).await.unwrap(), [mine]);
}

/// The time since which a webhook fails is set by the first failure, and removed when the failures end.
pub async fn failures_begin_once_and_end(store: &dyn Store) {
    let (workspace, hook): (WorkspaceId, WebhookId) = (id(), id());
    let since = async || store.failing_since(workspace, hook).await.unwrap();
    put(store, [Write::Webhook(WebhookWrite::EndFailures(workspace, hook))]).await;
    for millis in [5, 7] {
        put(store, [Write::Webhook(WebhookWrite::NoteFailure(workspace, hook, at(millis)))]).await;
    }
    assert_eq!(since().await, Some(at(5)));
    put(store, [Write::Webhook(WebhookWrite::EndFailures(workspace, hook))]).await;
    assert_eq!(since().await, None);
}

/// Deliveries are read with all fields as they were written; an update needs the status and attempts that were read.
pub async fn deliveries_round_trip(store: &dyn Store) {
    let (workspace, hook) = (id(), id());
    let whole = full(workspace, hook);
    let bare = Delivery { next_attempt_at: None, ..delivery(workspace, hook, 5) };
    let tests = [None, Some(object(&serde_json::json!({"ü": [1.5, null]})))].map(|data| Delivery {
        subject: Subject::Test(data),
        event_type: EventType::Test,
        ..bare.replay(id(), at(6))
    });
    let all = [&whole, &bare, &tests[0], &tests[1]];
    put(store, all.map(insert)).await;
    for one in all {
        assert_eq!(store.delivery(workspace, one.id).await.unwrap().as_ref(), Some(one));
    }
    let ids: Vec<_> = all.iter().map(|one| one.id).chain([id()]).collect();
    let mut found = store.deliveries_among(workspace, &ids).await.unwrap();
    found.sort_by_key(|one| ids.iter().position(|id| *id == one.id));
    assert_eq!(found.iter().collect::<Vec<_>>(), all);
    assert_eq!(store.deliveries_among(id(), &ids).await.unwrap(), []);
    assert_eq!(store.deliveries_among(workspace, &[]).await.unwrap(), []);
    let changed = Delivery { id: bare.id, event_id: bare.event_id, subject: bare.subject.clone(), ..whole.clone() };
    let changed = Delivery { replay_of: None, created_at: bare.created_at, ..changed };
    refuse(store, [update(&changed, (DeliveryStatus::Pending, 1))]).await;
    refuse(store, [update(&changed, (DeliveryStatus::Held, 0))]).await;
    put(store, [update(&changed, (DeliveryStatus::Pending, 0))]).await;
    assert_eq!(store.delivery(workspace, bare.id).await.unwrap(), Some(changed));
}

/// The deliveries of a message to all webhooks are listed page by page, without those of other messages or workspaces.
pub async fn deliveries_of_a_message_are_found(store: &dyn Store) {
    let (workspace, message, hooks): (WorkspaceId, MessageId, [WebhookId; 3]) = (id(), id(), [id(), id(), id()]);
    let of = |workspace, message_id, hook, millis| Delivery {
        subject: Subject::Event { message_id, at: at(millis) },
        ..full(workspace, hook)
    };
    let mine: Vec<_> = hooks.iter().zip(1..).map(|(hook, millis)| of(workspace, message, *hook, millis)).collect();
    let test = Delivery { subject: Subject::Test(None), ..full(workspace, hooks[0]) };
    let (another, elsewhere) = (of(workspace, id(), hooks[0], 1), of(id(), message, hooks[0], 1));
    put(store, mine.iter().chain([&test, &another, &elsewhere]).map(insert).collect::<Vec<_>>()).await;
    let late = of(workspace, message, hooks[1], 9);
    let more = async || put(store, [insert(&of(workspace, message, hooks[0], 7))]).await;
    put(store, [insert(&late)]).await;
    let listed = all_pages(2, async |page| store.deliveries_of_message(workspace, message, page).await, more).await;
    assert_eq!(listed, [&late, &mine[2], &mine[1], &mine[0]].map(Clone::clone));
    let found = store.deliveries_of_message(elsewhere.workspace_id, message, first(9)).await.unwrap().items;
    assert_eq!(found, [elsewhere]);
    assert_eq!(store.deliveries_of_message(workspace, id(), first(9)).await.unwrap().items, []);
}

fn everything(replayed: Replayed) -> ReplayRange {
    ReplayRange { replayed, after: DeliveryId::from_bytes([0; 16]), until: DeliveryId::from_bytes([0xFF; 16]) }
}

/// The backlog has the deliveries of a webhook with `in_backlog`, oldest first, with any status.
pub async fn the_backlog_is_in_order(store: &dyn Store) {
    let (workspace, hook) = (id(), id());
    let all: Vec<_> = (0..4).map(|millis| delivery(workspace, hook, millis)).collect();
    let held = all[2].clone().hold();
    let waiting = Delivery { in_backlog: true, ..all[0].clone() };
    put(store, [&waiting, &all[1], &held, &all[3]].map(insert)).await;
    put(store, [insert(&delivery(workspace, id(), 5).hold())]).await;
    assert_eq!(store.backlog(workspace, hook, 9).await.unwrap(), [waiting.clone(), held]);
    assert_eq!(store.backlog(workspace, hook, 1).await.unwrap(), std::slice::from_ref(&waiting));
    let sent = Delivery { in_backlog: false, status: DeliveryStatus::Delivered, attempts: 1, ..waiting };
    put(store, [update(&sent, (DeliveryStatus::Pending, 0))]).await;
    assert_eq!(store.backlog(workspace, hook, 9).await.unwrap().len(), 1);
}

/// A replay repeats the failed and expired deliveries of events that were not replayed, or every event once.
pub async fn replays_find_what_they_repeat(store: &dyn Store) {
    use DeliveryStatus as S;
    let (workspace, hook) = (id(), id());
    let of = |status| Delivery { status, next_attempt_at: None, ..delivery(workspace, hook, 1) };
    let [pending, delivered, failed, held, expired] = S::ALL.map(of);
    let replayed = of(S::Failed);
    let replay = Delivery { replay_of: Some(replayed.id), ..of(S::Failed) };
    let test = Delivery { subject: Subject::Test(None), ..of(S::Failed) };
    let all = [&pending, &delivered, &failed, &held, &expired, &replayed, &replay, &test];
    put(store, all.map(insert)).await;
    put(store, [Write::Webhook(WebhookWrite::MarkReplayed(workspace, replayed.id))]).await;
    let find = async |range: &ReplayRange, limit| {
        let found = store.replayable(workspace, hook, range, limit).await.unwrap();
        let counted = store.count_replayable(workspace, hook, range, limit).await.unwrap();
        assert_eq!(counted, found.last().map(|last| (found.len() as u64, last.id)));
        found.into_iter().map(|delivery| delivery.id).collect::<Vec<_>>()
    };
    let missed = everything(Replayed::Failed);
    assert_eq!(find(&missed, 9).await, [failed.id, expired.id, replay.id]);
    assert_eq!(find(&missed, 2).await, [failed.id, expired.id]);
    assert_eq!(find(&ReplayRange { after: failed.id, until: expired.id, ..missed }, 9).await, [expired.id]);
    assert_eq!(find(&ReplayRange { after: replay.id, ..missed }, 9).await, []);
    let events = everything(Replayed::All);
    assert_eq!(find(&events, 9).await, [delivered.id, failed.id, expired.id, replayed.id]);
    let again = Delivery { status: S::Delivered, attempts: 1, ..failed.clone() };
    put(store, [update(&again, (S::Failed, 0))]).await;
    assert_eq!(find(&missed, 9).await, [expired.id, replay.id]);
}

/// Giving up backlogs fails deliveries in every workspace that wait for their turn or their webhook, some at a time.
pub async fn backlogs_are_given_up(store: &dyn Store) {
    use DeliveryStatus as S;
    let receivers: [(WorkspaceId, WebhookId); 2] = [(id(), id()), (id(), id())];
    for (workspace, hook) in receivers {
        let waiting = Delivery { in_backlog: true, ..delivery(workspace, hook, 1) };
        let held = delivery(workspace, hook, 2).hold();
        let own_job = delivery(workspace, hook, 3);
        let sent = Delivery { status: S::Delivered, ..delivery(workspace, hook, 4) };
        put(store, [&waiting, &held, &own_job, &sent].map(insert)).await;
    }
    for expected in [3, 1, 0] {
        assert_eq!(store.give_up_backlogs(3).await.unwrap(), expected);
    }
    for (workspace, hook) in receivers {
        let listed = store.deliveries(workspace, hook, None, first(9)).await.unwrap().items;
        let statuses: Vec<_> = listed.iter().rev().map(|delivery| delivery.status).collect();
        assert_eq!(statuses, [S::Failed, S::Failed, S::Pending, S::Delivered]);
        assert!(listed.iter().all(|delivery| !delivery.in_backlog));
        assert_eq!(store.backlog(workspace, hook, 9).await.unwrap(), []);
        assert_eq!(store.replayable(workspace, hook, &everything(Replayed::Failed), 9).await.unwrap().len(), 2);
    }
}

/// Held deliveries that are old expire; old deliveries are removed, and younger ones stay.
pub async fn deliveries_expire_and_are_forgotten(store: &dyn Store) {
    let (workspace, hook) = (id(), id());
    let held: Vec<_> = (0..4).map(|millis| delivery(workspace, hook, millis * 10).hold()).collect();
    let sent = Delivery { status: DeliveryStatus::Delivered, ..delivery(workspace, hook, 40) };
    put(store, held.iter().chain([&sent]).map(insert).collect::<Vec<_>>()).await;
    for expected in [2, 1, 0] {
        assert_eq!(store.expire_deliveries(at(30), 2).await.unwrap(), expected);
    }
    let statuses = async || {
        let listed = store.deliveries(workspace, hook, None, first(9)).await.unwrap().items;
        listed.iter().rev().map(|delivery| delivery.status.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(statuses().await, ["expired", "expired", "expired", "held", "delivered"]);
    assert_eq!(store.backlog(workspace, hook, 9).await.unwrap(), held[3..]);
    assert_eq!(store.replayable(workspace, hook, &everything(Replayed::Failed), 9).await.unwrap().len(), 3);
    for expected in [3, 1, 0] {
        assert_eq!(store.forget_deliveries(at(40), 3).await.unwrap(), expected);
    }
    assert_eq!(statuses().await, ["delivered"]);
}
