//! Secrets of channels' settings, opened.

use messaging_core::domain::provider::ProviderKind;
use messaging_core::domain::secret_key::channel_secret_place;
use messaging_core::domain::settings::ChannelSettings;
use serde_json::{Map, Value};

use crate::app::App;

impl App {
    /// A channel's settings with their secrets in clear. A secret that does not open (the key file was
    /// exchanged) is left out, and the provider then says what it misses.
    pub(crate) fn open_secrets(&self, settings: &ChannelSettings) -> Map<String, Value> {
        let mut config = settings.config.clone();
        let kind = self.provider_kind(settings.channel, &settings.provider);
        for member in kind.into_iter().flat_map(ProviderKind::secrets) {
            let Some(Value::String(sealed)) = config.get(member) else { continue };
            match self.vault().open(&channel_secret_place(settings, member), sealed) {
                Ok(secret) => config.insert(member.to_owned(), Value::String(secret)),
                Err(error) => {
                    tracing::error!(channel = %settings.channel, member, %error, "a channel secret is unusable");
                    config.remove(member)
                }
            };
        }
        kind.inspect(|kind| kind.fill_defaults(&mut config));
        config
    }
}
