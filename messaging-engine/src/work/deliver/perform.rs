//! The second step of an attempt: the transport sends, and its outcomes are judged.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::delivery::attempt::Dialog;
use messaging_core::domain::delivery::consequence::{AccountState, account_state};
use messaging_core::domain::delivery::{Attempt, AttemptResult, Judgment, RecipientResult, judge};
use messaging_core::domain::message::Message;
use messaging_core::ports::Transport;
use messaging_core::ports::transport::{Outcome, OutcomeClass, Outgoing, Response};
use messaging_core::time::Monotonic;
use tracing::Instrument as _;

use crate::app::account_pauses::Account;
use crate::app::{App, Provider};
use crate::spans::TARGET;
use crate::work::deliver::devices::{self};
use crate::work::deliver::prepared::Prepared;
use crate::work::deliver::prepared::RoutedMessage;
use crate::work::deliver::schedule::{AttemptClock, circumstances, held_until};
use crate::work::deliver::site_answers::{SiteAnswer, site_answers};

/// Outcome of an attempt, with the data to store about it.
pub(super) struct PerformedAttempt {
    pub(super) judgment: Judgment,
    pub(super) captured: Option<Bytes>,
    /// Subject that was sent, for the record of a captured message.
    pub(super) subject: Option<String>,
    pub(super) dialogs: Vec<Dialog>,
    /// Name of the provider; `None` without a transport.
    pub(super) provider: Option<String>,
    /// Targets of redirected links that are not stored yet.
    pub(super) urls: Vec<String>,
    /// Recipients who may or may not have the message: the reply to the content was lost.
    pub(super) lost_replies: Vec<String>,
    /// Provider and its id for the message, once for each recipient that it took the message for.
    pub(super) names: Vec<(String, String)>,
    /// New address of the message's recipient.
    pub(super) moved_to: Option<String>,
    /// Time the transport took; `None` without a transport.
    pub(super) took: Option<Duration>,
    /// Answers of mail exchangers, by site.
    pub(super) sites: Vec<SiteAnswer>,
    /// True if the transport lets nothing leave the process, so that the attempt can be taken back.
    pub(super) is_local: bool,
}

impl PerformedAttempt {
    /// Outcome of an attempt without a transport.
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
            sites: Vec::new(),
            is_local: false,
        }
    }
}

/// Returns the recipients who may or may not have the message: the reply to the content was lost.
pub(super) fn lost_replies(results: Vec<RecipientResult>) -> Vec<String> {
    let is_lost = |one: &RecipientResult| matches!(&one.result, AttemptResult::Tried(outcome) if outcome.class() == Some(OutcomeClass::Ambiguous));
    results.into_iter().filter(is_lost).map(|one| one.recipient.address).collect()
}

/// Makes the attempt and judges it.
pub(super) async fn perform(app: &App, message: &Message, clock: AttemptClock, prepared: Prepared) -> PerformedAttempt {
    let Prepared { known, tried, routed, urls, held_for } = prepared;
    let mut results = known;
    let (mut captured, mut subject, mut dialogs, mut names) = (None, None, Vec::new(), Vec::new());
    let (mut carrier, mut moved_to) = (None, None);
    let (mut devices, mut took, mut is_local) = (Vec::new(), None, false);
    if let Some(RoutedMessage { transport, provider, outgoing, devices: addressed, left_alone }) = routed {
        devices = addressed;
        is_local = transport.is_local();
        carrier = Some(provider.clone());
        subject = outgoing.content.subject().map(ToOwned::to_owned);
        let began = app.monotonic();
        let span = tracing::info_span!(
            target: TARGET,
            "attempt",
            message_id = %message.id,
            workspace_id = %message.workspace_id,
            channel = message.channel.as_str(),
            attempt = clock.number,
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
    let held_until = held_until(app, message.channel, clock, held_for);
    let sites = site_answers(app, message, carrier.as_deref(), &results, &dialogs);
    let mut judgment = judge(Attempt { held_until, ..circumstances(app, message, clock) }, &results);
    let mut lost_replies = lost_replies(results);
    if !devices.is_empty() {
        devices::rename(&mut judgment, &mut lost_replies, &devices, &message.to);
    }
    PerformedAttempt {
        judgment,
        captured,
        subject,
        dialogs,
        provider: carrier,
        urls,
        lost_replies,
        names,
        moved_to,
        took,
        sites,
        is_local,
    }
}

/// Returns the provider's ids for the message, with the provider: its receipts are matched by them.
fn names_of(provider: &str, outcomes: &[Outcome]) -> Vec<(String, String)> {
    let accepted = outcomes.iter().filter(|outcome| outcome.is_accepted());
    let said = accepted.filter_map(|outcome| outcome.answer()?.of_provider());
    said.filter_map(|said| Some((said.provider.as_deref().unwrap_or(provider).to_owned(), said.message_id.clone()?)))
        .collect()
}

/// Reports what the answers of an attempt say about the accounts that it used; it concerns all messages over them.
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
