//! Simulated recipients: their messages never leave the server, and they behave as their names say.
//!
//! Contract section 4.3.

use crate::domain::channel::Channel;
use crate::domain::channel::address::EmailAddress;
use crate::domain::delivery::outcome::{
    Acceptance, AddressFault, ContentFault, Outcome, OutcomeClass, Response, Scope, SoftCause,
};

/// Domain of simulated recipients; nobody can own a name in `.invalid` (RFC 6761 section 6.4).
pub const DOMAIN: &str = "simulator.invalid";

const HOST: &str = "simulator.invalid";

/// Behaviour of a simulated recipient for one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simulated {
    /// The reply to the attempt.
    pub outcome: Outcome,
    /// True if the recipient complains about the message afterwards.
    pub complains: bool,
}

/// Returns the behaviour of a simulated recipient; `None` for any other.
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

/// Beginning of the numbers of simulated recipients of the channels other than email; one digit follows.
const NUMBERS: &str = "999000000";

/// Behaviour of a simulated recipient of a channel other than email for one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedDevice {
    /// The answer to the attempt.
    pub outcome: Outcome,
    /// True if the recipient reports afterwards that it read the message.
    pub reads: bool,
}

/// Returns the behaviour of a simulated recipient: a phone number from `+9990000001` to `+9990000007`, and on push and
/// Telegram an address that ends in those digits; `None` for any other. 1 delivered, 2 bounce, 3 soft bounce, 4
/// deferred for as long as it is tried, 5 blocked by a policy, 6 failed, 7 delivered and read.
pub fn simulate_device(channel: Channel, address: &str) -> Option<SimulatedDevice> {
    let number = match channel {
        Channel::Email => return None,
        Channel::Sms | Channel::Whatsapp | Channel::Viber => address.strip_prefix('+')?,
        Channel::Push | Channel::Telegram => {
            address.get(address.len().checked_sub(NUMBERS.len() + 1)?..).unwrap_or_default()
        }
    };
    let digit = number.strip_prefix(NUMBERS)?;
    let (class, text) = match digit {
        "1" | "7" => (OutcomeClass::Accepted(Acceptance::Delivered), "delivered"),
        "2" => (OutcomeClass::Address(AddressFault::Recipient), "no such recipient"),
        "3" => (OutcomeClass::Soft(SoftCause::Unreachable), "not reachable"),
        "4" => (OutcomeClass::Retry(Scope::Recipient), "try again later"),
        "5" => (OutcomeClass::Soft(SoftCause::Policy), "blocked by policy"),
        "6" => (OutcomeClass::Content(ContentFault::Provider), "not accepted"),
        _ => return None,
    };
    let response = Response { host: Some("sandbox".to_owned()), ..Response::of_text(text) };
    Some(SimulatedDevice { outcome: Outcome::of(class, response), reads: digit == "7" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_digits_choose_what_a_device_does() {
        let class = |channel, address: &str| simulate_device(channel, address).and_then(|one| one.outcome.class());
        for (digit, expected) in [
            ("1", OutcomeClass::Accepted(Acceptance::Delivered)),
            ("2", OutcomeClass::Address(AddressFault::Recipient)),
            ("3", OutcomeClass::Soft(SoftCause::Unreachable)),
            ("4", OutcomeClass::Retry(Scope::Recipient)),
            ("5", OutcomeClass::Soft(SoftCause::Policy)),
            ("6", OutcomeClass::Content(ContentFault::Provider)),
            ("7", OutcomeClass::Accepted(Acceptance::Delivered)),
        ] {
            for channel in [Channel::Sms, Channel::Whatsapp, Channel::Viber] {
                assert_eq!(class(channel, &format!("+999000000{digit}")), Some(expected), "{channel} {digit}");
                assert_eq!(class(channel, &format!("+4999000000{digit}")), None, "{channel} {digit}");
            }
            for channel in [Channel::Push, Channel::Telegram] {
                assert_eq!(class(channel, &format!("999000000{digit}")), Some(expected), "{channel} {digit}");
            }
            assert_eq!(class(Channel::Push, &format!("t\u{f6}ken-999000000{digit}")), Some(expected), "{digit}");
        }
        let reads = |number| simulate_device(Channel::Sms, number).is_some_and(|one| one.reads);
        assert!(reads("+9990000007") && !reads("+9990000001"));
        for other in ["+9990000000", "+9990000008", "+99900000011", "9990000001", "1", ""] {
            assert_eq!(class(Channel::Sms, other), None, "{other}");
        }
        assert_eq!(class(Channel::Push, "\u{f6}\u{f6}\u{f6}\u{f6}\u{f6}0"), None);
        assert_eq!(class(Channel::Email, "9990000001"), None);
    }
}
