//! Cases about operations that two handles of one database run at the same moment.
//!
//! A case cannot hold a commit open, so most cases repeat one race many times, with both sides started together.

use std::collections::HashSet;

use bytes::Bytes;
use messaging_core::changes::{
    AutomationWrite, Condition, ContactSends, DocumentKey, EraseCopy, Expect, JobWrite, TakeNotes, Write, moves,
};
use messaging_core::domain::audience::contact::Contact;
use messaging_core::domain::audience::list::{ContactList, Visibility};
use messaging_core::domain::audience::subscription::{Proof, Subscription, SubscriptionAct, SubscriptionStatus};
use messaging_core::domain::automation::note::{Cause, EntrySubscription};
use messaging_core::domain::campaign::{CampaignStatus, Reference};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::attachment::MessageBlob;
use messaging_core::domain::message::{EventKind, Message};
use messaging_core::domain::security::account::Workspace;
use messaging_core::ids::{ContactId, EventId};
use messaging_core::ports::Store;
use messaging_core::ports::settle_blobs;
use messaging_core::ports::store::jobs::Claim;
use messaging_core::ports::store::{CommitError, StoreCursor};
use serde_json::json;

use super::attempts::attempt;
use super::campaigns::Named;
use super::redaction::redaction;
use super::sample::{
    at, automation, bare_message, claim, contact, contact_list, enqueue, event, finish, handles, id, id_at, insert,
    job, product_event, reply, workspace,
};
use super::segments::{add_contact, follow_all, members, query, stored};
use super::{
    Twice, all_pages, automation_samples, campaign_messages, campaigns, commit, events, first, put, refuse, segments,
};

/// Number of rounds of a race.
const ROUNDS: usize = 40;

impl Twice {
    fn both(&self) -> [&dyn Store; 2] {
        [&*self.first, &*self.second]
    }
}

/// Returns true if a commit was done; any refusal but a conflict fails the case.
fn is_done(outcome: Result<(), CommitError>) -> bool {
    match outcome {
        Ok(()) => true,
        Err(CommitError::Conflict) => false,
        Err(error) => panic!("a conflict is expected, this came: {error:?}"),
    }
}

/// Of two commits with the same expectation, one is done, and both handles show its result.
pub async fn one_of_two_commits_conflicts(twice: &Twice) {
    let [one, other] = twice.both();
    let original = workspace();
    put(one, [Write::put(original.clone(), Expect::Absent)]).await;
    for revision in 1..=ROUNDS {
        let read = u32::try_from(revision).unwrap();
        let named = |name: &str| {
            let renamed = Workspace { name: format!("{name} {revision}"), ..original.clone() };
            [Write::put(renamed, Expect::Revision(read)), enqueue(name, 0)]
        };
        let (first, second) = tokio::join!(commit(one, named("first")), commit(other, named("second")));
        let done = [is_done(first), is_done(second)];
        assert_ne!(done[0], done[1], "round {revision}");
        let expected = format!("{} {revision}", if done[0] { "first" } else { "second" });
        for store in twice.both() {
            let found = store.workspace(original.id).await.unwrap().unwrap();
            assert_eq!((found.record.name.as_str(), found.revision), (expected.as_str(), read + 1));
        }
    }
    assert_eq!(one.job_count().await.unwrap(), ROUNDS as u64, "nothing of the others is left");
}

/// Of two requests with one Idempotency-Key, one has an effect, and the other finds its reply.
pub async fn a_reply_is_remembered_once(twice: &Twice) {
    let [one, other] = twice.both();
    for round in 0..ROUNDS {
        let key = format!("key {round}");
        let messages = [bare_message(id()), bare_message(id())];
        let request = |of: usize| {
            let mut reply = reply(&key, 0, 100);
            reply.body = Bytes::from(messages[of].id.to_string());
            [insert(&messages[of]), Write::Remember(Box::new(reply))]
        };
        let (first, second) = tokio::join!(commit(one, request(0)), commit(other, request(1)));
        let done = [is_done(first), is_done(second)];
        assert_ne!(done[0], done[1], "round {round}");
        let kept = usize::from(done[1]);
        for store in twice.both() {
            let remembered = store.reply(&reply(&key, 0, 100).key, at(1)).await.unwrap().unwrap();
            assert_eq!(remembered.body, messages[kept].id.to_string());
            for (of, message) in messages.iter().enumerate() {
                let found = store.message(message.workspace_id, message.id).await.unwrap();
                assert_eq!(found.is_some(), of == kept);
            }
        }
    }
}

/// Of the outcome of an attempt and an erasure that read the transaction log before it, both decided on the same
/// revision of the message, one is committed and the other conflicts.
pub async fn an_outcome_and_an_erasure_do_not_pass_each_other(twice: &Twice) {
    let [one, other] = twice.both();
    for round in 0..ROUNDS {
        let message = bare_message(id());
        put(one, [insert(&message)]).await;
        let (workspace_id, message_id) = (message.workspace_id, message.id);
        let attempt = Write::AppendAttempt(Box::new(attempt(workspace_id, message_id, 1, 0)));
        let looked_at = Message { revision: message.revision + 1, ..message.clone() };
        let outcome = moves(&message, &looked_at, None, at(1)).into_iter().chain([attempt]);
        let erasure = if round % 2 == 0 {
            Write::RedactMessage(Box::new(redaction(&message)))
        } else {
            Write::EraseCopy(Box::new(EraseCopy {
                workspace_id,
                message_id,
                revision: message.revision,
                tags: Vec::new(),
                metadata: serde_json::Map::new(),
                content: None,
                events: Vec::new(),
                attempts: Vec::new(),
                capture: None,
            }))
        };
        let (ended, erased) = tokio::join!(commit(one, outcome), commit(other, [erasure]));
        let done = [is_done(ended), is_done(erased)];
        assert_ne!(done[0], done[1], "round {round}");
        let kept = other.attempts(workspace_id, message_id, first(9)).await.unwrap().items.len();
        assert_eq!(kept, usize::from(done[0]));
    }
}

/// Two commits that each add a job with `EnqueueOnce` leave one job.
pub async fn a_job_that_is_needed_once_is_there_once(twice: &Twice) {
    let [one, other] = twice.both();
    for round in 0..ROUNDS {
        let once = || [Write::Job(JobWrite::EnqueueOnce(job(&format!("lane {round}"), 0)))];
        tokio::join!(put(one, once()), put(other, once()));
        let claimed = one.claim(claim(0)).await.unwrap();
        assert_eq!(claimed.len(), 1, "round {round}");
        put(one, finish(&claimed)).await;
    }
    assert_eq!(one.job_count().await.unwrap(), 0);
}

/// While a job ends, another commit adds a note and a job with `EnqueueOnce`: a read after the end sees the note, or
/// there is another job.
pub async fn a_job_that_ends_leaves_one_that_was_needed(twice: &Twice) {
    let [one, other] = twice.both();
    let workspace = id();
    for round in 0..ROUNDS {
        put(one, [Write::Job(JobWrite::EnqueueOnce(job("lane", 0)))]).await;
        let claimed = one.claim(claim(0)).await.unwrap();
        assert_eq!(claimed.len(), 1, "round {round}");
        let note = contact_list(workspace);
        let noted = [Write::put(note.clone(), Expect::Absent), Write::Job(JobWrite::EnqueueOnce(job("lane", 0)))];
        let end = async {
            put(one, finish(&claimed)).await;
            one.list(workspace, note.id).await.unwrap().is_some()
        };
        let (is_seen, ()) = tokio::join!(end, put(other, noted));
        let next = one.claim(claim(0)).await.unwrap();
        assert!(is_seen || next.len() == 1, "round {round}: a note that nobody reads");
        put(one, finish(&next)).await;
        assert_eq!(one.job_count().await.unwrap(), 0, "round {round}");
    }
}

/// Contacts that change through one handle while a segment is made and calculated through the other end up in it
/// exactly if they match.
pub async fn contacts_that_change_while_a_segment_is_made_are_followed(twice: &Twice) {
    let [one, other] = twice.both();
    let workspace = id();
    let contacts: Vec<Contact> = (0..60).map(|_| Contact { tags: Vec::new(), ..contact(workspace) }).collect();
    put(one, contacts.iter().map(add_contact).collect::<Vec<_>>()).await;
    let filter = json!({"type": "tag", "op": "has_any", "values": ["vip"]});
    let change = async {
        for (n, contact) in contacts.iter().enumerate() {
            let tags = if n % 3 == 0 { Vec::new() } else { vec!["vip".to_owned()] };
            put(other, [Write::put_contact(Contact { tags, ..contact.clone() }, Expect::Revision(1))]).await;
        }
    };
    let make = async {
        let segment = stored(one, workspace, &filter).await;
        segments::keeping::calculate(one, workspace, segment, &query(&filter)).await;
        segment
    };
    let ((), segment) = tokio::join!(change, make);
    follow_all(one, workspace, &[(segment, query(&filter))]).await;
    let expected: HashSet<ContactId> =
        contacts.iter().enumerate().filter(|(n, _)| n % 3 != 0).map(|(_, contact)| contact.id).collect();
    for store in twice.both() {
        let found = members(store, workspace, segment).await;
        assert_eq!((found.len(), found.into_iter().collect::<HashSet<_>>()), (expected.len(), expected.clone()));
    }
}

/// A contact is erased while it joins a list or gets a product event: each of these commits before, or conflicts.
pub async fn nobody_joins_or_acts_after_they_are_gone(twice: &Twice) {
    let [one, other] = twice.both();
    let workspace = id();
    let list = contact_list(workspace);
    put(one, [Write::put(list.clone(), Expect::Absent)]).await;
    for _ in 0..ROUNDS {
        let contact = contact(workspace);
        put(one, [add_contact(&contact)]).await;
        let join = [Write::JoinList(workspace, list.id, contact.id, at(0))];
        let act = [Write::AppendProductEvents(vec![product_event(&contact, "order_placed")])];
        let go = [Write::DeleteContact(workspace, contact.id)];
        let (joined, acted, gone) = tokio::join!(commit(other, join), commit(other, act), commit(one, go));
        gone.unwrap();
        let (_, has_acted) = (is_done(joined), is_done(acted));
        for store in twice.both() {
            assert_eq!(store.contact(workspace, contact.id).await.unwrap(), None);
            assert_eq!(store.memberships(workspace, list.id, &[contact.id]).await.unwrap(), []);
            assert_eq!(store.list(workspace, list.id).await.unwrap().unwrap().record.contact_count, 0);
            assert_eq!(store.has_left_events(workspace, contact.id).await.unwrap(), has_acted);
        }
    }
}

/// A confirmation and an unsubscribe run at the same moment, each decided on what it has read: the final status and
/// membership agree.
pub async fn a_status_and_its_membership_agree(twice: &Twice) {
    let [one, other] = twice.both();
    let workspace = id();
    let list = ContactList { visibility: Visibility::Public, ..contact_list(workspace) };
    put(one, [Write::put(list.clone(), Expect::Absent)]).await;
    let mut members = 0;
    for _ in 0..ROUNDS {
        let contact = contact(workspace);
        put(one, [add_contact(&contact)]).await;
        let act = async |store: &dyn Store, status: SubscriptionStatus| loop {
            let known = store.subscriptions_among(workspace, &[list.id], &[contact.id]).await.unwrap().pop();
            let is_member = store.memberships(workspace, list.id, &[contact.id]).await.unwrap()[0].1;
            let proof = Proof::of_workspace(SubscriptionAct::Api, at(1));
            let expect = known.as_ref().map_or(Expect::Absent, |stored| Expect::Revision(stored.revision));
            let ids = (workspace, list.id, contact.id);
            let record = known.map_or_else(
                || Subscription::new(ids, status, proof.clone()),
                |stored| stored.record.with(status, proof.clone()),
            );
            let mut writes = vec![Write::PutSubscription(Box::new(record), expect)];
            match status {
                SubscriptionStatus::Confirmed if !is_member => {
                    writes.push(Write::JoinList(workspace, list.id, contact.id, at(1)));
                }
                SubscriptionStatus::Left => writes.push(Write::LeaveList(workspace, list.id, contact.id, at(1))),
                _ => {}
            }
            if is_done(commit(store, writes).await) {
                return;
            }
        };
        tokio::join!(act(one, SubscriptionStatus::Confirmed), act(other, SubscriptionStatus::Left));
        let found = one.subscriptions_among(workspace, &[list.id], &[contact.id]).await.unwrap();
        let is_confirmed = found[0].record.status == SubscriptionStatus::Confirmed;
        members += u64::from(is_confirmed);
        for store in twice.both() {
            let on_list = store.memberships(workspace, list.id, &[contact.id]).await.unwrap();
            assert_eq!(on_list, [(contact.id, is_confirmed)]);
            assert_eq!(store.list(workspace, list.id).await.unwrap().unwrap().record.contact_count, members);
        }
    }
}

/// Of the notes that two writers make for an automation at the same moment, each is read and taken once, also while
/// more are made.
pub async fn notes_of_both_writers_are_worked_off_once(twice: &Twice) {
    let [one, other] = twice.both();
    let told = automation(id());
    let ann = contact(told.workspace_id);
    let by_event = automation_samples::entered_by(&told, EntrySubscription::Event("x".to_owned()));
    put(one, [by_event, add_contact(&ann)]).await;
    let tell = async |store| {
        let mut events = Vec::new();
        for _ in 0..ROUNDS {
            let event = product_event(&ann, "x");
            events.push(Cause::Event(event.id));
            put(store, [Write::AppendProductEvents(vec![event])]).await;
        }
        events
    };
    let work_off = async || {
        let (workspace_id, automation_id) = (told.workspace_id, told.id);
        let mut heard = Vec::new();
        while heard.len() < 2 * ROUNDS {
            for shard in 0..4 {
                let notes = one.automation_notes(workspace_id, automation_id, shard, 3).await.unwrap();
                let Some((up_to, ..)) = notes.last() else { continue };
                let take = TakeNotes { workspace_id, automation_id, shard, up_to: *up_to };
                put(one, [Write::Automation(AutomationWrite::TakeNotes(take))]).await;
                refuse(other, [Write::Automation(AutomationWrite::TakeNotes(take))]).await;
                heard.extend(notes.into_iter().map(|(_, note, _)| note.cause));
            }
            tokio::task::yield_now().await;
        }
        heard
    };
    let (first, second, heard) = tokio::join!(tell(one), tell(other), work_off());
    for events in [first, second] {
        let own: Vec<_> = heard.iter().filter(|cause| events.contains(cause)).cloned().collect();
        assert_eq!(own, events, "each writer's in its order");
    }
    assert_eq!(heard.len(), 2 * ROUNDS);
}

/// A reader that follows the log from position to position while both handles write misses nothing and reads nothing
/// twice.
pub async fn the_log_is_read_without_a_gap_while_both_write(twice: &Twice) {
    let [one, other] = twice.both();
    let message = bare_message(id());
    put(one, [insert(&message)]).await;
    let write = async |store| {
        let mut written = Vec::new();
        for n in 0..ROUNDS {
            // The times go backwards, so that only the commits give an order.
            let event = event(&message, EventKind::Open, 1_000 - i64::try_from(n).unwrap());
            put(store, events::logged(&event)).await;
            written.push(event.id);
        }
        written
    };
    let read = async {
        let (mut found, mut after): (Vec<EventId>, Option<StoreCursor>) = (Vec::new(), None);
        for turn in 0_usize.. {
            let store = twice.both()[turn % 2];
            let page = store.events_after(message.workspace_id, after, 7).await.unwrap();
            after = page.last().map(|(place, _, _)| *place).or(after);
            found.extend(page.iter().map(|(_, event, _)| event.id));
            if found.len() >= 2 * ROUNDS {
                break;
            }
            tokio::task::yield_now().await;
        }
        (found, after)
    };
    let (first, second, (found, end)) = tokio::join!(write(one), write(other), read);
    assert_eq!(found.len(), 2 * ROUNDS);
    for of_one in [first, second] {
        let mut rest = found.iter();
        assert!(of_one.iter().all(|written| rest.any(|read| read == written)), "in the order of its commits");
    }
    for store in twice.both() {
        assert_eq!(store.events_after(message.workspace_id, end, 7).await.unwrap(), []);
    }
}

/// A listing that is paged through one handle while the other adds rows shows every earlier row once.
pub async fn a_listing_is_exact_while_the_other_writes(twice: &Twice) {
    let [one, other] = twice.both();
    let workspace = id();
    let mut expected = Vec::new();
    for _ in 0..ROUNDS {
        let contact = contact(workspace);
        put(one, [add_contact(&contact)]).await;
        expected.insert(0, contact.id);
    }
    let write = async {
        for _ in 0..ROUNDS {
            put(other, [add_contact(&contact(workspace))]).await;
        }
    };
    let list = async {
        let filter = messaging_core::domain::audience::contact::ContactFilter::default();
        let page = async |page| one.contacts(workspace, &filter, page).await;
        all_pages(3, page, async || tokio::task::yield_now().await).await
    };
    let ((), listed) = tokio::join!(write, list);
    let listed: Vec<_> = listed.into_iter().map(|contact| contact.id).collect();
    let distinct: HashSet<_> = listed.iter().collect();
    assert_eq!(distinct.len(), listed.len(), "a row was listed twice");
    assert!(listed.ends_with(&expected), "a row was left out");
}

/// A blob that is committed while a sweep by the other handle examines it is kept, or the commit conflicts.
pub async fn blobs_are_kept_or_abandoned(twice: &Twice) {
    let [one, other] = twice.both();
    let (blobs, others) = (one.blobs(), other.blobs());
    for round in 0..ROUNDS {
        let message = bare_message(id());
        let blob = MessageBlob { workspace_id: message.workspace_id, message_id: message.id, id: id_at(0) };
        blobs.put_blob(blob, Bytes::from_static(b"bytes")).await.unwrap();
        let name = async || {
            let done = is_done(commit(one, [insert(&message), Write::KeepBlob(blob)]).await);
            if done {
                blobs.keep_blobs(&[blob]).await.unwrap();
            }
            done
        };
        let settle = async || settle_blobs(other, &*others, at(1), 10).await.unwrap();
        // Half of the rounds have a fixed order, so that both outcomes occur however the threads run.
        let done = match round % 4 {
            0 => {
                assert_eq!((name().await, settle().await), (true, 0));
                true
            }
            1 => {
                assert_eq!((settle().await, name().await), (1, false));
                false
            }
            _ => tokio::join!(name(), settle()).0,
        };
        assert_eq!(one.message(message.workspace_id, message.id).await.unwrap().is_some(), done);
        assert_eq!(others.blob(blob.workspace_id, blob.id).await.unwrap().is_some(), done);
    }
}

/// Jobs that both handles add are claimed once each; if both handles claim, all jobs of a lane are claimed by one of
/// them.
pub async fn jobs_are_claimed_once(twice: &Twice) {
    let [one, other] = twice.both();
    let lanes = ["a", "b", "c", "d", "e"];
    let add = async |store| {
        for n in 0..ROUNDS {
            put(store, [enqueue(lanes[n % 5], 0)]).await;
        }
    };
    let work = async |store: &dyn Store| {
        let (mut seen, mut idle) = (Vec::new(), 0);
        while idle < 20 {
            let claimed = store.claim(Claim { max: 7, per_lane: 3, ..claim(1) }).await.unwrap();
            idle = if claimed.is_empty() { idle + 1 } else { 0 };
            seen.extend(handles(&claimed));
            put(store, finish(&claimed)).await;
            tokio::task::yield_now().await;
        }
        seen
    };
    tokio::join!(add(one), add(other));
    let (first, second) =
        if twice.claims { tokio::join!(work(one), work(other)) } else { (work(one).await, Vec::new()) };
    let lanes_of = |seen: &[messaging_core::changes::JobHandle]| {
        seen.iter().map(|handle| handle.lane.to_string()).collect::<HashSet<_>>()
    };
    assert!(lanes_of(&first).is_disjoint(&lanes_of(&second)), "a lane was at two handles");
    let distinct: HashSet<_> = first.iter().chain(&second).map(|handle| handle.id).collect();
    assert_eq!((distinct.len(), first.len() + second.len()), (2 * ROUNDS, 2 * ROUNDS));
    assert_eq!(one.job_count().await.unwrap(), 0);
}

/// A list is removed while a campaign that names it is scheduled: one of the two commits conflicts.
pub async fn what_a_campaign_names_is_held_or_gone(twice: &Twice) {
    let [one, other] = twice.both();
    let workspace = id();
    for round in 0..ROUNDS {
        let named = Named::put(one, workspace).await;
        let draft = named.campaign();
        put(one, [campaigns::create(&draft)]).await;
        let schedule = [campaigns::replace(&campaigns::in_state(&draft, CampaignStatus::Scheduled), 1)];
        let unused = Write::Expect(Condition::Unused(workspace, Reference::List(named.list.id)));
        let remove = [unused, Write::Delete(DocumentKey::List(workspace, named.list.id))];
        let (scheduled, removed) = tokio::join!(commit(one, schedule), commit(other, remove));
        let (is_scheduled, is_removed) = (is_done(scheduled), is_done(removed));
        assert_ne!(is_scheduled, is_removed, "round {round}");
        for store in twice.both() {
            assert_eq!(store.list(workspace, named.list.id).await.unwrap().is_some(), is_scheduled);
            let held = store.campaigns_holding(workspace, Reference::List(named.list.id), 9).await.unwrap();
            assert_eq!(held.len(), usize::from(is_scheduled));
        }
    }
}

/// Of two commits that release the same message, each with a job for it, one conflicts.
pub async fn a_waiting_message_is_released_once(twice: &Twice) {
    let [one, other] = twice.both();
    let (campaign, waiting) = campaign_messages::with_waiting(one, &[(3, 0); ROUNDS]).await;
    for (round, new) in waiting.iter().enumerate() {
        let keys = vec![campaign_messages::key(new)];
        let release = || {
            let take = Write::TakeWaiting(campaign.workspace_id, campaign.id, keys.clone());
            [take, enqueue("bulk", 0)]
        };
        let (first, second) = tokio::join!(commit(one, release()), commit(other, release()));
        assert_ne!(is_done(first), is_done(second), "round {round}");
    }
    assert_eq!(other.job_count().await.unwrap(), ROUNDS as u64);
    assert_eq!(other.waiting_tracks(campaign.workspace_id, campaign.id).await.unwrap(), []);
}

/// Messages of a campaign that is paused at the same moment are released before the pause, or not at all.
pub async fn nothing_is_released_after_a_pause(twice: &Twice) {
    let [one, other] = twice.both();
    for round in 0..ROUNDS {
        let named = Named::put(one, id()).await;
        let sending = campaigns::in_state(&named.campaign(), CampaignStatus::Sending);
        let (workspace, of) = (sending.workspace_id, sending.id);
        let waiting: Vec<_> = (0..3).map(|n| campaign_messages::new_waiting(&sending, n, 0)).collect();
        put(one, [campaigns::create(&sending), Write::InsertWaiting(workspace, of, waiting.clone())]).await;
        let release = async {
            let mut released = 0;
            for new in &waiting {
                let expect = Write::Expect(Condition::Campaign(workspace, of, CampaignStatus::Sending));
                let take = Write::TakeWaiting(workspace, of, vec![campaign_messages::key(new)]);
                if !is_done(commit(one, [expect, take]).await) {
                    break;
                }
                released += 1;
            }
            released
        };
        let pause = async {
            put(other, [campaigns::replace(&campaigns::in_state(&sending, CampaignStatus::Paused), 1)]).await;
            other.waiting_tracks(workspace, of).await.unwrap().len()
        };
        let (released, left) = tokio::join!(release, pause);
        assert_eq!(released + left, 3, "round {round}");
        assert_eq!(one.waiting_tracks(workspace, of).await.unwrap().len(), left);
    }
}

/// Of two campaigns that take the last place under a contact's cap at the same moment, one succeeds.
pub async fn a_place_under_a_cap_is_taken_once(twice: &Twice) {
    let [one, other] = twice.both();
    let contact = contact(id());
    let workspace = contact.workspace_id;
    put(one, [add_contact(&contact)]).await;
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        let read = one.contact_sends(workspace, contact.id, Channel::Email).await.unwrap();
        let expect = read.map_or(Expect::Absent, |stored| Expect::Revision(stored.revision));
        let take = |n: i64| {
            let times = times.iter().copied().chain([at(n * 1_000)]).collect();
            let (contact_id, channel) = (contact.id, Channel::Email);
            [Write::put(ContactSends { workspace_id: workspace, contact_id, channel, times }, expect)]
        };
        let n = 2 * i64::try_from(round).unwrap();
        let (first, second) = tokio::join!(commit(one, take(n)), commit(other, take(n + 1)));
        let is_first = is_done(first);
        assert_ne!(is_first, is_done(second), "round {round}");
        times.push(at((if is_first { n } else { n + 1 }) * 1_000));
        let found = other.contact_sends(workspace, contact.id, Channel::Email).await.unwrap().unwrap();
        assert_eq!(found.record.times, times);
    }
}
