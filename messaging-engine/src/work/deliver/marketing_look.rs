//! The last check of a marketing message, of a campaign or an automation, right before its attempt: whether it may be
//! sent now.
//!
//! Contract sections 12.3 and 12.5. The rules are in core ([`recipient_time::look`]); here are their inputs, and the
//! consequences for a message that is not sent: it waits again, or it is settled. The place that a message takes among
//! the marketing messages to its contact is written with the record that its attempt begins, under the revision that
//! was read, so that two campaigns cannot pass together.

use std::time::Duration;

use messaging_core::changes::{Changes, Condition, ContactSends, Expect, WaitingKey, Write, moves, track_of};
use messaging_core::domain::campaign::audience::agrees;
use messaging_core::domain::campaign::schedule::STALE;
use messaging_core::domain::campaign::settings::FrequencyCap;
use messaging_core::domain::campaign::{Campaign, CampaignStatus};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::delivery::recipient_time::frequency_cap::remembered;
use messaging_core::domain::delivery::recipient_time::{self, Recipient, SuppressCause, Terms, Verdict, zone_of};
use messaging_core::domain::message::hold::{Hold, HoldReason};
use messaging_core::domain::message::milestones::{Milestones, Skip};
use messaging_core::domain::message::{EventKind, Message, MessageStatus};
use messaging_core::ids::CampaignId;
use messaging_core::ports::store::{StoreError, Stored};
use messaging_core::time::Timestamp;
use serde_json::{Map, Value};

use crate::app::App;
use crate::jobs::deliver_message::DeliverMessage;
use crate::services::campaigns::terms;
use crate::work::deliver::devices;
use crate::work::job::{JobContext, JobError};

/// Wait of a message that is tried again while its campaign is paused.
const PAUSED_FOR: Duration = Duration::from_secs(30);
/// Wait of a message whose contact is not found: it may be being merged into another, which the message will then name.
const UNKNOWN_FOR: Duration = Duration::from_secs(5);
/// Time after which a contact that is not found counts as gone.
const UNKNOWN_AT_MOST: Duration = Duration::from_mins(10);

/// Verdict of the last check: whether the attempt begins.
#[derive(Debug)]
pub(super) enum Look {
    /// The attempt may begin.
    Go(Permit),
    /// The attempt does not begin.
    Refused(Refusal),
}

/// Conditions and writes for the record of an attempt that may begin.
#[derive(Debug, Clone)]
pub(super) struct Permit {
    /// Sends to the contact, among which the message takes its place; `None` once the attempt has begun.
    sends: Option<(ContactSends, Expect)>,
    /// False if the message has its place by an earlier attempt: then the revision alone is a condition, which shows
    /// that the contact did not opt out after this check.
    takes_place: bool,
    /// Campaign and its rate limit, under which the message has to take its turn; `None` if it has already or there is
    /// none.
    pace: Option<(CampaignId, u32)>,
}

/// Reason why an attempt does not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The message is held back.
    Hold {
        /// Reason for which the message is held back.
        reason: HoldReason,
        /// Time when the message is checked again.
        until: Option<Timestamp>,
    },
    /// The message is suppressed for good.
    Suppress(SuppressCause),
    /// The campaign was cancelled, or the contact is gone.
    Withdraw,
    /// The message was released so long ago that the campaign has to check whether it is still wanted.
    Stale,
    /// The contact of the message is not found at the moment.
    Unknown,
}

/// Checks a message of a campaign, or marketing of an automation; other messages may be sent.
pub(super) async fn look(app: &App, message: &Message, job: &DeliverMessage) -> Result<Look, StoreError> {
    let now = app.now();
    let is_first = job.reserved_at.is_none();
    let Some(id) = message.campaign_id else {
        let Some(marketing) = job.marketing else { return Ok(Look::Go(Permit::nothing())) };
        if let (Some(list), Some(contact)) = (marketing.list_id, message.contact_id)
            && app.has_left(message.workspace_id, &[list], (contact, None)).await?
        {
            return Ok(Look::Refused(Refusal::Suppress(SuppressCause::NoConsent)));
        }
        let terms = Terms {
            quiet_hours: marketing.quiet_hours,
            frequency_cap: marketing.frequency_cap.filter(|_| is_first),
            ..Terms::default()
        };
        return look_by(app, message, job, &terms, None, now).await;
    };
    let campaign = app.campaign(message.workspace_id, id).await?;
    let Some(campaign) = campaign.filter(|campaign| !campaign.is_withdrawn()) else {
        return Ok(Look::Refused(Refusal::Withdraw));
    };
    // A message that was attempted already is tried until it expires, because it would not be released again.
    let is_unsent = is_first && message.status == MessageStatus::Queued;
    if is_unsent && job.released_at.is_some_and(|released| released + STALE < now) {
        return Ok(Look::Refused(Refusal::Stale));
    }
    if let Some(contact) = message.contact_id
        && app.has_left_since(&campaign, contact).await?
    {
        return Ok(Look::Refused(Refusal::Suppress(SuppressCause::NoConsent)));
    }
    let terms = terms_of(&campaign, is_first);
    let pace = campaign.plan.settings.rate_limit.map(|limit| (id, limit));
    look_by(app, message, job, &terms, pace, now).await
}

/// Checks a message by the terms of its campaign or automation.
async fn look_by(
    app: &App,
    message: &Message,
    job: &DeliverMessage,
    terms: &Terms,
    pace: Option<(CampaignId, u32)>,
    now: Timestamp,
) -> Result<Look, StoreError> {
    let is_first = job.reserved_at.is_none();
    let Some(contact) = message.contact_id else { return Ok(Look::Refused(Refusal::Withdraw)) };
    let Some(Stored { record: known, .. }) = app.store().contact(message.workspace_id, contact).await? else {
        // A message of an automation is not released: its time counts from acceptance.
        let since = job.released_at.or(job.marketing.map(|_| message.created_at));
        let is_over = since.is_some_and(|since| since + UNKNOWN_AT_MOST < now);
        return Ok(Look::Refused(if is_over { Refusal::Withdraw } else { Refusal::Unknown }));
    };
    let addresses = devices::addresses(app, message, &known).await?;
    let may_be_used = addresses.iter().any(|(_, reason)| reason.is_none());
    let stored = app.store().contact_sends(message.workspace_id, contact, message.channel).await?;
    let mut terms = *terms;
    if is_first && message.channel == Channel::Email && app.wants_weekly(message.workspace_id, contact).await? {
        terms.frequency_cap = Some(FrequencyCap::at_most_weekly(terms.frequency_cap));
    }
    let workspace = app.workspace(message.workspace_id).await?;
    let zone = zone_of(known.timezone.as_deref(), workspace.as_ref().map_or("UTC", |one| &one.timezone));
    let times = stored.as_ref().map(|stored| stored.record.times.clone()).unwrap_or_default();
    let recipient = Recipient {
        zone: &zone,
        suppression: addresses.first().filter(|_| !may_be_used).and_then(|(_, reason)| *reason),
        has_consent: agrees(message.channel, known.consent),
        sends: &times,
        cap_since: message.hold.filter(|hold| hold.reason == HoldReason::FrequencyCap).map(|hold| hold.since),
    };
    Ok(match recipient_time::look(&terms, &recipient, now) {
        Verdict::Hold { reason, until } => Look::Refused(Refusal::Hold { reason, until }),
        Verdict::Suppress(cause) => Look::Refused(Refusal::Suppress(cause)),
        Verdict::Go => {
            let expect = stored.map_or(Expect::Absent, |stored| Expect::Revision(stored.revision));
            let (workspace_id, channel) = (message.workspace_id, message.channel);
            let sends = ContactSends { workspace_id, contact_id: contact, channel, times };
            Look::Go(Permit { sends: Some((sends, expect)), takes_place: is_first, pace: pace.filter(|_| is_first) })
        }
    })
}

/// Returns the terms of a campaign; its frequency cap concerns the first attempt only.
fn terms_of(campaign: &Campaign, is_first: bool) -> Terms {
    let terms = terms(campaign);
    Terms {
        is_paused: matches!(campaign.status, CampaignStatus::Paused | CampaignStatus::Scheduled),
        frequency_cap: terms.frequency_cap.filter(|_| is_first),
        ..terms
    }
}

impl Permit {
    /// The permit of a message that takes no place among others.
    const fn nothing() -> Self {
        Self { sends: None, takes_place: false, pace: None }
    }

    /// Takes the turn of the message under the rate limit of its campaign, once.
    pub(super) fn take_turn(&mut self, app: &App, now: Timestamp) -> Result<(), Refusal> {
        let Some((campaign, limit)) = self.pace else { return Ok(()) };
        let held = |until| Refusal::Hold { reason: HoldReason::DomainPace, until: Some(until) };
        app.campaign_pace().begin(campaign, limit, now).map_err(held)?;
        self.pace = None;
        Ok(())
    }

    /// Gives back the place that the message has under the rate limit of its campaign from its release to its turn: it
    /// ends without an attempt.
    pub(super) fn give_back_turn(self, app: &App) {
        if let Some((campaign, _)) = self.pace {
            app.campaign_pace().put_back(campaign, 1);
        }
    }

    /// Returns true if the message takes its place with the attempt that begins.
    pub(super) const fn takes_place(&self) -> bool {
        self.takes_place && self.sends.is_some()
    }

    /// Returns the write by which the message takes its place at `now`, or proves that it still has it.
    pub(super) fn reservation(&self, now: Timestamp) -> Option<Write> {
        let (sends, expect) = self.sends.as_ref()?;
        if !self.takes_place {
            return Some(Write::put(sends.clone(), *expect));
        }
        let mut times = remembered(&sends.times, now);
        times.push(now);
        times.sort_unstable();
        Some(Write::put(ContactSends { times, ..sends.clone() }, *expect))
    }

    /// Marks the permit as used when the attempt begins: another transaction of it takes nothing more.
    pub(super) fn use_up(&mut self) {
        self.sends = None;
    }

    /// Returns the permit of a further check: a message that has had its turn takes none a second time.
    pub(super) fn following(self, earlier: &Self) -> Self {
        Self { pace: self.pace.filter(|_| earlier.pace.is_some()), ..self }
    }
}

/// Ends the run of a job whose message is not attempted.
pub(super) async fn turn_away(
    cx: &JobContext,
    message: &Message,
    job: &DeliverMessage,
    refusal: Refusal,
) -> Result<(), JobError> {
    let now = cx.app.now();
    let Some(campaign) = message.campaign_id else { return turn_away_from(cx, message, job, refusal, now).await };
    if job.reserved_at.is_none() && refusal != Refusal::Unknown {
        cx.app.campaign_pace().put_back(campaign, 1);
    }
    let waits = message.status == MessageStatus::Queued;
    let unchanged = Write::Expect(Condition::Message(message.workspace_id, message.id, message.revision));
    let mut changes = match refusal {
        Refusal::Unknown => return Ok(cx.put_back(UNKNOWN_FOR, false).await?),
        Refusal::Suppress(cause) => settle(cx, message, job, Some(cause), now).await?,
        Refusal::Withdraw => settle(cx, message, job, None, now).await?,
        Refusal::Hold { reason: HoldReason::Paused, .. } if !waits => {
            return Ok(cx.put_back(PAUSED_FOR, false).await?);
        }
        Refusal::Hold { reason: HoldReason::Paused, .. } | Refusal::Stale => {
            Changes::from_iter([unchanged, wait(message, campaign, now)])
        }
        Refusal::Hold { reason, until } => {
            let (until, mut changes) = hold(message, reason, until, now);
            if !waits {
                return cx.again_at(until, job, changes).await;
            }
            changes.push(wait(message, campaign, until));
            changes
        }
    };
    changes.push(App::wake_campaign(message.workspace_id, campaign, now));
    Ok(cx.finish(changes).await?)
}

/// Ends the run of a job whose automation message is not attempted: the message keeps its job.
async fn turn_away_from(
    cx: &JobContext,
    message: &Message,
    job: &DeliverMessage,
    refusal: Refusal,
    now: Timestamp,
) -> Result<(), JobError> {
    let changes = match refusal {
        Refusal::Unknown => return Ok(cx.put_back(UNKNOWN_FOR, false).await?),
        Refusal::Stale => return Ok(cx.put_back(PAUSED_FOR, false).await?),
        Refusal::Suppress(cause) => settle(cx, message, job, Some(cause), now).await?,
        Refusal::Withdraw => settle(cx, message, job, None, now).await?,
        Refusal::Hold { reason, until } => {
            let (until, changes) = hold(message, reason, until, now);
            // The message's time to expire counts from when it is released.
            let job = DeliverMessage { released_at: Some(until), ..job.clone() };
            return cx.again_at(until, &job, changes).await;
        }
    };
    Ok(cx.finish(changes).await?)
}

/// Returns the time until which a message is held, and the changes that record it.
pub(super) fn hold(
    message: &Message,
    reason: HoldReason,
    until: Option<Timestamp>,
    now: Timestamp,
) -> (Timestamp, Changes) {
    let until = until.unwrap_or(now + PAUSED_FOR);
    // The patience of a cap counts from when it first held the message, so a later hold keeps that reason and its
    // start: neither the clock nor a pace lets the patience begin again.
    let capped = message.hold.filter(|hold| hold.reason == HoldReason::FrequencyCap);
    let reason = capped.map_or(reason, |hold| hold.reason);
    let earlier = message.hold.filter(|hold| hold.reason == reason);
    // The clock may have been set back.
    let since = earlier.map_or(now, |hold| hold.since.min(now));
    let hold = Some(Hold { reason, until: Some(until), since });
    let held = Message { hold, revision: message.revision + 1, ..message.clone() };
    (until, moves(message, &held, None, now).into_iter().collect())
}

/// Returns the write that lets a message wait again until it is released.
fn wait(message: &Message, campaign: CampaignId, due_at: Timestamp) -> Write {
    let track = track_of(DeliverMessage::lane_of(message).resource());
    Write::PutWaiting(message.workspace_id, campaign, WaitingKey { track, due_at, message_id: message.id })
}

/// Returns the changes that settle a message without an attempt: suppressed for a reason, or withdrawn. It gives back
/// the place it took by an earlier attempt.
async fn settle(
    cx: &JobContext,
    message: &Message,
    job: &DeliverMessage,
    cause: Option<SuppressCause>,
    now: Timestamp,
) -> Result<Changes, StoreError> {
    let mut changes = give_back(cx, message, job).await?;
    if message.status.is_settled() && message.status != MessageStatus::Sending {
        return Ok(changes);
    }
    let (status, event) = match cause {
        Some(_) => (MessageStatus::Suppressed, EventKind::Suppressed),
        None => (MessageStatus::Cancelled, EventKind::Cancelled),
    };
    let moved = message.moved(status, now);
    let skip = cause.map(|cause| match cause {
        SuppressCause::Listed(_) => Skip::Suppressed,
        SuppressCause::NoConsent => Skip::NoConsent,
        SuppressCause::FrequencyCap => Skip::FrequencyCap,
    });
    let after = Message { milestones: Milestones { skip, ..moved.milestones }, ..moved };
    changes.extend(moves(message, &after, None, now));
    let mut meta = Map::new();
    if let Some(cause) = cause {
        meta.insert("recipient".to_owned(), Value::from(message.to.clone()));
        meta.insert("reason".to_owned(), Value::from(cause.as_str()));
    }
    changes.extend(cx.app.append_events(message.into(), [(event, meta)]).await?);
    Ok(changes)
}

/// Ends the job of a withdrawn message. It frees its place among the marketing messages to its contact, and the one
/// under the rate limit of its campaign, which may wait for that alone.
pub(super) async fn finish_withdrawn(cx: &JobContext, message: &Message, job: &DeliverMessage) -> Result<(), JobError> {
    let mut changes = give_back(cx, message, job).await?;
    if let Some(campaign) = message.campaign_id {
        if job.reserved_at.is_none() {
            cx.app.campaign_pace().put_back(campaign, 1);
        }
        changes.push(App::wake_campaign(message.workspace_id, campaign, cx.app.now()));
    }
    Ok(cx.finish(changes).await?)
}

/// Returns the changes by which a message gives back its place among the marketing messages to its contact.
async fn give_back(cx: &JobContext, message: &Message, job: &DeliverMessage) -> Result<Changes, StoreError> {
    let (Some(reserved), Some(contact)) = (job.reserved_at, message.contact_id) else { return Ok(Changes::default()) };
    let stored = cx.app.store().contact_sends(message.workspace_id, contact, message.channel).await?;
    let Some(Stored { mut record, revision }) = stored else { return Ok(Changes::default()) };
    // Stores may keep seconds, rounded up.
    let is_it = |time: &Timestamp| *time >= reserved && *time < reserved + Duration::from_secs(1);
    let Some(place) = record.times.iter().position(is_it) else { return Ok(Changes::default()) };
    record.times.remove(place);
    Ok(Changes::from_iter([Write::put(record, Expect::Revision(revision))]))
}
