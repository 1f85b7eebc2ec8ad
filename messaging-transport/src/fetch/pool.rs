//! Connections that are kept between calls.
//!
//! As many are kept as were in use at the same time. A connection that speaks HTTP/2 carries as many requests as the
//! peer allows; another is opened only beyond that, and one call opens it for all that wait.
//!
//! No task watches idle connections: the next user closes those that have been idle for too long, and a connection that
//! the peer has closed is noticed at its next use.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use messaging_core::ports::fetch::Protocol;
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;

use super::connection::{Connection, IDLE_TIME};

/// Maximum number of idle connections to one host, which is also the maximum number of an account's messages in work.
const MAX_IDLE: usize = 512;

/// Maximum number of idle connections to all hosts.
const MAX_IDLE_IN_ALL: usize = 1024;

/// Key of a connection: the calls that may use it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) is_tls: bool,
    /// Protocols that may be used over the connection.
    pub(super) protocol: Protocol,
    /// The host name that the certificate proved, or that tells hosts on the same address apart.
    pub(super) host: String,
    /// The address that the guard has judged.
    pub(super) address: SocketAddr,
}

/// Idle connections.
#[derive(Debug, Default)]
pub(super) struct Pool(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Idle connections by key; the most recently used is the last.
    idle: HashMap<Key, Vec<(Connection, Instant)>>,
    count: usize,
    /// One lock for each key: the call that holds it connects for all that wait.
    dialing: HashMap<Key, Arc<tokio::sync::Mutex<()>>>,
    last_sweep: Option<Instant>,
}

impl Pool {
    /// Takes a connection, the most recently used first. A shared connection stays in the pool.
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
            // HTTP/2 connections remain here if they have no room, or are closed.
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
    /// Closes connections that have been idle for too long, now and then.
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
