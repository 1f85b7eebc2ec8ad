//! Receiver of the reports that transports make on their own, from connections to their providers.

use std::collections::HashSet;
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::inbound_message::InboundMessage;
use messaging_core::domain::channel::receipt::Receipt;
use messaging_core::ids::{MessageId, WorkspaceId};
use messaging_core::ports::inbound::{InboundError, ProviderSink, ReceiptLink};
use messaging_core::ports::paths::Paths;
use serde_json::{Map, Value};

use super::{App, Shared};

/// The application, without keeping it alive.
#[derive(Debug)]
pub(super) struct WeakApp(Weak<Shared>);

impl WeakApp {
    pub(super) fn new(shared: &Weak<Shared>) -> Self {
        Self(Weak::clone(shared))
    }

    fn app(&self) -> Result<App, InboundError> {
        self.0.upgrade().map(App).ok_or_else(|| InboundError::new("the application is gone"))
    }
}

#[async_trait]
impl ProviderSink for WeakApp {
    fn receipt_token(&self, token: &str) -> Option<(WorkspaceId, MessageId)> {
        self.app().ok()?.receipt_token(token)
    }

    async fn receive_receipt(&self, about: &ReceiptLink, receipt: &Receipt) -> Result<(), InboundError> {
        ProviderSink::receive_receipt(&self.app()?, about, receipt).await
    }

    async fn receive_message(&self, message: &InboundMessage) -> Result<(), InboundError> {
        ProviderSink::receive_message(&self.app()?, message).await
    }

    async fn has_settings(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        provider: &str,
        settings: &Map<String, Value>,
    ) -> Result<bool, InboundError> {
        self.app()?.has_settings(workspace, channel, provider, settings).await
    }
}

/// Gives each transport once, however many providers it carries, the receiver of its reports and the keeper of paths.
pub(super) fn attach(shared: &Shared) {
    let mut told = HashSet::new();
    for transport in shared.transports.values() {
        if told.insert(Arc::as_ptr(transport).cast::<()>()) {
            transport.attach(Arc::downgrade(&shared.provider_sink));
            transport.attach_paths(Arc::downgrade(&shared.paths) as Weak<dyn Paths>);
        }
    }
}
