//! Webhook deliveries of a workspace that were claimed together: their data is read at once.
//!
//! The data is used as long as the claim is fresh. A delivery whose turn comes later reads for itself, as does each one
//! if reading together failed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use messaging_core::domain::message::{Message, MessageEvent};
use messaging_core::domain::webhook::delivery::{Delivery, Subject};
use messaging_core::error::Chain;
use messaging_core::ids::{DeliveryId, EventId, WorkspaceId};
use messaging_core::ports::store::{ClaimedJob, StoreError};
use tokio::sync::OnceCell;

use crate::app::App;
use crate::jobs::JobData as _;
use crate::jobs::deliver_webhook::DeliverWebhook;

/// Largest number of deliveries in a batch: the first ones wait until all are read.
const LARGEST: usize = 128;

/// Deliveries that were claimed together.
#[derive(Debug)]
pub(super) struct DeliveryBatch {
    workspace: WorkspaceId,
    deliveries: Vec<DeliveryId>,
    /// Deliveries that were not taken yet, read for the first that asks; empty if reading failed.
    read: OnceCell<Mutex<HashMap<DeliveryId, ReadAhead>>>,
}

/// A delivery as it was read, and its event with the message, unless they have to be looked up.
pub(super) type ReadAhead = (Delivery, Option<(MessageEvent, Message)>);

impl DeliveryBatch {
    /// Returns the batch of each job; `None` for one that is alone, and for jobs of other kinds.
    pub(super) fn of(claimed: &[ClaimedJob]) -> Vec<Option<Arc<Self>>> {
        let mut batches: Vec<Self> = Vec::new();
        let mut open: HashMap<WorkspaceId, usize> = HashMap::new();
        let mut places = Vec::with_capacity(claimed.len());
        for job in claimed {
            let data =
                (job.kind == DeliverWebhook::KIND).then(|| serde_json::from_slice::<DeliverWebhook>(&job.payload));
            let Some(Ok(DeliverWebhook { workspace, delivery, .. })) = data else {
                places.push(None);
                continue;
            };
            let place = open.get(&workspace).copied().filter(|place| batches[*place].deliveries.len() < LARGEST);
            let place = place.unwrap_or_else(|| {
                batches.push(Self { workspace, deliveries: Vec::new(), read: OnceCell::new() });
                batches.len() - 1
            });
            open.insert(workspace, place);
            batches[place].deliveries.push(delivery);
            places.push(Some(place));
        }
        let batches: Vec<_> =
            batches.into_iter().map(|batch| (batch.deliveries.len() > 1).then(|| Arc::new(batch))).collect();
        places.into_iter().map(|place| batches[place?].clone()).collect()
    }

    /// Returns a delivery as it was read, the first time that it is asked for.
    pub(super) async fn take(&self, app: &App, delivery: DeliveryId) -> Option<ReadAhead> {
        let read = async {
            let read = self.read(app).await.unwrap_or_else(|error| {
                tracing::debug!(error = %Chain(&error), "deliveries are read one by one");
                HashMap::new()
            });
            Mutex::new(read)
        };
        let read = self.read.get_or_init(|| read).await;
        read.lock().unwrap_or_else(PoisonError::into_inner).remove(&delivery)
    }

    /// Reads all deliveries, and their events.
    async fn read(&self, app: &App) -> Result<HashMap<DeliveryId, ReadAhead>, StoreError> {
        let deliveries = app.store().deliveries_among(self.workspace, &self.deliveries).await?;
        let key = |delivery: &Delivery| match &delivery.subject {
            Subject::Event { message_id, at } => Some((*message_id, *at, delivery.event_id)),
            Subject::Record(_) | Subject::Test(_) => None,
        };
        let keys: Vec<_> = deliveries.iter().filter_map(key).collect();
        let mut events: HashMap<EventId, Vec<_>> = HashMap::new();
        for found in app.store().events_among(self.workspace, &keys).await? {
            events.entry(found.0.id).or_default().push(found);
        }
        let with_event = |delivery: Delivery| {
            let event = events.get_mut(&delivery.event_id).and_then(Vec::pop);
            (delivery.id, (delivery, event))
        };
        Ok(deliveries.into_iter().map(with_event).collect())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use messaging_core::changes::JobHandle;
    use messaging_core::ids::{Id as _, JobId, WebhookId};
    use messaging_core::time::Timestamp;

    use super::*;

    fn job(kind: &str, workspace: u8, number: u8) -> ClaimedJob {
        let delivery = DeliverWebhook {
            workspace: WorkspaceId::from_bytes([workspace; 16]),
            webhook: WebhookId::from_bytes([number; 16]),
            delivery: DeliveryId::from_bytes([number; 16]),
        };
        let id = JobId::from_bytes([number; 16]);
        ClaimedJob {
            handle: JobHandle { id, lane: delivery.lane(), due_at: Timestamp::from_millis(0), token: 1 },
            kind: kind.to_owned(),
            payload: serde_json::to_vec(&delivery).unwrap().into(),
            failures: 0,
        }
    }

    fn delivery(workspace: u8, number: u8) -> ClaimedJob {
        job(DeliverWebhook::KIND, workspace, number)
    }

    #[test]
    fn deliveries_of_one_workspace_are_a_batch() {
        let broken = ClaimedJob { payload: Bytes::from_static(b"{"), ..delivery(1, 7) };
        let other = job("other", 1, 4);
        let claimed = [delivery(1, 1), delivery(2, 2), delivery(1, 3), other, delivery(3, 5), delivery(2, 6), broken];
        let numbers = |batch: Option<Arc<DeliveryBatch>>| {
            let deliveries = batch.map_or_else(Vec::new, |batch| batch.deliveries.clone());
            deliveries.iter().map(|delivery| delivery.to_bytes()[0]).collect()
        };
        let found: Vec<Vec<u8>> = DeliveryBatch::of(&claimed).into_iter().map(numbers).collect();
        assert_eq!(found, [vec![1, 3], vec![2, 6], vec![1, 3], vec![], vec![], vec![2, 6], vec![]]);
    }

    #[test]
    fn a_batch_has_a_bound() {
        let claimed = vec![delivery(1, 1); 2 * LARGEST + 1];
        let lengths: Vec<_> = DeliveryBatch::of(&claimed)
            .iter()
            .map(|batch| batch.as_ref().map(|batch| batch.deliveries.len()))
            .collect();
        assert_eq!(lengths[..2 * LARGEST], vec![Some(LARGEST); 2 * LARGEST]);
        assert_eq!(lengths[2 * LARGEST], None, "one that is alone reads for itself");
    }
}
