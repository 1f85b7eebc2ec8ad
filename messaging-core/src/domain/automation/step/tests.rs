use std::sync::LazyLock;

use jiff::tz::TimeZone;
use serde_json::json;

use super::*;
use crate::domain::audience::product_event::ProductEvent;
use crate::domain::automation::Design;
use crate::domain::automation::entering::Entrance;
use crate::domain::automation::parse::AutomationPlan;
use crate::ids::Id as _;

static UTC: LazyLock<TimeZone> = LazyLock::new(|| TimeZone::UTC);

pub(super) fn around() -> Surroundings<'static> {
    Surroundings { activated_at: None, zones: Zones { contact: &UTC }, zone: &UTC }
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A run that has just been made.
pub(super) fn run() -> Run {
    let entrance = Entrance {
        id: "run_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
        workspace_id: "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
        automation_id: "aut_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
        version: 1,
        contact_id: "con_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
        at: at("2026-01-31T09:15:00Z"),
        event: object(json!({"cart": "c-1", "n": 1})),
        entry_event: None,
        key: None,
    };
    entrance.run(1)
}

fn plan(graph: Value) -> AutomationPlan {
    let trigger = object(json!({"kind": "manual"}));
    let design = Design { trigger, graph: object(graph), ..Design::default() };
    design.parse().unwrap_or_else(|faults| panic!("{faults:?}"))
}

/// A run whose questions are answered by the test.
struct Conversation {
    plan: AutomationPlan,
    run: Run,
    activated_at: Option<Timestamp>,
    told: Vec<String>,
}

/// Answer of a test to a walk.
enum Reply {
    Verdicts(Vec<bool>),
    NodeOutcome(NodeOutcome),
}

impl Conversation {
    fn new(graph: Value) -> Self {
        Self { plan: plan(graph), run: run(), activated_at: None, told: Vec::new() }
    }

    fn bring_on(&mut self, input: Input<'_>, replies: Vec<Reply>) -> Walked {
        let around = Surroundings { activated_at: self.activated_at, ..around() };
        let nothing = Map::new();
        let mut walk = Walk::new(&self.plan.graph, self.run.clone(), input, around);
        let mut need = walk.next(&nothing);
        for reply in replies {
            need = match (need, reply) {
                (Need::Verdicts(questions), Reply::Verdicts(verdicts)) => {
                    assert_eq!(questions.len(), verdicts.len(), "{questions:?}");
                    walk.answer(&verdicts, &nothing)
                }
                (Need::Act(_), Reply::NodeOutcome(acted)) => walk.acted(acted, &nothing),
                (need, _) => panic!("another reply is wanted: {need:?}"),
            };
        }
        assert_eq!(need, Need::Nothing);
        let walked = walk.end_of();
        self.run = walked.run.clone();
        self.told.extend(walked.steps.iter().map(line));
        walked
    }

    fn due(&mut self, replies: Vec<Reply>) -> Walked {
        self.bring_on(Input::Due, replies)
    }

    fn event(&mut self, name: &str, properties: Value, accepted: &str, replies: Vec<Reply>) -> Walked {
        let id = EventId::from_bytes([7; 16]);
        let note = Note {
            contact_id: self.run.contact_id,
            cause: Cause::Event(id),
            at: at(accepted),
            depth: 0,
            may_enter: true,
        };
        let event = ProductEvent {
            id,
            workspace_id: self.run.workspace_id,
            contact_id: self.run.contact_id,
            name: name.to_owned(),
            occurred_at: note.at,
            properties: object(properties).into(),
            unique_id: None,
        };
        self.bring_on(Input::Note(&note, Some(&Happened::Event(Box::new(event)))), replies)
    }

    /// Checks the steps since the last check.
    #[track_caller]
    fn check(&mut self, expected: &[&str]) {
        assert_eq!(std::mem::take(&mut self.told), expected);
    }
}

/// A step as a line: time of day, node, outcome, branch, reason, detail.
fn line(step: &RunStep) -> String {
    let time = step.at.to_string()[11..19].to_owned();
    let outcome = serde_json::to_value(step.outcome).unwrap();
    let mut line = format!("{time} {} {}", step.node_id.as_deref().unwrap_or("-"), outcome.as_str().unwrap());
    for (name, text) in [("branch", &step.branch), ("reason", &step.reason)] {
        if let Some(text) = text {
            line = format!("{line} {name}={text}");
        }
    }
    if !step.detail.is_empty() {
        line = format!("{line} {}", Value::Object(step.detail.clone()));
    }
    line
}

fn acted(acted: NodeOutcome) -> Reply {
    Reply::NodeOutcome(acted)
}

fn verdicts(verdicts: &[bool]) -> Reply {
    Reply::Verdicts(verdicts.to_vec())
}

const SEND: &str = "tpl_01JB3Q8Z5N6W7X8Y9ZABCDEFGH";

fn sent() -> Reply {
    acted(NodeOutcome::Sent("msg_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap()))
}

/// The abandoned cart of contract section 13.
fn cart() -> Value {
    json!({"entry": "w", "nodes": [
        {"id": "w", "kind": "wait_event", "config": {"timeout": {"value": 2, "unit": "hours"}, "on": {"type": "event",
            "name": "order_placed", "where": [{"property": "cart", "op": "eq", "value_from": "event.cart"}]}}},
        {"id": "s", "kind": "send", "config": {"template_id": SEND}}, {"id": "x", "kind": "exit"}],
        "edges": [{"from": "w", "to": "x", "branch": "event"}, {"from": "w", "to": "s", "branch": "timeout"},
            {"from": "s", "to": "x"}]})
}

#[test]
fn a_cart_that_is_bought_sends_nothing() {
    let mut talk = Conversation::new(cart());
    talk.due(vec![]);
    talk.check(&["09:15:00 - entered", r#"09:15:00 w waiting {"until":"2026-01-31T11:15:00.000Z"}"#]);
    assert_eq!((talk.run.status, talk.run.due_at), (RunStatus::Waiting, Some(at("2026-01-31T11:15:00Z"))));
    // Another cart, and something that was accepted before the run came here.
    assert!(!talk.event("order_placed", json!({"cart": "c-2"}), "2026-01-31T10:00:00Z", vec![]).is_changed);
    assert!(!talk.event("order_placed", json!({"cart": "c-1"}), "2026-01-31T09:15:00Z", vec![]).is_changed);
    let walked = talk.event("order_placed", json!({"cart": "c-1"}), "2026-01-31T10:00:00Z", vec![]);
    talk.check(&[
        r#"10:00:00 w continued branch=event {"event_id":"evt_70W3GE1R70W3GE1R70W3GE1R70"}"#
            .replace("70W3GE1R70W3GE1R70W3GE1R70", &EventId::from_bytes([7; 16]).to_string()[4..])
            .as_str(),
        "10:00:00 x exited reason=exit",
    ]);
    assert_eq!((talk.run.status, talk.run.exit_reason.as_deref()), (RunStatus::Exited, Some("exit")));
    assert_eq!(walked.branches, [("w".to_owned(), "event".to_owned())]);
    assert_eq!(walked.entered, ["x"]);
    assert_eq!(talk.run.node_id.as_deref(), Some("x"));
}

#[test]
fn a_cart_that_is_left_sends() {
    let mut talk = Conversation::new(cart());
    talk.due(vec![]);
    talk.told.clear();
    let walked = talk.due(vec![sent()]);
    talk.check(&[
        "11:15:00 w continued branch=timeout",
        r#"11:15:00 s sent {"message_id":"msg_01JB3Q8Z5N6W7X8Y9ZABCDEFGH"}"#,
        "11:15:00 x exited reason=exit",
    ]);
    assert_eq!(walked.messages.len(), 1);
}

#[test]
fn an_event_at_the_due_instant_comes_before_the_timer_and_a_later_one_after_it() {
    let mut talk = Conversation::new(cart());
    talk.due(vec![]);
    let due = at("2026-01-31T11:15:00Z");
    assert!(!goes_before(&talk.run, due, None));
    assert!(goes_before(&talk.run, due + std::time::Duration::from_millis(1), None));
    // A run held up by a pause continues at the activation, so events until then come first.
    assert!(!goes_before(&talk.run, at("2026-01-31T12:00:00Z"), Some(at("2026-01-31T12:00:00Z"))));
    let under_way = Run { status: RunStatus::Active, due_at: Some(due), ..talk.run.clone() };
    assert!(goes_before(&under_way, due, None));
}

#[test]
fn after_a_pause_things_happen_at_the_activation() {
    let mut talk = Conversation::new(cart());
    talk.due(vec![]);
    talk.told.clear();
    talk.activated_at = Some(at("2026-01-31T15:00:00Z"));
    talk.event("order_placed", json!({"cart": "c-1"}), "2026-01-31T10:00:00Z", vec![]);
    assert_eq!(talk.told.last().map(String::as_str), Some("15:00:00 x exited reason=exit"));
}

#[test]
fn goal_and_exits_are_tested_on_arrival_and_on_what_happens_the_goal_first() {
    let graph = json!({"nodes": [{"id": "w", "kind": "wait", "config": {"duration": {"value": 1, "unit": "days"}}},
        {"id": "t", "kind": "add_tag", "config": {"tag": "late"}}], "edges": [{"from": "w", "to": "t"}],
        "goal": {"type": "event", "name": "bought"},
        "exit_conditions": [{"type": "tag", "op": "has_any", "values": ["gone"]}]});
    let mut talk = Conversation::new(graph.clone());
    talk.due(vec![verdicts(&[true, true])]);
    talk.check(&["09:15:00 - entered", "09:15:00 w completed reason=goal"]);
    assert_eq!((talk.run.status, talk.run.steps), (RunStatus::Completed, 1));

    let mut talk = Conversation::new(graph.clone());
    talk.due(vec![verdicts(&[false, false])]);
    talk.told.clear();
    assert!(!talk.event("seen", json!({}), "2026-01-31T10:00:00Z", vec![verdicts(&[false, false])]).is_changed);
    talk.event("seen", json!({}), "2026-01-31T10:00:00Z", vec![verdicts(&[false, true])]);
    talk.check(&["10:00:00 w exited reason=exit_condition"]);
    assert_eq!(talk.run.exit_reason.as_deref(), Some("exit_condition"));

    // Leaving a node asks nothing, arriving at the next does.
    let mut talk = Conversation::new(graph);
    talk.due(vec![verdicts(&[false, false])]);
    talk.told.clear();
    talk.due(vec![verdicts(&[false, false]), acted(NodeOutcome::Changed)]);
    talk.check(&["09:15:00 w continued", "09:15:00 t changed", "09:15:00 t completed"]);
    assert_eq!((talk.run.exit_reason.as_deref(), talk.run.node_id.as_deref()), (None, Some("t")));
}

#[test]
fn goals_count_since_the_entry_unless_they_say_otherwise() {
    let graph = json!({"nodes": [{"id": "x", "kind": "exit", "config": {"reason": "done"}}],
        "edges": [], "goal": {"or": [{"type": "event", "name": "a"}, {"type": "event", "name": "a",
            "within": {"last": {"value": 1, "unit": "days"}}}]}});
    let plan = plan(graph);
    let mut walk = Walk::new(&plan.graph, run(), Input::Due, around());
    let Need::Verdicts(questions) = walk.next(&Map::new()) else { panic!("nothing is asked") };
    let within = |question: &Question| match &question.filter {
        Filter::Where(Condition::Leaf(Leaf::Event(leaf))) => leaf.within,
        other => panic!("{other:?}"),
    };
    assert_eq!(within(&questions[0]), Some(Within::SinceEntry));
    assert!(matches!(within(&questions[1]), Some(Within::Last(_))));
}

#[test]
fn a_condition_tells_its_leaves() {
    let graph = json!({"entry": "c", "nodes": [{"id": "c", "kind": "condition", "config": {"filter":
        {"and": [{"type": "tag", "op": "has_any", "values": ["a"]}, {"not": {"type": "event", "name": "e"}}]}}},
        {"id": "x", "kind": "exit", "config": {"reason": "done"}}], "edges": [{"from": "c", "to": "x", "branch": "yes"}]});
    let mut talk = Conversation::new(graph.clone());
    talk.due(vec![verdicts(&[true, false])]);
    let leaves = r#"{"leaves":[{"held":true,"pointer":"/filter/and/0"},{"held":false,"pointer":"/filter/and/1/not"}]}"#;
    talk.check(&[
        "09:15:00 - entered",
        &format!("09:15:00 c branched branch=yes {leaves}"),
        "09:15:00 x exited reason=done",
    ]);
    let mut talk = Conversation::new(graph);
    talk.due(vec![verdicts(&[false, false])]);
    assert_eq!((talk.run.status, talk.run.exit_reason.as_deref()), (RunStatus::Completed, None));
}

#[test]
fn a_send_that_has_to_wait_is_tested_again_and_tells_why() {
    let graph = json!({"nodes": [{"id": "s", "kind": "send", "config": {"template_id": SEND}}], "edges": [],
        "goal": {"type": "event", "name": "bought"}});
    let held = |reason, until| acted(NodeOutcome::Held { reason, until: at(until) });
    let mut talk = Conversation::new(graph.clone());
    talk.due(vec![verdicts(&[false]), held(HoldReason::QuietHours, "2026-01-31T10:00:00Z")]);
    talk.due(vec![verdicts(&[false]), held(HoldReason::FrequencyCap, "2026-01-31T11:00:00Z")]);
    talk.due(vec![verdicts(&[false]), held(HoldReason::FrequencyCap, "2026-01-31T12:00:00Z")]);
    let since = at("2026-01-31T10:00:00Z");
    assert_eq!(talk.run.held, Some(Held::Sending { reason: HoldReason::FrequencyCap, since }));
    talk.due(vec![verdicts(&[false]), acted(NodeOutcome::Skipped(SkipReason::FrequencyCap))]);
    talk.check(&[
        "09:15:00 - entered",
        r#"09:15:00 s waiting reason=quiet_hours {"until":"2026-01-31T10:00:00.000Z"}"#,
        r#"10:00:00 s waiting reason=frequency_cap {"until":"2026-01-31T11:00:00.000Z"}"#,
        "12:00:00 s skipped reason=frequency_cap",
        "12:00:00 s completed",
    ]);
    assert_eq!(talk.run.steps, 1);

    let mut talk = Conversation::new(graph);
    talk.due(vec![verdicts(&[false]), held(HoldReason::QuietHours, "2026-01-31T10:00:00Z")]);
    talk.due(vec![verdicts(&[true])]);
    assert_eq!(talk.run.exit_reason.as_deref(), Some("goal"));
}

#[test]
fn a_call_goes_on_by_its_outcome() {
    let graph = json!({"entry": "h", "nodes": [{"id": "h", "kind": "webhook", "config": {"url": "https://example.org/", "method": "POST"}},
        {"id": "x", "kind": "exit"}], "edges": [{"from": "h", "to": "x", "branch": "error"}]});
    let ended = |end: CallEnd| {
        let mut talk = Conversation::new(graph.clone());
        talk.due(vec![acted(NodeOutcome::Calling)]);
        assert_eq!((talk.run.due_at, &talk.run.held), (None, &Some(Held::Calling)));
        assert!(!talk.due(vec![]).is_changed);
        talk.told.clear();
        talk.run.held = Some(Held::Called(end));
        talk.run.due_at = Some(at("2026-01-31T09:15:35Z"));
        talk.due(vec![]);
        (talk.told, talk.run.exit_reason)
    };
    let (told, reason) = ended(CallEnd::Answered(201));
    assert_eq!(told, [r#"09:15:35 h called branch=next {"status":201}"#, "09:15:35 h completed"]);
    assert_eq!(reason, None);
    let (told, reason) = ended(CallEnd::Failed("timeout".to_owned()));
    assert_eq!(told, [r#"09:15:35 h called branch=error {"error":"timeout"}"#, "09:15:35 x exited reason=exit"]);
    assert_eq!(reason.as_deref(), Some("exit"));
    let (told, reason) = ended(CallEnd::Broken("no".to_owned()));
    assert_eq!(told, [r#"09:15:35 h failed reason=node_error {"message":"no"}"#]);
    assert_eq!(reason.as_deref(), Some("node_error"));
}

#[test]
fn what_was_changed_is_committed_before_it_is_asked_about() {
    let graph = json!({"entry": "t", "nodes": [{"id": "t", "kind": "add_tag", "config": {"tag": "a"}},
        {"id": "c", "kind": "condition", "config": {"filter": {"type": "tag", "op": "has_any", "values": ["a"]}}}],
        "edges": [{"from": "t", "to": "c"}]});
    let mut talk = Conversation::new(graph);
    talk.due(vec![acted(NodeOutcome::Changed)]);
    assert_eq!((talk.run.status, talk.run.node_id.as_deref()), (RunStatus::Active, Some("c")));
    assert_eq!((talk.run.due_at, talk.run.steps), (Some(at("2026-01-31T09:15:00Z")), 2));
    talk.due(vec![verdicts(&[true])]);
    // The node was reached once.
    assert_eq!((talk.run.status, talk.run.steps), (RunStatus::Completed, 2));
}

#[test]
fn the_thousand_and_first_arrival_fails_the_run() {
    let graph = json!({"entry": "w", "nodes": [{"id": "w", "kind": "wait", "config": {"duration": {"value": 60, "unit": "seconds"}}}],
        "edges": [{"from": "w", "to": "w"}]});
    let mut talk = Conversation::new(graph);
    let mut rounds = 0;
    while talk.run.status.is_open() {
        talk.due(vec![]);
        rounds += 1;
    }
    assert_eq!((rounds, talk.run.steps), (1001, 1001));
    assert_eq!((talk.run.status, talk.run.exit_reason.as_deref()), (RunStatus::Failed, Some("steps")));
    assert!(talk.told.last().unwrap().ends_with("w failed reason=steps"));
}

#[test]
fn a_split_tells_its_draw() {
    let graph = json!({"entry": "s", "nodes": [{"id": "s", "kind": "split",
        "config": {"branches": [{"name": "a", "weight": 1}, {"name": "b", "weight": 1}]}}], "edges": []});
    let mut talk = Conversation::new(graph);
    let walked = talk.due(vec![]);
    let drawn = draw::draw(talk.run.automation_id, "s", talk.run.contact_id);
    let branch = if drawn < 0.5 { "a" } else { "b" };
    assert_eq!(walked.steps[1].branch.as_deref(), Some(branch));
    assert_eq!(walked.steps[1].detail, object(json!({"draw": drawn})));
    assert_eq!(walked.branches, [("s".to_owned(), branch.to_owned())]);
}

#[test]
fn a_wait_for_a_date_that_is_not_there_goes_on_at_once() {
    let graph =
        json!({"nodes": [{"id": "w", "kind": "wait", "config": {"until_attribute": {"key": "renews"}}}], "edges": []});
    let mut talk = Conversation::new(graph);
    talk.due(vec![]);
    talk.check(&["09:15:00 - entered", "09:15:00 w continued reason=missing", "09:15:00 w completed"]);
}

#[test]
fn a_node_that_cannot_do_its_work_fails_the_run() {
    let graph = json!({"nodes": [{"id": "t", "kind": "add_tag", "config": {"tag": "{{ event.cart }}"}}], "edges": []});
    let mut talk = Conversation::new(graph);
    talk.due(vec![acted(NodeOutcome::Failed("it is too long".to_owned()))]);
    talk.check(&["09:15:00 - entered", r#"09:15:00 t failed reason=node_error {"message":"it is too long"}"#]);
    assert_eq!((talk.run.status, talk.run.exit_reason.as_deref()), (RunStatus::Failed, Some("node_error")));
    assert!(!talk.due(vec![]).is_changed, "what has ended does not go on");
}
