//! Preparation of a workspace for sending: providers, the domain of its sender, or capturing of its mail.

use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::provider;
use messaging_core::domain::mail::dkim::Algorithm;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::PageRequest;
use messaging_engine::ops::channels::{ChannelInput, ChannelPath, DeleteChannel, SetChannel};
use messaging_engine::ops::sending_domains::{CreateSendingDomain, SendingDomainInput};
use messaging_engine::{App, Caller, Error, admin};
use serde_json::{Map, Value};

/// Settings of a provider, by channel.
pub(crate) type ChannelConfig = (Channel, String, Map<String, Value>);

/// Returns the domain of an address, in lower case.
pub(crate) fn domain_of(address: &str) -> Option<String> {
    address.rsplit_once('@').map(|(_, domain)| domain.to_ascii_lowercase())
}

/// Sets the providers of channels.
pub(crate) async fn set_channels(app: &App, workspace: WorkspaceId, channels: Vec<ChannelConfig>) -> Result<(), Error> {
    for (channel, provider, config) in channels {
        let path = ChannelPath { workspace_id: workspace, channel };
        let settings = ChannelInput::new(provider).config(config);
        app.run(SetChannel).path(path).body(settings).by(&Caller::Operator(Some(workspace))).await?;
    }
    Ok(())
}

/// Makes sure that the workspace has the domain of its sender, and that its email is no longer captured.
pub(crate) async fn send_from(app: &App, workspace: WorkspaceId, address: &str) -> Result<(), Error> {
    let Some(domain) = domain_of(address) else { return Ok(()) };
    let caller = Caller::Operator(Some(workspace));
    match app.run(CreateSendingDomain).body(SendingDomainInput::new(domain)).by(&caller).await {
        Ok(_) | Err(Error::AlreadyExists) => {}
        Err(error) => return Err(error),
    }
    let settings = app.store().channel(workspace, Channel::Email).await?;
    if settings.is_some_and(|settings| settings.record.provider == provider::SANDBOX) {
        let path = ChannelPath { workspace_id: workspace, channel: Channel::Email };
        app.run(DeleteChannel).path(path).by(&caller).await?;
    }
    Ok(())
}

/// Makes a workspace capture its email, unless it has a provider of email or a sending domain.
pub(crate) async fn capture(app: &App, workspace: WorkspaceId) -> Result<(), Error> {
    match app.store().channel(workspace, Channel::Email).await? {
        Some(settings) if settings.record.provider != provider::SANDBOX => return Ok(()),
        Some(_) => {}
        None => {
            let page = PageRequest { after: None, limit: 1 };
            if !app.store().domains(workspace, page).await?.items.is_empty() {
                return Ok(());
            }
            admin::prepare_sandbox(app, workspace, &[Algorithm::Ed25519Sha256]).await?;
        }
    }
    tracing::info!("email is captured, not sent, until the program names a sender");
    Ok(())
}
