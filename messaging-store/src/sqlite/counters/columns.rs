//! The columns of counters, and the statements that name all of them.

use messaging_core::domain::tally::{Counter, Counts};
use rusqlite::Row;

use super::super::fault::Fault;

pub(in super::super) use crate::counter_columns::{SERIES, TOTALS};

/// Calls a macro with what came before and the columns of totals.
macro_rules! with_totals {
    ($then:ident!($($before:tt)*)) => {
        $then!(
            $($before)*;
            "waiting" "sending" "deferred" "sent" "delivered" "bounces" "complaints" "failed" "cancelled"
            "skipped_suppressed" "skipped_no_consent" "skipped_frequency_cap" "unique_opens" "unique_clicks"
            "unsubscribes" "unique_machine_opens" "opens" "clicks" "machine_opens"
        )
    };
}

/// The same with the columns of series.
macro_rules! with_series {
    ($then:ident!($($before:tt)*)) => {
        $then!(
            $($before)*;
            "sent" "delivered" "bounces" "complaints" "unique_opens" "unique_clicks" "unsubscribes" "opens" "clicks"
        )
    };
}

/// The place of a parameter.
macro_rules! mark {
    ($name:literal) => {
        "?"
    };
}

/// An upsert that adds to every column; its parameters are the key and the numbers.
macro_rules! add_to {
    ($table:literal ($($key:literal)*); $first:literal $($name:literal)*) => {
        concat!(
            "INSERT INTO ", $table, " (", $($key, ", ",)* $first, $(", ", $name,)*
            ") VALUES (", $(mark!($key), ", ",)* mark!($first), $(", ", mark!($name),)*
            ") ON CONFLICT DO UPDATE SET ", $first, " = ", $first, " + excluded.", $first,
            $(", ", $name, " = ", $name, " + excluded.", $name,)*
        )
    };
}

/// A query for every column, or their sums.
macro_rules! select {
    ($before:literal each $after:literal; $first:literal $($name:literal)*) => {
        concat!("SELECT ", $before, $first, $(", ", $name,)* $after)
    };
    ($before:literal sums $after:literal; $first:literal $($name:literal)*) => {
        concat!("SELECT ", $before, "ifnull(sum(", $first, "), 0)", $(", ifnull(sum(", $name, "), 0)",)* $after)
    };
}

pub(super) use {select, with_series, with_totals};

pub(super) const ADD_CAMPAIGN_COUNTS: &str = with_totals!(add_to!("campaign_counts" ("campaign" "variant")));

pub(super) const ADD_CAMPAIGN_ACTIVITY: &str = with_series!(add_to!("campaign_activity" ("campaign" "quarter")));

pub(super) const ADD_ACTIVITY: &str = with_series!(add_to!("activity" ("workspace" "quarter" "channel" "source")));

/// Counts from columns that follow the first ones.
pub(super) fn counts<const N: usize>(counters: [Counter; N], row: &Row<'_>, first: usize) -> Result<Counts, Fault> {
    let mut counts = Counts::default();
    for (place, counter) in counters.into_iter().enumerate() {
        counts.count(counter, row.get(first + place)?);
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    macro_rules! names {
        (; $($name:literal)*) => { [$($name),*] };
    }

    #[test]
    fn columns_are_named_after_their_counters() {
        assert_eq!(with_totals!(names!()), TOTALS.map(Counter::as_str));
        assert_eq!(with_series!(names!()), SERIES.map(Counter::as_str));
    }
}
