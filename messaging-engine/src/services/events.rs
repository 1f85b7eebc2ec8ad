//! Events of messages, and where they are reported: the message's own list, the log of the workspace, webhooks.
//!
//! Everything that appends events calls [`App::append_events`], so that no event can miss its webhooks: their
//! deliveries are committed together with it.

use messaging_core::changes::{
    Condition, EventSubject, JobWrite, LogEvent, MessageObservation, Observation, WebhookWrite, Write,
};
use messaging_core::domain::message::{EventKind, Message, MessageEvent};
use messaging_core::domain::webhook::delivery::{Delivery, Subject};
use messaging_core::domain::webhook::{EventType, Webhook, WebhookStatus};
use messaging_core::ports::store::StoreError;
use serde_json::{Map, Value};

use crate::app::App;
use crate::jobs::JobData as _;
use crate::jobs::deliver_webhook::DeliverWebhook;
use crate::jobs::drain_webhook::DrainWebhook;

impl App {
    /// Returns the writes that append events to a message at the current time, and report them to the log and the
    /// metrics.
    pub(crate) async fn append_events(
        &self,
        subject: EventSubject<'_>,
        events: impl IntoIterator<Item = (EventKind, Map<String, Value>)>,
    ) -> Result<Vec<Write>, StoreError> {
        let events: Vec<_> = events.into_iter().collect();
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let EventSubject { workspace_id: workspace, message_id: message, .. } = subject;
        let now = self.now();
        let observed = MessageObservation::all(subject, &events);
        let listeners = self.listeners(workspace).await?;
        // Events of other workspaces have no recipient and no reader.
        let is_logged = !listeners.webhooks.is_empty() || listeners.followed_until.is_some_and(|until| now < until);
        let mut writes: Vec<_> = observed.into_iter().map(observe).collect();
        for (kind, meta) in events {
            let event = MessageEvent {
                id: self.new_id(now),
                workspace_id: workspace,
                message_id: message,
                kind,
                at: now,
                meta,
            };
            for webhook in &listeners.webhooks {
                writes.extend(self.tell(webhook, &event));
            }
            if is_logged {
                let (event_id, at) = (event.id, event.at);
                writes.push(Write::LogEvent(LogEvent { workspace_id: workspace, message_id: message, at, event_id }));
            }
            writes.push(Write::AppendEvent(Box::new(event)));
        }
        Ok(writes)
    }

    /// Returns the writes that append an event to a message at the current time without deliveries to webhooks and
    /// without the event log: only for changes that a copy makes to messages that belong to another server as well.
    pub(crate) fn append_untold_event(&self, message: &Message, kind: EventKind) -> [Write; 2] {
        let (now, meta) = (self.now(), Map::new());
        let observed = observe(MessageObservation::new(message.into(), kind, &meta));
        let (id, workspace_id, message_id) = (self.new_id(now), message.workspace_id, message.id);
        let event = MessageEvent { id, workspace_id, message_id, kind, at: now, meta };
        [observed, Write::AppendEvent(Box::new(event))]
    }

    /// Returns the writes that deliver an event to a webhook, if it receives events of that type.
    fn tell(&self, webhook: &Webhook, event: &MessageEvent) -> Vec<Write> {
        let Some(event_type) = EventType::of(event.kind).filter(|event_type| webhook.wants(*event_type)) else {
            return Vec::new();
        };
        let subject = Subject::Event { message_id: event.message_id, at: event.at };
        let receiver = (webhook.workspace_id, webhook.id);
        let delivery = Delivery::new(self.new_id(event.at), receiver, (event.id, event_type), subject, event.at);
        self.start_delivery(webhook.status, delivery)
    }

    /// Returns the write that starts sending a backlog, unless a job does so already. The caller stores the webhook.
    pub(crate) fn start_draining(&self, webhook: &mut Webhook) -> Option<Write> {
        if std::mem::replace(&mut webhook.draining, true) {
            return None;
        }
        let now = self.now();
        Some(Write::Job(JobWrite::Enqueue(DrainWebhook::of(webhook).enqueue(self.new_id(now), now))))
    }

    /// Returns the writes that store a delivery, with the job that makes it; held while its webhook is paused.
    pub(crate) fn start_delivery(&self, status: WebhookStatus, delivery: Delivery) -> Vec<Write> {
        // A test is attempted whatever the state of its webhook.
        if status == WebhookStatus::Paused && !delivery.is_test() {
            let expected = Write::Expect(Condition::Webhook(delivery.workspace_id, delivery.webhook_id, status));
            return vec![expected, Write::Webhook(WebhookWrite::InsertDelivery(Box::new(delivery.hold())))];
        }
        let now = delivery.created_at;
        let job = DeliverWebhook::of(&delivery).job(self.new_id(now), now);
        vec![Write::Webhook(WebhookWrite::InsertDelivery(Box::new(delivery))), Write::Job(JobWrite::Enqueue(job))]
    }
}

fn observe(observed: MessageObservation) -> Write {
    Write::Observe(Box::new(Observation::Message(observed)))
}
