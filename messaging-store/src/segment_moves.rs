//! Moves of contacts into and out of a segment.

use std::cmp::Ordering;

/// Adds the moves that turn `held` into `wanted`; both are ascending.
pub(crate) fn compare(wanted: &[i64], held: &[i64], moves: &mut Vec<(i64, bool)>) {
    let (mut wanted, mut held) = (wanted.iter().copied().peekable(), held.iter().copied().peekable());
    loop {
        let order = match (wanted.peek(), held.peek()) {
            (Some(wants), Some(holds)) => wants.cmp(holds),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return,
        };
        match order {
            Ordering::Less => moves.extend(wanted.next().map(|contact| (contact, true))),
            Ordering::Greater => moves.extend(held.next().map(|contact| (contact, false))),
            Ordering::Equal => {
                wanted.next();
                held.next();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(wanted: &[i64], held: &[i64], expected: &[(i64, bool)]) {
        let mut moves = Vec::new();
        compare(wanted, held, &mut moves);
        assert_eq!(moves, expected, "{wanted:?} {held:?}");
    }

    #[test]
    fn a_comparison_finds_who_has_to_move() {
        check(&[], &[], &[]);
        check(&[1, 2], &[1, 2], &[]);
        check(&[1, 2], &[], &[(1, true), (2, true)]);
        check(&[], &[1, 2], &[(1, false), (2, false)]);
        check(&[1, 3, 5], &[2, 3, 6], &[(1, true), (2, false), (5, true), (6, false)]);
    }
}
