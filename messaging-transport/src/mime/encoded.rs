//! Encodes text outside ASCII in headers: encoded words (RFC 2047) and extended parameters (RFC 2231).

use mail_builder::encoders::Base64Encoder;

/// Maximum length of a line with an encoded word (RFC 2047 section 2).
const MAX_WORD_LINE: usize = 76;

/// Maximum length of an encoded word (RFC 2047 section 2).
const MAX_ENCODED_WORD: usize = 75;

/// Length of `=?utf-8?Q?` and `?=`.
const OVERHEAD: usize = 12;

/// Room for the widest character, four octets as `=XX`, and for one of base64.
const WIDEST: usize = 12;

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Position of an encoded word, which decides the characters that it may show as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordContext {
    /// Unstructured text (RFC 2047 section 5, rule 1).
    Text,
    /// Display name (rule 3).
    Phrase,
}

impl WordContext {
    fn shows(self, byte: u8) -> bool {
        match self {
            Self::Text => byte.is_ascii_graphic() && !b"=?_".contains(&byte),
            Self::Phrase => byte.is_ascii_alphanumeric() || b"!*+-/".contains(&byte),
        }
    }

    fn width(self, c: char) -> usize {
        if c == ' ' || u8::try_from(c).is_ok_and(|byte| self.shows(byte)) { 1 } else { 3 * c.len_utf8() }
    }
}

/// Writes `text` as encoded words, folding between them; returns the column after the last.
pub(super) fn write_words(out: &mut Vec<u8>, column: usize, text: &str, context: WordContext) -> usize {
    let quoted: usize = text.chars().map(|c| context.width(c)).sum();
    // Base64 is shorter from a quarter of foreign letters on, but mostly Latin text stays readable.
    let is_quoted = quoted <= text.len() * 2;
    let mut column = column;
    let mut rest = text;
    while !rest.is_empty() {
        if column + OVERHEAD + WIDEST > MAX_WORD_LINE {
            out.extend_from_slice(b"\r\n ");
            column = 1;
        }
        let room = MAX_ENCODED_WORD.min(MAX_WORD_LINE - column) - OVERHEAD;
        let (word, after) = rest.split_at(if is_quoted {
            fitting(rest, room, |c| context.width(c))
        } else {
            fitting(rest, room / 4 * 3, char::len_utf8)
        });
        let start = out.len();
        if is_quoted {
            out.extend_from_slice(b"=?utf-8?Q?");
            word.bytes().for_each(|byte| write_quoted(out, byte, context));
        } else {
            out.extend_from_slice(b"=?utf-8?B?");
            Base64Encoder::new().encode_into(word.as_bytes(), out);
        }
        out.extend_from_slice(b"?=");
        column += out.len() - start;
        rest = after;
        if !rest.is_empty() {
            // White space between encoded words is not part of the text.
            out.extend_from_slice(b"\r\n ");
            column = 1;
        }
    }
    column
}

/// Writes `; name*=utf-8''…`, in numbered sections if it is long (RFC 2231 sections 3 and 4).
pub(super) fn write_parameter(out: &mut Vec<u8>, name: &str, value: &str) {
    let width = |c: char| if u8::try_from(c).is_ok_and(is_attribute_char) { 1 } else { 3 * c.len_utf8() };
    let total: usize = value.chars().map(width).sum();
    // Name, number, asterisks, charset and semicolon of the widest section.
    let room = MAX_WORD_LINE - name.len() - " *999*=utf-8'';".len();
    let is_whole = total <= room;
    let mut rest = value;
    let mut section = 0;
    while !rest.is_empty() {
        let (part, after) = rest.split_at(fitting(rest, room, width));
        out.extend_from_slice(b";\r\n ");
        out.extend_from_slice(name.as_bytes());
        if !is_whole {
            out.extend_from_slice(format!("*{section}").as_bytes());
        }
        out.extend_from_slice(if section == 0 { b"*=utf-8''" } else { b"*=" });
        for byte in part.bytes() {
            if is_attribute_char(byte) { out.push(byte) } else { write_hex(out, b'%', byte) }
        }
        section += 1;
        rest = after;
    }
}

/// Returns the number of octets of `text`, in whole characters and at least one, that fit into `room`.
fn fitting(text: &str, room: usize, width: impl Fn(char) -> usize) -> usize {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += width(c);
        if used > room && at > 0 {
            return at;
        }
    }
    text.len()
}

fn write_quoted(out: &mut Vec<u8>, byte: u8, context: WordContext) {
    if byte == b' ' {
        out.push(b'_');
    } else if context.shows(byte) {
        out.push(byte);
    } else {
        write_hex(out, b'=', byte);
    }
}

fn write_hex(out: &mut Vec<u8>, mark: u8, byte: u8) {
    out.extend_from_slice(&[mark, HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
}

/// Returns true for an `attribute-char` of RFC 2231 section 7.
fn is_attribute_char(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$&+-.^_`{|}~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_words(column: usize, text: &str, context: WordContext, expected: &str) {
        let mut out = Vec::new();
        let end = write_words(&mut out, column, text, context);
        let written = String::from_utf8(out).unwrap();
        assert_eq!(written, expected);
        let last = written.rsplit("\r\n").next().unwrap();
        assert_eq!(end, if written.contains("\r\n") { last.len() } else { column + last.len() });
    }

    #[test]
    fn mostly_latin_text_stays_readable() {
        check_words(9, "Grüße, alle", WordContext::Text, "=?utf-8?Q?Gr=C3=BC=C3=9Fe,_alle?=");
        let phrase = "=?utf-8?Q?Gr=C3=BC=C3=9Fe=2C_alle_miteinander?=";
        check_words(9, "Grüße, alle miteinander", WordContext::Phrase, phrase);
        check_words(9, "Привет", WordContext::Text, "=?utf-8?B?0J/RgNC40LLQtdGC?=");
        check_words(9, "=?utf-8?Q?no?=", WordContext::Text, "=?utf-8?Q?=3D=3Futf-8=3FQ=3Fno=3F=3D?=");
    }

    #[test]
    fn words_are_folded_between_characters() {
        check_words(60, "Ünder", WordContext::Text, "\r\n =?utf-8?Q?=C3=9Cnder?=");
        let mut out = Vec::new();
        write_words(&mut out, 9, &"é".repeat(100), WordContext::Text);
        for line in String::from_utf8(out).unwrap().split("\r\n ") {
            assert!(line.len() <= 75 && line.ends_with("?="), "{line}");
        }
    }

    #[track_caller]
    fn check_parameter(value: &str, expected: &str) {
        let mut out = Vec::new();
        write_parameter(&mut out, "filename", value);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn parameters_are_numbered_when_long() {
        check_parameter("é.pdf", ";\r\n filename*=utf-8''%C3%A9.pdf");
        check_parameter(
            &"ab é".repeat(10),
            concat!(
                ";\r\n filename*0*=utf-8''ab%20%C3%A9ab%20%C3%A9ab%20%C3%A9ab%20%C3%A9ab%20",
                ";\r\n filename*1*=%C3%A9ab%20%C3%A9ab%20%C3%A9ab%20%C3%A9ab%20%C3%A9ab",
                ";\r\n filename*2*=%20%C3%A9",
            ),
        );
    }
}
