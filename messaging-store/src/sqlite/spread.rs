//! An order in which a part of the pieces stands for all of them.

/// Which of `all` pieces comes at some place of the order: the last one first, then far apart.
pub(super) fn spread(place: i64, all: i64) -> i64 {
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
