//! Job that makes the web request of an automation run.

use messaging_core::domain::automation::run::{Held, Run, RunStatus};
use messaging_core::domain::delivery::lane::{JobClass, Lane};
use messaging_core::ids::{AutomationId, RunId, WorkspaceId};
use serde::{Deserialize, Serialize};

use crate::jobs::{JobData, Reach, lanes};

/// Makes the web request of the node that a run is at, and continues the run.
///
/// The request is rendered again for each try, so that the payload holds no personal data.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CallNode {
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) automation_id: AutomationId,
    pub(crate) run_id: RunId,
    pub(crate) node_id: String,
    /// Number of the run's step at which it arrived at the node.
    pub(crate) visit: u32,
    /// Number of tries of this call that have failed so far.
    pub(crate) failed: u8,
}

impl CallNode {
    /// Returns the call that a run waits for at its node.
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

    /// Returns true if a run still waits for this call.
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
