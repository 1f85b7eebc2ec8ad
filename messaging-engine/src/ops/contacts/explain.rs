//! Explanation of whether a contact gets messages on a channel, by the rules that sending uses.
//!
//! Contract section 10. For a campaign that has begun, its frozen audience and the message to the contact decide; for
//! one that has not, the contact's current data.

use std::sync::Arc;

use http::{Method, StatusCode};
use messaging_core::domain::audience::contact::Contact;
use messaging_core::domain::audience::suppression::Suppression;
use messaging_core::domain::campaign::audience::{AudienceSet, AudienceVerdict, ContactFacts, agrees};
use messaging_core::domain::campaign::schedule::SenderState;
use messaging_core::domain::campaign::{Campaign, CampaignStatus, PauseReason};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address;
use messaging_core::domain::delivery::recipient_time::{self, Recipient, SuppressCause, Terms, Verdict};
use messaging_core::domain::mail::sending_domain::DomainStatus;
use messaging_core::domain::message::hold::{Hold, HoldReason};
use messaging_core::domain::message::milestones::Skip;
use messaging_core::domain::message::{EventKind, Message, MessageStatus};
use messaging_core::ids::WorkspaceId;
use messaging_core::input::{Empty, Input};
use messaging_core::scope::{Access, Scope};
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::{FieldCode, Violations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ContactPath;
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, Operation};
use crate::services::campaigns::terms;

/// Channel or campaign for which the explanation is made.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[non_exhaustive]
pub struct ExplainQuery {
    /// Channel; may be left out where a campaign is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<Channel>,
    /// Campaign; without one, the explanation is about marketing messages in general.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub campaign_id: Option<String>,
}

impl Input for ExplainQuery {
    fn check(&self, violations: &mut Violations) {
        if self.channel.is_none() && self.campaign_id.is_none() {
            violations.add("/channel", FieldCode::Required, "channel or campaign_id is required");
        }
    }
}

/// Reasons why a contact is not sent messages now; without reasons it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ContactExplanation {
    /// True if nothing stands against a marketing message, of the campaign if one was named: it is sent, or was sent.
    pub would_send: bool,
    /// All reasons against a marketing message now.
    pub reasons: Vec<ExplainReason>,
    /// The same for transactional messages.
    pub transactional: TransactionalExplanation,
    /// True if the channel is the sandbox, which captures all messages: none reaches the contact.
    pub captured: bool,
}

/// Reasons why a contact is not sent transactional messages now; without reasons it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct TransactionalExplanation {
    /// True if nothing stands against a transactional message.
    pub would_send: bool,
    /// All reasons against it now.
    pub reasons: Vec<ExplainReason>,
}

/// Reason why a message is not sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ExplainReason {
    /// Code of the reason, for programs.
    pub code: ExplainCode,
    /// Text of the reason, for people.
    pub text: String,
    /// Start of the obstacle, if known.
    pub since: Option<Timestamp>,
    /// Advice on what removes the obstacle, for people; null if nothing does.
    pub cure: Option<String>,
}

/// Obstacle to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ExplainCode {
    /// The contact is on a list that the campaign excludes.
    Excluded,
    /// The contact has no address for the channel.
    NoAddress,
    /// All addresses of the contact are suppressed.
    Suppressed,
    /// The contact has not consented to marketing.
    NoConsent,
    /// Contacts that were created earlier have all addresses of this one.
    Duplicate,
    /// The contact is on no list and in no segment of the campaign.
    NotInAudience,
    /// The contact has got as many marketing messages as the frequency cap allows.
    FrequencyCap,
    /// The contact is in quiet hours.
    QuietHours,
    /// The time of the campaign has not come in the contact's time zone.
    ByTimezone,
    /// The campaign, or its message, was stopped.
    Held,
    /// The channel has no transport.
    ChannelNotConfigured,
    /// No sender has a verified domain.
    SenderDomainNotVerified,
}

impl ExplainReason {
    fn new(code: ExplainCode, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), since: None, cure: None }
    }

    fn since(mut self, since: impl Into<Option<Timestamp>>) -> Self {
        self.since = since.into();
        self
    }

    fn cure(mut self, cure: impl Into<String>) -> Self {
        self.cure = Some(cure.into());
        self
    }

    /// Turns the verdict on a contact of an audience into a reason; `None` if the contact is a recipient.
    fn of_verdict(verdict: AudienceVerdict) -> Option<Self> {
        Some(match verdict {
            AudienceVerdict::Excluded => {
                Self::new(ExplainCode::Excluded, "a list that the campaign excludes names the contact")
            }
            AudienceVerdict::NoAddress => Self::no_address(),
            AudienceVerdict::Suppressed => Self::new(ExplainCode::Suppressed, "every address of it is suppressed"),
            AudienceVerdict::NoConsent => Self::no_consent(),
            AudienceVerdict::Duplicate => {
                Self::new(ExplainCode::Duplicate, "contacts that were created before have every address of it")
            }
            AudienceVerdict::Recipient => return None,
        })
    }

    fn no_address() -> Self {
        Self::new(ExplainCode::NoAddress, "the contact has no address for the channel").cure("give it one")
    }

    fn no_consent() -> Self {
        Self::new(ExplainCode::NoConsent, "the contact has not agreed to marketing messages on the channel")
            .cure("record its consent once it agrees")
    }

    fn suppressed(listed: &Suppression) -> Self {
        let reason = listed.reason.as_str();
        Self::new(ExplainCode::Suppressed, format!("its address is on the suppression list: {reason}"))
            .since(listed.created_at)
            .cure("take the address off the suppression list, if the reason is over")
    }

    fn held(text: impl Into<String>) -> Self {
        Self::new(ExplainCode::Held, text)
    }
}

/// `GET /workspaces/{workspace_id}/contacts/{id}/explain`
pub struct ExplainContact;

impl Operation for ExplainContact {
    const ID: &'static str = "explainContact";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/contacts/{id}/explain";
    const ACCESS: Access = Access::Scope(Scope::ContactsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "contact explain";
    const SUMMARY: &'static str =
        "Say whether a contact would be sent a message now, or one of a campaign, and why not";
    type Path = ContactPath;
    type Query = ExplainQuery;
    type Body = Empty;
    type Output = ContactExplanation;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<ContactExplanation, Error> {
        let ContactPath { workspace_id, id } = call.path;
        let contact = cx.store().contact(workspace_id, id).await?.ok_or(Error::NotFound)?.record;
        let campaign = named_campaign(cx, workspace_id, call.query.campaign_id.as_deref()).await?;
        let channel = channel(call.query.channel, campaign.as_ref())?;
        let subject = Subject::of(cx, contact, channel).await?;
        let mut general = workspace_reasons(cx, workspace_id, channel).await?;
        general.extend(subject.obstacle.clone());
        let transactional: Vec<_> = general.iter().cloned().chain(subject.against_transactional()).collect();
        let reasons = match campaign {
            None => general.into_iter().chain(subject.against_marketing()).collect(),
            Some(campaign) => of_campaign(cx, &campaign, &subject).await?,
        };
        let captured = cx.app.is_captured(workspace_id, channel).await?;
        Ok(ContactExplanation {
            captured,
            would_send: reasons.is_empty(),
            reasons,
            transactional: TransactionalExplanation { would_send: transactional.is_empty(), reasons: transactional },
        })
    }
}

/// Returns the campaign that a request names.
async fn named_campaign(
    cx: &Context<'_>,
    workspace: WorkspaceId,
    named: Option<&str>,
) -> Result<Option<Campaign>, Error> {
    let Some(text) = named else { return Ok(None) };
    let found = match text.parse() {
        Ok(id) => cx.store().campaign(workspace, id).await?,
        Err(_) => None,
    };
    match found {
        Some(stored) => Ok(Some(stored.record)),
        None => Err(wrong("campaign_id", FieldCode::NotFound, "no such campaign in this workspace")),
    }
}

/// Returns the channel that a request names, or the channel of its campaign.
fn channel(named: Option<Channel>, campaign: Option<&Campaign>) -> Result<Channel, Error> {
    match (named, campaign.map(|campaign| campaign.plan.channel)) {
        (Some(named), Some(own)) if named != own => {
            Err(wrong("channel", FieldCode::Conflict, "the campaign is for another channel"))
        }
        (named, own) => {
            named.or(own).ok_or_else(|| wrong("channel", FieldCode::Required, "channel or campaign_id is required"))
        }
    }
}

fn wrong(parameter: &str, code: FieldCode, rule: &str) -> Error {
    let mut violations = Violations::new();
    violations.add_parameter(parameter, code, rule);
    violations.into()
}

/// Returns the reasons against every message of the workspace on a channel.
async fn workspace_reasons(
    cx: &Context<'_>,
    workspace: WorkspaceId,
    channel: Channel,
) -> Result<Vec<ExplainReason>, Error> {
    let mut reasons: Vec<_> = fenced(cx).into_iter().collect();
    if !cx.app.has_transport(workspace, channel).await? {
        reasons.push(not_configured());
    }
    if channel == Channel::Email {
        let domains = cx.app.sending_domains(workspace).await?;
        if !domains.iter().any(|domain| domain.status == DomainStatus::Verified) {
            reasons.push(no_sender());
        }
    }
    Ok(reasons)
}

/// Advice on how to end the fence of a server that runs on a copied database.
const RESUME: &str = "run `messaging admin resume --queued send` on the server to send what waits, or `--queued cancel` to \
                      give it up";

/// Returns the reason that stops all sending if the database is a copy.
fn fenced(cx: &Context<'_>) -> Option<ExplainReason> {
    let text = "the database came from a copy: nothing is sent until the operator says so";
    cx.app.fence().map(|fence| ExplainReason::held(text).since(fence.since).cure(RESUME))
}

fn not_configured() -> ExplainReason {
    ExplainReason::new(ExplainCode::ChannelNotConfigured, "nothing carries the channel").cure("give it a provider")
}

fn no_sender() -> ExplainReason {
    ExplainReason::new(ExplainCode::SenderDomainNotVerified, "there is no sender whose domain is verified")
        .cure("verify the sending domain, or give a sender of a verified one")
}

/// Returns the obstacle that keeps messages to all these addresses from being attempted, or, without addresses, the
/// obstacle on the channel. Of several the one that ends first.
async fn obstacle_to_all(
    cx: &Context<'_>,
    workspace: WorkspaceId,
    channel: Channel,
    addresses: &[String],
) -> Result<Option<ExplainReason>, Error> {
    let mut first = match addresses {
        [] => cx.app.obstacle_on(workspace, channel).await?,
        [own, ..] => cx.app.obstacle_to(workspace, channel, own).await?,
    };
    for address in addresses.iter().skip(1) {
        let Some(known) = first else { return Ok(None) };
        let other = cx.app.obstacle_to(workspace, channel, address).await?;
        first = other.map(|other| if other.until < known.until { other } else { known });
    }
    Ok(first.map(|obstacle| {
        let obstacle = obstacle.shown_to(cx.redactor());
        let cure = match (obstacle.cure(workspace), obstacle.until) {
            (Some(cure), _) => cure.text,
            (None, Some(until)) => format!("none is needed: it is tried again at {until}"),
            (None, None) => "none is needed: it is being tried again".to_owned(),
        };
        ExplainReason::held(obstacle.sentence()).cure(cure)
    }))
}

/// Contact with its addresses and obstacles on one channel.
struct Subject {
    contact: Contact,
    channel: Channel,
    /// Number of its addresses for the channel.
    addresses: usize,
    /// Suppressions of these addresses.
    listed: Vec<Suppression>,
    /// Reason for which nothing is attempted on the channel or to any of its addresses.
    obstacle: Option<ExplainReason>,
}

impl Subject {
    async fn of(cx: &Context<'_>, contact: Contact, channel: Channel) -> Result<Self, Error> {
        let mut addresses: Vec<_> = cx
            .app
            .addresses_of(&contact, channel)
            .await?
            .iter()
            .map(|text| address::normalize(channel, text))
            .collect();
        addresses.sort_unstable();
        addresses.dedup();
        let listed = cx.store().suppressed(contact.workspace_id, channel, &addresses).await?;
        let listed = listed.into_iter().map(|stored| stored.record).collect();
        let obstacle = obstacle_to_all(cx, contact.workspace_id, channel, &addresses).await?;
        Ok(Self { contact, channel, addresses: addresses.len(), listed, obstacle })
    }

    fn has_consent(&self) -> bool {
        agrees(self.channel, self.contact.consent)
    }

    /// Returns the oldest suppression of its addresses; `None` while one of the addresses is free.
    fn suppression(&self) -> Option<&Suppression> {
        self.listed.iter().min_by_key(|listed| listed.created_at).filter(|_| self.listed.len() >= self.addresses)
    }

    fn against_marketing(&self) -> Vec<ExplainReason> {
        let mut reasons = Vec::new();
        if self.addresses == 0 {
            reasons.push(ExplainReason::no_address());
        }
        reasons.extend(self.suppression().map(ExplainReason::suppressed));
        if !self.has_consent() {
            reasons.push(ExplainReason::no_consent());
        }
        reasons
    }

    fn against_transactional(&self) -> Vec<ExplainReason> {
        if self.addresses == 0 {
            return vec![ExplainReason::no_address()];
        }
        let stopping = self.listed.iter().filter(|listed| listed.reason.stops_transactional());
        if stopping.clone().count() < self.addresses {
            return Vec::new();
        }
        stopping.min_by_key(|listed| listed.created_at).map(ExplainReason::suppressed).into_iter().collect()
    }
}

/// Returns the reasons against the message of a campaign.
async fn of_campaign(cx: &Context<'_>, campaign: &Campaign, subject: &Subject) -> Result<Vec<ExplainReason>, Error> {
    let message = message_of(cx, campaign, subject).await?;
    if let Some(message) = &message
        && !matches!(message.status, MessageStatus::Queued | MessageStatus::Deferred)
    {
        return of_ended(cx, message).await;
    }
    let mut reasons = Vec::new();
    if campaign.status.is_final() {
        // A contact without a message gets none any more, because of this status or of the verdict when the audience
        // was frozen.
        let text = format!("the campaign is {}", campaign.status.as_str());
        reasons.push(ExplainReason::held(text).since(campaign.completed_at));
    } else {
        reasons.extend(fenced(cx));
        let ready = cx.app.campaign_readiness(campaign.workspace_id, &campaign.plan).await?;
        let ready = ready.as_readiness();
        if !ready.channel_is_configured {
            reasons.push(not_configured());
        }
        if ready.sender != SenderState::Verified {
            reasons.push(no_sender());
        }
        reasons.extend(subject.obstacle.clone());
    }
    let judged = judged(cx, campaign, subject).await?;
    let is_recipient = matches!(judged, Judged::Recipient);
    reasons.extend(judged.into_reasons(campaign, subject));
    if is_recipient && !campaign.status.is_final() {
        reasons.extend(last_look(cx, campaign, subject, message.as_ref()).await?);
    }
    Ok(reasons)
}

async fn message_of(cx: &Context<'_>, campaign: &Campaign, subject: &Subject) -> Result<Option<Message>, Error> {
    let (workspace, contact) = (campaign.workspace_id, subject.contact.id);
    Ok(match cx.store().campaign_message_of(workspace, campaign.id, contact).await? {
        Some(id) => cx.store().message(workspace, id).await?,
        None => None,
    })
}

/// Returns the reason that stopped a message which is not attempted any more; empty if it is being sent or was sent.
async fn of_ended(cx: &Context<'_>, message: &Message) -> Result<Vec<ExplainReason>, Error> {
    let reason = match message.status {
        MessageStatus::Suppressed => match message.milestones.skip {
            Some(Skip::NoConsent) => ExplainReason::no_consent(),
            Some(Skip::FrequencyCap) => {
                ExplainReason::new(ExplainCode::FrequencyCap, "the contact had had its share of marketing messages")
            }
            Some(Skip::Suppressed) | None => {
                ExplainReason::new(ExplainCode::Suppressed, "its address was suppressed when its turn came")
            }
        },
        MessageStatus::Cancelled => ExplainReason::held("its message was withdrawn"),
        MessageStatus::Failed => {
            let events =
                cx.store().message_events_of_kind(message.workspace_id, message.id, EventKind::Failed, 1).await?;
            match events.first().and_then(|event| event.meta.get("reason")?.as_str()) {
                Some("sender_domain_not_verified") => no_sender(),
                Some("channel_not_configured") => not_configured(),
                _ => ExplainReason::held("its message could not be sent"),
            }
        }
        _ => return Ok(Vec::new()),
    };
    Ok(vec![reason.since(message.updated_at)])
}

/// Standing of a contact in the audience of a campaign.
enum Judged {
    /// Verdict at the time when the audience was frozen.
    Frozen(AudienceVerdict, Timestamp),
    /// Current facts; the audience is not frozen yet.
    Now(ContactFacts),
    /// The contact is in no list or segment of the campaign.
    Outside,
    /// The contact is among the recipients of the frozen audience.
    Recipient,
}

impl Judged {
    fn into_reasons(self, campaign: &Campaign, subject: &Subject) -> Vec<ExplainReason> {
        match self {
            Self::Frozen(verdict, as_of) => {
                ExplainReason::of_verdict(verdict).map(|reason| reason.since(as_of)).into_iter().collect()
            }
            Self::Now(facts) => {
                let excluded = facts.is_excluded.then(|| ExplainReason::of_verdict(AudienceVerdict::Excluded));
                let mut reasons: Vec<_> = excluded.flatten().into_iter().collect();
                reasons.extend(subject.against_marketing());
                if campaign.status == CampaignStatus::Paused {
                    reasons.push(paused(campaign));
                }
                reasons
            }
            Self::Outside => {
                let text = "no list and no segment of the campaign names the contact";
                vec![ExplainReason::new(ExplainCode::NotInAudience, text)]
            }
            Self::Recipient => Vec::new(),
        }
    }
}

async fn judged(cx: &Context<'_>, campaign: &Campaign, subject: &Subject) -> Result<Judged, Error> {
    let (workspace, contact) = (campaign.workspace_id, subject.contact.id);
    if let Some(as_of) = campaign.started_at {
        for set in cx.store().audience_sets_of(workspace, campaign.id, contact).await? {
            match set {
                AudienceSet::Left(verdict) => return Ok(Judged::Frozen(verdict, as_of)),
                AudienceSet::Recipients(_) => return Ok(Judged::Recipient),
                AudienceSet::TestGroup => {}
            }
        }
        if campaign.recipients.is_some() || campaign.status.is_final() {
            return Ok(Judged::Outside);
        }
    }
    let plan = &campaign.plan;
    let query = Arc::new(cx.app.audience_query(workspace, plan.channel, &plan.audience, false).await?);
    let facts = cx.store().audience_facts(workspace, &query, contact).await?;
    Ok(facts.map_or(Judged::Outside, Judged::Now))
}

fn paused(campaign: &Campaign) -> ExplainReason {
    let text = match campaign.pause_reason {
        Some(PauseReason::Restored) => "the campaign is paused: the database came from a copy",
        Some(PauseReason::Stale) => "the campaign is paused: it was late by more than 6 hours",
        Some(PauseReason::User) | None => "the campaign is paused",
    };
    ExplainReason::held(text).cure("schedule the campaign, if it is still wanted")
}

/// Returns the reasons that the check right before an attempt would give now. Reasons in the contact's own data are
/// included at any hour.
async fn last_look(
    cx: &Context<'_>,
    campaign: &Campaign,
    subject: &Subject,
    message: Option<&Message>,
) -> Result<Vec<ExplainReason>, Error> {
    let (workspace, plan) = (campaign.workspace_id, &campaign.plan);
    let hold: Option<Hold> = message.and_then(|message| message.hold);
    let mut reasons = subject.against_marketing();
    // A message that is tried again has its place under the cap.
    let has_place = message.is_some_and(|message| message.status == MessageStatus::Deferred);
    let sends =
        if has_place { None } else { cx.store().contact_sends(workspace, subject.contact.id, plan.channel).await? };
    let sends = sends.map(|stored| stored.record.times).unwrap_or_default();
    let own = cx.app.workspace(workspace).await?.map(|workspace| workspace.timezone.clone()).unwrap_or_default();
    let zone = recipient_time::zone_of(subject.contact.timezone.as_deref(), &own);
    let terms = Terms { is_paused: campaign.status == CampaignStatus::Paused, ..terms(campaign) };
    let of_cap = hold.filter(|hold| hold.reason == HoldReason::FrequencyCap);
    let recipient = Recipient {
        zone: &zone,
        suppression: None,
        has_consent: true,
        sends: &sends,
        cap_since: of_cap.map(|hold| hold.since),
    };
    let (reason, until) = match recipient_time::look(&terms, &recipient, cx.now) {
        Verdict::Go => (hold.filter(|hold| hold.reason == HoldReason::Held).map(|hold| hold.reason), None),
        Verdict::Hold { reason, until } => (Some(reason), until),
        Verdict::Suppress(SuppressCause::FrequencyCap) => (Some(HoldReason::FrequencyCap), None),
        Verdict::Suppress(_) => (None, None),
    };
    let told = reason.and_then(|reason| {
        let told = match reason {
            HoldReason::Paused => return Some(paused(campaign)),
            HoldReason::Held => ExplainReason::held("the server does not send until somebody lets it").cure(RESUME),
            HoldReason::ByTimezone => {
                let text = "the contact's clock does not show the time of the campaign yet";
                ExplainReason::new(ExplainCode::ByTimezone, text)
            }
            HoldReason::QuietHours => {
                ExplainReason::new(ExplainCode::QuietHours, "it is in the quiet hours of the contact's zone")
            }
            HoldReason::FrequencyCap => {
                let text = "the contact has got as many marketing messages as the frequency cap allows";
                ExplainReason::new(ExplainCode::FrequencyCap, text)
            }
            HoldReason::Scheduled
            | HoldReason::DomainPace
            | HoldReason::WarmingUp
            | HoldReason::Braked
            | HoldReason::NoSource => return None,
        };
        let since = hold.filter(|hold| hold.reason == reason).map(|hold| hold.since);
        let told = told.since(since);
        Some(match until {
            Some(until) => told.cure(format!("none is needed: it is looked at again at {until}")),
            None => told,
        })
    });
    reasons.extend(told);
    Ok(reasons)
}
