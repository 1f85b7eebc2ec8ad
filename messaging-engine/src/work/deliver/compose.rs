//! Composition of a message's content from its stored request.

use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address::EmailAddress;
use messaging_core::domain::mail::link_token::ReturnPurpose;
use messaging_core::domain::mail::sending_domain::{SendingDomain, responsible};
use messaging_core::domain::message::Message;
use messaging_core::domain::message::attachment::StoredFile;
use messaging_core::domain::message::content::RequestContent;
use messaging_core::ports::store::StoreError;
use messaging_core::ports::transport::{AttachedFile, Content, Email, EnvelopeFrom};

use crate::app::App;
use crate::services::dkim::UnusableKey;
use crate::services::email_parts::EmailParts;
use crate::services::templates::Unrendered;
use crate::work::deliver::unprepared::{Impossible, Unprepared};

/// Content to send, and the link targets to store for it.
pub(super) struct Composed {
    pub(super) content: Content,
    /// Target URLs of the redirected links, each once.
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

/// Composes the message for an attempt at some of its recipients; its headers name all copies except those left out.
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
    let content = app.channel_content(message, request).await?;
    Ok(Composed { content: content.into(), urls: Vec::new() })
}

async fn email(
    app: &App,
    message: &Message,
    request: &RequestContent,
    left_out: &[String],
    recipients: &[String],
) -> Result<Composed, Unprepared> {
    let parts = app.email_parts(message, request, left_out).await?;
    let domains = app.sending_domains(message.workspace_id).await?;
    let domain = responsible(&domains, &parts.from.address.ascii_domain());
    let signers = domain.map(|domain| app.signers(domain)).transpose()?.unwrap_or_default();
    let envelope_from = return_paths(app, message, domain, recipients);
    let EmailParts { from, to, cc, reply_to, subject, date, message_id, headers, text, html, urls } = parts;
    let content = Content::Email(Box::new(Email {
        envelope_from: envelope_from.unwrap_or_else(|| from.address.clone().into()),
        from,
        to,
        cc,
        reply_to,
        subject,
        date,
        message_id,
        headers,
        text,
        html,
        attachments: attachments(app, message, request).await?,
        signers,
    }));
    Ok(Composed { content, urls })
}

async fn attachments(app: &App, message: &Message, request: &RequestContent) -> Result<Vec<AttachedFile>, Unprepared> {
    let mut attachments = Vec::with_capacity(request.files.len());
    for file in &request.files {
        let content = app.blobs().blob(message.workspace_id, file.blob).await?;
        let content =
            content.ok_or_else(|| Impossible::new("attachment_error", "an attachment is no longer stored"))?;
        let StoredFile { filename, content_type, content_id, .. } = file.clone();
        attachments.push(AttachedFile { filename, content_type, content, content_id });
    }
    Ok(attachments)
}

/// Returns the return paths for bounces (contract section 14): addresses that name the message and one recipient each,
/// so that nobody can send back a report about another.
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
