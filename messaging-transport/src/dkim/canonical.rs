//! The `relaxed` forms of header fields and bodies (RFC 6376 sections 3.4.2 and 3.4.4).
//!
//! A body is not copied: runs of octets that are already canonical go to the hash as they are.

use memchr::memchr2;
use ring::digest::{Context, Digest, SHA256};

pub(super) const CRLF: &[u8] = b"\r\n";

/// Splits a message into the header with the CRLF of its last field, and the body after the empty line.
pub(super) fn split(message: &[u8]) -> (&[u8], &[u8]) {
    match message.windows(4).position(|octets| octets == b"\r\n\r\n") {
        Some(at) => (&message[..at + 2], &message[at + 4..]),
        None => (message, &[]),
    }
}

/// A field of a header, with its folds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field<'a>(&'a [u8]);

impl<'a> Field<'a> {
    /// Returns name, colon, value, and CRLF.
    pub(super) const fn octets(self) -> &'a [u8] {
        self.0
    }

    pub(super) fn is_named(self, name: &str) -> bool {
        name_of(self.0).eq_ignore_ascii_case(name.as_bytes())
    }
}

/// Returns the fields of a header in order.
pub(super) fn fields(header: &[u8]) -> Vec<Field<'_>> {
    let mut fields = Vec::with_capacity(16);
    let mut start = 0;
    for (at, _) in header.iter().enumerate().filter(|&(_, &octet)| octet == b'\n') {
        // A line that begins with white space belongs to the field before it.
        if header.get(at + 1).is_none_or(|&next| !is_white(next)) {
            fields.push(Field(&header[start..=at]));
            start = at + 1;
        }
    }
    fields
}

/// Returns the name of a field, without white space before the colon.
fn name_of(field: &[u8]) -> &[u8] {
    let name = field.split(|&octet| octet == b':').next().unwrap_or_default();
    name.trim_ascii_end()
}

/// Appends the canonical form of a field, with a CRLF.
pub(super) fn write_field(out: &mut Vec<u8>, field: &[u8]) {
    let value = field.iter().position(|&octet| octet == b':').map_or(&[][..], |colon| &field[colon + 1..]);
    out.extend(name_of(field).iter().map(u8::to_ascii_lowercase));
    out.push(b':');
    let start = out.len();
    let mut is_after_white = false;
    for octet in value {
        match octet {
            // Unfolding removes the line ends; the white space after each stays and counts as such.
            b'\r' | b'\n' => {}
            b' ' | b'\t' => is_after_white = true,
            _ => {
                if is_after_white && out.len() > start {
                    out.push(b' ');
                }
                is_after_white = false;
                out.push(*octet);
            }
        }
    }
    out.extend_from_slice(CRLF);
}

/// Returns the SHA-256 digest of the canonical body.
pub(super) fn body_hash(body: &[u8]) -> Digest {
    let mut context = Context::new(&SHA256);
    for_each_piece(body, |piece| context.update(piece));
    context.finish()
}

/// Passes on the canonical body in pieces: white space within a line is one space, at the end of a line none, empty
/// lines at the end are removed, and the last line ends in CRLF. An empty body stays empty.
fn for_each_piece(body: &[u8], mut take: impl FnMut(&[u8])) {
    let body = without_empty_end(body);
    if body.is_empty() {
        return;
    }
    // Octets from here to `at` are canonical and not passed on yet.
    let mut start = 0;
    let mut at = 0;
    while let Some(white) = memchr2(b' ', b'\t', &body[at..]) {
        let begin = at + white;
        at = begin + body[begin..].iter().position(|&octet| !is_white(octet)).unwrap_or(body.len() - begin);
        if body[at..].starts_with(CRLF) {
            take(&body[start..begin]);
            start = at;
        } else if body[begin..at] != *b" " {
            take(&body[start..begin]);
            take(b" ");
            start = at;
        }
    }
    take(&body[start..]);
    take(CRLF);
}

/// Returns the body without its last CRLF and all empty lines before it, those of white space included.
fn without_empty_end(body: &[u8]) -> &[u8] {
    let mut rest = body;
    loop {
        while let [before @ .., b' ' | b'\t'] = rest {
            rest = before;
        }
        match rest {
            [before @ .., b'\r', b'\n'] => rest = before,
            _ => return rest,
        }
    }
}

const fn is_white(octet: u8) -> bool {
    matches!(octet, b' ' | b'\t')
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    #[track_caller]
    fn check_field(field: &str, expected: &str) {
        let mut out = Vec::new();
        write_field(&mut out, field.as_bytes());
        assert_eq!(String::from_utf8(out).unwrap(), expected, "{field:?}");
    }

    #[track_caller]
    fn check_body(body: &[u8], expected: &[u8]) {
        let mut out = Vec::new();
        for_each_piece(body, |piece| out.extend_from_slice(piece));
        assert_eq!(out, expected, "{:?}", String::from_utf8_lossy(body));
    }

    /// RFC 6376 section 3.4.5.
    #[test]
    fn the_example_of_the_rfc() {
        let (header, body) = split(b"A: X\r\nB : Y\t\r\n\tZ  \r\n\r\n C \r\nD \t E\r\n\r\n\r\n");
        let fields = fields(header);
        assert_eq!(fields.len(), 2);
        assert!(fields[1].is_named("b") && !fields[0].is_named("b"));
        check_field(std::str::from_utf8(fields[0].octets()).unwrap(), "a:X\r\n");
        check_field(std::str::from_utf8(fields[1].octets()).unwrap(), "b:Y Z\r\n");
        check_body(body, b" C\r\nD E\r\n");
    }

    #[test]
    fn fields_are_unfolded_and_lose_white_space() {
        check_field("Subject: \r\n", "subject:\r\n");
        check_field("Subject:a\r\n", "subject:a\r\n");
        check_field("X-A \t:  a: \t b  \r\n", "x-a:a: b\r\n");
        check_field("X-A:\r\n\r\n", "x-a:\r\n");
        check_field("X-A: one\r\n two\r\n\t three\r\n", "x-a:one two three\r\n");
        check_field("X-A:\r\n one\r\n", "x-a:one\r\n");
        check_field("To: jürgen@example.com\r\n", "to:jürgen@example.com\r\n");
        // A line break without white space after it cannot be within a field; nothing is invented for it.
        check_field("X-A: one\r\ntwo\r\n", "x-a:onetwo\r\n");
    }

    #[test]
    fn bodies_lose_white_space_and_empty_lines() {
        check_body(b"", b"");
        check_body(b"\r\n", b"");
        check_body(b"\r\n \r\n\t\r\n", b"");
        check_body(b" \t", b"");
        check_body(b"a", b"a\r\n");
        check_body(b"a\r\n", b"a\r\n");
        check_body(b"a \t \r\n \t\r\n\r\n", b"a\r\n");
        check_body(b"\r\n\r\na\r\n", b"\r\n\r\na\r\n");
        check_body(b"a\tb  c \r\nd\r\n", b"a b c\r\nd\r\n");
        check_body(b"\ta\r\n  b", b" a\r\n b\r\n");
        check_body(b".\r\n..\r\n.a\r\n", b".\r\n..\r\n.a\r\n");
        check_body(b"\xfc\xff  \xc3\xbc \r\n", b"\xfc\xff \xc3\xbc\r\n");
        check_body(b"a \r b\n\r\n", b"a \r b\n\r\n");
        check_body(b"a\r\n\r\n\r\nb\r\n", b"a\r\n\r\n\r\nb\r\n");
    }

    #[test]
    fn the_hash_of_nothing() {
        // RFC 6376 section 3.4.4.
        assert_eq!(STANDARD.encode(body_hash(b"\r\n\r\n")), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    }

    #[test]
    fn a_header_and_a_body_are_parted_at_the_empty_line() {
        assert_eq!(split(b"A: b\r\n\r\nc\r\n\r\n"), (&b"A: b\r\n"[..], &b"c\r\n\r\n"[..]));
        assert_eq!(split(b"A: b\r\n\r\n"), (&b"A: b\r\n"[..], &b""[..]));
        assert_eq!(split(b"A: b\r\n"), (&b"A: b\r\n"[..], &b""[..]));
    }
}
