//! Commits: all or nothing, and without effect on others.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use messaging_core::changes::{AutomationWrite, Changes, Expect, Write};
use messaging_core::domain::message::MessageStatus;
use messaging_core::domain::security::account::{User, Workspace};
use messaging_core::ports::store::{CommitBatch, CommitError, CommitObserver, Priority, Store, StoreError};

use super::sample::{at, change, claim, enqueue, id, insert, message, next_due, reply, user, workspace};
use super::{commit, put, refuse};

/// Changes that are never handed over have no effect.
pub async fn dropped_changes_leave_nothing(store: &dyn Store) {
    let user = user();
    let mut changes = Changes::default();
    changes.push(Write::put(user.clone(), Expect::Absent));
    drop(changes);
    // A commit that nobody starts has no effect either.
    drop(commit(store, [Write::put(user.clone(), Expect::Absent)]));
    assert_eq!(store.user(user.id).await.unwrap(), None);
}

/// A failing write in the middle undoes those before it and prevents those after it.
pub async fn a_failing_write_takes_the_others_with_it(store: &dyn Store) {
    let existing = user();
    put(store, [Write::put(existing.clone(), Expect::Absent)]).await;
    let (before, after) = (workspace(), message(id()));
    let writes = [
        Write::put(before.clone(), Expect::Absent),
        enqueue("lane", 0),
        Write::put(existing, Expect::Absent),
        insert(&after),
        Write::Remember(Box::new(reply("key", 0, 100))),
    ];
    refuse(store, writes).await;
    assert_eq!(store.workspace(before.id).await.unwrap(), None);
    assert_eq!(store.message(after.workspace_id, after.id).await.unwrap(), None);
    assert_eq!(store.reply(&reply("key", 0, 100).key, at(0)).await.unwrap(), None);
    assert_eq!(store.claim(claim(10)).await.unwrap(), []);
    assert_eq!(next_due(store).await, None);
    assert_eq!(store.job_count().await.unwrap(), 0);
}

/// A revision that was read can be used for one change.
pub async fn a_revision_is_used_once(store: &dyn Store) {
    let original = workspace();
    put(store, [Write::put(original.clone(), Expect::Absent)]).await;
    let named = |name: &str| Workspace { name: name.to_owned(), ..original.clone() };
    put(store, [Write::put(named("first"), Expect::Revision(1))]).await;
    refuse(store, [Write::put(named("second"), Expect::Revision(1))]).await;
    refuse(store, [Write::put(named("from the future"), Expect::Revision(3))]).await;
    refuse(store, [Write::put(workspace(), Expect::Revision(1))]).await;
    let found = store.workspace(original.id).await.unwrap().unwrap();
    assert_eq!((found.record, found.revision), (named("first"), 2));
}

/// Observed commits: the number of writes in each, and the number made durable together.
#[derive(Debug, Default)]
struct ObservedCommits(Mutex<(Vec<usize>, usize)>);

impl CommitObserver for ObservedCommits {
    fn committed(&self, changes: &Changes, _: Duration) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0.push(changes.writes().len());
    }

    fn synced(&self, batch: CommitBatch) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1 += batch.commits;
    }
}

/// An observer hears of every commit before its caller does, once, and of no refused one.
pub async fn commits_are_observed_once_and_refusals_never(store: &dyn Store) {
    let observed = Arc::new(ObservedCommits::default());
    store.observe(Arc::clone(&observed) as Arc<dyn CommitObserver>);
    let user = user();
    put(store, [Write::put(user.clone(), Expect::Absent), Write::Automation(AutomationWrite::CausedAt(0))]).await;
    assert_eq!(*observed.0.lock().unwrap(), (vec![2], 1));
    refuse(store, [Write::put(user.clone(), Expect::Absent)]).await;
    refuse(store, [Write::put(workspace(), Expect::Absent), Write::put(user, Expect::Absent)]).await;
    assert_eq!(*observed.0.lock().unwrap(), (vec![2], 1));
    // A conflict elsewhere in the transaction makes it apply the commit anew.
    let shared = message(id());
    put(store, [insert(&shared)]).await;
    let commits = (0..9).map(|n| {
        let mut writes = vec![insert(&message(shared.workspace_id))];
        if n % 3 == 1 {
            writes.push(change(&shared, 7, MessageStatus::Sending));
        }
        store.commit(writes.into_iter().collect(), Priority::Foreground)
    });
    at_once(commits.collect()).await;
    assert_eq!(*observed.0.lock().unwrap(), ([vec![2], vec![1; 7]].concat(), 8));
    let other = Arc::new(ObservedCommits::default());
    store.observe(Arc::clone(&other) as Arc<dyn CommitObserver>);
    put(store, [insert(&message(shared.workspace_id))]).await;
    assert_eq!((observed.0.lock().unwrap().1, other.0.lock().unwrap().1), (8, 1));
}

/// A write that expects an absent record is refused if there is one.
pub async fn absent_means_absent(store: &dyn Store) {
    let user = user();
    put(store, [Write::put(user.clone(), Expect::Absent)]).await;
    let changed = User { name: None, email: "other@example.org".to_owned(), ..user.clone() };
    refuse(store, [Write::put(changed, Expect::Absent)]).await;
    assert_eq!(store.user(user.id).await.unwrap().unwrap().record, user);
}

/// Of many concurrent commits, those that conflict fail and the others succeed, wherever in a commit the conflict is.
pub async fn conflicts_in_a_crowd_hurt_nobody_else(store: &dyn Store) {
    let shared = message(id());
    put(store, [insert(&shared)]).await;
    let messages: Vec<_> = (0..40).map(|_| message(shared.workspace_id)).collect();
    let commits = messages.iter().enumerate().map(|(n, message)| {
        let writes: Vec<Write> = match n % 4 {
            // Fails at its last write.
            1 => vec![insert(message), enqueue("lane", 0), change(&shared, 7, MessageStatus::Sending)],
            // Fails at its first.
            2 => vec![change(&shared, 7, MessageStatus::Sending), insert(message)],
            _ => vec![insert(message), enqueue("lane", 0)],
        };
        let priority = if n % 8 < 4 { Priority::Foreground } else { Priority::Background };
        store.commit(writes.into_iter().collect(), priority)
    });
    let outcomes = at_once(commits.collect()).await;
    for (n, (message, outcome)) in messages.iter().zip(outcomes).enumerate() {
        let stored = store.message(message.workspace_id, message.id).await.unwrap();
        if matches!(n % 4, 1 | 2) {
            assert!(matches!(outcome, Err(CommitError::Conflict)), "{n}: {outcome:?}");
            assert_eq!(stored, None);
        } else {
            assert!(outcome.is_ok(), "{n}: {outcome:?}");
            assert_eq!(stored.as_ref(), Some(message));
        }
    }
    assert_eq!(store.job_count().await.unwrap(), 20);
    assert_eq!(store.claim(claim(0)).await.unwrap().len(), 20);
}

/// Polls all futures together and returns their outputs in order.
pub async fn at_once<F: Future + Unpin>(futures: Vec<F>) -> Vec<F::Output> {
    let mut slots: Vec<_> = futures.into_iter().map(|future| (future, None)).collect();
    std::future::poll_fn(|cx| {
        let mut waiting = false;
        for (future, output) in &mut slots {
            if output.is_none() {
                match std::pin::Pin::new(future).poll(cx) {
                    std::task::Poll::Ready(ready) => *output = Some(ready),
                    std::task::Poll::Pending => waiting = true,
                }
            }
        }
        if waiting { std::task::Poll::Pending } else { std::task::Poll::Ready(()) }
    })
    .await;
    slots.into_iter().filter_map(|(_, output)| output).collect()
}

/// Committing no changes succeeds.
pub async fn nothing_is_a_fine_commit(store: &dyn Store) {
    put(store, []).await;
    store.ping().await.unwrap();
}

/// After closing, everything answers `Unavailable`; earlier commits are not tested here.
pub async fn a_closed_store_takes_nothing(store: &dyn Store) {
    store.close().await;
    let outcome = commit(store, [Write::put(user(), Expect::Absent)]).await;
    assert!(matches!(outcome, Err(CommitError::Store(StoreError::Unavailable))), "{outcome:?}");
    assert!(matches!(store.ping().await, Err(StoreError::Unavailable)));
    assert!(matches!(store.claim(claim(0)).await, Err(StoreError::Unavailable)));
}
