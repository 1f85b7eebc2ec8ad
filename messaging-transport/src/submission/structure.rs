//! Content of a submitted mail: its text, its HTML and its files (RFC 2046).
//!
//! The mail comes from a stranger: parts are counted before they are read, nesting is bounded, and a forwarded mail is
//! a file like any other.

use std::collections::HashSet;

use mail_parser::{ContentType, HeaderValue};
use messaging_core::domain::message::attachment::is_content_id;

use super::part::{Fields, split};
use super::refusal::Refusal;
use crate::mail::boundaries::between_boundaries;
use crate::mail::decode;

/// Maximum number of parts of one multipart body; a message has at most 10 files.
const MAX_PARTS: usize = 32;
/// Maximum nesting of multipart bodies.
const MAX_DEPTH: usize = 8;
/// Maximum length of a file's content id that is kept.
const MAX_CONTENT_ID: usize = 128;
/// Maximum number of parts of a mail that are not multipart themselves.
const MAX_LEAVES: usize = 64;

/// The content of a mail: its text, its HTML and its files.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) text: Option<String>,
    pub(super) html: Option<String>,
    pub(super) files: Vec<File>,
}

/// A file in a mail.
#[derive(Debug)]
pub(super) struct File {
    pub(super) name: String,
    pub(super) content_type: String,
    pub(super) bytes: Vec<u8>,
    /// The content id by which the HTML may refer to the file.
    pub(super) content_id: Option<String>,
    /// True if the disposition of the part is `attachment`.
    is_attachment: bool,
}

/// Reads a body according to the header before it.
pub(super) fn read(header: &Fields<'_>, body: &[u8]) -> Result<Content, Refusal> {
    let mut reader = Reader::default();
    reader.read(header, body, PartRole::Body, 0)?;
    let mut content = reader.content;
    let mut known = HashSet::new();
    for file in &mut content.files {
        // An id that is too long, malformed or repeated is dropped; the file is sent all the same.
        file.content_id = file
            .content_id
            .take()
            .filter(|id| id.len() <= MAX_CONTENT_ID && is_content_id(id) && known.insert(id.clone()));
        let shown = |id: &String| content.html.as_ref().is_some_and(|html| html.contains(&format!("cid:{id}")));
        // Some programs give every file an id.
        if file.is_attachment && !file.content_id.as_ref().is_some_and(shown) {
            file.content_id = None;
        }
    }
    Ok(content)
}

/// Role of a part within the mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PartRole {
    /// The part may be the text or the HTML of the mail.
    Body,
    /// The part follows the root of a `multipart/related`, and belongs to that root.
    Resource,
}

#[derive(Debug, Default)]
struct Reader {
    content: Content,
    leaves: usize,
}

impl Reader {
    fn read(&mut self, header: &Fields<'_>, body: &[u8], role: PartRole, depth: usize) -> Result<(), Refusal> {
        let media_type = typed(header, "content-type");
        if let Some(media_type) = media_type.filter(|media_type| media_type.ctype().eq_ignore_ascii_case("multipart")) {
            return self.read_parts(media_type, body, role, depth);
        }
        self.leaves += 1;
        if self.leaves > MAX_LEAVES {
            return Err(too_many());
        }
        let essence = essence(media_type);
        if depth == 0 && essence == "application/pkcs7-mime" {
            return Err(sealed());
        }
        let disposition = typed(header, "content-disposition");
        let is_attachment =
            disposition.is_some_and(|disposition| disposition.ctype().eq_ignore_ascii_case("attachment"));
        let name = disposition.and_then(|disposition| disposition.attribute("filename"));
        let name = name.or_else(|| media_type?.attribute("name")).map(clean).filter(|name| !name.is_empty());
        let encoding = text_value(header, "content-transfer-encoding").unwrap_or_default();
        let Some(bytes) = decode::content(&encoding.trim().to_ascii_lowercase(), body) else {
            return Err(Refusal::new(550, "5.6.0", "validation_failed: a part does not decode"));
        };
        let charset = media_type.and_then(|media_type| media_type.attribute("charset"));
        let says = role == PartRole::Body && !is_attachment && name.is_none();
        match essence.as_str() {
            "text/html" if says && self.content.html.is_none() => {
                self.content.html = Some(decode::text(&bytes, charset)).filter(|html| !html.is_empty());
            }
            "text/plain" if says && self.content.html.is_none() => {
                // Some programs put a second text below the first, such as a footer.
                let text = decode::text(&bytes, charset);
                match &mut self.content.text {
                    Some(before) => before.extend(["\r\n", &text]),
                    none => *none = Some(text).filter(|text| !text.is_empty()),
                }
            }
            _ if bytes.is_empty() => {}
            _ => {
                let content_id = text_value(header, "content-id");
                let content_id = content_id.map(|id| id.trim_matches(['<', '>', ' ']).to_owned());
                let content_type = match charset.filter(|_| essence.starts_with("text/")) {
                    Some(charset) => format!("{essence}; charset={}", clean(charset)),
                    None => essence.clone(),
                };
                self.content.files.push(File {
                    name: name.unwrap_or_else(|| format!("attachment-{}.{}", self.leaves, extension(&essence))),
                    content_type,
                    bytes: bytes.into_owned(),
                    content_id: content_id.filter(|id| !id.is_empty()),
                    is_attachment,
                });
            }
        }
        Ok(())
    }

    fn read_parts(
        &mut self,
        media_type: &ContentType<'_>,
        body: &[u8],
        role: PartRole,
        depth: usize,
    ) -> Result<(), Refusal> {
        let kind = media_type.subtype().unwrap_or_default().to_ascii_lowercase();
        if kind == "signed" || kind == "encrypted" {
            return Err(sealed());
        }
        if depth >= MAX_DEPTH {
            return Err(too_many());
        }
        let boundary = media_type.attribute("boundary").filter(|boundary| !boundary.is_empty());
        let Some(boundary) = boundary else {
            return Err(Refusal::new(550, "5.6.0", "validation_failed: a multipart body has no boundary"));
        };
        let parts = between_boundaries(body, boundary.as_bytes(), MAX_PARTS + 1);
        if parts.len() > MAX_PARTS {
            return Err(too_many());
        }
        for (number, part) in parts.into_iter().enumerate() {
            let (header, body) = split(part)?;
            let role = if kind == "related" && number > 0 { PartRole::Resource } else { role };
            self.read(&header, body, role, depth + 1)?;
        }
        Ok(())
    }
}

fn too_many() -> Refusal {
    Refusal::new(550, "5.6.0", "validation_failed: the mail has too many parts")
}

/// Returns the refusal of a signed or encrypted mail: a signature would not survive rewriting, and encrypted content
/// has no text to rewrite.
fn sealed() -> Refusal {
    Refusal::new(550, "5.6.0", "validation_failed: a signed or encrypted mail would not survive; send it without")
}

fn typed<'a>(header: &'a Fields<'_>, name: &str) -> Option<&'a ContentType<'a>> {
    header.all(name).next_back()?.as_content_type()
}

fn text_value(header: &Fields<'_>, name: &str) -> Option<String> {
    match header.all(name).next_back()? {
        HeaderValue::Text(text) => Some(text.to_string()),
        HeaderValue::TextList(texts) => texts.first().map(ToString::to_string),
        _ => None,
    }
}

/// Returns `type/subtype` in lower case. A missing type and a malformed `text` type are `text/plain` (RFC 2045 section
/// 5.2); any other malformed type is `application/octet-stream`.
fn essence(media_type: Option<&ContentType<'_>>) -> String {
    let Some(media_type) = media_type else { return "text/plain".to_owned() };
    let token = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
    };
    match media_type.subtype() {
        Some(subtype) if token(media_type.ctype()) && token(subtype) => {
            format!("{}/{subtype}", media_type.ctype()).to_ascii_lowercase()
        }
        _ if media_type.ctype().eq_ignore_ascii_case("text") => "text/plain".to_owned(),
        _ => "application/octet-stream".to_owned(),
    }
}

/// Returns a file name or charset without the characters that may not stand in it.
fn clean(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).collect::<String>().trim().to_owned()
}

/// Returns the extension for a file without a name.
fn extension(essence: &str) -> &str {
    match essence {
        "message/rfc822" => "eml",
        "text/plain" => "txt",
        "text/calendar" => "ics",
        "image/jpeg" => "jpg",
        _ => {
            let subtype = essence.split_once('/').map_or("", |(_, subtype)| subtype);
            let is_short = (1..=5).contains(&subtype.len()) && subtype.bytes().all(|byte| byte.is_ascii_alphanumeric());
            if is_short { subtype } else { "bin" }
        }
    }
}
