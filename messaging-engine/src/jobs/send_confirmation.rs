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
    /// Recipient domain for which enough messages wait already, so that the job waits in the domain's lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) behind: Option<String>,
}

impl JobData for SendConfirmation {
    const KIND: &'static str = "send_confirmation";
    const REACH: Reach = Reach::Inside;

    fn lane(&self) -> Lane {
        let lane = |resource: &str| Lane::new(self.class(), self.workspace_id, resource);
        self.behind
            .as_ref()
            .map_or_else(|| lane(lanes::CONFIRMATIONS), |domain| lane(&format!("{}:{domain}", lanes::CONFIRMATIONS)))
    }
}

impl SendConfirmation {
    /// A reader who has just posted a form waits for the mail. Nobody waits for those of an import, which may be a
    /// million.
    pub(crate) fn class(&self) -> JobClass {
        if self.form_id.is_some() { JobClass::Transactional } else { JobClass::Bulk }
    }
}

#[cfg(test)]
mod tests {
    use messaging_core::ids::Id as _;

    use super::*;

    #[test]
    fn a_reader_at_a_form_does_not_wait_for_an_import() {
        let job = |form_id| SendConfirmation {
            workspace_id: WorkspaceId::from_bytes([1; 16]),
            contact_id: ContactId::from_bytes([2; 16]),
            list_ids: vec![ListId::from_bytes([3; 16])],
            form_id,
            behind: None,
        };
        let lanes = [None, Some(FormId::from_bytes([4; 16]))].map(|form| job(form).lane());
        assert_eq!(lanes.each_ref().map(Lane::class), [JobClass::Bulk, JobClass::Transactional]);
        assert_ne!(lanes[0], lanes[1]);
    }
}
