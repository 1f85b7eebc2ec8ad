//! All that happens in an automation: contacts enter it, go on in it, and leave it.

use messaging_core::cursor::StoreCursor;
use messaging_core::domain::automation::SHARDS;
use messaging_core::domain::delivery::lane::{JobClass, Lane};
use messaging_core::ids::{AutomationId, SegmentId, WorkspaceId};
use messaging_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::jobs::{JobData, Reach, lanes};

/// Works off the notes of a shard of an automation, its dates that are due, and its runs that are due. Each shard has one
/// such job from the first activation until the automation is deleted; it is woken by the store whenever there is a note.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct RunAutomation {
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) automation_id: AutomationId,
    pub(crate) shard: u8,
}

impl RunAutomation {
    /// The jobs of an automation, one for each shard.
    pub fn of(workspace_id: WorkspaceId, automation_id: AutomationId) -> impl Iterator<Item = Self> {
        (0..SHARDS).map(move |shard| Self { workspace_id, automation_id, shard })
    }
}

impl JobData for RunAutomation {
    const KIND: &'static str = "run_automation";
    const REACH: Reach = Reach::Outside;

    fn lane(&self) -> Lane {
        let resource = format!("{}{}:{}", lanes::AUTOMATION, self.automation_id, self.shard);
        Lane::new(JobClass::Transactional, self.workspace_id, &resource)
    }
}

/// Enters those who were members of a segment when the automation was activated that waits for new members of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct EnterExisting {
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) automation_id: AutomationId,
    pub(crate) segment_id: SegmentId,
    /// When it was activated.
    pub(crate) activated_at: Timestamp,
    /// Place in the listing of the segment's members after which the job goes on; `None` at its beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) after: Option<StoreCursor>,
}

impl EnterExisting {
    /// The lane of the jobs of an automation.
    pub(crate) fn lane_of(workspace: WorkspaceId, automation: AutomationId) -> Lane {
        Lane::new(JobClass::Transactional, workspace, &format!("{}{automation}", lanes::AUTOMATION_EXISTING))
    }
}

impl JobData for EnterExisting {
    const KIND: &'static str = "enter_existing";
    const REACH: Reach = Reach::Outside;

    fn lane(&self) -> Lane {
        Self::lane_of(self.workspace_id, self.automation_id)
    }
}

/// Looks once a day for the moments that follow from dates of contacts. An automation with such a trigger has one such
/// job while it is active.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct FollowDates {
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) automation_id: AutomationId,
    /// The version whose dates were looked for, and the activation since when; after another the look begins anew, because
    /// nobody was heard of during a pause.
    pub(crate) since: (u32, Option<Timestamp>),
    /// All moments up to here and with it are known.
    pub(crate) known_to: Timestamp,
    /// The look that is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) look: Option<DateLook>,
}

/// A look through all contacts for the moments of their dates.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DateLook {
    /// Moments up to here and with it are looked for.
    pub(crate) to: Timestamp,
    /// Where the rest of the contacts begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) after: Option<StoreCursor>,
}

impl JobData for FollowDates {
    const KIND: &'static str = "follow_dates";
    const REACH: Reach = Reach::Outside;

    fn lane(&self) -> Lane {
        let resource = format!("{}{}", lanes::AUTOMATION_DATES, self.automation_id);
        Lane::new(JobClass::Transactional, self.workspace_id, &resource)
    }
}
