//! Attachments of a message: limits, and media types of files.
//!
//! Contract section 4.1 (`attachments`).

use std::borrow::Cow;
use std::fmt;

use crate::validate::{Setters, Validate};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::domain::limits::MAX_FILENAME;
use crate::ids::{BlobId, MessageId, WorkspaceId};

/// Maximum number of attachments (contract section 20).
pub(crate) const MAX_ATTACHMENTS: u64 = 10;
/// Maximum number of characters of the media type of an attachment.
const MAX_CONTENT_TYPE: u64 = 255;
/// Maximum number of characters of a content id (contract section 4.1).
const MAX_CONTENT_ID: u64 = 128;
/// Maximum size of all attachments together, decoded, in bytes (contract section 20).
pub(crate) const MAX_TOTAL_BYTES: usize = 15 << 20;

/// A file as it is sent in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct AttachmentInput {
    /// The name the recipient sees, 1 to 255 characters.
    #[validate(length(min = 1, max = MAX_FILENAME))]
    pub filename: String,
    /// A media type; found by the file's extension, then its first bytes, when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(max = MAX_CONTENT_TYPE))]
    pub content_type: Option<String>,
    /// The content in padded base64 without line breaks.
    pub content_b64: Base64,
    /// Makes it part of the HTML, which shows it by `cid:` and this name: 1 to 128 visible ASCII characters without
    /// angle brackets, each name once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(min = 1, max = MAX_CONTENT_ID))]
    pub content_id: Option<String>,
}

/// Bytes that are base64 in JSON.
///
/// Decoded while the body is parsed, straight from the request's buffer, so that a large file exists once. A text that
/// does not decode is kept as malformed and refused with its place.
#[derive(Clone, PartialEq, Eq)]
pub enum Base64 {
    /// The bytes.
    Decoded(Bytes),
    /// The text is not padded base64.
    Malformed,
}

impl Base64 {
    /// Returns the bytes; empty when malformed.
    pub fn bytes(&self) -> Bytes {
        match self {
            Self::Decoded(bytes) => bytes.clone(),
            Self::Malformed => Bytes::new(),
        }
    }
}

impl fmt::Debug for Base64 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decoded(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::Malformed => f.write_str("malformed base64"),
        }
    }
}

impl Serialize for Base64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(self.bytes()))
    }
}

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Decode;
        impl de::Visitor<'_> for Decode {
            type Value = Base64;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a base64 string")
            }
            fn visit_str<E>(self, text: &str) -> Result<Base64, E> {
                Ok(STANDARD.decode(text).map_or(Base64::Malformed, |bytes| Base64::Decoded(bytes.into())))
            }
        }
        deserializer.deserialize_str(Decode)
    }
}

impl JsonSchema for Base64 {
    fn schema_name() -> Cow<'static, str> {
        "Base64".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "contentEncoding": "base64"})
    }
}

/// A file as it is stored beside the message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFile {
    /// The name the recipient sees.
    pub filename: String,
    /// The media type.
    pub content_type: String,
    /// Length of the file in bytes.
    pub size: u64,
    /// Id of the blob in the store that holds the bytes of the file.
    pub blob: BlobId,
    /// Content id by which the HTML shows the file; `None` for an ordinary attachment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_id: Option<String>,
}

/// Key of the blob that holds the bytes of a message's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageBlob {
    /// Workspace of the message.
    pub workspace_id: WorkspaceId,
    /// Message that refers to the blob, from the commit that inserts the message on.
    pub message_id: MessageId,
    /// Id of the blob; no other message refers to it.
    pub id: BlobId,
}

/// Returns the media type of a file: as given, by its extension, by its first bytes, or `application/octet-stream`.
pub fn content_type(file: &AttachmentInput) -> String {
    if let Some(given) = file.content_type.as_deref().filter(|given| !given.is_empty()) {
        return given.to_owned();
    }
    if let Some(guess) = mime_guess::from_path(&file.filename).first() {
        return guess.essence_str().to_owned();
    }
    infer::get(&file.content_b64.bytes()).map_or("application/octet-stream", |kind| kind.mime_type()).to_owned()
}

/// Returns true for `type/subtype`, optionally with parameters; printable ASCII, so that it fits a header.
pub(crate) fn is_media_type(text: &str) -> bool {
    let essence = text.split(';').next().unwrap_or_default().trim_end();
    let token =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b));
    text.bytes().all(|byte| (0x20..=0x7E).contains(&byte))
        && essence.split_once('/').is_some_and(|(kind, subtype)| token(kind) && token(subtype))
}

/// Returns true if a text fits between the angle brackets of `Content-ID` (RFC 2045 section 7) and behind `cid:`.
pub fn is_content_id(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic() && !b"<>".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(filename: &str, given: Option<&str>, bytes: &'static [u8], expected: &str) {
        let file = AttachmentInput {
            filename: filename.to_owned(),
            content_type: given.map(str::to_owned),
            content_b64: Base64::Decoded(Bytes::from_static(bytes)),
            content_id: None,
        };
        assert_eq!(content_type(&file), expected);
    }

    #[test]
    fn the_type_is_given_or_found() {
        check("a.pdf", Some("application/x-own"), b"x", "application/x-own");
        check("a.pdf", None, b"x", "application/pdf");
        check("a.PDF", None, b"x", "application/pdf");
        check("a", None, b"%PDF-1.7", "application/pdf");
        check("a", None, b"\x89PNG\r\n\x1a\n", "image/png");
        check("a", None, b"hello", "application/octet-stream");
    }

    #[test]
    fn media_types() {
        for good in ["text/plain", "application/vnd.ms-excel", "text/csv; charset=utf-8"] {
            assert!(is_media_type(good), "{good}");
        }
        for bad in ["", "text", "/plain", "text/", "text/plain\r\nX: y", "te xt/plain", "text/plä"] {
            assert!(!is_media_type(bad), "{bad}");
        }
    }
}
