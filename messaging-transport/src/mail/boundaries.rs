//! Splits a multipart body into its parts.

use super::fields;

/// Returns the first `most` parts between the delimiter lines of a multipart body (RFC 2046 section 5.1.1). The closing
/// delimiter may be missing, since some hosts truncate long mails that they return.
pub(crate) fn between_boundaries<'a>(body: &'a [u8], boundary: &[u8], most: usize) -> Vec<&'a [u8]> {
    let (mut parts, mut begun) = (Vec::new(), None);
    let mut at = 0;
    while at < body.len() && parts.len() < most {
        let line = fields::first_line(&body[at..]);
        let next = body.len() - fields::after_line(&body[at..]).len();
        if let Some(after) = line.strip_prefix(b"--").and_then(|line| line.strip_prefix(boundary)) {
            let is_last = after.starts_with(b"--");
            if is_last || after.trim_ascii().is_empty() {
                if let Some(begin) = begun {
                    parts.push(without_last_line_end(&body[begin..at]));
                }
                begun = Some(next);
                if is_last {
                    return parts;
                }
            }
        }
        at = next;
    }
    if let Some(begin) = begun {
        parts.push(&body[begin..]);
    }
    parts
}

/// Returns the text without its last line break, which belongs to the delimiter line that follows.
fn without_last_line_end(text: &[u8]) -> &[u8] {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    text.strip_suffix(b"\r").unwrap_or(text)
}
