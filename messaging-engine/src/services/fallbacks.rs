//! Chains of messages: the next one of a chain, accepted when the one before does not arrive.
//!
//! Contract section 4.1, `fallback`. A next message that cannot be accepted any more (its template is gone, its channel
//! has lost its settings) is stored all the same, as failed: every message of a chain can be looked up, and the chain
//! continues after it.

use messaging_core::changes::Write;
use messaging_core::domain::message::Message;
use messaging_core::domain::message::fallback;
use messaging_core::domain::message::message_input::MessageInput;
use messaging_core::domain::message::message_input::chain::FallbackInput;
use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;
use messaging_core::violation::Violations;

use crate::app::App;
use crate::error::{Error, Unprocessable};
use crate::services::acceptance::{AcceptedWrites, SentMessage};
use crate::services::chains::Unsent;

/// Next message of a chain.
pub(crate) struct Chained {
    /// Step of the chain that gives the next message its channel, recipient and content.
    next: FallbackInput,
    /// Request of the message before, without its own content and with the rest of the chain.
    input: MessageInput,
}

impl Chained {
    /// Returns the next message after one with this request; `None` at the end of the chain.
    pub(crate) fn after(mut input: MessageInput) -> Option<Self> {
        let mut rest = input.fallback.take()?.into_iter();
        let next = rest.next()?;
        let rest: Vec<_> = rest.collect();
        input.fallback = Some(rest).filter(|rest| !rest.is_empty());
        Some(Self { next, input })
    }

    /// Returns the request of the next message, to this address. If the chain as a whole is scheduled for later, the
    /// message is too.
    fn request(self, to: Option<String>, now: Timestamp) -> MessageInput {
        let mut request = self.input.fallback_message(&self.next);
        request.to = to;
        request.send_at = self.input.send_at.filter(|send_at| *send_at > now);
        request.fallback = self.input.fallback;
        request
    }
}

impl App {
    /// Returns the writes that accept the next message of a chain after `before`.
    pub(crate) async fn accept_fallback(&self, before: &Message, next: Chained) -> Result<Vec<Write>, StoreError> {
        let now = self.now();
        let workspace_id = before.workspace_id;
        let first = before.fallback_of.unwrap_or(before.id);
        let contact = match before.contact_id {
            Some(id) => self.store().contact(workspace_id, id).await?.map(|stored| stored.record),
            None => None,
        };
        let channel = next.next.channel;
        let own = match &contact {
            Some(contact) => self.addresses_of(contact, channel).await?.into_iter().next(),
            None => None,
        };
        let to = fallback::address(channel, next.next.to.as_deref(), own, (before.channel, &before.to));
        let mut input = next.request(to, now);
        input.contact_id = contact.map(|contact| contact.id.to_string());
        let sent = SentMessage { fallback_of: Some(first), ..SentMessage::new(workspace_id, input.clone()) };
        let refused = match self.accept_message(sent, now, &mut Violations::new()).await {
            Ok(AcceptedWrites { writes, .. }) => return Ok(writes),
            Err(Error::Unavailable { .. } | Error::OutcomeUnknown { .. }) => return Err(StoreError::Unavailable),
            Err(error @ Error::Internal(_)) => return Err(StoreError::Failed(Box::new(error))),
            Err(error) => error,
        };
        let unsent = Unsent { workspace_id, input, fallback_of: Some(first), contact_id: before.contact_id };
        self.keep_unsent(unsent, reason(&refused), &refused.to_string(), now).await.map(|(_, writes)| writes)
    }
}

/// Returns the reason, by contract section 4.2, why a message that is not accepted failed.
fn reason(refused: &Error) -> &'static str {
    match refused {
        Error::Unprocessable(Unprocessable::ChannelNotConfigured) => "channel_not_configured",
        Error::SenderNotVerified(_) | Error::Unprocessable(Unprocessable::SenderMissing) => {
            "sender_domain_not_verified"
        }
        Error::Unprocessable(Unprocessable::ContactAddressMissing) => "no_route",
        _ => "render_error",
    }
}
