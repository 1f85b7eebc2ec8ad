//! Questions about contacts are answered as filters answer them in memory.

use jiff::tz::TimeZone;
use messaging_core::changes::Write;
use messaging_core::domain::message::{EventKind, Message};
use messaging_core::domain::segment::filter::{Condition, Filter, Leaf, Within};
use messaging_core::domain::segment::values::Present;
use messaging_core::ids::{ContactId, EventId, Id as _};
use messaging_core::ports::store::{EventSpan, FilterQuery, Store};
use messaging_core::time::Timestamp;
use serde_json::{Value, json};

use super::put;
use super::sample::{at, bare_message, contact, event, id, id_at, insert, product_event};
use super::segments::kept::{StoredFacts, World};
use super::segments::random::{self, Dice};
use super::segments::{add_contact, query};

/// The number of random worlds in which questions are asked.
const WORLDS: u64 = 8;
/// Number of questions of each world that are asked at once.
const ASKS: usize = 120;

/// Makes the conditions on events count from the entry.
fn since_entry(mut filter: Filter) -> Filter {
    fn condition(of: &mut Condition) {
        match of {
            Condition::And(parts) | Condition::Or(parts) => parts.iter_mut().for_each(condition),
            Condition::Not(part) => condition(part),
            Condition::Leaf(Leaf::Event(leaf)) => leaf.within = Some(Within::SinceEntry),
            Condition::Leaf(Leaf::Message(leaf)) => leaf.within = Some(Within::SinceEntry),
            Condition::Leaf(_) => {}
        }
    }
    if let Filter::Where(of) = &mut filter {
        condition(of);
    }
    filter
}

/// Result of a filter in memory; `since` has the events since the entry, `all` all that count.
fn holds(filter: &Filter, all: &StoredFacts, since: &StoredFacts, present: &Present) -> bool {
    fn condition(of: &Condition, all: &StoredFacts, since: &StoredFacts, present: &Present) -> bool {
        match of {
            Condition::And(parts) => parts.iter().all(|part| condition(part, all, since, present)),
            Condition::Or(parts) => parts.iter().any(|part| condition(part, all, since, present)),
            Condition::Not(part) => !condition(part, all, since, present),
            Condition::Leaf(leaf) => {
                let mut leaf = leaf.clone();
                let within = match &mut leaf {
                    Leaf::Event(leaf) => Some(&mut leaf.within),
                    Leaf::Message(leaf) => Some(&mut leaf.within),
                    _ => None,
                };
                let facts = match within {
                    Some(within) if *within == Some(Within::SinceEntry) => {
                        *within = None;
                        since
                    }
                    _ => all,
                };
                Filter::Where(Condition::Leaf(leaf)).matches(facts.facts(), present)
            }
        }
    }
    match filter {
        Filter::Everyone => true,
        Filter::Where(of) => condition(of, all, since, present),
    }
}

/// A random span of the events of a contact.
fn span(dice: &mut Dice, facts: &StoredFacts) -> EventSpan {
    let ids: Vec<EventId> = facts.event_ids.iter().chain(&facts.message_event_ids).copied().collect();
    let mut any = |share| (!ids.is_empty() && dice.percent(share)).then(|| dice.one(&ids));
    let (entry_event, up_to) = (any(50), any(40));
    let entered_at = match entry_event {
        Some(event) => Some(event.made_at()),
        // All samples are made at the same time.
        None => dice.one(&[None, Some(at(-1)), Some(at(0))]),
    };
    EventSpan { entered_at, entry_event, up_to }
}

/// A random moment for a question: the present, or one around it.
fn as_of(dice: &mut Dice, present: &Present) -> Timestamp {
    let hours = dice.one(&[0, 0, 0, -1, 5, -30, 24 * 40]);
    Timestamp::from_millis(present.now.as_millis() + hours * 3_600_000)
}

/// In random worlds, many questions at once are answered as in memory, whatever span of events counts.
pub async fn answers_are_those_of_memory(store: &dyn Store) {
    for seed in 1..=WORLDS {
        let mut world = World::begin(store, seed).await;
        for _ in 0..40 {
            world.happen().await;
        }
        let everybody = world.stored_facts().await;
        let filters: Vec<_> = (0..ASKS / 4)
            .map(|_| {
                let filter = Filter::clone(random::filter(&mut world.dice, &world.named).tree());
                if world.dice.percent(50) { since_entry(filter) } else { filter }
            })
            .collect();
        let (mut asks, mut expected) = (Vec::new(), Vec::new());
        while asks.len() < ASKS && !everybody.is_empty() {
            let (one, filter) = (world.dice.one(&everybody), world.dice.one(&filters));
            let span = span(&mut world.dice, &one);
            let counts = |id: EventId| span.up_to.is_none_or(|last| id <= last);
            let is_since = |id: EventId| match (span.entry_event, span.entered_at) {
                (Some(entry), _) => id > entry,
                (None, Some(time)) => id.made_at() > time,
                (None, None) => false,
            };
            let all = one.with_events(counts);
            let since = one.with_events(|id| counts(id) && is_since(id));
            let present = Present { now: as_of(&mut world.dice, &world.present), zone: world.present.zone.clone() };
            expected.push(holds(&filter, &all, &since, &present));
            asks.push(FilterQuery { contact_id: one.contact.id, filter, span, at: present.now });
        }
        let answers = store.answers(world.workspace, &asks, &world.present.zone).await.unwrap();
        for ((ask, answer), expected) in asks.iter().zip(&answers).zip(&expected) {
            assert_eq!(answer, expected, "seed {seed}: {ask:?}");
        }
        assert_eq!(answers.len(), asks.len());
    }
}

/// A question with a filter.
fn ask(contact_id: ContactId, sent: &Value, span: EventSpan) -> FilterQuery {
    FilterQuery { contact_id, filter: since_entry(query(sent).filter), span, at: at(0) }
}

/// Events count that were accepted after the entry and up to the cause; the time when they happened does not matter.
pub async fn spans_are_those_of_acceptance(store: &dyn Store) {
    let workspace = id();
    let ann = contact(workspace);
    let message = Message { contact_id: Some(ann.id), ..bare_message(workspace) };
    put(store, [add_contact(&ann), insert(&message)]).await;
    let times = [100, 200, 300];
    let mut ids: Vec<EventId> = Vec::new();
    for millis in times {
        let mut bought = product_event(&ann, "bought");
        bought.id = id_at(millis);
        // Long ago; the later it is accepted, the longer ago it happened.
        bought.occurred_at = at(-1_000 * millis);
        let mut opened = event(&message, EventKind::Open, -1_000 * millis);
        opened.id = EventId::from_bytes({
            let mut bytes = bought.id.to_bytes();
            bytes[6..].fill(0xFF);
            bytes
        });
        ids.push(bought.id);
        put(store, [Write::AppendProductEvents(vec![bought]), Write::AppendEvent(Box::new(opened))]).await;
    }
    let bought = |n: u32| json!({"type": "event", "name": "bought", "count": {"op": "eq", "value": n}});
    let opened = |n: u32| json!({"type": "message", "event": "open", "count": {"op": "eq", "value": n}});
    let after = |millis: i64| EventSpan { entered_at: Some(at(millis)), ..EventSpan::default() };
    let since = |n: usize| EventSpan { entry_event: Some(ids[n]), ..after(times[n]) };
    let up_to = |n: usize, span| EventSpan { up_to: Some(ids[n]), ..span };
    let cases = [
        (after(99), 3, 3),
        (after(100), 2, 2),
        (after(299), 1, 1),
        (after(300), 0, 0),
        // An event of the same millisecond is after it if its id is.
        (since(0), 2, 3),
        (since(2), 0, 1),
        (up_to(1, after(99)), 2, 1),
        (up_to(2, since(0)), 2, 2),
        (up_to(0, since(0)), 0, 0),
        (EventSpan::default(), 0, 0),
    ];
    for (span, events, opens) in cases {
        let asks: Vec<_> =
            (0..4).flat_map(|n| [ask(ann.id, &bought(n), span), ask(ann.id, &opened(n), span)]).collect();
        let answers = store.answers(workspace, &asks, &TimeZone::UTC).await.unwrap();
        let expected: Vec<_> = (0..4).flat_map(|n| [n == events, n == opens]).collect();
        assert_eq!(answers, expected, "{span:?}");
    }
}

/// Nothing matches a contact that is gone, never existed, or is of another workspace; the others are answered all the
/// same.
pub async fn whoever_is_gone_matches_nothing(store: &dyn Store) {
    let workspace = id();
    let (ann, bob) = (contact(workspace), contact(workspace));
    put(store, [add_contact(&ann), add_contact(&bob)]).await;
    put(store, [Write::DeleteContact(workspace, bob.id)]).await;
    let everyone = |id| ask(id, &json!({}), EventSpan::default());
    let asks = [everyone(bob.id), everyone(ann.id), everyone(id())];
    let zone = TimeZone::UTC;
    assert_eq!(store.answers(workspace, &asks, &zone).await.unwrap(), [false, true, false]);
    assert_eq!(store.answers(id(), &asks, &zone).await.unwrap(), [false; 3]);
    assert!(store.answers(workspace, &[], &zone).await.unwrap().is_empty());
}
