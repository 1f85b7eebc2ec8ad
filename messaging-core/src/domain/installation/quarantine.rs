//! Quarantine of work whose outcome the store refuses permanently, so that no other work waits for it.

use serde::{Deserialize, Serialize};

use crate::domain::automation::run::Held;
use crate::domain::delivery::lane::Lane;
use crate::ids::{AutomationId, ContactId, JobId, RunId, WorkspaceId};
use crate::time::Timestamp;

/// Maximum number of records that are kept; the oldest are deleted.
pub const KEPT: usize = 1000;

/// Maximum length of a reason, in characters; the rest is cut.
const MAX_REASON: usize = 500;

/// Quarantined work. The data of a job may repeat words of a peer, and these an address: erasing a person deletes the
/// records that name them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Quarantined {
    /// The id of the record.
    pub id: JobId,
    /// Workspace that owns it, if one does.
    pub workspace_id: Option<WorkspaceId>,
    /// Kind of the work: the kind of the job, or a kind such as `automation_run` or `automation_note`.
    pub kind: String,
    /// The id of the item.
    pub subject: String,
    /// Reason for which the store refused the outcome, in words.
    pub reason: String,
    /// Time at which it was quarantined.
    pub at: Timestamp,
    /// Way to take it up again; `None` if the rest of its work was done without the refused part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Again>,
}

/// Way to take up quarantined work again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Again {
    /// Runs the job once more.
    Job {
        /// The kind of the job.
        kind: String,
        /// Its lane.
        lane: Lane,
        /// Its data, JSON, as it was when the job was claimed.
        payload: String,
    },
    /// Resumes the failed run where it stopped.
    Run {
        /// The automation.
        automation_id: AutomationId,
        /// The run.
        run_id: RunId,
        /// State of its node at which it continues.
        held: Option<Held>,
    },
    /// Records the moments that follow from a date of a contact.
    Moments {
        /// The automation.
        automation_id: AutomationId,
        /// The contact.
        contact_id: ContactId,
        /// The moments.
        due_at: Vec<Timestamp>,
    },
    /// Lets the contact enter the automation.
    Entry {
        /// The automation.
        automation_id: AutomationId,
        /// The contact.
        contact_id: ContactId,
    },
}

impl Quarantined {
    /// Returns a record of work that cannot be taken up again, its reason no longer than may be shown.
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
