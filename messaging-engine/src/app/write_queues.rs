//! Queues of the writers of one resource.
//!
//! A call whose commit finds its data changed reads and decides again. With many writers of one resource most commits
//! would fail like this, and some calls would give up. So calls that change the same resource enter its queue first and
//! run one after another, in the order they came. Queues are per process: the revisions of records still reveal
//! conflicts with other processes and background work.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use messaging_core::domain::audience::contact::Identifier;
use messaging_core::ids::WorkspaceId;
use tokio::sync::OwnedMutexGuard;
use tokio::time::timeout;

use crate::error::Error;

/// Number of calls that may be in one queue, the running one included; further ones are refused with a time to try
/// again.
const MAX_QUEUED: usize = 512;

/// Longest time a call waits for the turns of all its resources together.
const MAX_WAIT: Duration = Duration::from_secs(20);

/// Key by which writers are put in order: the path of a resource, or an identifier of a contact in its workspace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceKey(String);

impl ResourceKey {
    /// Returns the key of a path: the path up to its first id below the workspace, or the path of the workspace itself.
    /// `None` for a collection, whose members are created independently of one another.
    pub fn of_path(template: &str, path: &str) -> Option<Self> {
        const WORKSPACE: &str = "{workspace_id}";
        if !template.contains('{') {
            return None;
        }
        let parts = || template.split('/').zip(path.split('/'));
        let named = parts().position(|(part, _)| part.starts_with('{') && part != WORKSPACE);
        let end = match named {
            Some(position) => position + 1,
            None if template.ends_with(WORKSPACE) => template.split('/').count(),
            None => return None,
        };
        Some(Self(parts().take(end).map(|(_, part)| part).collect::<Vec<_>>().join("/")))
    }

    /// Returns the key of a workspace; also for calls that count records of the workspace before they decide.
    pub fn of_workspace(workspace: WorkspaceId) -> Self {
        Self(format!("/workspaces/{workspace}"))
    }

    /// Returns the key of the contact that has an identifier, whether or not it exists.
    pub fn of_identifier(workspace: WorkspaceId, identifier: &Identifier) -> Self {
        Self(match identifier {
            Identifier::ExternalId(text) => format!("{workspace} external_id {text}"),
            Identifier::Email(text) => format!("{workspace} email {text}"),
            Identifier::Phone(text) => format!("{workspace} phone {text}"),
        })
    }
}

/// A queue: its lock is fair, and `users` is the number of calls that wait for it or hold it.
#[derive(Debug, Default)]
struct Queue {
    lock: Arc<tokio::sync::Mutex<()>>,
    users: usize,
}

/// Queues of the resources that are being written at the moment.
#[derive(Debug, Default)]
pub(crate) struct WriteQueues(Mutex<HashMap<ResourceKey, Queue>>);

impl WriteQueues {
    fn queues(&self) -> MutexGuard<'_, HashMap<ResourceKey, Queue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other call writes any of the resources, which are the caller's until the turn is dropped. Fails
    /// with `Unavailable` if a queue is full, or after `MAX_WAIT`.
    ///
    /// All calls take the turns of several resources in the same order, so that there is no deadlock.
    pub(crate) async fn enter(&self, mut resources: Vec<ResourceKey>) -> Result<WriteTurn<'_>, Error> {
        if resources.is_empty() {
            // The most frequent calls, which send messages and events, name no resources.
            return Ok(WriteTurn { queues: self, resources, held: Vec::new() });
        }
        resources.sort_unstable();
        resources.dedup();
        let busy = Error::Unavailable { retry_after: 1 };
        let mut locks = Vec::with_capacity(resources.len());
        {
            let mut queues = self.queues();
            if resources.iter().any(|resource| queues.get(resource).is_some_and(|queue| queue.users >= MAX_QUEUED)) {
                return Err(busy);
            }
            for resource in &resources {
                let queue = queues.entry(resource.clone()).or_default();
                queue.users += 1;
                locks.push(Arc::clone(&queue.lock));
            }
        }
        // From here on dropping the turn, also while it waits, leaves the queues.
        let mut turn = WriteTurn { queues: self, resources, held: Vec::with_capacity(locks.len()) };
        let waiting = async {
            for lock in locks {
                turn.held.push(lock.lock_owned().await);
            }
        };
        timeout(MAX_WAIT, waiting).await.map_err(|_| busy)?;
        Ok(turn)
    }
}

/// The turn to write some resources.
#[derive(Debug)]
pub(crate) struct WriteTurn<'a> {
    queues: &'a WriteQueues,
    resources: Vec<ResourceKey>,
    held: Vec<OwnedMutexGuard<()>>,
}

impl Drop for WriteTurn<'_> {
    fn drop(&mut self) {
        if self.resources.is_empty() {
            return;
        }
        self.held.clear();
        let mut queues = self.queues.queues();
        for resource in &self.resources {
            if let Some(queue) = queues.get_mut(resource) {
                queue.users -= 1;
                if queue.users == 0 {
                    queues.remove(resource);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn resource(name: &str) -> ResourceKey {
        ResourceKey(name.to_owned())
    }

    #[test]
    fn a_workspace_has_one_queue() {
        let id: WorkspaceId = "wsp_01HF7YAT00PJMZ00WXZQRGJXC4".parse().unwrap();
        let path = format!("/workspaces/{id}");
        assert_eq!(ResourceKey::of_path("/workspaces/{workspace_id}", &path), Some(ResourceKey::of_workspace(id)));
    }

    #[test]
    fn a_path_names_its_resource() {
        for (template, path, expected) in [
            ("/messages", "/messages", None),
            ("/workspaces/{workspace_id}", "/workspaces/w", Some("/workspaces/w")),
            ("/workspaces/{workspace_id}/contacts", "/workspaces/w/contacts", None),
            (
                "/workspaces/{workspace_id}/templates/{id}",
                "/workspaces/w/templates/t",
                Some("/workspaces/w/templates/t"),
            ),
            (
                "/workspaces/{workspace_id}/templates/{id}/revert/{version}",
                "/workspaces/w/templates/t/revert/2",
                Some("/workspaces/w/templates/t"),
            ),
        ] {
            assert_eq!(ResourceKey::of_path(template, path), expected.map(resource), "{template}");
        }
    }

    #[tokio::test]
    async fn a_queue_is_served_in_order_and_forgotten() {
        let queues = WriteQueues::default();
        let both = vec![resource("b"), resource("a"), resource("b")];
        let first = queues.enter(vec![resource("a")]).await.unwrap();
        let (mut second, mut third) = (Box::pin(queues.enter(both)), Box::pin(queues.enter(vec![resource("a")])));
        assert!((&mut second).now_or_never().is_none());
        assert!((&mut third).now_or_never().is_none());
        // Writers of another resource do not wait.
        drop(queues.enter(vec![resource("c")]).now_or_never().unwrap().unwrap());
        drop(first);
        assert!((&mut third).now_or_never().is_none(), "the second came before");
        let second = second.now_or_never().unwrap().unwrap();
        assert!((&mut third).now_or_never().is_none());
        drop(second);
        drop(third.now_or_never().unwrap().unwrap());
        assert!(queues.queues().is_empty());
    }

    #[tokio::test]
    async fn whoever_gives_up_leaves_the_queue() {
        let queues = WriteQueues::default();
        let first = queues.enter(vec![resource("a")]).await.unwrap();
        let mut second = Box::pin(queues.enter(vec![resource("a"), resource("b")]));
        assert!((&mut second).now_or_never().is_none());
        drop(second);
        assert_eq!(queues.queues().len(), 1);
        drop(first);
        assert!(queues.queues().is_empty());
    }

    #[tokio::test]
    async fn a_queue_that_is_too_long_sends_away() {
        let queues = WriteQueues::default();
        let first = queues.enter(vec![resource("a")]).await.unwrap();
        let mut waiting = Vec::new();
        for _ in 1..MAX_QUEUED {
            let mut next = Box::pin(queues.enter(vec![resource("a")]));
            assert!((&mut next).now_or_never().is_none());
            waiting.push(next);
        }
        let refused = queues.enter(vec![resource("a"), resource("b")]).now_or_never().unwrap();
        assert!(matches!(refused, Err(Error::Unavailable { retry_after: 1 })));
        assert_eq!(queues.queues().len(), 1, "who is refused leaves nothing");
        drop((first, waiting));
        assert!(queues.queues().is_empty());
    }
}
