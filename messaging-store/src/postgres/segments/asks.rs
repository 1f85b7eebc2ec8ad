//! Questions of automations about contacts, answered for many at once.
//!
//! All questions are answered in one snapshot. Equal filters are evaluated together, each contact with its own span of
//! events; filters with conditions relative to the present are equal only as of the same moment.

use jiff::tz::TimeZone;
use messaging_core::domain::segment::values::Present;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::FilterQuery;

use super::super::fault::Fault;
use super::super::reads::Snapshot;
use super::super::row::uuid;
use super::evaluate::{ContactSpan, Evaluation};
use crate::tables::automations::asks::{after, by_filter};

/// Returns for each question whether its filter matches its contact; an erased contact does not match.
pub(in super::super) async fn answers(
    on: &mut Snapshot,
    workspace: WorkspaceId,
    asks: &[FilterQuery],
    zone: &TimeZone,
) -> Result<Vec<bool>, Fault> {
    let mut answers = vec![false; asks.len()];
    for same in by_filter(asks) {
        let present = Present { now: same.at, zone: zone.clone() };
        let Some(evaluation) = Evaluation::of_ask(on, workspace, &present, same.filter).await? else { break };
        let spanned = |place: &usize| {
            let FilterQuery { contact_id, span, .. } = &asks[*place];
            ContactSpan { contact: uuid(*contact_id), after: after(*span).map(uuid), up_to: span.up_to.map(uuid) }
        };
        let asked: Vec<ContactSpan> = same.places.iter().map(spanned).collect();
        for (place, holds) in same.places.iter().zip(evaluation.answers(on, &asked).await?) {
            answers[*place] = holds;
        }
    }
    Ok(answers)
}
