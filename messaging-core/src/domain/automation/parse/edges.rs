//! Parser of edges, and checks that every node can be reached and every cycle has a wait.
//!
//! Contract sections 13.2 and 13.4, "Cycles" and "Checks".

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde_json::Value;

use super::forms::EdgeForm;
use super::nodes::ReadNode;
use super::reader::{InDrafts, Reader};
use crate::domain::automation::graph::{Delay, DelayUnit, NodeIndex, NodeKind, Wait};
use crate::violation::FieldCode;

/// Branch of an edge that names no branch.
const NEXT: &str = "next";
/// Minimum wait on each cycle, in seconds.
const LEAST_WAIT: u64 = 60;

/// Target node of each branch of a node.
pub(super) type Branches = BTreeMap<String, NodeIndex>;

/// Reads the edges between nodes, and returns the valid branches of each node.
pub(super) fn read(reader: &mut Reader, nodes: &[Option<ReadNode>], edges: &[Value]) -> Vec<Branches> {
    let place = |id: &str| nodes.iter().position(|node| node.as_ref().is_some_and(|node| node.id == id));
    // If the id of a node cannot be read, unknown ids are not reported: an edge may name that node.
    let is_complete = nodes.iter().all(Option::is_some);
    let mut branches = vec![Branches::new(); nodes.len()];
    for (index, edge) in edges.iter().enumerate() {
        let pointer = format!("/graph/edges/{index}");
        let Some(edge) = reader.form::<EdgeForm>(edge.clone(), &pointer, InDrafts::Required) else { continue };
        let (from, to) = (place(&edge.from), place(&edge.to));
        for (name, found) in [("from", from), ("to", to)] {
            if found.is_none() && is_complete {
                reader.fault(format!("{pointer}/{name}"), FieldCode::NotFound, "no node has this id");
            }
        }
        let branch = edge.branch.unwrap_or_else(|| NEXT.to_owned());
        let Some((from, node)) = from.and_then(|from| Some((from, nodes[from].as_ref()?))) else { continue };
        if node.branches.as_ref().is_some_and(|known| !known.contains(&branch)) {
            let known = node.branches.as_deref().unwrap_or_default().join(", ");
            let rule = if known.is_empty() {
                "this node has no branches".to_owned()
            } else {
                format!("must be one of {known}")
            };
            reader.fault(format!("{pointer}/branch"), FieldCode::UnknownValue, &rule);
            continue;
        }
        match branches[from].entry(branch) {
            Entry::Occupied(_) => {
                let rule = "another edge leads on from this branch";
                reader.fault(format!("{pointer}/branch"), FieldCode::Duplicate, rule);
            }
            Entry::Vacant(free) => {
                to.map(|to| free.insert(to));
            }
        }
    }
    branches
}

/// Returns the node at which contacts begin: the named one, or else the only one to which no edge leads.
pub(super) fn entry(
    reader: &mut Reader,
    named: Option<&str>,
    nodes: &[Option<ReadNode>],
    branches: &[Branches],
) -> Option<NodeIndex> {
    if let Some(id) = named.filter(|id| !id.is_empty()) {
        let found = nodes.iter().position(|node| node.as_ref().is_some_and(|node| node.id == id));
        if found.is_none() && nodes.iter().all(Option::is_some) {
            reader.fault("/graph/entry", FieldCode::NotFound, "no node has this id");
        }
        return found;
    }
    if nodes.is_empty() {
        return None;
    }
    let is_led_to = |node: &NodeIndex| branches.iter().any(|branches| branches.values().any(|to| to == node));
    let mut begins = (0..nodes.len()).filter(|node| !is_led_to(node));
    let (first, second) = (begins.next(), begins.next());
    if first.is_none() || second.is_some() {
        let rule = "is required, because not exactly one node is without an edge that leads to it";
        reader.gap("/graph/entry", FieldCode::Required, rule);
        return None;
    }
    first
}

/// Reports the nodes that no run can reach.
pub(super) fn check_reachable(reader: &mut Reader, entry: NodeIndex, branches: &[Branches]) {
    let mut reached = vec![false; branches.len()];
    let mut waiting = vec![entry];
    while let Some(node) = waiting.pop() {
        if !std::mem::replace(&mut reached[node], true) {
            waiting.extend(branches[node].values());
        }
    }
    for (index, _) in reached.iter().enumerate().filter(|(_, reached)| !**reached) {
        let rule = "no way leads here from the entry";
        reader.gap(format!("/graph/nodes/{index}"), FieldCode::Conflict, rule);
    }
}

/// Reports a cycle without a wait.
pub(super) fn check_cycles(reader: &mut Reader, nodes: &[Option<ReadNode>], branches: &[Branches]) {
    // Only cycles of branches that take no time let a run continue without end.
    let hurries = |node: NodeIndex, branch: &str| {
        let kind = nodes[node].as_ref().and_then(|node| node.kind.as_ref());
        match kind {
            Some(NodeKind::Wait(Wait::Duration(delay))) => !lasts(*delay),
            Some(NodeKind::WaitEvent { timeout, .. }) => branch != "timeout" || !lasts(*timeout),
            // Waiting until a time of day takes time. An incomplete node was reported and is not judged.
            Some(NodeKind::Wait(Wait::Until { .. })) | None => false,
            Some(_) => true,
        }
    };
    let next = |node: NodeIndex| {
        let hurried = branches[node].iter().filter(move |(branch, _)| hurries(node, branch));
        hurried.map(|(_, to)| *to).collect::<Vec<_>>()
    };
    if has_cycle(branches.len(), &next) {
        let rule = "whoever goes in a circle waits on the way: at least 60 seconds, or until a time of day";
        reader.gap("/graph/edges", FieldCode::Conflict, rule);
    }
}

/// Returns true if a delay is long enough for the wait of a cycle.
fn lasts(delay: Delay) -> bool {
    let seconds = match delay.unit {
        DelayUnit::Seconds => 1,
        DelayUnit::Minutes | DelayUnit::Hours | DelayUnit::Days | DelayUnit::Weeks | DelayUnit::Months => LEAST_WAIT,
    };
    u64::from(delay.value) * seconds >= LEAST_WAIT
}

/// Returns true if the graph has a cycle: if nodes to which no edge leads are removed one after another, some remain.
fn has_cycle(count: usize, next: &dyn Fn(NodeIndex) -> Vec<NodeIndex>) -> bool {
    let mut incoming = vec![0_usize; count];
    for node in 0..count {
        for to in next(node) {
            incoming[to] += 1;
        }
    }
    let mut free: Vec<_> = (0..count).filter(|node| incoming[*node] == 0).collect();
    let mut taken = 0;
    while let Some(node) = free.pop() {
        taken += 1;
        for to in next(node) {
            incoming[to] -= 1;
            if incoming[to] == 0 {
                free.push(to);
            }
        }
    }
    taken < count
}
