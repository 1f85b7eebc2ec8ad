//! The statements that name all columns of counters.

use std::fmt::Write as _;
use std::sync::LazyLock;

use messaging_core::domain::tally::{Counter, Counts};
use tokio_postgres::Row;

use super::super::fault::Fault;
use super::super::row::get;

pub(super) use crate::counter_columns::{SERIES, TOTALS};

/// The names of columns, each made into an entry of a list.
pub(super) fn list(counters: &[Counter], entry: impl Fn(&str) -> String) -> String {
    counters.iter().map(|counter| entry(counter.as_str())).collect::<Vec<_>>().join(", ")
}

/// A query for the sums of all columns: after the columns of a key, and before the rest of the query.
pub(super) fn sums(key: &str, counters: &[Counter], rest: &str) -> String {
    let sums = list(counters, |name| format!("coalesce(sum({name}), 0)::bigint"));
    format!("SELECT {key}{sums} {rest}")
}

/// An upsert that adds to every column of rows. Its parameters are columns: those of `given`, with their types, and then a
/// number for each counter. `rows` is what makes the rows of them, and of those the columns of the key, in order.
fn addition(
    (table, key): (&str, &str),
    (given, counters): (&[(&str, &str)], &[Counter]),
    (from, selected, locked): (&str, &str, &str),
) -> String {
    let names = list(counters, str::to_owned);
    let mut parameters = String::new();
    for (place, kind) in given.iter().map(|(_, kind)| *kind).chain(counters.iter().map(|_| "bigint")).enumerate() {
        let separator = if place == 0 { "" } else { ", " };
        // Writing to a string does not fail.
        let _ = write!(parameters, "{separator}${}::{kind}[]", place + 1);
    }
    let columns: Vec<_> = given.iter().map(|(name, _)| *name).collect();
    let added = list(counters, |name| format!("{name} = t.{name} + excluded.{name}"));
    let given_numbers = list(counters, |name| format!("given.{name}"));
    format!(
        "INSERT INTO {table} AS t ({key}, shard, {names})
         SELECT {selected}, {SHARD}, {given_numbers}
         FROM unnest({parameters}) AS given ({}, {names}) {from} ORDER BY {selected} {locked}
         ON CONFLICT ({key}, shard) DO UPDATE SET {added}",
        columns.join(", ")
    )
}

/// The shard that a connection adds to: its own, as long as few others write.
pub(super) const SHARD: &str = "pg_backend_pid() & 15";

/// What is given of a campaign that is there. It stays until the transaction ends: nothing is left behind by one that goes
/// meanwhile.
const CAMPAIGN: &str = "JOIN campaigns ON campaigns.workspace = given.workspace AND campaigns.id = given.campaign AND NOT campaigns.removed";

const KEPT: &str = "FOR KEY SHARE OF campaigns";

pub(super) static ADD_CAMPAIGN_COUNTS: LazyLock<String> = LazyLock::new(|| {
    let given = [("workspace", "uuid"), ("campaign", "uuid"), ("variant", "smallint")];
    let rows = (CAMPAIGN, "campaigns.n, given.variant", KEPT);
    addition(("campaign_counts", "campaign, variant"), (&given, &TOTALS), rows)
});

pub(super) static ADD_CAMPAIGN_ACTIVITY: LazyLock<String> = LazyLock::new(|| {
    let given = [("workspace", "uuid"), ("campaign", "uuid"), ("quarter", "integer")];
    let rows = (CAMPAIGN, "campaigns.n, given.quarter", KEPT);
    addition(("campaign_activity", "campaign, quarter"), (&given, &SERIES), rows)
});

pub(super) static ADD_ACTIVITY: LazyLock<String> = LazyLock::new(|| {
    let given = [("workspace", "uuid"), ("quarter", "integer"), ("channel", "bigint"), ("source", "bigint")];
    let rows = ("", "given.workspace, given.quarter, given.channel, given.source", "");
    addition(("activity", "workspace, quarter, channel, source"), (&given, &SERIES), rows)
});

/// Counts from columns that follow the first ones.
pub(super) fn counts<const N: usize>(counters: [Counter; N], row: &Row, first: usize) -> Result<Counts, Fault> {
    let mut counts = Counts::default();
    for (place, counter) in counters.into_iter().enumerate() {
        counts.count(counter, get(row, first + place)?);
    }
    Ok(counts)
}
