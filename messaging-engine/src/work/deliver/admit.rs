//! Waiting for the turn of a message: its account, its rate, and a place at the transport.

use std::time::Duration;

use messaging_core::domain::channel::Channel;
use messaging_core::domain::delivery::lane::JobClass;
use messaging_core::domain::message::Message;
use messaging_core::domain::message::hold::HoldReason;
use messaging_core::domain::message::simulator::{self};
use messaging_core::ports::Transport;
use messaging_core::ports::paths::{PathTerms, PathWait};
use messaging_core::ports::store::StoreError;
use messaging_core::ports::transport::{Reservation, Route};

use crate::app::account_pauses::{Account, Entry, Probe};
use crate::app::account_rates::{AHEAD, SendSlot};
use crate::app::{App, Provider};
use crate::work::deliver::devices::{self};
use crate::work::job::JobContext;

/// Answer to a message that asks to be attempted now.
pub(super) enum AttemptAdmission {
    /// With this place at the transport, perhaps as the probe of an account, and in this slot of its rate.
    Go(Reservation, Option<Probe>, Option<SendSlot>),
    /// Its account is left alone for so long, because of this.
    Paused(Duration, String),
    /// Its account or its recipient takes no more messages before so long.
    TooFast(Duration),
    /// No path is open to it: it is held.
    Held(HoldReason, PathWait),
    /// The message has expired, and is not attempted; with the reason why it was not attempted before, if something is
    /// in the way.
    Over(Option<String>),
}

/// Waits for the turn of a message with the transport that will carry it. Without one there is nothing to wait
/// for; what that means is found out later.
pub(super) async fn admit(
    cx: &JobContext,
    message: &Message,
    class: JobClass,
    domain: Option<&str>,
    terms: PathTerms,
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
        terms,
    };
    let reservation = transport.reserve(&route).await;
    let hold = reservation.hold().and_then(|hold| Some((hold.reason?, hold.clone())));
    Ok(match (hold, reservation.wait()) {
        (Some((reason, hold)), _) => AttemptAdmission::Held(reason, hold),
        (None, Some(wait)) => AttemptAdmission::TooFast(wait),
        (None, None) => AttemptAdmission::Go(reservation, probe, slot),
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
