//! Open connections between messages.
//!
//! A connection belongs to one workspace and one set of settings. Nothing watches idle ones: whoever
//! comes next closes those that have been idle for too long, and a relay that closed one in the
//! meantime is noticed at its next use.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use messaging_core::ids::WorkspaceId;
use tokio::sync::Semaphore;

use super::session::Session;
use super::settings::Settings;

/// Whose connection, and to where.
pub(super) type Key = (WorkspaceId, Settings);

/// How many connections are kept, and how long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Idle connections to one relay.
    pub(super) idle: usize,
    /// Idle connections to all relays.
    pub(super) idle_in_all: usize,
    /// How long one may be idle.
    pub(super) idle_time: Duration,
    /// Messages over one connection.
    pub(super) messages: usize,
    /// Messages to one relay at the same time.
    pub(super) concurrent: usize,
}

/// The connections of a process.
pub(super) struct Pool {
    limits: Limits,
    relays: Mutex<Relays>,
}

struct Relays {
    by_key: HashMap<Key, Relay>,
    last_sweep: Instant,
}

struct Relay {
    /// The most recently used is the last.
    idle: Vec<Idle>,
    /// Shared with everyone who is sending; a relay with no idle connection and no sender is forgotten.
    gate: Arc<Semaphore>,
}

struct Idle {
    session: Session,
    since: Instant,
}

impl Pool {
    pub(super) fn new(limits: Limits) -> Self {
        let relays = Relays { by_key: HashMap::new(), last_sweep: Instant::now() };
        Self { limits, relays: Mutex::new(relays) }
    }

    /// What limits the messages that are sent to a relay at the same time.
    pub(super) fn gate(&self, key: &Key) -> Arc<Semaphore> {
        let mut relays = self.lock();
        let fresh = || Relay { idle: Vec::new(), gate: Arc::new(Semaphore::new(self.limits.concurrent)) };
        if let Some(relay) = relays.by_key.get(key) {
            return Arc::clone(&relay.gate);
        }
        Arc::clone(&relays.by_key.entry(key.clone()).or_insert_with(fresh).gate)
    }

    /// A connection to use, the freshest first.
    pub(super) async fn take(&self, key: &Key) -> Option<Session> {
        let (session, old) = {
            let mut relays = self.lock();
            let old = self.sweep(&mut relays, key);
            (relays.by_key.get_mut(key).and_then(|relay| relay.idle.pop()), old)
        };
        quit(old).await;
        session.map(|idle| idle.session)
    }

    /// Takes a connection back, if it can be used again.
    pub(super) async fn give(&self, key: &Key, session: Session) {
        let mut old = Vec::new();
        {
            let mut relays = self.lock();
            let in_all: usize = relays.by_key.values().map(|relay| relay.idle.len()).sum();
            let is_kept = session.transactions < self.limits.messages && in_all < self.limits.idle_in_all;
            let relay = relays.by_key.get_mut(key).filter(|relay| is_kept && relay.idle.len() < self.limits.idle);
            match relay {
                Some(relay) => relay.idle.push(Idle { session, since: Instant::now() }),
                None => old.push(session),
            }
        }
        quit(old).await;
    }

    /// Closes every idle connection.
    pub(super) async fn close(&self) {
        let old = self.lock().by_key.values_mut().flat_map(|relay| relay.idle.drain(..)).collect::<Vec<_>>();
        quit(old.into_iter().map(|idle| idle.session).collect()).await;
    }

    /// Takes out what has been idle for too long: of one relay at every call, of all now and then.
    fn sweep(&self, relays: &mut Relays, key: &Key) -> Vec<Session> {
        let now = Instant::now();
        let is_old = |idle: &mut Idle| now.duration_since(idle.since) >= self.limits.idle_time;
        let mut old: Vec<Idle> = Vec::new();
        if let Some(relay) = relays.by_key.get_mut(key) {
            old.extend(relay.idle.extract_if(.., is_old));
        }
        if now.duration_since(relays.last_sweep) >= self.limits.idle_time {
            relays.last_sweep = now;
            relays.by_key.retain(|_, relay| {
                old.extend(relay.idle.extract_if(.., is_old));
                !relay.idle.is_empty() || Arc::strong_count(&relay.gate) > 1
            });
        }
        old.into_iter().map(|idle| idle.session).collect()
    }

    /// Never held over an await.
    fn lock(&self) -> MutexGuard<'_, Relays> {
        self.relays.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn quit(sessions: Vec<Session>) {
    for session in sessions {
        session.quit().await;
    }
}
