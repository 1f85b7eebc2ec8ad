//! Passwords: their rules and hashes.
//!
//! Argon2id (RFC 9106) with the parameters OWASP recommends: 19 MiB, two passes, one lane. Both functions take tens of
//! milliseconds on purpose; call them on a thread that may block.

#[cfg(feature = "passwords")]
use argon2::Argon2;
#[cfg(feature = "passwords")]
use argon2::password_hash::phc::PasswordHash;
#[cfg(feature = "passwords")]
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};

use crate::violation::{FieldCode, Violations};

/// The shortest password that can be set, in characters (contract section 2.3).
pub const MIN_LENGTH: u64 = 12;
/// The longest password that can be set, in characters.
pub const MAX_LENGTH: u64 = 200;
/// The longest password that is compared, in characters; bounds the work of a sign-in. Longer than what can be set, so
/// that a slightly too long one is a wrong password and not a malformed request.
pub const MAX_COMPARED: u64 = 1024;

/// The 10 000 most common passwords that are long enough to be set, in lower case, in order.
const COMMONEST: &[&str] = &[
    "000000000000",
    "111111111111",
    "112233445566",
    "123123123123",
    "123412341234",
    "123456123456",
    "123456654321",
    "1234567890123",
    "1234567890ab",
    "1234567890qwerty",
    "123456789123",
    "123456789987654321",
    "123456789abc",
    "123456789qwe",
    "123456789qwerty",
    "123456qwerty",
    "123qweasdzxc",
    "1q2w3e4r5t6y",
    "1q2w3e4r5t6y7u",
    "1qaz2wsx3edc",
    "1qaz2wsx3edc4rfv",
    "1qazxsw23edc",
    "23176djivanfros",
    "aaaaaaaaaaaa",
    "admin18533362",
    "adminadminadmin",
    "administrator",
    "administrator1",
    "basketball12",
    "businessbabe",
    "changemechangeme",
    "chickenwing101",
    "contortionist",
    "counterstrike",
    "dkflbvbhjdbx",
    "dkflbvbhjdyf",
    "domainlock2005",
    "finalfantasy",
    "fkmnthyfnbdf",
    "flvbybcnhfnjh",
    "gfhjkmgfhjkm",
    "ghbdtnrfrltkf",
    "ghhh47hj7649",
    "ghjcnjgfhjkm",
    "ghjcnjghjcnj",
    "hd764nw5d7e1vb1",
    "iloveyou1234",
    "justinbieber",
    "leavemealone",
    "letmeinletmein",
    "mailcreated5240",
    "masterbaiting",
    "masterbating",
    "masturbation",
    "maurolarastefy",
    "momsanaladventure",
    "needforspeed",
    "newproject2004",
    "password1234",
    "password12345",
    "password123456",
    "passwordpassword",
    "polniypizdec0211",
    "pornographic",
    "q1w2e3r4t5y6",
    "qazwsxedc123",
    "qazwsxedcrfv",
    "qazwsxedcrfvtgb",
    "qweasdzxc123",
    "qwerasdfzxcv",
    "qwerty123456",
    "qwerty1234567",
    "qwertyqwerty",
    "qwertyuiop123",
    "sojdlg123aljg",
    "sonyericsson",
    "unbelievable",
    "vfvfvskfhfve",
    "websolutions",
    "welcome12345",
    "zaq1xsw2cde3",
    "zxcasdqwe123",
];

/// Adds the violations of a new password under this pointer: of its length, and of being too common.
pub fn check_new(violations: &mut Violations, pointer: &str, password: &str) {
    let length = password.chars().count() as u64;
    if length < MIN_LENGTH {
        violations.add(pointer, FieldCode::TooShort, format!("at least {MIN_LENGTH} characters"));
    } else if length > MAX_LENGTH {
        violations.add(pointer, FieldCode::TooLong, format!("at most {MAX_LENGTH} characters"));
    } else if COMMONEST.binary_search(&password.to_lowercase().as_str()).is_ok() {
        violations.add(pointer, FieldCode::NotAllowed, "is one of the commonest passwords; choose another");
    }
}

/// A hash that no known password has. Comparing with it takes as long as with any other.
pub const NOBODYS: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Returns the hash of a password in PHC form.
#[cfg(feature = "passwords")]
pub fn hash(password: &str, salt: [u8; 16]) -> Result<String, argon2::password_hash::Error> {
    Argon2::default().hash_password_with_salt(password.as_bytes(), &salt).map(|hash| hash.to_string())
}

/// True if `hash` was made from `password`. A hash that does not parse matches nothing.
#[cfg(feature = "passwords")]
pub fn matches(password: &str, hash: &str) -> bool {
    PasswordHash::new(hash).is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok())
}

#[cfg(all(test, feature = "passwords"))]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_password_matches() {
        let stored = hash("correct horse", [7; 16]).unwrap();
        assert!(stored.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{stored}");
        assert!(matches("correct horse", &stored));
        assert!(!matches("correct horse ", &stored));
        assert!(!matches("", &stored));
        assert!(!matches("correct horse", "not a hash"));
    }

    #[test]
    fn a_new_password_is_long_enough_and_not_everybodys() {
        assert!(COMMONEST.is_sorted());
        let codes = |password: &str| {
            let mut violations = Violations::new();
            check_new(&mut violations, "/password", password);
            violations.as_slice().iter().map(|one| one.code).collect::<Vec<_>>()
        };
        assert_eq!(codes("elevenchars"), [FieldCode::TooShort]);
        assert_eq!(codes("twelve chars"), []);
        assert_eq!(codes(&"ü".repeat(200)), []);
        assert_eq!(codes(&"ü".repeat(201)), [FieldCode::TooLong]);
        assert_eq!(codes("QWERTY123456"), [FieldCode::NotAllowed]);
    }

    #[test]
    fn nobodys_hash_costs_what_others_cost() {
        let stored = hash("correct horse", [7; 16]).unwrap();
        let parameters = |hash: &str| hash.split('$').take(4).map(ToOwned::to_owned).collect::<Vec<_>>();
        assert_eq!(parameters(NOBODYS), parameters(&stored));
        assert_eq!(NOBODYS.len(), stored.len());
        assert!(PasswordHash::new(NOBODYS).is_ok());
        assert!(!matches("", NOBODYS));
    }
}
