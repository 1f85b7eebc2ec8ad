//! Segments and their members.

pub mod keeping;
pub mod kept;
pub mod random;

use jiff::tz::TimeZone;
use messaging_core::changes::{DocumentKey, Expect, JobWrite, Write};
use messaging_core::domain::audience::contact::attributes::Attributes;
use messaging_core::domain::audience::contact::{Contact, ContactFilter};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::{EventKind, Message};
use messaging_core::domain::segment::filter::{Condition, Filter};
use messaging_core::domain::segment::parse::{Purpose, parse};
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::domain::segment::{Segment, SegmentKind, SegmentStatus, StoredFilter};
use messaging_core::ids::{ContactId, SegmentId, WorkspaceId};
use messaging_core::ports::store::segments::{MemberQuery, MoveNotes, Moved};
use messaging_core::ports::store::{CommitError, Store};
use messaging_core::violation::Violations;
use serde_json::{Value, json};

use self::keeping::{calculate, claimed, follow};
use super::sample::{
    at, bare_message, contact, contact_list, event, id, insert, object, product_event, segment, suppression,
};
use super::{all_pages, first, put, refuse};

/// Number of random worlds that are tested, unless the environment says otherwise.
const WORLDS: u64 = 20;
/// Variable with the number of worlds, and optionally the first seed before it: `2000`, or `5000+2000`.
const WORLDS_VARIABLE: &str = "SEGMENT_WORLDS";

fn read(sent: &Value) -> StoredFilter {
    let mut violations = Violations::new();
    let tree = parse(sent, "", Purpose::Segment, &mut violations).filter;
    StoredFilter::new(sent, tree.unwrap_or_else(|| panic!("{sent} is a filter, but {violations:?}")))
}

pub(super) fn query(sent: &Value) -> MemberQuery {
    MemberQuery { filter: Filter::clone(read(sent).tree()), now: at(0), zone: TimeZone::UTC }
}

fn add(segment: &Segment) -> Write {
    Write::PutSegment(Box::new(segment.clone()), Expect::Absent)
}

pub(super) fn add_contact(contact: &Contact) -> Write {
    Write::put_contact(contact.clone(), Expect::Absent)
}

/// Stores a dynamic segment with a filter.
pub(super) async fn stored(store: &dyn Store, workspace: WorkspaceId, filter: &Value) -> SegmentId {
    let segment = Segment { kind: SegmentKind::Dynamic, filter: read(filter), ..segment(workspace) };
    put(store, [add(&segment)]).await;
    segment.id
}

/// Follows all changes; returns the moves.
pub(super) async fn follow_all(
    store: &dyn Store,
    workspace: WorkspaceId,
    segments: &[(SegmentId, MemberQuery)],
) -> Vec<(ContactId, bool)> {
    let mut all = Vec::new();
    let job = claimed(store).await;
    loop {
        let (moved, more) = store.follow_changes(workspace, segments, 10, &job).await.unwrap();
        all.extend(moved.into_iter().map(|Moved { contact, member, .. }| (contact, member)));
        if !more {
            return all;
        }
    }
}

pub(super) async fn members(store: &dyn Store, workspace: WorkspaceId, id: SegmentId) -> Vec<ContactId> {
    let members = all_pages(2, async |page| store.segment_contacts(workspace, id, page).await, async || ()).await;
    members.into_iter().map(|contact| contact.id).collect()
}

/// A segment is found by id; a change replaces everything but derived data.
pub async fn segments_round_trip(store: &dyn Store) {
    let workspace = id();
    let segment = segment(workspace);
    put(store, [add(&segment)]).await;
    let found = store.segment(workspace, segment.id).await.unwrap().unwrap();
    assert_eq!((&found.record, found.revision), (&segment, 1));
    refuse(store, [add(&segment)]).await;
    let changed = Segment {
        name: "«other»".to_owned(),
        filter: read(&json!({"not": {"type": "tag", "op": "has_any", "values": ["«\"x\"»"]}})),
        status: SegmentStatus::Ready,
        calculated_at: Some(at(60)),
        calculation: 2,
        updated_at: at(61),
        size: Some(99),
        ..segment
    };
    put(store, [Write::PutSegment(Box::new(changed.clone()), Expect::Revision(1))]).await;
    let found = store.segment(workspace, changed.id).await.unwrap().unwrap();
    // It was calculated, and has no members.
    assert_eq!((&found.record, found.revision), (&Segment { size: Some(0), ..changed.clone() }, 2));
    refuse(store, [Write::PutSegment(Box::new(changed.clone()), Expect::Revision(1))]).await;
    put(store, [Write::DeleteSegment(workspace, changed.id), Write::DeleteSegment(workspace, changed.id)]).await;
    assert_eq!(store.segment(workspace, changed.id).await.unwrap(), None);
    refuse(store, [Write::PutSegment(Box::new(changed), Expect::Revision(2))]).await;
}

/// Pages neither skip nor repeat.
pub async fn listing_is_exact_while_rows_are_inserted(store: &dyn Store) {
    let workspace = id();
    let mut expected = Vec::new();
    for _ in 0..5 {
        let segment = segment(workspace);
        put(store, [add(&segment)]).await;
        expected.insert(0, segment);
    }
    let add_more = async || put(store, [add(&segment(workspace))]).await;
    let listed = all_pages(2, async |page| store.segments(workspace, page).await, add_more).await;
    assert_eq!(listed, expected);
}

/// The read mask of all dynamic segments of a workspace is known.
pub async fn the_interest_is_that_of_all_dynamic_segments(store: &dyn Store) {
    let (workspace, other): (WorkspaceId, WorkspaceId) = (id(), id());
    let read_mask = async || store.segment_read_mask(workspace).await.unwrap();
    assert_eq!(read_mask().await, ReadMask::NONE);
    let tags = json!({"type": "tag", "op": "has_any", "values": ["vip"]});
    let frozen = Segment { kind: SegmentKind::Static, filter: read(&tags), ..segment(workspace) };
    put(store, [add(&frozen)]).await;
    assert_eq!(read_mask().await, ReadMask::NONE);
    let first = stored(store, workspace, &tags).await;
    stored(store, workspace, &json!({"type": "consent", "channel": "sms", "value": true})).await;
    assert_eq!(read_mask().await, ReadMask::EXISTENCE | ReadMask::TAGS | ReadMask::CONSENT);
    put(store, [Write::DeleteSegment(workspace, first)]).await;
    assert_eq!(read_mask().await, ReadMask::EXISTENCE | ReadMask::CONSENT);
    assert_eq!(store.segment_read_mask(other).await.unwrap(), ReadMask::NONE);
}

/// Members are the contacts that match; they are listed newest first and counted, by whatever change they come and go.
pub async fn members_are_calculated_and_counted(store: &dyn Store) {
    let workspace = id();
    let aged = |age: i64| Contact { attributes: object(&json!({"age": age})).into(), ..contact(workspace) };
    let contacts: Vec<_> = (0..5).map(aged).collect();
    put(store, contacts.iter().map(add_contact).collect::<Vec<_>>()).await;
    let segment = segment(workspace);
    put(store, [add(&segment)]).await;
    let size = async || {
        let found = store.segment(workspace, segment.id).await.unwrap().unwrap();
        let calculated = Segment { calculated_at: Some(at(1)), ..found.record };
        put(store, [Write::PutSegment(Box::new(calculated), Expect::Revision(found.revision))]).await;
        store.segment(workspace, segment.id).await.unwrap().unwrap().record.size
    };
    let above = |age: i64| query(&json!({"type": "attribute", "key": "age", "op": "gt", "value": age}));
    assert_eq!(calculate(store, workspace, segment.id, &above(1)).await, (3, 0));
    assert_eq!(members(store, workspace, segment.id).await, [contacts[4].id, contacts[3].id, contacts[2].id]);
    assert_eq!(size().await, Some(3));
    assert_eq!(calculate(store, workspace, segment.id, &above(1)).await, (0, 0));
    assert_eq!(calculate(store, workspace, segment.id, &above(2)).await, (0, 1));
    put(store, [Write::DeleteContact(workspace, contacts[4].id)]).await;
    assert_eq!(members(store, workspace, segment.id).await, [contacts[3].id]);
    assert_eq!(size().await, Some(1));
    let both = ContactFilter { segment_id: Some(segment.id), tag: Some("vip".to_owned()), ..ContactFilter::default() };
    assert_eq!(store.contacts(workspace, &both, first(10)).await.unwrap().items, [contacts[3].clone()]);
    let neither = ContactFilter { tag: Some("no".to_owned()), ..both };
    assert_eq!(store.contacts(workspace, &neither, first(10)).await.unwrap().items, []);
    // A segment that does not exist has no members and gets none.
    assert_eq!(calculate(store, workspace, id(), &above(0)).await, (0, 0));
    assert_eq!(calculate(store, workspace, segment.id, &query(&json!({}))).await, (3, 0));
    assert_eq!(size().await, Some(4));
}

/// A calculation of many contacts goes through all of them, in steps.
pub async fn a_calculation_goes_through_everybody(store: &dyn Store) {
    const CONTACTS: usize = 6000;
    let workspace = id();
    for _ in 0..CONTACTS / 1000 {
        put(store, (0..1000).map(|_| add_contact(&contact(workspace))).collect::<Vec<_>>()).await;
    }
    let segment = stored(store, workspace, &json!({})).await;
    let everyone = query(&json!({}));
    assert_eq!(calculate(store, workspace, segment, &everyone).await, (CONTACTS as u64, 0));
    assert_eq!(calculate(store, workspace, segment, &everyone).await, (0, 0));
    let nobody = query(&json!({"not": {"type": "tag", "op": "has_any", "values": ["vip"]}}));
    assert_eq!(calculate(store, workspace, segment, &nobody).await, (0, CONTACTS as u64));
    let preview = store.preview(workspace, &everyone, &[nobody.filter], 2).await.unwrap();
    assert_eq!((preview.size, preview.sizes, preview.sample.len()), (CONTACTS as u64, vec![0], 2));
}

/// Each kind of change is noted for the contacts it concerns, and following it moves them.
pub async fn every_kind_of_change_is_followed(store: &dyn Store) {
    let workspace = id();
    let ann = Contact {
        attributes: object(&json!({"telegram_chat_id": 4711})).into(),
        tags: Vec::new(),
        ..contact(workspace)
    };
    let bob = contact(workspace);
    let list = contact_list(workspace);
    let message = Message { contact_id: Some(ann.id), ..bare_message(workspace) };
    put(store, [add_contact(&ann), add_contact(&bob), Write::put(list.clone(), Expect::Absent), insert(&message)])
        .await;
    let email = suppression(workspace, Channel::Email, ann.email.as_deref().unwrap());
    let chat = suppression(workspace, Channel::Telegram, "4711");
    let product = product_event(&ann, "order_placed");
    let attributes: Attributes = object(&json!({"telegram_chat_id": 4711, "plan": "free"})).into();
    let tagged = Contact { tags: vec!["new".to_owned()], ..ann.clone() };
    let moved = Contact { locale: Some("fr".to_owned()), ..tagged.clone() };
    let agreeing = Contact { consent: messaging_core::domain::audience::contact::Consent::default(), ..moved.clone() };
    let later = Contact { attributes, updated_at: at(86_400_000), ..agreeing.clone() };
    let replace = |contact: &Contact, revision| Write::put_contact(contact.clone(), Expect::Revision(revision));
    let suppressed = |channel: &str| json!({"type": "suppression", "channel": channel, "value": true});
    let cases = [
        (json!({"type": "tag", "op": "has_any", "values": ["new"]}), replace(&tagged, 1), true),
        (json!({"type": "contact", "field": "locale", "op": "eq", "value": "de-de"}), replace(&moved, 2), false),
        (json!({"type": "consent", "channel": "marketing_email", "value": null}), replace(&agreeing, 3), true),
        (json!({"type": "attribute", "key": "plan", "op": "eq", "value": "FREE"}), replace(&later, 4), true),
        (suppressed("email"), Write::PutSuppression(email.clone(), Expect::Absent), true),
        (suppressed("email"), Write::DeleteSuppression(workspace, email.id, at(0)), false),
        (suppressed("telegram"), Write::PutSuppression(chat.clone(), Expect::Absent), true),
        (suppressed("telegram"), Write::DeleteSuppression(workspace, chat.id, at(0)), false),
        (
            json!({"type": "list", "op": "member", "id": list.id}),
            Write::JoinList(workspace, list.id, ann.id, at(0)),
            true,
        ),
        (
            json!({"type": "list", "op": "not_member", "id": list.id}),
            Write::LeaveList(workspace, list.id, ann.id, at(0)),
            true,
        ),
        (
            json!({"type": "list", "op": "member", "id": list.id}),
            Write::JoinList(workspace, list.id, ann.id, at(0)),
            true,
        ),
        (
            json!({"type": "list", "op": "member", "id": list.id}),
            Write::Delete(DocumentKey::List(workspace, list.id)),
            false,
        ),
        (json!({"type": "event", "name": "order_placed"}), Write::AppendProductEvents(vec![product]), true),
        (
            json!({"type": "message", "event": "open"}),
            Write::AppendEvent(Box::new(event(&message, EventKind::Open, 1))),
            true,
        ),
    ];
    for (filter, write, member) in cases {
        let segment = stored(store, workspace, &filter).await;
        let query = query(&filter);
        calculate(store, workspace, segment, &query).await;
        let segments = [(segment, query)];
        let what = format!("{filter} {write:?}");
        assert_eq!(follow_all(store, workspace, &segments).await, [], "{what}");
        put(store, [write]).await;
        assert_eq!(follow_all(store, workspace, &segments).await, [(ann.id, member)], "{what}");
        assert_eq!(follow_all(store, workspace, &segments).await, [], "{what}");
        assert_eq!(members(store, workspace, segment).await.contains(&ann.id), member, "{what}");
        put(store, [Write::DeleteSegment(workspace, segment)]).await;
    }
}

/// New contacts are evaluated by every dynamic segment; static segments stay as they are.
pub async fn new_contacts_join_dynamic_segments_alone(store: &dyn Store) {
    let workspace = id();
    let filter = json!({"type": "tag", "op": "has_any", "values": ["vip"]});
    let frozen = Segment { kind: SegmentKind::Static, filter: read(&filter), ..segment(workspace) };
    put(store, [add(&frozen)]).await;
    calculate(store, workspace, frozen.id, &query(&filter)).await;
    let segments = [
        (stored(store, workspace, &filter).await, query(&filter)),
        (stored(store, workspace, &json!({})).await, query(&json!({}))),
    ];
    let (vip, other) = (contact(workspace), Contact { tags: Vec::new(), ..contact(workspace) });
    put(store, [add_contact(&vip), add_contact(&other)]).await;
    let mut moved = follow_all(store, workspace, &segments).await;
    moved.sort_unstable();
    let mut expected = [(vip.id, true), (vip.id, true), (other.id, true)];
    expected.sort_unstable();
    assert_eq!(moved, expected);
    assert_eq!(members(store, workspace, segments[0].0).await, [vip.id]);
    assert_eq!(members(store, workspace, segments[1].0).await, [other.id, vip.id]);
    assert_eq!(members(store, workspace, frozen.id).await, []);
}

/// Following takes as many changes as it is asked to, and says if there are more.
pub async fn changes_are_followed_a_few_at_a_time(store: &dyn Store) {
    let workspace = id();
    let segments = [(stored(store, workspace, &json!({})).await, query(&json!({})))];
    put(store, (0..5).map(|_| add_contact(&contact(workspace))).collect::<Vec<_>>()).await;
    let (mut counts, job) = (Vec::new(), claimed(store).await);
    loop {
        let (moved, more) = store.follow_changes(workspace, &segments, 2, &job).await.unwrap();
        counts.push(moved.len());
        if !more {
            break;
        }
    }
    assert_eq!(counts, [2, 2, 1]);
    assert!(!follow(store, id(), &segments, 2).await);
}

/// A job that lost its claim moves nobody, and gets the error even if there is nothing to do.
pub async fn a_lost_claim_moves_nobody(store: &dyn Store) {
    let workspace = id();
    let everybody = query(&json!({}));
    let segments = [(stored(store, workspace, &json!({})).await, everybody.clone())];
    let segment = segments[0].0;
    put(store, [add_contact(&contact(workspace))]).await;
    let job = claimed(store).await;
    put(store, [Write::Job(JobWrite::Finish(job.clone()))]).await;
    let is_refused = async || {
        let calculated = store.calculate_members(workspace, segment, &everybody, None, MoveNotes::Silent, &job).await;
        assert!(matches!(calculated, Err(CommitError::LeaseLost)), "{calculated:?}");
        let followed = store.follow_changes(workspace, &segments, 10, &job).await;
        assert!(matches!(followed, Err(CommitError::LeaseLost)), "{followed:?}");
    };
    is_refused().await;
    assert_eq!(members(store, workspace, segment).await, []);
    // The note of its change was not removed.
    assert_eq!(follow_all(store, workspace, &segments).await.len(), 1);
    assert_eq!(calculate(store, workspace, segment, &everybody).await, (0, 0));
    is_refused().await;
}

/// Members of a removed segment are removed a few at a time; its name is free of them at once.
pub async fn a_removed_segment_lets_its_members_go(store: &dyn Store) {
    let workspace = id();
    put(store, (0..5).map(|_| add_contact(&contact(workspace))).collect::<Vec<_>>()).await;
    let (gone, stays) = (stored(store, workspace, &json!({})).await, stored(store, workspace, &json!({})).await);
    for segment in [gone, stays] {
        calculate(store, workspace, segment, &query(&json!({}))).await;
    }
    put(store, [Write::DeleteSegment(workspace, gone)]).await;
    assert_eq!(members(store, workspace, gone).await, []);
    let named = query(&json!({"type": "segment", "op": "member", "id": gone}));
    assert_eq!(store.preview(workspace, &named, &[], 0).await.unwrap().size, 0);
    assert_eq!(store.forget_segment_members(3).await.unwrap(), 3);
    // The two remaining members, and the segment itself.
    assert_eq!(store.forget_segment_members(100).await.unwrap(), 3);
    assert_eq!(store.forget_segment_members(100).await.unwrap(), 0);
    assert_eq!(members(store, workspace, stays).await.len(), 5);
}

/// Members are found for a filter of the largest size, including the filters of the segments it names.
pub async fn the_largest_filters_are_evaluated(store: &dyn Store) {
    let workspace = id();
    put(store, [add_contact(&contact(workspace))]).await;
    let values: Vec<_> = (0..1000).map(|n| format!("value {n}")).collect();
    let leaf = json!({"type": "attribute", "key": "plan", "op": "not_in", "value": values});
    let counted = json!({"type": "event", "name": "x", "count": {"op": "lte", "value": 5}, "within": {"last": {"value": 3, "unit": "days"}}});
    let Filter::Where(leaf) = Filter::clone(read(&leaf).tree()) else { panic!("a condition") };
    let Filter::Where(counted) = Filter::clone(read(&counted).tree()) else { panic!("a condition") };
    let mut condition = Condition::And((0..500).flat_map(|_| [leaf.clone(), counted.clone()]).collect());
    // Eight groups, in segments within one another five deep.
    for _ in 0..24 {
        condition = Condition::Not(Box::new(Condition::Or(vec![Condition::And(vec![condition])])));
    }
    let query = MemberQuery { filter: Filter::Where(condition), now: at(0), zone: TimeZone::UTC };
    let segment = stored(store, workspace, &json!({})).await;
    assert_eq!(calculate(store, workspace, segment, &query).await, (1, 0));
    assert_eq!(store.preview(workspace, &query, &[], 1).await.unwrap().size, 1);
}

/// A segment and its members belong to their workspace.
pub async fn other_workspaces_are_not_there(store: &dyn Store) {
    let (mine, other): (WorkspaceId, WorkspaceId) = (id(), id());
    let theirs = contact(other);
    put(store, [add_contact(&contact(mine)), add_contact(&theirs)]).await;
    let segment = stored(store, mine, &json!({})).await;
    let everyone = query(&json!({}));
    assert_eq!(calculate(store, mine, segment, &everyone).await, (1, 0));
    assert_eq!(store.segment(other, segment).await.unwrap(), None);
    assert_eq!(store.segments(other, first(10)).await.unwrap().items, []);
    assert_eq!(members(store, other, segment).await, []);
    assert_eq!(calculate(store, other, segment, &everyone).await, (0, 0));
    assert_eq!(store.preview(other, &everyone, &[], 5).await.unwrap().sample, [theirs]);
    let named = query(&json!({"type": "segment", "op": "member", "id": segment}));
    assert_eq!(store.preview(other, &named, &[], 0).await.unwrap().size, 0);
    put(store, [Write::DeleteSegment(other, segment)]).await;
    let found = store.segment(mine, segment).await.unwrap().unwrap();
    refuse(store, [Write::PutSegment(Box::new(Segment { workspace_id: other, ..found.record }), Expect::Revision(1))])
        .await;
    assert_eq!(members(store, mine, segment).await.len(), 1);
}

/// Whatever changes contacts undergo, and whenever these are followed, members are those who match.
pub async fn kept_members_are_those_who_match(store: &dyn Store) {
    let wanted = std::env::var(WORLDS_VARIABLE).unwrap_or_default();
    let (begin, count) = wanted.split_once('+').unwrap_or(("0", &wanted));
    let begin: u64 = begin.parse().unwrap_or(0);
    for seed in begin..begin + count.parse().unwrap_or(WORLDS) {
        kept::everybody_is_where_filters_say(store, seed).await;
    }
}
