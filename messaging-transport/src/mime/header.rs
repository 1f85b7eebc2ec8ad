//! Writes header fields: folding, quoting, and protection against values that would end a field.

use std::borrow::Cow;

use super::encoded::{self, WordContext};

/// Line length at which a field is folded if possible (RFC 5322 section 2.1.1 says 78).
const FOLD_AT: usize = 76;

/// Maximum length of a piece without a place to fold that is written as it is; a longer one is cut into encoded words.
pub(super) const MAX_WORD: usize = 900;

/// Maximum length of a display name or file name written as a quoted string.
const MAX_QUOTED: usize = 300;

/// Disposition of a file (RFC 2183).
#[derive(Debug, Clone, Copy)]
pub(super) enum Disposition {
    /// Listed beside the message.
    Attachment,
    /// Shown within the message.
    Inline,
}

/// Writes fields to the end of a message.
pub(super) struct Headers<'a>(pub(super) &'a mut Vec<u8>);

impl Headers<'_> {
    /// Writes a field whose value is known to be valid.
    pub(super) fn verbatim(&mut self, name: &str, value: &str) {
        self.start(name);
        self.text(value);
        self.end();
    }

    /// Writes a field of unstructured text. Spaces around it are dropped; line ends and control characters become
    /// spaces.
    pub(super) fn unstructured(&mut self, name: &str, value: &str) {
        let column = self.start(name);
        let value = without_controls(value, ' ');
        let value = value.trim_matches(' ');
        if is_plain(value) {
            self.fold(column, value);
        } else {
            encoded::write_words(self.0, column, value, WordContext::Text);
        }
        self.end();
    }

    /// Writes a field of one address with a display name.
    pub(super) fn mailbox(&mut self, name: &str, display: Option<&str>, address: &str) {
        let display = without_controls(display.unwrap_or_default(), ' ');
        let display = display.trim_matches(' ');
        if display.is_empty() {
            return self.addresses(name, &[address.to_owned()]);
        }
        let mut column = self.start(name);
        if is_printable(display) && display.len() <= MAX_QUOTED && !display.contains("=?") {
            let before = self.0.len();
            if is_atoms(display) {
                self.text(display);
            } else {
                self.quoted(display);
            }
            column += self.0.len() - before;
        } else {
            column = encoded::write_words(self.0, column, display, WordContext::Phrase);
        }
        self.text(if column + address.len() + 3 > FOLD_AT { "\r\n <" } else { " <" });
        self.text(address);
        self.text(">");
        self.end();
    }

    /// Writes a field of addresses.
    pub(super) fn addresses(&mut self, name: &str, addresses: &[String]) {
        let mut column = self.start(name);
        for (index, address) in addresses.iter().enumerate() {
            if index > 0 {
                let folds = column + address.len() + 3 > FOLD_AT;
                self.text(if folds { ",\r\n " } else { ", " });
                column = if folds { 1 } else { column + 2 };
            }
            self.text(address);
            column += address.len();
        }
        self.end();
    }

    /// Writes the `Content-Disposition` of a file.
    pub(super) fn disposition(&mut self, disposition: Disposition, filename: &str) {
        self.start("Content-Disposition");
        self.text(match disposition {
            Disposition::Attachment => "attachment",
            Disposition::Inline => "inline",
        });
        let filename = without_controls(filename, '_');
        if is_printable(&filename) && filename.len() <= MAX_QUOTED && !may_be_decoded(&filename) {
            self.text(";\r\n filename=");
            self.quoted(&filename);
        } else {
            encoded::write_parameter(self.0, "filename", &filename);
        }
        self.end();
    }

    fn start(&mut self, name: &str) -> usize {
        self.text(name);
        self.text(": ");
        name.len() + 2
    }

    fn end(&mut self) {
        self.text("\r\n");
    }

    fn text(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    fn quoted(&mut self, text: &str) {
        self.0.push(b'"');
        for byte in text.bytes() {
            if byte == b'"' || byte == b'\\' {
                self.0.push(b'\\');
            }
            self.0.push(byte);
        }
        self.0.push(b'"');
    }

    fn fold(&mut self, column: usize, value: &str) {
        let mut column = column;
        for (index, piece) in pieces(value).enumerate() {
            if index > 0 {
                if column + 1 + piece.len() > FOLD_AT {
                    self.end();
                    column = 0;
                }
                self.text(" ");
                column += 1;
            }
            self.text(piece);
            column += piece.len();
        }
    }
}

/// Cuts a value at its single spaces. At two or more it cannot be folded: many readers take any fold with the spaces
/// around it for one space.
fn pieces(value: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(value);
    std::iter::from_fn(move || {
        let text = rest?;
        let bytes = text.as_bytes();
        let is_single = |&(at, _): &(usize, &str)| {
            at > 0 && bytes[at - 1] != b' ' && bytes.get(at + 1).is_some_and(|&next| next != b' ')
        };
        let cut = text.match_indices(' ').find(is_single).map(|(at, _)| at);
        rest = cut.map(|at| &text[at + 1..]);
        Some(&text[..cut.unwrap_or(text.len())])
    })
}

fn without_controls(text: &str, replacement: char) -> Cow<'_, str> {
    if text.contains(char::is_control) {
        Cow::Owned(text.chars().map(|c| if c.is_control() { replacement } else { c }).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// Returns true if some program would show a quoted file name differently: many decode encoded words in it, some
/// percent signs.
fn may_be_decoded(filename: &str) -> bool {
    filename.contains("=?") || filename.contains('%')
}

fn is_printable(text: &str) -> bool {
    text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// Returns true if the text can stand in a field as it is. Text that looks like an encoded word cannot: a reader would
/// decode it.
fn is_plain(text: &str) -> bool {
    is_printable(text)
        && !text.contains("=?")
        && (text.len() <= MAX_WORD || pieces(text).all(|piece| piece.len() <= MAX_WORD))
}

/// Returns true if the text consists of atoms with single spaces between them, which need no quotes.
fn is_atoms(text: &str) -> bool {
    text.split(' ').all(|word| {
        !word.is_empty()
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&byte))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(write: impl FnOnce(&mut Headers<'_>), expected: &str) {
        let mut out = Vec::new();
        write(&mut Headers(&mut out));
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn unstructured_text_is_folded_at_spaces() {
        check(|h| h.unstructured("Subject", "Order 17"), "Subject: Order 17\r\n");
        check(|h| h.unstructured("Subject", ""), "Subject: \r\n");
        check(|h| h.unstructured("Subject", " a\tb\r\nBcc: c\0 "), "Subject: a b  Bcc: c\r\n");
        let word = "w".repeat(40);
        check(
            |h| h.unstructured("Subject", &format!("{word} a  b {word} {word}")),
            &format!("Subject: {word} a  b\r\n {word}\r\n {word}\r\n"),
        );
        let long = "v".repeat(900);
        check(|h| h.unstructured("X-Url", &format!("a {long}")), &format!("X-Url: a\r\n {long}\r\n"));
    }

    #[test]
    fn look_alikes_and_monsters_are_encoded() {
        for value in ["=?utf-8?Q?x?=".to_owned(), "x".repeat(901), format!("a{}b", " ".repeat(900))] {
            let mut out = Vec::new();
            Headers(&mut out).unstructured("X-Long", &value);
            let text = String::from_utf8(out).unwrap();
            assert!(text.starts_with("X-Long: =?utf-8?"), "{text}");
            assert!(text.lines().all(|line| line.len() <= 76), "{text}");
        }
    }

    #[test]
    fn display_names_are_atoms_quoted_or_encoded() {
        let a = "a@b.co";
        check(|h| h.mailbox("From", None, a), "From: a@b.co\r\n");
        check(|h| h.mailbox("From", Some(""), a), "From: a@b.co\r\n");
        check(|h| h.mailbox("From", Some("Acme Shop"), a), "From: Acme Shop <a@b.co>\r\n");
        check(|h| h.mailbox("From", Some("Acme, \"Inc\" \\"), a), "From: \"Acme, \\\"Inc\\\" \\\\\" <a@b.co>\r\n");
        check(|h| h.mailbox("From", Some("Zoë"), a), "From: =?utf-8?Q?Zo=C3=AB?= <a@b.co>\r\n");
        check(|h| h.mailbox("From", Some("a\r\nBcc: x"), a), "From: \"a  Bcc: x\" <a@b.co>\r\n");
        let name = "n".repeat(70);
        check(|h| h.mailbox("From", Some(&name), a), &format!("From: {name}\r\n <a@b.co>\r\n"));
    }

    #[test]
    fn address_lists_are_folded() {
        let address = |c: &str| format!("{}@example.org", c.repeat(20));
        check(
            |h| h.addresses("Cc", &[address("a"), address("b"), address("c")]),
            &format!("Cc: {}, {},\r\n {}\r\n", address("a"), address("b"), address("c")),
        );
    }

    #[test]
    fn file_names_are_quoted_or_extended() {
        let start = "Content-Disposition: attachment";
        check(
            |h| h.disposition(Disposition::Attachment, "a \"b\".pdf"),
            &format!("{start};\r\n filename=\"a \\\"b\\\".pdf\"\r\n"),
        );
        check(
            |h| h.disposition(Disposition::Attachment, "é.pdf"),
            &format!("{start};\r\n filename*=utf-8''%C3%A9.pdf\r\n"),
        );
        check(|h| h.disposition(Disposition::Attachment, "a\r\nb\0"), &format!("{start};\r\n filename=\"a__b_\"\r\n"));
    }

    /// Many programs read encoded words, and some percent signs, in a quoted file name; in an extended one nobody does.
    #[test]
    fn file_names_that_look_encoded_arrive_as_written() {
        for (name, extended) in [
            ("a%20b.pdf", "a%2520b.pdf"),
            ("100%.pdf", "100%25.pdf"),
            ("=?utf-8?Q?a?=.pdf", "%3D%3Futf-8%3FQ%3Fa%3F%3D.pdf"),
        ] {
            check(
                |h| h.disposition(Disposition::Attachment, name),
                &format!("Content-Disposition: attachment;\r\n filename*=utf-8''{extended}\r\n"),
            );
        }
    }
}
