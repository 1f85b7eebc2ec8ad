//! Basic (RFC 5321 section 4.2) and enhanced (RFC 3463) status codes of replies, in their field or within the text.

use super::BounceClass;

/// Maximum number of octets of a text that are read. Replies are far shorter; a delivery status notification may hold
/// any text.
const MAX_TEXT: usize = 2048;

/// Weight of an enhanced code against the basic code and the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    /// The code gives this class of bounce, unless the text plainly contradicts it.
    Definite(BounceClass),
    /// Something is wrong with an address or a mailbox: the recipient's, unless the text plainly contradicts that.
    Recipient,
    /// Something is wrong with the sender's address.
    Sender,
    /// The contract does not list the code: the text may give the class; the basic code does not count.
    Other,
    /// There is no route to the domain; the text may say that the domain does not exist.
    Unroutable,
    /// The refusal was temporary, of this class if the code gives one.
    Temporary(Option<BounceClass>),
    /// There is no code, or none with a meaning: the basic code and the text count.
    Generic,
}

/// Returns the part of a text that is read.
pub(super) fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT)]
}

/// Returns the weight of the first enhanced code with a meaning, of the code in `field` and then those in the text. A
/// code that only says that something is wrong with an address gives way to a later one with a class of its own,
/// because some servers put the code of the next server into their text.
pub(super) fn enhanced(field: Option<&str>, text: &str) -> Weight {
    let in_place = field.and_then(|code| parse(code.trim()));
    let in_text =
        text.split(|c: char| !(c.is_alphanumeric() || c == '.')).filter_map(|word| parse(word.trim_end_matches('.')));
    let mut weights = in_place.into_iter().chain(in_text).map(weigh).filter(|weight| *weight != Weight::Generic);
    match weights.next() {
        Some(Weight::Recipient) => {
            weights.find(|weight| matches!(weight, Weight::Definite(_))).unwrap_or(Weight::Recipient)
        }
        first => first.unwrap_or(Weight::Generic),
    }
}

/// Parses a text such as `5.1.1` as numbers; `None` if it is no enhanced code of a refusal, but for example part of an
/// IP address.
fn parse(code: &str) -> Option<[u16; 3]> {
    let mut parts = code.split('.').map(|part| {
        let is_number = (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { part.parse::<u16>().ok() } else { None }
    });
    let numbers = [parts.next()??, parts.next()??, parts.next()??];
    (parts.next().is_none() && matches!(numbers, [4 | 5, 0..=7, _])).then_some(numbers)
}

/// Returns the weight of a code (contract section 10).
const fn weigh(code: [u16; 3]) -> Weight {
    use BounceClass as C;
    match code {
        [5, 1, 1 | 3 | 6] => Weight::Definite(C::InvalidRecipient),
        [5, 1, 0] | [5, 2, 1] => Weight::Recipient,
        [5, 1, 2 | 10] => Weight::Definite(C::InvalidDomain),
        [4, 2, 2] => Weight::Temporary(Some(C::MailboxFull)),
        [4, 2, 3] | [4, 3, 4] | [4, 6, _] => Weight::Temporary(Some(C::Content)),
        [4, 7, _] => Weight::Temporary(Some(C::Policy)),
        [4, 4, _] => Weight::Temporary(Some(C::Unreachable)),
        [4, ..] => Weight::Temporary(None),
        [_, 2, 2] => Weight::Definite(C::MailboxFull),
        [_, 2, 3] | [_, 3, 4] | [_, 6, _] => Weight::Definite(C::Content),
        [_, 7, _] => Weight::Definite(C::Policy),
        // 5.4.310 is a code of Microsoft: the domain does not exist.
        [_, 4, 4 | 310] => Weight::Unroutable,
        [_, 4, _] => Weight::Definite(C::Unreachable),
        [_, 1, 7..=9] => Weight::Sender,
        [_, 1, 4 | 5] | [_, 0, _] | [_, 2 | 3, 0] | [_, 5, 0 | 1] => Weight::Generic,
        _ => Weight::Other,
    }
}

/// Returns the first basic code of a refusal in the text that stands at its beginning, after two separators in a row,
/// such as a colon and a space, or after a word of `ANNOUNCED_BY`.
pub(super) fn basic(text: &str) -> Option<u16> {
    let mut before = "";
    let mut is_announced = true;
    for word in text.split([' ', '\t', ',', '(', ')', '<', '>', '"', '\'', '#', '[', ']', ';', ':']) {
        if word.is_empty() {
            is_announced = true;
            continue;
        }
        let digits = word.split('-').next().unwrap_or_default();
        if let (3, Ok(code @ 400..600)) = (digits.len(), digits.parse::<u16>())
            && (is_announced || ANNOUNCED_BY.iter().any(|announcing| before.eq_ignore_ascii_case(announcing)))
        {
            return Some(code);
        }
        (before, is_announced) = (word, false);
    }
    None
}

const ANNOUNCED_BY: [&str; 8] = ["said", "smtp", "code", "error", "reply", "response", "status", "with"];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(field: Option<&str>, text: &str, expected: Weight) {
        assert_eq!(enhanced(field, text), expected, "{field:?} {text}");
    }

    #[test]
    fn the_contract_lists_codes() {
        use BounceClass as C;
        for (code, class) in [
            ("5.1.1", C::InvalidRecipient),
            ("5.1.2", C::InvalidDomain),
            ("5.1.3", C::InvalidRecipient),
            ("5.1.6", C::InvalidRecipient),
            ("5.1.10", C::InvalidDomain),
            ("5.2.2", C::MailboxFull),
            ("5.2.3", C::Content),
            ("5.3.4", C::Content),
            ("5.6.0", C::Content),
            ("5.7.1", C::Policy),
            ("5.7.26", C::Policy),
            ("5.7.606", C::Policy),
            ("5.4.1", C::Unreachable),
        ] {
            check(Some(code), "", Weight::Definite(class));
        }
        check(Some("5.1.0"), "", Weight::Recipient);
        check(Some("5.2.1"), "", Weight::Recipient);
        check(Some("5.1.8"), "", Weight::Sender);
        check(Some("5.3.2"), "", Weight::Other);
        check(Some("5.4.4"), "", Weight::Unroutable);
        check(Some("4.1.1"), "", Weight::Temporary(None));
        check(Some("4.2.2"), "", Weight::Temporary(Some(C::MailboxFull)));
        check(Some("4.7.0"), "", Weight::Temporary(Some(C::Policy)));
        check(Some("4.4.7"), "", Weight::Temporary(Some(C::Unreachable)));
        for code in ["5.0.0", "5.1.4", "5.2.0", "5.3.0", "5.5.0", "5.5.1", "2.0.0", "5.9.1", "5.1", "five", ""] {
            check(Some(code), "", Weight::Generic);
        }
    }

    #[test]
    fn codes_are_found_in_texts() {
        let unknown = Weight::Definite(BounceClass::InvalidRecipient);
        for text in [
            "5.1.1 <a@b.co> no",
            "550 5.1.1 no",
            "550-5.1.1 no",
            "smtp; 550 5.1.1 no",
            "no (#5.1.1)",
            "#5.1.1 SMTP; 550 no",
            "#<mx.example.com #5.1.1 smtp;550 no>",
            "5.0.0 and then 5.1.1.",
            "[5.1.1]",
        ] {
            check(None, text, unknown);
            check(Some("5.0.0"), text, unknown);
        }
        check(Some("5.7.1"), "550 5.1.1", Weight::Definite(BounceClass::Policy));
        check(Some("5.1.0"), "address error 550-'5.7.0 no'", Weight::Definite(BounceClass::Policy));
        for text in
            ["", "192.5.1.1", "5.1.1.9 said", "v5.1.1 of x5.1.1", "5.1.1.example.com", "4.16.55", "5.1", "5..1.1"]
        {
            check(None, text, Weight::Generic);
        }
    }

    #[test]
    fn basic_codes_are_found_in_texts() {
        for text in [
            "550 no",
            "550-no",
            "550",
            "smtp; 550 no",
            "host mx.b.co[192.0.2.1] said: 550 no",
            "remote server returned '550 no'",
            "<mx.b.co> #5.0.0 SMTP; 550 no",
            "error 550: no",
            "(550, 'no')",
            "status 550",
        ] {
            assert_eq!(basic(text), Some(550), "{text}");
        }
        for text in ["", "no", "after 550 attempts", "a@b550.co", "x 5501", "192.0.2.550", "250 ok", "650 x"] {
            assert_eq!(basic(text), None, "{text}");
        }
    }

    #[test]
    fn only_the_beginning_is_looked_at() {
        let text = format!("{}ü 5.1.1", "a".repeat(MAX_TEXT - 1));
        assert_eq!(beginning(&text).len(), MAX_TEXT - 1);
        assert_eq!(beginning("short"), "short");
    }
}
