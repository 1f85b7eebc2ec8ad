//! Outcomes as a mail server's replies bring them.

use messaging_core::ports::transport::Outcome;

use crate::smtp::parse_reply;

/// The outcome of an SMTP reply, such as `550 5.1.1 no such user`.
///
/// # Panics
///
/// If that is not a final reply.
pub fn outcome(reply: &str) -> Outcome {
    parse_reply(reply.as_bytes()).and_then(|reply| reply.outcome("mx.test")).expect("a final reply")
}
