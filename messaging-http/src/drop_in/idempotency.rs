//! The Idempotency-Key of drop-in calls, which may be longer than ours.

use messaging_core::domain::security::digest::Digest;
use messaging_engine::Error;

/// Characters of an Idempotency-Key here (contract section 18).
const MAX_KEY_LENGTH: usize = 256;

/// The Idempotency-Key under which a call is stored: a digest of the given one, because those of other services may be
/// longer.
pub(crate) fn idempotency_key(header: &[u8]) -> Result<String, Error> {
    let text = std::str::from_utf8(header).map_err(|_| Error::InvalidIdempotencyKey)?;
    let inner = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text);
    let is_fine = (1..=MAX_KEY_LENGTH).contains(&inner.len()) && inner.bytes().all(|byte| byte.is_ascii_graphic());
    if is_fine { Ok(Digest::of(inner).to_text()) } else { Err(Error::InvalidIdempotencyKey) }
}

/// A refusal in words that hold for these calls.
pub(super) fn told(error: &Error) -> String {
    match error {
        Error::InvalidIdempotencyKey => {
            format!("Idempotency-Key must be 1 to {MAX_KEY_LENGTH} visible ASCII characters")
        }
        error => error.to_string(),
    }
}
