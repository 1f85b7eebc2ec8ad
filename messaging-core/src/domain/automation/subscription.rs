//! Events that a design listens for, so that a store keeps notes of them, and the objects that it needs.

use std::collections::BTreeSet;

use serde_json::json;

use super::graph::{Awaited, Graph, NodeKind};
use super::note::{EntrySubscription, EventSubscription, RunSubscription};
use super::parse::{AutomationPlan, Reading};
use super::trigger::{Trigger, TriggerKind};
use crate::domain::campaign;
use crate::domain::segment::filter::{Condition, Filter, Leaf, PropertyTest};
use crate::domain::segment::parse::{Purpose, Reference, parse};
use crate::violation::Violations;

impl AutomationPlan {
    /// Returns the events that the automation listens for while it is active.
    pub fn subscription(&self) -> EventSubscription {
        EventSubscription { entry: Some(self.trigger.subscription()), runs: self.graph.subscription() }
    }
}

impl Trigger {
    /// Returns the events and changes by which a contact may enter, so that a store keeps notes of them.
    fn subscription(&self) -> EntrySubscription {
        match &self.kind {
            TriggerKind::Event { name, conditions, .. } if conditions.is_empty() => {
                EntrySubscription::Event(name.clone())
            }
            TriggerKind::Event { name, conditions, .. } => {
                EntrySubscription::EventWhere(name.clone(), conditions.clone())
            }
            TriggerKind::SegmentEnter { segment_id, include_existing } => {
                EntrySubscription::SegmentEnter { segment_id: *segment_id, include_existing: *include_existing }
            }
            TriggerKind::SegmentExit(segment_id) => EntrySubscription::SegmentExit(*segment_id),
            TriggerKind::ListAdded(list_id) => EntrySubscription::ListAdded(*list_id),
            TriggerKind::ContactCreated => EntrySubscription::ContactCreated,
            TriggerKind::MessageEvent { event, campaign_id, template_id } => {
                EntrySubscription::MessageEvent(*event, *campaign_id, *template_id)
            }
            TriggerKind::Date(_) => EntrySubscription::Date,
            TriggerKind::Manual => EntrySubscription::Nothing,
        }
    }
}

impl EntrySubscription {
    /// Returns the tests that the properties of a product event must pass; empty for any other kind.
    pub fn tests(&self) -> Vec<PropertyTest> {
        let Self::EventWhere(name, conditions) = self else { return Vec::new() };
        let leaf = json!({"type": "event", "name": name, "where": conditions});
        match parse(&leaf, "", Purpose::Automation, &mut Violations::new()).filter {
            Some(Filter::Where(Condition::Leaf(Leaf::Event(leaf)))) => leaf.properties,
            _ => Vec::new(),
        }
    }
}

impl Graph {
    /// Returns the events by which its runs may continue or end.
    pub fn subscription(&self) -> RunSubscription {
        let awaited = self.nodes.iter().filter_map(|node| match &node.kind {
            NodeKind::WaitEvent { on, .. } => Some(on),
            _ => None,
        });
        let (mut events, mut messages) = (BTreeSet::new(), false);
        for on in awaited {
            match on {
                Awaited::Event(leaf) => drop(events.insert(leaf.name.clone())),
                Awaited::Message(_) => messages = true,
            }
        }
        RunSubscription {
            everything: self.goal.is_some() || !self.exit_conditions.is_empty(),
            events: events.into_iter().collect(),
            messages,
        }
    }
}

impl Reading {
    /// Returns the lists, segments and templates that the automation needs while it is active, each once.
    pub fn holds(&self) -> Vec<campaign::Reference> {
        let held = self.references.iter().filter_map(|(_, reference)| match reference {
            Reference::List(id) => Some(campaign::Reference::List(*id)),
            Reference::Segment(id) => Some(campaign::Reference::Segment(*id)),
            Reference::Template(id) => Some(campaign::Reference::Template(*id)),
            // Not needed: events of a deleted campaign or automation still count.
            Reference::Campaign(_) | Reference::Automation(_) => None,
        });
        held.collect::<BTreeSet<_>>().into_iter().collect()
    }
}
