//! Questions about contacts, answered for many at once.
//!
//! All questions are answered in one snapshot. Filters that are equal become one statement, which is run for each contact
//! with the span of events that counts for it; those that count from the present are equal only as of the same moment.

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

/// Filters that are compiled together: all of their values are bound, and SQLite takes only so many.
const FILTERS: usize = 64;

/// The id after which events are since the entry.
fn after(span: AskSpan) -> Option<[u8; 16]> {
    let of_time = |time: Timestamp| messaging_core::ids::EventId::last_of(time);
    span.entry_event.or_else(|| span.entered_at.map(of_time)).map(messaging_core::ids::Id::to_bytes)
}

/// Questions with one filter.
struct Same<'a> {
    filter: &'a Filter,
    /// What counts from the present counts from here.
    at: Timestamp,
    /// Whether anything does.
    is_relative: bool,
    /// The questions.
    places: Vec<usize>,
}

/// The questions by their filters.
fn by_filter(asks: &[Ask]) -> Vec<Same<'_>> {
    let mut all: Vec<Same<'_>> = Vec::new();
    for (place, Ask { filter, at, .. }) in asks.iter().enumerate() {
        let is_same = |same: &&mut Same<'_>| (same.at == *at || !same.is_relative) && same.filter == filter;
        match all.iter_mut().find(is_same) {
            Some(same) => same.places.push(place),
            None => all.push(Same { filter, at: *at, is_relative: filter.reads().present, places: vec![place] }),
        }
    }
    all
}

pub(super) fn answer(
    connection: &Connection,
    workspace: WorkspaceId,
    asks: &[Ask],
    zone: &TimeZone,
) -> Result<Vec<bool>, Fault> {
    let connection = &*connection.unchecked_transaction()?;
    let mut numbers: HashMap<ContactId, Option<i64>> = HashMap::new();
    let mut answers = vec![false; asks.len()];
    for some in by_filter(asks).chunks(FILTERS) {
        let present = |at| Present { now: at, zone: zone.clone() };
        let filters = some.iter().map(|same| (same.filter, present(same.at)));
        let Some(compiled) = compile_asks(connection, workspace, filters)? else { break };
        let mut answering = Answering::new(connection, compiled)?;
        for (condition, place) in
            some.iter().enumerate().flat_map(|(n, same)| same.places.iter().map(move |at| (n, *at)))
        {
            let ask = &asks[place];
            let n = if let Some(known) = numbers.get(&ask.contact_id) {
                *known
            } else {
                let n = contact_number(connection, workspace, ask.contact_id)?;
                numbers.insert(ask.contact_id, n);
                n
            };
            let up_to = ask.span.up_to.map(messaging_core::ids::Id::to_bytes);
            answers[place] = answering.holds(condition, [&n, &after(ask.span), &up_to])?;
        }
    }
    Ok(answers)
}
