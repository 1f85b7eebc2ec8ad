//! A simulation equals the server's run: random graphs with random histories, once through `simulate` and once through
//! the product with its clock. The seeds are fixed.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use messaging_core::domain::automation::SHARDS;
use messaging_core::ports::fetch::{Fetch, FetchError, FetchRequest, Fetched, UrlFault};
use messaging_core::time::Timestamp;
use messaging_engine::services::Visitor;
use serde_json::{Value, json};

use super::Journeys;
use crate::support::Product;

const SEEDS: u64 = 60;
const SPAN: u64 = 3 * 24 * 3600;

/// Answers every call.
#[derive(Debug)]
struct Answers;

#[async_trait]
impl Fetch for Answers {
    fn check(&self, _: &str) -> Result<(), UrlFault> {
        Ok(())
    }

    async fn fetch(&self, request: FetchRequest) -> Result<Fetched, FetchError> {
        let (headers, body) = (http::HeaderMap::new(), bytes::Bytes::new());
        Ok(Fetched { url: request.url, status: http::StatusCode::OK, headers, body, truncated: false })
    }
}

/// The generator `SplitMix64`.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn is(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }
}

fn filter(dice: &mut Dice) -> Value {
    match dice.below(4) {
        0 => json!({"type": "tag", "op": "has_any", "values": ["vip"]}),
        1 => json!({"type": "event", "name": "a"}),
        2 => json!({"and": [{"type": "message", "event": "open"}, {"not": {"type": "event", "name": "b"}}]}),
        _ => json!({"or": [{"type": "attribute", "key": "n", "op": "eq", "value_from": "event.n"},
            {"type": "event", "name": "b", "count": {"op": "gte", "value": 2}}]}),
    }
}

/// A node, and its branches.
fn node(dice: &mut Dice, template: &str) -> (Value, Vec<&'static str>) {
    let next = vec!["next"];
    match dice.below(12) {
        0 | 1 => {
            let mut config = json!({"template_id": template});
            if dice.is(3) {
                config["quiet_hours"] = json!({"start": "21:00", "end": "07:00"});
            }
            if dice.is(4) {
                config["frequency_cap"] = json!({"per_day": 1});
            }
            (json!({"kind": "send", "config": config}), next)
        }
        2 => (json!({"kind": "wait", "config": {"duration": {"value": 1 + dice.below(90), "unit": "minutes"}}}), next),
        3 => (json!({"kind": "wait", "config": {"until": {"time": "09:30"}}}), next),
        4 => (json!({"kind": "wait", "config": {"until_attribute": {"key": "due"}}}), next),
        5 | 6 => {
            let on = match dice.below(3) {
                0 => json!({"type": "event", "name": "a",
                    "where": [{"property": "n", "op": "eq", "value_from": "event.n"}]}),
                1 => json!({"type": "event", "name": "b"}),
                _ => json!({"type": "message", "event": "open"}),
            };
            let timeout = json!({"value": 1 + dice.below(300), "unit": "minutes"});
            (json!({"kind": "wait_event", "config": {"on": on, "timeout": timeout}}), vec!["event", "timeout"])
        }
        7 => (json!({"kind": "condition", "config": {"filter": filter(dice)}}), vec!["yes", "no"]),
        8 => {
            let branches = json!([{"name": "l", "weight": 1}, {"name": "r", "weight": 2.5}]);
            (json!({"kind": "split", "config": {"branches": branches}}), vec!["l", "r"])
        }
        9 => (json!({"kind": "update_contact", "config": {"timezone": "Asia/Tokyo", "attributes": {"n": 1}}}), next),
        10 => (json!({"kind": "add_tag", "config": {"tag": "vip"}}), next),
        _ => (json!({"kind": "webhook", "config": {"url": "https://example.org/"}}), vec!["next", "error"]),
    }
}

/// A graph of some nodes, most edges of which lead forward; unreachable nodes are left out.
fn graph(dice: &mut Dice, template: &str) -> Value {
    let count = 2 + usize::try_from(dice.below(8)).unwrap();
    let (mut nodes, mut edges) = (Vec::new(), Vec::new());
    let mut is_reached = vec![false; count];
    is_reached[0] = true;
    for place in 0..count {
        let (mut node, branches) = node(dice, template);
        node["id"] = json!(format!("n{place}"));
        nodes.push(node);
        for branch in branches {
            let step = usize::try_from(dice.below(2)).unwrap();
            let to = if dice.is(12) { place.saturating_sub(step + 1) } else { place + 1 + step };
            if to < count && !dice.is(8) {
                edges.push((place, to, branch));
            }
        }
    }
    for _ in 0..count {
        for (from, to, _) in &edges {
            is_reached[*to] |= is_reached[*from];
        }
    }
    let nodes: Vec<_> = nodes.into_iter().zip(&is_reached).filter(|(_, kept)| **kept).map(|(node, _)| node).collect();
    let edges = edges.into_iter().filter(|(from, ..)| is_reached[*from]);
    let edges =
        edges.map(|(from, to, branch)| json!({"from": format!("n{from}"), "to": format!("n{to}"), "branch": branch}));
    let mut graph = json!({"entry": "n0", "nodes": nodes, "edges": edges.collect::<Vec<_>>()});
    if dice.is(4) {
        graph["goal"] = filter(dice);
    }
    if dice.is(4) {
        graph["exit_conditions"] = json!([filter(dice)]);
    }
    graph
}

/// Something that happens: an event with its property, or an open of a node's mail.
enum Happens {
    Event(&'static str, u64),
    Open(String),
}

fn history(dice: &mut Dice, graph: &Value) -> Vec<(u64, Happens)> {
    let sends: Vec<_> = graph["nodes"].as_array().unwrap().iter().filter(|node| node["kind"] == "send").collect();
    let mut all: Vec<_> = (0..=dice.below(9))
        .map(|place| {
            // In whole minutes, so that some happen when something is due.
            let at = if place == 0 { dice.below(60) } else { dice.below(SPAN / 60) } * 60;
            let happens = match dice.below(5) {
                _ if place == 0 => Happens::Event("start", dice.below(2)),
                0 => Happens::Event("start", dice.below(2)),
                1 | 2 => Happens::Event("a", dice.below(2)),
                3 if !sends.is_empty() => {
                    let node = &sends[usize::try_from(dice.below(sends.len() as u64)).unwrap()];
                    Happens::Open(node["id"].as_str().unwrap().to_owned())
                }
                _ => Happens::Event("b", 0),
            };
            (at, happens)
        })
        .collect();
    all.sort_by_key(|(at, _)| *at);
    all
}

/// Steps of runs as text, in the order of the runs, without ids.
fn told<'s>(steps: impl IntoIterator<Item = &'s Value>) -> Vec<String> {
    let step = |step: &Value| {
        let mut step = step.clone();
        let members = step.as_object_mut().unwrap();
        members.remove("run");
        for id in ["message_id", "event_id"] {
            if let Some(id) = members["detail"].get_mut(id) {
                *id = json!("some");
            }
        }
        step.to_string()
    };
    steps.into_iter().map(step).collect()
}

impl Journeys {
    /// Advances the clock of the product from one due time to the next.
    async fn go_to(&self, automation: &str, until: Timestamp) {
        let id = automation.parse().unwrap();
        loop {
            let mut next = until;
            for shard in 0..SHARDS {
                let due = self.store.next_run_due(self.workspace, id, shard).await.unwrap();
                next = next.min(due.unwrap_or(until));
            }
            let now = self.app.now();
            if next >= until {
                self.clock.advance(until.since(now));
                return;
            }
            // Jobs that are put back for a moment are due after that.
            self.clock.advance(next.since(now).max(Duration::from_millis(200)).min(until.since(now)));
            self.work().await;
            if self.app.now() >= until {
                return;
            }
        }
    }

    async fn open_mail(&self, steps: &[(String, Value)], node: &str) {
        let sent = steps.iter().filter(|(_, step)| step["outcome"] == "sent" && step["node_id"] == node);
        let Some((_, step)) = sent.max_by_key(|(_, step)| step["detail"]["message_id"].as_str().unwrap().to_owned())
        else {
            return;
        };
        let visitor = Visitor {
            ip: std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST),
            user_agent: Some("Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0".to_owned()),
            is_head: false,
            is_prefetch: false,
        };
        let message = step["detail"]["message_id"].as_str().unwrap().parse().unwrap();
        self.app.record_open(self.workspace, message, &visitor).await.unwrap();
    }

    /// The steps of all runs in the order of entry, each with its run.
    async fn all_steps(&self, id: &str) -> Vec<(String, Value)> {
        let mut runs = self.runs(id).await;
        runs.reverse();
        runs.sort_by_key(|run| run["entered_at"].as_str().unwrap().to_owned());
        let mut steps = Vec::new();
        for run in &runs {
            let name = run["id"].as_str().unwrap();
            let report = self.get(&self.caller, &self.at(&format!("automations/{id}/runs/{name}"))).await;
            let own = report["history"].as_array().unwrap();
            steps.extend(own.iter().map(|step| (name.to_owned(), step.clone())));
        }
        steps
    }
}

#[tokio::test]
async fn a_simulation_equals_the_run_of_the_server() {
    let product = Journeys { product: Product::undurable(Arc::new(Answers)).await };
    let template = product.template("Hello").await;
    let (mut compared, mut longest) = (0, 0);
    for seed in 0..SEEDS {
        let mut dice = Dice(seed);
        let graph = graph(&mut dice, &template);
        let history = history(&mut dice, &graph);
        let name = format!("seed-{seed}");
        let attributes = json!({"due": "2026-02-02"});
        let contact = product.contact(&name, json!({"attributes": attributes, "timezone": "Europe/Berlin"})).await;
        let trigger = json!({"kind": "event", "config": {"name": "start"}});
        let id = product.draft(trigger, graph.clone(), json!({"re_entry": "always"})).await;
        let at = product.app.now() + Duration::from_mins(1);
        let after = |seconds: u64| at + Duration::from_secs(seconds);
        let until = after(SPAN + 60);
        let events: Vec<_> = history
            .iter()
            .map(|(seconds, happens)| match happens {
                Happens::Event(name, n) => {
                    json!({"name": name, "occurred_at": after(*seconds), "properties": {"n": n}})
                }
                Happens::Open(node) => json!({"message": "open", "node_id": node, "at": after(*seconds)}),
            })
            .collect();
        let body = json!({"contact_id": contact, "at": at, "until": until, "events": events});
        let simulated = product.simulation(&id, body).await;
        if simulated.status == 422 && simulated["error"]["code"] == "automation_invalid" {
            // A cycle without a wait.
            continue;
        }
        assert_eq!(simulated.summary(), "200", "seed {seed}: {:?}", simulated.body);
        // The real run.
        product.clock.advance(at.since(product.app.now()));
        product.act(&id, "activate").await;
        product.work().await;
        for (seconds, happens) in &history {
            product.go_to(&id, after(*seconds)).await;
            match happens {
                Happens::Event(event, n) => product.event(event, &name, json!({"n": n})).await,
                Happens::Open(node) => product.open_mail(&product.all_steps(&id).await, node).await,
            }
            product.work().await;
        }
        product.go_to(&id, until).await;
        product.work().await;
        let real = product.all_steps(&id).await;
        let mut by_run: Vec<&Value> = simulated["steps"].as_array().unwrap().iter().collect();
        by_run.sort_by_key(|step| step["run"].as_u64());
        let (simulated_steps, real_steps) = (told(by_run), told(real.iter().map(|(_, step)| step)));
        assert_eq!(simulated_steps, real_steps, "seed {seed}: {graph} {events:?}");
        product.act(&id, "pause").await;
        compared += 1;
        longest = longest.max(real_steps.len());
    }
    assert!(compared > SEEDS / 2 && longest > 10, "{compared} graphs, at most {longest} steps");
}
