//! Removal of known addresses from a text, in every spelling that [`mask_text`](super::mask_text) recognizes.

use crate::domain::channel::address::fold_letter;

use super::{STARS, Unit, read_units};

/// Bytes of a piece in which a text is processed, approximately; pieces end at spaces, so that a long text takes no
/// multiple of its length in memory.
const PIECE: usize = 16 << 10;

/// Crosses out each of the addresses (letters as [`fold_letter`] returns them) in every place where it stands as a
/// whole, also in a return address that contains it, percent-encoded, or broken by quoted-printable; `None` if there is
/// no such place.
pub(crate) fn cross_out(text: &str, addresses: &[String]) -> Option<String> {
    let patterns: Vec<Pattern> = addresses.iter().flat_map(|address| Pattern::all(address)).collect();
    let mut crossed: Option<String> = None;
    let mut done = 0;
    while done < text.len() {
        let end = done + piece_length(&text[done..]);
        let piece = &text[done..end];
        match (cross_out_of_piece(piece, &patterns), &mut crossed) {
            (Some(piece), Some(crossed)) => crossed.push_str(&piece),
            (None, Some(crossed)) => crossed.push_str(piece),
            (Some(piece), None) => crossed = Some(format!("{}{piece}", &text[..done])),
            (None, None) => {}
        }
        done = end;
    }
    crossed
}

/// Returns the length up to the first space after [`PIECE`] bytes; a line end that quoted-printable added does not
/// count as one.
fn piece_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let ends = |place: &usize| match bytes[*place] {
        b' ' => true,
        b'\n' => {
            let line = bytes[..*place].strip_suffix(b"\r").unwrap_or(&bytes[..*place]);
            !line.ends_with(b"=")
        }
        _ => false,
    };
    (PIECE..bytes.len()).find(ends).map_or(bytes.len(), |place| place + 1)
}

/// One spelling of an address.
struct Pattern {
    letters: Vec<char>,
    /// Characters that cannot stand before it: there it would be the end of another address.
    not_after: &'static str,
    is_number: bool,
}

impl Pattern {
    fn all(address: &str) -> Vec<Self> {
        let pattern = |text: &str, not_after| Self {
            letters: text.chars().collect(),
            not_after,
            is_number: text.bytes().all(|byte| byte == b'+' || byte.is_ascii_digit()),
        };
        let Some((local, domain)) = address.rsplit_once('@') else {
            // Providers quote numbers without their plus.
            return vec![pattern(address.strip_prefix('+').unwrap_or(address), "")];
        };
        // `bounce-ann=example.com@list.example` holds the address after a prefix.
        vec![pattern(address, "._-+"), pattern(&format!("{local}={domain}"), "._")]
    }

    /// Returns the number of letters that it matches from `start` on, if it stands there.
    fn matches(&self, letters: &[(usize, char)], start: usize) -> Option<usize> {
        let end = start + self.letters.len();
        let found = letters.get(start..end)?;
        if self.letters.is_empty() || !found.iter().zip(&self.letters).all(|((_, letter), wanted)| letter == wanted) {
            return None;
        }
        let before = start.checked_sub(1).map(|place| letters[place].1);
        let after = |offset: usize| letters.get(end + offset).map(|(_, letter)| *letter);
        let goes_on = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
        let continues_before = before.is_some_and(|letter| {
            if self.is_number {
                letter.is_ascii_digit()
            } else {
                letter.is_alphanumeric() || self.not_after.contains(letter)
            }
        });
        let continues_after = if self.is_number {
            after(0).is_some_and(|letter| letter.is_ascii_digit())
        } else {
            goes_on(after(0)) || after(0) == Some('-') || (after(0) == Some('.') && goes_on(after(1)))
        };
        (!continues_before && !continues_after).then_some(end - start)
    }
}

fn cross_out_of_piece(text: &str, patterns: &[Pattern]) -> Option<String> {
    let units = read_units(text);
    let letters = letters(&units);
    let mut crossed: Option<String> = None;
    // Start of the text that is not copied yet.
    let mut copied = 0;
    let mut place = 0;
    while place < letters.len() {
        let Some(length) = patterns.iter().find_map(|pattern| pattern.matches(&letters, place)) else {
            place += 1;
            continue;
        };
        let (first, last) = (units[letters[place].0], units[letters[place + length - 1].0]);
        let crossed = crossed.get_or_insert_with(String::new);
        crossed.push_str(&text[copied..first.start]);
        crossed.push_str(STARS);
        copied = last.end;
        place += length;
    }
    crossed.map(|crossed| crossed + &text[copied..])
}

/// Returns the units by their meaning, letters folded, without the line ends that quoted-printable adds.
fn letters(units: &[Unit]) -> Vec<(usize, char)> {
    let mut letters = Vec::with_capacity(units.len());
    let mut place = 0;
    while let Some(unit) = units.get(place) {
        let is = |offset: usize, wanted: char| units.get(place + offset).is_some_and(|unit| unit.is(wanted));
        if is(0, '=') && is(1, '\r') && is(2, '\n') {
            place += 3;
            continue;
        }
        letters.push((place, fold_letter(unit.meaning)));
        place += 1;
    }
    letters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let addresses = ["ann+x@example.com".to_owned(), "ann@example.com".to_owned(), "+14155550123".to_owned()];
        assert_eq!(cross_out(text, &addresses).as_deref().unwrap_or(text), expected);
    }

    #[test]
    fn an_address_goes_in_every_spelling() {
        check("to <ann@example.com>, Ann@Example.COM.", "to <***>, ***.");
        check("ann+x@example.com", "***");
        check("https://a.example/?m=ann%40example.com&x", "https://a.example/?m=***&x");
        check("https://a.example/?m=%61nn%2Bx%2540example.com", "https://a.example/?m=***");
        check("bounce-ann=example.com@list.example", "bounce-***@list.example");
        check("ann@exam=\r\nple.com", "***");
        check("ann=40example.com", "***");
        check("call +14155550123 or 14155550123", "call +*** or ***");
    }

    #[test]
    fn other_addresses_stay() {
        for text in [
            "joann@example.com",
            "mary-ann@example.com mary.ann@example.com",
            "ann@example.com.au ann@example.community ann@example.com-x",
            "1141555501234",
            "ann at example.com",
            "",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn a_long_text_is_looked_through_to_its_end() {
        let noise = "word ".repeat(PIECE);
        check(&format!("{noise}ann@example.com {noise}<ann@example.com>"), &format!("{noise}*** {noise}<***>"));
        let unbroken = "x".repeat(PIECE * 3);
        check(&format!("{unbroken}<ann@example.com>{unbroken}"), &format!("{unbroken}<***>{unbroken}"));
    }
}
