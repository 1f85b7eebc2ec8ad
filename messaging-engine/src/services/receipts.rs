//! Receipts of providers: finding their messages, and applying them.
//!
//! A receipt may come before the commit of the attempt that gives its message the provider's id. So a receipt whose
//! message is not known is stored as a job, which looks again for some minutes.

use futures_util::future::try_join_all;
use messaging_core::changes::{Changes, JobWrite, Write, moves};
use messaging_core::domain::channel::receipt::{self, Receipt, Receipted};
use messaging_core::domain::message::{EventKind, Message};
use messaging_core::ids::{MessageId, WorkspaceId};
use messaging_core::ports::inbound::ReceiptLink;
use messaging_core::ports::store::StoreError;
use messaging_core::ports::transport::ReceiptAddress;

use crate::app::App;
use crate::error::Error;
use crate::jobs::JobData as _;
use crate::jobs::settle_receipt::SettleReceipt;

/// Number of events of a kind that are read: receipts make one of each.
const MAX_EVENTS: usize = 16;

impl App {
    /// Returns the address to which the provider of a message may report its outcome (contract section 18).
    pub(crate) fn receipt_address(&self, message: &Message) -> ReceiptAddress {
        let token = self.link_key().receipt(message.workspace_id, message.id);
        let url = self.callback_url(message.channel, &token);
        ReceiptAddress { token, url }
    }

    /// Applies a receipt. When it returns, a result is durable: its effect, or that it is tried again because its
    /// message is not known yet.
    pub async fn receive_receipt(&self, about: &ReceiptLink, receipt: &Receipt) -> Result<(), Error> {
        if let Some((workspace, message)) = self.receipted(about).await? {
            return self.settle_receipt(workspace, message, receipt).await;
        }
        let job = SettleReceipt { about: about.clone(), receipt: receipt.clone(), looks: 0 };
        self.until_committed(|| async {
            let now = self.now();
            Ok((
                Changes::from_iter([Write::Job(JobWrite::Enqueue(job.enqueue(self.new_id(now), now + job.wait())))]),
                (),
            ))
        })
        .await
    }

    /// Returns the message that a receipt is about, if its id at the provider is known.
    pub(crate) async fn receipted(&self, about: &ReceiptLink) -> Result<Option<(WorkspaceId, MessageId)>, StoreError> {
        match about {
            ReceiptLink::Message { workspace_id, message_id } => Ok(Some((*workspace_id, *message_id))),
            ReceiptLink::Provider { workspace_id, channel, provider, provider_message_id, .. } => {
                let found =
                    self.store().message_of_provider(*workspace_id, *channel, provider, provider_message_id).await?;
                Ok(found.map(|message| (*workspace_id, message)))
            }
        }
    }

    /// Returns the message of a receipt whose provider id has another spelling. Called when the id itself has had time
    /// to become known: a message with that very id has precedence.
    pub(crate) async fn receipted_otherwise(
        &self,
        about: &ReceiptLink,
    ) -> Result<Option<(WorkspaceId, MessageId)>, StoreError> {
        let ReceiptLink::Provider { workspace_id, channel, provider, spellings, .. } = about else { return Ok(None) };
        if spellings.is_empty() {
            return Ok(None);
        }
        let found = self.store().messages_of_provider(*workspace_id, *channel, provider, spellings).await?;
        match found[..] {
            [only] => Ok(Some((*workspace_id, only))),
            _ => Ok(None),
        }
    }

    /// Applies a receipt to its message. A receipt for a message that is gone, or whose recipient was erased, has no
    /// effect.
    pub(crate) async fn settle_receipt(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
        receipt: &Receipt,
    ) -> Result<(), Error> {
        self.until_committed(|| async move { Ok((self.judge_receipt(workspace, message, receipt).await?, ())) }).await
    }

    async fn judge_receipt(
        &self,
        workspace: WorkspaceId,
        id: MessageId,
        receipt: &Receipt,
    ) -> Result<Changes, StoreError> {
        let Some(message) = self.store().message(workspace, id).await? else { return Ok(Changes::default()) };
        if message.is_redacted() {
            return Ok(Changes::default());
        }
        let of_kind = |kind: &_| self.store().message_events_of_kind(workspace, id, *kind, MAX_EVENTS);
        let past = try_join_all(receipt::KINDS.iter().map(of_kind)).await?.concat();
        let receipted = Receipted { channel: message.channel, status: message.status, to: &message.to, past: &past };
        let judgment = receipted.judge(receipt);
        if judgment.events.is_empty() && judgment.status.is_none() {
            tracing::debug!(message = %id, "a receipt says nothing new");
            return Ok(Changes::default());
        }
        // Also if the status stays, the revision changes: of two receipts at once that report the same, one decides
        // again and finds the other's event.
        let now = self.now();
        let after = message.after(judgment.status, judgment.events.iter().map(|(kind, _)| *kind), now);
        // A read receipt is an open.
        let is_read = judgment.events.iter().any(|(kind, _)| *kind == EventKind::Open);
        let mut changes = Changes::from_iter(moves(&message, &after, is_read.then_some((EventKind::Open, false)), now));
        changes.extend(self.append_events((&message).into(), judgment.events.clone()).await?);
        changes.extend(self.address_writes(&message, &judgment).await?);
        Ok(changes)
    }
}
