//! The columns of counters, which are named after them.

use messaging_core::domain::tally::Counter;

/// The counters of the columns of totals, in their order.
pub(crate) const TOTALS: [Counter; 19] = Counter::ALL;

/// The counters of the columns of series, in their order.
pub(crate) const SERIES: [Counter; 9] = [
    Counter::Sent,
    Counter::Delivered,
    Counter::Bounces,
    Counter::Complaints,
    Counter::UniqueOpens,
    Counter::UniqueClicks,
    Counter::Unsubscribes,
    Counter::Opens,
    Counter::Clicks,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_of_series_has_its_column() {
        let in_series = Counter::ALL.into_iter().filter(|counter| counter.is_in_series());
        assert!(in_series.eq(SERIES));
    }
}
