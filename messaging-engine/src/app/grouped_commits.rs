//! Outcomes of jobs that are committed in groups.
//!
//! No outcome waits for a group: the first to come is committed, and those that come while that takes are the next
//! commit. So groups grow with the load, and a lone outcome is as fast as without. The job whose turn it is to lead
//! commits for itself and those behind it, and then passes the lead on.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use messaging_core::changes::{Changes, WebhookWrite, Write};
use tokio::sync::oneshot;

/// Largest number of outcomes in one commit: requests that come meanwhile wait for all of them, some two milliseconds.
const LARGEST: usize = 64;

/// Changes that wait to be committed, at most one set for each job in work.
#[derive(Debug, Default)]
pub(crate) struct GroupedCommits(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Offer>,
    /// True if a job leads, or was asked to.
    is_led: bool,
}

/// The changes of one job, with the channel for its answer.
#[derive(Debug)]
struct Offer {
    changes: Changes,
    told: oneshot::Sender<Turn>,
}

/// Answer to a job whose changes waited.
#[derive(Debug)]
pub(crate) enum Turn {
    /// Another job has committed the changes. False: nothing of the group was committed, and each job offers its
    /// changes to the store by itself.
    Over(bool),
    /// The job leads: its changes are given back, to be committed with those that wait behind them.
    Lead(Leading, Changes),
}

/// The right to commit waiting changes, which passes to the next job when it is dropped.
#[derive(Debug)]
pub(crate) struct Leading(Option<Arc<GroupedCommits>>);

/// Jobs whose changes another job commits.
#[derive(Debug)]
pub(crate) struct Followers(Vec<oneshot::Sender<Turn>>);

impl GroupedCommits {
    /// Offers changes. Returns the receiver of the answer, or gives the changes back with the lead if no job has it.
    pub(crate) fn offer(self: &Arc<Self>, changes: Changes) -> Result<(Leading, Changes), oneshot::Receiver<Turn>> {
        let mut queue = self.lock();
        if !std::mem::replace(&mut queue.is_led, true) {
            return Ok((Leading(Some(Arc::clone(self))), changes));
        }
        let (told, turn) = oneshot::channel();
        queue.waiting.push_back(Offer { changes, told });
        Err(turn)
    }

    /// Gives the lead to the first waiting job that still exists.
    fn pass_on(self: &Arc<Self>) {
        while let Some(Offer { changes, told }) = self.next() {
            match told.send(Turn::Lead(Leading(Some(Arc::clone(self))), changes)) {
                // The job went away, and its changes with it.
                Err(Turn::Lead(mut unheard, _)) => unheard.0 = None,
                _ => return,
            }
        }
    }

    fn next(&self) -> Option<Offer> {
        let mut queue = self.lock();
        let next = queue.waiting.pop_front();
        queue.is_led = next.is_some();
        next
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Leading {
    /// Returns the changes with those that wait, in the order in which they were offered.
    pub(crate) fn gather(&self, own: Changes) -> (Changes, Followers) {
        let Some(commits) = &self.0 else { return (own, Followers(Vec::new())) };
        let offers: Vec<_> = {
            let mut queue = commits.lock();
            let most = queue.waiting.len().min(LARGEST - 1);
            queue.waiting.drain(..most).collect()
        };
        if offers.is_empty() {
            return (own, Followers(Vec::new()));
        }
        let (others, told): (Vec<_>, _) = offers.into_iter().map(|Offer { changes, told }| (changes, told)).unzip();
        (said_once(std::iter::once(own).chain(others).flatten()), Followers(told))
    }
}

impl Followers {
    /// Reports whether the commit was made.
    pub(crate) fn tell(self, is_committed: bool) {
        for told in self.0 {
            // A job that went away needs no answer.
            let _ = told.send(Turn::Over(is_committed));
        }
    }
}

impl Drop for Leading {
    fn drop(&mut self) {
        if let Some(commits) = self.0.take() {
            commits.pass_on();
        }
    }
}

/// Returns the writes without those that end the failures of a webhook which an earlier write has ended.
fn said_once(writes: impl Iterator<Item = Write>) -> Changes {
    let mut working = HashSet::new();
    let is_news = |write: &Write| match write {
        Write::Webhook(WebhookWrite::EndFailures(workspace, webhook)) => working.insert((*workspace, *webhook)),
        Write::Webhook(WebhookWrite::NoteFailure(workspace, webhook, _)) => {
            working.remove(&(*workspace, *webhook));
            true
        }
        _ => true,
    };
    writes.filter(is_news).collect()
}

#[cfg(test)]
mod tests {
    use messaging_core::ids::{Id as _, WebhookId, WorkspaceId};
    use messaging_core::time::Timestamp;

    use super::*;

    fn works(webhook: u8) -> Write {
        Write::Webhook(WebhookWrite::EndFailures(
            WorkspaceId::from_bytes([1; 16]),
            WebhookId::from_bytes([webhook; 16]),
        ))
    }

    fn fails(webhook: u8) -> Write {
        let (workspace, webhook) = (WorkspaceId::from_bytes([1; 16]), WebhookId::from_bytes([webhook; 16]));
        Write::Webhook(WebhookWrite::NoteFailure(workspace, webhook, Timestamp::from_millis(0)))
    }

    fn of(write: Write) -> Changes {
        Changes::from_iter([write])
    }

    /// `+1 -2`: webhook 1 works, webhook 2 fails.
    fn shown(changes: &Changes) -> String {
        let one = |write: &Write| match write {
            Write::Webhook(WebhookWrite::EndFailures(_, webhook)) => format!("+{}", webhook.to_bytes()[0]),
            Write::Webhook(WebhookWrite::NoteFailure(_, webhook, _)) => format!("-{}", webhook.to_bytes()[0]),
            other => panic!("{other:?}"),
        };
        changes.writes().iter().map(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn failures_are_ended_once_unless_there_is_one_between() {
        for (given, expected) in [
            (vec![works(1), works(1), works(2), works(1)], "+1 +2"),
            (vec![works(1), fails(1), works(1), works(1)], "+1 -1 +1"),
            (vec![fails(1), fails(1), works(2), fails(2)], "-1 -1 +2 -2"),
        ] {
            assert_eq!(shown(&said_once(given.into_iter())), expected);
        }
    }

    #[tokio::test]
    async fn what_comes_during_a_commit_is_the_next_one() {
        let commits = Arc::new(GroupedCommits::default());
        let (leading, own) = commits.offer(of(works(1))).unwrap();
        let (first, nobody) = leading.gather(own);
        assert_eq!(shown(&first), "+1");
        let [second, third, fourth] = [2, 3, 4].map(|webhook| commits.offer(of(works(webhook))).unwrap_err());
        nobody.tell(true);
        drop(leading);
        let Turn::Lead(leading, own) = second.await.unwrap() else { panic!("nobody leads") };
        let (group, followers) = leading.gather(own);
        assert_eq!(shown(&group), "+2 +3 +4");
        followers.tell(false);
        drop(leading);
        for follower in [third, fourth] {
            assert!(matches!(follower.await.unwrap(), Turn::Over(false)));
        }
        assert!(commits.offer(of(works(5))).is_ok(), "nobody leads any more");
    }

    #[tokio::test]
    async fn the_lead_is_not_lost_with_whoever_goes_away() {
        let commits = Arc::new(GroupedCommits::default());
        let (leading, _) = commits.offer(of(works(1))).unwrap();
        let [gone, also, there] = [2, 3, 4].map(|webhook| commits.offer(of(works(webhook))).unwrap_err());
        drop(gone);
        drop(leading);
        // The job was asked to lead and ends before it receives that.
        drop(also);
        let Turn::Lead(leading, own) = there.await.unwrap() else { panic!("nobody leads") };
        assert_eq!(shown(&leading.gather(own).0), "+4");
        drop(leading);
        assert!(commits.offer(of(works(5))).is_ok());
    }

    #[tokio::test]
    async fn a_group_has_a_bound() {
        let commits = Arc::new(GroupedCommits::default());
        let (leading, own) = commits.offer(of(works(1))).unwrap();
        let waiting: Vec<_> = (0..LARGEST).map(|_| commits.offer(of(fails(2))).unwrap_err()).collect();
        assert_eq!(leading.gather(own).0.writes().len(), LARGEST);
        drop(leading);
        let last = waiting.into_iter().last().unwrap();
        assert!(matches!(last.await.unwrap(), Turn::Lead(..)));
    }
}
