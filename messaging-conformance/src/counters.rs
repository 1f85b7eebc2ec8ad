//! Counters of messages and of product events.

use std::collections::BTreeMap;
use std::sync::Arc;

use messaging_core::changes::{
    AttributeMessage, Condition, CountLink, CountMessages, DocumentKey, Expect, MoveProductEvents, RedactMessage,
    Write, moves, visited,
};
use messaging_core::domain::analytics::tally::buckets::{Buckets, Interval, Quarter};
use messaging_core::domain::analytics::tally::{Counter, Counts, Row, tally};
use messaging_core::domain::audience::contact::Contact;
use messaging_core::domain::audience::product_event::ProductEvent;
use messaging_core::domain::campaign::Campaign;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::milestones::Skip;
use messaging_core::domain::message::{EventKind, Message, MessageEvent, MessageSource, MessageStatus};
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::Store;
use messaging_core::ports::store::product_events::EventActivity;
use messaging_core::ports::store::{CommitError, LinkCounts, Priority, SeriesOf};
use messaging_core::time::Timestamp;

use serde_json::json;

use super::commit::at_once;
use super::sample::{at, bare_message, campaign, contact, event, id, insert, object, product_event};
use super::segments::random::Dice;
use super::{put, refuse};

/// Milliseconds of a quarter of an hour.
const QUARTER: i64 = 900_000;

/// Milliseconds of an hour.
const HOUR: i64 = 4 * QUARTER;

/// Range of all quarters of an hour.
const ALL_TIME: (Quarter, Quarter) = (Quarter(i32::MIN), Quarter(i32::MAX));

async fn stored_campaign(store: &dyn Store, workspace: WorkspaceId) -> Campaign {
    let campaign = campaign(workspace);
    put(store, [Write::put(Box::new(campaign.clone()), Expect::Absent)]).await;
    campaign
}

/// Returns a message of a variant of a campaign.
fn sent_by(campaign: &Campaign, variant: u8) -> Message {
    Message { campaign_id: Some(campaign.id), variant: Some(variant), ..bare_message(campaign.workspace_id) }
}

/// Returns the writes that store a message and count it.
fn accept(message: &Message) -> Vec<Write> {
    let count = CountMessages::of_new(message).map(|count| Write::CountMessages(Box::new(count)));
    std::iter::once(insert(message)).chain(count).collect()
}

/// Moves a message to a state, and returns the moved message.
async fn moved(store: &dyn Store, before: &Message, status: MessageStatus, when: Timestamp) -> Message {
    let after = before.moved(status, when);
    put(store, moves(before, &after, None, when)).await;
    after
}

/// Records an open or a click of a message, and returns the message as it is stored then.
async fn after_visit(
    store: &dyn Store,
    before: &Message,
    kind: EventKind,
    is_machine: bool,
    when: Timestamp,
) -> Message {
    put(store, visit(before, kind, is_machine, when)).await;
    store.message(before.workspace_id, before.id).await.unwrap().unwrap()
}

fn text(counts: &Counts) -> String {
    counts.iter().map(|(counter, number)| format!("{} {number}", counter.as_str())).collect::<Vec<_>>().join(", ")
}

async fn totals(store: &dyn Store, campaign: &Campaign) -> Vec<String> {
    let counts = store.campaign_counts(campaign.workspace_id, campaign.id).await.unwrap();
    counts.iter().map(text).collect()
}

/// Returns a series as texts, by quarters of an hour counted from the quarter of `at(0)`, without empty ones.
async fn series(store: &dyn Store, workspace: WorkspaceId, of: SeriesOf) -> Vec<(i32, String)> {
    let found = store.series(workspace, of, ALL_TIME.0, ALL_TIME.1).await.unwrap();
    let first = Quarter::of(at(0)).0;
    found
        .iter()
        .map(|(quarter, counts)| (quarter.0 - first, text(counts)))
        .filter(|(_, text)| !text.is_empty())
        .collect()
}

/// Totals are by variant, series by channel and campaign; a late bounce is counted in its own quarter, and the delivery
/// is taken back in the quarter of the delivery.
pub async fn totals_and_series_are_sums(store: &dyn Store) {
    let campaign = stored_campaign(store, id()).await;
    let workspace = campaign.workspace_id;
    let (first, third) = (sent_by(&campaign, 0), sent_by(&campaign, 2));
    let request = Message { channel: Channel::Sms, ..bare_message(workspace) };
    put(store, [accept(&first), accept(&third), accept(&request)].concat()).await;
    assert_eq!(totals(store, &campaign).await, ["waiting 1", "", "waiting 1"]);
    let first = moved(store, &first, MessageStatus::Sending, at(1)).await;
    assert_eq!(totals(store, &campaign).await, ["sending 1", "", "waiting 1"]);
    let first = moved(store, &first, MessageStatus::Delivered, at(2)).await;
    let first = after_visit(store, &first, EventKind::Open, false, at(QUARTER)).await;
    let first = after_visit(store, &first, EventKind::Open, false, at(QUARTER)).await;
    let first = after_visit(store, &first, EventKind::Open, true, at(QUARTER)).await;
    let first = after_visit(store, &first, EventKind::Click, false, at(2 * QUARTER)).await;
    let request = moved(store, &request, MessageStatus::Sending, at(3)).await;
    moved(store, &request, MessageStatus::Sent, at(3)).await;
    assert_eq!(
        totals(store, &campaign).await,
        [
            "sent 1, delivered 1, unique_opens 1, unique_clicks 1, unique_machine_opens 1, opens 2, clicks 1, \
             machine_opens 1",
            "",
            "waiting 1"
        ]
    );
    let told = |parts: &[(i32, &str)]| parts.iter().map(|(n, text)| (*n, (*text).to_owned())).collect::<Vec<_>>();
    let visits = [(1, "unique_opens 1, opens 2"), (2, "unique_clicks 1, clicks 1")];
    let of_campaign = [&[(0, "sent 1, delivered 1")][..], &visits].concat();
    assert_eq!(series(store, workspace, SeriesOf::Campaign(campaign.id)).await, told(&of_campaign));
    assert_eq!(series(store, workspace, SeriesOf::Workspace(Some(Channel::Email))).await, told(&of_campaign));
    assert_eq!(series(store, workspace, SeriesOf::Workspace(Some(Channel::Sms))).await, told(&[(0, "sent 1")]));
    let all = [&[(0, "sent 2, delivered 1")][..], &visits].concat();
    assert_eq!(series(store, workspace, SeriesOf::Workspace(None)).await, told(&all));
    moved(store, &first, MessageStatus::Bounced, at(5 * QUARTER)).await;
    let of_campaign = [&[(0, "sent 1")][..], &visits, &[(5, "bounces 1")]].concat();
    assert_eq!(series(store, workspace, SeriesOf::Campaign(campaign.id)).await, told(&of_campaign));
}

/// A commit that is refused after it counted leaves no counts.
pub async fn what_conflicts_counts_nothing(store: &dyn Store) {
    let campaign = stored_campaign(store, id()).await;
    let message = sent_by(&campaign, 0);
    put(store, accept(&message)).await;
    let sending = message.moved(MessageStatus::Sending, at(1));
    let delivered = sending.moved(MessageStatus::Delivered, at(2));
    // The count comes before the write of the message, which is refused.
    let mut writes = moves(&sending, &delivered, None, at(2));
    writes.reverse();
    writes.extend(accept(&sent_by(&campaign, 1)));
    writes.push(Write::Expect(Condition::Message(campaign.workspace_id, message.id, 7)));
    refuse(store, writes).await;
    assert_eq!(totals(store, &campaign).await, ["waiting 1"]);
    assert_eq!(series(store, campaign.workspace_id, SeriesOf::Workspace(None)).await, []);
}

/// Of many concurrent commits, those that conflict count nothing and the others count once, wherever in a commit the
/// conflict is.
pub async fn counts_of_a_crowd_add_up(store: &dyn Store) {
    let campaign = stored_campaign(store, id()).await;
    let shared = bare_message(campaign.workspace_id);
    put(store, [insert(&shared)]).await;
    let wrong = || Write::Expect(Condition::Message(campaign.workspace_id, shared.id, 7));
    let messages: Vec<_> = (0..60).map(|n| sent_by(&campaign, n % 2)).collect();
    let commits = messages.iter().enumerate().map(|(n, message)| {
        let sending = message.moved(MessageStatus::Sending, at(1));
        let all = moves(&sending, &sending.moved(MessageStatus::Delivered, at(2)), None, at(2));
        let counts = all.into_iter().filter(|write| matches!(write, Write::CountMessages(_)));
        let mut writes: Vec<Write> = accept(message).into_iter().chain(counts).collect();
        match n % 6 {
            // Conflicts with its last write, or with its first.
            2 => writes.push(wrong()),
            5 => writes.insert(0, wrong()),
            _ => {}
        }
        let priority = if n % 4 < 2 { Priority::Foreground } else { Priority::Background };
        store.commit(writes.into_iter().collect(), priority)
    });
    let outcomes = at_once(commits.collect()).await;
    let mut expected = [Counts::default(); 2];
    for (n, outcome) in outcomes.iter().enumerate() {
        assert_eq!(outcome.is_ok(), !matches!(n % 6, 2 | 5), "{n}: {outcome:?}");
        let counters = [(Counter::Waiting, 1), (Counter::Sending, -1), (Counter::Sent, 1), (Counter::Delivered, 1)];
        expected[n % 2] += if outcome.is_ok() { counters.into_iter().collect() } else { Counts::default() };
    }
    assert_eq!(store.campaign_counts(campaign.workspace_id, campaign.id).await.unwrap(), expected);
    assert_eq!(
        series(store, campaign.workspace_id, SeriesOf::Workspace(None)).await,
        [(0, "sent 40, delivered 40".to_owned())]
    );
}

/// A series includes the first quarter of the given span and excludes the last.
pub async fn a_series_is_of_a_span(store: &dyn Store) {
    let campaign = stored_campaign(store, id()).await;
    for quarter in 0..4 {
        let message = sent_by(&campaign, 0);
        put(store, accept(&message)).await;
        let message = moved(store, &message, MessageStatus::Sending, at(quarter * QUARTER)).await;
        moved(store, &message, MessageStatus::Sent, at(quarter * QUARTER)).await;
    }
    let first = Quarter::of(at(0)).0;
    for of in [SeriesOf::Workspace(None), SeriesOf::Workspace(Some(Channel::Email)), SeriesOf::Campaign(campaign.id)] {
        let found = store.series(campaign.workspace_id, of, Quarter(first + 1), Quarter(first + 3)).await.unwrap();
        let quarters: Vec<_> = found.iter().map(|(quarter, _)| quarter.0 - first).collect();
        assert_eq!(quarters, [1, 2], "{of:?}");
        assert_eq!(found[0].1.get(Counter::Sent), 1);
        assert_eq!(store.series(campaign.workspace_id, of, Quarter(first), Quarter(first)).await.unwrap(), []);
    }
}

/// Clicks are counted by variant and link, the first click of a message also separately; a link keeps the URL that came
/// first.
pub async fn links_are_counted_by_variant_and_number(store: &dyn Store) {
    let campaign = stored_campaign(store, id()).await;
    let click = |variant, link, url: &str, is_first| {
        let (workspace_id, campaign_id) = (campaign.workspace_id, campaign.id);
        Write::CountLink(Box::new(CountLink {
            workspace_id,
            campaign_id,
            variant,
            link,
            url: url.to_owned(),
            is_first,
        }))
    };
    put(store, [click(1, 63, "https://b.example/{{ name }}", true), click(0, 2, "https://a.example/", true)]).await;
    put(store, [click(0, 2, "https://other.example/", false), click(0, 0, "https://c.example/", true)]).await;
    let missing = CountLink {
        workspace_id: campaign.workspace_id,
        campaign_id: id(),
        variant: 0,
        link: 0,
        url: String::new(),
        is_first: true,
    };
    put(store, [Write::CountLink(Box::new(missing))]).await;
    let line = |variant, link, url: &str, clicks, unique_clicks| LinkCounts {
        variant,
        link,
        url: url.to_owned(),
        clicks,
        unique_clicks,
    };
    assert_eq!(
        store.campaign_links(campaign.workspace_id, campaign.id).await.unwrap(),
        [
            line(0, 0, "https://c.example/", 1, 1),
            line(0, 2, "https://a.example/", 2, 1),
            line(1, 63, "https://b.example/{{ name }}", 1, 1)
        ]
    );
}

/// The counters of a removed campaign are removed too, also those that come late; the series of the workspace stay.
pub async fn a_removed_campaign_has_no_counts(store: &dyn Store) {
    let campaign = stored_campaign(store, id()).await;
    let workspace = campaign.workspace_id;
    let message = sent_by(&campaign, 0);
    put(store, accept(&message)).await;
    let message = moved(store, &message, MessageStatus::Sending, at(1)).await;
    let message = moved(store, &message, MessageStatus::Sent, at(1)).await;
    put(store, [Write::Delete(DocumentKey::Campaign(workspace, campaign.id))]).await;
    let gone = async || {
        assert_eq!(totals(store, &campaign).await, [""; 0]);
        assert_eq!(series(store, workspace, SeriesOf::Campaign(campaign.id)).await, []);
        assert_eq!(store.campaign_links(workspace, campaign.id).await.unwrap(), []);
    };
    gone().await;
    while store.forget_campaign_rows(at(0), 1).await.unwrap() > 0 {}
    moved(store, &message, MessageStatus::Delivered, at(QUARTER)).await;
    gone().await;
    let all = series(store, workspace, SeriesOf::Workspace(None)).await;
    assert_eq!(all, [(0, "sent 1".to_owned()), (1, "delivered 1".to_owned())]);
    // A campaign that is created again under the same id starts at zero.
    put(store, [Write::put(Box::new(campaign.clone()), Expect::Absent)]).await;
    gone().await;
}

/// Returns the time `millis` milliseconds after the first full hour that follows `at(0)`.
fn after_the_hour(millis: i64) -> Timestamp {
    Timestamp::from_millis((at(0).as_millis() / HOUR + 1) * HOUR + millis)
}

fn event_at(contact: &Contact, name: &str, millis: i64) -> ProductEvent {
    ProductEvent { occurred_at: after_the_hour(millis), ..product_event(contact, name) }
}

/// Returns the activity of four hours, by hours, for at most `limit` names.
async fn activity(store: &dyn Store, workspace: WorkspaceId, name: Option<&str>, limit: usize) -> Vec<EventActivity> {
    let zone = jiff::tz::TimeZone::UTC;
    let buckets = Arc::new(Buckets::new(after_the_hour(0), after_the_hour(4 * HOUR), Interval::Hour, &zone));
    store.event_activity(workspace, name, &buckets, limit).await.unwrap()
}

async fn counts_of_events(store: &dyn Store, workspace: WorkspaceId, name: Option<&str>) -> Vec<String> {
    let found = activity(store, workspace, name, 10).await;
    found.iter().map(|one| format!("{} {} {} {:?}", one.name, one.count, one.contacts, one.series)).collect()
}

async fn stored_contact(store: &dyn Store, workspace: WorkspaceId) -> Contact {
    let contact = contact(workspace);
    put(store, [Write::put_contact(contact.clone(), Expect::Absent)]).await;
    contact
}

/// Events are counted by name and bucket, most frequent names first; erased events are subtracted, merged ones stay.
pub async fn events_are_counted_by_name(store: &dyn Store) {
    let workspace = id();
    let (ann, bob) = (stored_contact(store, workspace).await, stored_contact(store, workspace).await);
    put(
        store,
        [Write::AppendProductEvents(vec![
            event_at(&ann, "viewed", 0),
            event_at(&ann, "viewed", 1),
            event_at(&bob, "viewed", HOUR),
            event_at(&bob, "bought", 3 * HOUR),
            event_at(&bob, "before", -1),
            event_at(&bob, "after", 4 * HOUR),
        ])],
    )
    .await;
    let all = ["viewed 3 2 [2, 1, 0, 0]", "bought 1 1 [0, 0, 0, 1]"];
    assert_eq!(counts_of_events(store, workspace, None).await, all);
    assert_eq!(counts_of_events(store, workspace, Some("bought")).await, all[1..]);
    assert_eq!(counts_of_events(store, workspace, Some("sold")).await, [""; 0]);
    assert_eq!(activity(store, workspace, None, 1).await.len(), 1);
    // A refused commit counts nothing.
    let wrong = Write::Expect(Condition::Message(workspace, id(), 1));
    refuse(store, [Write::AppendProductEvents(vec![event_at(&ann, "viewed", 0)]), wrong]).await;
    assert_eq!(counts_of_events(store, workspace, None).await, all);
    let merge = MoveProductEvents { workspace_id: workspace, from: bob.id, to: ann.id, limit: 100 };
    put(store, [Write::MoveProductEvents(merge), Write::DeleteContact(workspace, bob.id)]).await;
    assert_eq!(counts_of_events(store, workspace, None).await, ["viewed 3 1 [2, 1, 0, 0]", "bought 1 1 [0, 0, 0, 1]"]);
    put(store, [Write::DeleteContact(workspace, ann.id)]).await;
    while store.has_left_events(workspace, ann.id).await.unwrap() {
        put(store, [Write::DeleteProductEvents(workspace, ann.id, 2)]).await;
    }
    assert_eq!(counts_of_events(store, workspace, None).await, [""; 0]);
}

/// Each contact is counted once for a name, however many events it has, among more than a thousand contacts.
pub async fn contacts_of_events_are_counted_once(store: &dyn Store) {
    let workspace = id();
    let contacts: Vec<_> = (0..1100).map(|_| contact(workspace)).collect();
    for part in contacts.chunks(200) {
        put(store, part.iter().map(|contact| Write::put_contact(contact.clone(), Expect::Absent))).await;
    }
    let of_all: Vec<_> = contacts.iter().map(|contact| event_at(contact, "viewed", 5)).collect();
    let of_some: Vec<_> = contacts.iter().step_by(500).map(|contact| event_at(contact, "bought", 5)).collect();
    put(store, [Write::AppendProductEvents([of_some.clone(), of_all, of_some].concat())]).await;
    let found = activity(store, workspace, None, 10).await;
    let told: Vec<_> = found.iter().map(|one| (one.name.as_str(), one.count, one.contacts)).collect();
    assert_eq!(told, [("viewed", 1100, 1100), ("bought", 6, 3)]);
}

/// Nothing is found or counted under the id of another workspace.
pub async fn other_workspaces_are_not_there(store: &dyn Store) {
    let campaign = stored_campaign(store, id()).await;
    let message = sent_by(&campaign, 0);
    put(store, accept(&message)).await;
    let message = moved(store, &message, MessageStatus::Sending, at(1)).await;
    moved(store, &message, MessageStatus::Sent, at(1)).await;
    let link = CountLink {
        workspace_id: campaign.workspace_id,
        campaign_id: campaign.id,
        variant: 0,
        link: 0,
        url: "https://a.example/".to_owned(),
        is_first: true,
    };
    put(store, [Write::CountLink(Box::new(link.clone()))]).await;
    let ann = stored_contact(store, campaign.workspace_id).await;
    put(store, [Write::AppendProductEvents(vec![event_at(&ann, "viewed", 0)])]).await;

    let foreign: WorkspaceId = id();
    put(store, [Write::CountLink(Box::new(CountLink { workspace_id: foreign, ..link }))]).await;
    let count = CountMessages::of_new(&Message { workspace_id: foreign, ..sent_by(&campaign, 0) }).unwrap();
    put(store, [Write::CountMessages(Box::new(count))]).await;
    assert_eq!(totals(store, &campaign).await, ["sent 1"]);
    assert_eq!(store.campaign_links(campaign.workspace_id, campaign.id).await.unwrap()[0].clicks, 1);
    assert_eq!(store.campaign_counts(foreign, campaign.id).await.unwrap(), []);
    assert_eq!(store.campaign_links(foreign, campaign.id).await.unwrap(), []);
    assert_eq!(series(store, foreign, SeriesOf::Campaign(campaign.id)).await, []);
    assert_eq!(series(store, foreign, SeriesOf::Workspace(None)).await, []);
    assert_eq!(activity(store, foreign, None, 10).await, []);
}

/// Returns the writes of a random event of a message; none if the message does not allow the event.
fn happening(dice: &mut Dice, before: &Message, when: Timestamp) -> Vec<Write> {
    let next = dice.one(&MessageStatus::ALL);
    match dice.below(8) {
        0 => visit(before, EventKind::Open, dice.percent(30), when),
        1 => visit(before, EventKind::Click, dice.percent(30), when),
        2 => {
            let after = before.after(None, [EventKind::Unsubscribe], when);
            moves(before, &after, None, when)
        }
        3 => {
            let complained = before.status.may_become(MessageStatus::Complained);
            let after = before.after(complained.then_some(MessageStatus::Complained), [EventKind::Complaint], when);
            moves(before, &after, None, when)
        }
        4 => redact(before, when),
        5 => {
            let Some(from) = before.contact_id else { return Vec::new() };
            let (workspace_id, message_id) = (before.workspace_id, before.id);
            vec![Write::AttributeMessage(AttributeMessage { workspace_id, message_id, from, to: id() })]
        }
        _ if before.status.may_become(next) => {
            let mut after = before.moved(next, when);
            if next == MessageStatus::Suppressed {
                after.milestones.skip = Some(dice.one(&[Skip::Suppressed, Skip::NoConsent, Skip::FrequencyCap]));
            }
            moves(before, &after, None, when)
        }
        _ => Vec::new(),
    }
}

fn visit(before: &Message, kind: EventKind, is_machine: bool, when: Timestamp) -> Vec<Write> {
    let milestones = before.milestones.with_event(kind, is_machine);
    let meta = object(&json!({"machine": is_machine}));
    let event = MessageEvent { at: when, meta, ..event(before, kind, 0) };
    let mut writes = visited(before, milestones, (kind, is_machine), when);
    writes.push(Write::AppendEvent(Box::new(event)));
    writes
}

fn redact(before: &Message, when: Timestamp) -> Vec<Write> {
    let is_cancelled = before.status.may_become(MessageStatus::Cancelled);
    let after = if is_cancelled { before.moved(MessageStatus::Cancelled, when) } else { before.clone() };
    let redaction = RedactMessage {
        workspace_id: before.workspace_id,
        message_id: before.id,
        revision: before.revision,
        status: after.status,
        updated_at: after.updated_at,
        tags: Vec::new(),
        events: Vec::new(),
    };
    let count = CountMessages::of_change(before, &after, None, when);
    let count = count.map(|count| Write::CountMessages(Box::new(count)));
    std::iter::once(Write::RedactMessage(Box::new(redaction))).chain(count).collect()
}

/// After random events of messages in random order, with any number of conflicting commits, the totals are the sum over
/// the rows, and each series sums to its total.
pub async fn whatever_happens_counters_equal_a_recount(store: &dyn Store) {
    let workspace = id();
    let mut dice = Dice::new(17);
    let campaigns = [stored_campaign(store, workspace).await, stored_campaign(store, workspace).await];
    let mut messages: Vec<Message> = Vec::new();
    for n in 0..40 {
        let message = match n % 3 {
            0 => Message { contact_id: Some(id()), ..bare_message(workspace) },
            one => Message { contact_id: Some(id()), ..sent_by(&campaigns[one - 1], u8::try_from(n % 2).unwrap()) },
        };
        put(store, accept(&message)).await;
        messages.push(message);
    }
    // Opens and clicks, repeated ones included, which the rows do not show.
    let mut visits = Counts::default();
    for round in 0..60 {
        let when = at(round * QUARTER / 3);
        let mut read = Vec::new();
        for message in &messages {
            read.push(store.message(workspace, message.id).await.unwrap().unwrap());
        }
        // Several of the commits may concern one message; those that come too late conflict.
        let mut drawn = Vec::new();
        for _ in 0..30 {
            let before = &read[dice.below(read.len())];
            drawn.push(happening(&mut dice, before, when));
        }
        let commits = drawn.iter().map(|writes| store.commit(writes.iter().cloned().collect(), Priority::Foreground));
        for (writes, outcome) in drawn.iter().zip(at_once(commits.collect()).await) {
            match outcome {
                Ok(()) => visits += repeated(writes),
                Err(CommitError::Conflict) => {}
                Err(error) => panic!("a conflict is expected, this came: {error:?}"),
            }
        }
    }
    let mut expected: BTreeMap<MessageSource, Counts> = BTreeMap::new();
    let mut all = visits;
    for message in &messages {
        let row = store.message(workspace, message.id).await.unwrap().unwrap();
        *expected.entry(row.source()).or_default() += tally(&Row::from(&row));
        all += tally(&Row::from(&row));
    }
    assert!(
        [Counter::Bounces, Counter::Complaints, Counter::Cancelled, Counter::UniqueOpens]
            .into_iter()
            .all(|counter| all.get(counter) > 0)
    );
    let mut of_requests = expected.remove(&MessageSource::Transactional).unwrap();
    let mut of_campaigns = Counts::default();
    for campaign in &campaigns {
        let kept = store.campaign_counts(workspace, campaign.id).await.unwrap();
        for (variant, counts) in kept.iter().enumerate() {
            let source = MessageSource::Campaign(campaign.id, u8::try_from(variant).unwrap());
            let rows = expected.remove(&source).unwrap_or_default();
            for counter in Counter::ALL.into_iter().filter(|counter| !is_repeated(*counter)) {
                assert_eq!(counts.get(counter), rows.get(counter), "{} of {source:?}", counter.as_str());
            }
        }
        let kept: Counts = kept.into_iter().sum();
        of_campaigns += kept;
        let series = store.series(workspace, SeriesOf::Campaign(campaign.id), ALL_TIME.0, ALL_TIME.1).await.unwrap();
        sums_to(&series, &kept);
    }
    assert_eq!(expected, BTreeMap::new());
    // Opens and clicks of messages from requests, repeated ones included, are in the series only.
    for counter in Counter::ALL.into_iter().filter(|counter| is_repeated(*counter)) {
        of_requests.count(counter, visits.get(counter) - of_campaigns.get(counter));
    }
    let series = store.series(workspace, SeriesOf::Workspace(None), ALL_TIME.0, ALL_TIME.1).await.unwrap();
    sums_to(&series, &(of_campaigns + of_requests));
    let verified = store.verify_workspace(workspace).await.unwrap();
    assert_eq!(verified.differences, []);
    assert!(verified.checked > 100, "{}", verified.checked);
}

const fn is_repeated(counter: Counter) -> bool {
    matches!(counter, Counter::Opens | Counter::Clicks | Counter::MachineOpens)
}

/// Returns the counts of opens and clicks, repeated ones included, which the rows do not show.
fn repeated(writes: &[Write]) -> Counts {
    let counted = |write: &Write| match write {
        Write::CountMessages(count) if matches!(count.source, MessageSource::Campaign(..)) => count.totals,
        Write::CountMessages(count) => count.series.iter().map(|(_, counts)| *counts).sum(),
        _ => Counts::default(),
    };
    let all: Counts = writes.iter().map(counted).sum();
    all.iter().filter(|(counter, _)| is_repeated(*counter)).collect()
}

fn sums_to(series: &[(Quarter, Counts)], totals: &Counts) {
    let sum: Counts = series.iter().map(|(_, counts)| *counts).sum();
    for counter in Counter::ALL.into_iter().filter(|counter| counter.is_in_series()) {
        assert_eq!(sum.get(counter), totals.get(counter), "{}", counter.as_str());
    }
    for (quarter, counts) in series {
        assert!(counts.iter().all(|(_, number)| number > 0), "{quarter:?}: {counts:?}");
    }
}
