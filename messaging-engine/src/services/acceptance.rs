//! Accepting messages: from a request, a campaign or an automation.
//!
//! Contract section 4.1. Looks up what a request names and decides on it; the resulting writes, and the files that they
//! name, are one commit of the caller.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use messaging_core::DomainError;
use messaging_core::changes::{JobWrite, Write};
use messaging_core::domain::audience::contact::{Contact, Identifier};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address::EmailAddress;
use messaging_core::domain::delivery::lane::JobClass;
use messaging_core::domain::mail::sender;
use messaging_core::domain::mail::sending_domain::{DomainStatus, SendingDomain, responsible};
use messaging_core::domain::message::Message;
use messaging_core::domain::message::attachment::{self, MessageBlob, StoredFile};
use messaging_core::domain::message::content::{self, AutomationContent, TemplateUse};
use messaging_core::domain::message::hold::{Hold, HoldReason};
use messaging_core::domain::message::message_input::MessageInput;
use messaging_core::domain::template::Template;
use messaging_core::ids::{AutomationId, BlobId, CampaignId, ContactId, MessageId, WorkspaceId};
use messaging_core::time::Timestamp;
use messaging_core::violation::{FieldCode, Violations};

use crate::app::App;
use crate::error::{Error, Unprocessable, UnverifiedSender};
use crate::jobs::JobData as _;
use crate::jobs::deliver_message::{DeliverMessage, MarketingTerms};
use crate::services::chains::{Unsent, copy_keys};

/// Longest time ahead at which a message may be due.
pub(crate) const MAX_AHEAD: Duration = Duration::from_hours(366 * 24);

/// Time, with some room, within which a provider takes a due message with fallbacks at the latest: the retention of its
/// content begins then.
const MAX_CHAINED: Duration = Duration::from_hours(8 * 24);

/// A message to be accepted.
#[derive(Debug)]
pub(crate) struct SentMessage {
    /// The workspace that sends it.
    pub(crate) workspace_id: WorkspaceId,
    /// Parsed and checked request.
    pub(crate) input: MessageInput,
    /// The JSON that `input` was read from, if it was: stored as it is where nothing has to be replaced in it.
    pub(crate) request: Option<Bytes>,
    /// The campaign that it belongs to.
    pub(crate) campaign_id: Option<CampaignId>,
    /// Automation that it belongs to.
    pub(crate) automation: Option<OfAutomation>,
    /// First message of the fallback chain that it continues.
    pub(crate) fallback_of: Option<MessageId>,
    /// Id of the message, if its text contains it already.
    pub(crate) message_id: Option<MessageId>,
    /// True for a test of a campaign, which no statistics count.
    pub(crate) is_test: bool,
    /// `Bulk` for one of many messages that nobody waits for; these take turns with campaigns. Marketing of an
    /// automation is always bulk.
    pub(crate) class: JobClass,
}

impl SentMessage {
    /// A message that belongs to no campaign, automation or chain.
    pub(crate) const fn new(workspace_id: WorkspaceId, input: MessageInput) -> Self {
        Self {
            workspace_id,
            input,
            request: None,
            campaign_id: None,
            automation: None,
            fallback_of: None,
            message_id: None,
            is_test: false,
            class: JobClass::Transactional,
        }
    }
}

/// Parameters that an automation gives its message.
#[derive(Debug, Clone)]
pub(crate) struct OfAutomation {
    /// The automation.
    pub(crate) id: AutomationId,
    /// Limits on marketing messages; `None` for a transactional one.
    pub(crate) marketing: Option<MarketingTerms>,
    /// The subject in place of the template's, rendered.
    pub(crate) subject: Option<String>,
}

/// A message that is accepted once its writes are committed.
#[derive(Debug)]
pub(crate) struct AcceptedWrites {
    /// Id of the message.
    pub(crate) message_id: MessageId,
    /// Writes that make the message durable, with the jobs that deliver it.
    pub(crate) writes: Vec<Write>,
    /// Files that the writes name: to be stored before the commit, and removed should it fail.
    pub(crate) files: Vec<NewFile>,
}

/// A file to store beside the database.
#[derive(Debug)]
pub(crate) struct NewFile {
    /// Name of the file and of the message that refers to it.
    pub(crate) blob: MessageBlob,
    /// Bytes that the file consists of.
    pub(crate) bytes: Bytes,
}

impl App {
    /// Decides on a message that was requested at `now`. `violations` are the faults of the request found so far: if
    /// there are any, only more faults are looked for, and nothing is decided.
    pub(crate) async fn accept_message(
        &self,
        sent: SentMessage,
        now: Timestamp,
        violations: &mut Violations,
    ) -> Result<AcceptedWrites, Error> {
        let SentMessage {
            workspace_id,
            input,
            request,
            campaign_id,
            automation,
            fallback_of,
            message_id,
            is_test,
            class,
        } = sent;
        let send_at = due(&input, now, violations);
        if input.may_go_to(Channel::Viber) {
            input.check_viber(self.viber_service(workspace_id).await?, violations);
        }
        let named_domain = look_up(self, violations, workspace_id, &input).await?;
        let template = named_template(self, violations, workspace_id, &input).await?;
        look_up_chain(self, violations, workspace_id, &input).await?;
        let input = from_template(input, template.as_deref());
        let contact = named_contact(self, violations, workspace_id, &input).await?;
        if !violations.is_empty() {
            return Err(std::mem::take(violations).into());
        }
        let from_email = match input.channel {
            Channel::Email => Some(decide_sender(self, workspace_id, &input, named_domain.as_ref()).await?),
            _ => None,
        };
        require_transport(self, workspace_id, input.channel).await?;
        let has_fallback = input.has_fallback();
        let known = contact.as_ref().map(|contact| contact.id);
        let (to, contact_id) = match decide_recipient(self, workspace_id, &input, contact).await {
            Err(Error::Unprocessable(Unprocessable::ContactAddressMissing))
                if has_fallback || fallback_of.is_some() =>
            {
                let unsent = Unsent { workspace_id, input, fallback_of, contact_id: known };
                let why = "there is no address to send it to";
                let (message_id, writes) = self.keep_unsent(unsent, "no_route", why, now).await?;
                return Ok(AcceptedWrites { message_id, writes, files: Vec::new() });
            }
            decided => decided?,
        };

        let message = Message {
            from_email: from_email.map(|from| from.as_str().to_owned()),
            contact_id,
            campaign_id,
            automation_id: automation.as_ref().map(|automation| automation.id),
            template_id: template.as_ref().map(|template| template.id),
            fallback_of,
            has_fallback,
            is_test,
            tags: input.tags.clone().unwrap_or_default(),
            metadata: input.metadata.clone().unwrap_or_default(),
            hold: send_at.map(|until| Hold { reason: HoldReason::Scheduled, until: Some(until), since: now }),
            ..Message::queued(message_id.unwrap_or_else(|| self.new_id(now)), workspace_id, input.channel, to, now)
        };
        let message_id = message.id;
        let copies = copy_keys(self, workspace_id, &input);
        let (named, files) = name_files(self, &message, &input, send_at);
        let template = template.map(|template| TemplateUse { id: template.id, version: template.version });
        let jobs = match automation.as_ref().and_then(|automation| automation.marketing) {
            Some(terms) => vec![DeliverMessage::of_marketing(&message, terms)],
            None if class == JobClass::Bulk => vec![DeliverMessage::in_bulk(&message)],
            None => DeliverMessage::jobs_of(&message, input.cc.as_deref(), input.bcc.as_deref()),
        };
        let ttl = input.options.as_ref().and_then(|options| options.ttl);
        let goes_out_at = send_at.unwrap_or(now);
        let watch = self.watch(&message, &input, goes_out_at);
        let automation = automation.map(|OfAutomation { id: _, marketing, subject }| AutomationContent {
            is_marketing: marketing.is_some(),
            subject,
        });
        let channel = message.channel;
        let content = content::encode(request.as_ref(), input, named, template, automation);
        let mut writes = Vec::with_capacity(2 + jobs.len());
        writes.push(Write::InsertMessage(Box::new(message), content));
        if !copies.is_empty() {
            writes.push(Write::ListCopies(workspace_id, message_id, copies));
        }
        for job in jobs {
            let job = DeliverMessage { released_at: job.released_at.or(send_at), ..job.with_ttl(channel, ttl) };
            writes.push(Write::Job(JobWrite::Enqueue(job.enqueue(self.new_id(now), goes_out_at))));
        }
        writes.extend(watch);
        Ok(AcceptedWrites { message_id, writes, files })
    }
}

/// Returns the due time of a requested message; `None` for now. More than a year ahead is added to the violations.
fn due(input: &MessageInput, now: Timestamp, violations: &mut Violations) -> Option<Timestamp> {
    let send_at = input.send_at.filter(|send_at| *send_at > now)?;
    if send_at > now + MAX_AHEAD {
        violations.add("/send_at", FieldCode::OutOfRange, "must be at most a year ahead");
    }
    Some(send_at)
}

/// Looks up what the request names; adds a violation for each missing thing.
async fn look_up(
    app: &App,
    violations: &mut Violations,
    workspace: WorkspaceId,
    input: &MessageInput,
) -> Result<Option<SendingDomain>, Error> {
    let Some(id) = input.sending_domain_id.as_ref().filter(|id| !id.is_empty()) else { return Ok(None) };
    if input.channel != Channel::Email {
        return Ok(None);
    }
    let domain = match id.parse() {
        Ok(id) => app.store().domain(workspace, id).await?,
        Err(_) => None,
    };
    if domain.is_none() {
        violations.add("/sending_domain_id", FieldCode::NotFound, "no such sending domain in this workspace");
    }
    Ok(domain.map(|stored| stored.record))
}

/// Returns the template that the request names. One that does not exist, is for another channel or lacks a part that
/// the message needs is added to the violations.
async fn named_template(
    app: &App,
    violations: &mut Violations,
    workspace: WorkspaceId,
    input: &MessageInput,
) -> Result<Option<Arc<Template>>, Error> {
    find_template(app, violations, workspace, (input.channel, input.template_id.as_ref()), "/template_id").await
}

async fn find_template(
    app: &App,
    violations: &mut Violations,
    workspace: WorkspaceId,
    (channel, id): (Channel, Option<&String>),
    pointer: &str,
) -> Result<Option<Arc<Template>>, Error> {
    let Some(id) = id.filter(|id| !id.is_empty()) else { return Ok(None) };
    let found = match id.parse() {
        Ok(id) => app.template_head(workspace, id).await?,
        Err(_) => None,
    };
    let fault = match &found {
        None => Some((FieldCode::NotFound, "no such template in this workspace")),
        Some(template) if template.channel != channel => {
            Some((FieldCode::Conflict, "the template is for another channel"))
        }
        Some(template) if !template.can_be_sent() => {
            Some((FieldCode::Required, "the template has no subject, or nothing to say"))
        }
        Some(_) => None,
    };
    if let Some((code, rule)) = fault {
        violations.add(pointer, code, rule);
    }
    Ok(found)
}

/// Looks up the templates that the fallback chain names. Those that do not exist, or cannot be sent, are added to the
/// violations.
async fn look_up_chain(
    app: &App,
    violations: &mut Violations,
    workspace: WorkspaceId,
    input: &MessageInput,
) -> Result<(), Error> {
    for (index, next) in input.fallback.iter().flatten().enumerate() {
        let named = (next.channel, next.template_id.as_ref());
        find_template(app, violations, workspace, named, &format!("/fallback/{index}/template_id")).await?;
    }
    Ok(())
}

/// Takes the sender of the template where the request names none.
fn from_template(mut input: MessageInput, template: Option<&Template>) -> MessageInput {
    let Some(template) = template else { return input };
    let fill = |member: &mut Option<String>, own: &Option<String>| {
        if member.as_ref().is_none_or(String::is_empty) {
            member.clone_from(own);
        }
    };
    fill(&mut input.from_email, &template.design.from_email);
    fill(&mut input.from_name, &template.design.from_name);
    fill(&mut input.reply_to, &template.design.reply_to);
    input
}

/// Returns the contact that the request names. A missing one is added to the violations.
async fn named_contact(
    app: &App,
    violations: &mut Violations,
    workspace: WorkspaceId,
    input: &MessageInput,
) -> Result<Option<Contact>, Error> {
    let Some(id) = input.contact_id.as_ref().filter(|id| !id.is_empty()) else { return Ok(None) };
    let found = match id.parse() {
        Ok(id) => app.store().contact(workspace, id).await?,
        Err(_) => None,
    };
    if found.is_none() {
        violations.add("/contact_id", FieldCode::NotFound, "no such contact in this workspace");
    }
    Ok(found.map(|stored| stored.record))
}

/// Returns the address of the message and the contact it is attributed to: the named contact, else the one that has the
/// address.
async fn decide_recipient(
    app: &App,
    workspace: WorkspaceId,
    input: &MessageInput,
    contact: Option<Contact>,
) -> Result<(String, Option<ContactId>), Error> {
    let to = input.to.clone().filter(|to| !to.is_empty());
    if let Some(contact) = contact {
        let to = match to {
            Some(to) => Some(to),
            None => app.addresses_of(&contact, input.channel).await?.into_iter().next(),
        };
        return Ok((to.ok_or(Unprocessable::ContactAddressMissing)?, Some(contact.id)));
    }
    let to = to.ok_or(Unprocessable::ContactAddressMissing)?;
    if !app.has_contacts(workspace).await? {
        return Ok((to, None));
    }
    let contact_id = match Identifier::of_address(input.channel, &to) {
        Some(identifier) => app.store().contact_identified(workspace, &identifier).await?,
        None => None,
    };
    Ok((to, contact_id))
}

async fn decide_sender(
    app: &App,
    workspace: WorkspaceId,
    input: &MessageInput,
    named: Option<&SendingDomain>,
) -> Result<EmailAddress, Error> {
    let domains = app.sending_domains(workspace).await?;
    let asked = input.from_email.as_deref().filter(|text| !text.is_empty());
    let asked = asked.map(EmailAddress::parse).transpose().map_err(Error::internal)?;
    sender::decide(asked.as_ref(), named, &domains).map_err(|refusal| match refusal {
        DomainError::SenderDomainNotVerified => {
            unverified(workspace, asked.as_ref(), named, &domains).unwrap_or_else(|| refusal.into())
        }
        refusal => refusal.into(),
    })
}

/// Returns the error that names the domain for which a sender is refused; `None` if no domain is known.
fn unverified(
    workspace_id: WorkspaceId,
    asked: Option<&EmailAddress>,
    named: Option<&SendingDomain>,
    domains: &[SendingDomain],
) -> Option<Error> {
    let host = asked.map(EmailAddress::ascii_domain);
    let known = named.or_else(|| responsible(domains, host.as_ref()?));
    let domain = known.map(|known| known.domain.clone()).or(host)?;
    let is_other = known.is_some_and(|known| known.status == DomainStatus::Verified);
    let sender = UnverifiedSender { workspace_id, domain, id: known.map(|known| known.id), is_other };
    Some(Error::SenderNotVerified(Box::new(sender)))
}

/// Refuses a channel without a transport: no settings, or a provider this installation does not have.
async fn require_transport(app: &App, workspace: WorkspaceId, channel: Channel) -> Result<(), Error> {
    if app.has_transport(workspace, channel).await? { Ok(()) } else { Err(Unprocessable::ChannelNotConfigured.into()) }
}

/// Names the attachments, which are stored beside the message. They are durable before the message is.
fn name_files(
    app: &App,
    message: &Message,
    input: &MessageInput,
    send_at: Option<Timestamp>,
) -> (Vec<StoredFile>, Vec<NewFile>) {
    // Files are removed by the time in their ids, and never before the content that names them.
    let chained = if message.has_fallback { MAX_CHAINED } else { Duration::ZERO };
    let kept_from = send_at.unwrap_or(message.created_at) + chained;
    let (mut named, mut files) = (Vec::new(), Vec::new());
    for file in input.attachments.iter().flatten() {
        let id: BlobId = app.new_id(message.created_at);
        let blob = MessageBlob {
            workspace_id: message.workspace_id,
            message_id: message.id,
            id: if kept_from > message.created_at { id.dated(kept_from) } else { id },
        };
        let bytes = file.content_b64.bytes();
        named.push(StoredFile {
            filename: file.filename.clone(),
            content_type: attachment::content_type(file),
            size: bytes.len() as u64,
            blob: blob.id,
            content_id: file.content_id.clone(),
        });
        files.push(NewFile { blob, bytes });
    }
    (named, files)
}
