//! The queue by hand: the parts that are suspended, and what waits in a part.

use std::sync::Arc;

use messaging_core::domain::delivery::lane::Lane;
use messaging_core::domain::delivery::queue::{QueueScope, Suspension, Suspensions};
use messaging_core::domain::message::Message;
use messaging_core::ports::store::{LaneSummary, StoreError};

use crate::app::App;
use crate::jobs::JobData as _;
use crate::jobs::deliver_message::DeliverMessage;

/// Lanes that are read at a time.
const LANES_AT_A_TIME: usize = 1000;

impl App {
    /// The parts of the queue that are suspended, as of the last second.
    pub(crate) async fn suspensions(&self) -> Result<Arc<Suspensions>, StoreError> {
        self.0.suspensions().await
    }

    /// True when a lane is suspended, as far as this process knows. Looks into memory alone.
    pub(crate) fn is_suspended(&self, lane: &Lane) -> bool {
        let known = self.lookups().suspensions.latest();
        !known.is_empty() && known.of(lane).is_some()
    }

    /// The suspension that a message is under, if it is under one.
    pub(crate) async fn suspension_of(&self, message: &Message) -> Result<Option<Suspension>, StoreError> {
        let known = self.suspensions().await?;
        Ok(if known.is_empty() { None } else { known.of(&DeliverMessage::lane_of(message)).cloned() })
    }

    /// Shows each lane in which messages of a part of the queue wait. Looks at all jobs, a page at a time.
    pub(crate) async fn each_lane(
        &self,
        scope: &QueueScope,
        mut show: impl FnMut(LaneSummary) + Send,
    ) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let lanes = self.store().lane_summaries(DeliverMessage::KIND, after.as_ref(), LANES_AT_A_TIME).await?;
            let is_last = lanes.len() < LANES_AT_A_TIME;
            after = lanes.last().map(|summary| summary.lane.clone());
            lanes.into_iter().filter(|summary| scope.covers(&summary.lane)).for_each(&mut show);
            if is_last {
                return Ok(());
            }
        }
    }
}
