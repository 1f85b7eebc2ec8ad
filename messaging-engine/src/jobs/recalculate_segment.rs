//! The calculation of the members of a segment.

use messaging_core::cursor::StoreCursor;
use messaging_core::domain::delivery::lane::{JobClass, Lane};
use messaging_core::domain::segment::Segment;
use messaging_core::ids::{SegmentId, WorkspaceId};
use serde::{Deserialize, Serialize};

use crate::jobs::{JobData, Reach, lanes};

/// Finds all members of a segment.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct RecalculateSegment {
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) segment_id: SegmentId,
    /// Which calculation of the segment this is.
    pub(crate) calculation: u32,
    /// Where the contacts that were not looked at begin; `None` when none was.
    pub(crate) rest: Option<StoreCursor>,
    /// Whether a calculation came to its end before: what changes now, time has changed.
    pub(crate) is_refresh: bool,
    /// How often it failed in a row.
    pub(crate) failures: u32,
}

impl RecalculateSegment {
    /// The job of the calculation that was last asked for.
    pub fn of(segment: &Segment) -> Self {
        Self {
            workspace_id: segment.workspace_id,
            segment_id: segment.id,
            calculation: segment.calculation,
            rest: None,
            is_refresh: false,
            failures: 0,
        }
    }
}

impl JobData for RecalculateSegment {
    const KIND: &'static str = "recalculate_segment";
    const REACH: Reach = Reach::Inside;

    fn lane(&self) -> Lane {
        Lane::new(JobClass::Transactional, self.workspace_id, lanes::SEGMENTS)
    }
}
