//! Expiry of a certificate (RFC 5280 section 4.1.2.5). Nothing else of it is read here: clients judge if it is valid.

use messaging_core::time::Timestamp;

const SEQUENCE: u8 = 0x30;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// Tag `[0]` of the version, which is left out in version 1.
const VERSION: u8 = 0xa0;

/// Returns the last moment at which a certificate in DER is valid; `None` if it cannot be parsed.
pub(super) fn not_after(certificate: &[u8]) -> Option<Timestamp> {
    let (certificate, _) = element(certificate, SEQUENCE)?;
    let (mut fields, _) = element(certificate, SEQUENCE)?;
    if let Some((_, rest)) = element(fields, VERSION) {
        fields = rest;
    }
    // The serial number, the algorithm of the signature, the issuer.
    for _ in 0..3 {
        (_, fields) = element(fields, *fields.first()?)?;
    }
    let (validity, _) = element(fields, SEQUENCE)?;
    let (_, validity) = element(validity, *validity.first()?)?;
    let tag = *validity.first()?;
    let (time, _) = element(validity, tag)?;
    read_time(tag, std::str::from_utf8(time).ok()?)
}

/// Returns the content of the first element, which has this tag, and the octets after it (X.690 section 8.1).
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[found, length], rest) = bytes.split_first_chunk::<2>()?;
    if found != tag {
        return None;
    }
    if length < 0x80 {
        return rest.split_at_checked(usize::from(length));
    }
    let octets = usize::from(length & 0x7f);
    if !(1..=4).contains(&octets) {
        return None;
    }
    let (length, rest) = rest.split_at_checked(octets)?;
    let length = length.iter().fold(0, |sum: u64, octet| sum << 8 | u64::from(*octet));
    rest.split_at_checked(usize::try_from(length).ok()?)
}

fn read_time(tag: u8, text: &str) -> Option<Timestamp> {
    let digits = text.strip_suffix('Z').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    let (century, rest) = match (tag, digits.len()) {
        // Two-digit years below 50 are of this century.
        (UTC_TIME, 12) => (if digits < "50" { "20" } else { "19" }, digits),
        (GENERALIZED_TIME, 14) => digits.split_at(2),
        _ => return None,
    };
    let pair = |at: usize| &rest[2 * at..2 * at + 2];
    let [year, month, day, hour, minute, second] = [0, 1, 2, 3, 4, 5].map(pair);
    format!("{century}{year}-{month}-{day}T{hour}:{minute}:{second}Z").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_time_are_read() {
        for (tag, text, expected) in [
            (UTC_TIME, "261122235959Z", Some("2026-11-22T23:59:59.000Z")),
            (UTC_TIME, "491231000000Z", Some("2049-12-31T00:00:00.000Z")),
            (UTC_TIME, "500101000000Z", Some("1950-01-01T00:00:00.000Z")),
            (GENERALIZED_TIME, "20501231000000Z", Some("2050-12-31T00:00:00.000Z")),
            (GENERALIZED_TIME, "261122235959Z", None),
            (UTC_TIME, "2611222359Z", None),
            (UTC_TIME, "26112223595Z", None),
            (UTC_TIME, "261322235959Z", None),
        ] {
            assert_eq!(read_time(tag, text).map(|time| time.to_string()).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_certificate_has_no_end() {
        for bytes in [&b""[..], b"\x30", b"\x30\x80", b"\x30\x02\x30\x00", b"\x30\x84\xff\xff\xff\xff", b"text"] {
            assert_eq!(not_after(bytes), None, "{bytes:?}");
        }
    }
}
