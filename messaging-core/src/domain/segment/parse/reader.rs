//! Parsing state of a filter: its limits, the collected data, and the violations.

use crate::ids::{AutomationId, CampaignId, ListId, SegmentId, TemplateId};
use crate::violation::{FieldCode, Violations};

/// Maximum nesting depth of groups.
pub(crate) const MAX_GROUPS: usize = 8;

/// Maximum number of leaves of a filter.
pub(crate) const MAX_LEAVES: usize = 100;

/// Maximum number of values of a leaf.
pub(crate) const MAX_VALUES: usize = 1000;

/// Maximum length of a text that a value is compared with, in characters.
pub const MAX_TEXT: usize = 1024;

/// Members that make an object a group.
pub(super) const GROUPS: [&str; 3] = ["and", "or", "not"];

/// Purpose of a filter, which decides what it may refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A segment.
    Segment,
    /// An automation, where a filter may refer to the entry of a contact.
    Automation,
}

/// A resource that a filter names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Reference {
    List(ListId),
    Segment(SegmentId),
    Campaign(CampaignId),
    Automation(AutomationId),
    Template(TemplateId),
}

/// Parser of one filter.
pub(super) struct Reader<'a> {
    pub(super) purpose: Purpose,
    pub(super) violations: &'a mut Violations,
    pub(super) is_broken: bool,
    pub(super) conditions: usize,
    /// True if there were too many conditions; then no more are read.
    pub(super) is_full: bool,
    pub(super) leaves: Vec<String>,
    pub(super) references: Vec<(String, Reference)>,
    /// Pointers of ignored unknown members; `None` if unknown members are refused.
    pub(super) ignored: Option<Vec<String>>,
    /// See [`Parsed::needs_pii`](super::Parsed::needs_pii).
    pub(super) needs_pii: bool,
}

impl<'a> Reader<'a> {
    /// Returns a parser that has not begun.
    pub(super) const fn new(purpose: Purpose, ignored: Option<Vec<String>>, violations: &'a mut Violations) -> Self {
        Self {
            purpose,
            violations,
            is_broken: false,
            conditions: 0,
            is_full: false,
            leaves: Vec::new(),
            references: Vec::new(),
            ignored,
            needs_pii: false,
        }
    }

    pub(super) fn fault(&mut self, pointer: impl Into<String>, code: FieldCode, rule: &str) {
        self.is_broken = true;
        self.violations.add(pointer, code, rule);
    }
}
