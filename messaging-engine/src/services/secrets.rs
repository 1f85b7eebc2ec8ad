//! Settings of channels in the form that transports receive: secrets decrypted, defaults filled in.

use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::provider::{ProviderKind, ROUTES};
use messaging_core::domain::channel::settings::ChannelSettings;
use messaging_core::domain::security::secret_key::channel_secret_place;
use messaging_core::ids::WorkspaceId;
use serde_json::{Map, Value};

use crate::app::App;

impl App {
    /// A channel's settings with their secrets decrypted and the defaults of missing settings filled in. A secret that
    /// cannot be decrypted, because the key file was exchanged, is logged and left out; the transport then reports it
    /// as a missing setting.
    ///
    /// The settings of the channel's provider are always at the top level, even where the workspace gave them under
    /// [`ROUTES`]. In the result, [`ROUTES`] holds only the other providers, each decrypted in the same way.
    pub(crate) fn open_secrets(&self, settings: &ChannelSettings) -> Map<String, Value> {
        let (workspace, channel) = (settings.workspace_id, settings.channel);
        let open = |provider: &str, config: &Map<String, Value>| {
            self.open_provider_settings(workspace, channel, provider, config)
        };
        let kind = self.provider_kind(channel, &settings.provider);
        let mut config = settings.config.clone();
        let routes = if kind.is_some_and(ProviderKind::has_routes) { config.remove(ROUTES) } else { None };
        let Some(Value::Object(routes)) = routes else { return open(&settings.provider, &config) };
        let mut others = Map::new();
        for (provider, part) in &routes {
            let Some(part) = part.as_object() else { continue };
            if *provider == settings.provider {
                config.extend(part.clone());
            } else {
                others.insert(provider.clone(), open(provider, part).into());
            }
        }
        let mut config = open(&settings.provider, &config);
        config.insert(ROUTES.to_owned(), others.into());
        config
    }

    /// Decrypts the secrets of one provider's settings and fills in its defaults; a secret that cannot be decrypted is
    /// removed. Settings of a provider that this installation does not know are returned as they are.
    fn open_provider_settings(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        provider: &str,
        config: &Map<String, Value>,
    ) -> Map<String, Value> {
        let mut config = config.clone();
        let kind = self.provider_kind(channel, provider);
        for member in kind.into_iter().flat_map(ProviderKind::secrets) {
            let Some(Value::String(sealed)) = config.get(member) else { continue };
            match self.vault().open(&channel_secret_place(workspace, channel, provider, member), sealed) {
                Ok(secret) => config.insert(member.to_owned(), Value::String(secret)),
                Err(error) => {
                    tracing::error!(%channel, member, %error, "a channel secret is unusable");
                    config.remove(member)
                }
            };
        }
        if let Some(kind) = kind {
            kind.fill_defaults(&mut config);
        }
        config
    }
}
