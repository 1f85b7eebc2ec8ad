//! Questions about contacts, answered for many at once.
//!
//! All questions are answered in one snapshot. Filters that are equal become one statement, which is run for each contact
//! with the span of events that counts for it; those that count from the present are equal only as of the same moment.

use std::collections::HashMap;

use jiff::tz::TimeZone;
use messaging_core::domain::segment::values::Present;
use messaging_core::ids::{ContactId, EventId, Id as _, WorkspaceId};
use messaging_core::ports::store::FilterQuery;
use rusqlite::Connection;

use super::super::fault::Fault;
use super::super::numbers::contact_number;
use super::super::segments::{AskEvaluation, compile_asks};
use crate::tables::automations::asks::{after, by_filter};

/// Filters that are compiled together: all of their values are bound, and SQLite takes only so many.
const FILTERS: usize = 64;

pub(super) fn answer(
    connection: &Connection,
    workspace: WorkspaceId,
    asks: &[FilterQuery],
    zone: &TimeZone,
) -> Result<Vec<bool>, Fault> {
    let connection = &*connection.unchecked_transaction()?;
    let mut numbers: HashMap<ContactId, Option<i64>> = HashMap::new();
    let mut answers = vec![false; asks.len()];
    for some in by_filter(asks).chunks(FILTERS) {
        let present = |at| Present { now: at, zone: zone.clone() };
        let filters = some.iter().map(|same| (same.filter, present(same.at)));
        let Some(compiled) = compile_asks(connection, workspace, filters)? else { break };
        let mut answering = AskEvaluation::new(connection, compiled)?;
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
            let (after, up_to) = (after(ask.span), ask.span.up_to);
            let span = [after, up_to].map(|event| event.map(EventId::to_bytes));
            answers[place] = answering.holds(condition, [&n, &span[0], &span[1]])?;
        }
    }
    Ok(answers)
}
