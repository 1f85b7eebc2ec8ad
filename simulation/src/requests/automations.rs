//! Requests of a run with automations: activating, pausing and calling them, and events that enter contacts.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Call, Planned};
use crate::dice::Dice;
use crate::fixture::Fixture;

/// The events that enter contacts, in the order of the automations.
pub(crate) const EVENTS: [&str; 2] = ["signup", "visit"];

/// The requests of a run of `span` seconds.
pub(crate) fn plan(dice: &mut Dice, fixture: &Fixture, span: u64) -> Vec<Planned> {
    let mut planned = Vec::new();
    let mut add = |at: Duration, call: Call, is_doubled: bool| {
        let key = Some(format!("automation-{}", planned.len()));
        planned.push(Planned { at, call, key, is_doubled, repeat_after: None });
    };
    for id in &fixture.automations {
        let at = if dice.chance(700) { Duration::ZERO } else { dice.span(0, span) };
        add(at, Call::new("activateAutomation", &[("id", id)], Value::Null), false);
    }
    for number in 0..4 + dice.index(8) {
        let call = event(dice, fixture, number);
        add(dice.span(0, span), call, dice.chance(150));
    }
    let (steady, paused) = (&fixture.automations[0], &fixture.automations[1]);
    for _ in 0..dice.index(4) {
        let operation = *dice.pick(&["pauseAutomation", "activateAutomation"]);
        add(dice.span(0, span + 400), Call::new(operation, &[("id", paused)], Value::Null), dice.chance(150));
    }
    for _ in 0..dice.index(3) {
        let id = *dice.pick(&[&steady, &paused]);
        let body = json!({"contact_id": dice.pick(&fixture.contacts)});
        add(dice.span(0, span), Call::new("triggerAutomation", &[("id", id)], body), dice.chance(150));
    }
    planned
}

fn event(dice: &mut Dice, fixture: &Fixture, number: usize) -> Call {
    let name = *dice.pick(&EVENTS);
    let contact = dice.index(fixture.contacts.len() + 2);
    let body = json!({"name": name, "contact": {"external_id": format!("u-{contact}")},
        "properties": {"number": number}, "unique_id": format!("{name}-{number}")});
    Call::new("sendEvent", &[], body)
}
