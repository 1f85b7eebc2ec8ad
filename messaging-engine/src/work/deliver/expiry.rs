//! Expiry of messages: the time for which a message is tried, and its outcome once that is over.
//!
//! Contract section 4.2. On channels other than email a message ends at that moment: nothing that a run of its job
//! meets puts it off for longer, and messages that expire within a day have a lane that is claimed whatever the state
//! of its account ([`DeliverMessage::with_ttl`]).

use std::time::Duration;

use messaging_core::domain::channel::Channel;
use messaging_core::domain::delivery::consequence::TLS_REQUIRED;
use messaging_core::domain::delivery::retry;
use messaging_core::domain::delivery::{AttemptResult, judge};
use messaging_core::domain::message::{EventKind, Message};
use messaging_core::ports::store::StoreError;
use messaging_core::ports::transport::{Outcome, OutcomeClass, Response, Scope};
use messaging_core::time::Timestamp;
use serde_json::Value;

use crate::app::App;
use crate::app::account_pauses::Account;
use crate::jobs::deliver_message::DeliverMessage;
use crate::work::deliver::addressee::Addressee;
use crate::work::deliver::admit::pause_of_all;
use crate::work::deliver::perform::PerformedAttempt;
use crate::work::deliver::schedule::{AttemptClock, circumstances};
use crate::work::deliver::transaction_log::TOO_FAST;
use crate::work::deliver::unprepared::Impossible;
use crate::work::deliver::without_attempt::fail;

/// Upper bound on the deferrals of a message before it expires.
const MAX_DEFERRALS: usize = 1000;

/// Interval at which a message checks whether its account is still paused: new settings end a pause at once.
const PAUSED_FOR: Duration = Duration::from_mins(1);

/// Largest number of times that a message checks, within its time to expire, whether its account is still paused.
const LOOKS_WHILE_PAUSED: u32 = 10;

impl DeliverMessage {
    /// Time from which the expiry of the message counts.
    pub(super) fn accepted_at(&self, message: &Message) -> Timestamp {
        self.released_at.unwrap_or(message.created_at)
    }

    /// Time after `accepted_at` at which the message expires.
    pub(super) fn expiry(&self, app: &App, message: &Message) -> Duration {
        let email = app.settings().message_expiry;
        if message.channel == Channel::Email {
            return email;
        }
        let asked = self.ttl.map_or(Duration::MAX, |seconds| Duration::from_secs(seconds.into()));
        asked.min(retry::OFF_EMAIL_EXPIRY).min(email)
    }

    /// Returns true if a message that has expired is not attempted any more, as far as can be said before it is read.
    /// Email is still attempted; a message with no time at all has its one attempt.
    pub(super) fn is_over(&self, message: &Message, expiry: Duration) -> bool {
        message.channel != Channel::Email && (self.attempt > 1 || !expiry.is_zero())
    }

    /// Time for which a message is put off that is to wait for `wait`: at most a minute, and not beyond its end.
    pub(super) fn wait(&self, app: &App, message: &Message, wait: Duration) -> Duration {
        let end = self.accepted_at(message) + self.expiry(app, message);
        wait.min(PAUSED_FOR).min(end.since(app.now()))
    }

    /// Like `wait` while its account is paused, which new settings end: a message with little time checks more often.
    pub(super) fn pause(&self, app: &App, message: &Message, wait: Duration) -> Duration {
        let often = (self.expiry(app, message) / LOOKS_WHILE_PAUSED).max(Duration::from_secs(1));
        self.wait(app, message, wait.min(often))
    }
}

/// Returns the reason why an expired message was not attempted: the response that paused its account, or that its turn
/// was too far away. Takes no turn and makes no probe of the message.
pub(super) async fn last_words(app: &App, message: &Message) -> Result<Option<String>, StoreError> {
    let Some(provider) = app.provider(message.workspace_id, message.channel).await? else { return Ok(None) };
    let Some(transport) = app.transport(message.channel, &provider.name) else { return Ok(None) };
    let name = transport.account_of(&provider.settings, &message.to);
    let account = Account { name, ..Account::of(message.workspace_id, message.channel) };
    let paused = match name {
        Some(_) => pause_of_all(app, message, &provider, transport.as_ref()).await?.map(|(_, error)| error),
        None => app.account_pauses().state_of(account, &provider, app.monotonic()).map(|paused| paused.error),
    };
    Ok(paused.or_else(|| {
        let is_far = app.account_rates().puts_off(account, &provider, app.monotonic());
        let words = || app.account_rates().words_of(account, &provider, app.monotonic());
        is_far.then(|| words().unwrap_or_else(|| TOO_FAST.to_owned()))
    }))
}

/// Judges, for the recipients of a job, a message that expired while its account was paused.
pub(super) fn expire(
    app: &App,
    message: &Message,
    clock: AttemptClock,
    addressees: &[Addressee],
    error: &str,
) -> PerformedAttempt {
    let refused = AttemptResult::Tried(Outcome::of(OutcomeClass::Auth, Response::of_text(error)));
    let results: Vec<_> = addressees.iter().map(|one| one.clone().ended(refused.clone())).collect();
    let judgment = judge(circumstances(app, message, clock), &results);
    PerformedAttempt::without_peer(judgment, results)
}

/// Judges, for the recipients of a job, a message that expired between two attempts, or before the first.
///
/// A recipient who may have the message already is not reported as failed. For the others the last attempt gives the
/// reason.
pub(super) async fn expire_untried(
    app: &App,
    message: &Message,
    clock: AttemptClock,
    addressees: &[Addressee],
) -> Result<PerformedAttempt, StoreError> {
    let (workspace, kind) = (message.workspace_id, EventKind::Deferred);
    let deferred = app.store().message_events_of_kind(workspace, message.id, kind, MAX_DEFERRALS).await?;
    let last = deferred.iter().rev().find(|event| event.meta.get("response").is_some_and(Value::is_string));
    let lacks_tls = last.is_some_and(|event| event.meta.get("code").is_some_and(|code| code == TLS_REQUIRED));
    let last = last.and_then(|event| event.meta.get("response")?.as_str());
    if last.is_none() && !addressees.iter().any(|one| one.progress.ambiguous) {
        let unsent = Impossible::new("provider_error", "the message expired before it was sent");
        return Ok(fail(app, message, clock, addressees, &unsent));
    }
    // An answer that concerns no recipient: what is known of a recipient counts.
    let response = Response::of_text(last.unwrap_or("the attempt was cut off"));
    let class = if lacks_tls { OutcomeClass::TlsRequired } else { OutcomeClass::Retry(Scope::Account) };
    let outcome = Outcome::of(class, response);
    let results: Vec<_> =
        addressees.iter().map(|one| one.clone().ended(AttemptResult::Tried(outcome.clone()))).collect();
    let judgment = judge(circumstances(app, message, clock), &results);
    Ok(PerformedAttempt::without_peer(judgment, results))
}
