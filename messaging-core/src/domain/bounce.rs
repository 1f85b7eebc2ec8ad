//! What a refusal means: hard or soft, and of which class.
//!
//! Contract section 10. The enhanced code (RFC 3463) counts before the basic code (RFC 5321 section 4.2)
//! and that before the text. But codes are often no more than a form of politeness: large providers
//! answer 550 to nearly everything, and many a server says 5.0.0. So a code counts as far as it says
//! something:
//!
//! * An enhanced code with a meaning decides alone, whatever the text says beside it. If the server did
//!   not put it where it belongs, it is looked for in the text (`codes`).
//! * 550, 551 and 553 mean the recipient unless the text says something else or speaks of nobody; 552 means the content
//!   unless the text speaks of a full mailbox; 554 means a policy unless the text says what is wrong.
//! * What a text says is found from who it is about and what is said of them, not from whole sentences
//!   (`meaning`), as there are as many sentences as there are postmasters.
//!
//! Where a text can be read in two ways it is read in the soft one: a bad address is found out with the
//! next message, a suppressed good one is not.

mod codes;
mod meaning;
mod reading;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::codes::Weight;
use self::reading::Reading;
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

    fn is_soft(self) -> bool {
        self.bounce_type() == BounceType::Soft
    }
}

/// Classifies a permanent refusal: a reply, or the diagnostic of a delivery status notification.
pub fn classify(response: &Response) -> BounceClass {
    let text = codes::beginning(&response.text);
    let weight = match codes::enhanced(response.enhanced.as_deref(), text) {
        Weight::Definite(class) => return class,
        weight => weight,
    };
    let code = response.code.filter(|code| (400..600).contains(code)).or_else(|| codes::basic(text));
    let reading = Reading::of(text);
    let said = meaning::of(&reading);
    match weight {
        // 5.1.0 is "other address status", and some mean the sender's; 5.2.1 is also said where a mailbox is
        // closed for a moment, because it receives too much.
        Weight::Recipient if meaning::is_about_us(&reading) => BounceClass::Policy,
        Weight::Recipient => BounceClass::InvalidRecipient,
        Weight::Sender => said.filter(|class| class.is_soft()).unwrap_or(BounceClass::Unknown),
        // Whoever gave up after replies of this kind had retried: the contract's "retries exhausted".
        Weight::Temporary => said.filter(|class| class.is_soft()).unwrap_or(BounceClass::Unreachable),
        Weight::Other => said.unwrap_or(BounceClass::Unknown),
        Weight::Definite(_) | Weight::Generic => by_basic_code(code, said, &reading),
    }
}

/// The class by the basic code and what the text says.
fn by_basic_code(code: Option<u16>, said: Option<BounceClass>, reading: &Reading) -> BounceClass {
    match code {
        Some(400..500) => said.filter(|class| class.is_soft()).unwrap_or(BounceClass::Unreachable),
        Some(552) if said != Some(BounceClass::MailboxFull) => BounceClass::Content,
        // Authentication is asked for (RFC 4954 section 6): nobody asks that of a server that knows us.
        Some(530 | 534 | 535 | 538) => BounceClass::Policy,
        // RFC 7504: the domain has a null MX record.
        Some(556) => BounceClass::InvalidDomain,
        Some(550 | 551 | 553) if said.is_none() && meaning::may_be_about_recipient(reading) => {
            BounceClass::InvalidRecipient
        }
        Some(554) => said.unwrap_or(BounceClass::Policy),
        _ => said.unwrap_or(BounceClass::Unknown),
    }
}
