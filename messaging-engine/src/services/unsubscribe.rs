//! A recipient unsubscribes.
//!
//! Contract section 10, "Unsubscribe". The link, one click and the mail all end here.

use messaging_core::changes::{Changes, moves};
use messaging_core::domain::audience::suppression::{SuppressionReason, SuppressionSource};
use messaging_core::domain::audience::unsubscribe::UnsubscribeMethod;
use messaging_core::domain::channel::address;
use messaging_core::domain::message::EventKind;
use messaging_core::ids::{MessageId, WorkspaceId};
use serde_json::json;

use crate::app::App;
use crate::error::Error;
use crate::services::suppressing::Listing;

impl App {
    /// Unsubscribes the recipient of a message: the `to` address goes on the suppression list, its contact
    /// no longer agrees to marketing, and the message gets an event. Copies have the same link; they cannot
    /// be told apart, and count as `to`.
    ///
    /// Answers whether anything changed. A repeat changes nothing, unless the address was taken off the
    /// list meanwhile: then it counts anew. A message that is not there is [`Error::NotFound`].
    pub async fn unsubscribe(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
        method: UnsubscribeMethod,
    ) -> Result<bool, Error> {
        self.until_committed(|| async move {
            let message = self.store().message(workspace, message).await?.ok_or(Error::NotFound)?;
            if message.to.is_empty() {
                // The recipient was erased: nobody knows the address any more.
                return Ok((Changes::default(), false));
            }
            let address = address::normalize(message.channel, &message.to);
            let listed = self.store().suppressed(workspace, message.channel, std::slice::from_ref(&address)).await?;
            let told = self.store().message_events_of_kind(workspace, message.id, EventKind::Unsubscribe, 1).await?;
            let consent = self.withdraw_consent(&message, [&address]).await?;
            if !listed.is_empty() && !told.is_empty() {
                // Whoever agreed anew meanwhile withdraws anew.
                let changed = !consent.is_empty();
                return Ok((consent.into_iter().collect(), changed));
            }
            let listing = Listing { address, reason: SuppressionReason::Unsubscribe, detail: None };
            let listing =
                self.suppress(workspace, message.channel, SuppressionSource::Recipient, vec![listing]).await?;
            // The message stays in its state. But of two requests at once only one finds it at this
            // revision, and the other decides again.
            let now = self.now();
            let guard = moves(&message, &message.after(None, [EventKind::Unsubscribe], now), None, now);
            let meta = serde_json::Map::from_iter([("method".to_owned(), json!(method))]);
            let event = self.append_events((&message).into(), [(EventKind::Unsubscribe, meta)]).await?;
            Ok((guard.into_iter().chain(event).chain(listing).chain(consent).collect(), true))
        })
        .await
    }
}
