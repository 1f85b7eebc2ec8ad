//! Jobs as data: what is enqueued. What is done with it is in [`work`](crate::work).
//!
//! Services and operations enqueue jobs without knowing the code that runs them.

use messaging_core::changes::NewJob;
use messaging_core::domain::lane::Lane;
use messaging_core::ids::JobId;
use messaging_core::time::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub mod deliver_message;
pub mod deliver_webhook;
pub mod drain_webhook;
pub mod erase_contact;
pub mod follow_changes;
pub mod imports;
pub(crate) mod lanes;
pub mod move_messages;
pub mod recalculate_segment;
pub mod replay_webhook;
pub mod run_campaign;
pub mod settle_receipt;
pub mod upkeep;
pub mod verify_domain;

/// A job as it is stored. The value itself is the payload.
pub trait JobData: Serialize + DeserializeOwned + Send + Sized + 'static {
    /// The name in the store; never changes.
    const KIND: &'static str;

    /// What the job shares concurrency and pace with.
    fn lane(&self) -> Lane;

    /// The row to enqueue.
    fn enqueue(&self, id: JobId, due_at: Timestamp) -> NewJob {
        let payload = serde_json::to_vec(self).expect("a job is plain data, which always serializes");
        NewJob { id, kind: Self::KIND, lane: self.lane(), due_at, payload: payload.into() }
    }
}
