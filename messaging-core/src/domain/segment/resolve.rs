//! Segments that name segments.
//!
//! A dynamic segment that a filter names is replaced by its own filter, so that members are always found from contacts
//! alone; a static segment is tested by its membership. Contract section 9.1: at most five levels, and no cycles. A
//! segment that names none has depth zero; static segments count like others.

use std::collections::{HashMap, HashSet};

use super::filter::{Condition, Filter, Leaf};
use super::{Segment, SegmentKind};
use crate::ids::SegmentId;

/// Maximum nesting depth of segments.
pub const MAX_NESTING: usize = 5;
/// Maximum number of leaves of a filter after the segments that it names are replaced.
pub const MAX_RESOLVED_LEAVES: usize = 1000;

/// Reason why a filter cannot be resolved. Stored filters can be: this is a last check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unresolvable {
    /// A segment that it names does not exist.
    #[error("it names a segment that is not there")]
    Unknown,
    /// Segments are nested too deep, or in a cycle.
    #[error("it names segments that are more than 5 deep, or itself")]
    TooDeep,
    /// It has too many leaves with those of the segments that it names.
    #[error("it has more than 1000 conditions with those of the segments that it names")]
    TooLong,
}

/// Segments of a workspace, by id.
#[derive(Debug, Default)]
pub struct SegmentGraph(HashMap<SegmentId, Segment>);

impl FromIterator<Segment> for SegmentGraph {
    fn from_iter<T: IntoIterator<Item = Segment>>(segments: T) -> Self {
        Self(segments.into_iter().map(|segment| (segment.id, segment)).collect())
    }
}

impl SegmentGraph {
    /// Returns a segment.
    pub fn get(&self, id: SegmentId) -> Option<&Segment> {
        self.0.get(&id)
    }

    /// Returns all segments, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Segment> {
        self.0.values()
    }

    /// Returns all segments, in no particular order.
    pub fn into_segments(self) -> impl Iterator<Item = Segment> {
        self.0.into_values()
    }

    /// Adds or replaces a segment.
    pub fn insert(&mut self, segment: Segment) {
        self.0.insert(segment.id, segment);
    }

    /// Replaces the dynamic segments in a filter.
    pub fn resolve(&self, filter: &Filter) -> Result<Filter, Unresolvable> {
        let mut room = MAX_RESOLVED_LEAVES;
        self.resolved(filter, 0, &mut room)
    }

    fn resolved(&self, filter: &Filter, depth: usize, room: &mut usize) -> Result<Filter, Unresolvable> {
        match filter {
            Filter::Everyone => Ok(Filter::Everyone),
            Filter::Where(condition) => Ok(Filter::Where(self.condition(condition, depth, room)?)),
        }
    }

    fn condition(&self, condition: &Condition, depth: usize, room: &mut usize) -> Result<Condition, Unresolvable> {
        let mut all = |parts: &[Condition]| {
            parts.iter().map(|part| self.condition(part, depth, room)).collect::<Result<Vec<_>, _>>()
        };
        match condition {
            Condition::And(parts) => Ok(Condition::And(all(parts)?)),
            Condition::Or(parts) => Ok(Condition::Or(all(parts)?)),
            Condition::Not(part) => Ok(Condition::Not(Box::new(self.condition(part, depth, room)?))),
            Condition::Leaf(leaf) => {
                *room = room.checked_sub(1).ok_or(Unresolvable::TooLong)?;
                let Leaf::Segment { id, member } = leaf else { return Ok(Condition::Leaf(leaf.clone())) };
                let segment = self.get(*id).ok_or(Unresolvable::Unknown)?;
                if depth == MAX_NESTING {
                    return Err(Unresolvable::TooDeep);
                }
                if segment.kind == SegmentKind::Static {
                    return Ok(Condition::Leaf(leaf.clone()));
                }
                let inner = match self.resolved(segment.filter.tree(), depth + 1, room)? {
                    Filter::Where(condition) => condition,
                    Filter::Everyone => everyone(),
                };
                Ok(if *member { inner } else { Condition::Not(Box::new(inner)) })
            }
        }
    }

    /// Returns the levels of segments below a filter; more than [`MAX_NESTING`] also for a cycle.
    pub fn depth(&self, filter: &Filter) -> usize {
        // Level by level: each segment is looked at once a level, however often it is named.
        let mut level: HashSet<SegmentId> = named(filter).collect();
        let mut depth = 0;
        while !level.is_empty() && depth <= MAX_NESTING {
            depth += 1;
            level =
                level.iter().filter_map(|id| self.get(*id)).flat_map(|segment| named(segment.filter.tree())).collect();
        }
        depth
    }

    /// Returns the levels of segments above a segment.
    pub fn height(&self, id: SegmentId) -> usize {
        let mut level = HashSet::from([id]);
        let mut height = 0;
        while height <= MAX_NESTING {
            level = self
                .iter()
                .filter(|segment| named(segment.filter.tree()).any(|named| level.contains(&named)))
                .map(|segment| segment.id)
                .collect();
            if level.is_empty() {
                break;
            }
            height += 1;
        }
        height
    }

    /// True if a filter leads to a segment, directly or through others.
    pub fn leads_to(&self, filter: &Filter, target: SegmentId) -> bool {
        let mut seen = HashSet::new();
        let mut waiting: Vec<_> = named(filter).collect();
        while let Some(id) = waiting.pop() {
            if id == target {
                return true;
            }
            if seen.insert(id) {
                waiting.extend(self.get(id).into_iter().flat_map(|segment| named(segment.filter.tree())));
            }
        }
        false
    }

    /// Returns the segments whose filters name a segment.
    pub fn users(&self, id: SegmentId) -> impl Iterator<Item = &Segment> {
        self.iter().filter(move |segment| named(segment.filter.tree()).any(|named| named == id))
    }

    /// Returns the dynamic segments whose members depend on those of a segment: those that name it, and those that name
    /// these. A static one in between keeps its members.
    pub fn dependents(&self, origin: SegmentId) -> Vec<SegmentId> {
        let (mut found, mut waiting) = (Vec::new(), vec![origin]);
        while let Some(id) = waiting.pop() {
            for user in self.users(id).filter(|user| user.kind == SegmentKind::Dynamic) {
                if user.id != origin && !found.contains(&user.id) {
                    found.push(user.id);
                    waiting.push(user.id);
                }
            }
        }
        found
    }
}

/// Returns the segments that a filter names, each as often as it is named.
pub fn named(filter: &Filter) -> impl Iterator<Item = SegmentId> + '_ {
    filter.leaves().filter_map(|leaf| match leaf {
        Leaf::Segment { id, .. } => Some(*id),
        _ => None,
    })
}

/// Returns a condition that holds for everyone.
fn everyone() -> Condition {
    use super::filter::{FilterField, Positive, Test};
    // Every contact has a time of its creation.
    Condition::Leaf(Leaf::Field(FilterField::CreatedAt, Test { negated: false, positive: Positive::Exists }))
}

#[cfg(test)]
mod tests;
