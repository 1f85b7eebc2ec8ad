//! The preferences page: a reader's subscriptions, address and language, and the data stored about them.
//!
//! Contract section 23, "Preferences". The link is in marketing mail and names its message; whoever has it reads the
//! mailbox. A change of address and an erasure, which a person who was forwarded a mail must not make, are confirmed by
//! a mail.

use messaging_core::changes::{Changes, Expect, Write};
use messaging_core::domain::audience::contact::{Contact, Identifier};
use messaging_core::domain::audience::reader_texts::{Language, ReaderText};
use messaging_core::domain::audience::subscription::{
    CONFIRM_WITHIN, Proof, Subscription, SubscriptionAct, SubscriptionStatus,
};
use messaging_core::domain::channel::{Channel, address};
use messaging_core::domain::delivery::lane::JobClass;
use messaging_core::domain::mail::link_token::Link;
use messaging_core::domain::message::{Message, MessageFilter};
use messaging_core::ids::{ListId, MessageId, WorkspaceId};
use messaging_core::ports::store::{PageRequest, StoreError, Stored};
use messaging_core::violation::Violations;
use serde_json::{Value, json};

use crate::app::App;
use crate::error::Error;
use crate::services::acceptance::AcceptedWrites;
use crate::services::confirming::{Followed, ReaderPage, own_mail};
use crate::services::subscribing::{Reader, record};

/// Number of a reader's messages and events that are shown to them.
const MAX_SHOWN: usize = 200;

/// Choices of a reader on the preferences page.
#[derive(Debug, Clone, Default)]
pub struct Preferences {
    /// Lists that the page showed.
    pub shown: Vec<ListId>,
    /// Shown lists that the reader wants to be on.
    pub wanted: Vec<ListId>,
    /// True if the reader wants at most one mail a week; `None` where the page did not ask.
    pub weekly: Option<bool>,
    /// Language that the reader wants.
    pub language: Option<Language>,
}

/// Kind of mail that a reader requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReaderMail {
    /// Mail to a new address, which becomes the contact's.
    ChangeAddress,
    /// Mail to the current address, to erase the contact.
    Erase,
}

impl App {
    /// Returns the preferences page of the recipient of a message.
    pub async fn preferences(&self, workspace: WorkspaceId, message: MessageId) -> Result<Followed<ReaderPage>, Error> {
        match self.reader_of(workspace, message).await? {
            Followed::Found((_, contact)) => {
                let page = self.reader_page(&contact.record, |_| true).await?;
                let weekly = self.weekly_choice(&contact.record, &page).await?;
                Ok(Followed::Found(ReaderPage { weekly, ..page }))
            }
            Followed::Expired => Ok(Followed::Expired),
            Followed::Unknown => Ok(Followed::Unknown),
        }
    }

    /// Returns whether a reader wants at most one mail a week; `None` if they are on no public list and were on none:
    /// the choice is stored with their records on public lists.
    async fn weekly_choice(&self, contact: &Contact, page: &ReaderPage) -> Result<Option<bool>, StoreError> {
        let shown: Vec<_> = page.lists.iter().map(|list| list.id).collect();
        let records = self.records(contact.workspace_id, &shown, &[contact.id]).await?;
        let is_kept = !records.is_empty() || page.lists.iter().any(|list| list.is_member);
        Ok(is_kept.then(|| records.values().any(|stored| stored.record.is_weekly)))
    }

    /// Changes the subscriptions of the recipient of a message, and their language.
    pub async fn set_preferences(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
        preferences: &Preferences,
        reader: &Reader,
    ) -> Result<Followed<()>, Error> {
        self.until_committed(|| async move {
            let contact = match self.reader_of(workspace, message).await? {
                Followed::Found((_, contact)) => contact,
                Followed::Expired => return Ok((Changes::default(), Followed::Expired)),
                Followed::Unknown => return Ok((Changes::default(), Followed::Unknown)),
            };
            let changes = self.preference_writes(contact, preferences, reader).await?;
            Ok((changes.into_iter().collect(), Followed::Found(())))
        })
        .await
    }

    async fn preference_writes(
        &self,
        contact: Stored<Contact>,
        preferences: &Preferences,
        reader: &Reader,
    ) -> Result<Vec<Write>, StoreError> {
        let (workspace, id, now) = (contact.record.workspace_id, contact.record.id, self.now());
        let proof = reader.proof(SubscriptionAct::Preferences, now);
        let public = self.store().public_lists_among(workspace, &preferences.shown).await?;
        let is_member = |list: &ListId| contact.record.list_ids.contains(list);
        let wants = |list: &ListId| preferences.wanted.contains(list);
        let joins: Vec<_> = public.iter().copied().filter(|list| wants(list) && !is_member(list)).collect();
        let leaves: Vec<_> =
            public.iter().filter(|list| !wants(list) && is_member(list)).map(|list| (*list, true)).collect();
        let mut contact = contact;
        let before = contact.record.clone();
        if let Some(language) = preferences.language
            && contact.record.locale.as_deref().and_then(Language::of_tag) != Some(language)
        {
            contact.record.locale = Some(language.code().to_owned());
            contact.record.updated_at = now;
        }
        let mut writes = Vec::new();
        if !joins.is_empty() {
            // The change of consent includes the language.
            writes.extend(self.agree_writes(&contact).await?);
        }
        let is_put = writes.iter().any(|write| matches!(write, Write::PutContacts(_)));
        if contact.record != before && !is_put {
            writes.push(Write::put_contact(contact.record.clone(), Expect::Revision(contact.revision)));
        }
        let records = self.records(workspace, &joins, &[id]).await?;
        for list in joins {
            let known = records.get(&(list, id));
            writes.push(record((workspace, list, id), known, SubscriptionStatus::Confirmed, proof.clone()));
            writes.push(Write::JoinList(workspace, list, id, now));
        }
        let leaving = self.leave_writes(workspace, id, &leaves, &proof).await?;
        if !leaving.is_empty() {
            writes.push(self.have_sends_looked_at(workspace, id).await?);
        }
        writes.extend(leaving);
        if let Some(is_weekly) = preferences.weekly {
            self.set_weekly(&contact.record, &public, (is_weekly, &proof), &mut writes).await?;
        }
        Ok(writes)
    }

    /// Sets in the records of a reader on some public lists whether at most one mail a week is wanted: in those that
    /// are written already, and in the others.
    async fn set_weekly(
        &self,
        contact: &Contact,
        public: &[ListId],
        (is_weekly, proof): (bool, &Proof),
        writes: &mut Vec<Write>,
    ) -> Result<(), StoreError> {
        let mut written = Vec::new();
        for write in writes.iter_mut() {
            if let Write::PutSubscription(record, _) = write {
                record.is_weekly = is_weekly;
                written.push(record.list_id);
            }
        }
        let (workspace, id) = (contact.workspace_id, contact.id);
        let records = self.records(workspace, public, &[id]).await?;
        for list in public.iter().filter(|list| !written.contains(list)) {
            let (changed, expect) = match records.get(&(*list, id)) {
                Some(stored) if stored.record.is_weekly == is_weekly => continue,
                Some(stored) => (stored.record.clone(), Expect::Revision(stored.revision)),
                None if !is_weekly || !contact.list_ids.contains(list) => continue,
                None => {
                    let ids = (workspace, *list, id);
                    (Subscription::new(ids, SubscriptionStatus::Confirmed, proof.clone()), Expect::Absent)
                }
            };
            writes.push(Write::PutSubscription(Box::new(Subscription { is_weekly, ..changed }), expect));
        }
        Ok(())
    }

    /// Sends a reader the mail that confirms a change of address, with the `new_address`, or an erasure. Too many are
    /// [`Error::RateLimited`].
    pub async fn ask_reader(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
        (mail, new_address): (ReaderMail, Option<&str>),
        reader: &Reader,
    ) -> Result<Followed<()>, Error> {
        let contact = match self.reader_of(workspace, message).await? {
            Followed::Found((_, contact)) => contact.record,
            Followed::Expired => return Ok(Followed::Expired),
            Followed::Unknown => return Ok(Followed::Unknown),
        };
        let to = match mail {
            ReaderMail::ChangeAddress => new_address.unwrap_or_default().trim().to_owned(),
            ReaderMail::Erase => contact.email.clone().unwrap_or_default(),
        };
        let mut violations = Violations::new();
        address::check_sent(Channel::Email, &to, "/address", "not an email address", &mut violations);
        violations.into_result()?;
        let limited = |wait: std::time::Duration| Error::RateLimited { retry_after: wait.as_secs().max(1) };
        if let Some(ip) = reader.ip {
            self.0.form_posts.admit_caller(ip, self.monotonic()).map_err(limited)?;
        }
        let spelled = address::normalize(Channel::Email, &to);
        self.0.form_posts.admit_address(&spelled, self.monotonic()).map_err(limited)?;
        let page = self.reader_page(&contact, |_| false).await?;
        let (to, page, contact) = (&to, &page, &contact);
        self.until_committed(|| async move {
            let now = self.now();
            let message_id: MessageId = self.new_id(now);
            let (link, title, text) = match mail {
                ReaderMail::ChangeAddress => (Link::ChangeAddress, ReaderText::AddressTitle, ReaderText::AddressText),
                ReaderMail::Erase => (Link::Erase, ReaderText::EraseTitle, ReaderText::EraseText),
            };
            let url = self.reader_url(workspace, message_id, "/c/", link);
            let texts = self.page_texts(workspace).await?;
            let input = own_mail(to.clone(), page, (title, text), &[], &url, &texts);
            let input = self.with_sender(workspace, input).await?;
            let AcceptedWrites { writes, .. } =
                self.accept_reader_mail(contact, input, (message_id, JobClass::Transactional), now).await?;
            Ok((writes.into_iter().collect(), Followed::Found(())))
        })
        .await
    }

    /// Returns the page behind a mail that confirms a change of address or an erasure; changes nothing.
    pub async fn reader_to_confirm(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
    ) -> Result<Followed<ReaderPage>, Error> {
        match self.reader_of_mail(workspace, message).await? {
            Followed::Found((_, contact)) => Ok(Followed::Found(self.reader_page(&contact.record, |_| false).await?)),
            Followed::Expired => Ok(Followed::Expired),
            Followed::Unknown => Ok(Followed::Unknown),
        }
    }

    /// Gives the contact of a message the address that the message was sent to. Without effect if another contact has
    /// the address.
    pub async fn change_reader_address(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
    ) -> Result<Followed<ReaderPage>, Error> {
        self.until_committed(|| async move {
            let (message, contact) = match self.reader_of_mail(workspace, message).await? {
                Followed::Found(found) => found,
                Followed::Expired => return Ok((Changes::default(), Followed::Expired)),
                Followed::Unknown => return Ok((Changes::default(), Followed::Unknown)),
            };
            let page = self.reader_page(&contact.record, |_| false).await?;
            let Some(Identifier::Email(email)) = Identifier::of_address(Channel::Email, &message.to) else {
                return Ok((Changes::default(), Followed::Expired));
            };
            let owner = self.store().contact_identified(workspace, &Identifier::Email(email.clone())).await?;
            if owner.is_some_and(|owner| owner != contact.record.id) {
                return Ok((Changes::default(), Followed::Expired));
            }
            let mut changes = Changes::default();
            if contact.record.email.as_ref() != Some(&email) {
                let changed = Contact { email: Some(email), updated_at: self.now(), ..contact.record };
                changes.push(Write::put_contact(changed, Expect::Revision(contact.revision)));
            }
            Ok((changes, Followed::Found(page)))
        })
        .await
    }

    /// Erases the contact that a message was sent to, if it still has that address.
    pub async fn erase_reader(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
    ) -> Result<Followed<ReaderPage>, Error> {
        self.until_committed(|| async move {
            let (message, contact) = match self.reader_of_mail(workspace, message).await? {
                Followed::Found(found) => found,
                Followed::Expired => return Ok((Changes::default(), Followed::Expired)),
                Followed::Unknown => return Ok((Changes::default(), Followed::Unknown)),
            };
            let Stored { record: contact, revision } = contact;
            let spelled = |text: &str| address::normalize(Channel::Email, text);
            if contact.email.as_deref().map(spelled) != Some(spelled(&message.to)) {
                return Ok((Changes::default(), Followed::Expired));
            }
            let page = self.reader_page(&contact, |_| false).await?;
            let mut changes = Changes::from_iter([Write::put_contact(contact.clone(), Expect::Revision(revision))]);
            changes.extend(self.erasure(&contact));
            Ok((changes, Followed::Found(page)))
        })
        .await
    }

    /// Returns the data stored about the recipient of a message.
    pub async fn reader_data(&self, workspace: WorkspaceId, message: MessageId) -> Result<Followed<Value>, Error> {
        let contact = match self.reader_of(workspace, message).await? {
            Followed::Found((_, contact)) => contact.record,
            Followed::Expired => return Ok(Followed::Expired),
            Followed::Unknown => return Ok(Followed::Unknown),
        };
        let page = PageRequest { after: None, limit: MAX_SHOWN };
        let filter = MessageFilter { contact_id: Some(contact.id), ..MessageFilter::default() };
        let messages = self.store().messages(workspace, &filter, page).await?.items;
        let messages: Vec<_> = messages
            .iter()
            .map(|one| json!({"id": one.id, "channel": one.channel, "to": one.to, "created_at": one.created_at}))
            .collect();
        let events = self.store().product_events(workspace, contact.id, page).await?.items;
        let events: Vec<_> = events
            .iter()
            .map(|one| {
                let properties: Value = serde_json::from_str(one.properties.json()).unwrap_or_default();
                json!({"name": one.name, "occurred_at": one.occurred_at, "properties": properties})
            })
            .collect();
        let mut records: Vec<_> = self.records_of(workspace, contact.id).await?.into_values().collect();
        records.sort_by_key(|stored| stored.record.list_id);
        let memberships: Vec<_> = records
            .into_iter()
            .map(|Stored { record, .. }| {
                json!({"list_id": record.list_id, "status": record.status, "since": record.since, "proof": record.proof})
            })
            .collect();
        Ok(Followed::Found(json!({
            "contact": {
                "email": contact.email, "phone": contact.phone, "external_id": contact.external_id,
                "attributes": contact.attributes.into_members(), "tags": contact.tags, "locale": contact.locale,
                "timezone": contact.timezone, "list_ids": contact.list_ids, "consent": contact.consent,
                "created_at": contact.created_at, "updated_at": contact.updated_at,
            },
            "memberships": memberships, "messages": messages, "events": events,
        })))
    }

    /// Returns the contact that a message was sent to.
    async fn reader_of(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
    ) -> Result<Followed<(Message, Stored<Contact>)>, StoreError> {
        let Some(message) = self.store().message(workspace, message).await? else { return Ok(Followed::Unknown) };
        let found = self.contact_of_message(&message).await?;
        Ok(found.map_or(Followed::Expired, |contact| Followed::Found((message, contact))))
    }

    /// Returns the contact of a mail that confirms something, for thirty days.
    async fn reader_of_mail(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
    ) -> Result<Followed<(Message, Stored<Contact>)>, StoreError> {
        Ok(match self.reader_of(workspace, message).await? {
            Followed::Found((message, _)) if message.created_at + CONFIRM_WITHIN <= self.now() => Followed::Expired,
            found => found,
        })
    }
}
