//! The calculation of the members of a segment.

use messaging_core::cursor::StoreCursor;
use messaging_core::domain::delivery::lane::{JobClass, Lane};
use messaging_core::domain::segment::Segment;
use messaging_core::ids::{SegmentId, WorkspaceId};
use serde::{Deserialize, Serialize};

use crate::jobs::{JobData, Reach, lanes};

/// Job that finds all members of a segment.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct RecalculateSegment {
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) segment_id: SegmentId,
    /// Number of the segment's calculation that the job belongs to.
    pub(crate) calculation: u32,
    /// Position from which contacts were not evaluated yet; `None` before the first.
    pub(crate) rest: Option<StoreCursor>,
    /// True if a calculation was completed before: changes from then on are due to time alone.
    pub(crate) is_refresh: bool,
    /// Number of failures in a row.
    pub(crate) failures: u32,
}

impl RecalculateSegment {
    /// Returns the job of the calculation that was last requested.
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
