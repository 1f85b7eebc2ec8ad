//! Jobs as data, to be enqueued. The code that runs them is in [`work`](crate::work).
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

/// Reach of a job's work. Work that leaves the installation is not begun while the installation is fenced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The work changes the database and files, or asks the DNS.
    Inside,
    /// The work sends messages, calls web addresses or providers, or prepares nothing but that. Its lane begins with
    /// one of `LEAVING` in `jobs/lanes.rs`.
    Outside,
}

/// A job as it is stored. The value itself is the payload.
pub trait JobData: Serialize + DeserializeOwned + Send + Sized + 'static {
    /// Name in the store; never changes.
    const KIND: &'static str;
    /// Reach of the work.
    const REACH: Reach;

    /// Lane of the job: jobs of one lane share concurrency and pace.
    fn lane(&self) -> Lane;

    /// Takes from the row's lane what the payload does not repeat.
    fn claimed_in(&mut self, _lane: &Lane) {}

    /// Returns the row to enqueue.
    fn enqueue(&self, id: JobId, due_at: Timestamp) -> NewJob {
        let payload = serde_json::to_vec(self).expect("a job is plain data, which always serializes");
        NewJob { id, kind: Self::KIND, lane: self.lane(), due_at, payload: payload.into() }
    }
}
