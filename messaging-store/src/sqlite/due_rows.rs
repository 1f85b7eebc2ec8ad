//! Search for rows whose time is over in a table in the order of arrival.
//!
//! The oldest rows usually come first. Rows that arrived while the clock was wrong are dated in the future and stay at
//! the front for years. So if the front has no due rows, the rows behind it are examined as well, a window at a time,
//! from the end of the last look.

use std::sync::atomic::{AtomicI64, Ordering};

use super::fault::Fault;

/// Progress of the looks behind the front of a table.
#[derive(Debug, Default)]
pub(super) struct DueRows {
    /// Number of the last row examined; 0 to begin behind the front.
    reached: AtomicI64,
}

/// A row of a window.
pub(super) struct Dated<T> {
    /// Its number, by which the table is ordered.
    pub(super) n: i64,
    /// Identifies the row, if its time is over.
    pub(super) due: Option<T>,
}

impl DueRows {
    /// Returns at most `limit` due rows. `window` returns at most `size` rows after a number, in order.
    pub(super) fn find<T>(
        &self,
        size: usize,
        limit: usize,
        window: impl Fn(i64) -> Result<Vec<Dated<T>>, Fault>,
    ) -> Result<Vec<T>, Fault> {
        let front = window(i64::MIN)?;
        let Some(front_end) = front.last().map(|row| row.n).filter(|_| front.len() >= size) else {
            return Ok(front.into_iter().filter_map(|row| row.due).take(limit).collect());
        };
        if front.iter().any(|row| row.due.is_some()) {
            return Ok(front.into_iter().filter_map(|row| row.due).take(limit).collect());
        }
        let behind = window(front_end.max(self.reached.load(Ordering::Relaxed)))?;
        let end = behind.last().map(|row| row.n).filter(|_| behind.len() >= size);
        let due: Vec<T> = behind.into_iter().filter_map(|row| row.due).take(limit).collect();
        if due.is_empty() {
            self.reached.store(end.unwrap_or_default(), Ordering::Relaxed);
        }
        Ok(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of rows, each due or not.
    fn find(rows: &DueRows, table: &[(i64, bool)], limit: usize) -> Vec<i64> {
        let window = |after| {
            let rows = table.iter().filter(|(n, _)| *n > after).take(3);
            Ok(rows.map(|&(n, is_due)| Dated { n, due: is_due.then_some(n) }).collect())
        };
        rows.find(3, limit, window).unwrap()
    }

    #[test]
    fn rows_behind_those_that_are_never_due_are_found() {
        let rows = DueRows::default();
        let mut table: Vec<(i64, bool)> = (1..=20).map(|n| (n, matches!(n, 9 | 10 | 17))).collect();
        let mut found = Vec::new();
        for _ in 0..20 {
            let now = find(&rows, &table, 1);
            table.retain(|(n, _)| !now.contains(n));
            found.extend(now);
        }
        assert_eq!(found, [9, 10, 17]);
        // The search starts over at the end: a row that becomes due later is found as well.
        table.push((21, true));
        let again: Vec<i64> = (0..10).flat_map(|_| find(&rows, &table, 9)).collect();
        assert!(again.contains(&21), "{again:?}");
    }

    #[test]
    fn the_front_goes_first() {
        let rows = DueRows::default();
        let table: Vec<(i64, bool)> = (1..=9).map(|n| (n, true)).collect();
        assert_eq!(find(&rows, &table, 2), [1, 2]);
        assert_eq!(find(&rows, &[], 2), [0_i64; 0]);
    }
}
