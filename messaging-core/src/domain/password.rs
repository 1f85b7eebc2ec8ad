//! Passwords: their rules, and how they are stored.
//!
//! Argon2id (RFC 9106) with the parameters OWASP recommends: 19 MiB, two passes, one lane. Both
//! functions take tens of milliseconds on purpose; call them where that blocks nobody.

#[cfg(feature = "passwords")]
use argon2::Argon2;
#[cfg(feature = "passwords")]
use argon2::password_hash::phc::PasswordHash;
#[cfg(feature = "passwords")]
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};

/// The shortest password, in characters (NIST SP 800-63B section 3.1.1.2 asks for no other rule).
pub const MIN_LENGTH: u64 = 8;
/// The longest password, in characters; bounds the work of a sign-in.
pub const MAX_LENGTH: u64 = 1024;

/// A hash that no known password has. Comparing with it takes as long as with anybody's.
pub const NOBODYS: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// The hash of a password in PHC form.
#[cfg(feature = "passwords")]
pub fn hash(password: &str, salt: [u8; 16]) -> Result<String, argon2::password_hash::Error> {
    Argon2::default().hash_password_with_salt(password.as_bytes(), &salt).map(|hash| hash.to_string())
}

/// Whether `password` is the one that `hash` was made of. A hash that does not parse matches nothing.
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
    fn nobodys_hash_costs_what_others_cost() {
        let stored = hash("correct horse", [7; 16]).unwrap();
        let parameters = |hash: &str| hash.split('$').take(4).map(ToOwned::to_owned).collect::<Vec<_>>();
        assert_eq!(parameters(NOBODYS), parameters(&stored));
        assert_eq!(NOBODYS.len(), stored.len());
        assert!(PasswordHash::new(NOBODYS).is_ok());
        assert!(!matches("", NOBODYS));
    }
}
