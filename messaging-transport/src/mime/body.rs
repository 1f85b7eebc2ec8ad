//! Writes bodies: line ends, the choice of a transfer encoding, the encodings.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mail_builder::encoders::QuotedPrintableEncoder;

use super::header::Headers;

/// Maximum length of a line by RFC 5322 section 2.1.1, without its CRLF.
pub const MAX_LINE: usize = 998;

/// Octets of one line of base64, with its CRLF.
const BASE64_LINE: usize = 78;

/// Octets that a line of base64 encodes.
const BASE64_INPUT: usize = (BASE64_LINE - 2) / 4 * 3;

/// Lines of base64 that are encoded at a time.
const LINES_AT_A_TIME: usize = 256;

/// Beginning of every boundary line; see `Boundaries`.
const BOUNDARY_START: &str = "--=_";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    SevenBit,
    QuotedPrintable,
    Base64,
}

impl Encoding {
    const fn as_str(self) -> &'static str {
        match self {
            Self::SevenBit => "7bit",
            Self::QuotedPrintable => "quoted-printable",
            Self::Base64 => "base64",
        }
    }
}

/// A `text/…` part.
pub(super) struct TextPart<'a> {
    subtype: &'static str,
    text: Cow<'a, str>,
    encoding: Encoding,
    encoded_length: usize,
}

impl<'a> TextPart<'a> {
    pub(super) fn new(subtype: &'static str, text: &'a str) -> Self {
        let text = normalize(text);
        let (encoding, encoded_length) = choose(&text);
        Self { subtype, text, encoding, encoded_length }
    }

    /// Returns the approximate length of the encoded body in octets; never much too small.
    pub(super) const fn encoded_length(&self) -> usize {
        self.encoded_length
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut headers = Headers(out);
        headers.verbatim("Content-Type", &format!("text/{}; charset=utf-8", self.subtype));
        headers.verbatim("Content-Transfer-Encoding", self.encoding.as_str());
        out.extend_from_slice(b"\r\n");
        match self.encoding {
            Encoding::SevenBit => out.extend_from_slice(self.text.as_bytes()),
            Encoding::QuotedPrintable => {
                QuotedPrintableEncoder::new().preserve_line_breaks().encode_into(self.text.as_bytes(), out);
            }
            Encoding::Base64 => write_base64(out, self.text.as_bytes()),
        }
    }
}

/// Writes base64 in lines of 76. It calls a function that is not generic, and so is fast in test builds too: these
/// optimize its crate and not this one.
pub(super) fn write_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(base64_length(bytes.len()));
    let mut encoded = String::new();
    for piece in bytes.chunks(LINES_AT_A_TIME * BASE64_INPUT) {
        encoded.clear();
        STANDARD.encode_string(piece, &mut encoded);
        for line in encoded.as_bytes().chunks(BASE64_LINE - 2) {
            out.extend_from_slice(line);
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// Returns the number of octets that [`write_base64`] writes for an input of `octets` octets.
pub(super) const fn base64_length(octets: usize) -> usize {
    let encoded = octets.div_ceil(3) * 4;
    encoded + encoded.div_ceil(BASE64_LINE - 2) * 2
}

/// Returns the text with every line end as CRLF; a CR or LF alone counts as a line end.
fn normalize(text: &str) -> Cow<'_, str> {
    if !text.contains('\r') {
        return if text.contains('\n') { Cow::Owned(text.replace('\n', "\r\n")) } else { Cow::Borrowed(text) };
    }
    let bytes = text.as_bytes();
    let is_bare = |(at, &byte): (usize, &u8)| match byte {
        b'\r' => bytes.get(at + 1) != Some(&b'\n'),
        b'\n' => at == 0 || bytes[at - 1] != b'\r',
        _ => false,
    };
    if !bytes.iter().enumerate().any(is_bare) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    let mut rest = text;
    while let Some(at) = rest.find(['\r', '\n']) {
        out.push_str(&rest[..at]);
        out.push_str("\r\n");
        rest = &rest[at..];
        rest = rest.strip_prefix("\r\n").unwrap_or_else(|| &rest[1..]);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Returns the encoding of a normalised text, and its approximate length in octets.
///
/// Control characters are encoded in base64, whose octets are harmless and which restores them: the contract promises
/// that texts are sent verbatim.
fn choose(text: &str) -> (Encoding, usize) {
    let high = count(text, |byte| byte >= 128);
    let equals = count(text, |byte| byte == b'=');
    let controls = count(text, |byte| (byte < b' ' && !b"\r\n\t".contains(&byte)) || byte == 127);
    let longest = text.split('\n').map(|line| line.trim_end_matches('\r').len()).max().unwrap_or(0);
    let base64 = base64_length(text.len());
    if controls > 0 {
        return (Encoding::Base64, base64);
    }
    if high == 0 && longest <= MAX_LINE && (equals == 0 || !text.contains(BOUNDARY_START)) {
        return (Encoding::SevenBit, text.len());
    }
    let escaped = text.len() + 2 * (high + equals);
    let quoted = escaped + escaped / 70 * 3;
    if quoted <= base64 { (Encoding::QuotedPrintable, quoted) } else { (Encoding::Base64, base64) }
}

/// Counts octets in one simple pass for each question: the compiler vectorizes it, unlike one pass for all of them.
fn count(text: &str, is: impl Fn(u8) -> bool) -> usize {
    text.as_bytes().chunks(128).map(|chunk| usize::from(chunk.iter().map(|&byte| u8::from(is(byte))).sum::<u8>())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_lines(text: &str, expected: &str) {
        assert_eq!(normalize(text), expected);
    }

    #[test]
    fn every_line_end_becomes_crlf() {
        check_lines("", "");
        check_lines("a\r\nb", "a\r\nb");
        check_lines("a\nb", "a\r\nb");
        check_lines("a\rb", "a\r\nb");
        check_lines("\n\r\r\n\n", "\r\n\r\n\r\n\r\n");
        check_lines("é\ré", "é\r\né");
        check_lines("a\r", "a\r\n");
    }

    #[track_caller]
    fn check_choice(text: &str, expected: Encoding) {
        assert_eq!(choose(text).0, expected, "{} octets", text.len());
    }

    #[test]
    fn the_encoding_follows_the_text() {
        check_choice("", Encoding::SevenBit);
        check_choice("plain\r\ntext = plain\r\n", Encoding::SevenBit);
        check_choice(&"x".repeat(998), Encoding::SevenBit);
        check_choice(&format!("{}\r\n{}", "x".repeat(998), "y".repeat(998)), Encoding::SevenBit);
        check_choice(&format!("{}\r\nz", "x".repeat(999)), Encoding::QuotedPrintable);
        check_choice(&"x".repeat(999), Encoding::QuotedPrintable);
        check_choice("Grüße aus Köln, und noch mehr Text", Encoding::QuotedPrintable);
        check_choice("Привет, мир", Encoding::Base64);
        check_choice("a\0b", Encoding::Base64);
        check_choice("\r\n--=_mixed_0\r\n, then more text that is plain", Encoding::QuotedPrintable);
    }

    #[test]
    fn base64_has_full_lines_and_its_length_is_exact() {
        const PIECE: usize = LINES_AT_A_TIME * BASE64_INPUT;
        for octets in [0, 1, 2, 3, 56, 57, 58, 114, 1000, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE + 58] {
            let bytes: Vec<_> = (0..octets).map(|number| u8::try_from(number % 251).unwrap()).collect();
            let mut out = Vec::new();
            write_base64(&mut out, &bytes);
            assert_eq!(out.len(), base64_length(octets), "{octets}");
            let lines: Vec<_> = out.split_inclusive(|&octet| octet == b'\n').collect();
            for (number, line) in lines.iter().enumerate() {
                let is_last = number + 1 == lines.len();
                assert!(line.ends_with(b"\r\n") && line.len() <= BASE64_LINE, "{octets}");
                assert!(is_last || line.len() == BASE64_LINE, "{octets}");
            }
            let text: Vec<_> = lines.iter().flat_map(|line| line.trim_ascii_end()).copied().collect();
            assert_eq!(STANDARD.decode(text).unwrap(), bytes, "{octets}");
        }
    }
}
