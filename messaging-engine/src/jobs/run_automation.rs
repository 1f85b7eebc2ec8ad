//! Progress of an automation: contacts enter it, proceed in it, and leave it.

use messaging_core::cursor::StoreCursor;
use messaging_core::domain::automation::SHARDS;
use messaging_core::domain::delivery::lane::{JobClass, Lane};
use messaging_core::ids::{AutomationId, SegmentId, WorkspaceId};
use messaging_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::jobs::{JobData, Reach, lanes};

/// Job that processes the notes of a shard of an automation, its due dates, and its due runs. Each shard has one such
/// job from the first activation until the automation is deleted; the store wakes it whenever there is a note.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct RunAutomation {
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) automation_id: AutomationId,
    pub(crate) shard: u8,
}

impl RunAutomation {
    /// Returns the jobs of an automation, one for each shard.
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

/// Job that lets the contacts in that were members of a segment when an automation was activated which waits for new
/// members of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct EnterExisting {
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) automation_id: AutomationId,
    pub(crate) segment_id: SegmentId,
    /// Time of the activation.
    pub(crate) activated_at: Timestamp,
    /// Position in the listing of the segment's members after which the job continues; `None` at its beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) after: Option<StoreCursor>,
}

impl EnterExisting {
    /// Returns the lane of an automation's job.
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

/// Job that looks once a day for the times that follow from dates of contacts. An automation with a date trigger has
/// one such job while it is active.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct FollowDates {
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) automation_id: AutomationId,
    /// Version whose dates were looked for, and time of the activation; after another one the look begins again,
    /// because changes during a pause were not noted.
    pub(crate) since: (u32, Option<Timestamp>),
    /// Time up to which, inclusive, all times are stored.
    pub(crate) known_to: Timestamp,
    /// The look in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) look: Option<DateLook>,
}

/// A look through all contacts for the times of their dates.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DateLook {
    /// Time up to which, inclusive, times are looked for.
    pub(crate) to: Timestamp,
    /// Position of the remaining contacts.
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
