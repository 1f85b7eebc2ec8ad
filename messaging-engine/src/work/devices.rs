//! The devices of a contact: a push message goes to each of its tokens, and has arrived when one of them has it.
//!
//! Contract sections 6.3 and 16. The message has one recipient, its `to`; in an attempt every token of the contact that
//! is not suppressed stands for it. The best of the answers is what becomes of the message. A token that is found dead
//! bounces for itself, whatever becomes of the others, and none is tried again once one has the message.

use std::cmp::Reverse;

use messaging_core::domain::channel::Channel;
use messaging_core::domain::content::RequestContent;
use messaging_core::domain::delivery::{Judgment, RecipientResult, Result as Fate};
use messaging_core::domain::message::Message;
use messaging_core::domain::recipients::{Recipient, RecipientKind};
use messaging_core::ports::store::StoreError;
use messaging_core::ports::transport::{Outcome, OutcomeClass};

use crate::app::App;
use crate::work::delivery_progress::Addressee;

/// The most devices of a contact that a message goes to.
const MAX_DEVICES: usize = 100;

/// The tokens that stand for the recipient of a message, none of them suppressed; none where that is `to` alone.
///
/// A message that names an address goes to that. One of a campaign goes to the token that it was addressed to: others
/// may be those of another contact, who gets a message of its own.
pub(super) async fn devices(app: &App, message: &Message, request: &RequestContent) -> Result<Vec<String>, StoreError> {
    let Some(contact) = message.contact_id.filter(|_| message.channel == Channel::Push) else { return Ok(Vec::new()) };
    let is_to_address = request.input.to.is_some() && message.automation_id.is_none();
    if message.campaign_id.is_some() || message.is_redacted() || is_to_address {
        return Ok(Vec::new());
    }
    let Some(stored) = app.store().contact(message.workspace_id, contact).await? else { return Ok(Vec::new()) };
    let mut tokens = vec![message.to.clone()];
    for token in stored.record.addresses(Channel::Push).into_iter().take(MAX_DEVICES) {
        if !tokens.contains(&token) {
            tokens.push(token);
        }
    }
    if tokens.len() == 1 {
        return Ok(Vec::new());
    }
    let reasons = app.stopping_reasons(message.workspace_id, message.channel, tokens.iter()).await?;
    let usable = tokens.into_iter().zip(reasons).filter_map(|(token, reason)| reason.is_none().then_some(token));
    let usable: Vec<_> = usable.collect();
    Ok(if usable == [message.to.as_str()] { Vec::new() } else { usable })
}

/// How much an answer says for the message: the smallest is the best.
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

/// What became of the recipient, for whom these devices stood: the best of their answers, and what the others say about
/// themselves.
pub(super) fn results(addressee: &Addressee, outcomes: Vec<(String, Outcome)>) -> Vec<RecipientResult> {
    // Of equal ones the first counts.
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
        Some(RecipientResult { recipient, result: Fate::Tried(outcome), ambiguous: addressee.progress.ambiguous })
    });
    judged.collect()
}

/// Who is tried again is the recipient, and not the device that stood for it.
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
    use crate::jobs::deliver_message::RecipientProgress;

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
