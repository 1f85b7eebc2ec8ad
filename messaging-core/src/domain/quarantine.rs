//! Work that was put aside because the store refuses its outcome for good, so that nothing else waits for it.

use serde::{Deserialize, Serialize};

use crate::ids::{JobId, WorkspaceId};
use crate::time::Timestamp;

/// Records that are kept; the oldest give way.
pub const KEPT: usize = 1000;

/// Characters of a reason; more are cut.
const MAX_REASON: usize = 500;

/// Something that was put aside. It names ids only, so nothing of it has to be erased.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quarantined {
    /// The id of the record.
    pub id: JobId,
    /// The workspace, where one owns it.
    pub workspace_id: Option<WorkspaceId>,
    /// The kind of the work: the kind of the job, or `automation_run`, `automation_note` and the like.
    pub kind: String,
    /// The id of the item.
    pub subject: String,
    /// Why the store refused it.
    pub reason: String,
    /// When it was put aside.
    pub at: Timestamp,
}

impl Quarantined {
    /// A record, its reason no longer than may be shown.
    pub fn new(
        (id, at): (JobId, Timestamp),
        workspace_id: Option<WorkspaceId>,
        kind: &str,
        subject: String,
        reason: &str,
    ) -> Self {
        let reason = reason.chars().take(MAX_REASON).collect();
        Self { id, workspace_id, kind: kind.to_owned(), subject, reason, at }
    }
}
