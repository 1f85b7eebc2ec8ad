//! Edits of an automation while runs are in progress: every run continues with the version that it entered.

use serde_json::{Value, json};

use super::{HOUR, Journeys, MINUTE, ends, on_event, waits};

/// Histories that are tried.
const HISTORIES: u64 = 12;
/// Random steps of each history: edits, events, tags, and time that passes.
const STEPS: usize = 14;

/// Repeatable chance: xorshift.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// A graph that waits for an event, then for a time, and then checks a tag.
fn travelled() -> Value {
    json!({"nodes": [
        {"id": "e", "kind": "wait_event", "config": {"on": {"type": "event", "name": "order"},
            "timeout": {"value": 4, "unit": "hours"}}},
        {"id": "w", "kind": "wait", "config": {"duration": {"value": 3, "unit": "hours"}}},
        {"id": "c", "kind": "condition", "config": {"filter": {"type": "tag", "op": "has_any", "values": ["vip"]}}},
        {"id": "y", "kind": "exit", "config": {"reason": "vip"}}, {"id": "n", "kind": "exit", "config": {"reason": "none"}}],
        "edges": [{"from": "e", "to": "w", "branch": "event"}, {"from": "e", "to": "c", "branch": "timeout"},
            {"from": "w", "to": "c"}, {"from": "c", "to": "y", "branch": "yes"}, {"from": "c", "to": "n", "branch": "no"}]})
}

/// Something else that the automation becomes.
fn edit(chance: &mut Chance) -> Value {
    match chance.below(6) {
        0 => json!({"graph": waits()}),
        1 => json!({"graph": ends()}),
        2 => {
            // The same nodes with other settings.
            let mut graph = travelled();
            graph["nodes"][0]["config"]["on"]["name"] = json!("visit");
            graph["nodes"][1]["config"]["duration"]["value"] = json!(1);
            graph["exit_conditions"] = json!([{"type": "tag", "op": "has_any", "values": ["vip"]}]);
            json!({"graph": graph})
        }
        3 => json!({"trigger": on_event("visit")}),
        4 => json!({"re_entry": "always", "name": "b"}),
        _ => json!({"trigger": {"kind": "manual", "config": {}}, "graph": ends()}),
    }
}

#[tokio::test]
async fn what_a_run_of_an_older_version_needs_cannot_be_deleted() {
    let journeys = Journeys::start().await;
    journeys.contact("ann", json!({})).await;
    let [old, new] = [journeys.template("old").await, journeys.template("new").await];
    let graph = |template: &str| {
        json!({"nodes": [
            {"id": "w", "kind": "wait", "config": {"duration": {"value": 1, "unit": "hours"}}},
            {"id": "s", "kind": "send", "config": {"template_id": template}}], "edges": [{"from": "w", "to": "s"}]})
    };
    let id = journeys.active(on_event("go"), graph(&old), json!({})).await;
    journeys.event("go", "ann", json!({})).await;
    journeys.work().await;
    journeys.edit(&id, json!({"graph": graph(&new)})).await;
    let path = journeys.at(&format!("templates/{old}"));
    for action in ["pause", "activate"] {
        let refused = journeys.delete(&journeys.caller, &path).await;
        assert_eq!(refused.summary(), "409 in_use");
        assert_eq!(refused["error"]["details"], json!({"by": [id]}));
        journeys.act(&id, action).await;
    }
    journeys.pass(2 * HOUR).await;
    assert_eq!(journeys.mail_to("ann"), ["old"]);
    assert_eq!(journeys.delete(&journeys.caller, &path).await.summary(), "204");
}

#[tokio::test]
async fn random_edits_move_nobody_who_is_on_the_way() {
    for history in 1..=HISTORIES {
        let mut chance = Chance(history.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let journeys = Journeys::start().await;
        let ann = journeys.contact("ann", json!({})).await;
        let [edited, left] = [
            journeys.active(on_event("cart"), travelled(), json!({})).await,
            journeys.active(on_event("cart"), travelled(), json!({})).await,
        ];
        journeys.event("cart", "ann", json!({})).await;
        journeys.work().await;
        let first = journeys.runs(&edited).await.remove(0);
        let mut done = Vec::new();
        for _ in 0..STEPS {
            match chance.below(6) {
                0..3 => {
                    let edit = edit(&mut chance);
                    journeys.edit(&edited, edit.clone()).await;
                    done.push(edit.to_string());
                }
                3 => {
                    let name = ["order", "visit"][usize::try_from(chance.below(2)).unwrap()];
                    journeys.event(name, "ann", json!({})).await;
                    done.push(name.to_owned());
                }
                4 => {
                    journeys
                        .change(&ann, json!({"tags": if chance.below(2) == 0 { json!(["vip"]) } else { json!([]) }}))
                        .await;
                    done.push("tags".to_owned());
                }
                _ => {
                    journeys.pass(HOUR).await;
                    done.push("an hour".to_owned());
                }
            }
            if chance.below(2) == 0 {
                journeys.pass(MINUTE).await;
            }
        }
        for _ in 0..8 {
            journeys.pass(HOUR).await;
        }
        let reference = journeys.runs(&left).await.remove(0);
        let of_edited = journeys.history(&edited, &first).await;
        assert_eq!(of_edited, journeys.history(&left, &reference).await, "history {history}: {done:#?}");
        assert!(of_edited.contains("exited"), "it came to its end: {of_edited}");
    }
}
