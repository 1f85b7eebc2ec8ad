//! Questions about contacts, answered for many at once.
//!
//! All questions are answered in one snapshot. Filters that are equal become one statement, which is run for each contact
//! with the span of events that counts for it.

use std::collections::HashMap;

use jiff::tz::TimeZone;
use messaging_core::domain::segment::filter::Filter;
use messaging_core::domain::segment::values::Present;
use messaging_core::ids::{ContactId, WorkspaceId};
use messaging_core::ports::store::{Ask, AskSpan};
use messaging_core::time::Timestamp;
use rusqlite::Connection;

use super::super::fault::Fault;
use super::super::numbers::contact_number;
use super::super::segments::{Answering, compile_asks};

/// The id after which events are since the entry.
fn after(span: AskSpan) -> Option<[u8; 16]> {
    let of_time = |time: Timestamp| {
        let millis = u128::from(time.as_millis().max(0).unsigned_abs());
        // The last that could have been made at that time.
        ((millis << 80) | ((1 << 80) - 1)).to_be_bytes()
    };
    span.entry_event.map(messaging_core::ids::Id::to_bytes).or_else(|| span.entered_at.map(of_time))
}

pub(super) fn answer(
    connection: &Connection,
    workspace: WorkspaceId,
    asks: &[Ask],
    now: Timestamp,
    zone: &TimeZone,
) -> Result<Vec<bool>, Fault> {
    let connection = &*connection.unchecked_transaction()?;
    let mut filters: Vec<&Filter> = Vec::new();
    let wanted: Vec<usize> = asks
        .iter()
        .map(|ask| {
            let known = filters.iter().position(|filter| **filter == ask.filter);
            known.unwrap_or_else(|| {
                filters.push(&ask.filter);
                filters.len() - 1
            })
        })
        .collect();
    let present = Present { now, zone: zone.clone() };
    let Some(compiled) = compile_asks(connection, workspace, present, filters)? else {
        return Ok(vec![false; asks.len()]);
    };
    let mut answering = Answering::new(connection, compiled)?;
    let mut numbers: HashMap<ContactId, Option<i64>> = HashMap::new();
    let mut answers = Vec::with_capacity(asks.len());
    for (ask, condition) in asks.iter().zip(wanted) {
        let n = if let Some(known) = numbers.get(&ask.contact_id) {
            *known
        } else {
            let n = contact_number(connection, workspace, ask.contact_id)?;
            numbers.insert(ask.contact_id, n);
            n
        };
        let up_to = ask.span.up_to.map(messaging_core::ids::Id::to_bytes);
        answers.push(answering.holds(condition, [&n, &after(ask.span), &up_to])?);
    }
    Ok(answers)
}
