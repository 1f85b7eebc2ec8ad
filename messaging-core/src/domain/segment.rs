//! A segment: the contacts of a workspace that a filter matches.
//!
//! Contract section 9. [`filter`] is the typed tree of a filter, and [`mod@parse`] makes it from JSON; [`values`]
//! defines the meaning of values, [`reads`] what the outcome depends on, [`resolve`] replaces the segments that a
//! filter names, [`Filter::bind`] puts in the values of an event, and [`matching`] computes the outcome for one
//! contact.

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

/// Maximum number of segments of a workspace. The contract sets no limit; the work for a change of a contact grows with
/// them.
pub const MAX_SEGMENTS: usize = 1000;
/// Maximum size of a filter as JSON, in bytes.
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
    /// Kind of the segment: dynamic or static.
    pub kind: SegmentKind,
    /// Filter that chooses the members, as JSON and as a tree.
    pub filter: StoredFilter,
    /// State of the calculation of its members: under way, done or failed.
    pub status: SegmentStatus,
    /// Number of members; `None` until first calculated. Storing a segment does not change it: it follows the members.
    pub size: Option<u64>,
    /// When its members were last calculated as a whole.
    pub calculated_at: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its name or filter last changed.
    pub updated_at: Timestamp,
    /// Number of requested calculations of all members: work for an earlier one is void.
    pub calculation: u32,
}

/// A filter as it was sent, and as a typed tree.
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
    /// Returns a filter with the JSON that was sent and the tree parsed from it.
    pub fn new(sent: &Value, tree: Filter) -> Self {
        Self { json: sent.to_string().into(), tree: Arc::new(tree) }
    }

    /// Reads the result of [`StoredFilter::json`]. Resources that it names are not looked up again.
    pub fn read(json: &str) -> Result<Self, MalformedFilter> {
        let sent = serde_json::from_str(json).map_err(|error| MalformedFilter(error.to_string()))?;
        let mut violations = Violations::new();
        match parse(&sent, "", Purpose::Automation, &mut violations).filter {
            Some(tree) => Ok(Self { json: json.into(), tree: Arc::new(tree) }),
            None => Err(MalformedFilter(violations.summary())),
        }
    }

    /// Returns the JSON, in one line.
    pub fn json(&self) -> &str {
        &self.json
    }

    /// Typed tree of the filter.
    pub fn tree(&self) -> &Arc<Filter> {
        &self.tree
    }
}

/// Kind of a segment, by whether its members follow its filter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SegmentKind {
    /// Members are the contacts that the filter matches now.
    #[default]
    Dynamic,
    /// Members are the contacts that the filter matched when it was last calculated.
    Static,
}

impl SegmentKind {
    /// Both, in the order of the stored numbers.
    pub const ALL: [Self; 2] = [Self::Dynamic, Self::Static];
}

/// State of the calculation of a segment's members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SegmentStatus {
    /// The members are being calculated.
    Recalculating,
    /// The members are calculated.
    Ready,
    /// The members could not be calculated.
    Failed,
}

impl SegmentStatus {
    /// All states, in the order of the stored numbers.
    pub const ALL: [Self; 3] = [Self::Recalculating, Self::Ready, Self::Failed];
}
