//! Wait that the answer of a web server asks for (RFC 9110 section 10.2.3).

use std::time::Duration;

use crate::domain::delivery::outcome::MAX_WAIT;
use crate::time::Timestamp;

/// Returns the wait that a `Retry-After` header asks for: seconds, or a date. At most [`MAX_WAIT`]; `None` if it cannot
/// be read.
pub fn retry_after(header: &str, now: Timestamp) -> Option<Duration> {
    let text = header.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number that does not fit is longer than the longest wait.
        return Some(text.parse().map_or(MAX_WAIT, Duration::from_secs).min(MAX_WAIT));
    }
    let date = jiff::fmt::rfc2822::parse(text).ok()?;
    Some(Timestamp::from(date.timestamp()).since(now).min(MAX_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_read_and_bounded() {
        let now: Timestamp = "2026-01-31T09:15:00Z".parse().unwrap();
        let day = 24 * 60 * 60;
        for (header, seconds) in [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("86400", Some(day)),
            ("86401", Some(day)),
            ("99999999999999999999999", Some(day)),
            ("Sat, 31 Jan 2026 09:16:00 GMT", Some(60)),
            ("Sat, 31 Jan 2026 09:00:00 GMT", Some(0)),
            ("Sat, 31 Jan 2099 09:00:00 GMT", Some(day)),
            ("", None),
            ("-1", None),
            ("1.5", None),
            ("soon", None),
        ] {
            assert_eq!(retry_after(header, now), seconds.map(Duration::from_secs), "{header}");
        }
    }
}
