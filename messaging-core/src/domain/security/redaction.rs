//! Masking of email addresses and phone numbers in texts of third parties, for readers without `pii:read`.
//!
//! Contract section 2.4. Replies of mail servers, link targets, dialogs, bodies of receivers: every such text is
//! returned through a [`Redactor`]. Where the contract leaves a choice, too much is masked rather than too little,
//! because nobody reads a route or a parameter out of such a text, but an address that stays is personal data
//! disclosed. So everything before an `@` that could belong to a local part is masked, in every spelling that a URL, a
//! report or HTML may give the `@`, and a return address that holds another address (VERP) loses both. Not found are an
//! address inside base64 and a local part without its `@`.

mod cross_out;

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::domain::channel::Channel;
use crate::domain::channel::address;

pub(crate) use cross_out::cross_out;

/// Replacement for masked text.
const STARS: &str = "***";

/// Maximum number of units of a quoted local part that are searched backwards; RFC 5321 allows 64 octets.
const MAX_QUOTED: usize = 128;

/// Digits of a phone number in E.164.
const PHONE_DIGITS: std::ops::RangeInclusive<usize> = 7..=15;

/// Digits of a phone number that stay visible.
const SHOWN_DIGITS: usize = 4;

/// Maximum number of separators between two groups of digits of a phone number, such as `) `.
const MAX_SEPARATORS: usize = 2;

/// Spellings of `@` that also occur by chance; they count if a domain follows.
const DOUBTFUL_ATS: [&str; 9] =
    ["=40", "+40", "&#64;", "&#064;", "&#x40;", "&commat;", "\\u0040", "\u{FF20}", "\u{FE6B}"];

/// Shows texts to one reader: as they are, or with addresses masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Redactor {
    sees_addresses: bool,
}

impl Redactor {
    /// Returns a redactor for a reader who sees addresses in clear, or does not.
    pub const fn new(sees_addresses: bool) -> Self {
        Self { sees_addresses }
    }

    /// True if nothing is masked.
    pub const fn is_clear(self) -> bool {
        self.sees_addresses
    }

    /// Returns an address of a channel, masked if the reader may not see it.
    pub fn address(self, channel: Channel, text: String) -> String {
        if self.sees_addresses { text } else { address::mask(channel, &text) }
    }

    /// Returns a text of a third party, with addresses masked if the reader may not see them.
    pub fn text(self, text: String) -> String {
        if self.sees_addresses {
            return text;
        }
        match mask_text(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(masked) => masked,
        }
    }

    /// Returns a JSON value of a third party, with addresses masked if the reader may not see them.
    pub fn value(self, mut value: Value) -> Value {
        if !self.sees_addresses {
            mask_value(&mut value, None);
        }
        value
    }

    /// Returns the `meta` of a message's event, with addresses masked if the reader may not see them.
    pub fn meta(self, channel: Channel, mut meta: Map<String, Value>) -> Map<String, Value> {
        if self.sees_addresses {
            return meta;
        }
        // Providers quote numbers without their plus.
        let is_phone = matches!(channel, Channel::Sms | Channel::Whatsapp | Channel::Viber);
        let recipient = meta.get("recipient").and_then(Value::as_str).filter(|_| is_phone).unwrap_or_default();
        let digits = recipient.strip_prefix('+').filter(|digits| digits.len() >= *PHONE_DIGITS.start());
        let number = digits.map(|digits| (digits.to_owned(), address::mask(Channel::Sms, digits)));
        for (name, value) in &mut meta {
            match value {
                Value::String(text) if name == "recipient" => *text = address::mask(channel, text),
                value => mask_value(value, number.as_ref()),
            }
        }
        meta
    }
}

/// Masks every text in a value, and replaces the digits in `number` by the masked ones beside them.
fn mask_value(value: &mut Value, number: Option<&(String, String)>) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(masked) = mask_text(text) {
                *text = masked;
            }
            if let Some((digits, masked)) = number
                && text.contains(digits.as_str())
            {
                *text = text.replace(digits.as_str(), masked);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| mask_value(item, number)),
        Value::Object(members) => members.values_mut().for_each(|member| mask_value(member, number)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// True if a text may contain an email address in any spelling, or a phone number with its plus: a fast check, as most
/// texts have neither.
pub fn may_hold_address(text: &str) -> bool {
    // `0xEF` begins the wide spellings of `@`.
    text.bytes().any(|byte| matches!(byte, b'@' | b'%' | b'+' | b'=' | b'&' | b'\\' | 0xEF))
}

/// Returns the text with every email address and phone number masked, in time linear in its length.
pub(crate) fn mask_text(text: &str) -> Cow<'_, str> {
    if !may_hold_address(text) {
        return Cow::Borrowed(text);
    }
    let units = read_units(text);
    let mut edits = phone_edits(&units);
    mark_local_parts(text, &units, &mut edits);
    if edits.iter().all(|edit| *edit == Edit::Keep) {
        return Cow::Borrowed(text);
    }
    let mut masked = String::with_capacity(text.len());
    for (unit, edit) in units.iter().zip(&edits) {
        match edit {
            Edit::Keep => masked.push_str(&text[unit.start..unit.end]),
            Edit::Star => masked.push('*'),
            Edit::Drop => {}
            Edit::Stars => masked.push_str(STARS),
            Edit::KeepThenStars => {
                masked.push_str(&text[unit.start..unit.end]);
                masked.push_str(STARS);
            }
        }
    }
    Cow::Owned(masked)
}

/// Change that masking makes to one unit of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edit {
    Keep,
    /// A digit of a phone number.
    Star,
    /// The local part of one unit.
    Stars,
    /// The first unit of a longer local part.
    KeepThenStars,
    /// Another unit of a local part.
    Drop,
}

/// A character of the text, or an escape that stands for one.
#[derive(Debug, Clone, Copy)]
struct Unit {
    start: usize,
    end: usize,
    /// Character that the unit stands for; an escape is decoded.
    meaning: char,
    /// True if it is an escape: it separates nothing, because it is not known for which parser it was escaped.
    is_escape: bool,
    is_at: bool,
}

impl Unit {
    fn is(self, wanted: char) -> bool {
        !self.is_escape && self.meaning == wanted
    }

    /// True if it ends every word: nothing before it belongs to a local part or URL.
    fn ends_word(self) -> bool {
        !self.is_escape
            && (self.meaning.is_whitespace()
                || self.meaning.is_control()
                || matches!(self.meaning, '<' | '>' | '"' | '“' | '”' | '„' | '«' | '»'))
    }

    /// True if it separates within a word.
    fn separates(self) -> bool {
        !self.is_escape && matches!(self.meaning, '(' | ')' | '[' | ']' | '\\' | ',' | ';' | ':')
    }
}

fn read_units(text: &str) -> Vec<Unit> {
    let bytes = text.as_bytes();
    let mut units: Vec<Unit> = Vec::with_capacity(bytes.len());
    let mut start = 0;
    while let Some(meaning) = text.get(start..).and_then(|rest| rest.chars().next()) {
        let unit = if let Some((byte, end)) = percent_escape(bytes, start) {
            // The bytes of a longer character count as letters.
            let meaning = if byte.is_ascii() { char::from(byte) } else { 'x' };
            Unit { start, end, meaning, is_escape: true, is_at: byte == b'@' }
        } else if let Some(end) = doubtful_at(text, start) {
            Unit { start, end, meaning: '@', is_escape: true, is_at: true }
        } else {
            Unit { start, end: start + meaning.len_utf8(), meaning, is_escape: false, is_at: meaning == '@' }
        };
        start = unit.end;
        units.push(unit);
    }
    units
}

/// Returns the octet of a percent-escape, also one that was escaped again several times, and the end of the escape.
fn percent_escape(bytes: &[u8], at: usize) -> Option<(u8, usize)> {
    let hex = |place: usize| bytes.get(place).and_then(|digit| char::from(*digit).to_digit(16));
    if bytes.get(at) != Some(&b'%') {
        return None;
    }
    let mut place = at + 1;
    while bytes[place..].starts_with(b"25") && hex(place + 2).is_some() && hex(place + 3).is_some() {
        place += 2;
    }
    let octet = hex(place)? * 16 + hex(place + 1)?;
    Some((u8::try_from(octet).ok()?, place + 2))
}

/// Returns the end of an unusual spelling of `@`, if one begins here and a domain follows it.
fn doubtful_at(text: &str, start: usize) -> Option<usize> {
    let rest = &text[start..];
    let spelled = DOUBTFUL_ATS.into_iter().find(|spelling| rest.starts_with(spelling))?;
    let domain = &rest[spelled.len()..];
    // A domain has at most 253 octets; the bound keeps this linear.
    let name: String = domain.chars().take(253).take_while(|c| c.is_alphanumeric() || ".-".contains(*c)).collect();
    let top = name.trim_end_matches('.').rsplit_once('.')?.1;
    (top.len() >= 2 && !top.bytes().all(|byte| byte.is_ascii_digit())).then_some(start + spelled.len())
}

/// Marks the digits of phone numbers: a plus, then digits that may stand in groups.
fn phone_edits(units: &[Unit]) -> Vec<Edit> {
    let mut edits = vec![Edit::Keep; units.len()];
    let mut place = 0;
    while place < units.len() {
        let plus = place;
        place += 1;
        if units[plus].meaning != '+' {
            continue;
        }
        let mut digits: Vec<usize> = Vec::new();
        let mut separators = 0;
        while let Some(unit) = units.get(place) {
            if unit.meaning.is_ascii_digit() && digits.len() < *PHONE_DIGITS.end() {
                digits.push(place);
                separators = 0;
            } else if " -.()/\u{A0}".contains(unit.meaning) && separators < MAX_SEPARATORS {
                separators += 1;
            } else {
                break;
            }
            place += 1;
        }
        let starts_well = digits.first().is_some_and(|first| units[*first].meaning != '0');
        if starts_well && PHONE_DIGITS.contains(&digits.len()) {
            for digit in &digits[..digits.len() - SHOWN_DIGITS] {
                edits[*digit] = Edit::Star;
            }
        }
    }
    edits
}

/// Marks the local parts of email addresses.
fn mark_local_parts(text: &str, units: &[Unit], edits: &mut [Edit]) {
    // Start of the local part that may be in progress.
    let mut start = 0;
    let (mut in_url, mut in_query) = (false, false);
    // The last two quotation marks.
    let (mut opening, mut closing) = (None, None);
    for (place, unit) in units.iter().enumerate() {
        if unit.is_at {
            match (opening, closing) {
                (Some(opening), Some(closing)) if closing + 1 == place && closing - opening <= MAX_QUOTED => {
                    mark(text, units, edits, opening + 1..closing);
                }
                _ => mark_word(text, units, edits, start..place),
            }
            // The domain that follows may be the local part of another address.
            start = place + 1;
        } else if unit.ends_word() {
            if unit.is('"') && !place.checked_sub(1).is_some_and(|before| units[before].is('\\')) {
                (opening, closing) = (closing, Some(place));
            }
            (in_url, in_query) = (false, false);
            start = place + 1;
        } else if unit.separates() {
            let begins_url = unit.is(':') && units[place + 1..].iter().take(2).filter(|next| next.is('/')).count() == 2;
            if begins_url {
                (in_url, in_query) = (true, false);
            }
            start = place + 1;
        } else if in_url && (unit.is('&') || (!in_query && (unit.is('/') || unit.is('?') || unit.is('#')))) {
            in_query |= unit.is('?') || unit.is('#');
            start = place + 1;
        } else if unit.is('\'') && place == start {
            start = place + 1;
        }
    }
}

/// Marks the local part in a word before an `@`: the whole word, or its end after the name of a parameter.
fn mark_word(text: &str, units: &[Unit], edits: &mut [Edit], word: std::ops::Range<usize>) {
    let Some(equals) = word.clone().find(|place| units[*place].is('=')) else {
        return mark(text, units, edits, word);
    };
    let value = equals + 1..word.end;
    // `ann=example.com@list.example` is the return address of a mailing list for Ann, and `m=ann.lee@example.com` a
    // parameter: they cannot be told apart, so neither side of the sign is shown.
    if units[value.clone()].iter().any(|unit| unit.meaning == '.') {
        mark(text, units, edits, word.start..equals);
    }
    mark(text, units, edits, value);
}

/// Marks a local part: its first character stays if there are more.
fn mark(text: &str, units: &[Unit], edits: &mut [Edit], local: std::ops::Range<usize>) {
    let (Some(first), Some(last)) = (units.get(local.start), local.end.checked_sub(1)) else { return };
    if local.is_empty() || text[first.start..units[last].end] == *STARS {
        return;
    }
    edits[local.clone()].fill(Edit::Drop);
    edits[local.start] = if local.len() == 1 { Edit::Stars } else { Edit::KeepThenStars };
}

#[cfg(test)]
mod tests;
