//! A contact that is asked to confirm its subscription.

use messaging_core::domain::delivery::lane::{JobClass, Lane};
use messaging_core::ids::{ContactId, FormId, ListId, WorkspaceId};
use serde::{Deserialize, Serialize};

use crate::jobs::{JobData, Reach, lanes};

/// Sends one confirmation for some lists.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SendConfirmation {
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) contact_id: ContactId,
    /// Lists that wait for it.
    pub(crate) list_ids: Vec<ListId>,
    /// Form by which the contact subscribed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) form_id: Option<FormId>,
}

impl JobData for SendConfirmation {
    const KIND: &'static str = "send_confirmation";
    const REACH: Reach = Reach::Inside;

    fn lane(&self) -> Lane {
        Lane::new(JobClass::Transactional, self.workspace_id, lanes::CONFIRMATIONS)
    }
}
