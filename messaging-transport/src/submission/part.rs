//! A part of a mail, or the whole mail: header fields, an empty line, a body.

use mail_parser::{Header, HeaderName, HeaderValue, MessageParser};

use super::refusal::Refusal;

/// Maximum octets of a block of header fields.
const MAX_HEADER: usize = 256 * 1024;

/// Header fields, their values parsed by their kind.
pub(super) struct Fields<'a>(Vec<Header<'a>>);

impl Fields<'_> {
    /// Returns every field in order.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &HeaderValue<'_>)> {
        self.0.iter().map(|field| (name_of(field), &field.value))
    }

    /// Returns the values of a name, in any case.
    pub(super) fn all(&self, name: &str) -> impl DoubleEndedIterator<Item = &HeaderValue<'_>> {
        self.iter().filter(move |(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

fn name_of<'a>(field: &'a Header<'_>) -> &'a str {
    match &field.name {
        HeaderName::Other(name) => name,
        known => known.as_str(),
    }
}

/// Splits a block into its fields and the rest.
pub(super) fn split(block: &[u8]) -> Result<(Fields<'_>, &[u8]), Refusal> {
    let end = if block.starts_with(b"\r\n") {
        0
    } else {
        let empty = block.windows(4).take(MAX_HEADER).position(|four| four == b"\r\n\r\n");
        match empty {
            Some(at) => at + 2,
            None if block.len() <= MAX_HEADER => block.len(),
            None => return Err(Refusal::new(552, "5.3.4", "payload_too_large: the header is longer than 256 KiB")),
        }
    };
    let parser = MessageParser::new().with_mime_headers().with_address_headers().default_header_text();
    let header = parser.parse_headers(&block[..end]).and_then(|mut message| message.parts.pop());
    let fields = Fields(header.map(|part| part.headers).unwrap_or_default());
    Ok((fields, block.get(end + 2..).unwrap_or_default()))
}
