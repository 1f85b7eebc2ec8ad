//! Confirmations: the mail that asks a reader to follow a link, and the press of the button behind it.
//!
//! Contract section 23, "Double opt-in". The link names the message; it confirms the lists whose records say that they
//! were asked at the moment when the message was accepted. Only a press confirms: mail filters follow links.

use std::sync::Arc;

use messaging_core::changes::{Changes, Expect, Write};
use messaging_core::domain::audience::contact::{Consent, Contact};
use messaging_core::domain::audience::list::ContactList;
use messaging_core::domain::audience::page_texts::PageTexts;
use messaging_core::domain::audience::reader_texts::{Language, ReaderText, escaped};
use messaging_core::domain::audience::subscription::{
    CONFIRM_WITHIN, Subscription, SubscriptionAct, SubscriptionStatus,
};
use messaging_core::domain::audience::suppression::SuppressionReason;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address;
use messaging_core::domain::delivery::lane::JobClass;
use messaging_core::domain::mail::link_token::Link;
use messaging_core::domain::mail::sending_domain::DomainStatus;
use messaging_core::domain::message::message_input::{MessageInput, MessageOptions};
use messaging_core::domain::template::Template;
use messaging_core::ids::{ListId, MessageId, WorkspaceId};
use messaging_core::input;
use messaging_core::ports::store::{PageRequest, StoreError, Stored};
use messaging_core::time::Timestamp;

use crate::app::App;
use crate::error::Error;
use crate::jobs::send_confirmation::SendConfirmation;
use crate::services::acceptance::{AcceptedWrites, SentMessage};
use crate::services::subscribing::{Reader, record};

/// Template variable with the link.
const CONFIRM_URL: &str = "confirm_url";

/// Largest number of templates that are searched for one with the link.
const MAX_TEMPLATES: usize = 1000;
const TEMPLATES_OF_PAGE: usize = 200;

/// A public list as its reader sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReaderList {
    /// Id of the list.
    pub id: ListId,
    /// Name of the list.
    pub name: String,
    /// Text for its readers.
    pub description: Option<String>,
    /// True if the reader is a confirmed member.
    pub is_member: bool,
}

/// Content of a page for one reader.
#[derive(Debug, Clone)]
pub struct ReaderPage {
    /// Language of the contact, if pages are in it.
    pub language: Option<Language>,
    /// Name of the workspace.
    pub sender: String,
    /// Lists that the page is about.
    pub lists: Vec<ReaderList>,
    /// True if the reader wants at most one mail a week; `None` if the page offers no such choice.
    pub weekly: Option<bool>,
}

/// Result of following a link for a reader.
#[derive(Debug, Clone)]
pub enum Followed<T> {
    /// The link works.
    Found(T),
    /// The link is ours, but too old, or about a person or resource that is gone.
    Expired,
    /// No message was ever sent with this link.
    Unknown,
}

impl ReaderList {
    fn of(list: ContactList, contact: &Contact) -> Self {
        let is_member = contact.list_ids.contains(&list.id);
        Self { id: list.id, name: list.name, description: list.description, is_member }
    }
}

/// A contact that is asked to confirm, with the records that a message asks about.
struct Asked {
    contact: Stored<Contact>,
    records: Vec<Stored<Subscription>>,
}

impl App {
    /// Returns the page about some of the public lists for a contact.
    pub(crate) async fn reader_page(
        &self,
        contact: &Contact,
        wanted: impl Fn(ListId) -> bool + Send,
    ) -> Result<ReaderPage, StoreError> {
        let lists = self.public_lists(contact.workspace_id).await?;
        let lists =
            lists.into_iter().filter(|list| wanted(list.id)).map(|list| ReaderList::of(list, contact)).collect();
        let language = contact.locale.as_deref().and_then(Language::of_tag);
        Ok(ReaderPage { language, sender: self.sender_name(contact.workspace_id).await?, lists, weekly: None })
    }

    /// Returns the name that a workspace has for its readers.
    pub(crate) async fn sender_name(&self, workspace: WorkspaceId) -> Result<String, StoreError> {
        Ok(self.workspace(workspace).await?.map_or_else(String::new, |workspace| workspace.name.clone()))
    }

    /// Returns a workspace's texts that replace the built-in ones.
    pub(crate) async fn page_texts(&self, workspace: WorkspaceId) -> Result<PageTexts, StoreError> {
        Ok(self.workspace(workspace).await?.map(|found| found.readers.page_texts.clone()).unwrap_or_default())
    }

    /// Returns the public lists of a workspace.
    pub(crate) async fn public_lists(&self, workspace: WorkspaceId) -> Result<Vec<ContactList>, StoreError> {
        self.store().public_lists(workspace, messaging_core::domain::audience::list::MAX_PUBLIC).await
    }

    /// Returns the writes that send a contact one confirmation for some lists; none if there is nothing to confirm, or
    /// the limits of confirmations are reached.
    pub(crate) async fn confirmation_writes(&self, job: &SendConfirmation) -> Result<Vec<Write>, Error> {
        let (workspace, lists, now) = (job.workspace_id, &job.list_ids, self.now());
        let Some(Stored { record: contact, .. }) = self.store().contact(workspace, job.contact_id).await? else {
            return Ok(Vec::new());
        };
        let Some(email) = contact.email.clone() else { return Ok(Vec::new()) };
        let lists = self.store().public_lists_among(workspace, lists).await?;
        let records = self.records(workspace, &lists, &[contact.id]).await?;
        let asked: Vec<_> = records.into_values().filter(|stored| stored.record.may_ask(now)).collect();
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        let is_asked = |id| asked.iter().any(|stored| stored.record.list_id == id);
        let page = self.reader_page(&contact, is_asked).await?;
        let AcceptedWrites { writes, .. } = self.confirmation(&contact, email, &page, (job.class(), now)).await?;
        let asked = asked.into_iter().map(|Stored { record, revision }| {
            Write::PutSubscription(Box::new(record.asked_at(now)), Expect::Revision(revision))
        });
        Ok(writes.into_iter().chain(asked).collect())
    }

    /// Returns the message that asks to confirm.
    async fn confirmation(
        &self,
        contact: &Contact,
        email: String,
        page: &ReaderPage,
        (class, now): (JobClass, Timestamp),
    ) -> Result<AcceptedWrites, Error> {
        let workspace = contact.workspace_id;
        let message_id: MessageId = self.new_id(now);
        let url = self.reader_url(workspace, message_id, "/c/", Link::Confirm);
        let names: Vec<_> = page.lists.iter().map(|list| list.name.clone()).collect();
        let template = self.confirmation_template(workspace).await?;
        let has_sender = template.as_ref().is_some_and(|template| template.design.from_email.is_some());
        let input = if let Some(template) = template {
            MessageInput::email(email)
                .template_id(template.id.to_string())
                .variable(CONFIRM_URL, url)
                .variable("lists", names)
        } else {
            let texts = self.page_texts(workspace).await?;
            own_mail(email, page, (ReaderText::ConfirmTitle, ReaderText::ConfirmText), &names, &url, &texts)
        };
        let input = if has_sender { input } else { self.with_sender(workspace, input).await? };
        self.accept_reader_mail(contact, input, (message_id, class), now).await
    }

    /// Gives the message a sender at the oldest verified domain of the workspace: readers cannot say which of several
    /// it is.
    pub(crate) async fn with_sender(
        &self,
        workspace: WorkspaceId,
        input: MessageInput,
    ) -> Result<MessageInput, StoreError> {
        let domains = self.sending_domains(workspace).await?;
        let verified = domains.iter().filter(|domain| domain.status == DomainStatus::Verified);
        let oldest = verified.min_by_key(|domain| (domain.created_at, domain.id));
        Ok(match oldest {
            Some(domain) => input.sending_domain_id(domain.id.to_string()),
            None => input,
        })
    }

    /// Returns the address of the page behind a link in a message.
    pub(crate) fn reader_url(&self, workspace: WorkspaceId, message: MessageId, path: &str, link: Link) -> String {
        let base = self.settings().public_url.trim_end_matches('/');
        format!("{base}{path}{}", self.link_key().link(workspace, message, link))
    }

    /// Accepts a message that a reader, or an import of readers, caused: transactional, and without tracking. Its class
    /// says with which jobs it takes turns.
    pub(crate) async fn accept_reader_mail(
        &self,
        contact: &Contact,
        input: MessageInput,
        (message_id, class): (MessageId, JobClass),
        now: Timestamp,
    ) -> Result<AcceptedWrites, Error> {
        let mut input = input.options(MessageOptions::default().track_opens(false).track_clicks(false));
        input.contact_id = Some(contact.id.to_string());
        let (input, mut violations) = input::made_body(input)?;
        let sent = SentMessage { message_id: Some(message_id), class, ..SentMessage::new(contact.workspace_id, input) };
        self.accept_message(sent, now, &mut violations).await
    }

    /// Returns the newest email template with the link that can be sent.
    async fn confirmation_template(&self, workspace: WorkspaceId) -> Result<Option<Arc<Template>>, StoreError> {
        let mut page = PageRequest { after: None, limit: TEMPLATES_OF_PAGE };
        for _ in 0..MAX_TEMPLATES / TEMPLATES_OF_PAGE {
            let slice = self.store().templates(workspace, Some(Channel::Email), page).await?;
            let has_link = |variables: &[String]| variables.iter().any(|name| name == CONFIRM_URL);
            for template in slice.items.iter().filter(|template| has_link(&template.variables)) {
                let head = self.template_head(workspace, template.id).await?.filter(|head| head.can_be_sent());
                if head.is_some() {
                    return Ok(head);
                }
            }
            page.after = slice.next;
            if page.after.is_none() {
                break;
            }
        }
        Ok(None)
    }

    /// Returns the page that asks to confirm; changes nothing.
    pub async fn subscription_to_confirm(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
    ) -> Result<Followed<ReaderPage>, Error> {
        match self.asked(workspace, message).await? {
            Followed::Found(Asked { contact, records }) => {
                let is_asked = |id| records.iter().any(|stored| stored.record.list_id == id);
                Ok(Followed::Found(self.reader_page(&contact.record, is_asked).await?))
            }
            Followed::Expired => Ok(Followed::Expired),
            Followed::Unknown => Ok(Followed::Unknown),
        }
    }

    /// Confirms the subscriptions that a message asked for: the contact becomes a member, agrees to marketing by email,
    /// and its address is no longer suppressed for having unsubscribed. Repeating it changes nothing.
    pub async fn confirm_subscription(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
        reader: &Reader,
    ) -> Result<Followed<ReaderPage>, Error> {
        self.until_committed(|| async move {
            let Asked { contact, records } = match self.asked(workspace, message).await? {
                Followed::Found(asked) => asked,
                Followed::Expired => return Ok((Changes::default(), Followed::Expired)),
                Followed::Unknown => return Ok((Changes::default(), Followed::Unknown)),
            };
            let is_asked = |id| records.iter().any(|stored| stored.record.list_id == id);
            let page = self.reader_page(&contact.record, is_asked).await?;
            let agreeing = self.agree_writes(&contact).await?;
            let is_member = |list: &ListId| contact.record.list_ids.contains(list);
            let has_agreed = contact.record.consent.marketing_email == Some(true) && agreeing.len() == 1;
            let is_done = |one: &Stored<Subscription>| {
                one.record.status == SubscriptionStatus::Confirmed && is_member(&one.record.list_id)
            };
            if has_agreed && records.iter().all(is_done) {
                return Ok((Changes::default(), Followed::Found(page)));
            }
            let mut changes = Changes::from_iter(agreeing);
            let now = self.now();
            for stored in &records {
                let Subscription { list_id, contact_id, .. } = stored.record;
                let proof = reader.proof(SubscriptionAct::Confirmation, now);
                let ids = (workspace, list_id, contact_id);
                changes.push(record(ids, Some(stored), SubscriptionStatus::Confirmed, proof));
                if !is_member(&list_id) {
                    changes.push(Write::JoinList(workspace, list_id, contact_id, now));
                }
            }
            Ok((changes, Followed::Found(page)))
        })
        .await
    }

    /// Returns the writes by which a reader agrees to marketing by email, whatever was said before. The first is that
    /// of the contact, also if it agreed already: a withdrawal at the same moment conflicts.
    pub(crate) async fn agree_writes(&self, contact: &Stored<Contact>) -> Result<Vec<Write>, StoreError> {
        let Stored { record, revision } = contact;
        let (workspace, now) = (record.workspace_id, self.now());
        let has_agreed = record.consent.marketing_email == Some(true);
        let consent = Consent { marketing_email: Some(true), ..record.consent };
        let updated_at = if has_agreed { record.updated_at } else { now };
        let agreeing = Contact { consent, updated_at, ..record.clone() };
        let mut writes = vec![Write::put_contact(agreeing, Expect::Revision(*revision))];
        let address = record.email.as_deref().map(|email| address::normalize(Channel::Email, email));
        let listed = self.store().suppressed(workspace, Channel::Email, address.as_slice()).await?;
        let unsubscribed = listed.into_iter().filter(|one| one.record.reason == SuppressionReason::Unsubscribe);
        writes.extend(unsubscribed.map(|one| Write::DeleteSuppression(workspace, one.record.id, now)));
        Ok(writes)
    }

    /// Returns the contact and the records that a confirmation is about.
    async fn asked(&self, workspace: WorkspaceId, message: MessageId) -> Result<Followed<Asked>, StoreError> {
        let Some(message) = self.store().message(workspace, message).await? else { return Ok(Followed::Unknown) };
        if message.created_at + CONFIRM_WITHIN <= self.now() {
            return Ok(Followed::Expired);
        }
        let Some(known) = self.contact_of_message(&message).await? else { return Ok(Followed::Expired) };
        let public: Vec<_> = self.public_lists(workspace).await?.into_iter().map(|list| list.id).collect();
        let records = self.records(workspace, &public, &[known.record.id]).await?;
        // Read after the records: a change to them in between conflicts, and is repeated with the contact's
        // memberships.
        let contact = self.store().contact(workspace, known.record.id).await?;
        let Some(contact) = contact else { return Ok(Followed::Expired) };
        // The link proves the address that it was sent to, and no other.
        let spelled = |text: &str| address::normalize(Channel::Email, text);
        if contact.record.email.as_deref().map(spelled) != Some(spelled(&message.to)) {
            return Ok(Followed::Expired);
        }
        let mut records: Vec<_> =
            records.into_values().filter(|stored| stored.record.asked.contains(&message.created_at)).collect();
        records.sort_by_key(|stored| stored.record.list_id);
        if records.is_empty() {
            return Ok(Followed::Expired);
        }
        Ok(Followed::Found(Asked { contact, records }))
    }
}

/// Returns a built-in mail that asks a reader to follow a link, in the reader's language.
pub(crate) fn own_mail(
    to: String,
    page: &ReaderPage,
    (title, text): (ReaderText, ReaderText),
    names: &[String],
    url: &str,
    texts: &PageTexts,
) -> MessageInput {
    let language = page.language.unwrap_or_default();
    let say = |text: ReaderText| texts.say(text, language);
    let plain_names: String = names.iter().map(|name| format!("- {name}\n")).collect();
    let items: String = names.iter().map(|name| format!("<li>{}</li>", escaped(name))).collect();
    let list = if items.is_empty() { String::new() } else { format!("<ul>{items}</ul>") };
    let plain =
        format!("{}\n\n{plain_names}\n{url}\n\n{}\n\n{}\n", say(text), say(ReaderText::MailIgnore), page.sender);
    let html = format!(
        "<!doctype html><html lang=\"{}\"><body style=\"font-family:sans-serif\"><p>{}</p>{list}\
         <p><a href=\"{}\" data-no-track>{}</a></p><p>{}</p><p>{}</p></body></html>",
        language.code(),
        escaped(say(text)),
        escaped(url),
        escaped(say(ReaderText::ConfirmButton)),
        escaped(say(ReaderText::MailIgnore)),
        escaped(&page.sender),
    );
    let name: String = page.sender.chars().filter(|letter| !letter.is_control()).take(128).collect();
    let mail = MessageInput::email(to).subject(say(title)).html(html).text(plain);
    if name.is_empty() { mail } else { mail.from_name(name) }
}
