//! Secrets at rest: sealed under the key file before they reach the store.
//!
//! AES-256-GCM with a random 96-bit nonce. What is sealed is bound to the place it belongs to, so that
//! a sealed value copied into another row does not open.
//!
//! A database keeps a check value, a known text sealed under its key. Whoever starts with another key is told
//! at once ([`Vault::admit`]), and not by mail that leaves unsigned.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use messaging_core::changes::{Changes, Write};
use messaging_core::domain::secret_key::SEALED_MARKER;
use messaging_core::ports::clock::Entropy;
use messaging_core::ports::store::{CommitError, Priority, Store, StoreError};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

/// The place of the check value.
const CHECK_PLACE: &str = "installation/key-check";

/// What the check value says when it is opened.
const CHECK_TEXT: &str = "this key seals the secrets of this database";

/// Secrets that are tried where there is no check value yet: those of a database of an earlier version.
const TRIED: usize = 16;

/// A key was not admitted to a store.
#[derive(Debug, thiserror::Error)]
pub enum KeyRefused {
    /// The secrets of the database are sealed under another key.
    #[error("the secret key is not the one that the secrets of this database are sealed under")]
    WrongKey,
    /// The database could not be asked.
    #[error("failed to check the secret key")]
    Store(#[from] StoreError),
}

/// Seals and opens secrets.
pub struct Vault(LessSafeKey);

/// The sealed text was made with another key file, for another place, or was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a stored secret does not open; was the key file exchanged?")]
pub struct Unopenable;

impl Vault {
    /// A vault over the 32 bytes of the key file.
    pub fn new(key: &[u8; 32]) -> Self {
        Self(LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).expect("the key has the right length")))
    }

    /// Makes sure that this is the vault of the store's secrets. A store without a check value gets one, if all
    /// secrets that are tried open: it is new, or was written by an earlier version.
    pub async fn admit(&self, store: &dyn Store, entropy: &dyn Entropy) -> Result<(), KeyRefused> {
        let mut known = store.key_check().await?;
        if known.is_none() {
            let mut secrets = store.sealed_secrets(TRIED).await?.into_iter();
            if secrets.any(|secret| self.open(&secret.place, &secret.sealed).is_err()) {
                return Err(KeyRefused::WrongKey);
            }
            let check = self.seal(CHECK_PLACE, CHECK_TEXT, entropy);
            let changes = Changes::from_iter([Write::PutKeyCheck(check)]);
            match store.commit(changes, Priority::Foreground).await {
                Ok(()) => return Ok(()),
                // Another program was faster; its key counts.
                Err(CommitError::Conflict) => known = store.key_check().await?,
                Err(error) => return Err(error.into_store_error().into()),
            }
        }
        let opened = known.map(|check| self.open(CHECK_PLACE, &check));
        if opened == Some(Ok(CHECK_TEXT.to_owned())) { Ok(()) } else { Err(KeyRefused::WrongKey) }
    }

    /// Seals a secret for a place, such as `channel/wsp_…/email/password`.
    pub fn seal(&self, place: &str, secret: &str, entropy: &dyn Entropy) -> String {
        let mut nonce = [0_u8; NONCE_LEN];
        entropy.fill(&mut nonce);
        let mut sealed = secret.as_bytes().to_vec();
        self.0
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(place), &mut sealed)
            .expect("secrets are shorter than the cipher's limit");
        sealed.splice(0..0, nonce);
        format!("{SEALED_MARKER}{}", STANDARD.encode(sealed))
    }

    /// Opens what [`Vault::seal`] made for the same place.
    pub fn open(&self, place: &str, sealed: &str) -> Result<String, Unopenable> {
        let coded = sealed.strip_prefix(SEALED_MARKER).ok_or(Unopenable)?;
        let mut bytes = STANDARD.decode(coded).map_err(|_| Unopenable)?;
        let nonce: [u8; NONCE_LEN] = bytes.get(..NONCE_LEN).and_then(|n| n.try_into().ok()).ok_or(Unopenable)?;
        let opened = self
            .0
            .open_in_place(Nonce::assume_unique_for_key(nonce), Aad::from(place), &mut bytes[NONCE_LEN..])
            .map_err(|_| Unopenable)?;
        String::from_utf8(opened.to_vec()).map_err(|_| Unopenable)
    }
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
}
