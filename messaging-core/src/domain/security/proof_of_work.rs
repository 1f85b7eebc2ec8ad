//! Proof of work: a number that took some computing to find and takes none to check.
//!
//! Contract section 23, setting `pow_bits`. It makes posting to a form a thousand times cost something.

/// The most bits that can be asked for; each doubles the work, and a telephone takes about a minute for this many.
pub const MAX_BITS: u32 = 24;

/// Digits of a number at most.
const MAX_DIGITS: usize = 16;

/// True if the SHA-256 of the challenge, a colon and the number begins with this many zero bits.
pub fn is_proved(challenge: &str, number: &str, bits: u32) -> bool {
    if number.is_empty() || number.len() > MAX_DIGITS || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let digest = ring::digest::digest(&ring::digest::SHA256, format!("{challenge}:{number}").as_bytes());
    leading_zeros(digest.as_ref()) >= bits
}

fn leading_zeros(bytes: &[u8]) -> u32 {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let rest = bytes.get(zeros).map_or(0, |byte| byte.leading_zeros());
    u32::try_from(zeros).unwrap_or(u32::MAX).saturating_mul(8).saturating_add(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_counted_from_the_first_bit() {
        for (bytes, zeros) in [
            (&[0x80, 0][..], 0),
            (&[0x7f], 1),
            (&[0x01, 0], 7),
            (&[0, 0x80], 8),
            (&[0, 0x10], 11),
            (&[0, 0, 1], 23),
            (&[0, 0, 0], 24),
        ] {
            assert_eq!(leading_zeros(bytes), zeros, "{bytes:?}");
        }
    }

    #[test]
    fn a_number_proves_as_many_bits_as_it_has_zeros() {
        let found = (0..10_000_u32).map(|n| n.to_string()).find(|n| is_proved("challenge", n, 8)).unwrap();
        assert!((0..=8).all(|bits| is_proved("challenge", &found, bits)));
        assert!(!is_proved("challenge", &found, 33));
        let others = (0..200_u32).filter(|n| is_proved("challenge", &n.to_string(), 1)).count();
        assert!((60..140).contains(&others), "{others} of 200 have one zero");
        assert!(is_proved("x", "1", 0));
    }

    #[test]
    fn what_is_no_number_proves_nothing() {
        for bad in ["", " 1", "-1", "+1", "1a", "1.0", "٣", "12345678901234567"] {
            assert!(!is_proved("x", bad, 0), "{bad}");
        }
    }
}
