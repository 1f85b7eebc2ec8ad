//! Random filters, and random contacts for them. The same seed gives the same ones.
//!
//! Values come from small sets, so that filters match some contacts and not others.

use std::fmt::Write as _;

use messaging_core::domain::audience::contact::{Consent, Contact};
use messaging_core::domain::message::EventKind;
use messaging_core::domain::segment::StoredFilter;
use messaging_core::domain::segment::parse::{Purpose, parse};
use messaging_core::ids::{CampaignId, Id, ListId, SegmentId, TemplateId, WorkspaceId};
use messaging_core::violation::Violations;
use serde_json::{Map, Value, json};

use super::super::sample::{at, contact, object};

/// A source of numbers that look random.
#[derive(Debug)]
pub struct Dice(u64);

impl Dice {
    /// Creates the generator with a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The generator `SplitMix64`.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).unwrap_or(0)
    }

    /// Returns true with a probability of `share` percent.
    pub fn percent(&mut self, share: usize) -> bool {
        self.below(100) < share
    }

    /// Returns a random item of a slice, which must not be empty.
    pub fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    /// Returns a time around the beginning of the tests' time: up to two years earlier, some minutes later.
    pub fn millis(&mut self) -> i64 {
        const MINUTE: i64 = 60_000;
        const DAY: i64 = 24 * 60 * MINUTE;
        let spans = [MINUTE, 60 * MINUTE, DAY, 7 * DAY, 30 * DAY, 365 * DAY];
        let times = i64::try_from(self.below(3)).unwrap_or(0);
        let wobble = i64::try_from(self.below(3)).unwrap_or(0) - 1;
        -self.one(&spans) * times + wobble
    }
}

/// Objects that random filters may refer to by their ids.
#[derive(Debug, Default)]
pub struct Named {
    /// Lists, removed ones too.
    pub lists: Vec<ListId>,
    /// Static segments.
    pub segments: Vec<SegmentId>,
    /// Campaigns of messages.
    pub campaigns: Vec<CampaignId>,
    /// Templates of messages.
    pub templates: Vec<TemplateId>,
}

const TEXTS: &[&str] = &["pro", "PRO", "free", "", "Ünï", "ÜNÏ", "a.b", "%_", "10", "İ", "'; --"];
const KEYS: &[&str] = &["plan", "age", "home", "home.city", "home.zip", "seen", "born", "flags", "missing", "a-b"];
const TAGS: &[&str] = &["vip", "VIP", "beta", "de \"quoted\""];
const NAMES: &[&str] = &["order_placed", "Order_placed", "login"];
const DATES: &[&str] = &[
    "2023-11-14",
    "2023-11-15",
    "2022-11-14",
    "2024-02-29",
    "2023-11-14T22:13:20Z",
    "2023-11-14T23:13:20.001+01:00",
    "2023-10-14T00:00:00Z",
    "yesterday",
    "2023-13-01",
];
/// In ascending order in every time zone.
const EARLIER_AND_LATER: &[&str] =
    &["2022-11-14", "2023-10-14T00:00:00Z", "2023-11-13", "2023-11-14T22:13:20Z", "2023-11-16", "2024-02-29"];
const URLS: &[&str] = &["https://a.example/Sale?x=1", "https://b.example/"];
const CHANNELS: &[&str] = &["email", "sms", "push", "telegram", "whatsapp", "viber"];
const CHATS: &[&str] = &["@someone", "123456", "@nobody_1"];
const PUSHES: &[&str] = &["token-1", "token-2", "token-3"];
const VIBER_USERS: &[&str] = &["01234567890A=", "98765432109B=", "x"];

/// Returns an address that contacts have or could have, in the spelling of the suppression list.
pub fn address(dice: &mut Dice, channel: &str) -> String {
    match channel {
        "email" => format!("user{}@example.org", dice.below(8)),
        "telegram" => dice.one(CHATS).to_owned(),
        "push" => dice.one(PUSHES).to_owned(),
        "viber" if dice.percent(50) => dice.one(VIBER_USERS).to_owned(),
        _ => format!("+3712000000{}", dice.below(8)),
    }
}

/// Returns one of the six channels.
pub fn channel(dice: &mut Dice) -> &'static str {
    dice.one(CHANNELS)
}

fn number(dice: &mut Dice) -> Value {
    dice.one(&[json!(0), json!(-0.0), json!(1), json!(10), json!(10.5), json!(-3), json!(1e3), json!(u64::MAX)])
}

fn scalar(dice: &mut Dice) -> Value {
    match dice.below(6) {
        0 | 1 => json!(dice.one(TEXTS)),
        2 | 3 => number(dice),
        4 => json!(dice.percent(50)),
        _ => json!(dice.one(DATES)),
    }
}

fn value(dice: &mut Dice) -> Value {
    match dice.below(8) {
        0 => Value::Null,
        1 => Value::Array((0..dice.below(4)).map(|_| scalar(dice)).chain([Value::Null]).collect()),
        2 => json!([]),
        3 => json!({"city": scalar(dice)}),
        _ => scalar(dice),
    }
}

fn members(dice: &mut Dice) -> Map<String, Value> {
    let mut members = Map::new();
    for key in ["plan", "age", "seen", "born", "flags", "a-b"] {
        if dice.percent(60) {
            members.insert(key.to_owned(), value(dice));
        }
    }
    if dice.percent(50) {
        members.insert("home".to_owned(), json!({"city": value(dice), "zip": scalar(dice)}));
    }
    members
}

/// Returns another version of a contact, or its first one.
pub fn change(dice: &mut Dice, contact: &Contact, number: usize) -> Contact {
    let mut attributes = members(dice);
    if dice.percent(40) {
        attributes.insert("telegram_chat_id".to_owned(), dice.one(&[json!(CHATS[0]), json!(123_456), json!(CHATS[2])]));
    }
    if dice.percent(40) {
        let id = dice.one(&[json!(VIBER_USERS[0]), json!(VIBER_USERS[1]), json!("+37120000001"), json!("a b")]);
        attributes.insert("viber_id".to_owned(), id);
    }
    if dice.percent(40) {
        let tokens = (0..dice.below(3)).map(|_| json!(dice.one(PUSHES))).collect();
        attributes.insert("push_token".to_owned(), Value::Array(tokens));
    }
    let consent = |dice: &mut Dice| dice.one(&[None, Some(true), Some(false)]);
    let maybe = |dice: &mut Dice, text: String| dice.percent(70).then_some(text);
    let tags = TAGS.iter().filter(|_| dice.percent(40)).map(|tag| (*tag).to_owned()).collect();
    Contact {
        external_id: Some(format!("{}{number}", dice.one(&["u-", "U-", "ü"]))),
        // Each contact has its own, so that none takes an identifier of another.
        email: maybe(dice, format!("user{number}@example.org")),
        phone: maybe(dice, format!("+3712000000{number}")),
        attributes: attributes.into(),
        tags,
        locale: dice.one(&[None, Some("de-DE".to_owned()), Some("en".to_owned())]),
        timezone: dice.one(&[None, Some("Europe/Riga".to_owned())]),
        consent: Consent { marketing_email: consent(dice), sms: consent(dice) },
        updated_at: at(dice.millis()),
        ..contact.clone()
    }
}

/// Returns a new contact; each is made with a number of its own.
pub fn newcomer(dice: &mut Dice, workspace: WorkspaceId, number: usize) -> Contact {
    let created_at = at(dice.millis());
    let bare = Contact { created_at, ..contact(workspace) };
    change(dice, &bare, number)
}

/// Returns the name and properties of a product event.
pub fn product_event(dice: &mut Dice) -> (&'static str, Map<String, Value>) {
    let name = dice.one(NAMES);
    (name, if dice.percent(30) { Map::new() } else { members(dice) })
}

/// Returns the kind of an event of a message and its meta.
pub fn message_event(dice: &mut Dice) -> (EventKind, Map<String, Value>) {
    let kind = dice.one(&EventKind::ALL[1..]);
    let meta = match kind {
        EventKind::Open | EventKind::Click => {
            json!({"url": dice.one(URLS), "machine": dice.percent(30), "ip": "192.0.2.1"})
        }
        EventKind::Bounce => json!({"code": 550}),
        _ => json!({}),
    };
    (kind, object(&meta))
}

/// Returns a filter.
pub fn filter(dice: &mut Dice, named: &Named) -> StoredFilter {
    let sent = if dice.percent(3) { json!({}) } else { condition(dice, named, 3) };
    let mut violations = Violations::new();
    let parsed = parse(&sent, "/filter", Purpose::Segment, &mut violations).filter;
    let mut faults = String::new();
    for fault in violations.as_slice() {
        write!(faults, " {fault:?}").expect("a text takes more");
    }
    StoredFilter::new(&sent, parsed.unwrap_or_else(|| panic!("{sent} is a filter, but:{faults}")))
}

fn condition(dice: &mut Dice, named: &Named, depth: usize) -> Value {
    if depth > 0 && dice.percent(45) {
        let count = 1 + dice.below(3);
        let mut parts = || (0..count).map(|_| condition(dice, named, depth - 1)).collect::<Vec<_>>();
        return match count {
            1 => json!({"not": parts()[0]}),
            2 => json!({"and": parts()}),
            _ => json!({"or": parts()}),
        };
    }
    leaf(dice, named)
}

fn leaf(dice: &mut Dice, named: &Named) -> Value {
    match dice.below(12) {
        0 => {
            let field = dice.one(&["email", "phone", "external_id", "locale", "timezone"]);
            test(json!({"type": "contact", "field": field}), text_test(dice))
        }
        1 => {
            let field = dice.one(&["created_at", "updated_at"]);
            test(json!({"type": "contact", "field": field}), date_test(dice))
        }
        2..=4 => test(json!({"type": "attribute", "key": dice.one(KEYS)}), any_test(dice)),
        5 => {
            let values: Vec<_> = (0..=dice.below(2)).map(|_| dice.one(TAGS)).collect();
            json!({"type": "tag", "op": dice.one(&["has_any", "has_all", "has_none"]), "values": values})
        }
        6 if !named.lists.is_empty() => {
            json!({"type": "list", "op": dice.one(&["member", "not_member"]), "id": dice.one(&named.lists)})
        }
        7 if !named.segments.is_empty() => {
            json!({"type": "segment", "op": dice.one(&["member", "not_member"]), "id": dice.one(&named.segments)})
        }
        8 => {
            let value = dice.one(&[Value::Null, json!(true), json!(false)]);
            json!({"type": "consent", "channel": dice.one(&["marketing_email", "sms"]), "value": value})
        }
        9 => json!({"type": "suppression", "channel": channel(dice), "value": dice.percent(50)}),
        10 => {
            let mut leaf = counted(dice, "event");
            leaf["name"] = json!(dice.one(NAMES));
            if dice.percent(50) {
                let tests = (0..dice.below(3)).map(|_| test(json!({"property": dice.one(KEYS)}), any_test(dice)));
                leaf["where"] = tests.collect();
            }
            leaf
        }
        _ => message_leaf(dice, named),
    }
}

fn message_leaf(dice: &mut Dice, named: &Named) -> Value {
    let mut leaf = counted(dice, "message");
    let event = dice.one(&["sent", "delivered", "open", "click", "bounce", "complaint", "unsubscribe"]);
    leaf["event"] = json!(event);
    if dice.percent(30) {
        leaf["channel"] = json!(dice.one(&["email", "sms"]));
    }
    if dice.percent(30) && !named.campaigns.is_empty() {
        leaf["campaign_id"] = json!(dice.one(&named.campaigns));
    }
    if dice.percent(30) && !named.templates.is_empty() {
        leaf["template_id"] = json!(dice.one(&named.templates));
    }
    if event == "click" && dice.percent(50) {
        leaf["url_contains"] = json!(dice.one(&["SALE", "b.example", "%"]));
    }
    leaf
}

fn counted(dice: &mut Dice, kind: &str) -> Value {
    let mut leaf = json!({"type": kind});
    if dice.percent(60) {
        leaf["count"] = json!({"op": dice.one(&["gte", "lte", "eq"]), "value": dice.below(4)});
    }
    if dice.percent(50) {
        leaf["within"] = match dice.below(4) {
            0 | 1 => json!({"last": span(dice)}),
            2 => json!({dice.one(&["after", "before"]): date(dice)}),
            _ => json!({"between": in_order(dice, EARLIER_AND_LATER)}),
        };
    }
    leaf
}

/// Returns a valid date.
fn date(dice: &mut Dice) -> &'static str {
    dice.one(&DATES[..7])
}

/// Returns two items of a slice, in their order.
fn in_order<T: Copy>(dice: &mut Dice, of: &[T]) -> [T; 2] {
    let first = dice.below(of.len());
    [of[first], of[first + dice.below(of.len() - first)]]
}

fn span(dice: &mut Dice) -> Value {
    let unit = dice.one(&["minutes", "hours", "days", "weeks", "months"]);
    json!({"value": dice.one(&[1, 2, 7, 30]), "unit": unit})
}

fn test(mut subject: Value, test: Value) -> Value {
    for (name, value) in object(&test) {
        subject[name] = value;
    }
    subject
}

fn any_test(dice: &mut Dice) -> Value {
    match dice.below(4) {
        0 => text_test(dice),
        1 => date_test(dice),
        2 => {
            let op = dice.one(&["gt", "gte", "lt", "lte", "eq", "neq"]);
            json!({"op": op, "value": number(dice)})
        }
        _ => match dice.below(3) {
            0 => {
                let part = scalar(dice);
                let part = if part == json!("") { json!("r") } else { part };
                json!({"op": dice.one(&["contains", "not_contains"]), "value": part})
            }
            1 => json!({"op": dice.one(&["in", "not_in"]), "value": [number(dice), dice.one(&["pro", "ÜNÏ", "10"])]}),
            _ => json!({"op": "between", "value": in_order(dice, &[-3.0, -0.0, 1.0, 10.0, 10.5, 1e3])}),
        },
    }
}

fn text_test(dice: &mut Dice) -> Value {
    let others = &["USER1", "u-2", "example.ORG", "Ü", "de", "r"];
    let mut text = || {
        let text = if dice.percent(50) { dice.one(TEXTS) } else { dice.one(others) };
        // A test never compares with an empty text, but values may be empty.
        if text.is_empty() { "10" } else { text }
    };
    let (text, other) = (text(), text());
    match dice.below(4) {
        0 => json!({"op": dice.one(&["exists", "not_exists"])}),
        1 => json!({"op": dice.one(&["eq", "neq"]), "value": text}),
        2 => json!({"op": dice.one(&["in", "not_in"]), "value": [text, other]}),
        _ => {
            let op = dice.one(&["contains", "not_contains", "starts_with", "ends_with"]);
            json!({"op": op, "value": text})
        }
    }
}

fn date_test(dice: &mut Dice) -> Value {
    match dice.below(5) {
        0 => json!({"op": dice.one(&["exists", "not_exists"])}),
        1 => json!({"op": dice.one(&["before", "after", "on"]), "value": date(dice)}),
        2 => json!({"op": "between", "value": in_order(dice, EARLIER_AND_LATER)}),
        3 => json!({"op": dice.one(&["last", "next", "older_than"]), "value": span(dice)}),
        _ => json!({"op": "anniversary", "value": {"offset_days": dice.one(&[0, 1, -1, 365])}}),
    }
}

/// Returns distinct ids for records that are only named.
pub fn names<I: Id>(count: usize) -> Vec<I> {
    (0..count).map(|_| super::super::sample::id()).collect()
}
