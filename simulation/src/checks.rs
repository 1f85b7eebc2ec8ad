//! Promises that must hold once all work is done. To add one: a function here, called by [`promises`].

mod automations;
mod campaigns;
mod rows;

pub(crate) use rows::rows;

use std::collections::{BTreeMap, BTreeSet};

use messaging_core::domain::audience::import::ImportStatus;
use messaging_core::domain::message::content;
use messaging_core::domain::message::{EventKind, Message, MessageEvent, MessageFilter, MessageStatus};
use messaging_core::ids::{ImportId, MessageId};
use messaging_core::ports::Clock as _;
use messaging_core::ports::store::{PageRequest, StoreError};
use messaging_engine::App;
use messaging_engine::admin::{self, DifferenceReport};
use serde_json::Value;

use crate::clock::BEGINNING;
use crate::fixture::{Fixture, webhook_url};
use crate::requests::Planned;
use crate::world::World;

/// Events of a message that are read, more than any message of a run has.
const MAX_EVENTS: usize = 1000;

/// The shortest time that messages, their contents and their deliveries are kept, in milliseconds.
const WEEKS: i64 = 7 * 86_400_000;

/// Messages read at a time.
const PAGE: usize = 200;

/// Checks everything that can be seen from outside.
pub(crate) async fn promises(world: &World, app: &App) -> Result<(), StoreError> {
    let messages = all_messages(app).await?;
    accepted(world, &messages);
    for message in messages.values() {
        let workspace = Fixture::shared().workspace;
        let events = app.store().message_events(workspace, message.id, MAX_EVENTS).await?;
        let erased = erased_from(world, app, message).await?;
        dates(world, message, &events);
        copies(world, message, &events, &erased);
        outcomes(world, message, &events, &erased);
        webhooks(world, &events);
    }
    idempotence(world);
    suppressions(world);
    campaigns::campaigns(world, app, &messages).await?;
    automations::automations(world, app, &messages).await?;
    compared(world, app).await;
    imports(world, app).await
}

/// Counters and files agree with the rows.
async fn compared(world: &World, app: &App) {
    match admin::verify(app).await {
        Ok(report) => {
            for DifferenceReport { what, stored, counted, .. } in report.differences {
                world.ledger().broken(format!("{what}: stored {stored}, counted {counted}"));
            }
        }
        Err(error) => world.ledger().broken(format!("nothing could be compared: {error}")),
    }
}

async fn all_messages(app: &App) -> Result<BTreeMap<MessageId, Message>, StoreError> {
    let mut found = BTreeMap::new();
    let mut page = PageRequest { after: None, limit: PAGE };
    loop {
        let slice = app.store().messages(Fixture::shared().workspace, &MessageFilter::default(), page).await?;
        found.extend(slice.items.into_iter().map(|message| (message.id, message)));
        match slice.next {
            Some(next) => page.after = Some(next),
            None => return Ok(found),
        }
    }
}

/// Dates are those of the store's clock, whatever the clocks of machines say.
fn dates(world: &World, message: &Message, events: &[MessageEvent]) {
    if !world.plan.jumps.is_empty() {
        return;
    }
    let run = BEGINNING..=world.clock.now();
    let dates = [message.created_at, message.updated_at].into_iter().chain(events.iter().map(|event| event.at));
    for date in dates.filter(|date| !run.contains(date)) {
        world.ledger().broken(format!("{} is dated {date}, which never was", message.id));
    }
}

/// Recipients of a message's request who are not in it any more: they were erased, and nothing names them.
async fn erased_from(world: &World, app: &App, message: &Message) -> Result<BTreeSet<String>, StoreError> {
    if message.is_redacted() {
        // None of the actual recipients is named any more.
        let ledger = world.ledger();
        let got_it = ledger.contents.iter().filter(|content| content.message == message.id);
        return Ok(got_it.map(|content| content.recipient.clone()).collect());
    }
    let number = message.metadata.get("request").and_then(Value::as_u64);
    let Some(planned) = planned_as(world, number) else { return Ok(BTreeSet::new()) };
    let mut erased: BTreeSet<_> = planned.call.recipients.iter().cloned().collect();
    let found = app.store().message_with_content(message.workspace_id, message.id).await?;
    let Some(Ok(request)) = found.and_then(|(_, stored)| stored).map(|stored| content::decode(&stored)) else {
        if !forgets_early(world) {
            world.ledger().broken(format!("{} has lost its content", message.id));
        }
        return Ok(erased);
    };
    let copies = request.input.cc.iter().chain(&request.input.bcc).flatten();
    for named in copies.chain([&message.to]) {
        erased.remove(named);
    }
    if !erased.is_empty() && world.plan.requests.iter().all(|request| request.call.erases.is_none()) {
        world.ledger().broken(format!("{} does not name {erased:?} any more, and nobody was erased", message.id));
    }
    Ok(erased)
}

/// Returns true if resources that are stored for weeks may be removed early: a sweep may have begun before the clock
/// was set back by weeks, and use the earlier date.
fn forgets_early(world: &World) -> bool {
    world.plan.jumps.iter().any(|jump| jump.millis <= -WEEKS)
}

/// The request of a number.
fn planned_as(world: &World, number: Option<u64>) -> Option<&Planned> {
    let is_it = |planned: &&Planned| number.is_some() && planned.call.body["metadata"]["request"].as_u64() == number;
    world.plan.requests.iter().find(is_it)
}

/// Every message whose acceptance was confirmed exists, and each request has no more messages than its callers can
/// explain.
fn accepted(world: &World, messages: &BTreeMap<MessageId, Message>) {
    let mut ledger = world.ledger();
    let mut made: BTreeMap<u64, u32> = BTreeMap::new();
    for message in messages.values() {
        if let Some(number) = message.metadata.get("request").and_then(Value::as_u64) {
            *made.entry(number).or_default() += 1;
        }
    }
    let mut broken = Vec::new();
    for (planned, record) in world.plan.requests.iter().zip(&ledger.requests) {
        for id in &record.messages {
            if !messages.contains_key(id) {
                broken.push(format!("message {id} was accepted and is not there"));
            }
        }
        let Some(number) = planned.call.body["metadata"]["request"].as_u64() else { continue };
        let most = if planned.key.is_some() { 1 } else { record.fresh_successes + record.unknown };
        let found = made.get(&number).copied().unwrap_or_default();
        if found > most {
            broken.push(format!("{found} messages were made of request {number}, which explains {most}"));
        }
    }
    ledger.broken.append(&mut broken);
}

fn recipient_of(event: &MessageEvent) -> Option<&str> {
    event.meta.get("recipient").and_then(Value::as_str)
}

fn is_ambiguous(event: &MessageEvent) -> bool {
    event.meta.get("ambiguous") == Some(&Value::Bool(true))
}

/// No content was sent twice unless the server could not prevent it, and if it may have been, the events say so.
fn copies(world: &World, message: &Message, events: &[MessageEvent], erased: &BTreeSet<String>) {
    let mut ledger = world.ledger();
    let recipients: BTreeSet<_> =
        ledger.contents.iter().filter(|one| one.message == message.id).map(|one| one.recipient.clone()).collect();
    let mut broken = Vec::new();
    for recipient in &recipients {
        let contents: Vec<_> = ledger.contents_to(message.id, recipient).collect();
        if contents.iter().any(|content| content.is_needless) {
            broken.push(format!("{} was sent to {recipient} again after its end was known", message.id));
        }
        let copies = contents.iter().filter(|content| content.is_taken).count();
        let is_marked = events.iter().any(|event| recipient_of(event) == Some(recipient) && is_ambiguous(event));
        if copies > 1 && !is_marked && !erased.contains(recipient) {
            let told: Vec<_> = events.iter().map(|event| (event.kind, &event.meta)).collect();
            broken.push(format!("{recipient} has {copies} copies of {} and no event says so: {told:?}", message.id));
        }
    }
    for event in events.iter().filter(|event| is_ambiguous(event)) {
        // If the recipient was erased, it cannot be checked.
        let Some(recipient) = recipient_of(event) else { continue };
        let is_lost = ledger.contents_to(message.id, recipient).any(|content| content.is_reply_lost);
        if !is_lost && !ledger.had_interruptions() {
            broken.push(format!("{} to {recipient} is called ambiguous, and nothing happened to it", message.id));
        }
    }
    ledger.broken.append(&mut broken);
}

/// Returns true if an event without a recipient concerns all recipients. Others concern an erased one.
fn is_about_all(message: &Message, event: &MessageEvent) -> bool {
    match event.kind {
        EventKind::Cancelled => true,
        EventKind::Suppressed => message.status == MessageStatus::Suppressed,
        _ => false,
    }
}

/// Returns true if an event ends the attempts for a recipient.
const fn is_final(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::Delivered | EventKind::Bounce | EventKind::Failed | EventKind::Suppressed | EventKind::Cancelled
    )
}

/// Every message is settled, every recipient has exactly one end, and it is the one that peers saw.
fn outcomes(world: &World, message: &Message, events: &[MessageEvent], erased: &BTreeSet<String>) {
    let mut ledger = world.ledger();
    if !message.status.is_settled() {
        ledger.broken(format!("{} is still {}", message.id, message.status.as_str()));
    }
    let number = message.metadata.get("request").and_then(Value::as_u64);
    let Some(planned) = planned_as(world, number) else { return };
    let has_erased = planned.call.recipients.iter().any(|recipient| erased.contains(recipient));
    for recipient in &planned.call.recipients {
        if erased.contains(recipient) {
            continue;
        }
        let about = |event: &&MessageEvent| match recipient_of(event) {
            Some(named) => named == recipient,
            None => is_about_all(message, event),
        };
        let mut ends: Vec<_> = events.iter().filter(about).filter(|event| is_final(event.kind)).collect();
        if has_erased && ends.iter().any(|event| recipient_of(event).is_some()) {
            // Events without a recipient concerned the erased one.
            ends.retain(|event| recipient_of(event).is_some());
        }
        let is_marked = events.iter().filter(about).any(is_ambiguous);
        let copies = ledger.contents_to(message.id, recipient).filter(|content| content.is_taken).count();
        let is_to = message.to == *recipient;
        if ledger.returned.contains(&(message.id, recipient.clone())) {
            // The bounce may come before or after the end of the attempts: each is reported once.
            let bounces = ends.iter().filter(|event| event.kind == EventKind::Bounce).count();
            if bounces != 1 || ends.len() > 2 {
                let kinds: Vec<_> = ends.iter().map(|event| event.kind).collect();
                ledger.broken(format!("{} came back from {recipient}, and ended with {kinds:?}", message.id));
            }
            // A message that had ended otherwise, with an unknown copy, keeps its end.
            if is_to && matches!(message.status, MessageStatus::Delivered | MessageStatus::Sent) {
                ledger.broken(format!("{} came back and is {}", message.id, message.status.as_str()));
            }
            continue;
        }
        let [end] = ends[..] else {
            // A message to nobody, because `to` is suppressed, ends with one event for all.
            if !(ends.is_empty() && !is_to && message.status == MessageStatus::Suppressed) {
                let kinds: Vec<_> = ends.iter().map(|event| event.kind).collect();
                ledger.broken(format!("{} has {} ends for {recipient}: {kinds:?}", message.id, ends.len()));
            }
            continue;
        };
        if end.kind == EventKind::Delivered && copies == 0 {
            ledger.broken(format!("{} is called delivered to {recipient}, who has no copy", message.id));
        }
        if end.kind != EventKind::Delivered && copies > 0 && !is_marked {
            ledger.broken(format!("{recipient} has {} which ended with {:?}", message.id, end.kind));
        }
        let expected = match end.kind {
            EventKind::Delivered => MessageStatus::Delivered,
            EventKind::Bounce => MessageStatus::Bounced,
            EventKind::Failed => MessageStatus::Failed,
            EventKind::Suppressed => MessageStatus::Suppressed,
            _ => MessageStatus::Cancelled,
        };
        if is_to && message.status != expected {
            ledger.broken(format!("{} is {} and ended with {:?}", message.id, message.status.as_str(), end.kind));
        }
    }
}

/// Every event reached every webhook.
fn webhooks(world: &World, events: &[MessageEvent]) {
    if forgets_early(world) {
        return;
    }
    let mut ledger = world.ledger();
    for number in 0..Fixture::shared().webhooks.len() {
        let url = webhook_url(number);
        for event in events {
            if !ledger.has_received(&url, event.id) {
                ledger.broken(format!("{url} never heard of {} ({:?} of {})", event.id, event.kind, event.message_id));
            }
        }
    }
}

/// Requests with one key were carried out once.
fn idempotence(world: &World) {
    let mut ledger = world.ledger();
    let twice = world
        .plan
        .requests
        .iter()
        .zip(&ledger.requests)
        .filter(|(planned, record)| planned.key.is_some() && record.fresh_successes > 1);
    let twice: Vec<_> = twice
        .map(|(planned, record)| {
            format!("{} under {:?} was done {} times", planned.call.operation, planned.key, record.fresh_successes)
        })
        .collect();
    ledger.broken.extend(twice);
}

/// Nobody gets a message that was requested after the suppression of its recipient was confirmed.
fn suppressions(world: &World) {
    let mut ledger = world.ledger();
    let mut broken = Vec::new();
    let all = || world.plan.requests.iter().zip(&ledger.requests);
    for (suppression, listed) in all().filter(|(planned, _)| planned.call.operation == "createSuppression") {
        let (Some(since), Some(address)) = (listed.known_at, suppression.call.body["address"].as_str()) else {
            continue;
        };
        for (_, record) in all().filter(|(_, record)| record.first_asked.is_some_and(|asked| asked > since)) {
            for message in &record.messages {
                if ledger.contents_to(*message, address).next().is_some() {
                    broken.push(format!("{message} was sent to {address}, which had been suppressed before"));
                }
            }
        }
    }
    ledger.broken.append(&mut broken);
}

/// Every file that arrived was read to its end, each row once.
async fn imports(world: &World, app: &App) -> Result<(), StoreError> {
    for planned in 0..world.plan.requests.len() {
        let Some((_, rows)) = &world.plan.requests[planned].call.file else { continue };
        let record = world.ledger().requests[planned].clone();
        let Some((_, announced)) = &record.success else { continue };
        let announced: Value = serde_json::from_str(announced).unwrap_or_default();
        let Some(Ok(id)) = announced["import_id"].as_str().map(str::parse::<ImportId>) else { continue };
        let workspace = Fixture::shared().workspace;
        let found = app.store().import(workspace, id).await?;
        let Some(import) = found.map(|stored| stored.record) else {
            world.ledger().broken(format!("import {id} was announced and is not there"));
            continue;
        };
        let status = import.status(app.now());
        let is_read = status == ImportStatus::Completed && import.created == *rows && import.updated == 0;
        // If the clock was changed, the link may have expired, or be valid again.
        let has_end = status == ImportStatus::Expired || !world.plan.jumps.is_empty();
        if !(is_read || (has_end && !record.is_uploaded)) {
            let (created, updated, failed) = (import.created, import.updated, import.failed);
            let told = format!("{created} created, {updated} updated, {failed} failed");
            world.ledger().broken(format!("import {id} of {rows} rows is {status:?}: {told}"));
        }
    }
    Ok(())
}
