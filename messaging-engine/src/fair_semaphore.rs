//! A semaphore whose permits are shared between those who want them, not given to whoever asks most.
//!
//! Permits are what is scarce: places for uploads, bytes of memory, processors for hashing. Each request names
//! the [`Share`]s it draws on, for example that of its workspace and that of the caller's network, and gets
//! permits when there are enough and none of the shares is used up. When permits become free they go to the
//! waiter whose owners hold least, and of equals to the one that came first. Waiters are bounded in number; when
//! there are too many, the owner with most of them loses its latest.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use messaging_core::domain::caller_network::CallerNetwork;
use messaging_core::ids::{UserId, WorkspaceId};
use tokio::sync::oneshot;

/// Whose permits are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner {
    /// Everybody who acts for a workspace.
    Workspace(WorkspaceId),
    /// A person, where no workspace is concerned.
    User(UserId),
    /// A network that calls.
    Network(CallerNetwork),
    /// This process itself.
    Process,
}

/// How much an owner may hold. Whoever holds nothing may always take what is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cap {
    /// As much as there is.
    All,
    /// As much as it leaves free: half when it is alone, a third when another one does the same.
    AsMuchAsIsLeft,
    /// So many of eight parts of all permits.
    Eighths(u64),
}

/// An owner, and how much it may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Who.
    pub owner: Owner,
    /// How much.
    pub cap: Cap,
}

/// Why there are no permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overloaded {
    /// An owner of the request has too many waiting, or all it may hold.
    Owner,
    /// Too many wait altogether.
    All,
}

/// How many permits there are, and how many requests may wait for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Permits.
    pub permits: u64,
    /// Waiting requests.
    pub waiting: usize,
    /// Waiting requests of one owner.
    pub waiting_of_one: usize,
}

/// The semaphore. Clones share the permits.
#[derive(Debug, Clone)]
pub struct FairSemaphore(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    bounds: Bounds,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    free: u64,
    /// Owners that hold anything.
    held: HashMap<Owner, u64>,
    /// In the order of their arrival.
    waiting: VecDeque<Waiter>,
    next: u64,
}

#[derive(Debug)]
struct Waiter {
    number: u64,
    shares: Vec<Share>,
    permits: u64,
    grant: oneshot::Sender<Permit>,
}

/// Permits, given back when dropped.
#[derive(Debug)]
pub struct Permit {
    shared: Arc<Shared>,
    shares: Vec<Share>,
    permits: u64,
}

/// A place in the queue, given up when dropped.
struct Queued<'a> {
    shared: &'a Shared,
    number: u64,
}

impl FairSemaphore {
    /// A semaphore with all permits free.
    pub fn new(bounds: Bounds) -> Self {
        let state = State { free: bounds.permits, held: HashMap::new(), waiting: VecDeque::new(), next: 0 };
        Self(Arc::new(Shared { bounds, state: Mutex::new(state) }))
    }

    /// Permits that are held at the moment.
    pub fn held(&self) -> u64 {
        self.0.bounds.permits - self.0.lock().free
    }

    /// Takes permits if that is possible at once. More than there are counts as all of them.
    pub fn try_acquire(&self, shares: Vec<Share>, permits: u64) -> Result<Permit, Overloaded> {
        let permits = permits.min(self.0.bounds.permits);
        let mut state = self.0.lock();
        if state.free < permits {
            return Err(Overloaded::All);
        }
        if !state.admits(&shares, permits, self.0.bounds.permits) {
            return Err(Overloaded::Owner);
        }
        state.take(&shares, permits);
        Ok(Permit { shared: Arc::clone(&self.0), shares, permits })
    }

    /// Takes permits when it is the request's turn. Dropping the future gives up its place.
    pub async fn acquire(&self, shares: Vec<Share>, permits: u64) -> Result<Permit, Overloaded> {
        let permits = permits.min(self.0.bounds.permits);
        let (grant, granted) = oneshot::channel();
        let number = {
            let mut state = self.0.lock();
            if state.admits(&shares, permits, self.0.bounds.permits) {
                state.take(&shares, permits);
                return Ok(Permit { shared: Arc::clone(&self.0), shares, permits });
            }
            state.make_room(&shares, &self.0.bounds)?;
            let number = state.next;
            state.next += 1;
            state.waiting.push_back(Waiter { number, shares, permits, grant });
            number
        };
        let _queued = Queued { shared: &self.0, number };
        granted.await.map_err(|_| Overloaded::All)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn held_by(&self, owner: Owner) -> u64 {
        self.held.get(&owner).copied().unwrap_or(0)
    }

    /// Whether a request gets what it wants.
    fn admits(&self, shares: &[Share], permits: u64, all: u64) -> bool {
        let Some(left) = self.free.checked_sub(permits) else { return false };
        shares.iter().all(|share| {
            let held = self.held_by(share.owner);
            held == 0
                || match share.cap {
                    Cap::All => true,
                    Cap::AsMuchAsIsLeft => held + permits <= left,
                    Cap::Eighths(parts) => held + permits <= all / 8 * parts,
                }
        })
    }

    fn take(&mut self, shares: &[Share], permits: u64) {
        self.free -= permits;
        for share in shares {
            *self.held.entry(share.owner).or_default() += permits;
        }
    }

    fn give_back(&mut self, shares: &[Share], permits: u64) {
        self.free += permits;
        for share in shares {
            if let Some(held) = self.held.get_mut(&share.owner) {
                *held -= permits;
                if *held == 0 {
                    self.held.remove(&share.owner);
                }
            }
        }
    }

    /// The waiter whose turn it is.
    fn next(&mut self, all: u64) -> Option<Waiter> {
        let most_held = |waiter: &Waiter| waiter.shares.iter().map(|share| self.held_by(share.owner)).max();
        let (place, _) = self
            .waiting
            .iter()
            .enumerate()
            .filter(|(_, waiter)| self.admits(&waiter.shares, waiter.permits, all))
            .min_by_key(|(_, waiter)| most_held(waiter))?;
        self.waiting.remove(place)
    }

    fn waiting_of(&self, owner: Owner) -> usize {
        self.waiting.iter().filter(|waiter| waiter.shares.iter().any(|share| share.owner == owner)).count()
    }

    /// Sees to it that one more may wait.
    fn make_room(&mut self, shares: &[Share], bounds: &Bounds) -> Result<(), Overloaded> {
        let mine = shares.iter().map(|share| self.waiting_of(share.owner)).max().unwrap_or(0);
        if mine >= bounds.waiting_of_one {
            return Err(Overloaded::Owner);
        }
        if self.waiting.len() < bounds.waiting {
            return Ok(());
        }
        let mut counts = HashMap::<Owner, usize>::new();
        for share in self.waiting.iter().flat_map(|waiter| &waiter.shares) {
            *counts.entry(share.owner).or_default() += 1;
        }
        let heaviest = counts.into_iter().max_by_key(|(_, count)| *count);
        let Some((owner, count)) = heaviest.filter(|(_, count)| *count > mine + 1) else {
            return Err(Overloaded::All);
        };
        let latest = self.waiting.iter().rposition(|waiter| waiter.shares.iter().any(|share| share.owner == owner));
        // Its sender is dropped, which tells the waiter.
        let removed = latest.and_then(|place| self.waiting.remove(place));
        debug_assert!(removed.is_some(), "{count} waiters of this owner were counted");
        Ok(())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.shared.lock().give_back(&self.shares, self.permits);
        loop {
            let granted = {
                let mut state = self.shared.lock();
                let waiter = state.next(self.shared.bounds.permits);
                waiter.inspect(|waiter| state.take(&waiter.shares, waiter.permits))
            };
            let Some(Waiter { shares, permits, grant, .. }) = granted else { return };
            // If nobody waits any more the permit is dropped, outside of the lock, and looks for the next.
            drop(grant.send(Permit { shared: Arc::clone(&self.shared), shares, permits }));
        }
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let place = state.waiting.iter().position(|waiter| waiter.number == self.number);
        let _given_up = place.and_then(|place| state.waiting.remove(place));
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn network(number: u8) -> Owner {
        Owner::Network(CallerNetwork::of([192, 0, 2, number].into()))
    }

    fn share(number: u8, cap: Cap) -> Vec<Share> {
        vec![Share { owner: network(number), cap }]
    }

    fn semaphore(permits: u64) -> FairSemaphore {
        FairSemaphore::new(Bounds { permits, waiting: 6, waiting_of_one: 4 })
    }

    #[test]
    fn one_owner_leaves_as_much_as_it_takes() {
        let semaphore = semaphore(32);
        let take = |owner| semaphore.try_acquire(share(owner, Cap::AsMuchAsIsLeft), 1);
        let first: Vec<_> = std::iter::from_fn(|| take(1).ok()).collect();
        assert_eq!((first.len(), take(1).unwrap_err()), (16, Overloaded::Owner));
        let second: Vec<_> = std::iter::from_fn(|| take(2).ok()).collect();
        assert_eq!(second.len(), 8);
        // Whoever has nothing gets something as long as there is anything.
        let others: Vec<_> = (3..50).map_while(|owner| take(owner).ok()).collect();
        assert_eq!((others.len(), semaphore.held()), (8, 32));
        assert_eq!(take(60).unwrap_err(), Overloaded::All);
        drop((first, second, others));
        assert_eq!((semaphore.held(), semaphore.0.lock().held.len()), (0, 0));
    }

    #[test]
    fn every_share_of_a_request_counts() {
        let semaphore = semaphore(16);
        let two = |workspace| {
            let mut shares = share(workspace, Cap::AsMuchAsIsLeft);
            shares.extend(share(99, Cap::Eighths(6)));
            semaphore.try_acquire(shares, 1)
        };
        let held: Vec<_> = (1..=4).flat_map(|workspace| std::iter::from_fn(move || two(workspace).ok())).collect();
        assert_eq!(held.len(), 12, "one network, many workspaces");
        assert!(semaphore.try_acquire(share(5, Cap::AsMuchAsIsLeft), 4).is_ok());
    }

    #[test]
    fn more_than_there_is_counts_as_all() {
        let semaphore = semaphore(8);
        let all = semaphore.try_acquire(share(1, Cap::AsMuchAsIsLeft), 100).unwrap();
        assert_eq!((all.permits, semaphore.held()), (8, 8));
    }

    #[tokio::test]
    async fn permits_go_to_whoever_holds_least() {
        let semaphore = semaphore(2);
        let mut held: Vec<_> = (0..2).map(|_| semaphore.try_acquire(share(1, Cap::All), 1).unwrap()).collect();
        let wait = |owner| Box::pin(semaphore.acquire(share(owner, Cap::All), 1));
        let (mut first, mut again, mut other) = (wait(1), wait(1), wait(2));
        assert!(first.as_mut().now_or_never().is_none());
        assert!(again.as_mut().now_or_never().is_none());
        assert!(other.as_mut().now_or_never().is_none());
        held.pop();
        assert!(first.as_mut().now_or_never().is_none(), "its owner holds one, the other has none");
        let other = other.now_or_never().unwrap().unwrap();
        drop(held);
        let first = first.now_or_never().unwrap().unwrap();
        drop((other, first));
        assert!(again.now_or_never().unwrap().is_ok());
        assert_eq!(semaphore.held(), 0);
    }

    #[tokio::test]
    async fn a_crowd_of_one_owner_does_not_fill_the_queue() {
        let semaphore = semaphore(1);
        let held = semaphore.try_acquire(share(1, Cap::All), 1).unwrap();
        let wait = |owner| Box::pin(semaphore.acquire(share(owner, Cap::All), 1));
        let mut queue: Vec<_> = [1, 1, 1, 1, 2, 2].into_iter().map(wait).collect();
        for waiter in &mut queue {
            assert!(waiter.as_mut().now_or_never().is_none());
        }
        assert_eq!(wait(1).now_or_never().unwrap().unwrap_err(), Overloaded::Owner);
        // The queue is full: the owner with most waiters loses its latest.
        let mut third = wait(3);
        assert!(third.as_mut().now_or_never().is_none());
        assert_eq!(queue.remove(3).now_or_never().unwrap().unwrap_err(), Overloaded::All);
        drop(held);
        // Of those who hold nothing the first one is next.
        assert!(third.as_mut().now_or_never().is_none());
        assert!(queue.remove(0).now_or_never().unwrap().is_ok());
        drop(queue);
        assert!(third.now_or_never().unwrap().is_ok());
    }

    #[tokio::test]
    async fn who_gives_up_waiting_is_forgotten() {
        let semaphore = semaphore(1);
        let held = semaphore.try_acquire(share(1, Cap::All), 1).unwrap();
        let mut waiter = Box::pin(semaphore.acquire(share(2, Cap::All), 1));
        assert!(waiter.as_mut().now_or_never().is_none());
        drop(waiter);
        assert_eq!(semaphore.0.lock().waiting.len(), 0);
        // Also when the permit has been handed over already.
        let mut waiter = Box::pin(semaphore.acquire(share(2, Cap::All), 1));
        assert!(waiter.as_mut().now_or_never().is_none());
        drop(held);
        drop(waiter);
        assert_eq!(semaphore.held(), 0);
    }
}
