//! Codes of a second factor, derived from a shared secret and the time: TOTP (RFC 6238) over HOTP (RFC 4226).
//!
//! HMAC-SHA-1, six digits and steps of 30 seconds, because every authenticator app supports these. A code is valid in
//! its own step and in the one before and after, since clocks differ and typing takes time. It is valid once: a caller
//! who stores the step of the last valid code accepts later ones only (RFC 6238, section 5.2).

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use ring::hmac;

use crate::entropy::Entropy;
use crate::time::Timestamp;

/// Length of a time step in seconds.
pub const STEP_SECONDS: u64 = 30;

/// Number of digits of a code.
pub const DIGITS: usize = 6;

/// One more than the largest code.
const MODULUS: u32 = 1_000_000;

/// Number of steps before and after the current one whose codes are valid.
const SKEW: u64 = 1;

/// Length of a secret in bytes: 160 bits, the length that RFC 4226 recommends (section 4).
const SECRET_BYTES: usize = 20;

/// The characters of base32 (RFC 4648), in which apps accept secrets.
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Characters that are percent-encoded in the issuer and the account of an `otpauth` URI.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The secret that an authenticator app and the server share.
#[derive(Clone, PartialEq, Eq)]
pub struct TotpSecret([u8; SECRET_BYTES]);

impl TotpSecret {
    /// Returns a new secret.
    pub fn generate(entropy: &dyn Entropy) -> Self {
        let mut bytes = [0; SECRET_BYTES];
        entropy.fill(&mut bytes);
        Self(bytes)
    }

    /// Parses a secret from its text in base32; `None` for any other text.
    pub fn from_base32(text: &str) -> Option<Self> {
        let mut bytes = Vec::with_capacity(SECRET_BYTES);
        let (mut bits, mut held) = (0_u32, 0_u32);
        for character in text.bytes() {
            let value = BASE32.iter().position(|known| *known == character)?;
            bits = bits << 5 | u32::try_from(value).ok()?;
            held += 5;
            if held >= 8 {
                held -= 8;
                bytes.push(u8::try_from(bits >> held & 0xFF).ok()?);
            }
        }
        Some(Self(bytes.try_into().ok()?))
    }

    /// Returns the secret in base32 without padding, as people type it and apps accept it.
    pub fn to_base32(&self) -> String {
        // 20 bytes are exactly 32 characters.
        let (mut text, mut bits, mut held) = (String::new(), 0_u32, 0_u32);
        for byte in self.0 {
            bits = bits << 8 | u32::from(byte);
            held += 8;
            while held >= 5 {
                held -= 5;
                text.push(char::from(BASE32[(bits >> held & 31) as usize]));
            }
        }
        text
    }

    /// Returns the `otpauth` URI that apps scan as a QR code. `issuer` names the installation, `account` the person.
    pub fn uri(&self, issuer: &str, account: &str) -> String {
        let (issuer, account) = (utf8_percent_encode(issuer, ENCODED), utf8_percent_encode(account, ENCODED));
        let secret = self.to_base32();
        format!(
            "otpauth://totp/{issuer}:{account}?secret={secret}&issuer={issuer}&algorithm=SHA1&digits={DIGITS}&period={STEP_SECONDS}"
        )
    }

    /// Returns the time step of a code that is valid at `now`: the current step, the one before or the one after, but
    /// later than `used`, the step of the last accepted code.
    pub fn step_of(&self, code: &str, now: Timestamp, used: Option<u64>) -> Option<u64> {
        let code = number(code)?;
        let present = step_at(now);
        let first = present.saturating_sub(SKEW).max(used.map_or(0, |used| used.saturating_add(1)));
        (first..=present + SKEW).find(|step| self.code(*step) == code)
    }

    /// Returns the code that an app shows at `now`.
    pub fn code_at(&self, now: Timestamp) -> String {
        format!("{:0DIGITS$}", self.code(step_at(now)))
    }

    /// Returns the code of a step (RFC 4226, section 5.3).
    fn code(&self, step: u64) -> u32 {
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &self.0);
        let mac = hmac::sign(&key, &step.to_be_bytes());
        let mac = mac.as_ref();
        let place = usize::from(mac[mac.len() - 1] & 0xF);
        let word = mac[place..place + 4].iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
        (word & 0x7FFF_FFFF) % MODULUS
    }
}

impl fmt::Debug for TotpSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TotpSecret(…)")
    }
}

/// Returns true if a text is six ASCII digits, apart from white space.
pub fn is_code(text: &str) -> bool {
    number(text).is_some()
}

/// Parses a code into a number; `None` if the text is not six ASCII digits, apart from white space.
fn number(text: &str) -> Option<u32> {
    let digits: String = text.chars().filter(|character| !character.is_whitespace()).collect();
    let is_code = digits.len() == DIGITS && digits.bytes().all(|digit| digit.is_ascii_digit());
    if is_code { digits.parse().ok() } else { None }
}

fn step_at(now: Timestamp) -> u64 {
    u64::try_from(now.as_seconds()).unwrap_or(0) / STEP_SECONDS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the secret of the RFC's test vectors.
    fn secret() -> TotpSecret {
        TotpSecret(*b"12345678901234567890")
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    #[test]
    fn codes_are_those_of_the_standard() {
        // RFC 6238, appendix B: the last six of its eight digits.
        for (seconds, code) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] {
            let step = u64::try_from(seconds / 30).unwrap();
            assert_eq!(secret().step_of(code, at(seconds), None), Some(step), "{seconds}");
            assert_eq!(secret().code_at(at(seconds)), code);
        }
        // RFC 4226, appendix D.
        let codes: Vec<_> = (0..10).map(|step| secret().code(step)).collect();
        let expected = [755_224, 287_082, 359_152, 969_429, 338_314, 254_676, 287_922, 162_583, 399_871, 520_489];
        assert_eq!(codes, expected);
    }

    #[test]
    fn a_code_is_good_for_one_step_either_side_and_once() {
        let code = "005924";
        let step = 1_234_567_890 / 30;
        let of = |seconds, used| secret().step_of(code, at(seconds), used);
        let begin = 1_234_567_890 / 30 * 30;
        for (seconds, good) in [(begin - 31, false), (begin - 30, true), (begin + 59, true), (begin + 60, false)] {
            assert_eq!(of(seconds, None), good.then_some(step), "{}", seconds - begin);
        }
        assert_eq!(of(begin, Some(step - 1)), Some(step));
        for used in [step, step + 1, u64::MAX] {
            assert_eq!(of(begin, Some(used)), None, "used {used}");
        }
        assert_eq!(of(-1, None), None);
    }

    #[test]
    fn other_texts_are_no_codes() {
        assert_eq!(secret().step_of(" 005 924 ", at(1_234_567_890), None), Some(1_234_567_890 / 30));
        for text in ["", "05924", "5924", "0005924", "+05924", "00592a", "００５９２４"] {
            assert!(!is_code(text), "{text}");
            assert_eq!(secret().step_of(text, at(1_234_567_890), None), None, "{text}");
        }
    }

    #[test]
    fn secrets_are_written_in_base32() {
        let text = secret().to_base32();
        assert_eq!(text, "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
        assert_eq!(TotpSecret::from_base32(&text), Some(secret()));
        for other in ["", "GEZDGNBV", "gezdgnbvgy3tqojqgezdgnbvgy3tqojq", "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJ1"] {
            assert_eq!(TotpSecret::from_base32(other), None, "{other}");
        }
        assert_eq!(
            secret().uri("mail.example.com", "ann+x@example.com"),
            "otpauth://totp/mail.example.com:ann%2Bx%40example.com?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ\
             &issuer=mail.example.com&algorithm=SHA1&digits=6&period=30"
        );
        assert_eq!(format!("{:?}", secret()), "TotpSecret(…)");
    }
}
