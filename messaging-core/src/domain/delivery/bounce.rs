//! Classification of refusals: hard or soft, and the class of the reason.
//!
//! Contract section 10. The enhanced code (RFC 3463) counts before the basic code (RFC 5321 section 4.2) and that
//! before the text. But codes are often no more than a form of politeness: large providers answer 550 to nearly
//! everything, many servers say 5.0.0, and 5.1.1 is also said to senders who sent to too many recipients. So a plain
//! statement of the text goes before a code that says less or the contrary:
//!
//! * Of a code that means a bad address nothing is left when the text speaks of a full mailbox, of the sender,
//!   the content, the rate or a list.
//! * A code for a policy or the way there gives way to a text that says that the mailbox is unknown or
//!   disabled, and nothing else.
//! * 550, 551 and 553 mean nothing without such words, because they are said for every reason. 552 means the
//!   content and 554 a policy unless the text says otherwise.
//! * What a text says is found from who it is about and what is said of them, not from whole sentences
//!   (`meaning`), as there are as many sentences as there are postmasters. What it quotes of the dialog
//!   ("in reply to RCPT TO command") says nothing.
//!
//! A text that can be read in two ways is read in the soft one: a bad address is found out with the next message, a
//! suppressed good one is not.

mod class;
mod codes;
mod meaning;
mod reading;
#[cfg(test)]
mod tests;

use self::codes::Weight;
use self::reading::Reading;
use crate::domain::delivery::response::Response;

pub use class::{BounceClass, BounceType};

/// Subject of a refusal, if its words name one that concerns the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concern {
    /// Amount or rate of the sender's mail.
    Rate,
    /// Content of the message.
    Content,
    /// One mailbox, or an address or its domain.
    Mailbox,
}

/// Returns the subject of a temporary or permanent refusal; `None` if its words name none of these.
pub fn concern(response: &Response) -> Option<Concern> {
    let reading = Reading::of(codes::beginning(&response.text));
    if meaning::is_about_rate(&reading) {
        return Some(Concern::Rate);
    }
    match classify(response) {
        BounceClass::InvalidRecipient | BounceClass::InvalidDomain | BounceClass::MailboxFull => Some(Concern::Mailbox),
        BounceClass::Content => Some(Concern::Content),
        _ if meaning::is_bad_recipient(&reading) => Some(Concern::Mailbox),
        _ => None,
    }
}

/// Classifies a permanent refusal: a reply, or the diagnostic of a delivery status notification.
pub fn classify(response: &Response) -> BounceClass {
    let text = codes::beginning(&response.text);
    let weight = codes::enhanced(response.enhanced.as_deref(), text);
    let code = response.code.filter(|code| (400..600).contains(code)).or_else(|| codes::basic(text));
    let reading = Reading::of(text);
    let said = meaning::of(&reading);
    match weight {
        Weight::Definite(class) if !class.is_soft() => against_address(class, said, &reading),
        // 5.1.0 is "other address status", and some mean the sender's; 5.2.1 is also said where a mailbox is
        // closed for a moment, because it receives too much.
        Weight::Recipient => against_address(BounceClass::InvalidRecipient, said, &reading),
        Weight::Definite(_) if meaning::is_only_bad_recipient(&reading) => BounceClass::InvalidRecipient,
        Weight::Definite(class) => class,
        Weight::Unroutable if meaning::is_missing_domain(&reading) => BounceClass::InvalidDomain,
        Weight::Unroutable => BounceClass::Unreachable,
        Weight::Sender => said.filter(|class| class.is_soft()).unwrap_or(BounceClass::Policy),
        // A server that gave up after replies of this kind had retried: the contract's "retries exhausted".
        Weight::Temporary(class) => class.or(said).filter(|class| class.is_soft()).unwrap_or(BounceClass::Unreachable),
        Weight::Other => said.unwrap_or(BounceClass::Unknown),
        Weight::Generic => by_basic_code(code, said, &reading),
    }
}

/// Returns the class for a code that means a bad address, unless the text says plainly that something else is wrong.
fn against_address(by_code: BounceClass, said: Option<BounceClass>, reading: &Reading) -> BounceClass {
    match said {
        // "Unknown user, please check and try again" is no promise that it will be known.
        Some(BounceClass::Unknown | BounceClass::Unreachable) if meaning::is_bad_recipient(reading) => by_code,
        Some(class) if class.is_soft() => class,
        _ => by_code,
    }
}

/// Returns the class by the basic code and the text.
fn by_basic_code(code: Option<u16>, said: Option<BounceClass>, reading: &Reading) -> BounceClass {
    match code {
        Some(400..500) => said.filter(|class| class.is_soft()).unwrap_or(BounceClass::Unreachable),
        Some(552) => said.unwrap_or(BounceClass::Content),
        // The server asks for authentication (RFC 4954 section 6), as no server does that knows us.
        Some(530 | 534 | 535 | 538) => BounceClass::Policy,
        // RFC 7504: the domain has a null MX record. Others use the number for reasons of their own.
        Some(556) if reading.is_empty() || meaning::names_domain(reading) => BounceClass::InvalidDomain,
        Some(554) => said.unwrap_or(BounceClass::Policy),
        _ => said.unwrap_or(BounceClass::Unknown),
    }
}
