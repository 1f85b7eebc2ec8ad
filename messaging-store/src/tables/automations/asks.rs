//! Grouping of questions of automations about contacts that can be answered together.

use messaging_core::domain::segment::filter::Filter;
use messaging_core::ids::EventId;
use messaging_core::ports::store::{EventSpan, FilterQuery};
use messaging_core::time::Timestamp;

/// Questions with one filter.
pub(crate) struct AskGroup<'a> {
    pub(crate) filter: &'a Filter,
    /// Moment as of which relative conditions of the filter are evaluated.
    pub(crate) at: Timestamp,
    /// True if the filter has conditions relative to the present.
    is_relative: bool,
    /// Indexes of the questions.
    pub(crate) places: Vec<usize>,
}

/// Groups questions by their filters.
pub(crate) fn by_filter(asks: &[FilterQuery]) -> Vec<AskGroup<'_>> {
    let mut all: Vec<AskGroup<'_>> = Vec::new();
    for (place, FilterQuery { filter, at, .. }) in asks.iter().enumerate() {
        let is_same = |same: &&mut AskGroup<'_>| (same.at == *at || !same.is_relative) && same.filter == filter;
        match all.iter_mut().find(is_same) {
            Some(same) => same.places.push(place),
            None => all.push(AskGroup { filter, at: *at, is_relative: filter.reads().present, places: vec![place] }),
        }
    }
    all
}

/// The event after which events count as since the entry.
pub(crate) fn after(span: EventSpan) -> Option<EventId> {
    span.entry_event.or_else(|| span.entered_at.map(EventId::last_of))
}
