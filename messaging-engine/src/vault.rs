//! Secrets at rest: sealed under the key file before they reach the store.
//!
//! AES-256-GCM with a random 96-bit nonce. A sealed secret is bound to the place it belongs to, so that it does not
//! open after it was copied into another row.
//!
//! A database keeps a check value, a known text sealed under its key. A process that starts with another key fails at
//! once ([`lead`]), instead of sending unsigned mail.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use messaging_core::changes::{Changes, Write};
use messaging_core::domain::security::secret_key::{KeyRing, SEALED_MARKER, SecretKey};
use messaging_core::ports::clock::Entropy;
use messaging_core::ports::store::{CommitError, Priority, Store, StoreError};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

/// Place of the check value.
const CHECK_PLACE: &str = "installation/key-check";

/// Text of the check value.
const CHECK_TEXT: &str = "this key seals the secrets of this database";

/// A key was not admitted to a store.
#[derive(Debug, thiserror::Error)]
pub enum KeyRefused {
    /// The secrets of the database are sealed under another key.
    #[error(
        "the secret key is not the one that encrypts the secrets of this database; use the secret key file of this installation"
    )]
    WrongKey,
    /// The database could not be read.
    #[error("failed to check the secret key")]
    Store(#[from] StoreError),
}

/// Seals secrets under the first key of a ring, and opens those that any of them sealed.
///
/// Invariant: at least one key.
pub struct Vault(Vec<LessSafeKey>);

/// The sealed text was made with another key file, for another place, or was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a stored secret cannot be decrypted; was the key file replaced?")]
pub struct Unopenable;

/// Finds the key of a ring that the secrets of a store are sealed under, and puts it first. A store without a check
/// value is new and gets one of the first key.
pub async fn lead(ring: KeyRing, store: &dyn Store, entropy: &dyn Entropy) -> Result<KeyRing, KeyRefused> {
    let mut known = store.key_check().await?;
    if known.is_none() {
        let changes = Changes::from_iter([Write::PutKeyCheck(check_value(ring.first(), entropy))]);
        match store.commit(changes, Priority::Foreground).await {
            Ok(()) => return Ok(ring),
            // Another program was faster; its key counts.
            Err(CommitError::Conflict) => known = store.key_check().await?,
            Err(error) => return Err(error.into_store_error().into()),
        }
    }
    let check = known.ok_or(KeyRefused::WrongKey)?;
    let place = ring.keys().iter().position(|key| is_checked_by(key, &check)).ok_or(KeyRefused::WrongKey)?;
    Ok(ring.led_by(place))
}

/// Returns the check value of a key.
pub(crate) fn check_value(key: &SecretKey, entropy: &dyn Entropy) -> String {
    Vault::new(key.as_bytes()).seal(CHECK_PLACE, CHECK_TEXT, entropy)
}

/// Returns true if a check value was made with a key.
pub(crate) fn is_checked_by(key: &SecretKey, check: &str) -> bool {
    Vault::new(key.as_bytes()).open(CHECK_PLACE, check).is_ok_and(|text| text == CHECK_TEXT)
}

impl Vault {
    /// A vault over the 32 bytes of one secret key.
    pub fn new(key: &[u8; 32]) -> Self {
        Self(vec![sealing_key(key)])
    }

    /// A vault over the secret keys of an installation.
    pub fn of(ring: &KeyRing) -> Self {
        Self(ring.keys().iter().map(|key| sealing_key(key.as_bytes())).collect())
    }

    /// Seals a secret for a place, such as `channel/wsp_…/email/password`.
    pub fn seal(&self, place: &str, secret: &str, entropy: &dyn Entropy) -> String {
        let mut nonce = [0_u8; NONCE_LEN];
        entropy.fill(&mut nonce);
        let mut sealed = secret.as_bytes().to_vec();
        self.0[0]
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(place), &mut sealed)
            .expect("secrets are shorter than the cipher's limit");
        sealed.splice(0..0, nonce);
        format!("{SEALED_MARKER}{}", STANDARD.encode(sealed))
    }

    /// Opens a secret that [`Vault::seal`] sealed for the same place, also under an older key.
    pub fn open(&self, place: &str, sealed: &str) -> Result<String, Unopenable> {
        self.0.iter().find_map(|key| opened_by(key, place, sealed)).ok_or(Unopenable)
    }

    /// Seals the same secret under the first key; `None` if it is already.
    pub(crate) fn reseal(
        &self,
        place: &str,
        sealed: &str,
        entropy: &dyn Entropy,
    ) -> Result<Option<String>, Unopenable> {
        if opened_by(&self.0[0], place, sealed).is_some() {
            return Ok(None);
        }
        Ok(Some(self.seal(place, &self.open(place, sealed)?, entropy)))
    }
}

fn sealing_key(key: &[u8; 32]) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).expect("the key has the right length"))
}

fn opened_by(key: &LessSafeKey, place: &str, sealed: &str) -> Option<String> {
    let mut bytes = STANDARD.decode(sealed.strip_prefix(SEALED_MARKER)?).ok()?;
    let nonce: [u8; NONCE_LEN] = bytes.get(..NONCE_LEN)?.try_into().ok()?;
    let opened =
        key.open_in_place(Nonce::assume_unique_for_key(nonce), Aad::from(place), &mut bytes[NONCE_LEN..]).ok()?;
    String::from_utf8(opened.to_vec()).ok()
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Vault(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use messaging_core::ports::clock::SystemEntropy;

    #[test]
    fn opens_only_in_its_place_with_its_key() {
        let entropy = SystemEntropy::default();
        let vault = Vault::new(&[7; 32]);
        let sealed = vault.seal("a", "secret", &entropy);
        assert!(!sealed.contains("secret"));
        assert_eq!(vault.open("a", &sealed), Ok("secret".to_owned()));
        assert_eq!(vault.open("b", &sealed), Err(Unopenable));
        assert_eq!(Vault::new(&[8; 32]).open("a", &sealed), Err(Unopenable));
        assert_eq!(vault.open("a", "secret"), Err(Unopenable));
        assert_ne!(sealed, vault.seal("a", "secret", &entropy));
    }

    #[test]
    fn what_an_older_key_sealed_opens_and_is_sealed_anew_once() {
        let entropy = SystemEntropy::default();
        let (old, new) = (SecretKey::from_bytes([7; 32]), SecretKey::from_bytes([8; 32]));
        let (before, after) = (Vault::new(old.as_bytes()), Vault::new(new.as_bytes()));
        let both = Vault::of(&KeyRing::new([new, old]).unwrap());
        let sealed = before.seal("a", "secret", &entropy);
        assert_eq!(both.open("a", &sealed), Ok("secret".to_owned()));
        assert_eq!(both.open("b", &sealed), Err(Unopenable));
        let anew = both.reseal("a", &sealed, &entropy).unwrap().unwrap();
        assert_eq!(after.open("a", &anew), Ok("secret".to_owned()));
        assert_eq!(before.open("a", &anew), Err(Unopenable));
        assert_eq!(both.reseal("a", &anew, &entropy), Ok(None));
        assert_eq!(after.reseal("a", &sealed, &entropy), Err(Unopenable));
    }
}
