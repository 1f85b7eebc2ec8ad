//! Mail to return addresses: resolving the address, and applying a report to its message.
//!
//! Contract sections 4.2 and 10. The server for incoming mail calls [`App::return_address`] for each recipient and
//! hands the parsed mail to [`App::receive`].

use async_trait::async_trait;
use futures_util::future::try_join_all;
use messaging_core::changes::{Changes, moves};
use messaging_core::domain::audience::unsubscribe::UnsubscribeMethod;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address;
use messaging_core::domain::channel::inbound_message::InboundMessage;
use messaging_core::domain::channel::provider::MAX_RATE;
use messaging_core::domain::channel::receipt::Receipt;
use messaging_core::domain::mail::link_token::ReturnPurpose;
use messaging_core::domain::mail::report::Report;
use messaging_core::domain::mail::returned::{self, Returned};
use messaging_core::domain::mail::sending_domain::{BOUNCE_LABEL, SendingDomain};
use messaging_core::domain::message::content;
use messaging_core::domain::message::recipients::{self, Recipient};
use messaging_core::domain::message::{EventKind, Message, MessageContent};
use messaging_core::ids::{MessageId, WorkspaceId};
use messaging_core::ports::inbound::{InboundError, ProviderSink, ReceiptLink, ReturnAddress};
use messaging_core::ports::store::StoreError;
use serde_json::{Map, Value};

use crate::app::App;
use crate::error::Error;

/// Number of domains of one name that are read at a time.
const NAMESAKES: usize = 100;

/// Number of events of a kind that are read: a message has at most 101 recipients, each with a bounce, a complaint, a
/// delivery, and a few dozen deferrals.
const MAX_EVENTS: usize = 8192;

#[async_trait]
impl ProviderSink for App {
    fn receipt_token(&self, token: &str) -> Option<(WorkspaceId, MessageId)> {
        self.link_key().read_receipt(token)
    }

    async fn receive_receipt(&self, about: &ReceiptLink, receipt: &Receipt) -> Result<(), InboundError> {
        Self::receive_receipt(self, about, receipt).await.map_err(InboundError::new)
    }

    async fn receive_message(&self, message: &InboundMessage) -> Result<(), InboundError> {
        Self::receive_message(self, message).await.map_err(InboundError::new)
    }

    async fn has_settings(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        provider: &str,
        settings: &Map<String, Value>,
    ) -> Result<bool, InboundError> {
        let present = self.provider(workspace, channel).await.map_err(InboundError::new)?;
        Ok(present.is_some_and(|present| present.name == provider && is_same_account(&present.settings, settings)))
    }
}

/// Returns true if settings name the same account in the same way: they may differ in the send rate.
fn is_same_account(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    let is_in = |settings: &Map<String, Value>, (name, value): (&String, &Value)| {
        name == MAX_RATE || settings.get(name).unwrap_or(&Value::Null) == value
    };
    one.iter().all(|member| is_in(other, member)) && other.iter().all(|member| is_in(one, member))
}

impl App {
    /// Resolves a return address that we made: `bounce+TOKEN@bounce.<domain>` or `unsubscribe+TOKEN@bounce.<domain>`,
    /// in any case. Anything else is `None`, whatever is wrong.
    pub async fn return_address(&self, address: &str) -> Result<Option<ReturnAddress>, StoreError> {
        let Some((local_part, host)) = address.rsplit_once('@') else { return Ok(None) };
        let Some(host) = address::ascii_domain(host.strip_suffix('.').unwrap_or(host)) else { return Ok(None) };
        let Some((BOUNCE_LABEL, name)) = host.split_once('.') else { return Ok(None) };
        self.domain_named(name, |domain| {
            let workspace_id = domain.workspace_id;
            let (purpose, message_id, recipient) = self.link_key().read_local_part(workspace_id, local_part)?;
            Some(ReturnAddress { workspace_id, message_id, purpose, recipient })
        })
        .await
    }

    /// Calls `wanted` for the domains of a name that were verified at some time, in any workspace, and returns its
    /// first result.
    pub(super) async fn domain_named<T>(
        &self,
        name: &str,
        mut wanted: impl FnMut(&SendingDomain) -> Option<T>,
    ) -> Result<Option<T>, StoreError> {
        let mut after = None;
        loop {
            let domains = self.store().domains_named(name, after, NAMESAKES).await?;
            let found = domains.iter().find_map(&mut wanted);
            after = domains.last().map(|domain| domain.workspace_id);
            if found.is_some() || domains.len() < NAMESAKES {
                return Ok(found);
            }
        }
    }

    /// Applies a mail to a return address. When it returns, the effect is durable.
    ///
    /// The same mail twice has no second effect. A mail to an unsubscribe address is a request to
    /// unsubscribe unless it is a report; a mail to a bounce address that is none changes nothing.
    pub async fn receive(&self, to: &ReturnAddress, report: &Report) -> Result<(), Error> {
        match (to.purpose, report) {
            (ReturnPurpose::Bounce, Report::Delivery(_) | Report::Complaint { .. }) => {
                let complained = self.until_committed(|| self.judge(to, report)).await?;
                self.count_complaints(to.workspace_id, to.message_id, &complained).await;
                let kind = if matches!(report, Report::Delivery(_)) { "bounce" } else { "complaint" };
                self.note_inbound(to.workspace_id, Channel::Email, Some(to.message_id), kind);
                Ok(())
            }
            (ReturnPurpose::Unsubscribe, Report::Other) => {
                match self.unsubscribe(to.workspace_id, to.message_id, UnsubscribeMethod::Mailto).await {
                    Ok(_) => {
                        self.note_inbound(to.workspace_id, Channel::Email, Some(to.message_id), "unsubscribe");
                        Ok(())
                    }
                    Err(Error::NotFound) => Ok(()),
                    Err(error) => Err(error),
                }
            }
            _ => Ok(()),
        }
    }

    /// Returns the changes, and the recipients who complain for the first time.
    async fn judge(&self, to: &ReturnAddress, report: &Report) -> Result<(Changes, Vec<String>), Error> {
        let found = self.store().message_with_content(to.workspace_id, to.message_id).await?;
        let Some((message, content)) = found else { return Ok((Changes::default(), Vec::new())) };
        let (mut recipients, mut complete) = recipients_of(&message, content.as_ref());
        if let Some(tag) = to.recipient {
            // Whatever recipient the mail names, it is about the one that the address was made for.
            let key = self.link_key();
            recipients.retain(|known| key.is_recipient(tag, message.id, &known.address));
            complete = true;
        }
        let of_kind = |kind| self.store().message_events_of_kind(to.workspace_id, to.message_id, kind, MAX_EVENTS);
        let past = try_join_all(returned::kinds(report).iter().map(|kind| of_kind(*kind))).await?.concat();
        let judgment =
            Returned { status: message.status, recipients: &recipients, complete, past: &past }.judge(report);
        if judgment.events.is_empty() {
            tracing::debug!(message = %message.id, "a report says nothing new of anybody who received the message");
            return Ok((Changes::default(), Vec::new()));
        }
        let now = self.now();
        // Also if the status stays, the revision changes: of two mails at once that report the same, one decides again
        // and finds the other's event.
        let after = message.after(judgment.status, judgment.events.iter().map(|(kind, _)| *kind), now);
        let mut changes = Changes::from_iter(moves(&message, &after, None, now));
        changes.extend(self.append_events((&message).into(), judgment.events.clone()).await?);
        changes.extend(self.count_returned(&message, &judgment.events).await?);
        for write in self.address_writes(&message, &judgment).await? {
            changes.push(write);
        }
        let complaints = judgment.events.iter().filter(|(kind, _)| *kind == EventKind::Complaint);
        let of = complaints.map(|(_, meta)| meta.get("recipient").and_then(Value::as_str).unwrap_or(&message.to));
        let addresses = of.map(ToOwned::to_owned).collect();
        Ok((changes, addresses))
    }
}

/// Returns the recipients of a message, and whether these are all: once the content is removed, the copies are unknown.
/// Messages of campaigns never had any.
fn recipients_of(message: &Message, content: Option<&MessageContent>) -> (Vec<Recipient>, bool) {
    let (cc, bcc, complete) = match content.map(content::decode) {
        Some(Ok(request)) => (request.input.cc.unwrap_or_default(), request.input.bcc.unwrap_or_default(), true),
        Some(Err(_)) => (Vec::new(), Vec::new(), false),
        None => (Vec::new(), Vec::new(), message.campaign_id.is_some()),
    };
    (recipients::all(&message.to, &cc, &bcc), complete)
}
