//! Jobs as data: what is enqueued. What is done with it is in [`work`](crate::work).
//!
//! Services and operations enqueue jobs without knowing the code that runs them.

use messaging_core::changes::NewJob;
use messaging_core::domain::delivery::lane::Lane;
use messaging_core::ids::JobId;
use messaging_core::time::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) mod call_node;
pub mod cancel_waiting;
pub mod delete_workspace;
pub mod deliver_message;
pub(crate) mod deliver_webhook;
pub(crate) mod drain_webhook;
pub(crate) mod erase_contact;
pub(crate) mod follow_changes;
pub mod imports;
pub(crate) mod lanes;
pub(crate) mod move_messages;
pub(crate) mod publish_keys;
pub mod recalculate_segment;
pub(crate) mod register_callback;
pub(crate) mod replay_webhook;
pub mod run_automation;
pub mod run_campaign;
pub(crate) mod send_confirmation;
pub(crate) mod send_fallback;
pub(crate) mod settle_receipt;
pub mod upkeep;
pub mod verify_domain;
pub(crate) mod work_on_queue;

/// Whether the work of a job leaves the installation. What does is not begun while the installation is fenced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// It changes the database and files, or asks the DNS.
    Inside,
    /// It sends messages, calls web addresses or providers, or prepares nothing but that. Its lane begins as one of
    /// `LEAVING` in `jobs/lanes.rs`.
    Outside,
}

/// A job as it is stored. The value itself is the payload.
pub trait JobData: Serialize + DeserializeOwned + Send + Sized + 'static {
    /// The name in the store; never changes.
    const KIND: &'static str;
    /// Whether its work leaves the installation.
    const REACH: Reach;

    /// What the job shares concurrency and pace with.
    fn lane(&self) -> Lane;

    /// Takes what the payload does not repeat of the row that it stood in.
    fn claimed_in(&mut self, _lane: &Lane) {}

    /// The row to enqueue.
    fn enqueue(&self, id: JobId, due_at: Timestamp) -> NewJob {
        let payload = serde_json::to_vec(self).expect("a job is plain data, which always serializes");
        NewJob { id, kind: Self::KIND, lane: self.lane(), due_at, payload: payload.into() }
    }
}
