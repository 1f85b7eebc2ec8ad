//! The call of a web address by a run.

use messaging_core::domain::automation::run::{Held, Run, RunStatus};
use messaging_core::domain::delivery::lane::{JobClass, Lane};
use messaging_core::ids::{AutomationId, RunId, WorkspaceId};
use serde::{Deserialize, Serialize};

use crate::jobs::{JobData, Reach, lanes};

/// Calls the web address of a node that a run stands at, and brings the run on.
///
/// What is sent is made anew for each try, so that nothing personal is in the payload.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CallNode {
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) automation_id: AutomationId,
    pub(crate) run_id: RunId,
    pub(crate) node_id: String,
    /// Which arrival of the run at a node it is.
    pub(crate) visit: u32,
    /// Number of tries of this call that have failed so far.
    pub(crate) failed: u8,
}

impl CallNode {
    /// The call that a run waits for at the node where it stands.
    pub(crate) fn of(run: &Run, node_id: &str) -> Self {
        Self {
            workspace_id: run.workspace_id,
            automation_id: run.automation_id,
            run_id: run.id,
            node_id: node_id.to_owned(),
            visit: run.steps,
            failed: 0,
        }
    }

    /// Whether a run still waits for it.
    pub(crate) fn is_awaited(&self, run: &Run) -> bool {
        run.status == RunStatus::Waiting && run.steps == self.visit && run.held == Some(Held::Calling)
    }

    /// `Idempotency-Key` of its request: the same for the tries of one visit.
    pub(crate) fn idempotency_key(&self) -> String {
        format!("{}:{}:{}", self.run_id, self.node_id, self.visit)
    }
}

impl JobData for CallNode {
    const KIND: &'static str = "call_node";
    const REACH: Reach = Reach::Outside;

    fn lane(&self) -> Lane {
        let resource = format!("{}{}", lanes::AUTOMATION_CALLS, self.automation_id);
        Lane::new(JobClass::Transactional, self.workspace_id, &resource)
    }
}
