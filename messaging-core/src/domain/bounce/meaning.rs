//! What a text says is wrong.
//!
//! A class is found from words: who is spoken of (a recipient, a sender, a domain) and what is said of
//! them nearby. The questions are asked in an order: what is surely about us goes before what is surely
//! about the recipient, and that before words that may be meant in any way. The words are in [`words`],
//! one list for each notion and in each list all languages.

mod words;

use super::BounceClass;
use super::reading::Reading;

/// How many words may stand between a noun and what is said of it: `The user you want to reach is unknown`.
const NEAR: usize = 6;

/// The same for an adjective: `bad destination mailbox address`.
const BESIDE: usize = 2;

/// How many words a text may have that says no more than its code: `Requested action not taken`.
const FEW: usize = 6;

/// Whether the text is, without a doubt, about the sender or about how much is sent.
pub(super) fn is_about_us(reading: &Reading) -> bool {
    is_about_sender(reading) || is_about_rate(reading)
}

/// Whether a text that [`of`] makes nothing of leaves room for the recipient: it has no words, or a few, which
/// are the standard's or name a recipient and not the sender. A text about something else is no statement
/// about an address, and one that explains at length had its reasons, which we do not know.
pub(super) fn may_be_about_recipient(reading: &Reading) -> bool {
    let names_recipient = reading.says(words::RECIPIENT) || reading.says(words::MISSING);
    let names_sender = reading.says(words::SENDER) || reading.says(words::OURS);
    let is_short = reading.word_count() <= FEW;
    reading.word_count() == 0
        || (is_short && !names_sender && (names_recipient || reading.says(words::NO_MORE_THAN_THE_CODE)))
}

/// The class that the text speaks of; `None` when it says nothing in particular. [`BounceClass::Unknown`]
/// when it speaks of something that no class is for, but that is not the recipient.
pub(super) fn of(reading: &Reading) -> Option<BounceClass> {
    if is_about_sender(reading) {
        return Some(BounceClass::Policy);
    }
    let is_full = reading.says(words::FULL) || reading.says_of(words::MAILBOX, words::FILLED, NEAR);
    if is_full && !is_about_rate(reading) {
        return Some(BounceClass::MailboxFull);
    }
    let is_temporary = reading.says(words::TEMPORARY);
    if !is_temporary && reading.says_of(words::RECIPIENT, words::ABANDONED, BESIDE) {
        return Some(BounceClass::InvalidRecipient);
    }
    if is_about_rate(reading) || reading.says(words::REPUTATION) || reading.says(words::RELAYING) {
        return Some(BounceClass::Policy);
    }
    if !is_temporary && is_bad_recipient(reading) {
        return Some(BounceClass::InvalidRecipient);
    }
    if reading.says(words::CONTENT) || reading.says_of(words::MESSAGE, words::LARGE, BESIDE) {
        return Some(BounceClass::Content);
    }
    if reading.says(words::UNREACHABLE) {
        return Some(BounceClass::Unreachable);
    }
    let names_domain = reading.says(words::BAD_DOMAIN) || reading.says_of(words::DOMAIN, words::MISSING, BESIDE + 1);
    if names_domain && reading.says(words::SENDER) {
        return Some(BounceClass::Policy);
    }
    if names_domain && !is_temporary {
        return Some(BounceClass::InvalidDomain);
    }
    if reading.says(words::POLICY) {
        return Some(BounceClass::Policy);
    }
    if is_temporary || reading.says(words::TROUBLE) {
        return Some(BounceClass::Unknown);
    }
    // "Rejected" alone is no statement about the recipient; "recipient rejected" is no other.
    if reading.says(words::REJECTED) && !reading.says_of(words::RECIPIENT, words::REJECTED, BESIDE + 1) {
        return Some(BounceClass::Policy);
    }
    reading.says_of(words::MAILBOX, words::UNAVAILABLE, BESIDE).then_some(BounceClass::InvalidRecipient)
}

fn is_about_sender(reading: &Reading) -> bool {
    reading.says(words::SENDER_REFUSED) || reading.says_of(words::SENDER, words::REFUSED, BESIDE + 1)
}

fn is_about_rate(reading: &Reading) -> bool {
    reading.says(words::RATE) || reading.says_of(words::THEM, words::MANY, BESIDE)
}

fn is_bad_recipient(reading: &Reading) -> bool {
    if reading.says(words::NOT_THE_RECIPIENT) {
        return false;
    }
    reading.says(words::NOBODY)
        || reading.says_of(words::RECIPIENT, words::MISSING, NEAR)
        || reading.says_of(words::RECIPIENT, words::WRONG, BESIDE)
        || reading.says_of(words::RECIPIENT, words::NONE, 0)
        || reading.says_of(words::ACCOUNT, words::DISABLED, NEAR)
}
