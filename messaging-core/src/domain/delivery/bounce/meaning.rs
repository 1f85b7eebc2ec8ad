//! Reason of a refusal by the words of its text.
//!
//! A class is found from words: a noun (a recipient, a sender, a domain) and a statement about it nearby. The questions
//! are asked in an order: plain statements about the sender go before plain ones about the recipient, and these before
//! words that may have several meanings. The words are in [`words`], one list for each notion and in each list all
//! languages.

mod words;

use super::BounceClass;
use super::reading::Reading;

/// Maximum number of words between a noun and a statement about it: `The user you want to reach is unknown`.
const NEAR: usize = 6;

/// Maximum number of words between a noun and an adjective: `bad destination mailbox address`.
const BESIDE: usize = 2;

/// Returns the class that the text speaks of; `None` when it says nothing in particular. [`BounceClass::Unknown`] when
/// it speaks of something that no class is for, but that is not the recipient.
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
    if reading.says(words::NO_SUCH_DOMAIN) && !reading.says(words::SENDER) {
        return Some(BounceClass::InvalidDomain);
    }
    if reading.says(words::UNREACHABLE) {
        return Some(BounceClass::Unreachable);
    }
    let is_domain = names_domain(reading);
    if is_domain && reading.says(words::SENDER) {
        return Some(BounceClass::Policy);
    }
    if is_domain && !is_temporary {
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

/// Returns true if the text says that it is too much mail, or too fast.
pub(super) fn is_about_rate(reading: &Reading) -> bool {
    reading.says(words::RATE) || reading.says_of(words::THEM, words::MANY, BESIDE)
}

/// Returns true if the text says that a domain does not exist or takes no mail, whether the sender's or the
/// recipient's.
pub(super) fn names_domain(reading: &Reading) -> bool {
    reading.says(words::BAD_DOMAIN) || reading.says_of(words::DOMAIN, words::MISSING, BESIDE + 1)
}

/// Returns true if the text says that the recipient's domain does not exist, rather than that its look-up failed.
pub(super) fn is_missing_domain(reading: &Reading) -> bool {
    let is_unsure = [words::SENDER, words::TEMPORARY, words::FOUND].into_iter().any(|words| reading.says(words));
    let is_missing = reading.says_of(words::DOMAIN, words::MISSING, BESIDE + 1) || reading.says(words::NO_SUCH_DOMAIN);
    is_missing && !is_unsure
}

/// Returns true if the text says that the mailbox is unknown or disabled, and gives no other reason: then it is plain
/// enough to count against a code that says something else.
pub(super) fn is_only_bad_recipient(reading: &Reading) -> bool {
    let gives_another_reason = is_about_sender(reading)
        || is_about_rate(reading)
        || reading.says_of(words::MESSAGE, words::LARGE, BESIDE)
        || [
            words::SENDER,
            words::FULL,
            words::REPUTATION,
            words::RELAYING,
            words::CONTENT,
            words::UNREACHABLE,
            words::POLICY,
            words::TEMPORARY,
            words::TROUBLE,
        ]
        .into_iter()
        .any(|reason| reading.says(reason));
    is_bad_recipient(reading) && !gives_another_reason
}

/// Returns true if the text says that the mailbox is unknown or disabled.
pub(super) fn is_bad_recipient(reading: &Reading) -> bool {
    if reading.says(words::NOT_THE_RECIPIENT) {
        return false;
    }
    reading.says(words::NOBODY)
        || reading.says_of(words::RECIPIENT, words::MISSING, NEAR)
        || reading.says_of(words::RECIPIENT, words::WRONG, BESIDE)
        || reading.says_of(words::RECIPIENT, words::NONE, 0)
        || reading.says_of(words::ACCOUNT, words::DISABLED, NEAR)
}
