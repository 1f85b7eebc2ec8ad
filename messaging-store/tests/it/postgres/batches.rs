//! Commits that wait together: one transaction, one round trip, and each its own outcome.

use futures_util::future::join_all;
use messaging_conformance::cluster::Database;
use messaging_conformance::sample;
use messaging_core::changes::{Changes, Expect, LogEvent, Write};
use messaging_core::domain::audience::contact::Contact;
use messaging_core::domain::message::{EventKind, Message, MessageStatus};
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::Store as _;
use messaging_core::ports::store::jobs::ClaimedJob;
use messaging_core::ports::store::{CommitError, Jobs as _, Messages as _, Priority};
use messaging_store::PostgresStore;

use super::connect;

/// The writes of a commit that accepts a message.
fn accept(workspace: WorkspaceId, n: usize) -> Vec<Write> {
    let message = sample::bare_message(workspace);
    let event = sample::event(&message, EventKind::Queued, 10);
    let logged = LogEvent { workspace_id: workspace, message_id: message.id, at: event.at, event_id: event.id };
    vec![
        sample::insert(&message),
        Write::AppendEvent(Box::new(event)),
        Write::LogEvent(logged),
        sample::enqueue(&format!("email:d{}.example", n % 5), 0),
        Write::Remember(Box::new(sample::reply(&format!("key {n}"), 0, 100))),
    ]
}

async fn open() -> Option<PostgresStore> {
    let database = Database::create().await?;
    Some(PostgresStore::open(database.options()).await.unwrap())
}

async fn commit_all(store: &PostgresStore, all: Vec<Vec<Write>>) -> Vec<Result<(), CommitError>> {
    let commit = |writes| store.commit(Changes::from_iter::<Vec<Write>>(writes), Priority::Foreground);
    join_all(all.into_iter().map(commit)).await
}

/// Transactions and round trips so far.
async fn counted(store: &PostgresStore) -> (u64, u64) {
    let cluster = store.cluster().await.unwrap().unwrap();
    (cluster.transactions, cluster.round_trips)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accepting_takes_one_round_trip_for_many_requests() {
    let Some(store) = open().await else { return };
    let workspace = sample::id();
    let first = commit_all(&store, vec![accept(workspace, 0)]).await;
    assert!(first[0].is_ok(), "{first:?}");
    let before = counted(&store).await;
    let outcomes = commit_all(&store, (1..=512).map(|n| accept(workspace, n)).collect()).await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    let after = counted(&store).await;
    let (transactions, round_trips) = (after.0 - before.0, after.1 - before.1);
    assert_eq!(round_trips, transactions, "each transaction is one round trip");
    assert!(transactions < 64, "{transactions} transactions for 512 requests");
    store.close().await;
}

/// The writes of a commit that says that a message was delivered and its job is done.
fn deliver(message: &Message, job: &ClaimedJob) -> Vec<Write> {
    let mut writes = vec![
        sample::change(message, message.revision, MessageStatus::Delivered),
        Write::AppendEvent(Box::new(sample::event(message, EventKind::Delivered, 20))),
        Write::EndSoftBounces(message.workspace_id, message.channel, message.to.clone()),
    ];
    writes.extend(sample::finish(std::slice::from_ref(job)));
    writes
}

/// Accepts messages, and claims as many jobs.
async fn accept_and_claim(
    store: &PostgresStore,
    workspace: WorkspaceId,
    count: usize,
) -> (Vec<Message>, Vec<ClaimedJob>) {
    let messages: Vec<_> = (0..count).map(|_| sample::bare_message(workspace)).collect();
    let accepting = messages.iter().map(|message| vec![sample::insert(message), sample::enqueue("email:a.example", 0)]);
    let outcomes = commit_all(store, accepting.collect()).await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    let mut claim = sample::claim(1);
    (claim.max, claim.per_lane) = (count, count);
    let mut jobs = Vec::new();
    while jobs.len() < count {
        jobs.extend(store.claim(claim.clone()).await.unwrap());
    }
    (messages, jobs)
}

#[tokio::test]
async fn outcomes_of_many_messages_are_one_round_trip() {
    let Some(store) = open().await else { return };
    let workspace = sample::id();
    // Two transactions, which first ask who wants to hear of it, and know it from then on.
    for (most, message) in [(4, "subscriptions are asked for"), (2, "subscriptions are known")] {
        let (messages, jobs) = accept_and_claim(&store, workspace, 256).await;
        let before = counted(&store).await;
        let delivering = messages.iter().zip(&jobs).map(|(message, job)| deliver(message, job)).collect();
        let outcomes = commit_all(&store, delivering).await;
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
        let after = counted(&store).await;
        assert!(after.1 - before.1 <= most, "{} round trips: {message}", after.1 - before.1);
        for sent in &messages {
            let found = store.message(sent.workspace_id, sent.id).await.unwrap().unwrap();
            assert_eq!((found.status, found.revision), (MessageStatus::Delivered, sent.revision + 1));
        }
    }
    store.close().await;
}

#[tokio::test]
async fn an_outcome_that_meets_another_is_the_only_one_that_is_refused() {
    let Some(store) = open().await else { return };
    let (messages, jobs) = accept_and_claim(&store, sample::id(), 100).await;
    // Somebody has changed one message meanwhile, and one job is done already.
    let changed = sample::change(&messages[70], messages[70].revision, MessageStatus::Cancelled);
    store.commit(Changes::from_iter([changed]), Priority::Foreground).await.unwrap();
    let done = sample::finish(&jobs[10..11]);
    store.commit(Changes::from_iter(done), Priority::Foreground).await.unwrap();
    let delivering = messages.iter().zip(&jobs).map(|(message, job)| deliver(message, job)).collect();
    for (n, outcome) in commit_all(&store, delivering).await.into_iter().enumerate() {
        match n {
            10 => assert!(matches!(outcome, Err(CommitError::LeaseLost)), "{outcome:?}"),
            70 => assert!(matches!(outcome, Err(CommitError::Conflict)), "{outcome:?}"),
            _ => assert!(outcome.is_ok(), "{n}: {outcome:?}"),
        }
    }
    for (n, message) in messages.iter().enumerate() {
        let found = store.message(message.workspace_id, message.id).await.unwrap().unwrap();
        assert_eq!(found.status == MessageStatus::Delivered, n != 10 && n != 70, "{n}");
    }
    store.close().await;
}

#[tokio::test]
async fn changes_of_one_message_that_come_together_keep_their_order() {
    let Some(store) = open().await else { return };
    let (messages, _) = accept_and_claim(&store, sample::id(), 20).await;
    let step = |status, later| {
        let each = messages.iter().map(move |message| vec![sample::change(message, message.revision + later, status)]);
        each.collect::<Vec<_>>()
    };
    let steps = [step(MessageStatus::Sending, 0), step(MessageStatus::Delivered, 1)].concat();
    let outcomes = commit_all(&store, steps).await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    // Within one commit as well, whatever stands between.
    let (messages, _) = accept_and_claim(&store, sample::id(), 2).await;
    let mut writes = Vec::new();
    for (later, status) in [(0, MessageStatus::Sending), (1, MessageStatus::Delivered)] {
        for message in &messages {
            writes.push(sample::change(message, message.revision + later, status));
            writes.push(Write::AppendEvent(Box::new(sample::event(message, EventKind::Queued, 30))));
        }
    }
    store.commit(Changes::from_iter(writes), Priority::Background).await.unwrap();
    for message in &messages {
        let found = store.message(message.workspace_id, message.id).await.unwrap().unwrap();
        assert_eq!((found.status, found.revision), (MessageStatus::Delivered, message.revision + 2));
    }
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_refused_takes_nobody_with_it() {
    let Some(store) = open().await else { return };
    let workspace = sample::id();
    let mut all: Vec<_> = (0..100).map(|n| accept(workspace, n)).collect();
    // Two requests with one key: whichever comes second is refused, with all that it would have added.
    all.push(accept(workspace, 50));
    let mut messages = Vec::new();
    for writes in &all {
        let Some(Write::InsertMessage(message, _)) = writes.first() else { panic!("a message comes first") };
        messages.push(message.id);
    }
    let outcomes = commit_all(&store, all).await;
    let refused: Vec<_> = (0..outcomes.len()).filter(|n| outcomes[*n].is_err()).collect();
    assert!(refused == [50] || refused == [100], "{outcomes:?}");
    for (n, id) in messages.into_iter().enumerate() {
        let found = store.message(workspace, id).await.unwrap();
        assert_eq!(found.is_some(), !refused.contains(&n), "{n}");
        let events = store.message_events(workspace, id, 9).await.unwrap().len();
        assert_eq!(events, usize::from(found.is_some()), "{n}");
    }
    store.close().await;
}

#[tokio::test]
async fn what_a_segment_begins_to_read_is_noted_although_nobody_was_known_to_read_it() {
    let Some(database) = Database::create().await else { return };
    let store = PostgresStore::open(database.options()).await.unwrap();
    let client = connect(&database).await;
    let contact = sample::contact(sample::id());
    let put = |expect| {
        let changes = Changes::from_iter([Write::put_contact(contact.clone(), expect)]);
        store.commit(changes, Priority::Foreground)
    };
    put(Expect::Absent).await.unwrap();
    put(Expect::Revision(1)).await.unwrap();
    let noted = "SELECT count(*) FROM changed_contacts";
    assert_eq!(client.query_one(noted, &[]).await.unwrap().get::<_, i64>(0), 0);
    // As another process does that makes a segment.
    let mask = i64::from(ReadMask::ALL.bits());
    client.execute("UPDATE workspace_numbers SET read_mask = $1", &[&mask]).await.unwrap();
    let changed = Contact { locale: Some("lv".to_owned()), ..contact.clone() };
    let changes = Changes::from_iter([Write::put_contact(changed, Expect::Revision(2))]);
    store.commit(changes, Priority::Foreground).await.unwrap();
    assert_eq!(client.query_one(noted, &[]).await.unwrap().get::<_, i64>(0), 1);
    // And a conflict is one, whatever was known.
    for _ in 0..2 {
        assert!(matches!(put(Expect::Revision(2)).await, Err(CommitError::Conflict)));
    }
    store.close().await;
}
