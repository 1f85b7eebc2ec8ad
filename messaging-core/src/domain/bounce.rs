//! What a refusal means: hard or soft, and of which class.
//!
//! Contract section 10: the enhanced code (RFC 3463) counts before the basic code (RFC 5321 section
//! 4.2) and that before the text, because large providers answer 550 to nearly everything.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ports::transport::Response;

/// Whether the address is bad or only this attempt was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BounceType {
    /// The address does not work; it is suppressed.
    Hard,
    /// The address may work another time.
    Soft,
}

/// Why a message was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are those of the contract")]
pub enum BounceClass {
    InvalidRecipient,
    InvalidDomain,
    MailboxFull,
    Policy,
    Content,
    Unreachable,
    Unknown,
}

impl BounceClass {
    /// Only a bad address or domain is hard.
    pub const fn bounce_type(self) -> BounceType {
        match self {
            Self::InvalidRecipient | Self::InvalidDomain => BounceType::Hard,
            _ => BounceType::Soft,
        }
    }
}

/// Classifies a permanent refusal.
pub fn classify(response: &Response) -> BounceClass {
    response
        .enhanced
        .as_deref()
        .and_then(by_enhanced_code)
        .or_else(|| by_text(&response.text))
        .or_else(|| response.code.and_then(by_basic_code))
        .unwrap_or(BounceClass::Unknown)
}

/// `None` when the code says nothing definite, as `5.0.0` and `5.5.0` do.
fn by_enhanced_code(code: &str) -> Option<BounceClass> {
    let mut parts = code.split('.').map(|part| part.parse::<u16>().ok());
    let (class, subject, detail) = (parts.next()??, parts.next()??, parts.next()??);
    Some(match (class, subject, detail) {
        (5, 1, 2 | 10) => BounceClass::InvalidDomain,
        (5, 1, 0 | 1 | 3 | 6) | (5, 2, 1) => BounceClass::InvalidRecipient,
        (_, 2, 2) => BounceClass::MailboxFull,
        (5, 2 | 3, 3 | 4) if (subject, detail) == (2, 3) || (subject, detail) == (3, 4) => BounceClass::Content,
        (_, 6, _) => BounceClass::Content,
        (_, 7, _) => BounceClass::Policy,
        (_, 4, _) => BounceClass::Unreachable,
        _ => return None,
    })
}

fn by_text(text: &str) -> Option<BounceClass> {
    const NO_SUCH_USER: &[&str] = &[
        "user unknown",
        "unknown user",
        "no such user",
        "no such recipient",
        "no such mailbox",
        "recipient unknown",
        "unknown recipient",
        "mailbox unavailable",
        "mailbox not found",
        "mailbox does not exist",
        "does not exist",
        "account is disabled",
        "account disabled",
        "account has been disabled",
        "invalid recipient",
        "invalid mailbox",
    ];
    const FULL: &[&str] = &["mailbox full", "mailbox is full", "over quota", "quota exceeded", "out of storage"];
    const POLICY: &[&str] = &[
        "spam",
        "blocked",
        "blacklist",
        "blocklist",
        "denylist",
        "reputation",
        "dmarc",
        "spf",
        "policy",
        "not authorized",
    ];
    let text = text.to_ascii_lowercase();
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| text.contains(phrase));
    // A text that names a policy is about the sender, whatever else it says.
    if says(POLICY) {
        Some(BounceClass::Policy)
    } else if says(FULL) {
        Some(BounceClass::MailboxFull)
    } else if says(NO_SUCH_USER) {
        Some(BounceClass::InvalidRecipient)
    } else {
        None
    }
}

const fn by_basic_code(code: u16) -> Option<BounceClass> {
    match code {
        550 | 551 | 553 => Some(BounceClass::InvalidRecipient),
        552 => Some(BounceClass::Content),
        554 => Some(BounceClass::Policy),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(code: u16, enhanced: Option<&str>, text: &str, expected: BounceClass) {
        let response =
            Response { code: Some(code), enhanced: enhanced.map(str::to_owned), text: text.to_owned(), host: None };
        assert_eq!(classify(&response), expected, "{code} {enhanced:?} {text}");
    }

    #[test]
    fn enhanced_codes_first() {
        use BounceClass as C;
        for (code, class) in [
            ("5.1.0", C::InvalidRecipient),
            ("5.1.1", C::InvalidRecipient),
            ("5.1.2", C::InvalidDomain),
            ("5.1.3", C::InvalidRecipient),
            ("5.1.6", C::InvalidRecipient),
            ("5.1.10", C::InvalidDomain),
            ("5.2.1", C::InvalidRecipient),
            ("5.2.2", C::MailboxFull),
            ("4.2.2", C::MailboxFull),
            ("5.2.3", C::Content),
            ("5.3.4", C::Content),
            ("5.6.0", C::Content),
            ("5.7.1", C::Policy),
            ("5.7.26", C::Policy),
            ("4.4.7", C::Unreachable),
            ("5.4.4", C::Unreachable),
        ] {
            check(550, Some(code), "", class);
        }
    }

    #[test]
    fn then_text_and_basic_code() {
        use BounceClass as C;
        check(550, None, "", C::InvalidRecipient);
        check(551, None, "", C::InvalidRecipient);
        check(553, None, "", C::InvalidRecipient);
        check(552, None, "", C::Content);
        check(554, None, "", C::Policy);
        check(554, None, "delivery error: dd This user doesn't have an account; unknown user", C::InvalidRecipient);
        check(550, None, "Message rejected as spam", C::Policy);
        check(552, None, "Mailbox full", C::MailboxFull);
        check(550, Some("5.0.0"), "user unknown", C::InvalidRecipient);
        check(521, None, "host does not accept mail", C::Unknown);
        check(550, Some("5.5.0"), "", C::InvalidRecipient);
    }
}
