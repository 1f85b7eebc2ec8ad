//! A segment: the contacts of a workspace that a filter matches.
//!
//! Contract section 9. [`filter`] is the typed tree of a filter, [`values`] says what values mean to it, [`reads`]
//! what its outcome depends on.

pub mod filter;
pub mod reads;
pub mod values;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::filter::Filter;
use crate::ids::{SegmentId, WorkspaceId};
use crate::time::Timestamp;

/// The contacts that a filter matches, under a name.
#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    /// Its id.
    pub id: SegmentId,
    /// Whose.
    pub workspace_id: WorkspaceId,
    /// What people call it.
    pub name: String,
    /// Whether its members follow the filter.
    pub kind: SegmentKind,
    /// Who belongs to it.
    pub filter: Filter,
    /// Whether its members are known.
    pub status: SegmentStatus,
    /// How many members it has; `None` until it was first calculated. Storing a segment leaves it alone: it
    /// follows the members.
    pub size: Option<u64>,
    /// When its members were last calculated as a whole.
    pub calculated_at: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its name or filter last changed.
    pub updated_at: Timestamp,
    /// Counts the calculations of all its members that were asked for: work for an earlier one is void.
    pub calculation: u32,
}

/// Whether the members of a segment follow its filter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SegmentKind {
    /// They are whom the filter matches.
    #[default]
    Dynamic,
    /// They are whom the filter matched when it was last calculated.
    Static,
}

impl SegmentKind {
    /// Both, in the order of the stored numbers.
    pub const ALL: [Self; 2] = [Self::Dynamic, Self::Static];
}

/// Whether the members of a segment are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SegmentStatus {
    /// They are being calculated.
    Recalculating,
    /// They are known.
    Ready,
    /// They could not be calculated.
    Failed,
}

impl SegmentStatus {
    /// All of them, in the order of the stored numbers.
    pub const ALL: [Self; 3] = [Self::Recalculating, Self::Ready, Self::Failed];
}
