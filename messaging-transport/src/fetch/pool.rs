//! Connections between calls.
//!
//! Nothing watches idle ones: whoever comes next closes those that have been idle for too long, and a peer
//! that closed one meanwhile is noticed at its next use.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use messaging_core::ports::fetch::Protocol;
use tokio::time::Instant;

use super::connection::Connection;

/// Idle connections to one host.
const MAX_IDLE: usize = 64;

/// Idle connections to all hosts.
const MAX_IDLE_IN_ALL: usize = 512;

/// How long one may be idle: shorter than what web servers commonly allow, so that few are closed under us.
const IDLE_TIME: Duration = Duration::from_secs(20);

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
    last_sweep: Option<Instant>,
}

impl Pool {
    /// A connection to use, the freshest first. One that many share stays.
    pub(super) fn take(&self, key: Key) -> Option<(Key, Connection)> {
        let mut state = self.lock();
        state.sweep();
        loop {
            let idle = state.idle.get_mut(&key)?;
            if let Some((connection, since)) = idle.last_mut()
                && connection.is_open()
                && let Some(shared) = connection.share()
            {
                *since = Instant::now();
                return Some((key, shared));
            }
            let (connection, since) = idle.pop()?;
            state.count -= 1;
            if since.elapsed() < IDLE_TIME && connection.is_open() {
                return Some((key, connection));
            }
        }
    }

    /// Keeps a connection for the next call, if there is room.
    pub(super) fn give(&self, key: Key, connection: Connection) {
        let mut state = self.lock();
        state.sweep();
        if state.count >= MAX_IDLE_IN_ALL {
            return;
        }
        let idle = state.idle.entry(key).or_default();
        if connection.is_shared() && idle.iter().any(|(known, _)| known.is_shared() && known.is_open()) {
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
            idle.retain(|(connection, since)| now.duration_since(*since) < IDLE_TIME && connection.is_open());
            !idle.is_empty()
        });
        self.count = self.idle.values().map(Vec::len).sum();
    }
}
