//! Room in memory for what is being sent.
//!
//! Whoever is about to read something large first takes room for it here, and waits without holding anything.
//! Room is given in the order of asking, except that one lane never has more than half of it once it has any:
//! messages to a mail server that has stopped reading must not keep everybody else's waiting.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Bytes that may be held at one time.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    total: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    free: u64,
    /// What each lane holds; lanes that hold nothing are not in it.
    held: HashMap<String, u64>,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    lane: String,
    bytes: u64,
    granted: oneshot::Sender<Charge>,
}

/// Room that was taken, given back when dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<MemoryBudget>,
    lane: String,
    bytes: u64,
}

impl MemoryBudget {
    pub(crate) fn new(total: u64) -> Arc<Self> {
        let state = State { free: total, held: HashMap::new(), waiting: VecDeque::new() };
        Arc::new(Self { total, state: Mutex::new(state) })
    }

    /// Takes room for `bytes`, waiting as long as there is none. More than the whole budget counts as all of it.
    pub(crate) async fn take(self: &Arc<Self>, lane: &str, bytes: u64) -> Charge {
        let bytes = bytes.min(self.total);
        let granted = {
            let mut state = self.lock();
            if state.waiting.is_empty() && state.fits(lane, bytes, self.total) {
                return self.grant(&mut state, lane.to_owned(), bytes);
            }
            let (granted, waiting) = oneshot::channel();
            state.waiting.push_back(Waiting { lane: lane.to_owned(), bytes, granted });
            waiting
        };
        self.serve();
        granted.await.expect("whoever waits is served or stays in the queue")
    }

    fn grant(self: &Arc<Self>, state: &mut State, lane: String, bytes: u64) -> Charge {
        state.free -= bytes;
        *state.held.entry(lane.clone()).or_default() += bytes;
        Charge { budget: Arc::clone(self), lane, bytes }
    }

    /// Gives room to those whose turn it is.
    fn serve(self: &Arc<Self>) {
        let mut served = Vec::new();
        {
            let mut state = self.lock();
            let mut place = 0;
            while let Some(next) = state.waiting.get(place) {
                if next.granted.is_closed() {
                    state.waiting.remove(place);
                } else if next.bytes > state.free {
                    // Nobody overtakes, or who needs much would wait for ever.
                    break;
                } else if !state.fits(&next.lane, next.bytes, self.total) {
                    place += 1;
                } else if let Some(Waiting { lane, bytes, granted }) = state.waiting.remove(place) {
                    served.push((granted, self.grant(&mut state, lane, bytes)));
                }
            }
        }
        for (granted, charge) in served {
            // Who went away in this moment gives the room back by dropping it.
            drop(granted.send(charge));
        }
    }

    /// Never held over an await, nor while a charge is dropped.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn fits(&self, lane: &str, bytes: u64, total: u64) -> bool {
        let held = self.held.get(lane).copied().unwrap_or_default();
        bytes <= self.free && (held == 0 || held + bytes <= total / 2)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        {
            let mut state = self.budget.lock();
            state.free += self.bytes;
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
        let budget = MemoryBudget::new(10);
        let first = budget.take("a", 4).await;
        let mut large = Box::pin(budget.take("b", 100));
        assert!(large.as_mut().now_or_never().is_none());
        let mut small = Box::pin(budget.take("c", 1));
        assert!(small.as_mut().now_or_never().is_none(), "nobody overtakes the large one");
        drop(first);
        let large = large.await;
        assert_eq!(budget.lock().free, 0);
        assert!(small.as_mut().now_or_never().is_none());
        drop(large);
        drop(small.await);
        let state = budget.lock();
        assert_eq!((state.free, state.held.len(), state.waiting.len()), (10, 0, 0));
    }

    #[tokio::test]
    async fn a_lane_leaves_room_for_others() {
        let budget = MemoryBudget::new(10);
        let held = [budget.take("a", 2).await, budget.take("a", 3).await];
        let mut third = Box::pin(budget.take("a", 1));
        assert!(third.as_mut().now_or_never().is_none());
        let other = budget.take("b", 5).await;
        drop(other);
        // Somebody who stopped waiting is forgotten.
        let mut gone = Box::pin(budget.take("a", 5));
        assert!(gone.as_mut().now_or_never().is_none());
        drop(gone);
        drop(held);
        drop(third.await);
        let state = budget.lock();
        assert_eq!((state.free, state.waiting.len()), (10, 0));
    }
}
