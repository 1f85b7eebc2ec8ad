//! How long a message is tried, and what becomes of it when its time is over.
//!
//! Contract section 4.2. Off email a message ends at that moment: nothing that a run of its job meets puts it off for
//! longer, and what ends within a day has a lane that is claimed whatever becomes of its account
//! ([`DeliverMessage::with_ttl`]).

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

/// More than a message is put off before it expires.
const MAX_DEFERRALS: usize = 1000;

/// A message whose account is left alone looks so often whether that is over: new settings end it at once.
const PAUSED_FOR: Duration = Duration::from_mins(1);

/// How often a message looks at most, while its time passes, whether its account is still left alone.
const LOOKS_WHILE_PAUSED: u32 = 10;

impl DeliverMessage {
    /// Since when the time of the message to expire runs.
    pub(super) fn accepted_at(&self, message: &Message) -> Timestamp {
        self.released_at.unwrap_or(message.created_at)
    }

    /// How long after that it expires.
    pub(super) fn expiry(&self, app: &App, message: &Message) -> Duration {
        let email = app.settings().message_expiry;
        if message.channel == Channel::Email {
            return email;
        }
        let asked = self.ttl.map_or(Duration::MAX, |seconds| Duration::from_secs(seconds.into()));
        asked.min(retry::OFF_EMAIL_EXPIRY).min(email)
    }

    /// Whether a message that has expired is not attempted any more, as far as is known before it is read. Email is;
    /// what has no time at all has its one attempt.
    pub(super) fn is_over(&self, message: &Message, expiry: Duration) -> bool {
        message.channel != Channel::Email && (self.attempt > 1 || !expiry.is_zero())
    }

    /// How long a message is put off that is to wait for so long: not beyond its end.
    pub(super) fn wait(&self, app: &App, message: &Message, wait: Duration) -> Duration {
        let end = self.accepted_at(message) + self.expiry(app, message);
        wait.min(PAUSED_FOR).min(end.since(app.now()))
    }

    /// The same while its account is left alone, which new settings end: what has little time looks more often.
    pub(super) fn pause(&self, app: &App, message: &Message, wait: Duration) -> Duration {
        let often = (self.expiry(app, message) / LOOKS_WHILE_PAUSED).max(Duration::from_secs(1));
        self.wait(app, message, wait.min(often))
    }
}

/// The last words about why a message whose time is over was not attempted: those of an account that is left alone, or
/// that its turn was too far away. Takes no turn and makes no probe of it.
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

/// What it means for those whom a job serves that the message expired while its account was left alone.
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

/// What it means for those whom a job serves that the message has expired between two attempts, or before the first.
///
/// Whoever may have it already is not told off. Of the others the last attempt tells what was the matter.
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
    // An answer that is about nobody: what is known of a recipient counts.
    let response = Response::of_text(last.unwrap_or("the attempt was cut off"));
    let class = if lacks_tls { OutcomeClass::TlsRequired } else { OutcomeClass::Retry(Scope::Account) };
    let outcome = Outcome::of(class, response);
    let results: Vec<_> =
        addressees.iter().map(|one| one.clone().ended(AttemptResult::Tried(outcome.clone()))).collect();
    let judgment = judge(circumstances(app, message, clock), &results);
    Ok(PerformedAttempt::without_peer(judgment, results))
}
