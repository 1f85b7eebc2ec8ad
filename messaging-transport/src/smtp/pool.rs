//! Connections that are kept open between messages.
//!
//! Connections are kept by key: for a relay the workspace and its settings, for a mail exchanger its name. No task
//! watches idle ones: the next user closes those that have been idle for too long, and a connection that the peer has
//! closed is noticed at its next use.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::session::Session;

/// Limits of a pool: numbers of connections, idle time, and messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Maximum number of idle connections to one peer.
    pub(crate) idle: usize,
    /// Maximum number of idle connections to all peers.
    pub(crate) idle_in_all: usize,
    /// Time that a connection may be idle.
    pub(crate) idle_time: Duration,
    /// Maximum number of messages over one connection.
    pub(crate) messages: usize,
    /// Maximum number of messages to one peer at the same time.
    pub(crate) concurrent: usize,
}

/// Pool of connections, by the key of their peer.
pub(crate) struct Pool<K: ?Sized + ToOwned<Owned: Eq + Hash>> {
    limits: Limits,
    peers: Mutex<Peers<K>>,
}

struct Peers<K: ?Sized + ToOwned<Owned: Eq + Hash>> {
    by_key: HashMap<K::Owned, Peer>,
    /// Number of idle connections to all peers.
    idle: usize,
    last_sweep: Instant,
}

struct Peer {
    /// Idle connections; the most recently used is the last.
    idle: Vec<Idle>,
    /// Shared with all tasks that are sending; a peer with no idle connection and no sender is forgotten.
    gate: Arc<Semaphore>,
}

impl Peer {
    fn new(concurrent: usize) -> Self {
        Self { idle: Vec::new(), gate: Arc::new(Semaphore::new(concurrent)) }
    }
}

struct Idle {
    session: Session,
    since: Instant,
}

impl<K: ?Sized + Eq + Hash + ToOwned<Owned: Eq + Hash>> Pool<K> {
    pub(crate) fn new(limits: Limits) -> Self {
        let peers = Peers { by_key: HashMap::new(), idle: 0, last_sweep: Instant::now() };
        Self { limits, peers: Mutex::new(peers) }
    }

    /// Returns the semaphore that limits the messages sent to a peer at the same time.
    pub(crate) fn gate(&self, key: &K) -> Arc<Semaphore> {
        self.gate_of(key, self.limits.concurrent)
    }

    /// Returns the same semaphore, but with another limit if the key is new; a known key keeps its limit.
    pub(crate) fn gate_of(&self, key: &K, concurrent: usize) -> Arc<Semaphore> {
        let mut peers = self.lock();
        if let Some(peer) = peers.by_key.get(key) {
            return Arc::clone(&peer.gate);
        }
        Arc::clone(&peers.by_key.entry(key.to_owned()).or_insert_with(|| Peer::new(concurrent)).gate)
    }

    /// Takes an idle connection, the most recently used first.
    pub(crate) async fn take(&self, key: &K) -> Option<Session> {
        let (session, old) = {
            let mut peers = self.lock();
            let old = self.sweep(&mut peers, key);
            let fresh = peers.by_key.get_mut(key).and_then(|peer| peer.idle.pop());
            peers.idle -= usize::from(fresh.is_some());
            (fresh, old)
        };
        quit(old).await;
        session.map(|idle| idle.session)
    }

    /// Puts a connection back, if it can be used again.
    pub(crate) async fn give(&self, key: &K, session: Session) {
        let mut old = Vec::new();
        {
            let peers = &mut *self.lock();
            let may_go_on = !session.is_full() && session.transactions < self.limits.messages;
            // The sender may hold the gate of another key, so this key may be unknown.
            let peer = (may_go_on && peers.idle < self.limits.idle_in_all)
                .then(|| peers.by_key.entry(key.to_owned()).or_insert_with(|| Peer::new(self.limits.concurrent)));
            match peer {
                Some(peer) if peer.idle.len() < self.limits.idle => {
                    peers.idle += 1;
                    peer.idle.push(Idle { session, since: Instant::now() });
                }
                _ => old.push(session),
            }
        }
        quit(old).await;
    }

    /// Closes every idle connection.
    pub(crate) async fn close(&self) {
        let old = {
            let peers = &mut *self.lock();
            peers.idle = 0;
            peers.by_key.values_mut().flat_map(|peer| peer.idle.drain(..)).collect::<Vec<_>>()
        };
        quit(old.into_iter().map(|idle| idle.session).collect()).await;
    }

    /// Removes connections that have been idle for too long: those of one peer at every call, those of all now and
    /// then.
    fn sweep(&self, peers: &mut Peers<K>, key: &K) -> Vec<Session> {
        let now = Instant::now();
        let is_old = |idle: &mut Idle| now.duration_since(idle.since) >= self.limits.idle_time;
        let mut old: Vec<Idle> = Vec::new();
        if let Some(peer) = peers.by_key.get_mut(key) {
            old.extend(peer.idle.extract_if(.., is_old));
        }
        if now.duration_since(peers.last_sweep) >= self.limits.idle_time {
            peers.last_sweep = now;
            peers.by_key.retain(|_, peer| {
                old.extend(peer.idle.extract_if(.., is_old));
                !peer.idle.is_empty() || Arc::strong_count(&peer.gate) > 1
            });
        }
        peers.idle -= old.len();
        old.into_iter().map(|idle| idle.session).collect()
    }

    /// Locks the peers. The guard must not be held over an await.
    fn lock(&self) -> MutexGuard<'_, Peers<K>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn quit(sessions: Vec<Session>) {
    for session in sessions {
        session.quit().await;
    }
}
