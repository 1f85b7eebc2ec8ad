//! What a mail says: its text, its HTML and its files (RFC 2046).
//!
//! Lengths, depths and encodings are those of a stranger: parts are counted before they are read, nothing is descended
//! into twice, and a forwarded mail is a file like any other.

use std::collections::HashSet;

use mail_parser::{ContentType, HeaderValue};
use messaging_core::domain::message::attachment::is_content_id;

use super::part::{Fields, split};
use super::refusal::Refusal;
use crate::mail::boundaries::between_boundaries;
use crate::mail::decode;

/// The most parts of one multipart body; a message has at most 10 files.
const MAX_PARTS: usize = 32;
/// How deep parts are looked for in parts.
const MAX_DEPTH: usize = 8;
/// The longest id of a file that can be sent along.
const MAX_CONTENT_ID: usize = 128;
/// Parts of a mail, leaves only.
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
    /// What the HTML may call it.
    pub(super) content_id: Option<String>,
    /// Whether it is handed over as a file even where the HTML could show it.
    is_attachment: bool,
}

/// Reads a body by the header before it.
pub(super) fn read(header: &Fields<'_>, body: &[u8]) -> Result<Content, Refusal> {
    let mut reader = Reader::default();
    reader.read(header, body, PartRole::Body, 0)?;
    let mut content = reader.content;
    let mut known = HashSet::new();
    for file in &mut content.files {
        // An id that cannot be sent along, or stands twice, shows nothing; the file is sent all the same.
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

/// What a part is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PartRole {
    /// It may be what the mail says.
    Body,
    /// The root of `multipart/related` was before it: it belongs to that.
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

/// What is written anew would have a signature that fits no more, and what is encrypted has no text to write.
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

/// `type/subtype` in lower case. What is no type is text (RFC 2045 section 5.2), or octets where there is something.
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

/// A name without what may not stand in one.
fn clean(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).collect::<String>().trim().to_owned()
}

/// What the name of a file without one ends in.
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
