//! Operation that sends one real message over a channel, to test the channel's settings.
//!
//! Contract section 16. Nothing is stored about it: no message, no event, no suppression.

use std::time::Duration;

use http::{Method, StatusCode};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address;
use messaging_core::domain::delivery::consequence::account_state;
use messaging_core::domain::delivery::ip_pool::MailKind;
use messaging_core::domain::delivery::lane::JobClass;
use messaging_core::domain::mail::sender;
use messaging_core::domain::mail::sending_domain::responsible;
use messaging_core::domain::message::channel_content::{ChannelContent, Parts};
use messaging_core::ids::{MessageId, WorkspaceId};
use messaging_core::input::{Empty, Input};
use messaging_core::ports::paths::PathTerms;
use messaging_core::ports::transport::{
    Content, DeliveryOptions, Email, LastLook, Mailbox, Outcome, Outgoing, Reservation, Response, Route, Transport,
    TransportError,
};
use messaging_core::scope::Access;
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::{FieldCode, Violations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use crate::app::Provider;
use crate::app::account_pauses::Account;
use crate::error::{Error, Unprocessable};
use crate::ops::channels::ChannelPath;
use crate::ops::context::Context;
use crate::ops::operation::{Call, Operation};

/// Time limit for the message.
const PATIENCE: Duration = Duration::from_mins(1);

/// Subject of the test message, on channels that have one.
const SUBJECT: &str = "Test";
const TEXT: &str = "This is a test message.";

/// Recipient of a test message over a channel.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ChannelTestInput {
    /// The address, in the form of the channel.
    #[validate(length(min = 1, max = 4096))]
    pub to: String,
}

impl Input for ChannelTestInput {}

/// Outcome of a test message: success, and the answer of the provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ChannelTest")]
#[non_exhaustive]
pub struct ChannelTestView {
    /// True if the provider took the message.
    pub ok: bool,
    /// Answer of the provider, or the reason why nothing was sent.
    pub response: String,
}

/// `POST /workspaces/{workspace_id}/channels/{channel}/test`
pub struct TestChannel;

impl Operation for TestChannel {
    const ID: &'static str = "testChannel";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/channels/{channel}/test";
    const ACCESS: Access = Access::Administration;
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "channel test";
    const SUMMARY: &'static str = "Send one real message over a channel, of which nothing is kept";
    // An earlier answer to the same Idempotency-Key is looked for first: otherwise the message would be sent again.
    const IN_PARTS: bool = true;
    type Path = ChannelPath;
    type Query = Empty;
    type Body = ChannelTestInput;
    type Output = ChannelTestView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<ChannelTestView, Error> {
        let (ChannelPath { workspace_id, channel }, to) = (call.path, call.body.to);
        cx.app.workspace(workspace_id).await?.ok_or(Error::NotFound)?;
        let provider = cx.app.provider(workspace_id, channel).await?;
        let mut violations = Violations::new();
        let rule = "is not an address of this channel";
        address::check_sent(channel, &to, "/to", rule, &mut violations);
        if channel == Channel::Viber && !cx.app.viber_service(workspace_id).await?.sends_to(&to) {
            violations.add("/to", FieldCode::InvalidFormat, rule);
        }
        violations.into_result()?;
        let provider = provider.ok_or(Error::Unprocessable(Unprocessable::ChannelNotConfigured))?;
        let transport = cx.app.transport(channel, &provider.name);
        let transport = transport.ok_or(Error::Unprocessable(Unprocessable::ChannelNotConfigured))?;
        let normalized = address::normalize(channel, &to);
        if let Some(listed) = cx.store().suppressed(workspace_id, channel, &[normalized]).await?.pop() {
            let reason = listed.record.reason.as_str();
            return Ok(not_sent(format!("the address is on the suppression list, reason {reason}: nothing was sent")));
        }
        if !cx.app.may_send() {
            return Ok(not_sent(
                "nothing leaves this server at the moment: it is a copy, or its disk is full".to_owned(),
            ));
        }
        let id = cx.new_id();
        let content = content(cx, (workspace_id, channel), id, &to).await?;
        let outgoing = Outgoing {
            workspace_id,
            message_id: id,
            settings: provider.settings.clone(),
            recipients: vec![to],
            content,
            last_look: LastLook::default(),
            reservation: Reservation::default(),
            options: DeliveryOptions::default(),
            receipts: None,
        };
        let sources = match &outgoing.content {
            Content::Email(email) => {
                let from = Some(&email.from.address);
                cx.app.sources_from(workspace_id, from, MailKind::Transactional).await?
            }
            _ => None,
        };
        // A test is wanted now: it does not wait for a path.
        let terms = PathTerms { sources, expires_at: Some(cx.now) };
        Ok(attempt(cx, channel, &provider, transport.as_ref(), (outgoing, terms)).await)
    }
}

fn not_sent(response: String) -> ChannelTestView {
    ChannelTestView { ok: false, response }
}

/// Sends the message, and learns from the answer about the account: one that works again is used again.
async fn attempt(
    cx: &Context<'_>,
    channel: Channel,
    provider: &Provider,
    transport: &dyn Transport,
    (mut outgoing, terms): (Outgoing, PathTerms),
) -> ChannelTestView {
    let workspace_id = outgoing.workspace_id;
    let domain = outgoing.recipients[0].rsplit_once('@').and_then(|(_, domain)| address::ascii_domain(domain));
    let sending = async {
        let settings = outgoing.settings.clone();
        let recipient = (channel != Channel::Email).then(|| outgoing.recipients[0].clone());
        let route = Route { workspace_id, class: JobClass::Transactional, settings, domain, recipient, terms };
        outgoing.reservation = transport.reserve(&route).await;
        match outgoing.reservation.hold() {
            Some(hold) => Err(hold.sentence.clone()),
            None => Ok(transport.send(&outgoing).await),
        }
    };
    let sent = match timeout(PATIENCE, sending).await {
        Ok(Ok(sent)) => Ok(sent),
        // This node has no address of the pool, or it was stopped.
        Ok(Err(sentence)) => return not_sent(format!("{sentence} Nothing was sent.")),
        Err(elapsed) => Err(elapsed),
    };
    let sent = sent
        .unwrap_or_else(|_| Err(TransportError::Ambiguous(format!("no answer within {} seconds", PATIENCE.as_secs()))));
    let outcome = match sent {
        Ok(sent) => sent.outcomes.into_iter().next(),
        Err(error) => Some(error.into()),
    };
    let missing = || Outcome::provider_failed(Response::of_text("the provider gave no answer"));
    let outcome = outcome.unwrap_or_else(missing);
    let state = account_state([&outcome]);
    let name = transport.account_of(&provider.settings, &outgoing.recipients[0]);
    let account = Account { workspace: workspace_id, channel, name };
    let now = cx.app.monotonic();
    cx.app.account_rates().report(account, provider, &state, (now, now));
    cx.app.account_pauses().report(account, provider, state, now);
    cx.app.unreadable_answers().report(account, provider, outcome.answer());
    let (ok, response) = (outcome.is_accepted(), words(outcome));
    // The provider may repeat the address, which the caller has just given.
    ChannelTestView { ok, response: cx.redactor().text(response) }
}

/// Describes an outcome for people.
fn words(outcome: Outcome) -> String {
    match outcome {
        Outcome::Answered(answer) => {
            let Response { code, enhanced, text, .. } = &answer.response;
            let own = answer.of_provider().and_then(|said| said.code.clone());
            let code = own.or_else(|| code.map(|code| code.to_string()));
            let parts = [code, enhanced.clone()].into_iter().flatten().filter(|part| !text.contains(part.as_str()));
            parts.chain((!text.is_empty()).then(|| text.clone())).collect::<Vec<_>>().join(" ")
        }
        Outcome::Withheld(why) => why,
        Outcome::Suppressed(_) => "the address is suppressed".to_owned(),
        Outcome::Held => "nothing leaves this server at the moment".to_owned(),
    }
}

/// Content of the test message, in the form of its channel.
async fn content(
    cx: &Context<'_>,
    (workspace, channel): (WorkspaceId, Channel),
    id: MessageId,
    to: &str,
) -> Result<Content, Error> {
    let parts = Parts { subject: Some(SUBJECT), text: Some(TEXT), without_preview: true, ..Parts::default() };
    match ChannelContent::of(channel, parts) {
        Some(content) => Ok(content.into()),
        None => Ok(Content::Email(Box::new(email(cx, workspace, id, to).await?))),
    }
}

/// An email from the workspace's only verified domain, or the first of them.
async fn email(cx: &Context<'_>, workspace: WorkspaceId, id: MessageId, to: &str) -> Result<Email, Error> {
    let domains = cx.app.sending_domains(workspace).await?;
    let verified = domains.iter().find(|domain| sender::decide(None, Some(domain), &domains).is_ok());
    let from = sender::decide(None, verified, &domains)?;
    let domain = responsible(&domains, &from.ascii_domain());
    let signers = domain.map(|domain| cx.app.signers(domain)).transpose().map_err(Error::internal)?;
    let to = address::EmailAddress::parse(to).map_err(Error::internal)?;
    Ok(Email {
        envelope_from: from.clone().into(),
        from: Mailbox { name: None, address: from },
        to,
        cc: Vec::new(),
        reply_to: None,
        subject: SUBJECT.to_owned(),
        date: cx.now,
        message_id: format!("{id}@{}", cx.app.installation_name().await?),
        headers: Vec::new(),
        text: Some(format!("{TEXT}\n")),
        html: None,
        attachments: Vec::new(),
        signers: signers.unwrap_or_default(),
    })
}
