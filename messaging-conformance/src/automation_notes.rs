//! Notes for automations: every cause makes exactly its notes, in order, in its own commit.

use messaging_core::changes::{AutomationWrite, Expect, PutRun, TakeNotes, Write};
use messaging_core::domain::audience::contact::{Consent, Contact};
use messaging_core::domain::audience::product_event::ProductEvent;
use messaging_core::domain::automation::note::{
    Cause, EntrySubscription, EventSubscription, Happened, Note, RunSubscription,
};
use messaging_core::domain::automation::run::{Run, RunStatus};
use messaging_core::domain::automation::trigger::TriggerEvent;
use messaging_core::domain::automation::{Automation, AutomationStatus};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::{EventKind, Message, MessageEvent};
use messaging_core::domain::segment::filter::MessageEventKind;
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::segments::{MemberQuery, MoveNotes};
use messaging_core::ports::store::{Store, StoreCursor};
use serde_json::{Value, json};

use super::automation_samples::{entered_by, lanes, listening, put_run};
use super::sample::{
    at, automation, bare_message, claim, contact, contact_list, enqueue, event, id, insert, object, product_event, run,
    suppression,
};
use super::segments::keeping::{calculate_with, follow};
use super::segments::{add_contact, query, stored};
use super::{commit, put, refuse};

/// Returns all notes of an automation, shard by shard.
async fn kept(store: &dyn Store, of: &Automation) -> Vec<(u8, StoreCursor, Note, Option<Happened>)> {
    let mut all = Vec::new();
    for shard in 0..4 {
        let notes = store.automation_notes(of.workspace_id, of.id, shard, 999).await.unwrap();
        all.extend(notes.into_iter().map(|(place, note, happened)| (shard, place, note, happened)));
    }
    all
}

/// Takes all notes of an automation and returns them.
async fn take(store: &dyn Store, of: &Automation) -> Vec<Note> {
    let all = kept(store, of).await;
    for shard in 0..4 {
        if let Some((_, up_to, ..)) = all.iter().rev().find(|(own, ..)| *own == shard) {
            let take = TakeNotes { workspace_id: of.workspace_id, automation_id: of.id, shard, up_to: *up_to };
            put(store, [Write::Automation(AutomationWrite::TakeNotes(take))]).await;
        }
    }
    all.into_iter().map(|(_, _, note, _)| note).collect()
}

fn note(contact: &Contact, cause: Cause, millis: i64) -> Note {
    Note { contact_id: contact.id, cause, at: at(millis), depth: 0, may_enter: true }
}

fn changed(contact: &Contact, millis: i64) -> Contact {
    Contact { locale: Some(format!("l{millis}")), updated_at: at(millis), ..contact.clone() }
}

/// Each trigger gets a note of its cause, of nothing else, once, in the order of the commits; other automations get
/// none.
pub async fn each_cause_makes_its_notes_in_order(store: &dyn Store) {
    let workspace: WorkspaceId = id();
    let list = contact_list(workspace);
    let (campaign, template) = (id(), id());
    let entries = [
        EntrySubscription::Event("bought".to_owned()),
        EntrySubscription::ListAdded(list.id),
        EntrySubscription::ContactCreated,
        EntrySubscription::MessageEvent(TriggerEvent::Click, None, None),
        EntrySubscription::MessageEvent(TriggerEvent::Click, Some(campaign), Some(template)),
        EntrySubscription::Date,
        EntrySubscription::Nothing,
    ];
    let all: Vec<_> = entries.map(|entry| (automation(workspace), entry)).into();
    put(store, all.iter().map(|(one, entry)| entered_by(one, entry.clone()))).await;
    put(store, [Write::put(list.clone(), Expect::Absent), Write::put(contact_list(workspace), Expect::Absent)]).await;
    let elsewhere = automation(id());
    put(store, [entered_by(&elsewhere, EntrySubscription::ContactCreated)]).await;

    let ann = contact(workspace);
    let [bought, also, other] = ["bought", "bought", "Bought"].map(|name| product_event(&ann, name));
    let message = Message { contact_id: Some(ann.id), campaign_id: Some(campaign), ..bare_message(workspace) };
    let of_template = Message { id: id(), template_id: Some(template), ..message.clone() };
    let click =
        |message: &Message| MessageEvent { meta: object(&json!({"url": "x"})), ..event(message, EventKind::Click, 5) };
    let (first_click, second_click) = (click(&message), click(&of_template));
    let moved = Contact { timezone: Some("Asia/Tokyo".to_owned()), ..changed(&ann, 21) };
    let agreed = Contact { consent: Consent::default(), updated_at: at(22), ..moved.clone() };
    put(store, [add_contact(&ann), insert(&message), insert(&of_template)]).await;
    put(store, [Write::AppendProductEvents(vec![bought.clone(), other, also.clone()])]).await;
    put(store, [Write::JoinList(workspace, list.id, ann.id, at(20))]).await;
    put(store, [Write::put_contact(moved.clone(), Expect::Revision(1))]).await;
    // A put without a change, and one that only changes the consent, which is no date.
    put(store, [Write::put_contact(moved, Expect::Revision(2)), Write::put_contact(agreed, Expect::Revision(3))]).await;
    put(store, [&first_click, &second_click].map(|event| Write::AppendEvent(Box::new(event.clone())))).await;
    put(store, [Write::LeaveList(workspace, list.id, ann.id, at(23))]).await;

    let clicked = |event: &MessageEvent| Cause::Message { event_id: event.id, message_id: event.message_id };
    let expected = [
        vec![note(&ann, Cause::Event(bought.id), 0), note(&ann, Cause::Event(also.id), 0)],
        vec![note(&ann, Cause::ListAdded(list.id), 20)],
        vec![note(&ann, Cause::Created, 14)],
        vec![note(&ann, clicked(&first_click), 0), note(&ann, clicked(&second_click), 0)],
        vec![note(&ann, clicked(&second_click), 0)],
        vec![note(&ann, Cause::Created, 14), note(&ann, Cause::Changed, 21)],
        vec![],
    ];
    for ((one, entry), expected) in all.iter().zip(expected) {
        let heard: Vec<_> = kept(store, one).await.into_iter().map(|(_, _, note, _)| note).collect();
        assert_eq!(heard, expected, "{entry:?}");
    }
    assert_eq!(kept(store, &elsewhere).await, []);
    // The events that the notes are about come with them.
    let events: Vec<_> = kept(store, &all[0].0).await.into_iter().map(|(.., happened)| happened).collect();
    assert_eq!(events, [bought, also].map(|event| Some(Happened::Event(Box::new(event)))));
    let clicks = kept(store, &all[4].0).await;
    let Some((.., Some(Happened::Message(fact)))) = clicks.first() else { panic!("{clicks:?}") };
    assert_eq!((fact.event, fact.at, fact.url.as_deref()), (MessageEventKind::Click, at(5), Some("x")));
    assert_eq!((fact.campaign_id, fact.template_id, fact.channel), (Some(campaign), Some(template), Channel::Email));
}

/// Product events that enter nobody, because the conditions of the trigger do not hold for them or they happened long
/// before they arrived, leave no note; if they move a run, they leave one all the same, by which nobody enters.
pub async fn events_that_enter_nobody_make_no_note(store: &dyn Store) {
    let workspace: WorkspaceId = id();
    let [expensive, other, dated] = [(); 3].map(|()| automation(workspace));
    let bought = |condition: Value| EntrySubscription::EventWhere("bought".to_owned(), vec![condition]);
    let over = json!({"property": "total", "op": "gt", "value": 50});
    put(store, [entered_by(&expensive, bought(over.clone()))]).await;
    put(store, [entered_by(&other, bought(json!({"property": "items.sku", "op": "neq", "value": "B"})))]).await;
    let recent = json!({"property": "on", "op": "before", "value": "2020-01-01"});
    put(store, [entered_by(&dated, bought(recent))]).await;
    let ann = contact(workspace);
    put(store, [add_contact(&ann)]).await;
    let with = |properties: Value| {
        let properties = object(&properties).into();
        ProductEvent { properties, occurred_at: at(0), ..product_event(&ann, "bought") }
    };
    let [much, little, none, b] = [
        json!({"total": 51, "on": "2019-01-01", "items": {"sku": "B"}}),
        json!({"total": 50}),
        json!({}),
        json!({"total": "51", "items": {"sku": "b"}}),
    ]
    .map(with);
    let late = ProductEvent { occurred_at: at(-86_400_001), ..much.clone() };
    let late = ProductEvent { id: id(), ..late };
    let named = ProductEvent { id: id(), name: "Bought".to_owned(), ..much.clone() };
    put(store, [Write::AppendProductEvents(vec![much.clone(), little.clone(), none.clone(), b.clone(), late, named])])
        .await;
    let entered = async |of: &Automation| take(store, of).await;
    let of = |events: &[&ProductEvent]| -> Vec<_> {
        events.iter().map(|event| note(&ann, Cause::Event(event.id), 0)).collect()
    };
    assert_eq!(entered(&expensive).await, of(&[&much]));
    assert_eq!(entered(&other).await, of(&[&little, &none]));
    // If a condition depends on the time zone, the reader of the note decides.
    assert_eq!(entered(&dated).await, of(&[&much, &little, &none, &b]));

    let subscription = EventSubscription {
        entry: Some(bought(over)),
        runs: RunSubscription { events: vec!["bought".to_owned()], ..RunSubscription::default() },
    };
    put(store, [listening(&expensive, subscription, Vec::new(), Expect::Revision(1))]).await;
    put(store, [put_run(&run(&expensive, &ann), Expect::Absent)]).await;
    let again = ProductEvent { id: id(), ..little };
    put(store, [Write::AppendProductEvents(vec![again.clone()])]).await;
    let moved = Note { may_enter: false, ..note(&ann, Cause::Event(again.id), 0) };
    assert_eq!(entered(&expensive).await, [moved]);
}

/// An automation whose runs wait for events, with an open run of a contact.
async fn on_the_way(store: &dyn Store, runs: RunSubscription) -> (Automation, Contact, Run) {
    let one = automation(id());
    let ann = contact(one.workspace_id);
    let subscription = EventSubscription { entry: Some(EntrySubscription::Nothing), runs };
    put(store, [listening(&one, subscription, Vec::new(), Expect::Absent), add_contact(&ann)]).await;
    let waiting = run(&one, &ann);
    put(store, [put_run(&waiting, Expect::Absent)]).await;
    (one, ann, waiting)
}

/// Addresses that no index finds are added to the suppression list and removed from it: when changes are followed,
/// contacts with such an address and an open run get a note with the time of the change and its depth. Nobody else gets
/// one, and without a subscription none is kept.
pub async fn suppressions_of_attributes_are_told_when_changes_are_followed(store: &dyn Store) {
    let everything = RunSubscription { everything: true, ..RunSubscription::default() };
    let (one, ann, _) = on_the_way(store, everything).await;
    let (other, bob, _) = on_the_way(store, RunSubscription { messages: true, ..RunSubscription::default() }).await;
    let attributes = object(&json!({"push_token": ["t1", "t2"], "telegram_chat_id": 7, "viber_id": "user="}));
    for contact in [&ann, &bob] {
        let contact = Contact { attributes: attributes.clone().into(), ..contact.clone() };
        put(store, [Write::put_contact(contact, Expect::Revision(1))]).await;
    }
    // A contact with the same addresses and no run.
    let cid = Contact { attributes: attributes.into(), ..contact(one.workspace_id) };
    put(store, [add_contact(&cid)]).await;
    take(store, &one).await;
    let mask = async |of: &Automation| store.segment_read_mask(of.workspace_id).await.unwrap();
    assert_eq!((mask(&one).await, mask(&other).await), (ReadMask::TRACED_SUPPRESSIONS, ReadMask::NONE));
    for (channel, address) in [(Channel::Telegram, "7"), (Channel::Push, "t2"), (Channel::Viber, "user=")] {
        for of in [&one, &other] {
            let listed = suppression(of.workspace_id, channel, address);
            let unknown = suppression(of.workspace_id, channel, "nobodys");
            put(
                store,
                [
                    Write::Automation(AutomationWrite::CausedAt(3)),
                    Write::PutSuppression(listed.clone(), Expect::Absent),
                ],
            )
            .await;
            put(store, [Write::PutSuppression(unknown, Expect::Absent)]).await;
            while follow(store, of.workspace_id, &[], 10).await {}
            let heard = take(store, of).await;
            put(store, [Write::DeleteSuppression(of.workspace_id, listed.id, at(50))]).await;
            while follow(store, of.workspace_id, &[], 10).await {}
            let heard = [heard, take(store, of).await].concat();
            let note = |millis, depth| Note { depth, may_enter: false, ..note(&ann, Cause::Changed, millis) };
            let expected = if of.id == one.id { vec![note(10, 3), note(50, 0)] } else { Vec::new() };
            assert_eq!(heard, expected, "{channel}");
        }
    }
}

/// An open run gets a note of an event that may move or end it, by its own version, and only of events that it waits
/// for.
pub async fn who_is_on_the_way_hears_what_its_version_waits_for(store: &dyn Store) {
    let everything = RunSubscription { everything: true, ..RunSubscription::default() };
    let events = RunSubscription { events: vec!["x".to_owned(), "y".to_owned()], ..RunSubscription::default() };
    let messages = RunSubscription { messages: true, ..RunSubscription::default() };
    for (subscription, expected) in [(everything, 10), (events, 1), (messages, 2), (RunSubscription::default(), 0)] {
        let (one, ann, waiting) = on_the_way(store, subscription.clone()).await;
        let workspace = one.workspace_id;
        let bob = contact(workspace);
        let list = contact_list(workspace);
        let message = Message { contact_id: Some(ann.id), ..bare_message(workspace) };
        let listed = suppression(workspace, Channel::Email, ann.email.as_deref().unwrap());
        let by_phone = suppression(workspace, Channel::Sms, ann.phone.as_deref().unwrap());
        let happen = |message: &Message, kind| Write::AppendEvent(Box::new(event(message, kind, 5)));
        put(store, [add_contact(&bob), Write::put(list.clone(), Expect::Absent), insert(&message)]).await;
        let causes = [
            Write::AppendProductEvents(vec![product_event(&ann, "x")]),
            Write::AppendProductEvents(vec![product_event(&ann, "z"), product_event(&bob, "x")]),
            Write::put_contact(changed(&ann, 31), Expect::Revision(1)),
            Write::put_contact(changed(&bob, 31), Expect::Revision(1)),
            Write::JoinList(workspace, list.id, ann.id, at(32)),
            Write::LeaveList(workspace, list.id, ann.id, at(33)),
            Write::PutSuppression(listed.clone(), Expect::Absent),
            Write::PutSuppression(by_phone, Expect::Absent),
            Write::DeleteSuppression(workspace, listed.id, at(34)),
            happen(&message, EventKind::Sent),
            happen(&message, EventKind::Open),
            happen(&message, EventKind::Deferred),
        ];
        for cause in &causes {
            put(store, [cause.clone()]).await;
        }
        let heard = take(store, &one).await;
        assert_eq!(heard.len(), expected, "{subscription:?}: {heard:#?}");
        assert!(heard.iter().all(|note| note.contact_id == ann.id && !note.may_enter));
        // Another version waits for nothing; the run is of the first, until it ends.
        let next = Automation { version: 2, ..one.clone() };
        let runs = RunSubscription::default();
        let subscription = EventSubscription { entry: Some(EntrySubscription::Nothing), runs };
        put(store, [listening(&next, subscription, Vec::new(), Expect::Revision(1))]).await;
        let again = [Write::AppendProductEvents(vec![product_event(&ann, "x")]), happen(&message, EventKind::Click)];
        put(store, again.clone()).await;
        assert_eq!(take(store, &one).await.len(), expected.min(2).min(if expected == 2 { 1 } else { 2 }));
        let over = Run { status: RunStatus::Completed, ended_at: Some(at(40)), due_at: None, ..waiting };
        put(store, [put_run(&over, Expect::Revision(1))]).await;
        put(store, [Write::AppendProductEvents(vec![product_event(&ann, "x")])]).await;
        assert_eq!(take(store, &one).await, []);
    }
}

/// Events during a pause are kept for open runs and enter nobody; a draft gets no notes.
pub async fn a_paused_automation_hears_for_its_runs_alone(store: &dyn Store) {
    let one = automation(id());
    let (ann, bob) = (contact(one.workspace_id), contact(one.workspace_id));
    let subscription = || EventSubscription {
        entry: Some(EntrySubscription::Event("x".to_owned())),
        runs: RunSubscription { everything: true, ..RunSubscription::default() },
    };
    let in_state =
        |status, expect| listening(&Automation { status, ..one.clone() }, subscription(), Vec::new(), expect);
    let happen = || [&ann, &bob].map(|contact| Write::AppendProductEvents(vec![product_event(contact, "x")]));
    put(store, [in_state(AutomationStatus::Draft, Expect::Absent), add_contact(&ann), add_contact(&bob)]).await;
    put(store, happen()).await;
    assert_eq!(take(store, &one).await, []);
    put(store, [in_state(AutomationStatus::Active, Expect::Revision(1)), put_run(&run(&one, &ann), Expect::Absent)])
        .await;
    put(store, happen()).await;
    let heard = async || {
        let mut heard: Vec<_> = take(store, &one).await.iter().map(|note| (note.contact_id, note.may_enter)).collect();
        heard.sort_unstable();
        heard
    };
    assert_eq!(heard().await, [(ann.id, true), (bob.id, true)], "one note serves the run and the trigger");
    put(store, [in_state(AutomationStatus::Paused, Expect::Revision(2))]).await;
    put(store, happen()).await;
    assert_eq!(heard().await, [(ann.id, false)]);
}

/// Opens and clicks by machines leave no notes; other events of messages do.
pub async fn events_of_messages_are_told_but_for_machines(store: &dyn Store) {
    let (one, ann, _) = on_the_way(store, RunSubscription { messages: true, ..RunSubscription::default() }).await;
    let message = Message { contact_id: Some(ann.id), ..bare_message(one.workspace_id) };
    let nobodys = Message { contact_id: None, ..bare_message(one.workspace_id) };
    put(store, [insert(&message), insert(&nobodys)]).await;
    let mut expected = Vec::new();
    for kind in EventKind::ALL {
        for machine in [false, true] {
            let happened = MessageEvent { meta: object(&json!({"machine": machine})), ..event(&message, kind, 5) };
            put(store, [Write::AppendEvent(Box::new(happened.clone()))]).await;
            let is_told = !matches!(
                kind,
                EventKind::Queued
                    | EventKind::Deferred
                    | EventKind::Failed
                    | EventKind::Suppressed
                    | EventKind::Cancelled
            );
            expected.extend((is_told && !machine).then_some(happened.id));
        }
    }
    put(store, [Write::AppendEvent(Box::new(event(&nobodys, EventKind::Open, 5)))]).await;
    let told: Vec<_> = take(store, &one)
        .await
        .into_iter()
        .map(|note| match note.cause {
            Cause::Message { event_id, .. } => event_id,
            cause => panic!("{cause:?}"),
        })
        .collect();
    assert_eq!(told, expected);
}

/// Notes are taken up to a position by one commit, and none up to that position is read again.
pub async fn notes_are_taken_once(store: &dyn Store) {
    let one = automation(id());
    let ann = contact(one.workspace_id);
    put(store, [entered_by(&one, EntrySubscription::Event("x".to_owned())), add_contact(&ann)]).await;
    let happen = async || put(store, [Write::AppendProductEvents(vec![product_event(&ann, "x")])]).await;
    for _ in 0..3 {
        happen().await;
    }
    let notes = kept(store, &one).await;
    let shard = notes[0].0;
    let take = |n: usize| {
        let (workspace_id, automation_id) = (one.workspace_id, one.id);
        [Write::Automation(AutomationWrite::TakeNotes(TakeNotes {
            workspace_id,
            automation_id,
            shard,
            up_to: notes[n].1,
        }))]
    };
    let other = TakeNotes { workspace_id: id(), automation_id: one.id, shard, up_to: notes[0].1 };
    refuse(store, [Write::Automation(AutomationWrite::TakeNotes(other))]).await;
    refuse(
        store,
        [Write::Automation(AutomationWrite::TakeNotes(TakeNotes {
            shard: (shard + 1) % 4,
            workspace_id: one.workspace_id,
            ..other
        }))],
    )
    .await;
    put(store, take(1)).await;
    assert_eq!(kept(store, &one).await, notes[2..]);
    refuse(store, take(0)).await;
    refuse(store, take(1)).await;
    put(store, take(2)).await;
    happen().await;
    refuse(store, take(2)).await;
    let left = kept(store, &one).await;
    assert_eq!(left.len(), 1);
    assert!(notes.iter().all(|(_, place, ..)| *place != left[0].1));
    assert_eq!(store.automation_notes(one.workspace_id, one.id, shard, 0).await.unwrap(), []);
}

/// A note makes the job of its shard due.
pub async fn notes_make_jobs_due(store: &dyn Store) {
    let one = automation(id());
    let ann = contact(one.workspace_id);
    put(store, [entered_by(&one, EntrySubscription::ListAdded(id())), add_contact(&ann)]).await;
    let list = contact_list(one.workspace_id);
    put(store, [Write::put(list.clone(), Expect::Absent)]).await;
    put(store, lanes(&one).iter().map(|lane| enqueue(lane.as_str(), 9_000))).await;
    put(store, [Write::JoinList(one.workspace_id, list.id, ann.id, at(100))]).await;
    assert_eq!(store.claim(claim(8_999)).await.unwrap(), [], "it is of another list");
    let runs = RunSubscription::default();
    let subscription = EventSubscription { entry: Some(EntrySubscription::ListAdded(list.id)), runs };
    put(store, [listening(&one, subscription, Vec::new(), Expect::Revision(1))]).await;
    put(store, [Write::LeaveList(one.workspace_id, list.id, ann.id, at(100))]).await;
    put(store, [Write::JoinList(one.workspace_id, list.id, ann.id, at(200))]).await;
    let shard = kept(store, &one).await[0].0;
    let claimed = store.claim(claim(200)).await.unwrap();
    let found: Vec<_> = claimed.iter().map(|job| job.handle.lane.as_str()).collect();
    assert_eq!(found, [lanes(&one)[usize::from(shard)].as_str()]);
}

/// A commit states the depth of the changes that follow in it; events of a message of a run have the depth of the run.
/// So do moves of segments that follow.
pub async fn notes_know_how_deep_they_are(store: &dyn Store) {
    let everything = RunSubscription { everything: true, ..RunSubscription::default() };
    let (one, ann, waiting) = on_the_way(store, everything).await;
    let workspace = one.workspace_id;
    let message = Message { contact_id: Some(ann.id), automation_id: Some(one.id), ..bare_message(workspace) };
    let deep = Run { depth: 5, ..run(&one, &ann) };
    let sends =
        PutRun { run: deep, expect: Expect::Absent, steps: Vec::new(), messages: vec![(message.id, "s".to_owned())] };
    put(store, [insert(&message), Write::Automation(AutomationWrite::PutRun(Box::new(sends)))]).await;
    let happen = |name: &str| Write::AppendProductEvents(vec![product_event(&ann, name)]);
    let open = || Write::AppendEvent(Box::new(event(&message, EventKind::Open, 5)));
    put(store, [happen("a"), Write::Automation(AutomationWrite::CausedAt(3)), happen("b"), open()]).await;
    put(store, [happen("c"), open()]).await;
    let mut depths: Vec<_> = take(store, &one).await.iter().map(|note| note.depth).collect();
    assert_eq!(depths, [0, 3, 5, 0, 5]);
    depths.clear();

    let vips = json!({"type": "tag", "op": "has_any", "values": ["vip"]});
    let segment = stored(store, workspace, &vips).await;
    let entered = automation(workspace);
    put(store, [entered_by(&entered, EntrySubscription::SegmentExit(segment))]).await;
    let queries = [(segment, query(&vips))];
    while follow(store, workspace, &queries, 9).await {}
    calculate_with(store, workspace, segment, &query(&vips), MoveNotes::Silent).await;
    let plain = Contact { tags: Vec::new(), ..changed(&ann, 50) };
    put(store, [Write::Automation(AutomationWrite::CausedAt(6)), Write::put_contact(plain, Expect::Revision(1))]).await;
    while follow(store, workspace, &queries, 9).await {}
    depths.extend(take(store, &entered).await.iter().map(|note| note.depth));
    assert_eq!(depths, [6]);
    assert_eq!(waiting.depth, 1);
}

/// Moves of contacts into and out of segments are noted; those found by a first calculation, and by one after an edit,
/// only for automations that include existing members.
pub async fn moves_of_segments_are_told(store: &dyn Store) {
    let workspace: WorkspaceId = id();
    let vips = json!({"type": "tag", "op": "has_any", "values": ["vip"]});
    let segment = stored(store, workspace, &vips).await;
    let query = || MemberQuery { now: at(77), ..query(&vips) };
    let enter = |include_existing| EntrySubscription::SegmentEnter { segment_id: segment, include_existing };
    let [entering, existing, leaving, other] =
        [enter(false), enter(true), EntrySubscription::SegmentExit(segment), EntrySubscription::SegmentExit(id())]
            .map(|entry| (automation(workspace), entry));
    put(store, [&entering, &existing, &leaving, &other].map(|(one, entry)| entered_by(one, entry.clone()))).await;
    let ann = contact(workspace);
    let bob = Contact { tags: Vec::new(), ..contact(workspace) };
    put(store, [add_contact(&ann), add_contact(&bob)]).await;
    calculate_with(store, workspace, segment, &query(), MoveNotes::Silent).await;
    let entered = |contact: &Contact| note(contact, Cause::SegmentEntered(segment), 77);
    let left = |contact: &Contact| note(contact, Cause::SegmentLeft(segment), 77);
    assert_eq!(take(store, &entering.0).await, []);
    assert_eq!(take(store, &existing.0).await, [entered(&ann)]);
    // All further moves are noted, found by following and by a calculation.
    let follow_all = async || while follow(store, workspace, &[(segment, query())], 9).await {};
    follow_all().await;
    put(store, [Write::put_contact(Contact { tags: Vec::new(), ..ann.clone() }, Expect::Revision(1))]).await;
    follow_all().await;
    put(store, [Write::put_contact(Contact { tags: vec!["vip".to_owned()], ..bob.clone() }, Expect::Revision(1))])
        .await;
    calculate_with(store, workspace, segment, &query(), MoveNotes::Written).await;
    follow_all().await;
    assert_eq!(take(store, &entering.0).await, [entered(&bob)]);
    assert_eq!(take(store, &existing.0).await, [entered(&bob)]);
    assert_eq!(take(store, &leaving.0).await, [left(&ann)]);
    assert_eq!(take(store, &other.0).await, []);
}

/// A refused commit leaves no note, alone and among others.
pub async fn a_commit_that_is_refused_tells_nobody(store: &dyn Store) {
    let one = automation(id());
    let ann = contact(one.workspace_id);
    put(store, [entered_by(&one, EntrySubscription::Event("x".to_owned())), add_contact(&ann)]).await;
    let told = || Write::AppendProductEvents(vec![product_event(&ann, "x")]);
    let refused = || [told(), add_contact(&ann)];
    refuse(store, refused()).await;
    assert_eq!(take(store, &one).await, []);
    for _ in 0..5 {
        let (first, second, third) =
            tokio::join!(commit(store, [told()]), commit(store, refused()), commit(store, [told(), told()]),);
        assert!(first.is_ok() && second.is_err() && third.is_ok(), "{first:?} {second:?} {third:?}");
    }
    assert_eq!(take(store, &one).await.len(), 15);
}
