//! Reply of a peer, or the reason why there is none.

use serde::{Deserialize, Serialize};

/// A reply, for events and for its classification.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Response {
    /// The SMTP reply code (RFC 5321 section 4.2). Off email, where the provider's own code counts, the status of an
    /// answer that could not be read, and else `None`.
    pub code: Option<u16>,
    /// The enhanced status code (RFC 3463), `5.1.1`.
    pub enhanced: Option<String>,
    /// The text of the reply, at most 512 characters, without control characters.
    pub text: String,
    /// The host that replied.
    pub host: Option<String>,
}

/// Maximum number of characters of a reply that are kept.
pub const MAX_TEXT: usize = 512;

impl Response {
    /// Returns a response with a text alone, without control characters and cut off after [`MAX_TEXT`] characters.
    pub fn of_text(text: &str) -> Self {
        let text = text.chars().filter(|character| !character.is_control()).take(MAX_TEXT).collect();
        Self { text, ..Self::default() }
    }
}
