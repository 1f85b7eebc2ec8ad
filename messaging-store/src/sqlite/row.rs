//! Between rows and core's types.

pub(super) use crate::pages::{number, numbered_place, place_number, sql_limit};
pub(super) use crate::row::{count, id, maybe_time, numbered, time};
