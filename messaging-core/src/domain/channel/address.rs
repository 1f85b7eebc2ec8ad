//! Addresses of recipients, by channel.
//!
//! Contract section 4.1 (`to / contact_id`) and 2.4 (masking). Parse at the edge, then trust the type.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::domain::channel::Channel;
use crate::violation::{FieldCode, Violations};

/// The longest address SMTP can carry (RFC 5321 section 4.5.3.1.3, less the angle brackets).
pub(crate) const MAX_EMAIL_LENGTH: usize = 254;

/// An email address as it may appear in `to`, `cc`, `bcc`, `from_email`, `reply_to`.
///
/// Invariant: one `@`, a local part of at most 64 octets without quoting, a domain of dot-separated
/// labels that IDNA accepts, no control characters, no spaces, at most `MAX_EMAIL_LENGTH` octets.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EmailAddress(String);

/// The text is not an address of the channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an address of this channel")]
pub struct MalformedAddress;

impl EmailAddress {
    /// Parses an address without display name. The spelling is kept.
    pub fn parse(text: &str) -> Result<Self, MalformedAddress> {
        if is_email(text) { Ok(Self(text.to_owned())) } else { Err(MalformedAddress) }
    }

    /// The address as given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part before the `@`.
    pub fn local(&self) -> &str {
        self.0.rsplit_once('@').map_or("", |(local, _)| local)
    }

    /// The part after the `@`, as given.
    pub fn domain(&self) -> &str {
        self.0.rsplit_once('@').map_or("", |(_, domain)| domain)
    }

    /// The domain as DNS spells it: lower case, A-labels.
    pub fn ascii_domain(&self) -> String {
        ascii_domain(self.domain()).unwrap_or_else(|| self.domain().to_ascii_lowercase())
    }

    /// Returns the address as a caller without `pii:read` sees it: `j***@example.org` (contract section 2.4).
    pub fn masked(&self) -> String {
        mask_email(&self.0)
    }
}

impl fmt::Display for EmailAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Addresses are personal data: `Debug` output, which ends up in logs, shows the masked form.
impl fmt::Debug for EmailAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.masked())
    }
}

impl FromStr for EmailAddress {
    type Err = MalformedAddress;
    fn from_str(text: &str) -> Result<Self, MalformedAddress> {
        Self::parse(text)
    }
}

impl Serialize for EmailAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for EmailAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

/// True if a text is an email address.
fn is_email(text: &str) -> bool {
    is_plain_email(text) || is_email_by_grammar(text)
}

/// True if a text is an ASCII dot-atom at a domain without A-labels, as nearly all addresses are. Several are checked
/// for each message, and this takes a tenth of the time of the whole grammar.
fn is_plain_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let is_atext = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(byte);
    text.len() <= MAX_EMAIL_LENGTH
        && (1..=64).contains(&local.len())
        && local.split('.').all(|atom| !atom.is_empty() && atom.as_bytes().iter().all(is_atext))
        && !domain.as_bytes().windows(2).any(|pair| pair == b"--")
        && is_ascii_domain(domain)
}

fn is_email_by_grammar(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let Some(ascii) = ascii_domain(domain) else { return false };
    let options = email_address::Options::default().without_display_text().without_domain_literal().with_required_tld();
    // What is sent is the A-label form, which is the longer one.
    local.len() + 1 + ascii.len().max(domain.len()) <= MAX_EMAIL_LENGTH
        && !local.starts_with('"')
        && email_address::EmailAddress::parse_with_options(text, options).is_ok()
        && !text.chars().any(|c| c.is_control() || c.is_whitespace())
}

/// A domain as DNS spells it, or `None` when it is not one: lower case, A-labels, at least two labels,
/// the last one not all digits.
pub fn ascii_domain(domain: &str) -> Option<String> {
    // The common case needs no IDNA tables.
    let ascii = if domain.is_ascii() && !domain.as_bytes().windows(4).any(|part| part.eq_ignore_ascii_case(b"xn--")) {
        domain.to_ascii_lowercase()
    } else {
        idna::domain_to_ascii_strict(domain).ok()?
    };
    is_ascii_domain(&ascii).then_some(ascii)
}

/// True if a text is a domain of letters, digits and hyphens: at least two labels, the last one not all digits.
fn is_ascii_domain(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let Some((rest, top)) = text.rsplit_once('.') else { return false };
    text.len() <= 253
        && rest.split('.').all(is_label)
        && is_label(top)
        && !top.bytes().all(|byte| byte.is_ascii_digit())
}

/// Checks that a text is an address of a channel.
pub fn check(channel: Channel, text: &str) -> Result<(), MalformedAddress> {
    let well_formed = match channel {
        Channel::Email => is_email(text),
        Channel::Sms | Channel::Whatsapp => is_e164(text),
        Channel::Telegram => is_chat_id(text),
        // A phone number, or the id of a user of a bot: which of them, the provider tells ([`is_phone`]).
        Channel::Viber => is_opaque(text, 64),
        Channel::Push => is_opaque(text, 4096),
    };
    if well_formed { Ok(()) } else { Err(MalformedAddress) }
}

/// Describes the form of a channel's addresses, for people.
pub fn form(channel: Channel) -> &'static str {
    match channel {
        Channel::Email => "one email address, without a display name",
        Channel::Sms | Channel::Whatsapp => "a phone number with + and the country's code, such as +14155550123",
        Channel::Push => "the token of a device",
        Channel::Telegram => "the number of a chat, or the @name of a channel",
        Channel::Viber => "a phone number with + and the country's code, or the id of a bot's user",
    }
}

/// Adds a violation if an address from a request is not valid; `rule` says what it should have been.
///
/// The masked form of an address is refused, not malformed: whoever reads a resource without `pii:read` and sends
/// it back must change nobody (contract section 2.4).
pub fn check_sent(
    channel: Channel,
    text: &str,
    pointer: impl Into<String>,
    rule: impl std::fmt::Display,
    violations: &mut Violations,
) {
    if has_masked_form(text) {
        let rule = "has the form of a masked address; leave it out to keep what is stored";
        violations.add(pointer, FieldCode::NotAllowed, rule);
    } else if check(channel, text).is_err() {
        let pointer = pointer.into();
        match display_name_rule(channel, text, &pointer) {
            Some(rule) => violations.add(pointer, FieldCode::InvalidFormat, rule),
            None => violations.add(pointer, FieldCode::InvalidFormat, rule),
        }
    }
}

/// Returns the rule for an address with a display name, as in `Acme <shop@acme.com>`: where the name goes, or that
/// there is no place for one.
fn display_name_rule(channel: Channel, text: &str, pointer: &str) -> Option<&'static str> {
    let (_, address) = text.trim_end().strip_suffix('>')?.rsplit_once('<')?;
    if channel != Channel::Email || !is_email(address) {
        return None;
    }
    Some(match pointer {
        "/from_email" => "must be the address alone; the display name goes into from_name",
        _ => "must be the address alone, without a display name",
    })
}

/// True if a text has the form that [`mask`] gives an email address or a phone number.
pub(crate) fn has_masked_form(text: &str) -> bool {
    let text = text.trim();
    if let Some((local, _)) = text.rsplit_once('@') {
        let mut characters = local.chars();
        return local == "***" || (characters.next().is_some() && characters.as_str() == "***");
    }
    let digits = text.strip_prefix('+').unwrap_or(text);
    let shown = digits.trim_start_matches('*');
    shown.len() < digits.len() && shown.len() <= 4 && shown.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns an address that [`check`] accepted, as suppressions and contacts spell it.
pub fn normalize(channel: Channel, text: &str) -> String {
    if channel == Channel::Email { normalize_email(text) } else { text.to_owned() }
}

/// Returns the one spelling of an email address: ASCII letters in lower case, the domain in its A-labels (contract
/// section 10).
///
/// Other letters of the local part stay as they are: lower-casing them by Unicode would make one person of two, as
/// U+212A KELVIN SIGN and `k`. A text that is no address, such as `admin@localhost`, is lower-cased only.
pub fn normalize_email(text: &str) -> String {
    let spelled = text.rsplit_once('@').and_then(|(local, domain)| Some((local, ascii_domain(domain)?)));
    match spelled {
        Some((local, domain)) => format!("{}@{domain}", local.to_ascii_lowercase()),
        None => text.to_ascii_lowercase(),
    }
}

/// Returns the labels of a domain, or of a part of one, as [`normalize_email`] spells them: lower case, A-labels. A
/// label that has no A-label, because it is cut off, is lower-cased only.
pub(crate) fn normalize_labels(text: &str) -> String {
    let spelled = |label: &str| {
        let ascii = if label.is_ascii() { None } else { idna::domain_to_ascii_strict(label).ok() };
        ascii.unwrap_or_else(|| label.to_ascii_lowercase())
    };
    text.split('.').map(spelled).collect::<Vec<_>>().join(".")
}

/// A letter in lower case, for finding addresses in texts. As in [`normalize_email`], no letter outside of ASCII
/// becomes one within it; U+212A KELVIN SIGN is no `k`.
pub(crate) fn fold_letter(letter: char) -> char {
    let lower = letter.to_lowercase().next().unwrap_or(letter);
    if lower.is_ascii() && !letter.is_ascii() { letter } else { lower }
}

/// Returns the spelling with the domain in Unicode, if it differs from that of [`normalize_email`].
pub(crate) fn unicode_spelling(text: &str) -> Option<String> {
    let (local, domain) = text.rsplit_once('@')?;
    let (readable, errors) = idna::domain_to_unicode(domain);
    (errors.is_ok() && readable != domain).then(|| format!("{local}@{readable}"))
}

/// True if a text has 1 to `most` characters, none of them a space or a control character.
fn is_opaque(text: &str, most: usize) -> bool {
    !text.is_empty() && text.chars().count() <= most && !text.chars().any(|c| c.is_whitespace() || c.is_control())
}

/// True if a text is a phone number in E.164, `^\+[1-9]\d{6,14}$`: on Viber the address of a business's recipients, not
/// of a bot's.
pub fn is_e164(text: &str) -> bool {
    text.strip_prefix('+').is_some_and(|digits| {
        (7..=15).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0')
    })
}

/// `^-?\d{1,20}$` or `^@[A-Za-z0-9_]{5,32}$`
fn is_chat_id(text: &str) -> bool {
    if let Some(name) = text.strip_prefix('@') {
        return (5..=32).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    (1..=20).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns an address of a channel as a caller without `pii:read` sees it (contract section 2.4).
pub fn mask(channel: Channel, text: &str) -> String {
    match channel {
        // The address of an erased person.
        _ if text.is_empty() => String::new(),
        Channel::Email => mask_email(text),
        Channel::Sms | Channel::Whatsapp => mask_phone(text),
        Channel::Viber if is_e164(text) => mask_phone(text),
        // The contract masks email and phone; chat ids, push tokens and users of a Viber bot are opaque.
        Channel::Telegram | Channel::Push | Channel::Viber => text.to_owned(),
    }
}

fn mask_email(text: &str) -> String {
    let (local, domain) = text.rsplit_once('@').unwrap_or((text, ""));
    let mut characters = local.chars();
    let first = match (characters.next(), characters.next()) {
        (Some(first), Some(_)) => first.to_string(),
        _ => String::new(),
    };
    format!("{first}***@{domain}")
}

fn mask_phone(text: &str) -> String {
    let digits = text.chars().filter(char::is_ascii_digit).count();
    let mut seen = 0;
    text.chars()
        .map(|c| {
            if !c.is_ascii_digit() {
                return c;
            }
            seen += 1;
            if seen + 4 > digits { c } else { '*' }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check_channel(channel: Channel, text: &str, good: bool) {
        assert_eq!(check(channel, text).is_ok(), good, "{channel:?} {text:?}");
    }

    #[test]
    fn email_addresses() {
        let longest_local = format!("{}@example.com", "a".repeat(64));
        let long = format!("a@{}.com", vec!["b".repeat(60); 4].join("."));
        for good in [
            "a@b.co",
            "ann+tag@example.com",
            "o'brien@example.com",
            "üser@exämple.de",
            "A@EXAMPLE.COM",
            &longest_local,
            "a@xn--exmple-cua.de",
        ] {
            check_channel(Channel::Email, good, true);
        }
        let too_long_local = format!("{}@example.com", "a".repeat(65));
        let too_long = format!("{}@{long}", "a".repeat(20));
        for bad in [
            "",
            "a",
            "@b.co",
            "a@",
            "a@b",
            "a b@c.de",
            "a@b c.de",
            "a..b@c.de",
            ".a@c.de",
            "a@c..de",
            "a@-c.de",
            "a@c-.de",
            "a@[127.0.0.1]",
            "a@127.0.0.1",
            "Ann <a@b.co>",
            "<a@b.co>",
            "a@b.co\r\nX: y",
            "a@b.co\n",
            "a\0@b.co",
            "\"a b\"@c.de",
            "a@b@c.de",
            "a@x_y.co",
            &too_long_local,
            &too_long,
        ] {
            check_channel(Channel::Email, bad, false);
        }
    }

    proptest! {
        #[test]
        fn what_looks_plain_is_an_address_by_the_grammar(
            text in "([aZ0.!+\"(\\\\ -]|\u{e9}){0,5}@?([aZ0.-]|xn--|_|\\[|\u{e9}){0,9}\\.?[a-c0-9-]{0,3}",
        ) {
            prop_assert!(!is_plain_email(&text) || is_email_by_grammar(&text));
        }
    }

    #[test]
    fn nearly_all_addresses_are_plain() {
        for plain in ["a@b.co", "ann+tag@example.com", "o'brien@example.com", "A.B@EXAMPLE.co.uk", "1@2.x3"] {
            assert!(is_plain_email(plain) && is_email_by_grammar(plain), "{plain}");
        }
        for other in ["\u{fc}ser@example.de", "a@xn--exmple-cua.de", "a@\u{e4}.de"] {
            assert!(!is_plain_email(other) && is_email_by_grammar(other), "{other}");
        }
    }

    #[test]
    fn an_email_address_has_one_spelling() {
        for (text, expected) in [
            ("Ann@Example.COM", "ann@example.com"),
            ("ann@b\u{fc}cher.example", "ann@xn--bcher-kva.example"),
            ("ANN@B\u{dc}CHER.example", "ann@xn--bcher-kva.example"),
            ("ann@XN--BCHER-KVA.Example", "ann@xn--bcher-kva.example"),
            // Two people, whatever Unicode says of their letters.
            ("\u{212a}im@example.com", "\u{212a}im@example.com"),
            ("Kim@example.com", "kim@example.com"),
            ("J\u{d6}rg@example.com", "j\u{d6}rg@example.com"),
            ("Admin@localhost", "admin@localhost"),
        ] {
            assert_eq!(normalize(Channel::Email, text), expected, "{text}");
            assert_eq!(normalize(Channel::Email, expected), expected, "{text}");
        }
        assert_eq!(normalize(Channel::Telegram, "@SomeOne"), "@SomeOne");
        assert_eq!(unicode_spelling("a@xn--bcher-kva.example").as_deref(), Some("a@b\u{fc}cher.example"));
        assert_eq!(unicode_spelling("a@example.com"), None);
    }

    #[test]
    fn letters_and_labels_are_spelled_alone() {
        let fold = |text: &str| text.chars().map(fold_letter).collect::<String>();
        assert_eq!(fold("Kim@B\u{dc}CHER.example"), "kim@b\u{fc}cher.example");
        assert_eq!(fold("\u{212a}\u{130}"), "\u{212a}\u{130}");
        assert_eq!(normalize_labels(".B\u{dc}CHER.Example"), ".xn--bcher-kva.example");
        assert_eq!(normalize_labels("XN--BCHER-KVA."), "xn--bcher-kva.");
    }

    #[test]
    fn the_a_labels_must_fit_too() {
        let long = |label: &str| format!("{}@{}.example", "a".repeat(60), vec![label.to_owned(); 3].join("."));
        check_channel(Channel::Email, &long(&"b".repeat(55)), true);
        let short = format!("a@{}.example", vec!["\u{fc}".repeat(8); 12].join("."));
        assert!(short.len() < MAX_EMAIL_LENGTH && normalize_email(&short).len() < MAX_EMAIL_LENGTH);
        check_channel(Channel::Email, &short, true);
        let local = "a".repeat(64);
        check_channel(
            Channel::Email,
            &format!("{local}{}", &short[1..]),
            short.len() + 63 <= MAX_EMAIL_LENGTH && normalize_email(&short).len() + 63 <= MAX_EMAIL_LENGTH,
        );
    }

    #[test]
    fn phones_chats_and_tokens() {
        for good in ["+1234567", "01234567890A=", &"v".repeat(64)] {
            check_channel(Channel::Viber, good, true);
        }
        for bad in ["", "a b", "a\n", &"v".repeat(65)] {
            check_channel(Channel::Viber, bad, false);
        }
        for channel in [Channel::Sms, Channel::Whatsapp] {
            for good in ["+1234567", "+123456789012345"] {
                check_channel(channel, good, true);
            }
            for bad in ["1234567", "+0234567", "+123456", "+1234567890123456", "+12345a7", "", "+1 234 567"] {
                check_channel(channel, bad, false);
            }
        }
        for good in ["1", "-100123", "12345678901234567890", "@abcde", "@a_1234567890123456789012345678901"] {
            check_channel(Channel::Telegram, good, good.len() <= 33);
        }
        for bad in ["", "-", "123456789012345678901", "@abcd", "@abc-de", "abc"] {
            check_channel(Channel::Telegram, bad, false);
        }
        check_channel(Channel::Push, &"t".repeat(4096), true);
        check_channel(Channel::Push, &"t".repeat(4097), false);
        check_channel(Channel::Push, "a b", false);
        check_channel(Channel::Push, "", false);
    }

    #[test]
    fn masked_forms_are_known() {
        for address in ["ann@example.com", "a@example.com", "üser@exämple.de", "\"a b\"@example.com"] {
            assert!(has_masked_form(&mask(Channel::Email, address)), "{address}");
            assert!(!has_masked_form(address), "{address}");
        }
        for number in ["+14155554567", "+1234567", "14155554567"] {
            assert!(has_masked_form(&mask(Channel::Sms, number)), "{number}");
            assert!(!has_masked_form(number), "{number}");
        }
        for other in ["", "an***@example.com", "a**@example.com", "+1", "*12345", "@abcde", "a*b", "1234"] {
            assert!(!has_masked_form(other), "{other}");
        }
    }

    #[test]
    fn masks_as_the_contract_shows() {
        assert_eq!(mask(Channel::Email, "ann@example.com"), "a***@example.com");
        assert_eq!(mask(Channel::Email, "a@example.com"), "***@example.com");
        assert_eq!(mask(Channel::Sms, "+14155554567"), "+*******4567");
        assert_eq!(mask(Channel::Viber, "+14155554567"), "+*******4567");
        assert_eq!(mask(Channel::Viber, "01234567890A="), "01234567890A=");
        assert_eq!(mask(Channel::Telegram, "@someone"), "@someone");
    }
}
