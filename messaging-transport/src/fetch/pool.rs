//! Connections between calls.
//!
//! As many are kept as were in use at the same time. Over one that speaks HTTP/2 go as many requests as the peer allows;
//! only then there is another, and of those who need one at the same time one connects for all.
//!
//! Nothing watches idle ones: whoever comes next closes those that have been idle for too long, and a peer
//! that closed one meanwhile is noticed at its next use.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use messaging_core::ports::fetch::Protocol;
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;

use super::connection::{Connection, IDLE_TIME};

/// Idle connections to one host: as many messages of one account are in work at most.
const MAX_IDLE: usize = 512;

/// Idle connections to all hosts.
const MAX_IDLE_IN_ALL: usize = 1024;

/// What a connection can be used for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) is_tls: bool,
    /// What may be spoken over it.
    pub(super) protocol: Protocol,
    /// The name that was proved, or that others on the same address would have.
    pub(super) host: String,
    /// The address that was judged.
    pub(super) address: SocketAddr,
}

/// Idle connections.
#[derive(Debug, Default)]
pub(super) struct Pool(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The most recently used of a host is the last.
    idle: HashMap<Key, Vec<(Connection, Instant)>>,
    count: usize,
    /// Held by who connects to a host for all who wait; nobody waits where nobody else holds it.
    dialing: HashMap<Key, Arc<tokio::sync::Mutex<()>>>,
    last_sweep: Option<Instant>,
}

impl Pool {
    /// A connection to use, the freshest first. One that many share stays.
    pub(super) fn take(&self, key: Key) -> Option<(Key, Connection)> {
        let mut state = self.lock();
        state.sweep();
        loop {
            let idle = state.idle.get_mut(&key)?;
            for (connection, since) in idle.iter_mut() {
                if let Some(shared) = connection.share() {
                    *since = Instant::now();
                    return Some((key, shared));
                }
            }
            // Of HTTP/2 those are left that have no room, and that are closed.
            let at = idle.iter().rposition(|(connection, _)| !connection.is_shared() || !connection.is_open())?;
            let (connection, since) = idle.swap_remove(at);
            state.count -= 1;
            if since.elapsed() < connection.idle_time() && connection.is_open() {
                return Some((key, connection));
            }
        }
    }

    /// Waits for the turn to connect to a host whose connections are shared.
    pub(super) async fn dial(&self, key: Key) -> OwnedMutexGuard<()> {
        let turn = {
            let mut state = self.lock();
            state.dialing.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(state.dialing.entry(key).or_default())
        };
        turn.lock_owned().await
    }

    /// Keeps a connection for the next call, if there is room.
    pub(super) fn give(&self, key: Key, mut connection: Connection) {
        connection.end_request();
        let mut state = self.lock();
        state.sweep();
        if state.count >= MAX_IDLE_IN_ALL {
            return;
        }
        let idle = state.idle.entry(key).or_default();
        if connection.is_shared() && idle.iter().any(|(known, _)| known.is_same(&connection)) {
            return;
        }
        if idle.len() < MAX_IDLE {
            idle.push((connection, Instant::now()));
            state.count += 1;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Now and then closes what has been idle for too long.
    fn sweep(&mut self) {
        let now = Instant::now();
        if self.last_sweep.is_some_and(|last| now.duration_since(last) < IDLE_TIME) {
            return;
        }
        self.last_sweep = Some(now);
        self.idle.retain(|_, idle| {
            idle.retain(|(connection, since)| {
                now.duration_since(*since) < connection.idle_time() && connection.is_open()
            });
            !idle.is_empty()
        });
        self.count = self.idle.values().map(Vec::len).sum();
    }
}
