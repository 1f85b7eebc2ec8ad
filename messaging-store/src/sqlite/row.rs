//! Between rows and core's types.

pub(super) use crate::pages::{below, number, numbered_place, one_more, place_number, slice, sql_limit};
pub(super) use crate::row::{count, document, id, maybe_id, maybe_time, numbered, or_empty, record, stored, time};
