//! One attempt at a webhook delivery: preparing, calling, judging, and the writes that follow.
//!
//! Contract sections 15.2 and 15.3.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use http::header::HeaderMap;
use messaging_core::changes::{Condition, Expect, Observation, UpdateDelivery, WebhookWrite, Write};
use messaging_core::domain::audience::contact::erasure::ErasedAddresses;
use messaging_core::domain::message::{Message, MessageEvent};
use messaging_core::domain::security::api_key::expiry;
use messaging_core::domain::security::audit::changes::AuditChange;
use messaging_core::domain::security::audit::{self, Resource};
use messaging_core::domain::security::redaction::{Redactor, may_hold_address};
use messaging_core::domain::security::signature::signed_headers;
use messaging_core::domain::webhook::delivery::{Delivery, DeliveryStatus, Subject};
use messaging_core::domain::webhook::outcome::{self, Answer, Attempt, Consequence};
use messaging_core::domain::webhook::payload::{self, EventPayload};
use messaging_core::domain::webhook::{DISABLE_AFTER, EventType, Webhook, WebhookStatus};
use messaging_core::ports::fetch::{FetchError, FetchRequest, Fetched, Protocol};
use messaging_core::ports::store::{CommitError, StoreError};
use messaging_core::time::Timestamp;
use serde_json::Value;
use tracing::Instrument as _;

use crate::app::App;
use crate::services::auditing::Recorded;
use crate::spans::TARGET;
use crate::work::job::{JobContext, JobError};

/// Time limit for the receiver's answer (contract section 15.3).
const TIME_LIMIT: Duration = Duration::from_secs(15);

/// Bytes of an answer's body that are kept.
const MAX_BODY: usize = 4 << 10;

/// Length of the shortest address that is searched for in an answer: a number has four characters, and is quoted
/// without its plus.
const SHORTEST_ADDRESS: usize = 3;

/// Result of an attempt at a webhook delivery.
#[derive(Debug)]
pub(super) struct Attempted {
    /// The delivery from now on.
    pub(super) delivery: Delivery,
    /// Status and number of attempts of the delivery, as they were read before this one.
    read: (DeliveryStatus, u32),
    /// Status of the webhook that the decision rests on, if nothing was sent.
    decided_on: Option<WebhookStatus>,
    /// Consequence for the webhook; `None` if nothing was sent, and for tests.
    consequence: Option<Consequence>,
    /// True if the receiver accepted the event; `None` if it was not called.
    is_taken: Option<bool>,
    /// Time that the receiver took to answer; zero when it was not called.
    pub(super) took: Duration,
}

/// A request ready to be sent.
struct Prepared {
    body: Bytes,
    /// Recipient addresses of the message and of the event; `None` if the delivery is not about an event of a message.
    addressees: Option<[String; 2]>,
}

/// Makes one attempt at a delivery; `event` is its event with the message, if they were read already. Nothing is
/// written yet; before the request leaves, a claim that is not fresh is confirmed.
pub(super) async fn attempt(
    cx: &JobContext,
    webhook: &Webhook,
    delivery: Delivery,
    event: Option<(MessageEvent, Message)>,
) -> Result<Attempted, JobError> {
    let app = &cx.app;
    let read = (delivery.status, delivery.attempts);
    let unsent = |delivery: Delivery| Attempted::without(read, delivery);
    let Some(prepared) = prepare(app, webhook, &delivery, event).await? else {
        return Ok(unsent(delivery.give_up()));
    };
    let Some(headers) = sign(app, webhook, &delivery, &prepared.body).await else {
        return Ok(unsent(delivery.give_up()));
    };
    let request = FetchRequest {
        protocol: Protocol::Http1,
        method: Method::POST,
        url: webhook.url.clone(),
        headers,
        body: prepared.body.clone(),
        time_limit: TIME_LIMIT,
        body_limit: MAX_BODY,
        redirects: 0,
    };
    if !app.may_send_from(webhook.workspace_id) {
        // The outcome could not be stored, and the receiver would be called again; or another server may have called
        // it.
        return Err(StoreError::Unavailable.into());
    }
    if !cx.is_claim_fresh() {
        cx.hold().await?;
    }
    let began = Instant::now();
    let span = tracing::info_span!(
        target: TARGET,
        "webhook",
        webhook_id = %webhook.id,
        workspace_id = %webhook.workspace_id,
        attempt = delivery.attempts + 1,
        http.response.status_code = tracing::field::Empty
    );
    let fetched = app.fetch().fetch(request).instrument(span.clone()).await;
    span.record("http.response.status_code", fetched.as_ref().ok().map(|fetched| fetched.status.as_u16()));
    let took = began.elapsed();
    let ended_at = app.now();
    let schedule = &app.settings().webhook_retry;
    let answer = answer(fetched, ended_at, &prepared);
    let is_test = delivery.is_test();
    let (delivery, consequence) =
        outcome::judge(delivery, Attempt { answer, ended_at, took, schedule, jitter: jitter(app) });
    let is_taken = Some(consequence == Consequence::Works);
    let consequence = (!is_test).then_some(consequence);
    Ok(Attempted { delivery, read, decided_on: None, consequence, is_taken, took })
}

/// Makes the payload; `None` if the event does not exist any more.
async fn prepare(
    app: &App,
    webhook: &Webhook,
    delivery: &Delivery,
    event: Option<(MessageEvent, Message)>,
) -> Result<Option<Prepared>, StoreError> {
    let (body, addressees) = match &delivery.subject {
        Subject::Event { message_id, at } => {
            let found = match event {
                Some(found) => Some(found),
                None => app.store().event(delivery.workspace_id, *message_id, *at, delivery.event_id).await?,
            };
            let Some((event, message)) = found else { return Ok(None) };
            let recipient = event.meta.get("recipient").and_then(Value::as_str).unwrap_or_default().to_owned();
            let to = message.to.clone();
            let variant = app.variant_name(&message).await?;
            let payload = EventPayload::of(event, message, variant, Redactor::new(webhook.pii));
            let Some(payload) = payload else { return Ok(None) };
            (serde_json::to_vec(&payload), Some([to, recipient]))
        }
        Subject::Record(entry) => {
            let (id, event_type) = (delivery.event_id, delivery.event_type);
            let (timestamp, workspace_id) = (delivery.created_at, delivery.workspace_id);
            let data = Redactor::new(webhook.pii).value(entry.clone().into());
            let body = serde_json::to_vec(&EventPayload { id, event_type, timestamp, workspace_id, data });
            (body, None)
        }
        Subject::Test(None) if delivery.event_type.is_administrative() => {
            let (id, event_type) = (delivery.event_id, delivery.event_type);
            let (timestamp, workspace_id) = (delivery.created_at, delivery.workspace_id);
            let data = if event_type == EventType::KeyExpiring { expiry::sample() } else { audit::sample() };
            let body = serde_json::to_vec(&EventPayload { id, event_type, timestamp, workspace_id, data });
            (body, None)
        }
        Subject::Test(data) => {
            let (id, event_type) = (delivery.event_id, delivery.event_type);
            let (timestamp, workspace_id) = (delivery.created_at, delivery.workspace_id);
            let body = if let Some(data) = data {
                serde_json::to_vec(&EventPayload { id, event_type, timestamp, workspace_id, data })
            } else {
                let data = payload::sample(event_type);
                serde_json::to_vec(&EventPayload { id, event_type, timestamp, workspace_id, data })
            };
            (body, None)
        }
    };
    Ok(Some(Prepared { body: body.expect("maps have texts as keys").into(), addressees }))
}

/// Returns the headers of a request, signed with every live secret; `None` if one of the secrets cannot be read.
async fn sign(app: &App, webhook: &Webhook, delivery: &Delivery, body: &[u8]) -> Option<HeaderMap> {
    let now = app.now();
    let mut keys = Vec::new();
    for sealed in webhook.live_secrets(now) {
        keys.push(app.webhook_key(webhook, sealed).await?);
    }
    let keys = keys.iter().map(AsRef::as_ref);
    signed_headers(keys, &delivery.event_id.to_string(), now.as_seconds(), body)
}

fn answer(fetched: Result<Fetched, FetchError>, now: Timestamp, sent: &Prepared) -> Answer {
    match fetched {
        Ok(fetched) => Answer::Status {
            status: fetched.status,
            body: readable(&fetched.body, sent),
            retry_after: fetched.retry_after(now),
        },
        Err(error) => Answer::Nothing(error.into()),
    }
}

/// Returns the text of an answer to be kept, with the addresses that we sent crossed out. A receiver that repeats them
/// would otherwise keep them here beyond the erasure of their owner.
fn readable(body: &[u8], sent: &Prepared) -> String {
    let text = String::from_utf8_lossy(body).replace('\0', "\u{FFFD}");
    match &sent.addressees {
        Some(addressees) if may_name(&text, addressees) => {
            addresses_in(&sent.body, addressees).out_of_text(&text).unwrap_or(text)
        }
        _ => text,
    }
}

/// Returns false if a text certainly holds none of the addresses of an event, as most answers do; a quick check.
fn may_name(text: &str, addressees: &[String; 2]) -> bool {
    let is_email = |address: &String| address.is_empty() || address.contains('@');
    text.len() >= SHORTEST_ADDRESS && (may_hold_address(text) || !addressees.iter().all(is_email))
}

/// The addresses in a payload: the recipient's, and those that replies, links or the sender's own data name.
fn addresses_in(payload: &[u8], addressees: &[String; 2]) -> ErasedAddresses {
    let text = String::from_utf8_lossy(payload);
    let words = text.split(|c: char| c.is_whitespace() || "<>()[]\"',;:=&?/\\".contains(c));
    let named = words.filter(|word| word.contains('@')).map(|word| word.trim_end_matches('.'));
    let all = named.chain(addressees.iter().map(String::as_str));
    // Very short ones would match by chance.
    ErasedAddresses::new(all.filter(|address| address.len() > SHORTEST_ADDRESS))
}

/// Returns a random deviation of a wait from the schedule, from -100 to 100 thousandths, so that receivers that failed
/// together are not called together.
fn jitter(app: &App) -> i32 {
    i32::try_from(app.random_below(201)).unwrap_or(100) - 100
}

impl Attempted {
    /// The result for a delivery that changes without an attempt.
    pub(super) fn without(read: (DeliveryStatus, u32), delivery: Delivery) -> Self {
        Self { delivery, read, decided_on: None, consequence: None, is_taken: None, took: Duration::ZERO }
    }

    /// The result for a delivery that is held while its webhook is paused.
    pub(super) fn held(delivery: Delivery) -> Self {
        let read = (delivery.status, delivery.attempts);
        Self { decided_on: Some(WebhookStatus::Paused), ..Self::without(read, delivery.hold()) }
    }

    /// Returns the writes of the result: the delivery, and the consequence for the webhook.
    pub(super) async fn writes(&self, app: &App) -> Result<Vec<Write>, StoreError> {
        let (workspace, webhook) = (self.delivery.workspace_id, self.delivery.webhook_id);
        let update = UpdateDelivery { delivery: self.delivery.clone(), read: self.read };
        let mut writes: Vec<_> = self
            .decided_on
            .map(|status| Write::Expect(Condition::Webhook(workspace, webhook, status)))
            .into_iter()
            .collect();
        writes.push(Write::Webhook(WebhookWrite::UpdateDelivery(Box::new(update))));
        if let Some(is_taken) = self.is_taken {
            writes.push(Write::Observe(Box::new(Observation::WebhookCall(is_taken))));
        }
        match self.consequence {
            None => {}
            // Without looking whether there are failures: a DELETE by key costs less than finding out.
            Some(Consequence::Works) => writes.push(Write::Webhook(WebhookWrite::EndFailures(workspace, webhook))),
            Some(Consequence::Fails) => {
                let now = app.now();
                let since = app.store().failing_since(workspace, webhook).await?;
                if since.is_some_and(|since| now.since(since) >= DISABLE_AFTER) {
                    writes.extend(disable(app, &self.delivery).await?);
                } else {
                    writes.push(Write::Webhook(WebhookWrite::NoteFailure(workspace, webhook, now)));
                }
            }
            Some(Consequence::Gone) => writes.extend(disable(app, &self.delivery).await?),
        }
        Ok(writes)
    }

    /// Returns true if the result may be committed with the outcomes of others: not if it relies on the status of its
    /// webhook, which may have changed for many of them.
    pub(super) const fn goes_with_others(&self) -> bool {
        self.decided_on.is_none()
    }

    /// Removes the receiver's answer, which the store refuses for good; `None` if there is none. Returns the write that
    /// records the removal.
    pub(super) fn without_answer(&mut self, app: &App, why: &CommitError) -> Option<Write> {
        self.delivery.response_body.take()?;
        Some(app.quarantine(Some(self.delivery.workspace_id), ("webhook_answer", &self.delivery.id), why, None))
    }

    /// Returns true if the same outcome may be written once more after a conflict: something was sent, which cannot be
    /// taken back, and the delivery has not changed since it was read.
    pub(super) async fn is_current(&self, app: &App) -> Result<bool, StoreError> {
        if self.decided_on.is_some() {
            return Ok(false);
        }
        let found = app.store().delivery(self.delivery.workspace_id, self.delivery.id).await?;
        Ok(found.is_some_and(|found| (found.status, found.attempts) == self.read))
    }
}

/// Returns the writes that disable a webhook and reset its failures.
async fn disable(app: &App, delivery: &Delivery) -> Result<Vec<Write>, StoreError> {
    let (workspace, id) = (delivery.workspace_id, delivery.webhook_id);
    let Some(stored) = app.store().webhook(workspace, id).await? else { return Ok(Vec::new()) };
    if stored.record.status == WebhookStatus::Disabled {
        return Ok(Vec::new());
    }
    let mut webhook = stored.record;
    let before = webhook.status;
    webhook.status = WebhookStatus::Disabled;
    webhook.updated_at = app.now();
    let change = AuditChange {
        pointer: "/status".to_owned(),
        before: before.as_str().into(),
        after: webhook.status.as_str().into(),
    };
    let resource = Resource { kind: "webhook".to_owned(), id: Some(id.to_string()), name: Some(webhook.url.clone()) };
    let recorded = Recorded::by_system("disableWebhook", resource, vec![change]);
    let mut writes = app.record_entry(&[Some(workspace)], &recorded).await?;
    writes.extend([
        Write::Observe(Box::new(Observation::WebhookDisabled(workspace, id))),
        Write::put(Box::new(webhook), Expect::Revision(stored.revision)),
        Write::Webhook(WebhookWrite::EndFailures(workspace, id)),
    ]);
    Ok(writes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_keep_no_address_that_was_sent() {
        let payload = br#"{"to":"ann@example.com","meta":{"response":"550 <carl@example.com>."}}"#;
        let addressees = Some(["ann@example.com".to_owned(), String::new()]);
        let sent = Prepared { body: Bytes::from_static(payload), addressees };
        let body = "got ANN@example.com, ann%40example.com\0, carl@example.com and bob@example.com \u{FC}";
        assert_eq!(readable(body.as_bytes(), &sent), "got ***, ***\u{FFFD}, *** and bob@example.com \u{FC}");
        assert_eq!(readable(b"\xFFok", &sent), "\u{FFFD}ok");
        for spelled in ["ann&#64;example.com", "ann=example.com", "ann\\u0040example.com", "ann\u{FF20}example.com"] {
            assert_eq!(readable(spelled.as_bytes(), &sent), "***", "{spelled}");
        }
        // Recipients that are no email addresses may be any word.
        let addressees = Some(["123456".to_owned(), "token".to_owned()]);
        let sent = Prepared { body: Bytes::from_static(b"{}"), addressees };
        assert_eq!(readable(b"no 123456 and no token", &sent), "no *** and no ***");
    }
}
