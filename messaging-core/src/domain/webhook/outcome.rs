//! Outcome of an attempt to call a webhook.
//!
//! Contract section 15.3. Pure functions.

use std::time::Duration;

use http::StatusCode;

use super::delivery::{Delivery, DeliveryError, DeliveryStatus};
use crate::domain::delivery::outcome::MAX_WAIT;
use crate::time::Timestamp;

/// Result of one call of a webhook: the receiver's answer, or the reason why there was none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The receiver answered.
    Status {
        /// The status.
        status: StatusCode,
        /// The beginning of the body.
        body: String,
        /// Time for which the receiver asks to be left alone.
        retry_after: Option<Duration>,
    },
    /// There was no complete answer.
    Nothing(DeliveryError),
}

/// An attempt, with the schedule of the next one.
#[derive(Debug, Clone)]
pub struct Attempt<'a> {
    /// Answer of the receiver, or the reason why there was none.
    pub answer: Answer,
    /// When it ended.
    pub ended_at: Timestamp,
    /// Duration of the attempt.
    pub took: Duration,
    /// Waits between attempts; after the last one the delivery is given up.
    pub schedule: &'a [Duration],
    /// Difference of the wait from the schedule, in thousandths: -100 to 100.
    pub jitter: i32,
}

/// Consequence of an attempt for the webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consequence {
    /// The receiver works.
    Works,
    /// The receiver failed.
    Fails,
    /// The receiver says that it is gone (410): the webhook is disabled.
    Gone,
}

/// Returns the delivery after an attempt, and the consequence for its webhook.
pub fn judge(mut delivery: Delivery, attempt: Attempt<'_>) -> (Delivery, Consequence) {
    delivery.attempts += 1;
    delivery.duration_ms = Some(u64::try_from(attempt.took.as_millis()).unwrap_or(u64::MAX));
    delivery.in_backlog = false;
    delivery.next_attempt_at = None;
    let (status, body, error, retry_after) = match attempt.answer {
        Answer::Status { status, body, retry_after } => {
            let error = (!status.is_success()).then_some(DeliveryError::HttpStatus);
            let may_delay = [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE].contains(&status);
            (Some(status), Some(body), error, retry_after.filter(|_| may_delay))
        }
        Answer::Nothing(error) => (None, None, Some(error), None),
    };
    delivery.response_status = status.map(|status| status.as_u16());
    delivery.response_body = body;
    delivery.error = error;
    if error.is_none() {
        delivery.status = DeliveryStatus::Delivered;
        delivery.delivered_at = Some(attempt.ended_at);
        return (delivery, Consequence::Works);
    }
    if status == Some(StatusCode::GONE) {
        delivery.status = DeliveryStatus::Failed;
        return (delivery, Consequence::Gone);
    }
    // A test is attempted once.
    let index = usize::try_from(delivery.attempts - 1).unwrap_or(usize::MAX);
    let wait = attempt.schedule.get(index).filter(|_| !delivery.is_test());
    match wait {
        Some(wait) => {
            let wait = stretched(*wait, attempt.jitter).max(retry_after.unwrap_or_default().min(MAX_WAIT));
            delivery.status = DeliveryStatus::Pending;
            delivery.next_attempt_at = Some(attempt.ended_at + wait);
        }
        None => delivery.status = DeliveryStatus::Failed,
    }
    (delivery, Consequence::Fails)
}

fn stretched(wait: Duration, jitter: i32) -> Duration {
    let thousandths = u32::try_from(1000 + jitter.clamp(-100, 100)).unwrap_or(1000);
    wait / 1000 * thousandths
}

#[cfg(test)]
mod tests;
