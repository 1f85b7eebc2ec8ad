//! Outcomes that are known without another attempt: an earlier one was made, was cut off, or is impossible.

use messaging_core::domain::delivery::{AttemptResult, judge};
use messaging_core::domain::message::Message;
use messaging_core::ports::transport::{Outcome, Response};

use crate::app::App;
use crate::jobs::deliver_message::Transaction;
use crate::work::deliver::addressee::Addressee;
use crate::work::deliver::perform::PerformedAttempt;
use crate::work::deliver::schedule::{AttemptClock, circumstances};
use crate::work::deliver::unprepared::Impossible;

/// Judges an attempt that the end of the process cut off: the provider's answer is lost, but a receipt may still report
/// the result.
pub(super) fn cut_off(app: &App, message: &Message, clock: AttemptClock, addressees: &[Addressee]) -> PerformedAttempt {
    let lost = Outcome::ambiguous(Response::of_text("the server stopped before the provider had answered"));
    let results: Vec<_> = addressees.iter().map(|one| one.clone().ended(AttemptResult::Tried(lost.clone()))).collect();
    let judgment = judge(circumstances(app, message, clock), &results);
    PerformedAttempt::without_peer(judgment, results)
}

/// Judges, for the recipients of a job, a message that cannot be sent.
pub(super) fn fail(
    app: &App,
    message: &Message,
    clock: AttemptClock,
    addressees: &[Addressee],
    impossible: &Impossible,
) -> PerformedAttempt {
    let results: Vec<_> = addressees.iter().map(|one| one.clone().ended(impossible.result())).collect();
    let judgment = judge(circumstances(app, message, clock), &results);
    PerformedAttempt::without_peer(judgment, results)
}

/// Judges the outcomes that a run had put on record before it was cut off. Other recipients stay open, for an attempt
/// at once.
pub(super) fn conclude(
    app: &App,
    message: &Message,
    clock: AttemptClock,
    addressees: &[Addressee],
) -> Option<PerformedAttempt> {
    let (mut results, mut open) = (Vec::new(), Vec::new());
    for addressee in addressees {
        match &addressee.progress.transaction {
            Transaction::Ended { outcome } => {
                results.push(addressee.clone().ended(AttemptResult::Tried(outcome.clone())));
            }
            Transaction::Waiting | Transaction::Begun => open.push(addressee.recipient.clone()),
        }
    }
    if results.is_empty() {
        return None;
    }
    let mut judgment = judge(circumstances(app, message, clock), &results);
    if !open.is_empty() {
        judgment.is_withheld |= judgment.open.is_empty();
        judgment.open.append(&mut open);
        judgment.next_attempt_at = Some(app.now());
    }
    Some(PerformedAttempt::without_peer(judgment, results))
}
