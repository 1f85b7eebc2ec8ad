//! Work that was put aside because the store refuses its outcome for good, so that nothing else waits for it.

use serde::{Deserialize, Serialize};

use crate::domain::automation::run::Held;
use crate::domain::delivery::lane::Lane;
use crate::ids::{AutomationId, ContactId, JobId, RunId, WorkspaceId};
use crate::time::Timestamp;

/// Records that are kept; the oldest give way.
pub const KEPT: usize = 1000;

/// Characters of a reason; more are cut.
const MAX_REASON: usize = 500;

/// Something that was put aside. The data of a job may repeat words of a peer, and these an address: erasing a person
/// forgets the records that name them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Quarantined {
    /// The id of the record.
    pub id: JobId,
    /// The workspace, where one owns it.
    pub workspace_id: Option<WorkspaceId>,
    /// The kind of the work: the kind of the job, or `automation_run`, `automation_note` and the like.
    pub kind: String,
    /// The id of the item.
    pub subject: String,
    /// Reason for which the store refused the outcome, in words.
    pub reason: String,
    /// Time at which it was put aside.
    pub at: Timestamp,
    /// How it is taken up again; `None` where the rest of its work was done without what was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Again>,
}

/// How something that was put aside is taken up again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Again {
    /// Its job is done once more.
    Job {
        /// The kind of the job.
        kind: String,
        /// Its lane.
        lane: Lane,
        /// Its data, JSON, as it was when the job was claimed.
        payload: String,
    },
    /// The run, which failed, goes on where it stood.
    Run {
        /// The automation.
        automation_id: AutomationId,
        /// The run.
        run_id: RunId,
        /// State of its node at which it goes on.
        held: Option<Held>,
    },
    /// The moments that follow from a date of a contact are written down.
    Moments {
        /// The automation.
        automation_id: AutomationId,
        /// The contact.
        contact_id: ContactId,
        /// The moments.
        due_at: Vec<Timestamp>,
    },
    /// The contact enters the automation.
    Entry {
        /// The automation.
        automation_id: AutomationId,
        /// The contact.
        contact_id: ContactId,
    },
}

impl Quarantined {
    /// A record of something that cannot be taken up again, its reason no longer than may be shown.
    pub fn new(
        (id, at): (JobId, Timestamp),
        workspace_id: Option<WorkspaceId>,
        kind: &str,
        subject: String,
        reason: &str,
    ) -> Self {
        let reason = reason.chars().take(MAX_REASON).collect();
        Self { id, workspace_id, kind: kind.to_owned(), subject, reason, at, again: None }
    }
}
