//! Counting within a time limit: pieces that are spread over all contacts, and estimates from those that were counted.

use std::time::{Duration, Instant};

/// Time after which a preview stops counting and estimates.
const PREVIEW: Duration = Duration::from_millis(450);
/// Number of contacts up to which all are counted, however long that takes: an estimate from so few would be useless.
const ALL_COUNTED: u64 = 5_000;

/// Returns true if all of this number of contacts are counted.
pub(crate) const fn is_small(contacts: u64) -> bool {
    contacts <= ALL_COUNTED
}

/// Returns true if a preview of `contacts` contacts that began at `began` ends with an estimate now.
pub(crate) fn is_over(contacts: u64, began: Instant) -> bool {
    !is_small(contacts) && began.elapsed() >= PREVIEW
}

/// Returns the piece, of `all`, at a place of the order: the last one first, then far apart.
pub(crate) fn spread(place: i64, all: i64) -> i64 {
    // Close to the golden ratio, so that no part waits for long.
    let mut step = (all * 618 / 1000).max(1);
    while greatest_common_divisor(step, all) != 1 {
        step += 1;
    }
    all - 1 - place * step % all
}

const fn greatest_common_divisor(one: i64, other: i64) -> i64 {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}

/// Scales a count among `seen` contacts to `all`, rounded.
pub(crate) fn scaled(counted: u64, all: u64, seen: u64) -> u64 {
    if seen == 0 {
        return 0;
    }
    let (counted, all, seen) = (u128::from(counted), u128::from(all), u128::from(seen));
    u64::try_from((counted * all + seen / 2) / seen).unwrap_or(u64::MAX)
}

/// Like `scaled`, but at least one while some contacts were not seen.
pub(crate) fn estimated(counted: u64, all: u64, seen: u64) -> u64 {
    scaled(counted, all, seen).max(u64::from(seen < all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_contacts_are_all_counted_and_many_within_a_time() {
        let now = Instant::now();
        let Some(long_ago) = now.checked_sub(Duration::from_mins(1)) else { return };
        for (contacts, began, over) in
            [(0, long_ago, false), (58, long_ago, false), (5_000, long_ago, false), (5_001, long_ago, true)]
        {
            assert_eq!(is_over(contacts, began), over, "{contacts}");
        }
        assert!(!is_over(1_000_000, now));
    }

    #[test]
    fn nobody_is_certain_only_once_all_were_looked_at() {
        assert_eq!([estimated(0, 10, 0), estimated(0, 10, 9), estimated(0, 10, 10)], [1, 1, 0]);
        assert_eq!([estimated(1, 10, 4), estimated(0, 0, 0)], [3, 0]);
    }

    #[test]
    fn every_piece_comes_once_and_the_newest_first() {
        for all in 1..500 {
            let mut order: Vec<_> = (0..all).map(|place| spread(place, all)).collect();
            assert_eq!(order[0], all - 1);
            order.sort_unstable();
            assert_eq!(order, (0..all).collect::<Vec<_>>(), "of {all}");
        }
    }

    #[test]
    fn the_first_tenth_is_from_everywhere() {
        let all = 2000;
        let mut tenths = [0; 10];
        for place in 0..all / 10 {
            tenths[usize::try_from(spread(place, all) * 10 / all).unwrap()] += 1;
        }
        assert!(tenths.iter().all(|pieces| (15..=25).contains(pieces)), "{tenths:?}");
    }

    #[test]
    fn counts_are_scaled_to_everybody() {
        assert_eq!(scaled(0, 10, 0), 0);
        assert_eq!(scaled(1, 10, 4), 3);
        assert_eq!(scaled(4, 10, 4), 10);
        assert_eq!(scaled(u64::MAX, u64::MAX, 1), u64::MAX);
    }
}
