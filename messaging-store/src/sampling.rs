//! Counting within a time: pieces that are spread over everything, and estimates from those that were looked at.

/// Which of `all` pieces comes at some place of the order: the last one first, then far apart.
pub(crate) fn spread(place: i64, all: i64) -> i64 {
    // About the golden section, which leaves no part out for long.
    let mut step = (all * 618 / 1000).max(1);
    while greatest_common_divisor(step, all) != 1 {
        step += 1;
    }
    all - 1 - place * step % all
}

const fn greatest_common_divisor(one: i64, other: i64) -> i64 {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}

/// What a count among some is among all, rounded.
pub(crate) fn scaled(counted: u64, all: u64, seen: u64) -> u64 {
    if seen == 0 {
        return 0;
    }
    let (counted, all, seen) = (u128::from(counted), u128::from(all), u128::from(seen));
    u64::try_from((counted * all + seen / 2) / seen).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

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
