//! Number of segments of a text message (3GPP TS 23.038 section 6.2.1, 23.040 section 9.2.3.24.1).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of segments of a message (contract section 4.1).
pub const MAX_SEGMENTS: usize = 10;

/// Septets per segment in the GSM 7-bit alphabet: of a message of one segment, and of one of several.
const SEPTETS: (usize, usize) = (160, 153);
/// UTF-16 units per segment in UCS-2: of a message of one segment, and of one of several.
const UNITS: (usize, usize) = (70, 67);

/// The GSM 7-bit default alphabet, besides ASCII letters and digits.
const BASIC: &str = "@\u{a3}$\u{a5}\u{e8}\u{e9}\u{f9}\u{ec}\u{f2}\u{c7}\n\u{d8}\u{f8}\r\u{c5}\u{e5}\u{394}_\u{3a6}\u{393}\u{39b}\
    \u{3a9}\u{3a0}\u{3a8}\u{3a3}\u{398}\u{39e}\u{c6}\u{e6}\u{df}\u{c9} !\"#\u{a4}%&'()*+,-./:;<=>?\u{a1}\u{c4}\u{d6}\u{d1}\
    \u{dc}\u{a7}\u{bf}\u{e4}\u{f6}\u{f1}\u{fc}\u{e0}";

/// Characters of the extension table of the alphabet: two septets each.
const EXTENDED: &str = "^{}\\[~]|\u{20ac}\u{c}";

/// Encoding of a text message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "SmsEncoding")]
pub enum Encoding {
    /// GSM 7-bit alphabet.
    Gsm7,
    /// UCS-2, for a text with a character that the alphabet lacks.
    Ucs2,
}

/// Size of a text as a text message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Number of segments, each of which is paid for.
    pub segments: usize,
    /// Encoding of the text: the GSM 7-bit alphabet or UCS-2.
    pub encoding: Encoding,
}

/// Returns the size of a text: in the GSM 7-bit alphabet if that has every character, else in UCS-2. A character of two
/// septets or two UTF-16 units is never split between segments.
pub fn size(text: &str) -> Size {
    let septets: Option<Vec<usize>> = text.chars().map(septets).collect();
    if let Some(widths) = septets {
        return Size { segments: packed(&widths, SEPTETS), encoding: Encoding::Gsm7 };
    }
    let widths: Vec<_> = text.chars().map(char::len_utf16).collect();
    Size { segments: packed(&widths, UNITS), encoding: Encoding::Ucs2 }
}

/// Returns the septets of a character in the GSM 7-bit alphabet; `None` if the alphabet lacks it.
fn septets(character: char) -> Option<usize> {
    match character {
        _ if character.is_ascii_alphanumeric() || BASIC.contains(character) => Some(1),
        _ if EXTENDED.contains(character) => Some(2),
        _ => None,
    }
}

fn packed(widths: &[usize], (alone, each): (usize, usize)) -> usize {
    if widths.iter().sum::<usize>() <= alone {
        return 1;
    }
    let (mut segments, mut filled) = (1, 0);
    for width in widths {
        if filled + width > each {
            (segments, filled) = (segments + 1, 0);
        }
        filled += width;
    }
    segments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_fill_segments() {
        for (text, expected) in [
            (String::new(), 1),
            ("a".repeat(160), 1),
            ("a".repeat(161), 2),
            ("a".repeat(306), 2),
            ("a".repeat(307), 3),
            ("\u{e4}@\u{394}\n".repeat(40), 1),
            ("\u{20ac}".repeat(80), 1),
            // 153 septets hold 76 characters of two.
            ("\u{20ac}".repeat(81), 2),
            ("\u{20ac}".repeat(153), 3),
            ("\u{436}".repeat(70), 1),
            ("\u{436}".repeat(71), 2),
            ("\u{436}".repeat(134), 2),
            ("\u{436}".repeat(135), 3),
            // 67 units hold 33 pairs.
            ("\u{1f600}".repeat(35), 1),
            ("\u{1f600}".repeat(36), 2),
            ("\u{1f600}".repeat(67), 3),
            // One character outside of the alphabet is enough.
            (format!("{}`", "a".repeat(70)), 2),
        ] {
            assert_eq!(size(&text).segments, expected, "{text}");
        }
    }

    #[test]
    fn one_character_outside_of_the_alphabet_changes_the_encoding() {
        for (text, expected) in
            [("", Encoding::Gsm7), ("a\u{20ac}", Encoding::Gsm7), ("a`", Encoding::Ucs2), ("\u{1f600}", Encoding::Ucs2)]
        {
            assert_eq!(size(text).encoding, expected, "{text}");
        }
    }
}
