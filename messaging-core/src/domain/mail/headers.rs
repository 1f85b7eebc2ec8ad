//! Headers that a sender may set.
//!
//! Contract section 4.1 (`headers`).

/// Maximum number of headers (contract section 20).
pub const MAX_HEADERS: u64 = 30;
/// Maximum length of a name, in octets.
pub(crate) const MAX_NAME_LENGTH: usize = 76;
/// Maximum length of a value, in characters.
pub(crate) const MAX_VALUE_LENGTH: usize = 998;

/// Headers that we write, that control mail systems, or that would forge the origin of a message.
const DENIED: &[&str] = &[
    "from",
    "to",
    "cc",
    "bcc",
    "subject",
    "date",
    "message-id",
    "reply-to",
    "sender",
    "return-path",
    "received",
    "dkim-signature",
    "list-unsubscribe",
    "list-unsubscribe-post",
    "mime-version",
    "authentication-results",
    "feedback-id",
    "delivered-to",
    "x-original-to",
    "disposition-notification-to",
];

/// Beginnings of the names of headers that are denied.
const DENIED_FAMILIES: &[&str] = &["content-", "resent-", "arc-"];

/// Fault of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderFault {
    /// The name has other characters or another length than allowed.
    Name,
    /// Senders may not set this header.
    Denied,
    /// The value is too long.
    TooLong,
    /// The value has control characters.
    Value,
}

/// Checks one header.
pub fn check(name: &str, value: &str) -> Result<(), HeaderFault> {
    let well_formed = (1..=MAX_NAME_LENGTH).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if !well_formed {
        return Err(HeaderFault::Name);
    }
    let name = name.to_ascii_lowercase();
    if DENIED.contains(&name.as_str()) || DENIED_FAMILIES.iter().any(|family| name.starts_with(family)) {
        return Err(HeaderFault::Denied);
    }
    if value.chars().count() > MAX_VALUE_LENGTH {
        return Err(HeaderFault::TooLong);
    }
    // Tabs could pass, but nothing a sender means needs one.
    if value.chars().any(char::is_control) {
        return Err(HeaderFault::Value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_values_and_the_denylist() {
        let long = "n".repeat(76);
        let longer = "n".repeat(77);
        let value = "v".repeat(998);
        let too_long = "v".repeat(999);
        for (name, value, expected) in [
            ("X-Order", "17", Ok(())),
            ("x-order", "", Ok(())),
            (long.as_str(), "v", Ok(())),
            (longer.as_str(), "v", Err(HeaderFault::Name)),
            ("", "v", Err(HeaderFault::Name)),
            ("X Order", "v", Err(HeaderFault::Name)),
            ("X:Order", "v", Err(HeaderFault::Name)),
            ("X-\u{dc}", "v", Err(HeaderFault::Name)),
            ("X-A", value.as_str(), Ok(())),
            ("X-A", too_long.as_str(), Err(HeaderFault::TooLong)),
            ("X-A", "a\r\nBcc: b@c.de", Err(HeaderFault::Value)),
            ("X-A", "a\nb", Err(HeaderFault::Value)),
            ("X-A", "a\u{7f}", Err(HeaderFault::Value)),
            ("X-A", "grüße", Ok(())),
            ("FROM", "v", Err(HeaderFault::Denied)),
            ("Content-Disposition", "v", Err(HeaderFault::Denied)),
            ("Resent-To", "v", Err(HeaderFault::Denied)),
            ("ARC-Seal", "v", Err(HeaderFault::Denied)),
            ("List-Unsubscribe-Post", "v", Err(HeaderFault::Denied)),
            ("List-Id", "v", Ok(())),
            ("Contents", "v", Ok(())),
        ] {
            assert_eq!(check(name, value), expected, "{name}: {value:?}");
        }
    }
}
