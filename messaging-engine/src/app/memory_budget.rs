//! Memory budget for contents or attachments of messages that are sent or shown.
//!
//! A caller that is about to read something large first takes memory for it here, and holds none of it while it waits.
//! Memory is given in the order of requests, with two exceptions, because messages to a mail server that has stopped
//! reading must not keep all others waiting: a lane that holds memory already never gets beyond half of the budget, and
//! while a large request waits, small ones continue within a quarter that large ones leave free.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Budget of bytes that may be held at one time.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    total: u64,
    waits: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    free: u64,
    /// Bytes held by large requests.
    large: u64,
    /// Bytes held by each lane that holds any.
    held: HashMap<String, u64>,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    lane: String,
    bytes: u64,
    granted: oneshot::Sender<Charge>,
}

/// Memory that was taken; given back when dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<MemoryBudget>,
    lane: String,
    bytes: u64,
}

impl MemoryBudget {
    pub(crate) fn new(total: u64) -> Arc<Self> {
        let state = State { free: total, large: 0, held: HashMap::new(), waiting: VecDeque::new() };
        Arc::new(Self { total, waits: AtomicU64::new(0), state: Mutex::new(state) })
    }

    /// Returns the number of requests that had to wait so far.
    pub(crate) fn waits(&self) -> u64 {
        self.waits.load(Ordering::Relaxed)
    }

    /// Takes `bytes`, waiting until they are free. A request for more than three quarters of the budget counts as one
    /// for three quarters.
    pub(crate) async fn take(self: &Arc<Self>, lane: &str, bytes: u64) -> Charge {
        let bytes = bytes.min(self.large_share());
        let granted = {
            let mut state = self.lock();
            if state.waiting.is_empty() && self.admits(&state, bytes) && !self.is_over_share(&state, lane, bytes) {
                return self.grant(&mut state, lane.to_owned(), bytes);
            }
            self.waits.fetch_add(1, Ordering::Relaxed);
            let (granted, waiting) = oneshot::channel();
            state.waiting.push_back(Waiting { lane: lane.to_owned(), bytes, granted });
            waiting
        };
        self.serve();
        granted.await.expect("whoever waits is served or stays in the queue")
    }

    fn grant(self: &Arc<Self>, state: &mut State, lane: String, bytes: u64) -> Charge {
        state.free -= bytes;
        if self.is_large(bytes) {
            state.large += bytes;
        }
        *state.held.entry(lane.clone()).or_default() += bytes;
        Charge { budget: Arc::clone(self), lane, bytes }
    }

    /// Gives memory to the waiters whose turn it is.
    fn serve(self: &Arc<Self>) {
        let mut served = Vec::new();
        {
            let mut state = self.lock();
            let mut place = 0;
            let mut large_waits = false;
            while let Some(next) = state.waiting.get(place) {
                let is_large = self.is_large(next.bytes);
                if next.granted.is_closed() {
                    state.waiting.remove(place);
                } else if self.is_over_share(&state, &next.lane, next.bytes) || (is_large && large_waits) {
                    place += 1;
                } else if !self.admits(&state, next.bytes) {
                    if !is_large {
                        break;
                    }
                    large_waits = true;
                    place += 1;
                } else if large_waits && self.total - state.free - state.large + next.bytes > self.small_share() {
                    // Small requests overtake within their own share, or a large one would wait for ever.
                    break;
                } else if let Some(Waiting { lane, bytes, granted }) = state.waiting.remove(place) {
                    served.push((granted, self.grant(&mut state, lane, bytes)));
                }
            }
        }
        for (granted, charge) in served {
            // A waiter that went away in this moment gives the memory back by dropping it.
            drop(granted.send(charge));
        }
    }

    /// Returns true if `bytes` are free, for a large request also within the three quarters that large ones share.
    fn admits(&self, state: &State, bytes: u64) -> bool {
        bytes <= state.free && (!self.is_large(bytes) || state.large + bytes <= self.large_share())
    }

    /// Returns true if a lane that holds memory already would hold more than half of the budget.
    fn is_over_share(&self, state: &State, lane: &str, bytes: u64) -> bool {
        state.held.get(lane).is_some_and(|held| held + bytes > self.total / 2)
    }

    const fn is_large(&self, bytes: u64) -> bool {
        bytes > self.total / 8
    }

    const fn large_share(&self) -> u64 {
        self.total - self.small_share()
    }

    const fn small_share(&self) -> u64 {
        self.total / 4
    }

    /// Locks the state; never held over an await, nor while a charge is dropped.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        {
            let mut state = self.budget.lock();
            state.free += self.bytes;
            if self.budget.is_large(self.bytes) {
                state.large -= self.bytes;
            }
            if let Some(held) = state.held.get_mut(&self.lane) {
                *held -= self.bytes;
                if *held == 0 {
                    state.held.remove(&self.lane);
                }
            }
        }
        self.budget.serve();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn room_is_given_in_the_order_of_asking() {
        let budget = MemoryBudget::new(16);
        let first = budget.take("a", 6).await;
        let mut large = Box::pin(budget.take("b", 100));
        assert!(large.as_mut().now_or_never().is_none());
        let mut next = Box::pin(budget.take("c", 3));
        assert!(next.as_mut().now_or_never().is_none(), "no large one overtakes another");
        drop(first);
        let large = large.await;
        assert_eq!(budget.lock().free, 4, "a quarter is left to small ones");
        assert!(next.as_mut().now_or_never().is_none());
        drop(large);
        drop(next.await);
        let state = budget.lock();
        assert_eq!((state.free, state.large, state.held.len(), state.waiting.len()), (16, 0, 0, 0));
    }

    #[tokio::test]
    async fn small_ones_go_on_while_large_ones_wait() {
        let budget = MemoryBudget::new(16);
        let slow = budget.take("slow", 12).await;
        // The lane cannot have more before its first charge is dropped, and not enough is free for another lane.
        let mut second = Box::pin(budget.take("slow", 12));
        assert!(second.as_mut().now_or_never().is_none());
        let mut other = Box::pin(budget.take("other", 12));
        assert!(other.as_mut().now_or_never().is_none());
        let small = [budget.take("b", 2).await, budget.take("c", 2).await];
        let mut third = Box::pin(budget.take("d", 1));
        assert!(third.as_mut().now_or_never().is_none());
        drop(small);
        let third = third.await;
        drop(slow);
        drop(second.await);
        drop(other.await);
        drop(third);
        let state = budget.lock();
        assert_eq!((state.free, state.large, state.held.len(), state.waiting.len()), (16, 0, 0, 0));
    }

    #[tokio::test]
    async fn a_lane_leaves_room_for_others() {
        let budget = MemoryBudget::new(40);
        let held = [budget.take("a", 8).await, budget.take("a", 12).await];
        let mut third = Box::pin(budget.take("a", 4));
        assert!(third.as_mut().now_or_never().is_none());
        let other = budget.take("b", 10).await;
        drop(other);
        // A waiter that gave up is forgotten.
        let mut gone = Box::pin(budget.take("a", 20));
        assert!(gone.as_mut().now_or_never().is_none());
        drop(gone);
        drop(held);
        drop(third.await);
        let state = budget.lock();
        assert_eq!((state.free, state.waiting.len()), (40, 0));
    }
}
