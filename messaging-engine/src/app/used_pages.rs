//! Pages of forms that were posted with a proof of work, so that one proof is good for one post.

use std::collections::hash_map::RandomState;
use std::collections::{HashSet, VecDeque};
use std::hash::BuildHasher as _;
use std::sync::{Mutex, PoisonError};

/// Number of pages that are remembered. Pages are good for a day; to have one forgotten earlier takes as much work as
/// this many posts.
const MAX_KNOWN: usize = 100_000;

/// The pages that this process saw posted, by digests of their tokens.
#[derive(Debug, Default)]
pub(crate) struct UsedPages {
    known: Mutex<Known>,
    digests: RandomState,
}

#[derive(Debug, Default)]
struct Known {
    digests: HashSet<u64>,
    /// The same, the oldest first.
    order: VecDeque<u64>,
}

impl UsedPages {
    /// Takes a page; false if it was taken before.
    pub(crate) fn take(&self, token: &str) -> bool {
        self.take_of(token, MAX_KNOWN)
    }

    fn take_of(&self, token: &str, most: usize) -> bool {
        let digest = self.digests.hash_one(token);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.digests.insert(digest) {
            return false;
        }
        known.order.push_back(digest);
        if known.order.len() > most
            && let Some(oldest) = known.order.pop_front()
        {
            known.digests.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_taken_once() {
        let pages = UsedPages::default();
        assert_eq!([pages.take("a"), pages.take("b"), pages.take("a"), pages.take("b")], [true, true, false, false]);
    }

    #[test]
    fn the_oldest_pages_are_forgotten_first() {
        let pages = UsedPages::default();
        let taken: Vec<_> = ["a", "b", "c", "b", "c", "a", "c"].map(|token| pages.take_of(token, 2)).into();
        assert_eq!(taken, [true, true, true, false, false, true, false]);
    }
}
