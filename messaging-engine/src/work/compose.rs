//! From a stored request to what the transport carries.

use messaging_core::domain::address::EmailAddress;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::content::RequestContent;
use messaging_core::domain::link_token::ReturnPurpose;
use messaging_core::domain::message::Message;
use messaging_core::domain::sending_domain::{SendingDomain, responsible};
use messaging_core::domain::tracking::{self, Campaigned, Links, Tracked};
use messaging_core::domain::{plain_text, unsubscribe_header};
use messaging_core::ports::store::StoreError;
use messaging_core::ports::transport::{AttachedFile, Content, Email, EnvelopeFrom, Mailbox, TextMessage};

use crate::app::App;
use crate::services::dkim::UnusableKey;
use crate::services::message_parts::{MessageParts, is_marketing};
use crate::services::templates::Unrendered;
use crate::work::unprepared::{Impossible, Unprepared};

/// What is sent, and what has to be stored for it.
pub(super) struct Composed {
    pub(super) content: Content,
    /// Where its redirected links lead.
    pub(super) urls: Vec<String>,
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
            Unrendered::Gone | Unrendered::Broken | Unrendered::Failed { .. } | Unrendered::Unsendable(_) => {
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
    let MessageParts { subject, html, text, .. } = app.message_parts(message, request).await?;
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
    let parts = app.message_parts(message, request).await?;
    let MessageParts { from_name, reply_to, subject, html, text, links: numbers } = parts;
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
    let utm = request.campaign.as_ref().and_then(|campaign| campaign.plan.settings.utm.as_ref());
    let campaigned = Campaigned { utm, numbers: &numbers };
    let (html, urls) = match html.map(|html| tracking::rewrite(html, &links, campaigned)) {
        Some(Tracked { html, urls }) => (Some(html), urls),
        None => (None, Vec::new()),
    };
    let mut headers: Vec<_> =
        input.headers.iter().flatten().map(|(name, value)| (name.clone(), value.clone())).collect();
    if let Some(domain) = domain.filter(|_| is_marketing(request)) {
        let offer = unsubscribe_header::headers(&links, &domain.bounce_domain());
        headers.extend(offer.map(|(name, value)| (name.to_owned(), value)));
    }
    let signers = domain.map(|domain| app.signers(domain)).transpose()?.unwrap_or_default();
    let content = Content::Email(Box::new(Email {
        envelope_from: return_paths(app, message, domain, recipients).unwrap_or_else(|| from.clone().into()),
        from: Mailbox { name: from_name.filter(|name| !name.is_empty()), address: from },
        to: parsed(&message.to)?,
        cc: input
            .cc
            .iter()
            .flatten()
            .filter(|copy| !left_out.contains(copy))
            .filter_map(|copy| EmailAddress::parse(copy).ok())
            .collect(),
        reply_to: reply_to.as_deref().and_then(|text| EmailAddress::parse(text).ok()),
        subject: subject.unwrap_or_default(),
        date: message.created_at,
        message_id: format!("{}@{}", message.id, app.installation_name().await?),
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
