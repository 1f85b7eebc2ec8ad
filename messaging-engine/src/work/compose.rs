//! From a stored request to what the transport carries.

use messaging_core::domain::address::EmailAddress;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::content::RequestContent;
use messaging_core::domain::limits::MAX_SUBJECT;
use messaging_core::domain::link_token::ReturnPurpose;
use messaging_core::domain::message::Message;
use messaging_core::domain::message_input::max_text;
use messaging_core::domain::sending_domain::{SendingDomain, responsible};
use messaging_core::domain::template::compiled::Rendering;
use messaging_core::domain::template::values::{ContactValues, Values};
use messaging_core::domain::tracking::{self, Links, Tracked};
use messaging_core::domain::{plain_text, unsubscribe_header};
use messaging_core::ports::store::StoreError;
use messaging_core::ports::transport::{AttachedFile, Content, Email, EnvelopeFrom, Mailbox, TextMessage};
use serde_json::Map;

use crate::app::App;
use crate::services::dkim::UnusableKey;
use crate::services::templates::Unrendered;
use crate::work::unprepared::{Impossible, Unprepared};

/// What is sent, and what has to be stored for it.
pub(super) struct Composed {
    pub(super) content: Content,
    /// Where its redirected links lead.
    pub(super) urls: Vec<String>,
}

/// The parts that people read.
struct Parts {
    subject: Option<String>,
    html: Option<String>,
    text: Option<String>,
}

/// The parts as the request gives them, or as its template makes them.
async fn parts(app: &App, message: &Message, request: &RequestContent) -> Result<Parts, Unprepared> {
    let input = &request.input;
    let Some(used) = request.template else {
        return Ok(Parts { subject: input.subject.clone(), html: input.html.clone(), text: input.text.clone() });
    };
    let compiled = app.compiled_template(message.workspace_id, used.id, used.version).await?;
    let mut values =
        Values::new(input.variables.as_ref().unwrap_or(&Map::new())).system("message_id", message.id.to_string());
    if compiled.uses_system("unsubscribe_url") {
        values = values.system("unsubscribe_url", unsubscribe_url(app, message).await?);
    }
    if compiled.uses_system("workspace")
        && let Some(workspace) = app.workspace(message.workspace_id).await?
    {
        values = values.system_member("workspace", "name", workspace.name.clone());
    }
    if compiled.asks_contact()
        && let Some(id) = message.contact_id
        && let Some(contact) = app.store().contact(message.workspace_id, id).await?
    {
        values = values.contact(&ContactValues::clear(&contact.record));
    }
    let Rendering { subject, preheader: _, html, text } = app.render(&compiled, values).await?;
    let parts = Parts { subject, html, text };
    match fault(message.channel, &parts) {
        Some(fault) => Err(Impossible::new("render_error", fault).into()),
        None => Ok(parts),
    }
}

/// What is wrong with rendered parts: the rules of section 4.1 that a request with its own parts keeps.
fn fault(channel: Channel, parts: &Parts) -> Option<String> {
    let text = parts.text.as_deref().unwrap_or_default();
    let is_blank = |part: Option<&String>| part.is_none_or(|part| part.trim().is_empty());
    if is_blank(parts.text.as_ref()) && is_blank(parts.html.as_ref()) {
        return Some("the template came out empty".to_owned());
    }
    if channel == Channel::Email && is_blank(parts.subject.as_ref()) {
        return Some("the subject came out empty".to_owned());
    }
    if parts.subject.as_ref().is_some_and(|subject| subject.chars().count() as u64 > MAX_SUBJECT) {
        return Some(format!("the subject came out longer than {MAX_SUBJECT} characters"));
    }
    let most = max_text(channel)?;
    (text.chars().count() > most).then(|| format!("the text came out longer than {most} characters"))
}

/// The page where the recipient of the message unsubscribes.
async fn unsubscribe_url(app: &App, message: &Message) -> Result<String, Unprepared> {
    let domains = app.sending_domains(message.workspace_id).await?;
    let from = message.from_email.as_deref().and_then(|from| EmailAddress::parse(from).ok());
    let domain = from.and_then(|from| responsible(&domains, &from.ascii_domain()));
    let base = tracking::base(domain, &app.settings().public_url);
    let links = Links {
        key: app.link_key(),
        base: &base,
        workspace: message.workspace_id,
        message: message.id,
        open: false,
        click: false,
    };
    Ok(links.unsubscribe_url())
}

impl From<UnusableKey> for Unprepared {
    fn from(cause: UnusableKey) -> Self {
        Self::PutOff(cause.to_string())
    }
}

impl From<Unrendered> for Unprepared {
    fn from(cause: Unrendered) -> Self {
        match cause {
            Unrendered::Store(error) => Self::Store(error),
            Unrendered::Busy => Self::Store(StoreError::Unavailable),
            Unrendered::Gone | Unrendered::Broken | Unrendered::Failed { .. } => {
                Self::Impossible(Impossible::new("render_error", cause))
            }
        }
    }
}

/// Composes the message, whose copies name everybody but those left out, for an attempt at some of its recipients.
pub(super) async fn compose(
    app: &App,
    message: &Message,
    request: &RequestContent,
    left_out: &[String],
    recipients: &[String],
) -> Result<Composed, Unprepared> {
    if message.channel == Channel::Email {
        return email(app, message, request, left_out, recipients).await;
    }
    let Parts { subject, html, text } = parts(app, message, request).await?;
    let content =
        Content::Text(TextMessage { channel: message.channel, title: subject, text: text.unwrap_or_default(), html });
    Ok(Composed { content, urls: Vec::new() })
}

async fn email(
    app: &App,
    message: &Message,
    request: &RequestContent,
    left_out: &[String],
    recipients: &[String],
) -> Result<Composed, Unprepared> {
    let input = &request.input;
    let from = parsed(message.from_email.as_deref().unwrap_or_default())?;
    let domains = app.sending_domains(message.workspace_id).await?;
    let domain = responsible(&domains, &from.ascii_domain());
    let Parts { subject, html, text } = parts(app, message, request).await?;
    let html = html.as_deref().filter(|html| !html.is_empty());
    let text = text.filter(|text| !text.is_empty());
    // The text part is made of the HTML as it was given: its links stay what they are.
    let text = text.or_else(|| html.map(plain_text::from_html));
    let base = tracking::base(domain, &app.settings().public_url);
    let links = Links {
        key: app.link_key(),
        base: &base,
        workspace: message.workspace_id,
        message: message.id,
        open: domain.is_some_and(|domain| domain.open_tracking),
        click: domain.is_some_and(|domain| domain.click_tracking),
    };
    let (html, urls) = match html.map(|html| tracking::track(html, &links)) {
        Some(Tracked { html, urls }) => (Some(html), urls),
        None => (None, Vec::new()),
    };
    let mut headers: Vec<_> =
        input.headers.iter().flatten().map(|(name, value)| (name.clone(), value.clone())).collect();
    if let Some(domain) = domain.filter(|_| is_marketing(message)) {
        let offer = unsubscribe_header::headers(&links, &domain.bounce_domain());
        headers.extend(offer.map(|(name, value)| (name.to_owned(), value)));
    }
    let signers = domain.map(|domain| app.signers(domain)).transpose()?.unwrap_or_default();
    let content = Content::Email(Box::new(Email {
        envelope_from: return_paths(app, message, domain, recipients).unwrap_or_else(|| from.clone().into()),
        from: Mailbox { name: input.from_name.clone().filter(|name| !name.is_empty()), address: from },
        to: parsed(&message.to)?,
        cc: input
            .cc
            .iter()
            .flatten()
            .filter(|copy| !left_out.contains(copy))
            .filter_map(|copy| EmailAddress::parse(copy).ok())
            .collect(),
        reply_to: input.reply_to.as_deref().and_then(|text| EmailAddress::parse(text).ok()),
        subject: subject.unwrap_or_default(),
        date: message.created_at,
        message_id: format!("{}@{}", message.id, app.settings().hostname),
        headers,
        text,
        html,
        attachments: attachments(app, message, request).await?,
        signers,
    }));
    Ok(Composed { content, urls })
}

fn parsed(text: &str) -> Result<EmailAddress, Impossible> {
    EmailAddress::parse(text).map_err(|_| Impossible::new("render_error", "a stored address does not parse"))
}

async fn attachments(app: &App, message: &Message, request: &RequestContent) -> Result<Vec<AttachedFile>, Unprepared> {
    let mut attachments = Vec::with_capacity(request.files.len());
    for file in &request.files {
        let content = app.blobs().blob(message.workspace_id, file.blob).await?;
        let content =
            content.ok_or_else(|| Impossible::new("attachment_error", "an attachment is no longer stored"))?;
        let (filename, content_type) = (file.filename.clone(), file.content_type.clone());
        attachments.push(AttachedFile { filename, content_type, content });
    }
    Ok(attachments)
}

/// Where bounces come back to (contract section 14): addresses that name the message and one recipient each, so
/// that nobody can send back what concerns another.
fn return_paths(
    app: &App,
    message: &Message,
    domain: Option<&SendingDomain>,
    recipients: &[String],
) -> Option<EnvelopeFrom> {
    let (key, domain) = (app.link_key(), domain?.bounce_domain());
    let path = |recipient: &String| {
        let tag = key.recipient_tag(message.id, recipient);
        let local_part = key.local_part(ReturnPurpose::Bounce, message.workspace_id, message.id, Some(tag));
        EmailAddress::parse(&format!("{local_part}@{domain}")).ok()
    };
    Some(EnvelopeFrom::PerRecipient(recipients.iter().map(path).collect::<Option<_>>()?))
}

/// Messages of a campaign carry the offer to unsubscribe (contract section 10); the others are
/// transactional.
const fn is_marketing(message: &Message) -> bool {
    message.campaign_id.is_some()
}
