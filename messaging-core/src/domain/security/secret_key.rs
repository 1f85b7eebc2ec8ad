//! Secret keys of an installation, and the marker of secrets that are sealed under them.

use std::fmt::{self, Write as _};

use ring::hmac;
use serde_json::{Map, Value};

use crate::domain::channel::Channel;
use crate::domain::channel::provider::ROUTES;
use crate::domain::channel::settings::ChannelSettings;
use crate::entropy::Entropy;
use crate::ids::WorkspaceId;

/// Marks a sealed text and the scheme it was sealed with.
pub const SEALED_MARKER: &str = "sealed:1:";

/// The 32 bytes under which secrets are sealed, and by which links in mail are authenticated.
///
/// All nodes of a database have the same. Without it sealed secrets are lost, so it belongs into the backup.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SecretKey([u8; Self::LENGTH]);

impl SecretKey {
    /// Bytes of a key.
    pub const LENGTH: usize = 32;

    /// Returns a key from stored bytes.
    pub const fn from_bytes(bytes: [u8; Self::LENGTH]) -> Self {
        Self(bytes)
    }

    /// Returns a new key. Store it before it is used.
    pub fn generate(entropy: &dyn Entropy) -> Self {
        let mut bytes = [0; Self::LENGTH];
        entropy.fill(&mut bytes);
        Self(bytes)
    }

    /// Returns the 32 bytes of the key, for storing it.
    pub const fn as_bytes(&self) -> &[u8; Self::LENGTH] {
        &self.0
    }

    /// Returns the public name of the key, 16 hexadecimal digits: a MAC that reveals nothing about the key itself.
    pub fn id(&self) -> String {
        let mac = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &self.0), b"messaging/key-id/1");
        mac.as_ref()[..8].iter().fold(String::new(), |mut id, octet| {
            let _ = write!(id, "{octet:02x}");
            id
        })
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(…)")
    }
}

/// The keys of an installation: the first seals and signs, each of them opens and verifies.
///
/// Invariant: 1 to [`KeyRing::MAX_KEYS`] keys, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRing(Vec<SecretKey>);

impl KeyRing {
    /// Maximum number of keys of a ring.
    pub const MAX_KEYS: usize = 32;

    /// Returns a ring of these keys, each counted once; `None` if there is none or too many.
    pub fn new(keys: impl IntoIterator<Item = SecretKey>) -> Option<Self> {
        let mut ring = Vec::new();
        for key in keys {
            if !ring.contains(&key) {
                ring.push(key);
            }
        }
        (1..=Self::MAX_KEYS).contains(&ring.len()).then_some(Self(ring))
    }

    /// Returns the key that seals and signs.
    pub fn first(&self) -> &SecretKey {
        &self.0[0]
    }

    /// Returns all keys, beginning with the one that seals and signs.
    pub fn keys(&self) -> &[SecretKey] {
        &self.0
    }

    /// True if this ring has all keys of another.
    pub fn holds(&self, other: &Self) -> bool {
        other.0.iter().all(|key| self.0.contains(key))
    }

    /// Returns the ring with the key at a position moved to the front.
    #[must_use]
    pub fn led_by(mut self, place: usize) -> Self {
        self.0[..=place].rotate_right(1);
        self
    }

    /// Returns the ring with a key in front; `None` if the ring is full.
    #[must_use]
    pub fn with_first(&self, key: SecretKey) -> Option<Self> {
        Self::new(std::iter::once(key).chain(self.0.iter().copied()))
    }

    /// Returns this ring followed by the keys that only the other has, as far as there is room.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        let more: Vec<_> = other.0.iter().filter(|key| !self.0.contains(key)).copied().collect();
        self.0.extend(more);
        self.0.truncate(Self::MAX_KEYS);
        self
    }

    /// Returns the [ids](SecretKey::id) of the keys, in their order.
    pub fn ids(&self) -> Vec<String> {
        self.0.iter().map(SecretKey::id).collect()
    }
}

impl From<SecretKey> for KeyRing {
    fn from(key: SecretKey) -> Self {
        Self(vec![key])
    }
}

/// True if a text is a sealed secret.
pub fn is_sealed(text: &str) -> bool {
    text.starts_with(SEALED_MARKER)
}

/// Returns the place that a secret setting of a provider is sealed for; the same if the provider stands under another's
/// [`ROUTES`].
pub fn channel_secret_place(workspace: WorkspaceId, channel: Channel, provider: &str, member: &str) -> String {
    format!("channel/{workspace}/{channel}/{provider}/{member}")
}

/// Returns the sealed texts of a channel's settings, each with its place.
pub fn channel_secrets(settings: &ChannelSettings) -> Vec<(String, String)> {
    let mut secrets = Vec::new();
    replace_channel_secrets(&mut settings.clone(), |place, sealed| {
        secrets.push((place.to_owned(), sealed.to_owned()));
        None
    });
    secrets
}

/// Replaces the sealed texts of a channel's settings by the results of `replacement` for the place and the sealed text;
/// `None` keeps the text.
pub fn replace_channel_secrets(
    settings: &mut ChannelSettings,
    mut replacement: impl FnMut(&str, &str) -> Option<String>,
) {
    let (workspace, channel) = (settings.workspace_id, settings.channel);
    let mut replace = |provider: &str, config: &mut Map<String, Value>| {
        for (member, value) in config {
            let Some(sealed) = value.as_str().filter(|text| is_sealed(text)) else { continue };
            let place = channel_secret_place(workspace, channel, provider, member);
            if let Some(other) = replacement(&place, sealed) {
                *value = Value::String(other);
            }
        }
    };
    replace(&settings.provider, &mut settings.config);
    let routes = settings.config.get_mut(ROUTES).and_then(Value::as_object_mut).into_iter().flatten();
    for (provider, config) in routes {
        if let Some(config) = config.as_object_mut() {
            replace(provider, config);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(octet: u8) -> SecretKey {
        SecretKey::from_bytes([octet; 32])
    }

    #[test]
    fn a_ring_holds_each_key_once_and_at_least_one() {
        assert_eq!(KeyRing::new([]), None);
        assert_eq!(KeyRing::new((0..=32).map(key)), None);
        let ring = KeyRing::new([key(1), key(2), key(1), key(3)]).unwrap();
        assert_eq!(ring.keys(), [key(1), key(2), key(3)]);
        assert_eq!(ring.clone().led_by(2).keys(), [key(3), key(1), key(2)]);
        assert_eq!(ring.clone().led_by(0), ring);
        assert_eq!(ring.with_first(key(4)).unwrap().keys(), [key(4), key(1), key(2), key(3)]);
        assert_eq!(ring.with_first(key(2)).unwrap().keys(), [key(2), key(1), key(3)]);
        let other = KeyRing::new([key(5), key(1)]).unwrap();
        assert!(!ring.holds(&other) && ring.clone().and(&other).holds(&other));
        assert_eq!(ring.and(&other).keys(), [key(1), key(2), key(3), key(5)]);
    }

    #[test]
    fn the_id_of_a_key_is_its_own() {
        assert_eq!(key(1).id().len(), 16);
        assert_ne!(key(1).id(), key(2).id());
        assert_eq!(format!("{:?}", KeyRing::from(key(1))), "KeyRing([SecretKey(…)])");
    }
}
