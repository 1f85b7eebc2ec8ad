//! One attempt to deliver one message: prepare, perform, judge.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address::EmailAddress;
use messaging_core::domain::delivery::attempt::Dialog;
use messaging_core::domain::delivery::consequence::{AccountState, account_state};
use messaging_core::domain::delivery::lane::JobClass;
use messaging_core::domain::delivery::retry;
use messaging_core::domain::delivery::{Attempt, AttemptResult, Judgment, MAX_CUT_OFF, RecipientResult, judge};
use messaging_core::domain::mail::sender;
use messaging_core::domain::message::content::RequestContent;
use messaging_core::domain::message::recipients::{Recipient, RecipientKind};
use messaging_core::domain::message::simulator::{self, Simulated, simulate};
use messaging_core::domain::message::{Message, MessageStatus};
use messaging_core::ports::Transport;
use messaging_core::ports::store::StoreError;
use messaging_core::ports::transport::{
    DeliveryOptions, LastLook, Outcome, OutcomeClass, Outgoing, Reservation, Response, Route,
};
use messaging_core::time::{Monotonic, Timestamp};
use tracing::Instrument as _;

use crate::app::account_pauses::{Account, Entry, Probe};
use crate::app::account_rates::{AHEAD, SendSlot};
use crate::app::{App, Provider};
use crate::jobs::deliver_message::Transaction;
use crate::services::message_parts::is_marketing;
use crate::spans::TARGET;
use crate::work::compose::{Composed, compose};
use crate::work::delivery_progress::Addressee;
use crate::work::devices::{self, devices};
use crate::work::job::JobContext;
use crate::work::transaction_log::{Carrier, TransactionLog};
use crate::work::unprepared::{Impossible, Unprepared};

/// A message that was not sent because the store is not healthy is tried again so soon; it is claimed when the
/// store is healthy.
const HELD_FOR: Duration = Duration::from_secs(5);

/// Copies look again after this whether the message is stopped, while its `to` recipient waits for another attempt.
const UNDECIDED_FOR: Duration = Duration::from_mins(1);

/// An attempt before it begins: recipients, and the message with the transport that carries it.
pub(super) struct Prepared {
    /// Recipients whose result is known without a transport: suppressed, simulated or given up.
    known: Vec<RecipientResult>,
    /// Recipients to try, in order.
    tried: Vec<Addressee>,
    /// Who carries it, and what; `None` when nobody is left to try.
    routed: Option<RoutedMessage>,
    urls: Vec<String>,
    /// When those are tried who are held or withheld.
    held_for: Duration,
}

/// What is carried, and by whom.
struct RoutedMessage {
    transport: Arc<dyn Transport>,
    /// The name of the provider; its settings are those of the message.
    provider: String,
    outgoing: Outgoing,
    /// The devices that stand for the recipient, where they are others than its address alone.
    devices: Vec<String>,
    /// Those of them whose account is left alone, which are not tried now.
    left_alone: Vec<(String, Outcome)>,
}

/// Which attempt at a message this is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trial {
    /// Counts from 1.
    pub(super) number: u32,
    /// Since when the time of the message to expire runs.
    pub(super) accepted_at: Timestamp,
    /// How long after that the message expires.
    pub(super) expiry: Duration,
}

/// Outcome of an attempt, with what is to be stored of it.
pub(super) struct Performed {
    pub(super) judgment: Judgment,
    pub(super) captured: Option<Bytes>,
    /// The subject that was sent, for what was captured.
    pub(super) subject: Option<String>,
    pub(super) dialogs: Vec<Dialog>,
    /// Who carried it; `None` without a peer.
    pub(super) provider: Option<String>,
    /// Where redirected links lead, if that is not stored yet.
    pub(super) urls: Vec<String>,
    /// Recipients of whom it is not known whether they have it: the reply to the content was lost.
    pub(super) lost_replies: Vec<String>,
    /// Provider and its name for the message, once for each recipient that it took the message for.
    pub(super) names: Vec<(String, String)>,
    /// The new address of its recipient.
    pub(super) moved_to: Option<String>,
    /// How long the transport took; `None` without one.
    pub(super) took: Option<Duration>,
}

impl Performed {
    /// What came of it without a peer.
    pub(super) fn without_peer(judgment: Judgment, results: Vec<RecipientResult>) -> Self {
        let (dialogs, urls, lost_replies) = (Vec::new(), Vec::new(), lost_replies(results));
        Self {
            judgment,
            captured: None,
            subject: None,
            dialogs,
            provider: None,
            urls,
            lost_replies,
            names: Vec::new(),
            moved_to: None,
            took: None,
        }
    }
}

/// Of whom it is not known whether they have the message: the reply to the content was lost.
fn lost_replies(results: Vec<RecipientResult>) -> Vec<String> {
    let is_lost = |one: &RecipientResult| matches!(&one.result, AttemptResult::Tried(outcome) if outcome.class() == Some(OutcomeClass::Ambiguous));
    results.into_iter().filter(is_lost).map(|one| one.recipient.address).collect()
}

impl Prepared {
    /// Nobody is tried: the same is the matter with all who would be, besides those whose result is known.
    fn without_transport(mut known: Vec<RecipientResult>, tried: Vec<Addressee>, result: &AttemptResult) -> Self {
        known.extend(tried.into_iter().map(|one| one.ended(result.clone())));
        Self { known, tried: Vec::new(), routed: None, urls: Vec::new(), held_for: HELD_FOR }
    }

    /// Whether the message goes to anybody is decided by the job of its `to` recipient: besides those who are
    /// suppressed themselves nobody's end is known before.
    fn undecided(mut known: Vec<RecipientResult>, tried: Vec<Addressee>, look_again: Duration) -> Self {
        let result = AttemptResult::Tried(Outcome::Withheld("its recipient is being decided about".to_owned()));
        for one in
            known.iter_mut().filter(|one| !matches!(one.result, AttemptResult::Suppressed(_) | AttemptResult::GivenUp))
        {
            one.result = result.clone();
        }
        Self { held_for: look_again, ..Self::without_transport(known, tried, &result) }
    }

    /// Whether what becomes of recipients is known as after an attempt, without a transport.
    pub(super) fn is_attempted_here(&self) -> bool {
        let is_attempt =
            |one: &RecipientResult| matches!(one.result, AttemptResult::Tried(_) | AttemptResult::Complained(_));
        self.routed.is_none() && self.known.iter().any(is_attempt)
    }

    /// Enters the accounts that the attempt goes over, where the settings hold several: as the probes of some of them, if
    /// those are due. Recipients whose account is left alone are not tried; if that is everybody, answers for how long.
    pub(super) fn enter_accounts(&mut self, app: &App, channel: Channel) -> Result<Vec<Probe>, (Duration, String)> {
        let Some(routed) = &mut self.routed else { return Ok(Vec::new()) };
        let provider = Provider { name: routed.provider.clone(), settings: Arc::clone(&routed.outgoing.settings) };
        let (mut entries, mut probes) = (Vec::<(Account, Option<(Duration, String)>)>::new(), Vec::new());
        let (mut recipients, mut shortest) = (Vec::new(), None::<(Duration, String)>);
        for address in std::mem::take(&mut routed.outgoing.recipients) {
            let Some(name) = routed.transport.account_of(&provider.settings, &address) else {
                recipients.push(address);
                continue;
            };
            let account = Account { name: Some(name), ..Account::of(routed.outgoing.workspace_id, channel) };
            let known = entries.iter().find(|(known, _)| *known == account).map(|(_, wait)| wait.clone());
            let wait = known.unwrap_or_else(|| {
                let wait = match app.account_pauses().enter(account, &provider, app.monotonic()) {
                    Entry::Go(probe) => {
                        probes.extend(probe);
                        None
                    }
                    Entry::Wait(wait, error) => Some((wait, error)),
                };
                entries.push((account, wait.clone()));
                wait
            });
            match wait {
                None => recipients.push(address),
                Some((wait, error)) => {
                    let outcome = Outcome::of(OutcomeClass::Auth, Response::of_text(&format!("{name}: {error}")));
                    routed.left_alone.push((address, outcome));
                    if shortest.as_ref().is_none_or(|(known, _)| wait < *known) {
                        shortest = Some((wait, error));
                    }
                }
            }
        }
        routed.outgoing.recipients = recipients;
        match shortest {
            Some(shortest) if routed.outgoing.recipients.is_empty() => Err(shortest),
            _ => Ok(probes),
        }
    }

    /// Has the transport ask a log before every transaction, which is made for it and for the targets of links that
    /// are to be stored; `None` when nobody is tried.
    pub(super) fn attend(
        &mut self,
        log: impl FnOnce(Carrier<'_>, Vec<String>) -> Arc<TransactionLog>,
    ) -> Option<Arc<TransactionLog>> {
        let RoutedMessage { transport, provider, outgoing, devices, .. } = self.routed.as_mut()?;
        let provider = Provider { name: provider.clone(), settings: Arc::clone(&outgoing.settings) };
        let carrier = Carrier { transport: transport.as_ref(), provider, devices: devices.clone() };
        let log = log(carrier, std::mem::take(&mut self.urls));
        outgoing.last_look = LastLook::at(Arc::clone(&log) as _);
        Some(log)
    }
}

/// Whether a message may be attempted now.
pub(super) enum AttemptAdmission {
    /// With this place at the transport, perhaps as the probe of an account, and in this slot of its rate.
    Go(Reservation, Option<Probe>, Option<SendSlot>),
    /// Its account is left alone for so long, because of this.
    Paused(Duration, String),
    /// Its account or its recipient takes no more messages before so long.
    TooFast(Duration),
    /// Its time is over, and it is not attempted; with the last words about why it was not attempted before, if something
    /// is in the way.
    Over(Option<String>),
}

/// Waits for the turn of a message with the transport that will carry it. Without one there is nothing to wait
/// for; what that means is found out later.
pub(super) async fn admit(
    cx: &JobContext,
    message: &Message,
    class: JobClass,
    domain: Option<&str>,
) -> Result<AttemptAdmission, StoreError> {
    let app = &cx.app;
    let Some(provider) = app.provider(message.workspace_id, message.channel).await? else {
        return Ok(AttemptAdmission::Go(Reservation::default(), None, None));
    };
    let transport = app.transport(message.channel, &provider.name);
    let has_several = transport.is_some_and(|one| one.account_of(&provider.settings, &message.to).is_some());
    // What is simulated goes over no account; and which of several accounts it goes over is seen when it is attempted.
    let probe = if domain == Some(simulator::DOMAIN) {
        None
    } else if let Some(transport) = transport.filter(|_| has_several) {
        if let Some((wait, error)) = pause_of_all(app, message, &provider, transport.as_ref()).await? {
            return Ok(AttemptAdmission::Paused(wait, error));
        }
        None
    } else {
        let account = Account::of(message.workspace_id, message.channel);
        match app.account_pauses().enter(account, &provider, app.monotonic()) {
            Entry::Go(probe) => probe,
            Entry::Wait(wait, error) => return Ok(AttemptAdmission::Paused(wait, error)),
        }
    };
    let Some(transport) = transport else { return Ok(AttemptAdmission::Go(Reservation::default(), probe, None)) };
    let mut slot = None;
    if domain != Some(simulator::DOMAIN) && !transport.is_local() {
        let name = transport.account_of(&provider.settings, &message.to);
        let account = Account { name, ..Account::of(message.workspace_id, message.channel) };
        match app.account_rates().admit(account, &provider, app.monotonic()) {
            Ok(admitted) => slot = admitted,
            Err(wait) => return Ok(AttemptAdmission::TooFast(wait)),
        }
        cx.wait_for(slot, AHEAD).await;
    }
    let settings = provider.settings;
    let route = Route {
        workspace_id: message.workspace_id,
        class,
        settings,
        domain: domain.map(str::to_owned),
        recipient: (message.channel != Channel::Email).then(|| message.to.clone()),
    };
    let reservation = transport.reserve(&route).await;
    Ok(match reservation.wait() {
        Some(wait) => AttemptAdmission::TooFast(wait),
        None => AttemptAdmission::Go(reservation, probe, slot),
    })
}

/// For how long nothing is attempted over any of the accounts that a message goes over, and why; `None` when something
/// may be over one of them.
pub(super) async fn pause_of_all(
    app: &App,
    message: &Message,
    provider: &Provider,
    transport: &dyn Transport,
) -> Result<Option<(Duration, String)>, StoreError> {
    let wait = |address: &str| {
        let name = transport.account_of(&provider.settings, address);
        let account = Account { name, ..Account::of(message.workspace_id, message.channel) };
        app.account_pauses().wait(account, provider, app.monotonic())
    };
    let Some(own) = wait(&message.to) else { return Ok(None) };
    let contact = match message.contact_id {
        Some(id) => app.store().contact(message.workspace_id, id).await?,
        None => None,
    };
    let Some(contact) = contact else { return Ok(Some(own)) };
    let addresses = devices::addresses(app, message, &contact.record).await?;
    let usable = addresses.iter().filter(|(_, reason)| reason.is_none_or(|reason| !reason.stops_transactional()));
    let waits: Option<Vec<_>> = usable.map(|(address, _)| wait(address)).collect();
    // Where nobody may be sent to, the attempt finds that out.
    Ok(waits.and_then(|waits| waits.into_iter().min_by_key(|(wait, _)| *wait)))
}

/// Finds out who is tried and with what. Reads; changes nothing.
///
/// `everyone` are all recipients of the message, whichever job serves them: a copy that is suppressed is left out of
/// the header, and a message whose `to` is suppressed goes to nobody.
pub(super) async fn prepare(
    app: &App,
    message: &Message,
    request: &RequestContent,
    addressees: Vec<Addressee>,
    everyone: &[Recipient],
    reservation: Reservation,
    trial: Trial,
) -> Result<Prepared, StoreError> {
    let devices = devices(app, message, request).await?;
    let addresses = everyone.iter().map(|recipient| &recipient.address);
    let reasons = app.stopping_reasons(message.workspace_id, message.channel, addresses).await?;
    let reason_of = |address: &str| {
        // One of its devices may be sent to, whatever became of the first.
        if !devices.is_empty() {
            return None;
        }
        let place = everyone.iter().position(|recipient| recipient.address == address);
        place.and_then(|place| reasons.get(place).copied().flatten())
    };
    let mut known = Vec::new();
    let mut tried = Vec::new();
    for addressee in addressees {
        let recipient = &addressee.recipient;
        let simulated = match message.channel {
            Channel::Email => EmailAddress::parse(&recipient.address).ok().and_then(|address| simulate(&address)),
            _ => None,
        };
        let result = match (reason_of(&recipient.address), simulated) {
            (Some(reason), _) => AttemptResult::Suppressed(reason),
            _ if addressee.progress.cut_off >= MAX_CUT_OFF => AttemptResult::GivenUp,
            (None, Some(Simulated { complains: true, outcome: Outcome::Answered(answer) })) => {
                AttemptResult::Complained(answer.response)
            }
            (None, Some(simulated)) => AttemptResult::Tried(simulated.outcome),
            (None, None) => {
                tried.push(addressee);
                continue;
            }
        };
        known.push(addressee.ended(result));
    }
    // A message whose own recipient is suppressed goes to nobody (contract section 4.1).
    let serves_to = known.iter().map(|one| one.recipient.kind).chain(tried.iter().map(|one| one.recipient.kind));
    let to_is_listed = reason_of(&message.to).is_some();
    let is_stopped = if serves_to.into_iter().any(|kind| kind == RecipientKind::To) {
        to_is_listed
    } else {
        match decision_about_to(app, message, to_is_listed).await? {
            AboutTo::GoesOn => false,
            AboutTo::Stopped => true,
            AboutTo::Open { look_again } => return Ok(Prepared::undecided(known, tried, look_again)),
        }
    };
    if is_stopped {
        known.retain(|one| matches!(one.result, AttemptResult::Suppressed(_) | AttemptResult::GivenUp));
        tried.clear();
    }
    if let Some(from) = message.from_email.as_deref().and_then(|from| EmailAddress::parse(from).ok())
        && !sender::may_send(&from, &app.sending_domains(message.workspace_id).await?)
    {
        let result = Impossible::new("sender_domain_not_verified", "the sending domain is no longer verified").result();
        // Simulated recipients need a sender too.
        for one in
            known.iter_mut().filter(|one| !matches!(one.result, AttemptResult::Suppressed(_) | AttemptResult::GivenUp))
        {
            one.result = result.clone();
        }
        return Ok(Prepared::without_transport(known, tried, &result));
    }
    if tried.is_empty() {
        return Ok(Prepared { known, tried, routed: None, urls: Vec::new(), held_for: HELD_FOR });
    }
    let not_configured = |message| Impossible::new("channel_not_configured", message).result();
    let Some(Provider { name, settings }) = app.provider(message.workspace_id, message.channel).await? else {
        let result = not_configured("the channel has no settings any more");
        return Ok(Prepared::without_transport(known, tried, &result));
    };
    let Some(transport) = app.transport(message.channel, &name) else {
        let result = not_configured("no transport of this name is installed");
        return Ok(Prepared::without_transport(known, tried, &result));
    };
    let recipients: Vec<_> = if devices.is_empty() {
        tried.iter().map(|one| one.recipient.address.clone()).collect()
    } else {
        devices.clone()
    };
    let is_listed = |(recipient, reason): (&Recipient, Option<_>)| reason.map(|_| recipient.address.clone());
    let left_out: Vec<_> = everyone.iter().zip(reasons.iter().copied()).filter_map(is_listed).collect();
    let Composed { content, urls } = match compose(app, message, request, &left_out, &recipients).await {
        Ok(composed) => composed,
        Err(Unprepared::Store(error)) => return Err(error),
        Err(Unprepared::Impossible(impossible)) => {
            return Ok(Prepared::without_transport(known, tried, &impossible.result()));
        }
        Err(Unprepared::PutOff(reason)) => {
            let ours = Outcome::provider_failed(Response::of_text(&reason));
            return Ok(Prepared::without_transport(known, tried, &AttemptResult::Tried(ours)));
        }
    };
    let outgoing = Outgoing {
        workspace_id: message.workspace_id,
        message_id: message.id,
        settings,
        recipients,
        content,
        last_look: LastLook::default(),
        reservation,
        options: delivery_options(app, request, trial),
        receipts: (message.channel != Channel::Email).then(|| app.receipt_address(message)),
    };
    let transport = Arc::clone(transport);
    let routed = RoutedMessage { transport, provider: name, outgoing, devices, left_alone: Vec::new() };
    Ok(Prepared { known, tried, routed: Some(routed), urls, held_for: HELD_FOR })
}

/// What is decided about a message's `to` recipient, whom another job serves.
enum AboutTo {
    /// Nothing that concerns copies.
    GoesOn,
    /// It is suppressed, and the message goes to nobody.
    Stopped,
    /// It is suppressed by now, but its job may have looked before that.
    Open { look_again: Duration },
}

/// Whether a message goes to nobody, because its `to` recipient, whom another job serves, is suppressed.
///
/// That job alone decides: when it looked before the address was listed, it tries, and the copies are sent as well;
/// had this one decided from the same list, they would be sent to nobody without anybody being told. And what it
/// did already counts: an address that is listed because this very message bounced there stops no copy.
async fn decision_about_to(app: &App, message: &Message, to_is_listed: bool) -> Result<AboutTo, StoreError> {
    let status = if to_is_listed {
        // Read after the list: what a bounce writes to both is one commit.
        let fresh = app.store().message(message.workspace_id, message.id).await?;
        fresh.map_or(message.status, |fresh| fresh.status)
    } else {
        message.status
    };
    Ok(match status {
        MessageStatus::Suppressed => AboutTo::Stopped,
        MessageStatus::Queued if to_is_listed => AboutTo::Open { look_again: HELD_FOR },
        MessageStatus::Deferred if to_is_listed => AboutTo::Open { look_again: UNDECIDED_FOR },
        _ => AboutTo::GoesOn,
    })
}

/// Makes the attempt and judges it.
pub(super) async fn perform(app: &App, message: &Message, trial: Trial, prepared: Prepared) -> Performed {
    let Prepared { known, tried, routed, urls, held_for } = prepared;
    let mut results = known;
    let (mut captured, mut subject, mut dialogs, mut names) = (None, None, Vec::new(), Vec::new());
    let (mut carrier, mut moved_to) = (None, None);
    let (mut devices, mut took) = (Vec::new(), None);
    if let Some(RoutedMessage { transport, provider, outgoing, devices: addressed, left_alone }) = routed {
        devices = addressed;
        carrier = Some(provider.clone());
        subject = outgoing.content.subject().map(ToOwned::to_owned);
        let began = app.monotonic();
        let span = tracing::info_span!(
            target: TARGET,
            "attempt",
            message_id = %message.id,
            workspace_id = %message.workspace_id,
            channel = message.channel.as_str(),
            attempt = trial.number,
            provider = provider.as_str()
        );
        let sending = transport.send(&outgoing).instrument(span).await;
        took = Some(app.monotonic().since(began));
        match sending {
            Ok(sent) => {
                (captured, dialogs) = (sent.captured, sent.dialogs);
                names = names_of(&provider, &sent.outcomes);
                moved_to = sent.outcomes.iter().find_map(|one| one.answer()?.of_provider()?.moved_to.clone());
                note_accounts(app, provider, transport.as_ref(), &outgoing, &sent.outcomes, (message.channel, began));
                let missing = Outcome::provider_failed(Response::of_text("the transport gave no outcome"));
                let outcomes = sent.outcomes.into_iter().chain(std::iter::repeat(missing));
                if let (false, [addressee]) = (devices.is_empty(), &tried[..]) {
                    let answered = outgoing.recipients.iter().cloned().zip(outcomes);
                    results.extend(devices::results(addressee, answered.chain(left_alone).collect()));
                } else {
                    let ended = tried.into_iter().zip(outcomes);
                    results.extend(ended.map(|(one, outcome)| one.ended(AttemptResult::Tried(outcome))));
                }
            }
            Err(error) => {
                let outcome = Outcome::from(error);
                let all = vec![outcome.clone(); outgoing.recipients.len()];
                note_accounts(app, provider, transport.as_ref(), &outgoing, &all, (message.channel, began));
                let result = AttemptResult::Tried(outcome);
                results.extend(tried.into_iter().map(|one| one.ended(result.clone())));
            }
        }
    }
    let held_until = held_until(app, message.channel, trial, held_for);
    let mut judgment = judge(Attempt { held_until, ..circumstances(app, message, trial) }, &results);
    let mut lost_replies = lost_replies(results);
    if !devices.is_empty() {
        devices::rename(&mut judgment, &mut lost_replies, &devices, &message.to);
    }
    Performed { judgment, captured, subject, dialogs, provider: carrier, urls, lost_replies, names, moved_to, took }
}

/// The provider's names for the message, with the provider: by them its receipts find the message.
fn names_of(provider: &str, outcomes: &[Outcome]) -> Vec<(String, String)> {
    let accepted = outcomes.iter().filter(|outcome| outcome.is_accepted());
    let said = accepted.filter_map(|outcome| outcome.answer()?.of_provider());
    said.filter_map(|said| Some((said.provider.as_deref().unwrap_or(provider).to_owned(), said.message_id.clone()?)))
        .collect()
}

/// What the answers of an attempt said about the accounts that it went over concerns all who use them.
fn note_accounts(
    app: &App,
    provider: String,
    transport: &dyn Transport,
    outgoing: &Outgoing,
    outcomes: &[Outcome],
    (channel, began): (Channel, Monotonic),
) {
    let name_of = |address: &String| transport.account_of(&outgoing.settings, address);
    let names: Vec<_> = outgoing.recipients.iter().map(name_of).collect();
    let provider = Provider { name: provider, settings: Arc::clone(&outgoing.settings) };
    for (at, name) in names.iter().enumerate() {
        if names[..at].contains(name) {
            continue;
        }
        let own: Vec<_> =
            names.iter().zip(outcomes).filter(|(of, _)| *of == name).map(|(_, outcome)| outcome).collect();
        let account = Account { name: *name, ..Account::of(outgoing.workspace_id, channel) };
        app.unreadable_answers().report(account, &provider, own.iter().filter_map(|outcome| outcome.answer()));
        let state = account_state(own);
        if state != AccountState::Unknown {
            app.account_rates().report(account, &provider, &state, (began, app.monotonic()));
            app.account_pauses().report(account, &provider, state, app.monotonic());
        }
    }
}

/// What it means for those whose attempt the end of the process cut off, where the provider may still tell what became of
/// it: its answer is lost.
pub(super) fn cut_off(app: &App, message: &Message, trial: Trial, addressees: &[Addressee]) -> Performed {
    let lost = Outcome::ambiguous(Response::of_text("the server stopped before the provider had answered"));
    let results: Vec<_> = addressees.iter().map(|one| one.clone().ended(AttemptResult::Tried(lost.clone()))).collect();
    let judgment = judge(circumstances(app, message, trial), &results);
    Performed::without_peer(judgment, results)
}

/// What it means for those whom a job serves that nothing can be sent.
pub(super) fn fail(
    app: &App,
    message: &Message,
    trial: Trial,
    addressees: &[Addressee],
    impossible: &Impossible,
) -> Performed {
    let results: Vec<_> = addressees.iter().map(|one| one.clone().ended(impossible.result())).collect();
    let judgment = judge(circumstances(app, message, trial), &results);
    Performed::without_peer(judgment, results)
}

/// Judges what a run that was cut off had put on record already. The others stay open, for an attempt at once.
pub(super) fn conclude(app: &App, message: &Message, trial: Trial, addressees: &[Addressee]) -> Option<Performed> {
    let (mut results, mut open) = (Vec::new(), Vec::new());
    for addressee in addressees {
        match &addressee.progress.transaction {
            Transaction::Ended { outcome } => {
                results.push(addressee.clone().ended(AttemptResult::Tried(outcome.clone())));
            }
            Transaction::Waiting | Transaction::Begun => open.push(addressee.recipient.clone()),
        }
    }
    if results.is_empty() {
        return None;
    }
    let mut judgment = judge(circumstances(app, message, trial), &results);
    if !open.is_empty() {
        judgment.is_withheld |= judgment.open.is_empty();
        judgment.open.append(&mut open);
        judgment.next_attempt_at = Some(app.now());
    }
    Some(Performed::without_peer(judgment, results))
}

pub(super) fn circumstances(app: &App, message: &Message, trial: Trial) -> Attempt {
    let now = app.now();
    Attempt {
        number: trial.number,
        channel: message.channel,
        now,
        next_attempt_at: next_attempt(app, message.channel, trial),
        expires_at: trial.accepted_at + trial.expiry,
        held_until: held_until(app, message.channel, trial, HELD_FOR),
    }
}

/// When those are tried who were not tried now. Off email that is never after the message has expired.
fn held_until(app: &App, channel: Channel, trial: Trial, wait: Duration) -> Timestamp {
    let (now, end) = (app.now(), trial.accepted_at + trial.expiry);
    if channel != Channel::Email && now < end { (now + wait).min(end) } else { now + wait }
}

fn next_attempt(app: &App, channel: Channel, trial: Trial) -> Option<Timestamp> {
    let settings = app.settings();
    let jitter = app.random_below(settings.message_retry_jitter + 1);
    let schedule = match channel {
        Channel::Email => &settings.message_retry[..],
        _ => &retry::OFF_EMAIL,
    };
    retry::next_attempt(schedule, trial.number, jitter, app.now(), trial.accepted_at, trial.expiry)
}

/// How a message is to be delivered off email. A time to live that the request gives counts from when the message was
/// accepted, for the provider too; without one it is the provider's own.
fn delivery_options(app: &App, request: &RequestContent, trial: Trial) -> DeliveryOptions {
    let given = request.input.options.as_ref();
    let ttl = given.and_then(|given| given.ttl).map(|seconds| {
        let end = trial.accepted_at + Duration::from_secs(seconds.into());
        end.since(app.now())
    });
    DeliveryOptions {
        ttl,
        collapse_key: given.and_then(|given| given.collapse_key.clone()).filter(|key| !key.is_empty()),
        silent: given.is_some_and(|given| given.silent == Some(true)),
        is_marketing: is_marketing(request),
    }
}
