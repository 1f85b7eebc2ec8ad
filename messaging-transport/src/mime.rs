//! Serializes an email to the octets of RFC 5322 and MIME.
//!
//! [`build`] is a pure function: the same [`Email`] gives the same octets, so every attempt at a
//! delivery, and every signature over it, is of the same message. For that the boundaries are derived
//! from the `Message-ID`, and nothing is taken from the clock or from chance.
//!
//! `mail-builder` supplies the encoders of bodies. Headers and structure are written here, because
//! that crate draws boundaries from the clock, and because headers are where a message breaks: an
//! encoded-word look-alike passes it unencoded, and header names, addresses and media types may carry
//! line ends.
//!
//! Every result has these properties: lines end in CRLF and nowhere else is there a CR or LF; no line is longer than
//! 998 octets; there is no control character but tab, and no octet above 127 unless the local part of an address in a
//! header needs one (RFC 6532; see [`needs_utf8`]); blind copies appear nowhere, as [`Email`] does not know them.

mod body;
mod encoded;
mod header;

use messaging_core::domain::channel::address::EmailAddress;
use messaging_core::ports::transport::{AttachedFile, Email};

pub use self::body::MAX_LINE;
use self::body::TextPart;
use self::header::{Disposition, Headers};
use crate::dkim;

/// Maximum length of a `Message-ID`, which keeps its line within [`MAX_LINE`].
const MAX_MESSAGE_ID: usize = 900;

/// Maximum length of a header field name; with a word of [`header::MAX_WORD`] octets it fits a line.
const MAX_HEADER_NAME: usize = 76;

/// Maximum length of a media type that is written as given.
const MAX_CONTENT_TYPE: usize = 400;

/// Fields that are written from the members of [`Email`] and would appear twice.
const OWN_FIELDS: [&str; 10] =
    ["from", "to", "cc", "bcc", "reply-to", "subject", "date", "message-id", "mime-version", "return-path"];

/// Reason why an email cannot be turned into a message. `messaging-core` checks all of this first; these errors are the
/// safety net.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MimeError {
    /// A header name has characters other than printable ASCII, or is too long.
    #[error("header {index} has a malformed name")]
    HeaderName {
        /// Index in [`Email::headers`], from 0.
        index: usize,
    },
    /// A header would repeat one that the message has anyway, or reveal blind copies.
    #[error("header {index} is not the sender's to set")]
    ReservedHeader {
        /// Index in [`Email::headers`], from 0.
        index: usize,
    },
    /// The `Message-ID` has spaces, brackets, or characters other than printable ASCII.
    #[error("the message id is malformed")]
    MessageId,
    /// An address has characters that would end it.
    #[error("the address in {field} is malformed")]
    Address {
        /// The header field.
        field: &'static str,
    },
}

/// Builds the message, ready for DATA except for dot-stuffing. It ends in CRLF, and is signed with each of its signers.
pub fn build(email: &Email) -> Result<Vec<u8>, MimeError> {
    check_message_id(&email.message_id)?;
    let texts = text_parts(email);
    let estimate = 2048
        + email.signers.len() * dkim::ROOM
        + email.cc.len() * 64
        + email.headers.iter().map(|(name, value)| name.len() + value.len() * 2 + 8).sum::<usize>()
        + texts.iter().map(|part| part.encoded_length() + 256).sum::<usize>()
        + email
            .attachments
            .iter()
            .map(|file| body::base64_length(file.content.len()) + file.filename.len() * 4 + 768)
            .sum::<usize>();
    let mut out = Vec::with_capacity(estimate);
    write_fields(&mut out, email)?;

    let boundaries = Boundaries::of(&email.message_id);
    // A file that the HTML shows is part of it; without HTML nothing shows it.
    let is_shown = |file: &&AttachedFile| email.html.is_some() && file.content_id.is_some();
    let (shown, attached): (Vec<_>, Vec<_>) = email.attachments.iter().partition(is_shown);
    if attached.is_empty() {
        write_texts(&mut out, &texts, &shown, &boundaries);
    } else {
        write_multipart(&mut out, "mixed", &boundaries.mixed);
        open_part(&mut out, &boundaries.mixed);
        write_texts(&mut out, &texts, &shown, &boundaries);
        for file in attached {
            open_part(&mut out, &boundaries.mixed);
            write_file(&mut out, file, Disposition::Attachment);
        }
        close_parts(&mut out, &boundaries.mixed);
    }
    if !out.ends_with(b"\r\n") {
        out.extend_from_slice(b"\r\n");
    }
    dkim::sign(&mut out, &email.signers, email.date);
    Ok(out)
}

/// Returns true if a header of the message holds an address that only SMTPUTF8 (RFC 6531) can carry.
pub fn needs_utf8(email: &Email) -> bool {
    std::iter::once(&email.from.address)
        .chain([&email.to])
        .chain(&email.cc)
        .chain(&email.reply_to)
        .any(|address| !address.local().is_ascii())
}

/// Returns an address as headers and envelope spell it: with the domain in A-labels.
pub(crate) fn wire_address(address: &EmailAddress) -> Option<String> {
    let local = address.local();
    let breaks = |c: char| c.is_control() || c.is_whitespace() || "<>()[],;:\\\"@".contains(c);
    (!local.is_empty() && !local.contains(breaks)).then(|| format!("{local}@{}", address.ascii_domain()))
}

fn write_fields(out: &mut Vec<u8>, email: &Email) -> Result<(), MimeError> {
    let spelled = |field, address| wire_address(address).ok_or(MimeError::Address { field });
    let mut headers = Headers(out);
    headers.mailbox("From", email.from.name.as_deref(), &spelled("From", &email.from.address)?);
    headers.addresses("To", &[spelled("To", &email.to)?]);
    if !email.cc.is_empty() {
        let cc = email.cc.iter().map(|address| spelled("Cc", address)).collect::<Result<Vec<_>, _>>()?;
        headers.addresses("Cc", &cc);
    }
    if let Some(address) = &email.reply_to {
        headers.addresses("Reply-To", &[spelled("Reply-To", address)?]);
    }
    headers.unstructured("Subject", &email.subject);
    headers.verbatim("Date", &email.date.to_jiff().strftime("%a, %d %b %Y %H:%M:%S +0000").to_string());
    headers.verbatim("Message-ID", &format!("<{}>", email.message_id));
    for (index, (name, value)) in email.headers.iter().enumerate() {
        check_name(index, name)?;
        headers.unstructured(name, value);
    }
    headers.verbatim("MIME-Version", "1.0");
    Ok(())
}

/// Returns the text parts in the order of `multipart/alternative`: the plainest first.
fn text_parts(email: &Email) -> Vec<TextPart<'_>> {
    let text = email.text.as_deref().map(|text| TextPart::new("plain", text));
    let html = email.html.as_deref().map(|html| TextPart::new("html", html));
    let mut parts: Vec<_> = text.into_iter().chain(html).collect();
    if parts.is_empty() {
        parts.push(TextPart::new("plain", ""));
    }
    parts
}

/// Writes the texts, the last of which, the HTML, shows the files of `shown`.
fn write_texts(out: &mut Vec<u8>, texts: &[TextPart<'_>], shown: &[&AttachedFile], boundaries: &Boundaries) {
    if let [only] = texts {
        write_related(out, only, shown, boundaries);
        return;
    }
    write_multipart(out, "alternative", &boundaries.alternative);
    for (index, part) in texts.iter().enumerate() {
        open_part(out, &boundaries.alternative);
        let of_part = if index + 1 == texts.len() { shown } else { &[] };
        write_related(out, part, of_part, boundaries);
    }
    close_parts(out, &boundaries.alternative);
}

/// Writes a text with the files that it shows (RFC 2387).
fn write_related(out: &mut Vec<u8>, text: &TextPart<'_>, shown: &[&AttachedFile], boundaries: &Boundaries) {
    if shown.is_empty() {
        text.write(out);
        return;
    }
    write_multipart(out, "related; type=\"text/html\"", &boundaries.related);
    open_part(out, &boundaries.related);
    text.write(out);
    for file in shown {
        open_part(out, &boundaries.related);
        write_file(out, file, Disposition::Inline);
    }
    close_parts(out, &boundaries.related);
}

fn write_file(out: &mut Vec<u8>, file: &AttachedFile, disposition: Disposition) {
    let mut headers = Headers(out);
    headers.verbatim("Content-Type", media_type(&file.content_type));
    headers.disposition(disposition, &file.filename);
    if let Some(id) = file.content_id.as_deref().filter(|id| is_bracketable(id)) {
        headers.verbatim("Content-ID", &format!("<{id}>"));
    }
    headers.verbatim("Content-Transfer-Encoding", "base64");
    out.extend_from_slice(b"\r\n");
    body::write_base64(out, &file.content);
}

/// Returns the media type as given, unless a reader could not understand it. `multipart/*` and `message/*` may not be
/// encoded (RFC 2046 sections 5.1 and 5.2), but files are: those become plain bytes.
fn media_type(given: &str) -> &str {
    let essence = given.split(';').next().unwrap_or_default().trim();
    let is_token =
        |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b));
    let well_formed = given.len() <= MAX_CONTENT_TYPE
        && given.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        && essence.split_once('/').is_some_and(|(kind, subtype)| {
            is_token(kind)
                && is_token(subtype)
                && !kind.eq_ignore_ascii_case("multipart")
                && !kind.eq_ignore_ascii_case("message")
        });
    if well_formed { given.trim() } else { "application/octet-stream" }
}

/// Returns true if the id may stand between the angle brackets of `Message-ID` and `Content-ID`.
fn is_bracketable(id: &str) -> bool {
    !id.is_empty() && id.len() <= MAX_MESSAGE_ID && id.bytes().all(|b| b.is_ascii_graphic() && !b"<>".contains(&b))
}

fn check_name(index: usize, name: &str) -> Result<(), MimeError> {
    if name.is_empty() || name.len() > MAX_HEADER_NAME || !name.bytes().all(|b| b.is_ascii_graphic() && b != b':') {
        return Err(MimeError::HeaderName { index });
    }
    let is_own = OWN_FIELDS.iter().any(|own| own.eq_ignore_ascii_case(name))
        || name.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("content-"));
    if is_own { Err(MimeError::ReservedHeader { index }) } else { Ok(()) }
}

fn check_message_id(id: &str) -> Result<(), MimeError> {
    if is_bracketable(id) { Ok(()) } else { Err(MimeError::MessageId) }
}

/// Boundaries of the multipart bodies. They hold `=_`, which neither base64 nor quoted-printable can produce; a plain
/// text with that in it is encoded (see [`body`]). So no part can close its neighbour, whatever its content.
struct Boundaries {
    mixed: String,
    alternative: String,
    related: String,
}

impl Boundaries {
    fn of(message_id: &str) -> Self {
        // FNV-1a: not secret, only stable and different from message to message.
        let hash = message_id
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        let boundary = |kind| format!("=_{kind}_{hash:016x}");
        Self { mixed: boundary("mixed"), alternative: boundary("alternative"), related: boundary("related") }
    }
}

/// Writes the fields of a multipart body. The empty line after them is the line end that belongs to the first boundary.
fn write_multipart(out: &mut Vec<u8>, subtype: &str, boundary: &str) {
    Headers(out).verbatim("Content-Type", &format!("multipart/{subtype};\r\n boundary=\"{boundary}\""));
}

fn open_part(out: &mut Vec<u8>, boundary: &str) {
    delimit(out, boundary);
    out.extend_from_slice(b"\r\n");
}

fn close_parts(out: &mut Vec<u8>, boundary: &str) {
    delimit(out, boundary);
    out.extend_from_slice(b"--");
}

/// Writes a boundary. The CRLF before the dashes belongs to the boundary, not to the part (RFC 2046 section 5.1.1).
fn delimit(out: &mut Vec<u8>, boundary: &str) {
    out.extend_from_slice(b"\r\n--");
    out.extend_from_slice(boundary.as_bytes());
}
