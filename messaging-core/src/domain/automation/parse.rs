//! Parser from JSON to the typed trigger and graph; each fault is reported at its JSON Pointer.
//!
//! Contract sections 13.1, 13.2 and 13.4 "Checks". There are two kinds of faults: those that no automation may have,
//! not even a draft (types, unknown members, formats, ranges, names of branches), and those that keep an automation
//! from being active (missing members, ids of nothing, unreachable nodes, circles without a wait). Everything that can
//! be judged without looking anything up is judged here; the ids in the design are returned for
//! [`check`](super::check).

mod edges;
mod forms;
mod nodes;
mod reader;
mod trigger;

use serde_json::{Map, Value};

use self::forms::GraphForm;
use self::nodes::ReadNode;
use self::reader::{InDrafts, Reader};
use super::graph::{Graph, Node, Send};
use super::trigger::Trigger;
use super::{Design, ReEntry};
use crate::domain::segment::event;
use crate::domain::segment::parse::Reference;
use crate::violation::{At, FieldCode, Violations, unescape};

/// Maximum size of a trigger, and of a graph, in bytes of JSON. The contract is silent; every version is kept.
pub const MAX_DESIGN_BYTES: usize = 1 << 20;

/// Meaning of a complete design: its trigger and its graph as typed trees.
#[derive(Debug, Clone, PartialEq)]
pub struct AutomationPlan {
    /// Trigger: the event, change, date or call by which a contact enters.
    pub trigger: Trigger,
    /// Graph of the nodes that a contact goes through after it has entered.
    pub graph: Graph,
    /// Rule for contacts that have entered before.
    pub re_entry: ReEntry,
    /// See [`Design::masked`].
    pub masked: bool,
}

/// Result of parsing a design.
#[derive(Debug)]
pub struct Reading {
    /// Faults that no automation may have, not even a draft.
    pub shape: Violations,
    /// Other faults, which keep the automation from being active.
    pub gaps: Violations,
    /// The typed design; `None` when there is any fault.
    pub plan: Option<AutomationPlan>,
    /// Objects that the design refers to, each with its JSON Pointer; also when there are faults.
    pub references: Vec<(String, Reference)>,
    /// Texts of the design that are templates, each with its JSON Pointer.
    pub sources: Vec<(String, String)>,
    /// Web addresses that the design calls, each with its JSON Pointer.
    pub urls: Vec<(String, String)>,
    /// True where a filter compares an email or phone otherwise than by `eq`, `in` and `exists` (contract section 2.4).
    pub needs_pii: bool,
    /// Settings of the send nodes that could be read, each with the place of its node.
    pub sends: Vec<(usize, Send)>,
}

impl Design {
    /// Parses the design. Succeeds if it is complete, as one that was activated once is; otherwise returns all of its
    /// faults.
    pub fn parse(&self) -> Result<AutomationPlan, Violations> {
        let Reading { mut shape, gaps, plan, .. } = self.read();
        plan.ok_or_else(|| {
            shape.merge(gaps);
            shape
        })
    }

    /// Parses the design, complete or not.
    pub fn read(&self) -> Reading {
        let mut reader = Reader::default();
        let trigger = trigger::read(&mut reader, &self.trigger);
        let graph = read_graph(&mut reader, &self.graph);
        if self.re_entry_key.as_deref().is_some_and(|text| event::path(text).is_none()) {
            reader.fault("/re_entry_key", FieldCode::InvalidFormat, event::PATH_RULE);
        }
        for (pointer, part) in [("/trigger", &self.trigger), ("/graph", &self.graph)] {
            if !part.is_empty() && Value::Object(part.clone()).to_string().len() > MAX_DESIGN_BYTES {
                reader.fault(pointer, FieldCode::TooLarge, "is at most 1 MiB of JSON");
            }
        }
        let Reader { shape, gaps, references, sources, urls, needs_pii, sends } = reader;
        let plan = match (trigger, graph) {
            (Some(trigger), Some(graph)) if shape.is_empty() && gaps.is_empty() => {
                Some(AutomationPlan { trigger, graph, re_entry: self.re_entry, masked: self.masked })
            }
            _ => None,
        };
        Reading { shape, gaps, plan, references, sources, urls, needs_pii, sends }
    }

    /// Returns the design without unknown members: `Prefer: handling=lenient` (contract section 1.1). A second group
    /// (`and`, `or`, `not`) beside one stays, because without it the filter would match other contacts.
    pub fn without_unknown_members(mut self) -> Self {
        loop {
            let before = self.size();
            let found = self.read().shape;
            for violation in found.as_slice().iter().filter(|violation| violation.code == FieldCode::UnknownField) {
                if let At::Pointer(pointer) = &violation.at {
                    self.remove(pointer);
                }
            }
            // Only the first hundred faults are reported at a time.
            if self.size() == before {
                return self;
            }
        }
    }

    fn size(&self) -> usize {
        [&self.trigger, &self.graph].map(|part| Value::Object(part.clone()).to_string().len()).iter().sum()
    }

    fn remove(&mut self, pointer: &str) {
        let Some((object, name)) = pointer.rsplit_once('/') else { return };
        let name = unescape(name);
        if ["and", "or", "not"].contains(&name.as_str()) {
            return;
        }
        for (root, part) in [("/trigger", &mut self.trigger), ("/graph", &mut self.graph)] {
            let Some(below) = object.strip_prefix(root) else { continue };
            if below.is_empty() {
                part.remove(&name);
                continue;
            }
            let mut whole = Value::Object(std::mem::take(part));
            if let Some(Value::Object(object)) = whole.pointer_mut(below) {
                object.remove(&name);
            }
            if let Value::Object(rest) = whole {
                *part = rest;
            }
        }
    }
}

fn read_graph(reader: &mut Reader, sent: &Map<String, Value>) -> Option<Graph> {
    let form = reader.form::<GraphForm>(Value::Object(sent.clone()), "/graph", InDrafts::Optional).unwrap_or_default();
    let is_unreadable = form.nodes.is_none() && sent.get("nodes").is_some_and(|nodes| !nodes.is_null());
    let sent_nodes = form.nodes.unwrap_or_default();
    if sent_nodes.is_empty() && !is_unreadable {
        reader.gap("/graph/nodes", FieldCode::Required, "at least one node is required");
    }
    let nodes: Vec<_> = sent_nodes.iter().enumerate().map(|(index, node)| nodes::read(reader, index, node)).collect();
    for (index, node) in nodes.iter().enumerate() {
        let is_taken = |node: &ReadNode| nodes[..index].iter().flatten().any(|earlier| earlier.id == node.id);
        if node.as_ref().is_some_and(is_taken) {
            reader.fault(format!("/graph/nodes/{index}/id"), FieldCode::Duplicate, "another node has this id");
        }
    }
    let exit_conditions: Vec<_> = form
        .exit_conditions
        .iter()
        .flatten()
        .enumerate()
        .map(|(index, condition)| reader.condition(condition, &format!("/graph/exit_conditions/{index}")))
        .collect();
    let goal = form.goal.map(|goal| reader.condition(&goal, "/graph/goal"));
    if is_unreadable {
        return None;
    }
    let branches = edges::read(reader, &nodes, form.edges.as_deref().unwrap_or_default());
    let entry = edges::entry(reader, form.entry.as_deref(), &nodes, &branches)?;
    edges::check_reachable(reader, entry, &branches);
    edges::check_cycles(reader, &nodes, &branches);
    let nodes = nodes
        .into_iter()
        .zip(branches)
        .map(|(node, branches)| node.and_then(|node| Some(Node { id: node.id, kind: node.kind?, branches })));
    Some(Graph {
        nodes: nodes.collect::<Option<_>>()?,
        entry,
        exit_conditions: exit_conditions.into_iter().collect::<Option<_>>()?,
        goal: match goal {
            Some(goal) => Some(goal?),
            None => None,
        },
    })
}

#[cfg(test)]
mod tests;
