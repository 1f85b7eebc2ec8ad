//! Statistics of an automation's runs.

use std::collections::BTreeMap;

use http::{Method, StatusCode};
use messaging_core::domain::automation::{Automation, Design};
use messaging_core::input::Empty;
use messaging_core::ports::store::{AutomationCounts, NodeCounts};
use messaging_core::scope::{Access, Scope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AutomationPath, find};
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, Operation};

/// Numbers of an automation's runs. Refused entries are not counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct AutomationStats {
    /// Number of all runs.
    pub entered: u64,
    /// Number of runs that have not ended.
    pub active: u64,
    /// Number of runs that reached an end of the graph, or the goal.
    pub completed: u64,
    /// Number of runs that were ended before.
    pub exited: u64,
    /// Number of runs that could not continue.
    pub failed: u64,
    /// Statistics by node: the nodes of the current graph in its order, then those of former versions.
    pub nodes: Vec<NodeStats>,
}

/// Numbers of runs at a node, over all versions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct NodeStats {
    /// Id of the node.
    pub id: String,
    /// Number of times that runs reached the node.
    pub entered: u64,
    /// Number of runs that wait at the node.
    pub waiting: u64,
    /// Number of times that each branch was taken; empty if the node has no branches.
    pub branches: BTreeMap<String, u64>,
}

impl AutomationStats {
    fn of(automation: &Automation, counts: AutomationCounts) -> Self {
        let [active, waiting, completed, exited, failed] = counts.runs;
        let active = active + waiting;
        let nodes = nodes_of(&automation.design, counts.nodes);
        Self { entered: active + completed + exited + failed, active, completed, exited, failed, nodes }
    }
}

impl NodeStats {
    fn of(counts: NodeCounts) -> Self {
        let NodeCounts { node_id, entered, waiting, branches } = counts;
        Self { id: node_id, entered, waiting, branches: branches.into_iter().collect() }
    }
}

/// Returns the statistics of the nodes: those of the current graph in its order, then those of former versions.
pub(crate) fn nodes_of(design: &Design, mut known: Vec<NodeCounts>) -> Vec<NodeStats> {
    let mut nodes = Vec::new();
    for id in node_ids(design) {
        let place = known.iter().position(|node| node.node_id == id);
        let counts = place.map(|place| known.remove(place));
        nodes.push(counts.map_or_else(|| NodeStats { id, ..NodeStats::default() }, NodeStats::of));
    }
    nodes.extend(known.into_iter().map(NodeStats::of));
    nodes
}

/// Returns the ids of the nodes of the current graph.
fn node_ids(design: &Design) -> impl Iterator<Item = String> {
    let nodes = design.graph.get("nodes").and_then(Value::as_array);
    nodes.into_iter().flatten().filter_map(|node| Some(node["id"].as_str()?.to_owned()))
}

/// `GET /workspaces/{workspace_id}/automations/{id}/stats`
pub struct GetAutomationStats;

impl Operation for GetAutomationStats {
    const ID: &'static str = "getAutomationStats";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/automations/{id}/stats";
    const ACCESS: Access = Access::Scope(Scope::AutomationsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "automation stats";
    const SUMMARY: &'static str = "Count who entered an automation, and how far they came, by node and branch";
    type Path = AutomationPath;
    type Query = Empty;
    type Body = Empty;
    type Output = AutomationStats;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<AutomationStats, Error> {
        let automation = find(cx, call.path).await?.record;
        let counts = cx.store().automation_counts(automation.workspace_id, automation.id).await?;
        Ok(AutomationStats::of(&automation, counts))
    }
}
