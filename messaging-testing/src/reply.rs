//! Outcomes from the replies of mail servers.

use messaging_core::ports::transport::Outcome;
use messaging_transport::smtp::outcome_of;

/// Returns the outcome of an SMTP reply, such as `550 5.1.1 no such user`.
///
/// # Panics
///
/// If that is not a final reply.
pub fn outcome(reply: &str) -> Outcome {
    outcome_of(reply, "mx.test").expect("a final reply")
}
