//! Unsubscribing of recipients.
//!
//! Contract sections 10, "Unsubscribe", and 23. The link, one click and the mail all end here.

use messaging_core::changes::{Changes, Write, moves};
use messaging_core::domain::audience::contact::Contact;
use messaging_core::domain::audience::subscription::{Proof, SubscriptionAct, SubscriptionStatus};
use messaging_core::domain::audience::suppression::{SuppressionReason, SuppressionSource};
use messaging_core::domain::audience::unsubscribe::UnsubscribeMethod;
use messaging_core::domain::channel::{Channel, address};
use messaging_core::domain::message::{EventKind, Message};
use messaging_core::ids::{ListId, MessageId, WorkspaceId};
use messaging_core::ports::store::{StoreError, Stored};
use serde_json::json;

use crate::app::App;
use crate::error::Error;
use crate::services::confirming::ReaderPage;
use crate::services::message_parts::is_to_contact;
use crate::services::subscribing::Reader;
use crate::services::suppressing::Listing;

/// Scope of an unsubscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnsubscribeScope {
    /// The scope of the message by RFC 8058: the list, if its campaign went to exactly one public list, else
    /// everything.
    OfMessage,
    /// A public list that the message went to; any other list stands for everything.
    List(ListId),
    /// All marketing email of the workspace.
    Everything,
}

impl App {
    /// Unsubscribes the recipient of a message in the scope of the message: see
    /// [`unsubscribe_from`](Self::unsubscribe_from).
    pub async fn unsubscribe(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
        method: UnsubscribeMethod,
    ) -> Result<bool, Error> {
        self.unsubscribe_from(workspace, message, (method, UnsubscribeScope::OfMessage), &Reader::default()).await
    }

    /// Unsubscribes the recipient of a message. From everything: the `to` address is suppressed, its contact no longer
    /// agrees to marketing and leaves the public lists, and the message gets an event. From a list: the contact leaves
    /// it, and the message gets an event. Copies have the same link; they cannot be told apart, and count as `to`.
    ///
    /// Returns true if anything changed. A repetition changes nothing, unless the suppression of the address was
    /// removed meanwhile: then it counts again. A message that does not exist is [`Error::NotFound`].
    pub async fn unsubscribe_from(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
        (method, scope): (UnsubscribeMethod, UnsubscribeScope),
        reader: &Reader,
    ) -> Result<bool, Error> {
        self.until_committed(|| async move {
            let message = self.store().message(workspace, message).await?.ok_or(Error::NotFound)?;
            if message.to.is_empty() {
                // The recipient was erased: the address is not known any more.
                return Ok((Changes::default(), false));
            }
            let lists = self.lists_of_message(&message).await?;
            let list = match scope {
                UnsubscribeScope::OfMessage => lists.only,
                UnsubscribeScope::List(list) => Some(list).filter(|list| lists.public.contains(list)),
                UnsubscribeScope::Everything => None,
            };
            match list {
                Some(list) => self.leave_list(&message, method, list, reader).await,
                None => self.leave_everything(&message, method, reader).await,
            }
        })
        .await
    }

    /// Returns the choices of the unsubscribe page: the public lists that the message went to and its recipient is on;
    /// no lists if there is only everything to unsubscribe from. A message that does not exist is [`Error::NotFound`].
    pub async fn unsubscribe_page(&self, workspace: WorkspaceId, message: MessageId) -> Result<ReaderPage, Error> {
        let message = self.store().message(workspace, message).await?.ok_or(Error::NotFound)?;
        let lists = self.lists_of_message(&message).await?;
        let contact = self.contact_of_message(&message).await?;
        let Some(Stored { record: contact, .. }) = contact else {
            let sender = self.sender_name(workspace).await?;
            return Ok(ReaderPage { language: None, sender, lists: Vec::new(), weekly: None });
        };
        Ok(self.reader_page(&contact, |list| lists.public.contains(&list) && contact.list_ids.contains(&list)).await?)
    }

    /// Returns the public lists that a message went to.
    async fn lists_of_message(&self, message: &Message) -> Result<ListsOfMessage, StoreError> {
        let Some(campaign) = message.campaign_id.filter(|_| message.channel == Channel::Email) else {
            return Ok(ListsOfMessage::default());
        };
        let Some(campaign) = self.campaign(message.workspace_id, campaign).await? else {
            return Ok(ListsOfMessage::default());
        };
        let audience = &campaign.plan.audience;
        if audience.list_ids.is_empty() {
            return Ok(ListsOfMessage::default());
        }
        let public = self.store().public_lists_among(message.workspace_id, &audience.list_ids).await?;
        let is_one = audience.list_ids.len() == 1 && audience.segment_ids.is_empty();
        Ok(ListsOfMessage { only: public.first().copied().filter(|_| is_one), public })
    }

    /// Returns the changes by which a contact leaves a public list because of a message.
    async fn leave_list(
        &self,
        message: &Message,
        method: UnsubscribeMethod,
        list: ListId,
        reader: &Reader,
    ) -> Result<(Changes, bool), Error> {
        let Some(Stored { record: known, .. }) = self.contact_of_message(message).await? else {
            return self.leave_everything(message, method, reader).await;
        };
        let (contact, now) = (known.id, self.now());
        let proof = reader.proof(SubscriptionAct::Unsubscribe, now);
        let lists = [(list, known.list_ids.contains(&list))];
        let leaving = self.leave_writes(message.workspace_id, contact, &lists, &proof).await?;
        if leaving.is_empty() {
            return Ok((Changes::default(), false));
        }
        let guard = moves(message, &message.after(None, [EventKind::Unsubscribe], now), None, now);
        let meta = [("method", json!(method)), ("list_id", json!(list))];
        let meta = meta.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let event = self.append_events(message.into(), [(EventKind::Unsubscribe, meta)]).await?;
        let sends = self.have_sends_looked_at(message.workspace_id, contact).await?;
        Ok((guard.into_iter().chain(event).chain(leaving).chain([sends]).collect(), true))
    }

    /// Returns the changes by which the recipient of a message gets no marketing email any more.
    async fn leave_everything(
        &self,
        message: &Message,
        method: UnsubscribeMethod,
        reader: &Reader,
    ) -> Result<(Changes, bool), Error> {
        let workspace = message.workspace_id;
        let address = address::normalize(message.channel, &message.to);
        let listed = self.store().suppressed(workspace, message.channel, std::slice::from_ref(&address)).await?;
        let told = self.store().message_events_of_kind(workspace, message.id, EventKind::Unsubscribe, 1).await?;
        let mut consent = self.withdraw_consent(message, [&address]).await?;
        let reader_of = self.marketed_to(message).await?;
        if let Some(contact) = &reader_of {
            let proof = reader.proof(SubscriptionAct::Unsubscribe, self.now());
            consent.extend(self.leave_all_public(contact, &proof).await?);
        }
        if !listed.is_empty() && !told.is_empty() {
            // A contact that agreed again meanwhile withdraws again.
            let changed = !consent.is_empty();
            if let Some(contact) = reader_of.filter(|_| changed) {
                consent.push(self.have_sends_looked_at(workspace, contact.id).await?);
            }
            return Ok((consent.into_iter().collect(), changed));
        }
        if let Some(contact) = reader_of {
            consent.push(self.have_sends_looked_at(workspace, contact.id).await?);
        }
        let listing = Listing { address, reason: SuppressionReason::Unsubscribe, detail: None };
        let listing = self.suppress(workspace, message.channel, SuppressionSource::Recipient, vec![listing]).await?;
        // The message keeps its status. But of two requests at once only one finds it at this revision, and the other
        // decides again.
        let now = self.now();
        let guard = moves(message, &message.after(None, [EventKind::Unsubscribe], now), None, now);
        let meta = serde_json::Map::from_iter([("method".to_owned(), json!(method))]);
        let event = self.append_events(message.into(), [(EventKind::Unsubscribe, meta)]).await?;
        Ok((guard.into_iter().chain(event).chain(listing).chain(consent).collect(), true))
    }

    /// Returns the contact that a marketing email went to.
    async fn marketed_to(&self, message: &Message) -> Result<Option<Contact>, StoreError> {
        if message.channel != Channel::Email || !is_to_contact(message) {
            return Ok(None);
        }
        Ok(self.contact_of_message(message).await?.map(|stored| stored.record))
    }

    /// Returns the writes by which a contact leaves all public lists that it is on, or is asked to confirm.
    pub(crate) async fn leave_all_public(&self, contact: &Contact, proof: &Proof) -> Result<Vec<Write>, StoreError> {
        let records = self.records_of(contact.workspace_id, contact.id).await?;
        let open = records.values().filter(|stored| stored.record.status != SubscriptionStatus::Left);
        let mut named: Vec<_> = open.map(|stored| stored.record.list_id).collect();
        named.extend(contact.list_ids.iter().filter(|list| !records.contains_key(list)));
        if named.is_empty() {
            return Ok(Vec::new());
        }
        let public = self.store().public_lists_among(contact.workspace_id, &named).await?;
        let lists: Vec<_> = public.into_iter().map(|list| (list, contact.list_ids.contains(&list))).collect();
        self.leave_writes(contact.workspace_id, contact.id, &lists, proof).await
    }
}

/// Public lists that a message went to.
#[derive(Debug, Default)]
struct ListsOfMessage {
    /// All of the public lists.
    public: Vec<ListId>,
    /// The campaign's only list, if it is public and the audience has no segments.
    only: Option<ListId>,
}
