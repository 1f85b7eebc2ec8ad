//! Recovery codes: each signs a person in once who has lost their second factor.
//!
//! A code has 80 random bits, so that its digest is as good as a slow hash. Its characters are those of Crockford's
//! base32, and similar ones are read as the same.

use crate::domain::security::api_key::random_text;
use crate::domain::security::digest::Digest;
use crate::domain::security::secret::Secret;
use crate::entropy::Entropy;
use crate::ids::UserId;

/// Number of codes that a person has at a time.
pub const COUNT: usize = 10;

/// Characters of a code without separators.
const LENGTH: usize = 16;

/// Characters between two hyphens.
const GROUP: usize = 4;

const ALPHABET: &[u8] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Returns new codes of a person, to be shown once, and their digests, to be stored.
pub fn generate(user: UserId, entropy: &dyn Entropy) -> (Vec<Secret>, Vec<Digest>) {
    let codes: Vec<_> = (0..COUNT).map(|_| random_text(entropy, ALPHABET, LENGTH)).collect();
    let digests = codes.iter().map(|code| digest(user, code)).collect();
    (codes.iter().map(|code| grouped(code).into()).collect(), digests)
}

/// Returns the digest of a typed text, if it has the form of a code; it depends on the person too.
pub fn digest_of(user: UserId, typed: &str) -> Option<Digest> {
    let is_between = |character: &char| character.is_whitespace() || *character == '-';
    let mut code = String::with_capacity(LENGTH);
    for character in typed.chars().filter(|character| !is_between(character)) {
        let character = match character.to_ascii_lowercase() {
            'o' => '0',
            'i' | 'l' => '1',
            other => other,
        };
        if code.len() == LENGTH || !u8::try_from(character).is_ok_and(|octet| ALPHABET.contains(&octet)) {
            return None;
        }
        code.push(character);
    }
    (code.len() == LENGTH).then(|| digest(user, &code))
}

fn digest(user: UserId, code: &str) -> Digest {
    Digest::of(&format!("recovery {user} {code}"))
}

/// Returns a code with a hyphen between its groups.
fn grouped(code: &str) -> String {
    let mut text = String::with_capacity(LENGTH + LENGTH / GROUP);
    for (place, character) in code.chars().enumerate() {
        if place > 0 && place % GROUP == 0 {
            text.push('-');
        }
        text.push(character);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::SystemEntropy;
    use crate::ids::Id as _;

    #[test]
    fn codes_are_read_as_people_type_them() {
        let user = UserId::from_bytes([1; 16]);
        let (codes, digests) = generate(user, &SystemEntropy::default());
        assert_eq!((codes.len(), digests.len()), (COUNT, COUNT));
        for (code, digest) in codes.iter().zip(&digests) {
            let code = code.expose();
            assert!(code.len() == 19 && code.split('-').all(|group| group.len() == 4), "{code}");
            for typed in
                [code.to_owned(), code.to_uppercase(), code.replace('-', ""), format!(" {code} ").replace('0', "O")]
            {
                assert!(digest_of(user, &typed) == Some(*digest), "{typed}");
            }
            assert!(digest_of(UserId::from_bytes([2; 16]), code) != Some(*digest), "codes are a person's own");
        }
    }

    #[test]
    fn other_texts_are_no_codes() {
        let user = UserId::from_bytes([1; 16]);
        for text in
            ["", "123456", "0000-0000-0000-000", "0000-0000-0000-00000", "0000-0000-0000-000u", "0000-0000-0000-000é"]
        {
            assert!(digest_of(user, text).is_none(), "{text}");
        }
        assert!(digest_of(user, "0000-0000-0000-000l") == digest_of(user, "0000000000000001"));
    }
}
