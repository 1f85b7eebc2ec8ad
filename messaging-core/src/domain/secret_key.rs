//! The key of an installation, and how secrets that are sealed under it are told from others.

use std::fmt;

use serde_json::Value;

use crate::domain::channel::Channel;
use crate::domain::provider::ROUTES;
use crate::domain::settings::ChannelSettings;
use crate::entropy::Entropy;
use crate::ids::WorkspaceId;

/// Marks a sealed text and the scheme it was sealed with.
pub const SEALED_MARKER: &str = "sealed:1:";

/// The 32 bytes that secrets are sealed under, and that links in mail are authenticated with.
///
/// All nodes of a database have the same. Without it what was sealed is lost, so it belongs into the backup.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SecretKey([u8; Self::LENGTH]);

impl SecretKey {
    /// Bytes of a key.
    pub const LENGTH: usize = 32;

    /// A key that was kept somewhere.
    pub const fn from_bytes(bytes: [u8; Self::LENGTH]) -> Self {
        Self(bytes)
    }

    /// A new key. Keep it before it is used.
    pub fn generate(entropy: &dyn Entropy) -> Self {
        let mut bytes = [0; Self::LENGTH];
        entropy.fill(&mut bytes);
        Self(bytes)
    }

    /// What is to be kept.
    pub const fn as_bytes(&self) -> &[u8; Self::LENGTH] {
        &self.0
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(…)")
    }
}

/// Whether a text is a sealed secret.
pub fn is_sealed(text: &str) -> bool {
    text.starts_with(SEALED_MARKER)
}

/// The place that a secret setting of a provider is sealed for; the same where the provider stands under another's
/// [`ROUTES`].
pub fn channel_secret_place(workspace: WorkspaceId, channel: Channel, provider: &str, member: &str) -> String {
    format!("channel/{workspace}/{channel}/{provider}/{member}")
}

/// The sealed texts of a channel's settings, each with its place.
pub fn channel_secrets(settings: &ChannelSettings) -> Vec<(String, String)> {
    let routes = settings.config.get(ROUTES).and_then(Value::as_object).into_iter().flatten();
    let routes = routes.filter_map(|(provider, config)| Some((provider.as_str(), config.as_object()?)));
    let parts = std::iter::once((settings.provider.as_str(), &settings.config)).chain(routes);
    let sealed = parts.flat_map(|(provider, config)| {
        config.iter().filter_map(move |(member, value)| {
            let sealed = value.as_str().filter(|text| is_sealed(text))?;
            let place = channel_secret_place(settings.workspace_id, settings.channel, provider, member);
            Some((place, sealed.to_owned()))
        })
    });
    sealed.collect()
}
