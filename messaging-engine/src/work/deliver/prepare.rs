//! First step of an attempt: chooses the recipients to try, the content and the transport. Reads; changes nothing.

use std::sync::Arc;
use std::time::Duration;

use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address::EmailAddress;
use messaging_core::domain::delivery::{AttemptResult, MAX_CUT_OFF};
use messaging_core::domain::mail::sender;
use messaging_core::domain::mail::sending_domain::responsible;
use messaging_core::domain::message::content::RequestContent;
use messaging_core::domain::message::recipients::{Recipient, RecipientKind};
use messaging_core::domain::message::simulator::{Simulated, simulate};
use messaging_core::domain::message::{Message, MessageStatus};
use messaging_core::ports::store::StoreError;
use messaging_core::ports::transport::{DeliveryOptions, LastLook, Outcome, Outgoing, Reservation, Response};

use crate::app::{App, Provider};
use crate::services::message_parts::is_marketing;
use crate::work::deliver::addressee::Addressee;
use crate::work::deliver::compose::{Composed, compose};
use crate::work::deliver::devices::devices;
use crate::work::deliver::prepared::{Prepared, RoutedMessage};
use crate::work::deliver::schedule::{AttemptClock, HELD_FOR};
use crate::work::deliver::unprepared::{Impossible, Unprepared};

/// Interval at which copies check whether the message is stopped, while its `to` recipient waits for another attempt.
const UNDECIDED_FOR: Duration = Duration::from_mins(1);

/// Prepares an attempt. Reads; changes nothing.
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
    clock: AttemptClock,
) -> Result<Prepared, StoreError> {
    let devices = devices(app, message, request).await?;
    let addresses = everyone.iter().map(|recipient| &recipient.address);
    let reasons = app.stopping_reasons(message.workspace_id, message.channel, addresses).await?;
    let reason_of = |address: &str| {
        // Another of the recipient's devices may be sent to, even if the first is suppressed.
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
    // A message whose own recipient is suppressed is not sent at all (contract section 4.1).
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
    let (mut may_send, mut require_tls) = (true, false);
    if let Some(from) = message.from_email.as_deref().and_then(|from| EmailAddress::parse(from).ok()) {
        let domains = app.sending_domains(message.workspace_id).await?;
        require_tls = responsible(&domains, &from.ascii_domain()).is_some_and(|domain| domain.require_tls);
        may_send = sender::may_send(&from, &domains);
    }
    if !may_send {
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
        options: delivery_options(app, request, clock, require_tls),
        receipts: (message.channel != Channel::Email).then(|| app.receipt_address(message)),
    };
    let transport = Arc::clone(transport);
    let routed = RoutedMessage { transport, provider: name, outgoing, devices, left_alone: Vec::new() };
    Ok(Prepared { known, tried, routed: Some(routed), urls, held_for: HELD_FOR })
}

/// Decision about a message's `to` recipient, whom another job serves.
enum AboutTo {
    /// No decision that concerns copies.
    GoesOn,
    /// The recipient is suppressed, and the message is not sent at all.
    Stopped,
    /// The recipient is suppressed by now, but its job may have looked before that.
    Open { look_again: Duration },
}

/// Decides whether copies are stopped because the message's `to` recipient, whom another job serves, is suppressed.
///
/// That job alone decides: if it looked before the address was listed, it tries, and the copies are sent as well; if
/// this job decided from the same list, they would be sent to nobody without any report. An outcome of that job counts
/// too: an address that is listed because this very message bounced there stops no copy.
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

/// Returns the delivery options of a message. On channels other than email, a time to live that the request gives
/// counts from acceptance, for the provider too; without one it is the provider's own.
fn delivery_options(app: &App, request: &RequestContent, clock: AttemptClock, require_tls: bool) -> DeliveryOptions {
    let given = request.input.options.as_ref();
    let ttl = given.and_then(|given| given.ttl).map(|seconds| {
        let end = clock.accepted_at + Duration::from_secs(seconds.into());
        end.since(app.now())
    });
    DeliveryOptions {
        ttl,
        collapse_key: given.and_then(|given| given.collapse_key.clone()).filter(|key| !key.is_empty()),
        silent: given.is_some_and(|given| given.silent == Some(true)),
        is_marketing: is_marketing(request),
        require_tls,
    }
}
