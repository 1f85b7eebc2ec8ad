//! Checks of a filter that a request brings: its grammar, its length, and that everything exists that it refers to.

use std::collections::HashSet;

use messaging_core::changes::{Expect, Write};
use messaging_core::domain::automation::check::ResolvedDesignReference;
use messaging_core::domain::campaign::check::ReferenceTarget;
use messaging_core::domain::segment::filter::Filter;
use messaging_core::domain::segment::parse::{Parsed, Purpose, Reference, parse, parse_ignoring_unknown};
use messaging_core::domain::segment::resolve::{MAX_NESTING, MAX_RESOLVED_LEAVES, SegmentGraph, Unresolvable, named};
use messaging_core::domain::segment::{MAX_FILTER_BYTES, MAX_SEGMENTS, Segment, StoredFilter};
use messaging_core::ids::{SegmentId, WorkspaceId};
use messaging_core::ports::store::{StoreError, Stored};
use messaging_core::scope::Scope;
use messaging_core::violation::{FieldCode, Violations, unescape};
use serde_json::Value;

use crate::app::App;
use crate::caller::Caller;
use crate::error::Error;

/// A filter that has passed all checks.
#[derive(Debug)]
pub(crate) struct CheckedFilter {
    /// The filter.
    pub(crate) filter: StoredFilter,
    /// The same with each dynamic segment replaced by the filter of that segment.
    pub(crate) resolved: Filter,
    /// JSON pointers to its leaves in the request, in their order.
    pub(crate) leaves: Vec<String>,
    /// Segments of the workspace: those that it leads to, or all where it is the filter of a segment that exists.
    pub(crate) graph: SegmentGraph,
    /// All segments that it leads to, directly or through others, with the revisions at which they were read.
    reachable_segments: Vec<Stored<Segment>>,
}

impl CheckedFilter {
    /// Writes that make the commit a conflict when a segment that the filter leads to was changed or deleted after it
    /// was read: each puts a segment as it was, and expects its revision. Without them two filters that are stored at
    /// the same moment could form a cycle.
    pub(crate) fn revision_guards(&self) -> impl Iterator<Item = Write> + '_ {
        let guard = |stored: &Stored<Segment>| {
            Write::PutSegment(Box::new(stored.record.clone()), Expect::Revision(stored.revision))
        };
        self.reachable_segments.iter().map(guard)
    }
}

/// A filter that is to be checked, and what the checks depend on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SentFilter<'a> {
    /// The filter as the request gives it.
    pub(crate) value: &'a Value,
    /// JSON pointer to it in the request.
    pub(crate) pointer: &'a str,
    /// Purpose of the filter, a segment or an automation, which decides what it may refer to.
    pub(crate) purpose: Purpose,
    /// The segment whose filter it replaces; `None` where there is no such segment yet.
    pub(crate) segment: Option<SegmentId>,
    /// True if unknown members are ignored: `Prefer: handling=lenient`.
    pub(crate) lenient: bool,
    /// Caller that sent it. Without `pii:read` it may compare addresses as a whole only (contract section 2.4).
    pub(crate) caller: &'a Caller,
}

impl App {
    /// Checks a filter. Adds a violation for each fault, and answers `None` if there is one. Fails when the filter
    /// compares parts of addresses and the caller lacks `pii:read`.
    pub(crate) async fn judge_filter(
        &self,
        workspace: WorkspaceId,
        sent: SentFilter<'_>,
        violations: &mut Violations,
    ) -> Result<Option<CheckedFilter>, Error> {
        let SentFilter { value, pointer, purpose, segment, lenient, caller } = sent;
        if value.is_null() {
            violations.add(pointer, FieldCode::Required, "is required; {} is everyone");
            return Ok(None);
        }
        let mut found = Violations::new();
        let read = if lenient { parse_ignoring_unknown } else { parse };
        let Parsed { filter, leaves, references, ignored, needs_pii } = read(value, pointer, purpose, &mut found);
        if needs_pii {
            caller.needs(workspace, Scope::PiiRead)?;
        }
        let reachable_segments = self.reachable(workspace, &references).await?;
        let mut graph: SegmentGraph = reachable_segments.iter().map(|stored| stored.record.clone()).collect();
        if segment.is_some() {
            // Depth and length are checked for the segments that use this one, too, so all are needed. Those that were
            // read before stay as they are: `revision_guards` expects the revisions of these.
            for other in self.segment_graph(workspace).await?.into_segments() {
                if graph.get(other.id).is_none() {
                    graph.insert(other);
                }
            }
        }
        self.judge_references(workspace, &references, &mut found).await?;
        judge_segments(&graph, &references, segment, &mut found);
        let Some(filter) = filter.filter(|_| found.is_empty()) else {
            violations.merge(found);
            return Ok(None);
        };
        let filter = match &ignored[..] {
            [] => StoredFilter::new(value, filter),
            // The stored filter is read again strictly, so what was ignored must not be in it.
            ignored => StoredFilter::new(&without_members(value, pointer, ignored), filter),
        };
        if filter.json().len() > MAX_FILTER_BYTES {
            found.add(pointer, FieldCode::TooLarge, "a filter is at most 256 KiB of JSON");
        }
        let resolved = check_length_and_resolve(&mut graph, &filter, &sent, &references, &mut found);
        violations.merge(found);
        Ok(resolved.map(|resolved| CheckedFilter { filter, resolved, leaves, graph, reachable_segments }))
    }

    /// The segments that references lead to, directly or through others. Those that do not exist are left out, and
    /// reading ends at twice the segments that a workspace may have.
    async fn reachable(
        &self,
        workspace: WorkspaceId,
        references: &[(String, Reference)],
    ) -> Result<Vec<Stored<Segment>>, StoreError> {
        let direct = references.iter().filter_map(|(_, reference)| match reference {
            Reference::Segment(id) => Some(*id),
            _ => None,
        });
        let (mut waiting, mut seen, mut reached) = (direct.collect::<Vec<_>>(), HashSet::new(), Vec::new());
        while let Some(id) = waiting.pop() {
            if reached.len() <= 2 * MAX_SEGMENTS
                && seen.insert(id)
                && let Some(stored) = self.store().segment(workspace, id).await?
            {
                waiting.extend(named(stored.record.filter.tree()));
                reached.push(stored);
            }
        }
        Ok(reached)
    }

    /// Adds a violation for each reference to something that does not exist. References to segments are left to
    /// [`judge_segments`].
    async fn judge_references(
        &self,
        workspace: WorkspaceId,
        references: &[(String, Reference)],
        found: &mut Violations,
    ) -> Result<(), StoreError> {
        let is_segment = |reference: &Reference| matches!(reference, Reference::Segment(_));
        let others: Vec<_> = references.iter().filter(|(_, reference)| !is_segment(reference)).cloned().collect();
        for ResolvedDesignReference { pointer, reference, target } in self.find_named(workspace, &others).await? {
            let rule = match reference {
                _ if target != ReferenceTarget::Nothing => continue,
                Reference::List(_) => "no such list in this workspace",
                Reference::Campaign(_) => "no such campaign in this workspace",
                Reference::Automation(_) => "no such automation in this workspace",
                Reference::Template(_) => "no such template in this workspace",
                Reference::Segment(_) => "no such segment in this workspace",
            };
            found.add(pointer, FieldCode::NotFound, rule);
        }
        Ok(())
    }
}

/// A copy of a filter, which stands at `pointer` of the request, without the members at these pointers.
fn without_members(filter: &Value, pointer: &str, members: &[String]) -> Value {
    let mut rest = filter.clone();
    for member in members {
        let place = member.strip_prefix(pointer).and_then(|below| below.rsplit_once('/'));
        if let Some((object, name)) = place
            && let Some(Value::Object(object)) = rest.pointer_mut(object)
        {
            object.remove(&unescape(name));
        }
    }
    rest
}

/// Adds a violation for each reference to a segment that does not exist, that leads back to `own`, the segment whose
/// filter this is, or with which segments nest more than [`MAX_NESTING`] deep, those included that use `own`.
fn judge_segments(
    graph: &SegmentGraph,
    references: &[(String, Reference)],
    own: Option<SegmentId>,
    found: &mut Violations,
) {
    let above = own.map_or(0, |own| graph.height(own));
    for (pointer, reference) in references {
        let Reference::Segment(id) = reference else { continue };
        let Some(segment) = graph.get(*id) else {
            found.add(pointer.as_str(), FieldCode::NotFound, "no such segment in this workspace");
            continue;
        };
        let tree = segment.filter.tree();
        if own.is_some_and(|own| own == *id || graph.leads_to(tree, own)) {
            found.add(pointer.as_str(), FieldCode::Conflict, "this segment leads back to the one that is changed");
        } else if above + 1 + graph.depth(tree) > MAX_NESTING {
            found.add(pointer.as_str(), FieldCode::Conflict, "segments nest at most 5 deep");
        }
    }
}

/// Adds a violation when the filter, or that of a segment which uses it, has more than [`MAX_RESOLVED_LEAVES`]
/// conditions once dynamic segments are replaced. Answers the filter without dynamic segments if there is no violation
/// at all. Puts the filter into `graph` as that of its segment.
fn check_length_and_resolve(
    graph: &mut SegmentGraph,
    filter: &StoredFilter,
    sent: &SentFilter<'_>,
    references: &[(String, Reference)],
    found: &mut Violations,
) -> Option<Filter> {
    let rule = "has more than 1000 conditions with those of the segments that it names";
    let Ok(resolved) = graph.resolve(filter.tree()) else {
        let length_of = |id: SegmentId| {
            let resolved = graph.get(id).and_then(|segment| graph.resolve(segment.filter.tree()).ok());
            resolved.map_or(MAX_RESOLVED_LEAVES, |resolved| resolved.leaves().count())
        };
        // The fault is told of the first reference that does not fit any more after those before it.
        let mut length = 0;
        let culprit = references.iter().find(|(_, reference)| {
            length += if let Reference::Segment(id) = reference { 1 + length_of(*id) } else { 1 };
            length > MAX_RESOLVED_LEAVES
        });
        let last = references.iter().rfind(|(_, reference)| matches!(reference, Reference::Segment(_)));
        let pointer = culprit.or(last).map_or(sent.pointer, |(pointer, _)| pointer);
        found.add(pointer, FieldCode::TooManyItems, rule);
        return None;
    };
    let own = sent.segment.and_then(|own| graph.get(own)).cloned();
    if let Some(own) = own {
        let id = own.id;
        graph.insert(Segment { filter: filter.clone(), ..own });
        let too_long = |id: SegmentId| {
            let user = graph.get(id);
            user.is_some_and(|user| graph.resolve(user.filter.tree()) == Err(Unresolvable::TooLong))
        };
        let users: Vec<_> = graph.dependents(id).into_iter().chain(graph.users(id).map(|user| user.id)).collect();
        if users.into_iter().any(too_long) {
            found.add(sent.pointer, FieldCode::TooManyItems, "is too long for a segment that names this one");
            return None;
        }
    }
    found.is_empty().then_some(resolved)
}
