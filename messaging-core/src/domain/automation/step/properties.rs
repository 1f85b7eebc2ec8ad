//! Property test: every run of a valid graph ends, waits or fails. Random graphs that may be activated get random
//! histories; the seeds are fixed.

use serde_json::{Value, json};

use super::*;
use crate::domain::audience::product_event::ProductEvent;
use crate::domain::automation::Design;
use crate::domain::automation::parse::AutomationPlan;
use crate::domain::automation::step::tests::{around, run};
use crate::domain::segment::filter::MessageEventKind;
use crate::domain::segment::matching::MessageFact;
use crate::ids::Id as _;

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
            {"type": "tag", "op": "has_none", "values": ["x"]}]}),
    }
}

/// Returns a node of a random kind, and its branches.
fn node(dice: &mut Dice) -> (Value, Vec<&'static str>) {
    let next = vec!["next"];
    match dice.below(11) {
        0 => (json!({"kind": "send", "config": {"template_id": "tpl_01JB3Q8Z5N6W7X8Y9ZABCDEFGH"}}), next),
        1 => (json!({"kind": "wait", "config": {"duration": {"value": 1 + dice.below(90), "unit": "seconds"}}}), next),
        2 => (json!({"kind": "wait", "config": {"until": {"time": "09:30", "weekdays": [1, 6]}}}), next),
        3 => (json!({"kind": "wait", "config": {"until_attribute": {"key": "due"}}}), next),
        4 => {
            let on = if dice.is(2) {
                json!({"type": "event", "name": "a"})
            } else {
                json!({"type": "message", "event": "open"})
            };
            let timeout = json!({"value": 1 + dice.below(3), "unit": "minutes"});
            (json!({"kind": "wait_event", "config": {"on": on, "timeout": timeout}}), vec!["event", "timeout"])
        }
        5 => (json!({"kind": "condition", "config": {"filter": filter(dice)}}), vec!["yes", "no"]),
        6 => {
            let branches = json!([{"name": "l", "weight": 1}, {"name": "r", "weight": 2.5}]);
            (json!({"kind": "split", "config": {"branches": branches}}), vec!["l", "r"])
        }
        7 => (json!({"kind": "update_contact", "config": {"timezone": "Asia/Tokyo"}}), next),
        8 => (json!({"kind": "add_tag", "config": {"tag": "vip"}}), next),
        9 => {
            let config = json!({"url": "https://example.org/", "method": "POST"});
            (json!({"kind": "webhook", "config": config}), vec!["next", "error"])
        }
        _ => (json!({"kind": "exit"}), vec![]),
    }
}

/// Returns a graph of some nodes, most edges of which lead forward; unreachable nodes are left out.
fn graph(dice: &mut Dice) -> Value {
    let count = 1 + dice.below(9);
    let (mut nodes, mut edges) = (Vec::new(), Vec::new());
    let mut is_reached = vec![false; usize::try_from(count).unwrap()];
    is_reached[0] = true;
    for place in 0..count {
        let (mut node, branches) = node(dice);
        node["id"] = json!(format!("n{place}"));
        nodes.push(node);
        for branch in branches {
            let to = if dice.is(3) { dice.below(count) } else { place + 1 + dice.below(2) };
            if to < count && !dice.is(8) {
                edges.push((place, to, branch));
            }
        }
    }
    for _ in 0..count {
        for (from, to, _) in &edges {
            let [from, to] = [*from, *to].map(|place| usize::try_from(place).unwrap());
            is_reached[to] |= is_reached[from];
        }
    }
    let kept = |place: u64| is_reached[usize::try_from(place).unwrap()];
    let nodes: Vec<_> = (0..count).zip(nodes).filter(|(place, _)| kept(*place)).map(|(_, node)| node).collect();
    let edges = edges
        .into_iter()
        .filter(|(from, ..)| kept(*from))
        .map(|(from, to, branch)| json!({"from": format!("n{from}"), "to": format!("n{to}"), "branch": branch}));
    let mut graph = json!({"entry": "n0", "nodes": nodes, "edges": edges.collect::<Vec<_>>()});
    if dice.is(3) {
        graph["goal"] = filter(dice);
    }
    if dice.is(3) {
        graph["exit_conditions"] = json!([filter(dice), filter(dice)]);
    }
    graph
}

fn plan(dice: &mut Dice) -> Option<AutomationPlan> {
    let trigger = object(json!({"kind": "manual"}));
    let design = Design { trigger, graph: object(graph(dice)), ..Design::default() };
    design.parse().ok()
}

fn note(dice: &mut Dice, at: Timestamp) -> (Note, Option<Happened>) {
    let id = EventId::from_bytes([u8::try_from(dice.below(256)).unwrap(); 16]);
    let contact_id = run().contact_id;
    let (cause, happened) = match dice.below(3) {
        0 => (Cause::Changed, None),
        1 => {
            let name = if dice.is(2) { "a" } else { "b" };
            let event = ProductEvent {
                id,
                workspace_id: run().workspace_id,
                contact_id,
                name: name.to_owned(),
                occurred_at: at,
                properties: Map::new().into(),
                unique_id: None,
            };
            (Cause::Event(id), Some(Happened::Event(Box::new(event))))
        }
        _ => {
            let fact = MessageFact {
                event: MessageEventKind::Open,
                at,
                is_machine: dice.is(4),
                url: None,
                channel: crate::domain::channel::Channel::Email,
                campaign_id: None,
                automation_id: None,
                template_id: None,
            };
            let message_id = "msg_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap();
            (Cause::Message { event_id: id, message_id }, Some(Happened::Message(Box::new(fact))))
        }
    };
    (Note { contact_id, cause, at, depth: 0, may_enter: true }, happened)
}

fn acted(dice: &mut Dice, kind: &NodeKind, moment: Timestamp) -> NodeOutcome {
    if dice.is(40) {
        return NodeOutcome::Failed("it cannot".to_owned());
    }
    match kind {
        NodeKind::Webhook(_) => NodeOutcome::Calling,
        NodeKind::Send(_) => match dice.below(4) {
            0 => NodeOutcome::Skipped(SkipReason::NoConsent),
            1 => {
                let until = moment + std::time::Duration::from_secs(1 + dice.below(90_000));
                let reason = if dice.is(2) { HoldReason::QuietHours } else { HoldReason::FrequencyCap };
                NodeOutcome::Held { reason, until }
            }
            _ => NodeOutcome::Sent("msg_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap()),
        },
        _ => NodeOutcome::Changed,
    }
}

/// Does one walk, whose questions are answered by chance; returns how often it asked.
fn walk(
    dice: &mut Dice,
    plan: &AutomationPlan,
    run: Run,
    input: Input<'_>,
    attributes: &Map<String, Value>,
) -> (Walked, usize) {
    let mut walk = Walk::new(&plan.graph, run, input, around());
    let (mut need, mut asked) = (walk.next(attributes), 0);
    loop {
        need = match need {
            Need::Nothing => break,
            Need::Verdicts(questions) => {
                // Most questions are answered with no: few goals are met.
                let verdicts: Vec<_> = questions.iter().map(|_| dice.is(6)).collect();
                walk.answer(&verdicts, attributes)
            }
            Need::Act(node) => {
                let acted = acted(dice, &walk.node(node).kind, walk.moment());
                walk.acted(acted, attributes)
            }
        };
        asked += 1;
        assert!(asked <= 2 * plan.graph.nodes.len() + 2, "a walk does not come to its end");
    }
    (walk.end_of(), asked)
}

#[test]
fn every_run_of_a_graph_that_may_be_activated_ends_waits_or_fails() {
    let (mut tried, mut ends) = (0, std::collections::BTreeMap::new());
    for seed in 0..1500 {
        let mut dice = Dice(seed);
        let Some(plan) = plan(&mut dice) else { continue };
        tried += 1;
        let attributes = object(json!({"due": "2026-02-03", "n": 1}));
        let (mut run, mut now, mut told) = (run(), run().entered_at, Vec::new());
        let mut rounds = 0;
        while run.status.is_open() {
            rounds += 1;
            assert!(rounds < 20_000, "seed {seed}: a run goes on for ever");
            let before = run.clone();
            if run.held == Some(Held::Calling) {
                now = now + std::time::Duration::from_secs(1 + dice.below(40));
                let end = if dice.is(2) { CallEnd::Answered(204) } else { CallEnd::Failed("timeout".to_owned()) };
                run = Run { held: Some(Held::Called(end)), due_at: Some(now), ..run };
            }
            let due = run.due_at.expect("whoever is open and waits for nobody has a time");
            let is_noted = run.node_id.is_some() && rounds < 500 && dice.is(2);
            let later = std::time::Duration::from_millis(dice.below(30_000));
            let noted = note(&mut dice, now + later);
            let (walked, _) = if is_noted && !goes_before(&run, noted.0.at, None) {
                now = noted.0.at;
                walk(&mut dice, &plan, run, Input::Note(&noted.0, noted.1.as_ref()), &attributes)
            } else {
                now = now.max(due);
                walk(&mut dice, &plan, run, Input::Due, &attributes)
            };
            run = walked.run;
            let arrivals = u32::try_from(walked.entered.len()).unwrap();
            let is_too_far = run.exit_reason.as_deref() == Some("steps");
            assert_eq!(before.steps + arrivals + u32::from(is_too_far), run.steps, "seed {seed}");
            assert!(run.steps <= MAX_STEPS + 1);
            match run.status {
                RunStatus::Waiting => match &run.held {
                    Some(Held::Calling) => assert_eq!(run.due_at, None),
                    _ => assert!(run.due_at.is_some_and(|due| due >= before.arrived_at), "seed {seed}"),
                },
                RunStatus::Active => assert!(run.due_at.is_some(), "seed {seed}"),
                RunStatus::Completed | RunStatus::Exited | RunStatus::Failed => {
                    assert!(run.ended_at.is_some() && run.due_at.is_none() && run.held.is_none(), "seed {seed}");
                }
            }
            told.extend(walked.steps);
        }
        assert!(told.windows(2).all(|pair| pair[0].at <= pair[1].at), "seed {seed}: history goes back in time");
        assert_eq!(told.first().map(|step| step.outcome), Some(StepOutcome::Entered));
        let end = (run.status, run.exit_reason.clone());
        let known = [None, Some("goal"), Some("exit_condition"), Some("exit"), Some("steps"), Some("node_error")];
        assert!(known.contains(&run.exit_reason.as_deref()), "{end:?}");
        *ends.entry(format!("{end:?}")).or_insert(0) += 1;
    }
    assert!(tried >= 200, "only {tried} graphs may be activated");
    // All ends are met, so what was tried is not all of one kind.
    assert!(ends.len() >= 6, "{ends:?}");
}
