//! One attempt to deliver one message: prepare, perform, and what each transport error means.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::app::{App, Provider};
use crate::domain::address::EmailAddress;
use crate::domain::attempt::Dialog;
use crate::domain::channel::Channel;
use crate::domain::content::RequestContent;
use crate::domain::delivery::{Attempt, Judgment, Result as RecipientResult, judge};
use crate::domain::message::Message;
use crate::domain::recipients::{Recipient, RecipientKind};
use crate::domain::simulator::simulate;
use crate::domain::suppression::SuppressionReason;
use crate::domain::{address, retry, sender};
use crate::error::Chain;
use crate::ids::WorkspaceId;
use crate::ports::Transport;
use crate::ports::store::StoreError;
use crate::ports::transport::{self, Acceptance, Content, LastLook, Outcome, Outgoing, Response, Sent, TransportError};
use crate::time::Timestamp;
use crate::work::compose::{Composed, compose};

/// A message that was not sent because the store is not healthy is tried again so soon; it is claimed when the
/// store is healthy.
const HELD_FOR: Duration = Duration::from_secs(5);

/// What an attempt starts with.
pub(super) struct Prepared {
    /// Recipients whose result is known without a transport: suppressed or simulated.
    known: Vec<(Recipient, RecipientResult)>,
    /// Recipients to try, in order.
    tried: Vec<Recipient>,
    /// Who carries it, and what; `None` when nobody is left to try.
    parcel: Option<(Arc<dyn Transport>, Outgoing)>,
    urls: Vec<String>,
}

/// What an attempt ended with.
pub(super) struct Performed {
    pub(super) judgment: Judgment,
    pub(super) captured: Option<Bytes>,
    /// The subject that was sent, for what was captured.
    pub(super) subject: Option<String>,
    pub(super) dialogs: Vec<Dialog>,
    /// Where redirected links lead, if that is not stored yet.
    pub(super) urls: Vec<String>,
}

impl Performed {
    /// What came of it without a peer.
    pub(super) const fn only(judgment: Judgment) -> Self {
        Self { judgment, captured: None, subject: None, dialogs: Vec::new(), urls: Vec::new() }
    }
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

/// Why an attempt does not begin.
pub(super) enum Unprepared {
    /// It never can.
    Impossible(Impossible),
    /// Not now: the store failed.
    Store(StoreError),
    /// Not now, for a reason on our side that somebody has to mend.
    PutOff(String),
}

impl From<Impossible> for Unprepared {
    fn from(impossible: Impossible) -> Self {
        Self::Impossible(impossible)
    }
}

impl From<StoreError> for Unprepared {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Prepared {
    /// Whether somebody outside may end up with the message.
    pub(super) fn leaves_the_process(&self) -> bool {
        self.parcel.as_ref().is_some_and(|(transport, _)| !transport.is_local())
    }

    /// Where the redirected links of the message lead: to be stored before anybody can follow one.
    pub(super) fn take_urls(&mut self) -> Vec<String> {
        std::mem::take(&mut self.urls)
    }
}

/// Finds out who is tried and with what. Reads; changes nothing.
pub(super) async fn prepare(
    app: &App,
    message: &Message,
    request: &RequestContent,
    recipients: Vec<Recipient>,
) -> Result<Prepared, Unprepared> {
    let mut known = Vec::new();
    let mut tried = Vec::new();
    let mut left_out = Vec::new();
    let addresses = recipients.iter().map(|recipient| &recipient.address);
    let reasons = stopping_reasons(app, message.workspace_id, message.channel, addresses).await?;
    for (recipient, suppressed) in recipients.into_iter().zip(reasons) {
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
        return Err(Impossible::new("sender_domain_not_verified", "the sending domain is no longer verified").into());
    }
    if tried.is_empty() {
        return Ok(Prepared { known, tried, parcel: None, urls: Vec::new() });
    }
    let Some(Provider { name, settings }) = app.provider(message.workspace_id, message.channel).await? else {
        return Err(Impossible::new("channel_not_configured", "the channel has no settings any more").into());
    };
    let Some(transport) = app.transport(message.channel, &name) else {
        return Err(Impossible::new("channel_not_configured", "no transport of this name is installed").into());
    };
    let Composed { content, urls } = match compose(app, message, request, &left_out).await {
        Ok(composed) => composed,
        Err(Unprepared::PutOff(reason)) => {
            let ours = Outcome::ProviderFailed(Response { text: shorten(&reason), ..Response::default() });
            known.extend(tried.drain(..).map(|who| (who, RecipientResult::Tried(ours.clone()))));
            return Ok(Prepared { known, tried, parcel: None, urls: Vec::new() });
        }
        Err(other) => return Err(other),
    };
    let outgoing = Outgoing {
        workspace_id: message.workspace_id,
        message_id: message.id,
        settings,
        recipients: tried.iter().map(|recipient| recipient.address.clone()).collect(),
        content,
        last_look: LastLook::at(Arc::new(List {
            app: app.clone(),
            workspace_id: message.workspace_id,
            channel: message.channel,
        })),
    };
    Ok(Prepared { known, tried, parcel: Some((Arc::clone(transport), outgoing)), urls })
}

/// The suppression list as a transport asks it.
#[derive(Debug)]
struct List {
    app: App,
    workspace_id: WorkspaceId,
    channel: Channel,
}

#[async_trait]
impl transport::Suppressed for List {
    async fn suppressed(&self, recipients: &[String]) -> Vec<Option<SuppressionReason>> {
        match stopping_reasons(&self.app, self.workspace_id, self.channel, recipients.iter()).await {
            Ok(reasons) => reasons,
            // The first check stands.
            Err(error) => {
                tracing::warn!(error = %Chain(&error), "the suppression list was not looked at again");
                vec![None; recipients.len()]
            }
        }
    }

    fn is_held(&self) -> bool {
        !self.app.store().health().takes_work()
    }
}

/// For each address why it must not be sent to, or `None` where it may.
async fn stopping_reasons<'a>(
    app: &App,
    workspace: WorkspaceId,
    channel: Channel,
    addresses: impl Iterator<Item = &'a String>,
) -> Result<Vec<Option<SuppressionReason>>, StoreError> {
    let spelled: Vec<_> = addresses.map(|text| address::normalize(channel, text)).collect();
    let listed = app.store().suppressed(workspace, channel, &spelled).await?;
    let reason = |spelled: &String| {
        let found = listed.iter().find(|stored| stored.record.address == *spelled);
        found.map(|stored| stored.record.reason).filter(|reason| reason.stops_transactional())
    };
    Ok(spelled.iter().map(reason).collect())
}

/// Makes the attempt and judges it.
pub(super) async fn perform(
    app: &App,
    message: &Message,
    number: u32,
    interrupted: bool,
    prepared: Prepared,
) -> Performed {
    let Prepared { known, tried, parcel, urls } = prepared;
    let mut results = known;
    let (mut captured, mut subject, mut dialogs) = (None, None, Vec::new());
    let mut acceptance = Acceptance::Delivered;
    if let Some((transport, outgoing)) = parcel {
        acceptance = transport.acceptance();
        subject = match &outgoing.content {
            Content::Email(email) => Some(email.subject.clone()),
            Content::Text(text) => text.title.clone(),
        };
        let sent = match transport.send(&outgoing).await {
            Ok(sent) => sent,
            Err(TransportError::Content(cause)) => {
                return Performed::only(Impossible::new("provider_error", cause).judgment());
            }
            Err(error) => {
                let response = Response { text: shorten(&error.to_string()), ..Response::default() };
                let outcome = match error {
                    TransportError::Ambiguous(_) => Outcome::Ambiguous(response),
                    _ => Outcome::ProviderFailed(response),
                };
                Sent { outcomes: vec![outcome; tried.len()], ..Sent::default() }
            }
        };
        (captured, dialogs) = (sent.captured, sent.dialogs);
        let missing =
            Outcome::Deferred(Response { text: "the transport gave no outcome".to_owned(), ..Response::default() });
        let outcomes = sent.outcomes.into_iter().chain(std::iter::repeat(missing));
        results.extend(tried.into_iter().zip(outcomes).map(|(who, outcome)| (who, RecipientResult::Tried(outcome))));
    }
    let next_attempt_at = next_attempt(app, message, number);
    let attempt =
        Attempt { number, acceptance, next_attempt_at, held_until: app.now() + HELD_FOR, ambiguous: interrupted };
    Performed { judgment: judge(attempt, &results), captured, subject, dialogs, urls }
}

fn next_attempt(app: &App, message: &Message, number: u32) -> Option<Timestamp> {
    let settings = app.settings();
    let jitter = app.random_below(settings.message_retry_jitter + 1);
    let schedule = &settings.message_retry;
    retry::next_attempt(schedule, number, jitter, app.now(), message.created_at, settings.message_expiry)
}

/// Replies are shown, not analysed: a few hundred characters say enough.
fn shorten(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(512).collect()
}
