//! The name of a request: the caller's, if it is a good one, or a new one.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use messaging_core::ids::RequestId;
use messaging_engine::App;

use crate::reply::X_REQUEST_ID;

/// The longest id of a client that is accepted (contract section 1.4).
const MAX_LENGTH: usize = 64;

/// The value of `X-Request-Id` in the answer: the caller's if it is a good one, or a new id.
pub(crate) fn request_id(headers: &HeaderMap, app: &App) -> HeaderValue {
    match headers.get(X_REQUEST_ID) {
        Some(given) if is_good(given.as_bytes()) => given.clone(),
        _ => {
            let id = app.new_id::<RequestId>(app.now()).to_string();
            HeaderValue::from_maybe_shared(Bytes::from(id)).expect("ids are ASCII")
        }
    }
}

/// `^[A-Za-z0-9._-]{1,64}$`
fn is_good(text: &[u8]) -> bool {
    (1..=MAX_LENGTH).contains(&text.len())
        && text.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_short_plain_names_are_taken_over() {
        for good in ["a", "A-z_0.9", &"x".repeat(64)] {
            assert!(is_good(good.as_bytes()), "{good}");
        }
        for bad in ["", " ", "a b", "ä", "a\"", &"x".repeat(65)] {
            assert!(!is_good(bad.as_bytes()), "{bad}");
        }
    }
}
