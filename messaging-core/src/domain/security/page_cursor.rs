//! Cursors of listings: sealed, and bound to the listing that they come from.
//!
//! Contract section 1.5. A cursor is the key of the last item of a page, which may be an internal number,
//! under deterministic authenticated encryption: the synthetic-IV construction with HMAC-SHA256 as both the
//! pseudorandom function and the keystream. The scope (workspace, operation, path, filters) is authenticated
//! with it. Nobody without the key can make a cursor, change one, use one elsewhere or read what it holds.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use subtle::ConstantTimeEq as _;

use crate::domain::security::secret_key::KeyRing;

/// Length of the key of an item, in octets.
const KEY_LENGTH: usize = 16;

/// Length of the synthetic IV, which is also the MAC, in octets.
const TAG_LENGTH: usize = 16;

/// Listing that a cursor is bound to, as a sequence of fields. Each is written after its length, so that no two scopes
/// become the same octets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CursorScope(Vec<u8>);

impl CursorScope {
    /// Adds a field; the order of the fields matters.
    #[must_use]
    pub fn field(mut self, field: &[u8]) -> Self {
        self.0.extend((field.len() as u64).to_be_bytes());
        self.0.extend(field);
        self
    }
}

/// Seals cursors with the first key of a ring, and opens those that any of them sealed.
///
/// Invariant: at least one key.
pub struct CursorKey(Vec<DerivedKeys>);

/// Keys for cursors that are derived from one secret key.
struct DerivedKeys {
    mac: hmac::Key,
    keystream: hmac::Key,
}

impl CursorKey {
    /// The key for cursors, derived from the 32 bytes of a secret key.
    pub fn new(secret: &[u8; 32]) -> Self {
        Self(vec![DerivedKeys::of(secret)])
    }

    /// The key for cursors, derived from the secret keys of an installation.
    pub fn of(ring: &KeyRing) -> Self {
        Self(ring.keys().iter().map(|key| DerivedKeys::of(key.as_bytes())).collect())
    }

    /// The cursor for the items after the one with this key.
    pub fn seal(&self, scope: &CursorScope, key: [u8; KEY_LENGTH]) -> String {
        let tag = self.0[0].tag(scope, &key);
        let mut octets = [0; TAG_LENGTH + KEY_LENGTH];
        octets[..TAG_LENGTH].copy_from_slice(&tag);
        octets[TAG_LENGTH..].copy_from_slice(&self.0[0].xor_with_keystream(&tag, key));
        URL_SAFE_NO_PAD.encode(octets)
    }

    /// The key in a cursor that [`CursorKey::seal`] made for the same scope; `None` for any other text.
    pub fn open(&self, scope: &CursorScope, cursor: &str) -> Option<[u8; KEY_LENGTH]> {
        let octets: [u8; TAG_LENGTH + KEY_LENGTH] = URL_SAFE_NO_PAD.decode(cursor).ok()?.try_into().ok()?;
        let (tag, masked) = octets.split_first_chunk::<TAG_LENGTH>()?;
        let masked = masked.try_into().ok()?;
        self.0.iter().find_map(|derived| {
            let key = derived.xor_with_keystream(tag, masked);
            bool::from(derived.tag(scope, &key).ct_eq(tag)).then_some(key)
        })
    }
}

impl DerivedKeys {
    fn of(secret: &[u8; 32]) -> Self {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let derive = |label: &[u8]| hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&secret, label).as_ref());
        Self { mac: derive(b"messaging/cursors/1/mac"), keystream: derive(b"messaging/cursors/1/keystream") }
    }

    /// The MAC over the key of an item and the scope, which is also the synthetic IV.
    fn tag(&self, scope: &CursorScope, key: &[u8; KEY_LENGTH]) -> [u8; TAG_LENGTH] {
        let mut context = hmac::Context::with_key(&self.mac);
        // The key has a fixed length and stands first, so where the scope begins is plain.
        context.update(key);
        context.update(&scope.0);
        first(context.sign().as_ref())
    }

    /// Encrypts the key of an item with the keystream that follows from the tag; applied again, decrypts it.
    fn xor_with_keystream(&self, tag: &[u8; TAG_LENGTH], key: [u8; KEY_LENGTH]) -> [u8; KEY_LENGTH] {
        let stream: [u8; KEY_LENGTH] = first(hmac::sign(&self.keystream, tag).as_ref());
        std::array::from_fn(|at| key[at] ^ stream[at])
    }
}

/// The first `N` octets of a SHA-256 digest.
fn first<const N: usize>(digest: &[u8]) -> [u8; N] {
    digest[..N].try_into().expect("SHA-256 has 32 bytes")
}

impl fmt::Debug for CursorKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CursorKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::security::secret_key::SecretKey;

    fn scope(fields: &[&str]) -> CursorScope {
        fields.iter().fold(CursorScope::default(), |scope, field| scope.field(field.as_bytes()))
    }

    #[test]
    fn opens_only_in_its_scope_with_its_key() {
        let (key, listing) = (CursorKey::new(&[7; 32]), scope(&["a", "bc"]));
        let cursor = key.seal(&listing, [1; 16]);
        assert_eq!(cursor.len(), 43);
        assert_eq!(key.open(&listing, &cursor), Some([1; 16]));
        assert_eq!(CursorKey::new(&[8; 32]).open(&listing, &cursor), None);
        for other in [&["ab", "c"][..], &["a", "bc", ""], &["bc", "a"], &["a"], &[]] {
            assert_eq!(key.open(&scope(other), &cursor), None, "{other:?}");
        }
        for text in ["", "x", &cursor[1..], &format!("{cursor}A"), &format!("{cursor}=")] {
            assert_eq!(key.open(&listing, text), None, "{text}");
        }
    }

    #[test]
    fn a_cursor_of_an_older_key_still_opens() {
        let (old, new) = (SecretKey::from_bytes([7; 32]), SecretKey::from_bytes([8; 32]));
        let both = CursorKey::of(&KeyRing::new([new, old]).unwrap());
        let listing = scope(&["a"]);
        assert_eq!(both.open(&listing, &CursorKey::new(&[7; 32]).seal(&listing, [1; 16])), Some([1; 16]));
        assert_eq!(both.seal(&listing, [1; 16]), CursorKey::new(&[8; 32]).seal(&listing, [1; 16]));
    }

    #[test]
    fn neighbors_look_unlike() {
        let key = CursorKey::new(&[7; 32]);
        let octets = |n: u128| URL_SAFE_NO_PAD.decode(key.seal(&scope(&["a"]), n.to_be_bytes())).unwrap();
        let differing = |a: &[u8], b: &[u8]| a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>();
        // Of 256 random bits 128 differ on average, with a standard deviation of 8: 80 is six of these below.
        for n in 0..64 {
            assert!(differing(&octets(n), &octets(n + 1)) > 80, "{n}");
        }
    }

    proptest! {
        #[test]
        fn any_altered_cursor_is_refused(item: [u8; 16], at in 0..32_usize, bit in 0..8_u32) {
            let (key, listing) = (CursorKey::new(&[7; 32]), scope(&["a"]));
            let cursor = key.seal(&listing, item);
            prop_assert_eq!(key.open(&listing, &cursor), Some(item));
            let mut octets = URL_SAFE_NO_PAD.decode(&cursor).unwrap();
            octets[at] ^= 1 << bit;
            prop_assert_eq!(key.open(&listing, &URL_SAFE_NO_PAD.encode(octets)), None);
        }
    }
}
