//! Listings of messages in one of several states.
//!
//! An index holds the messages of each state in their order. If an index has all of the wanted states, each is listed
//! by itself and the pages are merged, so that a few failures are found among millions of deliveries.

use std::cmp::Reverse;

use messaging_core::domain::message::{Message, MessageFilter, MessageStatus};
use messaging_core::ids::Id as _;
use messaging_core::ports::store::{Slice, StoreCursor};

/// Stored numbers of the wanted states, ascending and distinct.
///
/// In this order a message that changes its state between two listings is found in both rather than in neither: none of
/// the states in an index is followed by one with a smaller number.
pub(crate) fn numbers(filter: &MessageFilter) -> Vec<i64> {
    let wanted = |(_, status): &(i64, MessageStatus)| filter.statuses.contains(status);
    (0..).zip(MessageStatus::ALL).filter(wanted).map(|(number, _)| number).collect()
}

/// Returns true if an index has each of the states: from `of_all` on those of a workspace, from `of_campaign` on those
/// of a campaign.
pub(crate) fn are_listed_apart(filter: &MessageFilter, statuses: &[i64], of_all: i64, of_campaign: i64) -> bool {
    let first = match (filter.contact_id, filter.campaign_id, filter.automation_id) {
        (None, Some(_), _) => of_campaign,
        (None, None, None) => of_all,
        _ => return false,
    };
    statuses.len() > 1 && statuses.iter().all(|status| *status >= first)
}

/// Merges the pages of several listings into one, newest first.
pub(crate) fn merged(slices: Vec<Slice<Message>>, limit: usize) -> Slice<Message> {
    // A listing that was not read to its end says nothing about rows after its last position.
    let known_to = slices.iter().filter_map(|slice| slice.next).map(StoreCursor::to_bytes).max();
    // Of a message that was found twice, the state that was read later counts.
    let mut items: Vec<_> = slices.into_iter().rev().flat_map(|slice| slice.items).collect();
    items.retain(|message| known_to.is_none_or(|place| message.id.to_bytes() >= place));
    items.sort_by_key(|message| Reverse(message.id.to_bytes()));
    items.dedup_by_key(|message| message.id);
    let is_cut = items.len() > limit;
    items.truncate(limit);
    let place = if is_cut { items.last().map(|message| message.id.to_bytes()) } else { known_to };
    Slice { items, next: place.map(StoreCursor::from_bytes) }
}
