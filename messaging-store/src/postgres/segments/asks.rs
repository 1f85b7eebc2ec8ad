//! Questions of automations about contacts, answered for many at once.
//!
//! All questions are answered in one snapshot. Filters that are equal are evaluated together, each contact with the span of
//! events that counts for it; those that count from the present are equal only as of the same moment.

use jiff::tz::TimeZone;
use messaging_core::domain::segment::filter::Filter;
use messaging_core::domain::segment::values::Present;
use messaging_core::ids::{EventId, WorkspaceId};
use messaging_core::ports::store::{Ask, AskSpan};
use messaging_core::time::Timestamp;

use super::super::fault::Fault;
use super::super::reads::Snapshot;
use super::super::row::uuid;
use super::evaluate::{Evaluation, Spanned};

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

/// The event after which events are since the entry.
fn after(span: AskSpan) -> Option<EventId> {
    span.entry_event.or_else(|| span.entered_at.map(EventId::last_of))
}

/// Whether each question's filter matches its contact; whoever is gone does not match.
pub(in super::super) async fn answers(
    on: &mut Snapshot,
    workspace: WorkspaceId,
    asks: &[Ask],
    zone: &TimeZone,
) -> Result<Vec<bool>, Fault> {
    let mut answers = vec![false; asks.len()];
    for same in by_filter(asks) {
        let present = Present { now: same.at, zone: zone.clone() };
        let Some(evaluation) = Evaluation::of_ask(on, workspace, &present, same.filter).await? else { break };
        let spanned = |place: &usize| {
            let Ask { contact_id, span, .. } = &asks[*place];
            Spanned { contact: uuid(*contact_id), after: after(*span).map(uuid), up_to: span.up_to.map(uuid) }
        };
        let asked: Vec<Spanned> = same.places.iter().map(spanned).collect();
        for (place, holds) in same.places.iter().zip(evaluation.answers(on, &asked).await?) {
            answers[*place] = holds;
        }
    }
    Ok(answers)
}
