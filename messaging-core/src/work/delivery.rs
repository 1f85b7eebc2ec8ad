//! One attempt to deliver one message: prepare, perform, and what each transport error means.

use std::sync::Arc;

use bytes::Bytes;

use crate::app::{App, Provider};
use crate::domain::address::EmailAddress;
use crate::domain::channel::Channel;
use crate::domain::content::RequestContent;
use crate::domain::delivery::{Attempt, Judgment, Result as RecipientResult, judge};
use crate::domain::message::Message;
use crate::domain::recipients::{Recipient, RecipientKind};
use crate::domain::simulator::simulate;
use crate::domain::{address, plain_text, retry, sender};
use crate::ports::Transport;
use crate::ports::store::StoreError;
use crate::ports::transport::{
    Acceptance, AttachedFile, Content, Email, LastLook, Mailbox, Outcome, Outgoing, Response, Sent, TextMessage,
    TransportError,
};
use crate::time::Timestamp;

/// What an attempt starts with.
pub(super) struct Prepared {
    /// Recipients whose result is known without a transport: suppressed or simulated.
    known: Vec<(Recipient, RecipientResult)>,
    /// Recipients to try, in order.
    tried: Vec<Recipient>,
    /// Who carries it, and what; `None` when nobody is left to try.
    parcel: Option<(Arc<dyn Transport>, Outgoing)>,
}

/// What an attempt ended with.
pub(super) struct Performed {
    pub(super) judgment: Judgment,
    pub(super) captured: Option<Bytes>,
}

/// Nothing can be sent, whatever the recipients are.
pub(super) struct Impossible {
    reason: &'static str,
    message: String,
}

impl Impossible {
    pub(super) fn new(reason: &'static str, message: impl std::fmt::Display) -> Self {
        Self { reason, message: format!("{message}") }
    }

    pub(super) fn judgment(&self) -> Judgment {
        Judgment::failed(self.reason, &self.message)
    }
}

impl Prepared {
    /// Whether somebody outside may end up with the message.
    pub(super) fn leaves_the_process(&self) -> bool {
        self.parcel.as_ref().is_some_and(|(transport, _)| !transport.is_local())
    }
}

/// Finds out who is tried and with what. Reads; changes nothing.
pub(super) async fn prepare(
    app: &App,
    message: &Message,
    request: &RequestContent,
    recipients: Vec<Recipient>,
) -> Result<Result<Prepared, Impossible>, StoreError> {
    let mut known = Vec::new();
    let mut tried = Vec::new();
    let mut left_out = Vec::new();
    for (recipient, suppressed) in check_suppressions(app, message, recipients).await? {
        if let Some(reason) = suppressed {
            left_out.push(recipient.address.clone());
            known.push((recipient, RecipientResult::Suppressed(reason)));
            continue;
        }
        let simulated = match message.channel {
            Channel::Email => EmailAddress::parse(&recipient.address).ok().and_then(|address| simulate(&address)),
            _ => None,
        };
        match simulated.map(|simulated| (simulated.complains, simulated.outcome)) {
            Some((true, Outcome::Accepted(response))) => known.push((recipient, RecipientResult::Complained(response))),
            Some((_, outcome)) => known.push((recipient, RecipientResult::Tried(outcome))),
            None => tried.push(recipient),
        }
    }
    // A message whose own recipient is suppressed goes to nobody (contract section 4.1).
    let to_is_suppressed = known.iter().any(|(recipient, result)| {
        recipient.kind == RecipientKind::To && matches!(result, RecipientResult::Suppressed(_))
    });
    if to_is_suppressed {
        known.retain(|(_, result)| matches!(result, RecipientResult::Suppressed(_)));
        tried.clear();
    }
    if let Some(from) = message.from_email.as_deref().and_then(|from| EmailAddress::parse(from).ok())
        && !sender::may_send(&from, &app.sending_domains(message.workspace_id).await?)
    {
        return Ok(Err(Impossible::new("sender_domain_not_verified", "the sending domain is no longer verified")));
    }
    if tried.is_empty() {
        return Ok(Ok(Prepared { known, tried, parcel: None }));
    }
    let Some(Provider { name, settings }) = app.provider(message.workspace_id, message.channel).await? else {
        return Ok(Err(Impossible::new("channel_not_configured", "the channel has no settings any more")));
    };
    let Some(transport) = app.transport(message.channel, &name) else {
        return Ok(Err(Impossible::new("channel_not_configured", "no transport of this name is installed")));
    };
    let content = match compose(app, message, request, &left_out).await? {
        Ok(content) => content,
        Err(impossible) => return Ok(Err(impossible)),
    };
    let outgoing = Outgoing {
        workspace_id: message.workspace_id,
        message_id: message.id,
        settings,
        recipients: tried.iter().map(|recipient| recipient.address.clone()).collect(),
        content,
        last_look: LastLook::default(),
    };
    Ok(Ok(Prepared { known, tried, parcel: Some((Arc::clone(transport), outgoing)) }))
}

type Suppressed = Option<crate::domain::suppression::SuppressionReason>;

/// Each recipient with the reason for which it must not be sent to, if there is one.
async fn check_suppressions(
    app: &App,
    message: &Message,
    recipients: Vec<Recipient>,
) -> Result<Vec<(Recipient, Suppressed)>, StoreError> {
    let spelled: Vec<_> =
        recipients.iter().map(|recipient| address::normalize(message.channel, &recipient.address)).collect();
    let listed = app.store().suppressed(message.workspace_id, message.channel, &spelled).await?;
    Ok(recipients
        .into_iter()
        .zip(spelled)
        .map(|(recipient, spelled)| {
            let found = listed.iter().find(|stored| stored.record.address == spelled);
            let reason = found.map(|stored| stored.record.reason).filter(|reason| reason.stops_transactional());
            (recipient, reason)
        })
        .collect())
}

async fn compose(
    app: &App,
    message: &Message,
    request: &RequestContent,
    left_out: &[String],
) -> Result<Result<Content, Impossible>, StoreError> {
    let input = &request.input;
    if message.channel != Channel::Email {
        return Ok(Ok(Content::Text(TextMessage {
            channel: message.channel,
            title: input.subject.clone(),
            text: input.text.clone().unwrap_or_default(),
            html: input.html.clone(),
        })));
    }
    let parsed = |text: &str| {
        EmailAddress::parse(text).map_err(|_| Impossible::new("render_error", "a stored address does not parse"))
    };
    let from = match parsed(message.from_email.as_deref().unwrap_or_default()) {
        Ok(from) => from,
        Err(impossible) => return Ok(Err(impossible)),
    };
    let to = match parsed(&message.to) {
        Ok(to) => to,
        Err(impossible) => return Ok(Err(impossible)),
    };
    let mut attachments = Vec::with_capacity(request.files.len());
    for file in &request.files {
        let Some(content) = app.store().blob(message.workspace_id, file.blob).await? else {
            return Ok(Err(Impossible::new("attachment_error", "an attachment is no longer stored")));
        };
        let (filename, content_type) = (file.filename.clone(), file.content_type.clone());
        attachments.push(AttachedFile { filename, content_type, content });
    }
    let html = input.html.clone().filter(|html| !html.is_empty());
    let text = input.text.clone().filter(|text| !text.is_empty());
    Ok(Ok(Content::Email(Box::new(Email {
        // Without a bounce domain of our own, bounces go to the sender.
        envelope_from: from.clone(),
        from: Mailbox { name: input.from_name.clone().filter(|name| !name.is_empty()), address: from },
        to,
        cc: input
            .cc
            .iter()
            .flatten()
            .filter(|copy| !left_out.contains(copy))
            .filter_map(|copy| EmailAddress::parse(copy).ok())
            .collect(),
        reply_to: input.reply_to.as_deref().and_then(|text| EmailAddress::parse(text).ok()),
        subject: input.subject.clone().unwrap_or_default(),
        date: message.created_at,
        message_id: format!("{}@{}", message.id, app.settings().hostname),
        headers: input.headers.iter().flatten().map(|(name, value)| (name.clone(), value.clone())).collect(),
        text: text.or_else(|| html.as_deref().map(plain_text::from_html)),
        html,
        attachments,
        signers: Vec::new(),
    }))))
}

/// Makes the attempt and judges it.
pub(super) async fn perform(
    app: &App,
    message: &Message,
    number: u32,
    interrupted: bool,
    prepared: Prepared,
) -> Performed {
    let Prepared { known, tried, parcel } = prepared;
    let mut results = known;
    let mut captured = None;
    let mut acceptance = Acceptance::Delivered;
    let mut ambiguous = interrupted;
    if let Some((transport, outgoing)) = parcel {
        acceptance = transport.acceptance();
        let sent = match transport.send(&outgoing).await {
            Ok(sent) => sent,
            Err(TransportError::Content(cause)) => {
                return Performed { judgment: Impossible::new("provider_error", cause).judgment(), captured: None };
            }
            Err(error) => {
                ambiguous |= matches!(error, TransportError::Ambiguous(_));
                let response = Response { text: shorten(&error.to_string()), ..Response::default() };
                Sent { outcomes: vec![Outcome::Deferred(response); tried.len()], ..Sent::default() }
            }
        };
        captured = sent.captured;
        let missing =
            Outcome::Deferred(Response { text: "the transport gave no outcome".to_owned(), ..Response::default() });
        let outcomes = sent.outcomes.into_iter().chain(std::iter::repeat(missing));
        results.extend(tried.into_iter().zip(outcomes).map(|(who, outcome)| (who, RecipientResult::Tried(outcome))));
    }
    let attempt = Attempt { number, acceptance, next_attempt_at: next_attempt(app, message, number), ambiguous };
    Performed { judgment: judge(attempt, &results), captured }
}

fn next_attempt(app: &App, message: &Message, number: u32) -> Option<Timestamp> {
    let settings = app.settings();
    retry::next_attempt(&settings.message_retry, number, app.now(), message.created_at, settings.message_expiry)
}

/// Replies are shown, not analysed: a few hundred characters say enough.
fn shorten(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(512).collect()
}
