//! Workspaces under deletion.
//!
//! Contract section 3. Until its end such a workspace takes nothing and sends nothing, and still hears of bounces and
//! unsubscribes; then a job removes it.

use std::collections::HashSet;
use std::sync::Arc;

use messaging_core::changes::{Expect, JobWrite, Write};
use messaging_core::domain::security::account::{Workspace, WorkspaceEnd};
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::{StoreError, Stored};
use messaging_core::time::Timestamp;

use crate::app::App;
use crate::error::Error;
use crate::jobs::JobData as _;
use crate::jobs::delete_workspace::DeleteWorkspace;

/// Said of what a workspace under deletion does not take.
const UNDER_DELETION: &str = "the workspace is under deletion and takes nothing unless an owner restores it";

impl App {
    /// The workspaces under deletion, as of the last second.
    pub(crate) async fn ending_workspaces(&self) -> Result<Arc<HashSet<WorkspaceId>>, StoreError> {
        let load = async { Ok(self.store().ending_workspaces().await?.into_iter().collect()) };
        self.lookups().ending_workspaces.look(self.now(), load).await
    }

    /// Refuses calls that a workspace under deletion does not take; one that is being removed takes none at all.
    /// `reads` is true if the call changes nothing there.
    pub(crate) async fn refuse_at_the_end(&self, workspace: WorkspaceId, reads: bool) -> Result<(), Error> {
        if !self.ending_workspaces().await?.contains(&workspace) {
            return Ok(());
        }
        let stored = self.store().workspace(workspace).await?.ok_or(Error::NotFound)?;
        match stored.record.end {
            Some(end) if end.removing_since.is_some() => Err(Error::NotFound),
            Some(_) if !reads => Err(Error::AccountState(UNDER_DELETION)),
            Some(_) | None => Ok(()),
        }
    }

    /// The writes that set an end to a workspace, with the job that removes it then.
    pub(crate) fn set_end(&self, stored: &Stored<Workspace>, deletes_at: Timestamp) -> Vec<Write> {
        let workspace = Workspace { end: Some(WorkspaceEnd::at(deletes_at)), ..stored.record.clone() };
        let put = Write::put(workspace, Expect::Revision(stored.revision));
        [put].into_iter().chain(self.see_to_the_end(stored.record.id, deletes_at)).collect()
    }

    /// The writes that make sure that a job removes a workspace whose end is set. They are written for every request to
    /// delete it, so that none relies on the job of an earlier one.
    pub(crate) fn see_to_the_end(&self, workspace: WorkspaceId, deletes_at: Timestamp) -> [Write; 2] {
        let now = self.now();
        let job = DeleteWorkspace { workspace_id: workspace }.enqueue(self.new_id(now), deletes_at);
        let lane = job.lane.clone();
        // There may be a job of an earlier request: it looks now when it is due.
        [Write::Job(JobWrite::EnqueueOnce(job)), Write::Job(JobWrite::WakeLane(lane, now))]
    }

    /// The writes that see to it that all workspaces under deletion have the job that removes them.
    pub(crate) async fn see_to_all_ends(&self) -> Result<Vec<Write>, StoreError> {
        let now = self.now();
        let ending = self.store().ending_workspaces().await?;
        let job = |workspace_id| DeleteWorkspace { workspace_id }.enqueue(self.new_id(now), now);
        Ok(ending.into_iter().map(|workspace| Write::Job(JobWrite::EnqueueOnce(job(workspace)))).collect())
    }
}
