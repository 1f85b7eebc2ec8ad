//! Counting: which visits were people, and counters that equal the rows.
//!
//! A statistic is a column of a tally, kept with the change that it counts; nothing is counted afterwards.

pub mod bot_detection;
pub mod deliverability;
pub mod site_tally;
pub mod tally;
