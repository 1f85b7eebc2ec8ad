//! A segment: the contacts of a workspace that a filter matches.
//!
//! Contract section 9. [`filter`] is the typed tree of a filter and [`mod@parse`] makes it of what was sent;
//! [`values`] says what values mean to it, [`reads`] what its outcome depends on, [`resolve`] takes out the
//! segments that it names, [`Filter::bind`] puts in the values of an event, and [`matching`] finds the outcome for one contact.

mod bind;
pub mod event;
pub mod filter;
pub mod matching;
pub mod parse;
pub mod reads;
pub mod resolve;
pub mod value_test;
pub mod values;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::filter::Filter;
use self::parse::{Purpose, parse};
use crate::ids::{SegmentId, WorkspaceId};
use crate::time::Timestamp;
use crate::violation::Violations;

/// Segments of a workspace. The contract is silent; the work for a change of a contact grows with them.
pub const MAX_SEGMENTS: usize = 1000;
/// A filter in bytes of JSON.
pub const MAX_FILTER_BYTES: usize = 256 << 10;

/// The contacts that a filter matches, under a name.
#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    /// Its id.
    pub id: SegmentId,
    /// Workspace that owns the segment.
    pub workspace_id: WorkspaceId,
    /// Name of the segment, for people.
    pub name: String,
    /// Whether its members follow the filter.
    pub kind: SegmentKind,
    /// Filter that chooses the members, as JSON and as a tree.
    pub filter: StoredFilter,
    /// State of the calculation of its members: under way, done or failed.
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

/// A filter as it was sent, and what it means.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredFilter {
    json: Arc<str>,
    tree: Arc<Filter>,
}

/// The text is not a filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a filter that this version knows: {0}")]
pub struct MalformedFilter(String);

impl StoredFilter {
    /// What was sent, and what it was read as.
    pub fn new(sent: &Value, tree: Filter) -> Self {
        Self { json: sent.to_string().into(), tree: Arc::new(tree) }
    }

    /// Reads what [`StoredFilter::json`] answered. What it names is not looked up again.
    pub fn read(json: &str) -> Result<Self, MalformedFilter> {
        let sent = serde_json::from_str(json).map_err(|error| MalformedFilter(error.to_string()))?;
        let mut violations = Violations::new();
        match parse(&sent, "", Purpose::Automation, &mut violations).filter {
            Some(tree) => Ok(Self { json: json.into(), tree: Arc::new(tree) }),
            None => Err(MalformedFilter(violations.summary())),
        }
    }

    /// Its JSON, in one line.
    pub fn json(&self) -> &str {
        &self.json
    }

    /// Typed tree of the filter.
    pub fn tree(&self) -> &Arc<Filter> {
        &self.tree
    }
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
