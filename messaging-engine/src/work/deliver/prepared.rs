//! A prepared attempt: known results, recipients to try, and the message for the transport.

use std::sync::Arc;
use std::time::Duration;

use messaging_core::domain::channel::Channel;
use messaging_core::domain::delivery::{AttemptResult, RecipientResult};
use messaging_core::ports::Transport;
use messaging_core::ports::transport::{LastLook, Outcome, OutcomeClass, Outgoing, Response};

use crate::app::account_pauses::{Account, Entry, Probe};
use crate::app::{App, Provider};
use crate::work::deliver::addressee::Addressee;
use crate::work::deliver::schedule::HELD_FOR;
use crate::work::deliver::transaction_log::{Carrier, TransactionLog};

/// An attempt before it begins: recipients, and the message with the transport that carries it.
pub(super) struct Prepared {
    /// Recipients whose result is known without a transport: suppressed, simulated or given up.
    pub(super) known: Vec<RecipientResult>,
    /// Recipients to try, in order.
    pub(super) tried: Vec<Addressee>,
    /// The message with its transport; `None` when nobody is left to try.
    pub(super) routed: Option<RoutedMessage>,
    pub(super) urls: Vec<String>,
    /// Time until recipients who are held or withheld are tried again.
    pub(super) held_for: Duration,
}

/// The message as the transport gets it, with the transport that carries it.
pub(super) struct RoutedMessage {
    pub(super) transport: Arc<dyn Transport>,
    /// Name of the provider; its settings are in the message.
    pub(super) provider: String,
    pub(super) outgoing: Outgoing,
    /// Devices of the recipient, if they are others than its address alone.
    pub(super) devices: Vec<String>,
    /// Devices whose account is paused; they are not tried now.
    pub(super) left_alone: Vec<(String, Outcome)>,
}

impl Prepared {
    /// An attempt that tries nobody: all recipients who would be tried get the same result.
    pub(super) fn without_transport(
        mut known: Vec<RecipientResult>,
        tried: Vec<Addressee>,
        result: &AttemptResult,
    ) -> Self {
        known.extend(tried.into_iter().map(|one| one.ended(result.clone())));
        Self { known, tried: Vec::new(), routed: None, urls: Vec::new(), held_for: HELD_FOR }
    }

    /// An attempt that tries nobody, because the job of the `to` recipient decides whether the message is sent at all:
    /// until then only recipients who are suppressed themselves have a final result.
    pub(super) fn undecided(mut known: Vec<RecipientResult>, tried: Vec<Addressee>, look_again: Duration) -> Self {
        let result = AttemptResult::Tried(Outcome::Withheld("its recipient is being decided about".to_owned()));
        for one in
            known.iter_mut().filter(|one| !matches!(one.result, AttemptResult::Suppressed(_) | AttemptResult::GivenUp))
        {
            one.result = result.clone();
        }
        Self { held_for: look_again, ..Self::without_transport(known, tried, &result) }
    }

    /// Returns true if results of recipients are known as after an attempt, without a transport.
    pub(super) fn is_attempted_here(&self) -> bool {
        let is_attempt =
            |one: &RecipientResult| matches!(one.result, AttemptResult::Tried(_) | AttemptResult::Complained(_));
        self.routed.is_none() && self.known.iter().any(is_attempt)
    }

    /// Enters the accounts that the attempt uses, if the settings hold several; returns the probes that it takes.
    /// Recipients whose account is paused are not tried; if all are, the error says for how long.
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

    /// Makes a log for the transport to consult before every transaction, with the targets of links that are to be
    /// stored; `None` when nobody is tried.
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
