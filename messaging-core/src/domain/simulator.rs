//! Recipients that never leave the server and behave as their name says.
//!
//! Contract section 4.3.

use crate::domain::address::EmailAddress;
use crate::domain::outcome::{Acceptance, Outcome, Response};

/// The domain of simulated recipients; `.invalid` is nobody's (RFC 6761 section 6.4).
pub const DOMAIN: &str = "simulator.invalid";

const HOST: &str = "simulator.invalid";

/// What a simulated recipient does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simulated {
    /// The reply to the attempt.
    pub outcome: Outcome,
    /// Whether a complaint follows.
    pub complains: bool,
}

/// What the recipient does, if it is a simulated one.
pub fn simulate(recipient: &EmailAddress) -> Option<Simulated> {
    if !recipient.domain().eq_ignore_ascii_case(DOMAIN) {
        return None;
    }
    let local = recipient.local().to_ascii_lowercase();
    let behavior = local.split('+').next().unwrap_or_default();
    let reply = |code, enhanced: &str, text: &str| Response {
        code: Some(code),
        enhanced: Some(enhanced.to_owned()),
        text: text.to_owned(),
        host: Some(HOST.to_owned()),
    };
    let outcome = match behavior {
        "bounce" => Outcome::refused(reply(550, "5.1.1", "no such user")),
        "softbounce" => Outcome::refused(reply(552, "4.2.2", "mailbox full")),
        "deferred" => Outcome::deferred(reply(450, "4.2.1", "try again later")),
        "blocked" => Outcome::refused(reply(550, "5.7.1", "blocked by policy")),
        _ => Outcome::accepted(Acceptance::Delivered, reply(250, "2.0.0", "ok")),
    };
    Some(Simulated { outcome, complains: behavior == "complaint" })
}
