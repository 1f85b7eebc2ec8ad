//! The columns of counters, which are named after them, and the statements that name all of them.

use messaging_core::domain::analytics::site_tally::SiteCounts;
use messaging_core::domain::analytics::tally::{Counter, Counts};

use crate::fault::Fault;
use crate::row::{Row, get};
use crate::sql::{Sql, sql};

/// The counters of the columns of totals, in their order.
pub(super) const TOTALS: [Counter; 19] = Counter::ALL;

/// The counters of the columns of series, in their order.
pub(super) const SERIES: [Counter; 9] = [
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

/// Calls a macro with its arguments and the columns of totals, each with its parameter.
macro_rules! with_totals {
    ($then:ident!($($before:tt)*)) => {
        $then!(
            $($before)*;
            "waiting" "$1" "sending" "$2" "deferred" "$3" "sent" "$4" "delivered" "$5" "bounces" "$6" "complaints" "$7"
            "failed" "$8" "cancelled" "$9" "skipped_suppressed" "$10" "skipped_no_consent" "$11"
            "skipped_frequency_cap" "$12" "unique_opens" "$13" "unique_clicks" "$14" "unsubscribes" "$15"
            "unique_machine_opens" "$16" "opens" "$17" "clicks" "$18" "machine_opens" "$19"
        )
    };
}

/// Calls a macro with its arguments and the columns of series, each with its parameter.
macro_rules! with_series {
    ($then:ident!($($before:tt)*)) => {
        $then!(
            $($before)*;
            "sent" "$1" "delivered" "$2" "bounces" "$3" "complaints" "$4" "unique_opens" "$5" "unique_clicks" "$6"
            "unsubscribes" "$7" "opens" "$8" "clicks" "$9"
        )
    };
}

/// Calls a macro with its arguments and the columns of sites, each with its parameter.
macro_rules! with_sites {
    ($then:ident!($($before:tt)*)) => {
        $then!(
            $($before)*;
            "accepted" "$1" "delivered" "$2" "deferred" "$3" "bounced_hard" "$4" "bounced_soft" "$5"
            "complaints" "$6" "opened_human" "$7" "over_tls" "$8" "within_1" "$9" "within_2" "$10" "within_5" "$11"
            "within_10" "$12" "within_30" "$13" "within_60" "$14" "within_300" "$15" "within_900" "$16"
            "within_3600" "$17" "within_14400" "$18" "within_86400" "$19" "later" "$20"
        )
    };
}

/// A query for the sums of all columns, after those of a key.
macro_rules! sums {
    ($key:literal, $rest:literal; $($name:literal $number:literal)*) => {
        concat!("SELECT ", $key, $(", CAST(coalesce(sum(", $name, "), 0) AS bigint)",)* $rest)
    };
}

/// An upsert that adds to every column of a row; its parameters are the numbers, and then the key. PostgreSQL's takes
/// columns, and adds to the shard of the connection: its own, as long as few others write.
macro_rules! add {
    (
        sqlite $table:literal ($key:literal) $from:literal $rest:literal;
        $first:literal $one:literal $($name:literal $number:literal)*
    ) => {
        concat!(
            "INSERT INTO ", $table, " (", $first, $(", ", $name,)* ", ", $key, ") ", $from, $one, $(", ", $number,)* $rest,
            " ON CONFLICT DO UPDATE SET ", $first, " = ", $first, " + excluded.", $first,
            $(", ", $name, " = ", $name, " + excluded.", $name,)*
        )
    };
    (
        postgres $table:literal ($key:literal) $parameters:literal AS ($given:literal) $selected:literal $from:expr;
        $first:literal $one:literal $($name:literal $number:literal)*
    ) => {
        concat!(
            "INSERT INTO ", $table, " AS t (", $first, $(", ", $name,)* ", ", $key, ", shard) SELECT given.", $first,
            $(", given.", $name,)* ", ", $selected, ", pg_backend_pid() & 63 FROM unnest(", $one, "::bigint[]",
            $(", ", $number, "::bigint[]",)* ", ", $parameters, ") AS given (", $first, $(", ", $name,)* ", ", $given, ") ",
            $from, " ON CONFLICT (", $key, ", shard) DO UPDATE SET ", $first, " = t.", $first, " + excluded.", $first,
            $(", ", $name, " = t.", $name, " + excluded.", $name,)*
        )
    };
}

/// The campaign that is given, if it is there. It stays until the transaction ends: nothing is left behind by one that goes
/// meanwhile.
macro_rules! of_campaign {
    ($last:literal) => {
        concat!(
            "JOIN campaigns c ON c.workspace = given.workspace AND c.id = given.campaign AND NOT c.removed
             ORDER BY c.n, given.",
            $last,
            " FOR KEY SHARE OF c"
        )
    };
}

pub(crate) use {sums, with_series, with_sites, with_totals};

pub(super) const ADD_CAMPAIGN_COUNTS: Sql = sql!(
    sqlite: with_totals!(add!(
        sqlite "campaign_counts" ("campaign, variant")
        "SELECT " ", n, $22 FROM campaigns WHERE workspace = $20 AND id = $21 AND NOT removed"
    )),
    postgres: with_totals!(add!(
        postgres "campaign_counts" ("campaign, variant")
        "$20::uuid[], $21::uuid[], $22::smallint[]" AS ("workspace, campaign, variant")
        "c.n, given.variant" of_campaign!("variant")
    )),
);

pub(super) const ADD_CAMPAIGN_ACTIVITY: Sql = sql!(
    sqlite: with_series!(add!(
        sqlite "campaign_activity" ("campaign, quarter")
        "SELECT " ", n, $12 FROM campaigns WHERE workspace = $10 AND id = $11 AND NOT removed"
    )),
    postgres: with_series!(add!(
        postgres "campaign_activity" ("campaign, quarter")
        "$10::uuid[], $11::uuid[], $12::integer[]" AS ("workspace, campaign, quarter")
        "c.n, given.quarter" of_campaign!("quarter")
    )),
);

pub(super) const ADD_ACTIVITY: Sql = sql!(
    sqlite: with_series!(add!(
        sqlite "activity" ("workspace, quarter, channel, source")
        "VALUES (" ", $10, $11, $12, $13)"
    )),
    postgres: with_series!(add!(
        postgres "activity" ("workspace, quarter, channel, source")
        "$10::uuid[], $11::integer[], $12::bigint[], $13::bigint[]" AS ("workspace, quarter, channel, source")
        "given.workspace, given.quarter, given.channel, given.source"
        "ORDER BY given.workspace, given.quarter, given.channel, given.source"
    )),
);

pub(super) const ADD_SITE_ACTIVITY: Sql = sql!(
    sqlite: with_sites!(add!(
        sqlite "site_activity" ("workspace, quarter, site")
        "VALUES (" ", $21, $22, $23)"
    )),
    postgres: with_sites!(add!(
        postgres "site_activity" ("workspace, quarter, site")
        "$21::uuid[], $22::integer[], $23::text[]" AS ("workspace, quarter, site")
        "given.workspace, given.quarter, given.site" "ORDER BY given.workspace, given.quarter, given.site"
    )),
);

/// The totals in columns that follow the first ones.
pub(crate) fn totals(row: &dyn Row, first: usize) -> Result<Counts, Fault> {
    counts(&TOTALS, row, first)
}

/// The counts of a series in columns that follow the first ones.
pub(crate) fn series(row: &dyn Row, first: usize) -> Result<Counts, Fault> {
    counts(&SERIES, row, first)
}

/// The counts of a site in columns that follow the first ones.
pub(super) fn sites(row: &dyn Row, first: usize) -> Result<SiteCounts, Fault> {
    let numbers: Vec<i64> =
        (0..SiteCounts::NAMES.len()).map(|place| get(row, first + place)).collect::<Result<_, _>>()?;
    Ok(SiteCounts::from_numbers(numbers))
}

fn counts(counters: &[Counter], row: &dyn Row, first: usize) -> Result<Counts, Fault> {
    let mut counts = Counts::default();
    for (place, counter) in counters.iter().enumerate() {
        counts.count(*counter, get(row, first + place)?);
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    macro_rules! columns {
        (; $($name:literal $number:literal)*) => { [$(($name, $number)),*] };
    }

    /// Columns are named after their counters, and numbered in their order.
    fn are_of(columns: &[(&str, &str)], counters: &[Counter]) {
        are_named(columns, &counters.iter().map(|counter| counter.as_str()).collect::<Vec<_>>());
    }

    fn are_named(columns: &[(&str, &str)], names: &[&str]) {
        for (place, (column, name)) in columns.iter().zip(names).enumerate() {
            assert_eq!(*column, (*name, format!("${}", place + 1).as_str()));
        }
        assert_eq!(columns.len(), names.len());
    }

    #[test]
    fn columns_are_named_after_their_counters() {
        are_of(&with_totals!(columns!()), &TOTALS);
        are_of(&with_series!(columns!()), &SERIES);
        are_named(&with_sites!(columns!()), &SiteCounts::NAMES);
    }

    #[test]
    fn every_counter_of_series_has_its_column() {
        let in_series = Counter::ALL.into_iter().filter(|counter| counter.is_in_series());
        assert!(in_series.eq(SERIES));
    }
}
