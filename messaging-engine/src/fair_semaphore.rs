//! A semaphore that shares its permits fairly between owners, instead of giving them to the one that asks most.
//!
//! Permits stand for a scarce resource: places for uploads, bytes of memory, processors for hashing. Each request names
//! the [`Share`]s it draws on, for example that of its workspace and that of the caller's network, and gets permits
//! when there are enough and none of the shares is used up. When permits become free they go to the waiter whose owners
//! hold least, and of equals to the one that came first.
//!
//! A request that wants little may be granted before one that came earlier and wants more than is free, because permits
//! would lie idle otherwise. That is bounded: when `MAX_OVERTAKEN` requests that were no more entitled have gone before
//! a waiter, freed permits are kept for it, and only owners that hold less still pass. Waiters are bounded in number;
//! when there are too many, the owner with most of them loses its latest.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use messaging_core::domain::security::caller_network::CallerNetwork;
use messaging_core::ids::{UserId, WorkspaceId};
use tokio::sync::oneshot;

/// Number of requests, no more entitled, that may be granted before a waiter that came earlier.
const MAX_OVERTAKEN: u32 = 16;

/// Number of a request that does not wait: it came after all that do.
const NEWCOMER: u64 = u64::MAX;

/// Party to which permits are counted: the permits it holds and waits for are added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner {
    /// All who act for a workspace.
    Workspace(WorkspaceId),
    /// A person, where no workspace is concerned.
    User(UserId),
    /// Network of a caller.
    Network(CallerNetwork),
    /// The process itself, for its own work.
    Process,
}

/// Limit on the permits of an owner. One that holds none may always take what is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cap {
    /// All permits.
    All,
    /// As many permits as it leaves free: half of them when it is alone, a third when another owner does the same.
    AsMuchAsIsLeft,
    /// A number of eighths of all permits.
    Eighths(u64),
}

/// An owner and its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// The owner that the permits are counted to.
    pub owner: Owner,
    /// Largest number of permits that the owner may hold.
    pub cap: Cap,
}

/// Reason why a request for permits is turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overloaded {
    /// An owner of the request has too many requests waiting, or holds all it may.
    Owner,
    /// Too many wait altogether.
    All,
}

/// Numbers of permits and of requests that may wait for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Number of permits.
    pub permits: u64,
    /// Number of waiting requests.
    pub waiting: usize,
    /// Number of waiting requests of one owner.
    pub waiting_of_one: usize,
}

/// The semaphore. Clones share the permits.
#[derive(Debug, Clone)]
pub struct FairSemaphore(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    bounds: Bounds,
    waits: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    free: u64,
    /// Permits of the owners that hold any.
    held: HashMap<Owner, u64>,
    /// Waiters in the order of their arrival.
    waiting: VecDeque<Waiter>,
    next: u64,
}

#[derive(Debug)]
struct Waiter {
    number: u64,
    shares: Vec<Share>,
    permits: u64,
    /// Number of requests that came later, were no more entitled and were granted before it.
    overtaken: u32,
    grant: oneshot::Sender<Permit>,
}

/// Permits, given back when dropped.
#[derive(Debug)]
pub struct Permit {
    shared: Arc<Shared>,
    shares: Vec<Share>,
    permits: u64,
}

/// Place in the queue, given up when dropped.
struct Queued<'a> {
    shared: &'a Arc<Shared>,
    number: u64,
}

impl FairSemaphore {
    /// A semaphore with all permits free.
    pub fn new(bounds: Bounds) -> Self {
        let state = State { free: bounds.permits, held: HashMap::new(), waiting: VecDeque::new(), next: 0 };
        Self(Arc::new(Shared { bounds, waits: AtomicU64::new(0), state: Mutex::new(state) }))
    }

    /// Number of permits that are held at the moment.
    pub fn held(&self) -> u64 {
        self.0.bounds.permits - self.0.lock().free
    }

    /// Takes permits if they can be had at once. A request for more than there are counts as one for all of them.
    pub(crate) fn try_acquire(&self, shares: Vec<Share>, permits: u64) -> Result<Permit, Overloaded> {
        let permits = permits.min(self.0.bounds.permits);
        let mut state = self.0.lock();
        if state.free < permits || state.is_held_back(&shares, NEWCOMER, self.0.bounds.permits) {
            return Err(Overloaded::All);
        }
        if !state.admits(&shares, permits, self.0.bounds.permits) {
            return Err(Overloaded::Owner);
        }
        state.overtake(&shares, NEWCOMER, self.0.bounds.permits);
        state.take(&shares, permits);
        Ok(Permit { shared: Arc::clone(&self.0), shares, permits })
    }

    /// Number of requests that had to wait for permits.
    pub fn waits(&self) -> u64 {
        self.0.waits.load(Ordering::Relaxed)
    }

    /// Waits until it is the request's turn and takes permits. Dropping the future gives up its place.
    pub async fn acquire(&self, shares: Vec<Share>, permits: u64) -> Result<Permit, Overloaded> {
        let permits = permits.min(self.0.bounds.permits);
        let (grant, granted) = oneshot::channel();
        let number = {
            let mut state = self.0.lock();
            let all = self.0.bounds.permits;
            if state.admits(&shares, permits, all) && !state.is_held_back(&shares, NEWCOMER, all) {
                state.overtake(&shares, NEWCOMER, all);
                state.take(&shares, permits);
                return Ok(Permit { shared: Arc::clone(&self.0), shares, permits });
            }
            state.make_room(&shares, &self.0.bounds)?;
            let number = state.next;
            state.next += 1;
            self.0.waits.fetch_add(1, Ordering::Relaxed);
            state.waiting.push_back(Waiter { number, shares, permits, overtaken: 0, grant });
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

    /// Hands free permits to the waiters whose turn it is.
    fn grant_waiting(self: &Arc<Self>) {
        loop {
            let granted = {
                let mut state = self.lock();
                let waiter = state.next(self.bounds.permits);
                waiter.inspect(|waiter| state.take(&waiter.shares, waiter.permits))
            };
            let Some(Waiter { shares, permits, grant, .. }) = granted else { return };
            // If the waiter is gone the permit is dropped, outside of the lock, and looks for the next.
            drop(grant.send(Permit { shared: Arc::clone(self), shares, permits }));
        }
    }
}

impl State {
    fn held_by(&self, owner: Owner) -> u64 {
        self.held.get(&owner).copied().unwrap_or(0)
    }

    /// Returns true if a request can be granted now: enough permits are free, and its owners stay within their limits.
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

    /// Returns the largest number of permits that an owner of a request holds: a request with less is more entitled.
    fn most_held(&self, shares: &[Share]) -> u64 {
        shares.iter().map(|share| self.held_by(share.owner)).max().unwrap_or(0)
    }

    /// Returns true if granting a request with these shares delays a waiter that is at least as entitled. A waiter that
    /// could not be granted even if all others gave back their permits is delayed by its own owners alone.
    fn delays(&self, shares: &[Share], waiter: &Waiter, all: u64) -> bool {
        if self.most_held(shares) < self.most_held(&waiter.shares) {
            return false;
        }
        let is_over = |share: &Share| {
            let held = self.held_by(share.owner);
            held > 0
                && match share.cap {
                    Cap::All => held + waiter.permits > all,
                    Cap::AsMuchAsIsLeft => held + waiter.permits > all / 2,
                    Cap::Eighths(parts) => held + waiter.permits > all / 8 * parts,
                }
        };
        let has_owner = |owner| shares.iter().any(|share| share.owner == owner);
        waiter.shares.iter().all(|share| !is_over(share) || has_owner(share.owner))
    }

    /// Returns true if a request that came as the given number has to let an earlier one go before it.
    fn is_held_back(&self, shares: &[Share], number: u64, all: u64) -> bool {
        let is_due = |waiter: &&Waiter| waiter.number < number && waiter.overtaken >= MAX_OVERTAKEN;
        self.waiting.iter().filter(is_due).any(|waiter| self.delays(shares, waiter, all))
    }

    /// Counts the request that is about to be granted at every waiter that came before and is delayed by it.
    fn overtake(&mut self, shares: &[Share], number: u64, all: u64) {
        let is_overtaken = |waiter: &Waiter| waiter.number < number && self.delays(shares, waiter, all);
        let overtaken: Vec<_> = self.waiting.iter().map(is_overtaken).collect();
        for (waiter, _) in self.waiting.iter_mut().zip(overtaken).filter(|(_, overtaken)| *overtaken) {
            waiter.overtaken = waiter.overtaken.saturating_add(1);
        }
    }

    /// Takes the waiter whose turn it is out of the queue.
    fn next(&mut self, all: u64) -> Option<Waiter> {
        let may_go = |waiter: &Waiter| {
            self.admits(&waiter.shares, waiter.permits, all) && !self.is_held_back(&waiter.shares, waiter.number, all)
        };
        let (place, _) = self
            .waiting
            .iter()
            .enumerate()
            .filter(|(_, waiter)| may_go(waiter))
            .min_by_key(|(_, waiter)| self.most_held(&waiter.shares))?;
        let waiter = self.waiting.remove(place)?;
        self.overtake(&waiter.shares, waiter.number, all);
        Some(waiter)
    }

    fn waiting_of(&self, owner: Owner) -> usize {
        self.waiting.iter().filter(|waiter| waiter.shares.iter().any(|share| share.owner == owner)).count()
    }

    /// Makes room for one more waiter; an error if there is none.
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
        // The dropped sender tells the waiter that it lost its place.
        let removed = latest.and_then(|place| self.waiting.remove(place));
        debug_assert!(removed.is_some(), "{count} waiters of this owner were counted");
        Ok(())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.shared.lock().give_back(&self.shares, self.permits);
        self.shared.grant_waiting();
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        let given_up = {
            let mut state = self.shared.lock();
            let place = state.waiting.iter().position(|waiter| waiter.number == self.number);
            place.and_then(|place| state.waiting.remove(place))
        };
        // The permits that were kept for it are for others now.
        if given_up.is_some() {
            self.shared.grant_waiting();
        }
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
        // An owner without permits gets some as long as any are free.
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
        // Of the owners that hold nothing the first is next.
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

    /// Many small requests, each released when `room` of them hold permits, beside a large one of owner 1 that waits;
    /// returns how many went before it.
    async fn small_ones_before_a_large_one(small_owner: impl Fn(u8) -> u8, room: usize, large: u64) -> Option<u8> {
        let semaphore = semaphore(8);
        let acquire = |owner, permits| Box::pin(semaphore.acquire(share(owner, Cap::All), permits));
        let mut held = VecDeque::new();
        for number in 0..room {
            held.push_back(acquire(small_owner(u8::try_from(number).unwrap()), 1).await.unwrap());
        }
        let mut waiter = acquire(1, large);
        assert!(waiter.as_mut().now_or_never().is_none());
        for number in 0..200 {
            held.pop_front();
            if waiter.as_mut().now_or_never().is_some() {
                return Some(number);
            }
            // A request that has to wait gives up at once.
            held.extend(acquire(small_owner(number), 1).now_or_never().map(Result::unwrap));
        }
        None
    }

    #[tokio::test]
    async fn small_requests_do_not_overtake_a_large_one_forever() {
        let bound = u8::try_from(MAX_OVERTAKEN).unwrap();
        let of_others = small_ones_before_a_large_one(|number| 2 + number, 4, 6).await.unwrap();
        let of_its_own = small_ones_before_a_large_one(|_| 1, 4, 6).await.unwrap();
        assert!((bound..bound + 4).contains(&of_others), "{of_others}");
        assert!((bound..bound + 4).contains(&of_its_own), "{of_its_own}");
    }

    #[tokio::test]
    async fn whoever_holds_less_passes_a_large_request_that_waits() {
        let semaphore = semaphore(8);
        let acquire = |owner, permits| Box::pin(semaphore.acquire(share(owner, Cap::All), permits));
        let _held = (acquire(1, 2).await.unwrap(), acquire(2, 2).await.unwrap());
        let mut large = acquire(1, 6);
        assert!(large.as_mut().now_or_never().is_none());
        // Owner 2 holds as much as owner 1, and passes it so often and no oftener.
        let passes = (0..100).take_while(|_| acquire(2, 1).now_or_never().is_some()).count();
        assert_eq!(passes, MAX_OVERTAKEN as usize);
        let mut behind = acquire(2, 1);
        assert!(behind.as_mut().now_or_never().is_none());
        for owner in 3..60 {
            assert!(acquire(owner, 1).now_or_never().is_some(), "owner {owner} holds nothing");
        }
        // Giving up the wait lets the requests behind go.
        drop(large);
        assert!(behind.now_or_never().unwrap().is_ok());
    }

    #[tokio::test]
    async fn a_request_that_its_own_owner_keeps_waiting_holds_nobody_else_back() {
        let semaphore = semaphore(8);
        let acquire = |owner, permits| Box::pin(semaphore.acquire(share(owner, Cap::AsMuchAsIsLeft), permits));
        let _held = (acquire(1, 2).await.unwrap(), acquire(2, 2).await.unwrap());
        let mut large = acquire(1, 3);
        assert!(large.as_mut().now_or_never().is_none(), "it would have more than half of all");
        for _ in 0..100 {
            assert!(acquire(2, 1).now_or_never().is_some());
        }
    }
}
