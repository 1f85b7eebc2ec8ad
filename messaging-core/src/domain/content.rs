//! The stored form of what a sender asked for.
//!
//! Usually the request's bytes as they were received. A request with attachments is stored behind a
//! one-byte mark instead, its files replaced by references: a mark rather than a JSON member, so that
//! no request can pretend to refer to somebody's file.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::domain::attachment::StoredFile;
use crate::domain::message::MessageContent;
use crate::domain::message_input::MessageInput;

/// Never the first byte of a JSON text.
const WITH_FILES: u8 = 0x01;

/// What delivery needs to know of a request.
#[derive(Debug, Clone)]
pub struct RequestContent {
    /// The request, its attachments taken out.
    pub input: MessageInput,
    /// The attachments.
    pub files: Vec<StoredFile>,
}

#[derive(Serialize, Deserialize)]
struct Envelope<T> {
    input: T,
    files: Vec<StoredFile>,
}

/// The stored content is not what this version writes.
#[derive(Debug, thiserror::Error)]
#[error("the stored request cannot be read")]
pub struct Unreadable(#[source] serde_json::Error);

/// The form to store: `raw` as it is, or, when files were stored, the input without them.
pub fn encode(raw: &Bytes, mut input: MessageInput, files: Vec<StoredFile>) -> MessageContent {
    if files.is_empty() {
        return MessageContent { request: raw.clone() };
    }
    input.attachments = None;
    let mut request = vec![WITH_FILES];
    serde_json::to_writer(&mut request, &Envelope { input, files }).expect("plain data serializes");
    MessageContent { request: request.into() }
}

/// Reads the stored form.
pub fn decode(content: &MessageContent) -> Result<RequestContent, Unreadable> {
    if let Some((&WITH_FILES, rest)) = content.request.split_first() {
        let Envelope { input, files } = serde_json::from_slice(rest).map_err(Unreadable)?;
        return Ok(RequestContent { input, files });
    }
    let input = serde_json::from_slice::<MessageInput>(&content.request).or_else(|_| {
        // A member that is given twice: the last counts, as when the request was accepted.
        let value: serde_json::Value = serde_json::from_slice(&content.request)?;
        serde_json::from_value(value)
    });
    Ok(RequestContent { input: input.map_err(Unreadable)?, files: Vec::new() })
}
