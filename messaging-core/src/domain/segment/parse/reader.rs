//! One reading of a filter: its limits, what it collects, and how it notes a fault.

use crate::ids::{AutomationId, CampaignId, ListId, SegmentId, TemplateId};
use crate::violation::{FieldCode, Violations};

/// Groups within one another.
pub(crate) const MAX_GROUPS: usize = 8;

/// Leaves of a filter.
pub(crate) const MAX_LEAVES: usize = 100;

/// Values of a leaf.
pub(crate) const MAX_VALUES: usize = 1000;

/// Characters of a text that a value is compared with.
pub const MAX_TEXT: usize = 1024;

/// The members that make an object a group.
pub(super) const GROUPS: [&str; 3] = ["and", "or", "not"];

/// Purpose of a filter, which decides what it may refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A segment.
    Segment,
    /// An automation, where the entry of a contact is something to refer to.
    Automation,
}

/// Something that a filter names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Reference {
    List(ListId),
    Segment(SegmentId),
    Campaign(CampaignId),
    Automation(AutomationId),
    Template(TemplateId),
}

/// One reading of a filter.
pub(super) struct Reader<'a> {
    pub(super) purpose: Purpose,
    pub(super) violations: &'a mut Violations,
    pub(super) is_broken: bool,
    pub(super) conditions: usize,
    /// Whether there were too many; then no more are looked at.
    pub(super) is_full: bool,
    pub(super) leaves: Vec<String>,
    pub(super) references: Vec<(String, Reference)>,
    /// Where unknown members stand; `None` when they are refused.
    pub(super) ignored: Option<Vec<String>>,
    /// See [`Parsed::needs_pii`](super::Parsed::needs_pii).
    pub(super) needs_pii: bool,
}

impl<'a> Reader<'a> {
    /// A reading that has not begun.
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
