//! Limits the number of open connections, and chooses the one to close if there are too many.
//!
//! Contract section 22: before its head is read a request belongs to the TCP peer, that is to a [`CallerNetwork`]. One
//! network holds at most half of all places. A new connection without a free place replaces another one: the network
//! with most connections loses the oldest one on which the server does nothing, because the peer is idle or has yet to
//! send the rest of a request. Connections of a trusted proxy belong to many callers, so each of them counts alone.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ipnet::IpNet;
use messaging_core::domain::security::caller_network::CallerNetwork;
use tokio::sync::Notify;

use crate::connection::activity::Activity;

/// The open connections.
#[derive(Debug)]
pub(crate) struct ConnectionLimiter {
    /// Connections at a time, at most.
    max: usize,
    /// Connections of one network at a time, at most.
    max_of_one: usize,
    trusted_proxies: Vec<IpNet>,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    /// By their order of arrival within each peer.
    peers: HashMap<Peer, BTreeMap<u64, Entry>>,
    count: usize,
    next: u64,
}

/// Addresses whose connections are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Peer {
    Network(CallerNetwork),
    /// A connection of a trusted proxy, by its number.
    Proxied(u64),
}

#[derive(Debug)]
struct Entry {
    activity: Arc<Activity>,
    evicted: Arc<Notify>,
}

/// The place of one connection, free again when dropped.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    limiter: Arc<ConnectionLimiter>,
    peer: Peer,
    number: u64,
    evicted: Arc<Notify>,
    /// The peer.
    pub(crate) address: IpAddr,
    pub(crate) activity: Arc<Activity>,
}

impl ConnectionPermit {
    /// Waits until the connection must be closed for another one.
    pub(crate) async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.limiter.lock().remove(self.peer, self.number);
    }
}

impl ConnectionLimiter {
    /// A limiter of at most `max` connections.
    pub(crate) fn new(max: usize, trusted_proxies: Vec<IpNet>) -> Arc<Self> {
        Arc::new(Self { max, max_of_one: (max / 2).max(1), trusted_proxies, open: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection from `address`; `None` if all others are at work.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr) -> Option<ConnectionPermit> {
        let address = address.to_canonical();
        let proxied = self.trusted_proxies.iter().any(|block| block.contains(&address));
        let mut open = self.lock();
        let number = open.next;
        let peer = if proxied { Peer::Proxied(number) } else { Peer::Network(CallerNetwork::of(address)) };
        if open.count_of(peer) >= self.max_of_one && !open.evict_from(peer) {
            return None;
        }
        if open.count >= self.max && !open.evict() {
            return None;
        }
        open.next += 1;
        open.count += 1;
        let (activity, evicted) = (Arc::new(Activity::new()), Arc::<Notify>::default());
        let entry = Entry { activity: Arc::clone(&activity), evicted: Arc::clone(&evicted) };
        open.peers.entry(peer).or_default().insert(number, entry);
        Some(ConnectionPermit { limiter: Arc::clone(self), peer, number, evicted, address, activity })
    }

    /// Closes a connection although there are fewer than allowed: the machine has no more sockets.
    pub(crate) fn evict(&self) -> bool {
        self.lock().evict()
    }
}

impl Open {
    fn count_of(&self, peer: Peer) -> usize {
        self.peers.get(&peer).map_or(0, BTreeMap::len)
    }

    /// Closes a connection of the peer with most of them.
    fn evict(&mut self) -> bool {
        // Of peers with equally many, the one whose oldest connection is older.
        let weight = |entries: &BTreeMap<u64, Entry>| {
            (entries.len(), std::cmp::Reverse(entries.first_key_value().map(|(number, _)| *number)))
        };
        let heaviest = self.peers.iter().max_by_key(|(_, entries)| weight(entries)).map(|(peer, _)| *peer);
        if heaviest.is_some_and(|peer| self.evict_from(peer)) {
            return true;
        }
        // All connections of that peer are at work: try the others.
        let mut others: Vec<_> = self.peers.iter().map(|(peer, entries)| (weight(entries), *peer)).collect();
        others.sort_unstable_by_key(|(weight, _)| std::cmp::Reverse(*weight));
        others.into_iter().any(|(_, peer)| self.evict_from(peer))
    }

    /// Closes the oldest connection of a peer on which the server does nothing.
    fn evict_from(&mut self, peer: Peer) -> bool {
        let idle = self
            .peers
            .get(&peer)
            .and_then(|entries| entries.iter().find(|(_, entry)| entry.activity.waits_for_peer()))
            .map(|(number, _)| *number);
        idle.and_then(|number| self.remove(peer, number)).inspect(|entry| entry.evicted.notify_one()).is_some()
    }

    fn remove(&mut self, peer: Peer, number: u64) -> Option<Entry> {
        let entries = self.peers.get_mut(&peer)?;
        let entry = entries.remove(&number)?;
        if entries.is_empty() {
            self.peers.remove(&peer);
        }
        self.count -= 1;
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn limiter(max: usize) -> Arc<ConnectionLimiter> {
        ConnectionLimiter::new(max, vec!["10.0.0.0/8".parse().unwrap()])
    }

    fn admit(limiter: &Arc<ConnectionLimiter>, address: &str) -> Option<ConnectionPermit> {
        limiter.admit(address.parse().unwrap())
    }

    fn evicted(permits: &[ConnectionPermit]) -> Vec<usize> {
        let is_evicted = |permit: &ConnectionPermit| permit.evicted().now_or_never().is_some();
        permits.iter().enumerate().filter(|(_, permit)| is_evicted(permit)).map(|(number, _)| number).collect()
    }

    #[test]
    fn one_network_holds_half_of_the_places() {
        let limiter = limiter(8);
        let permits: Vec<_> = (1..=6).map(|n| admit(&limiter, &format!("2001:db8::{n}")).unwrap()).collect();
        assert_eq!((evicted(&permits), limiter.lock().count), (vec![0, 1], 4));
        drop(permits);
        let open = limiter.lock();
        assert_eq!((open.count, open.peers.len()), (0, 0));
    }

    #[test]
    fn the_network_with_most_connections_makes_room() {
        let limiter = limiter(6);
        let mut permits: Vec<_> = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.3", "192.0.2.4", "192.0.2.5"]
            .into_iter()
            .map(|address| admit(&limiter, address).unwrap())
            .collect();
        assert_eq!(evicted(&permits), [0; 0]);
        permits.push(admit(&limiter, "192.0.2.6").unwrap());
        assert_eq!(evicted(&permits), [2]);
    }

    #[test]
    fn connections_at_work_stay() {
        let limiter = limiter(4);
        let busy: Vec<_> = (0..2)
            .map(|_| {
                let permit = admit(&limiter, "192.0.2.1").unwrap();
                let running = Arc::clone(&permit.activity).begin(http::Version::HTTP_11);
                (permit, running)
            })
            .collect();
        assert!(admit(&limiter, "192.0.2.1").is_none());
        let others: Vec<_> = (2..=4).map(|n| admit(&limiter, &format!("192.0.2.{n}")).unwrap()).collect();
        assert_eq!(evicted(&others), [0]);
        drop(busy);
        assert!(admit(&limiter, "192.0.2.1").is_some());
    }

    #[test]
    fn a_connection_that_waits_for_a_body_makes_room() {
        let limiter = limiter(2);
        let permits = [admit(&limiter, "192.0.2.1").unwrap()];
        let activity = Arc::clone(&permits[0].activity);
        let _running = Arc::clone(&activity).begin(http::Version::HTTP_11);
        assert!(admit(&limiter, "192.0.2.1").is_none());
        let _awaited = activity.await_body();
        assert!(admit(&limiter, "192.0.2.1").is_some());
        assert_eq!(evicted(&permits), [0]);
    }

    #[test]
    fn a_trusted_proxy_is_not_one_caller() {
        let limiter = limiter(4);
        let permits: Vec<_> = (0..4).map(|_| admit(&limiter, "10.0.0.1").unwrap()).collect();
        assert_eq!(evicted(&permits), [0; 0]);
    }
}
