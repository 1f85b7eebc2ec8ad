//! Callbacks of providers: receipts, and messages of recipients.
//!
//! Contract section 18. The token in the address names the workspace and its owner, the provider's transport proves and
//! parses the rest, and the answer is given once everything that the call reports is stored. If something is not stored
//! the answer is 503, and the provider repeats the whole call, which has one effect.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, TryStreamExt as _};
use http::{HeaderMap, Method};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::inbound_message::{InboundKey, InboundMessage};
use messaging_core::domain::channel::provider::{Callbacks, ProviderKind};
use messaging_core::domain::channel::receipt::Receipt;
use messaging_core::domain::channel::settings::ChannelSettings;
use messaging_core::domain::mail::link_token::{LinkKey, SettingsTag};
use messaging_core::domain::message::Message;
use messaging_core::ids::{MessageId, WorkspaceId};
use messaging_core::ports::inbound::ReceiptLink;
use messaging_core::ports::store::StoreError;
use messaging_core::ports::transport::{
    About, CallbackAddress, CallbackEvent, CallbackFault, CallbackProof, CallbackReply, CallbackRequest,
};
use serde_json::{Map, Value};
use tokio::time::timeout;

use crate::app::{App, Provider};
use crate::error::Error;
use crate::fair_semaphore::{Cap, Owner, Share};

/// Longest body in bytes (contract section 18).
pub const MAX_BODY: usize = 3 << 20;

/// Number of events that one call may report; providers that gather them send a thousand at most.
const MAX_EVENTS: usize = 2000;

/// Receipts of one call that are stored concurrently, so that they share commits.
const RECEIPTS_AT_ONCE: usize = 16;

/// Share of the calls in work that may be of one workspace.
const OF_ONE_WORKSPACE: Cap = Cap::Eighths(2);

/// Longest time a call waits for its turn, and longest time it may take after that: providers give up after some
/// seconds, and repeat.
const PATIENCE: Duration = Duration::from_secs(20);

/// Seconds after which a call that was not stored shall be repeated.
const RETRY_AFTER: u64 = 5;

/// A provider's call, without its address.
#[derive(Debug, Clone, Copy)]
pub struct CallbackCall<'a> {
    /// The method.
    pub method: &'a Method,
    /// Query of the address, without `?`.
    pub query: Option<&'a str>,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// The body.
    pub body: &'a Bytes,
}

/// Owner of the callback address that a token is in.
#[derive(Debug, Clone, Copy)]
pub struct CallbackTarget {
    channel: Channel,
    workspace: WorkspaceId,
    owner: CallbackOwner,
}

#[derive(Debug, Clone, Copy)]
enum CallbackOwner {
    Channel(SettingsTag),
    Message(MessageId),
}

impl CallbackTarget {
    /// Workspace that the call is for.
    pub const fn workspace(&self) -> WorkspaceId {
        self.workspace
    }
}

impl App {
    /// Returns the owner of the callback address with this token, if the token is one of ours. Reads nothing, so it can
    /// be called before the body is received.
    pub fn callback_target(&self, channel: &str, token: &str) -> Option<CallbackTarget> {
        let channel = Channel::parse(channel)?;
        if let Some((workspace, message)) = self.link_key().read_receipt(token) {
            return Some(CallbackTarget { channel, workspace, owner: CallbackOwner::Message(message) });
        }
        let (workspace, of, tag) = self.link_key().read_callback(token)?;
        (of == channel).then_some(CallbackTarget { channel, workspace, owner: CallbackOwner::Channel(tag) })
    }

    /// Stores the events of a provider's call and returns the answer to it; when it returns one, everything is durable.
    /// A method that the provider does not use, or a token of earlier settings, is [`Error::NotFound`]; a missing or
    /// wrong signature [`Error::InvalidCredentials`]; [`Error::Unavailable`] asks to repeat the call.
    pub async fn receive_callback(
        &self,
        target: CallbackTarget,
        token: &str,
        call: CallbackCall<'_>,
    ) -> Result<CallbackReply, Error> {
        let share = Share { owner: Owner::Workspace(target.workspace), cap: OF_ONE_WORKSPACE };
        let turn = timeout(PATIENCE, self.0.callback_turns.acquire(vec![share], 1)).await;
        let Ok(Ok(_turn)) = turn else { return Err(Error::Unavailable { retry_after: RETRY_AFTER }) };
        timeout(PATIENCE, self.take_callback(target, token, call))
            .await
            .unwrap_or(Err(Error::Unavailable { retry_after: RETRY_AFTER }))
            .map_err(|error| match error {
                // Whatever the store reports, the call has to be repeated.
                Error::OutcomeUnknown { retry_after } => Error::Unavailable { retry_after },
                error => error,
            })
    }

    async fn take_callback(
        &self,
        target: CallbackTarget,
        token: &str,
        call: CallbackCall<'_>,
    ) -> Result<CallbackReply, Error> {
        let CallbackTarget { channel, workspace, .. } = target;
        let Some((provider, proof)) = self.prove_token(target).await? else { return Err(Error::NotFound) };
        let transport = self.transport(channel, &provider.name).ok_or(Error::NotFound)?;
        let query = call.query.map(|query| format!("?{query}")).unwrap_or_default();
        let url = format!("{}{query}", self.callback_url(channel, token));
        let (method, headers, body) = (call.method, call.headers, call.body);
        let request = CallbackRequest { method, url: &url, headers, body, proof: &proof, now: self.now() };
        let callback = transport.callback(&provider.settings, &request).map_err(|fault| {
            tracing::debug!(%workspace, %channel, %fault, "a call of a provider is refused");
            match fault {
                CallbackFault::NotFound => Error::NotFound,
                CallbackFault::Unauthorized => Error::InvalidCredentials,
            }
        })?;
        if callback.events.len() > MAX_EVENTS {
            return Err(Error::PayloadTooLarge { limit: MAX_BODY });
        }
        self.store_events(target, &provider.name, callback.events).await?;
        Ok(callback.reply)
    }

    /// Stores the reported events: receipts together, because the status only rises, and messages of recipients one
    /// after the other, because the last word of a recipient counts.
    async fn store_events(
        &self,
        target: CallbackTarget,
        provider: &str,
        events: Vec<CallbackEvent>,
    ) -> Result<(), Error> {
        let (mut receipts, mut messages) = (Vec::new(), Vec::new());
        for one in events {
            match one {
                CallbackEvent::Receipt { about, receipt } => receipts.push((about, receipt)),
                CallbackEvent::Inbound { from, event, id } => messages.push((from, event, id)),
            }
        }
        stream::iter(receipts.into_iter().map(Ok))
            .try_for_each_concurrent(RECEIPTS_AT_ONCE, |(about, receipt)| async move {
                self.store_receipt(target, provider, about, receipt).await
            })
            .await?;
        if let CallbackOwner::Message(_) = target.owner {
            // The address of one message proves nothing about other messages.
            return Ok(());
        }
        for (from, event, id) in messages {
            let CallbackTarget { channel, workspace: workspace_id, .. } = target;
            let key = id.map(|id| InboundKey::of(provider, &id));
            self.receive_message_once(&InboundMessage { workspace_id, channel, from, event }, key).await?;
        }
        Ok(())
    }

    async fn store_receipt(
        &self,
        target: CallbackTarget,
        provider: &str,
        about: About,
        receipt: Receipt,
    ) -> Result<(), Error> {
        let CallbackTarget { channel, workspace: workspace_id, owner } = target;
        let link = match (owner, about) {
            // The event is about the message whose address was called, whatever else it names.
            (CallbackOwner::Message(message_id), _) => ReceiptLink::Message { workspace_id, message_id },
            (CallbackOwner::Channel(_), About::ThisMessage) => return Ok(()),
            (CallbackOwner::Channel(_), About::Token(token)) => {
                let named = self.link_key().read_receipt(&token).filter(|(workspace, _)| *workspace == workspace_id);
                let Some((_, message_id)) = named else { return Ok(()) };
                if self.message_of(channel, workspace_id, message_id).await?.is_none() {
                    return Ok(());
                }
                ReceiptLink::Message { workspace_id, message_id }
            }
            (CallbackOwner::Channel(_), About::ProviderMessage(name)) => ReceiptLink::Provider {
                workspace_id,
                channel,
                provider: provider.to_owned(),
                provider_message_id: name,
                spellings: Vec::new(),
            },
        };
        self.receive_receipt(&link, &receipt).await
    }

    /// Returns the provider that calls, and the proof in its token; `None` if the token is of earlier settings, or of a
    /// message of another channel.
    async fn prove_token(&self, target: CallbackTarget) -> Result<Option<(Provider, CallbackProof)>, StoreError> {
        let CallbackTarget { channel, workspace, owner } = target;
        let present = self.provider(workspace, channel).await?;
        match owner {
            CallbackOwner::Channel(tag) => {
                let Some(provider) = present else { return Ok(None) };
                let all = self.link_key();
                // An address that was made with an older key stays known to the provider until another one is
                // registered.
                let made_with =
                    all.each().find(|key| self.settings_tag(key, workspace, channel, &provider) == Some(tag));
                let address = made_with.map(|key| self.callback_address(&key, workspace, channel, tag));
                Ok(address.map(|address| (provider, CallbackProof::Channel(address))))
            }
            CallbackOwner::Message(message) => {
                // Calls about a removed message are accepted, and have no effect.
                if self.store().message(workspace, message).await?.is_some_and(|message| message.channel != channel) {
                    return Ok(None);
                }
                // The provider that took the message reports it, also when the workspace has chosen another one since.
                let link = self.store().provider_of_message(workspace, message).await?;
                let provider = match (link, present) {
                    (Some(link), Some(present)) if link.provider == present.name => Some(present),
                    (Some(link), _) => Some(Provider { name: link.provider, settings: Arc::default() }),
                    (None, present) => present,
                };
                Ok(provider.map(|provider| (provider, CallbackProof::ThisMessage)))
            }
        }
    }

    async fn message_of(
        &self,
        channel: Channel,
        workspace: WorkspaceId,
        id: MessageId,
    ) -> Result<Option<Message>, StoreError> {
        Ok(self.store().message(workspace, id).await?.filter(|message| message.channel == channel))
    }

    /// Returns the callback address of a channel under these settings; `None` if its provider makes no callbacks.
    pub(crate) fn channel_callback(&self, settings: &ChannelSettings) -> Option<CallbackAddress> {
        let kind = self.provider_kind(settings.channel, &settings.provider)?;
        if kind.callbacks == Callbacks::None {
            return None;
        }
        let (name, opened) = (settings.provider.clone(), self.open_secrets(settings).into());
        let (workspace, channel) = (settings.workspace_id, settings.channel);
        let key = self.link_key();
        let tag = self.settings_tag(&key, workspace, channel, &Provider { name, settings: opened })?;
        Some(self.callback_address(&key, workspace, channel, tag))
    }

    /// Returns the reason why callbacks of a channel's provider fail, if they do.
    pub(crate) fn callback_fault(&self, settings: &ChannelSettings) -> Option<String> {
        let registration = settings.registration.as_ref();
        if let Some(error) = registration.and_then(|registration| registration.error.clone()) {
            return Some(error);
        }
        let Callbacks::ProvedBy(name) = self.provider_kind(settings.channel, &settings.provider)?.callbacks else {
            return None;
        };
        let is_missing = settings.config.get(name).is_none_or(Value::is_null);
        is_missing.then(|| format!("callbacks are refused: without {name} nobody can tell who sends them"))
    }

    fn callback_address(
        &self,
        key: &LinkKey,
        workspace: WorkspaceId,
        channel: Channel,
        tag: SettingsTag,
    ) -> CallbackAddress {
        let token = key.callback(workspace, channel, tag);
        let secret = key.callback_secret(workspace, channel, tag);
        CallbackAddress { url: self.callback_url(channel, &token), token, secret }
    }

    /// Returns the address that a provider calls.
    pub(crate) fn callback_url(&self, channel: Channel, token: &str) -> String {
        format!("{}/callbacks/{channel}/{token}", self.settings().public_url)
    }

    /// Returns a tag of a provider and its settings: equal for equal ones, whether or not defaults are spelled out.
    fn settings_tag(
        &self,
        key: &LinkKey,
        workspace: WorkspaceId,
        channel: Channel,
        provider: &Provider,
    ) -> Option<SettingsTag> {
        let kind = self.provider_kind(channel, &provider.name)?;
        let text = serde_json::to_vec(&(&provider.name, given(kind, &provider.settings))).ok()?;
        Some(key.settings_tag(workspace, channel, &text))
    }
}

/// Returns the given settings that differ from their defaults, in the order of their names; without those that we
/// generate.
fn given<'a>(kind: &'a ProviderKind, settings: &'a Map<String, Value>) -> Vec<(&'a str, &'a Value)> {
    let mut given: Vec<_> = kind
        .members
        .iter()
        .filter(|member| !member.is_made_by_us)
        .filter_map(|member| {
            let value = settings.get(&member.name).filter(|value| !value.is_null())?;
            (member.default.as_ref() != Some(value)).then_some((member.name.as_str(), value))
        })
        .collect();
    given.sort_unstable_by_key(|(name, _)| *name);
    given
}
