//! The requests of a run. To add an operation: a line in `action` that makes its call.

pub(crate) mod automations;

use std::time::Duration;

use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::fixture::Fixture;

/// Domains of recipients: `d0.test` to `d3.test`.
pub(crate) const DOMAINS: usize = 4;

/// A request and the way it is made.
#[derive(Debug, Clone)]
pub(crate) struct Planned {
    /// Time since the beginning at which it is made.
    pub(crate) at: Duration,
    pub(crate) call: Call,
    /// The Idempotency-Key; without one a request whose outcome is unknown is not repeated.
    pub(crate) key: Option<String>,
    /// True if it is made twice at the same time.
    pub(crate) is_doubled: bool,
    /// Time after its success at which it is made again.
    pub(crate) repeat_after: Option<Duration>,
}

/// A call of an operation.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// The id of the operation.
    pub(crate) operation: &'static str,
    /// The parameters of its path, without the workspace.
    pub(crate) path: Vec<(&'static str, String)>,
    pub(crate) body: Value,
    /// Index of the contact that the call erases.
    pub(crate) erases: Option<usize>,
    /// Recipients of the message that it sends.
    pub(crate) recipients: Vec<String>,
    /// Names of product events, each of which is used once.
    pub(crate) events: Vec<String>,
    /// A file that is uploaded once it was announced, and the number of its rows.
    pub(crate) file: Option<(String, u64)>,
}

impl Call {
    pub(crate) fn new(operation: &'static str, path: &[(&'static str, &str)], body: Value) -> Self {
        let path = path.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Self { operation, path, body, erases: None, recipients: Vec::new(), events: Vec::new(), file: None }
    }
}

/// The requests of a run of `span` seconds.
pub(crate) fn plan(dice: &mut Dice, fixture: &Fixture, has_campaigns: bool, count: usize, span: u64) -> Vec<Planned> {
    let mut planned: Vec<_> = (0..count)
        .map(|number| {
            let mut call = action(dice, fixture, number);
            if !has_campaigns && call.operation.ends_with("Campaign") {
                call = Call::new("getContact", &[("id", dice.pick(&fixture.contacts).as_str())], Value::Null);
            }
            // A request that only reads needs no key.
            let has_key = dice.chance(700) && !call.operation.starts_with("get");
            Planned {
                at: dice.span(0, span),
                call,
                key: has_key.then(|| format!("key-{number}")),
                is_doubled: has_key && dice.chance(150),
                repeat_after: (has_key && dice.chance(300)).then(|| dice.span(0, 300)),
            }
        })
        .collect();
    planned.sort_by_key(|request| request.at);
    planned
}

fn action(dice: &mut Dice, fixture: &Fixture, number: usize) -> Call {
    let contact = dice.index(fixture.contacts.len());
    let other = dice.index(fixture.contacts.len());
    let list = dice.pick(&fixture.lists).clone();
    let segment = dice.pick(&fixture.segments).clone();
    let webhook = dice.pick(&fixture.webhooks).clone();
    let (id, other_id) = (fixture.contacts[contact].clone(), fixture.contacts[other].clone());
    match dice.below(100) {
        0..35 => send(dice, number),
        35..45 => campaign(dice, fixture),
        45..52 => Call::new("upsertContact", &[], contact_body(dice, fixture)),
        52..56 => {
            let contacts: Vec<_> = (0..=dice.index(6)).map(|_| contact_body(dice, fixture)).collect();
            Call::new("bulkUpsertContacts", &[], json!({"contacts": contacts}))
        }
        56..60 => {
            let plan = *dice.pick(&["free", "pro"]);
            Call::new("updateContact", &[("id", &id)], json!({"attributes": {"plan": plan}, "tags": tags(dice)}))
        }
        60..63 => Call { erases: Some(contact), ..Call::new("deleteContact", &[("id", &id)], Value::Null) },
        63..66 => Call::new("mergeContacts", &[], json!({"primary_id": id, "duplicate_id": other_id})),
        66..74 => {
            let ids: Vec<_> = (0..=dice.index(4)).map(|_| dice.pick(&fixture.contacts).clone()).collect();
            Call::new("addListContacts", &[("id", &list)], json!({"contact_ids": ids}))
        }
        74..77 => Call::new("removeListContact", &[("id", &list), ("contact_id", &id)], Value::Null),
        77 => Call::new("createList", &[], json!({"name": format!("List {number}")})),
        78 if dice.chance(500) => import(dice, number),
        78 => Call::new("deleteList", &[("id", &list)], Value::Null),
        79 if dice.chance(300) => import(dice, number),
        79 => Call::new("createSegment", &[], json!({"name": format!("Segment {number}"), "filter": filter(dice)})),
        80 => Call::new("updateSegment", &[("id", &segment)], json!({"filter": filter(dice)})),
        81 => Call::new("recalculateSegment", &[("id", &segment)], Value::Null),
        82..87 => {
            let name = format!("event_{number}");
            Call { events: vec![name.clone()], ..Call::new("sendEvent", &[], event(dice, fixture, &name)) }
        }
        87..90 => {
            let names: Vec<_> = (0..=dice.index(5)).map(|index| format!("event_{number}_{index}")).collect();
            let events: Vec<_> = names.iter().map(|name| event(dice, fixture, name)).collect();
            Call { events: names, ..Call::new("sendEvents", &[], json!({"events": events})) }
        }
        90..93 => Call::new(
            "createSuppression",
            &[],
            json!({"channel": "email", "address": address(dice), "reason": "manual"}),
        ),
        93..95 => Call::new("pauseWebhook", &[("id", &webhook)], Value::Null),
        95..98 => Call::new("resumeWebhook", &[("id", &webhook)], Value::Null),
        98 => Call::new("updateList", &[("id", &list)], json!({"name": format!("Renamed {number}")})),
        _ => Call::new("getContact", &[("id", &id)], Value::Null),
    }
}

fn campaign(dice: &mut Dice, fixture: &Fixture) -> Call {
    let id = dice.pick(&fixture.campaigns).clone();
    match dice.below(10) {
        0..6 => Call::new("scheduleCampaign", &[("id", &id)], json!({"send_now": true})),
        6..9 => Call::new("pauseCampaign", &[("id", &id)], Value::Null),
        _ => Call::new("cancelCampaign", &[("id", &id)], Value::Null),
    }
}

fn send(dice: &mut Dice, number: usize) -> Call {
    let to = address(dice);
    let mut recipients = vec![to.clone()];
    let mut body = json!({"channel": "email", "to": to, "subject": "s", "text": "t", "metadata": {"request": number}});
    for (member, most, rarity) in [("cc", 3, 300), ("bcc", 2, 150)] {
        if dice.chance(rarity) {
            let copies: Vec<_> = (0..=dice.index(most)).map(|_| address(dice)).collect();
            recipients.extend(copies.iter().cloned());
            body[member] = json!(copies);
        }
    }
    recipients.sort();
    recipients.dedup();
    Call { recipients, ..Call::new("sendMessage", &[], body) }
}

/// A file of contacts who are in no other request. Few have more rows than one commit takes.
fn import(dice: &mut Dice, number: usize) -> Call {
    let rows = if dice.chance(60) { 1000 + dice.below(1500) } else { 1 + dice.below(60) };
    let lines = (0..rows).map(|row| format!("import-{number}-{row},{}\n", if row % 2 == 0 { "free" } else { "pro" }));
    let file = "external_id,plan\n".to_owned() + &lines.collect::<String>();
    let sha256: String = digest(&SHA256, file.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let body = json!({"filename": "contacts.csv", "size_bytes": file.len(), "sha256": sha256});
    Call { file: Some((file, rows)), ..Call::new("createImport", &[], body) }
}

/// `p0@d0.test` to `p4@d3.test`; the first ones are addresses of contacts.
fn address(dice: &mut Dice) -> String {
    format!("p{}@d{}.test", dice.below(5), dice.index(DOMAINS))
}

fn contact_body(dice: &mut Dice, fixture: &Fixture) -> Value {
    let number = dice.index(fixture.contacts.len() + 6);
    let mut body = json!({"external_id": format!("u-{number}")});
    if dice.chance(400) {
        body["email"] = json!(address(dice));
    }
    if dice.chance(400) {
        body["tags"] = json!(tags(dice));
    }
    if dice.chance(400) {
        body["attributes"] = json!({"plan": *dice.pick(&["free", "pro"])});
    }
    if dice.chance(500) {
        body["consent"] = json!({"marketing_email": dice.chance(800)});
    }
    if dice.chance(300) {
        body["list_ids"] = json!([dice.pick(&fixture.lists)]);
    }
    body
}

fn tags(dice: &mut Dice) -> Vec<&'static str> {
    ["vip", "beta", "late"].into_iter().filter(|_| dice.chance(400)).collect()
}

fn filter(dice: &mut Dice) -> Value {
    let plan = json!({"type": "attribute", "key": "plan", "op": "eq", "value": *dice.pick(&["free", "pro"])});
    if dice.chance(500) { plan } else { json!({"not": plan}) }
}

fn event(dice: &mut Dice, fixture: &Fixture, name: &str) -> Value {
    let number = dice.index(fixture.contacts.len() + 3);
    let mut event = json!({"name": name, "contact": {"external_id": format!("u-{number}")}});
    if dice.chance(500) {
        event["unique_id"] = json!(format!("unique-{name}"));
    }
    event
}
