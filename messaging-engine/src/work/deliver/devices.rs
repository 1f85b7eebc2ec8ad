//! Devices of a contact: a push message is sent to each of its tokens, and has arrived when one of them has it.
//!
//! Contract sections 6.3 and 16. The message has one recipient, its `to`; in an attempt every token of the contact that
//! is not suppressed stands for it. The best of the answers is the outcome of the message. A token that is found dead
//! bounces for itself, whatever the outcome of the others, and none is tried again once one has the message. The same
//! holds for messages of campaigns and automations: one message for a contact, an attempt for each device.

use std::cmp::Reverse;

use messaging_core::domain::audience::contact::Contact;
use messaging_core::domain::audience::suppression::SuppressionReason;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address::normalize;
use messaging_core::domain::delivery::{AttemptResult, Judgment, RecipientResult};
use messaging_core::domain::message::Message;
use messaging_core::domain::message::content::RequestContent;
use messaging_core::domain::message::recipients::{Recipient, RecipientKind};
use messaging_core::ports::store::StoreError;
use messaging_core::ports::transport::{Outcome, OutcomeClass};

use crate::app::App;
use crate::jobs::deliver_message::RecipientProgress;
use crate::services::message_parts::{is_to_contact, offers_unsubscribe};
use crate::work::deliver::addressee::Addressee;

/// Largest number of devices of a contact that a message is sent to.
const MAX_DEVICES: usize = 100;

/// Address of a message's recipient, with the reason if it is suppressed.
pub(super) type Listed = (String, Option<SuppressionReason>);

/// Returns the addresses for the recipient of a message to a contact, `to` first: for a push message every token of the
/// contact, otherwise `to` alone.
///
/// A campaign sends to no token that another of its recipients has. If the contact does not have `to` any more,
/// although nothing is known against the address, another contact's message came to it by a merge, and is sent to `to`
/// alone.
pub(super) async fn addresses(app: &App, message: &Message, contact: &Contact) -> Result<Vec<Listed>, StoreError> {
    let (workspace, channel) = (message.workspace_id, message.channel);
    let mut all = vec![message.to.clone()];
    if channel == Channel::Push {
        let mut own = app.addresses_of(contact, channel).await?;
        if let Some(campaign) = message.campaign_id
            && own.len() > 1
        {
            own = app.store().addresses_left_in(workspace, campaign, channel, contact.id, own).await?;
        }
        for token in own.into_iter().take(MAX_DEVICES) {
            if !all.contains(&token) {
                all.push(token);
            }
        }
    }
    let spelled: Vec<_> = all.iter().map(|address| normalize(channel, address)).collect();
    let listed = app.store().suppressed(workspace, channel, &spelled).await?;
    let reason = |spelled: &String| {
        listed.iter().find(|stored| stored.record.address == *spelled).map(|stored| stored.record.reason)
    };
    let reasons: Vec<_> = spelled.iter().map(reason).collect();
    let is_named = app.addresses_of(contact, channel).await?.contains(&message.to);
    if message.campaign_id.is_some() && !is_named && reasons.first() == Some(&None) {
        all.truncate(1);
    }
    Ok(all.into_iter().zip(reasons).collect())
}

/// Returns the tokens for the recipient of a message, none of them suppressed; empty if that is `to` alone.
///
/// A message whose request names an address is sent to that.
pub(super) async fn devices(app: &App, message: &Message, request: &RequestContent) -> Result<Vec<String>, StoreError> {
    let Some(contact) = message.contact_id.filter(|_| message.channel == Channel::Push) else { return Ok(Vec::new()) };
    let is_to_address = request.input.to.is_some() && !is_to_contact(message);
    if message.is_redacted() || is_to_address {
        return Ok(Vec::new());
    }
    let Some(stored) = app.store().contact(message.workspace_id, contact).await? else { return Ok(Vec::new()) };
    let is_marketing = offers_unsubscribe(request);
    let stops = |reason: SuppressionReason| is_marketing || reason.stops_transactional();
    let all = addresses(app, message, &stored.record).await?;
    let usable = all.into_iter().filter(|(_, reason)| !reason.is_some_and(stops)).map(|(token, _)| token);
    let usable: Vec<_> = usable.collect();
    Ok(if usable == [message.to.as_str()] { Vec::new() } else { usable })
}

/// Rank of an answer as the outcome of the message: the smallest is the best.
fn rank(outcome: &Outcome) -> u8 {
    match (outcome, outcome.class()) {
        (_, Some(OutcomeClass::Accepted(_))) => 0,
        (_, Some(class)) if class.is_retried() => 1,
        (Outcome::Held | Outcome::Withheld(_), _) => 2,
        (_, Some(OutcomeClass::Soft(_))) => 3,
        (_, Some(OutcomeClass::Content(_))) => 4,
        (_, Some(_)) => 5,
        (_, None) => 6,
    }
}

/// Returns the results for a recipient with these devices: the best of their answers, and what the others say about the
/// devices themselves.
pub(super) fn results(addressee: &Addressee, outcomes: Vec<(String, Outcome)>) -> Vec<RecipientResult> {
    // Of equal answers the first counts.
    let best = outcomes.iter().enumerate().max_by_key(|(at, (_, outcome))| Reverse((rank(outcome), *at)));
    let Some(best) = best.map(|(at, _)| at) else { return Vec::new() };
    let judged = outcomes.into_iter().enumerate().filter_map(|(at, (address, outcome))| {
        let kind = if at == best {
            RecipientKind::To
        } else if matches!(outcome.class(), Some(OutcomeClass::Address(_) | OutcomeClass::Soft(_))) {
            RecipientKind::Device
        } else {
            return None;
        };
        let recipient = Recipient { kind, address, was_deferred: addressee.recipient.was_deferred };
        let RecipientProgress { ambiguous, lost, .. } = addressee.progress;
        Some(RecipientResult { recipient, result: AttemptResult::Tried(outcome), ambiguous, lost })
    });
    judged.collect()
}

/// Puts the recipient in place of the device in the part of a judgment that is tried again.
pub(super) fn rename(judgment: &mut Judgment, lost_replies: &mut [String], devices: &[String], to: &str) {
    for open in judgment.open.iter_mut().filter(|open| open.kind == RecipientKind::To) {
        to.clone_into(&mut open.address);
    }
    for address in lost_replies.iter_mut().filter(|address| devices.contains(address)) {
        to.clone_into(address);
    }
}

#[cfg(test)]
mod tests {
    use messaging_core::ports::transport::{Acceptance, AddressFault, ContentFault, Response, Scope, SoftCause};

    use super::*;

    #[test]
    fn the_best_answer_counts_and_dead_devices_speak_for_themselves() {
        const DELIVERED: OutcomeClass = OutcomeClass::Accepted(Acceptance::Delivered);
        const DEAD: OutcomeClass = OutcomeClass::Address(AddressFault::Recipient);
        const CONTENT: OutcomeClass = OutcomeClass::Content(ContentFault::Provider);
        const RETRY: OutcomeClass = OutcomeClass::Retry(Scope::Account);
        const SOFT: OutcomeClass = OutcomeClass::Soft(SoftCause::Policy);
        let shown = |classes: &[OutcomeClass]| {
            let recipient = Recipient::new(RecipientKind::To, "0".to_owned());
            let addressee = Addressee { progress: RecipientProgress::new(&recipient), recipient };
            let outcome =
                |(at, class): (usize, &OutcomeClass)| (at.to_string(), Outcome::of(*class, Response::default()));
            let results = results(&addressee, classes.iter().enumerate().map(outcome).collect());
            let one = |result: &RecipientResult| {
                let mark = if result.recipient.kind == RecipientKind::To { "to" } else { "device" };
                format!("{mark} {}", result.recipient.address)
            };
            results.iter().map(one).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(shown(&[DEAD, DELIVERED, DEAD]), "device 0, to 1, device 2");
        assert_eq!(shown(&[RETRY, DELIVERED, DELIVERED, SOFT]), "to 1, device 3");
        assert_eq!(shown(&[DEAD, RETRY, CONTENT]), "device 0, to 1");
        assert_eq!(shown(&[DEAD, DEAD]), "to 0, device 1");
        assert_eq!(shown(&[DEAD, CONTENT]), "device 0, to 1");
        assert_eq!(shown(&[]), "");
    }
}
