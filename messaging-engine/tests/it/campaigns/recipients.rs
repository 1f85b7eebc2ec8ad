//! Recipients of a campaign: one line for each contact, with its result.

use std::collections::BTreeMap;
use std::sync::Arc;

use messaging_core::changes::{AudienceRow, Changes, Engagement, Expect, Write};
use messaging_core::domain::campaign::audience::bits::Bits;
use messaging_core::domain::campaign::audience::{AudienceCounts, AudienceSet, AudienceVerdict};
use messaging_core::domain::campaign::progress::{CampaignProgress, FanOut, Freeze, Wave};
use messaging_core::domain::campaign::{Campaign, CampaignStatus};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::channel_content::ViberService;
use messaging_core::domain::message::hold::{Hold, HoldReason};
use messaging_core::domain::message::milestones::{EngagementFlags, Milestones};
use messaging_core::domain::message::{EventKind, Message, MessageContent, MessageEvent, MessageStatus};
use messaging_core::ids::CampaignId;
use messaging_core::ports::store::audiences::AudienceQuery;
use messaging_core::time::Timestamp;
use serde_json::{Map, Value, json};

use super::Shop;
use crate::bed::{Reply, START};

/// A campaign whose audience is frozen, and whose messages are stored in given states.
pub(super) struct Frozen {
    pub(super) shop: Shop,
    pub(super) campaign: Campaign,
    piece: u64,
    /// The place of each contact in the piece, by id.
    places: BTreeMap<String, u16>,
}

impl Frozen {
    pub(super) fn id(&self) -> CampaignId {
        self.campaign.id
    }

    /// Puts a campaign into the state after its freeze. `verdicts` are those of contacts who are not sent to.
    pub(super) async fn of(shop: Shop, more: Value, verdicts: &[(&str, AudienceVerdict)]) -> Self {
        let id = shop.campaign(more).await;
        let list = shop.list.parse().unwrap();
        let query = Arc::new(AudienceQuery {
            channel: Channel::Email,
            viber: ViberService::Business,
            lists: vec![list],
            segments: Vec::new(),
            filters: Vec::new(),
            excluded: Vec::new(),
            now: START,
            zone: jiff::tz::TimeZone::UTC,
            wants_zones: false,
        });
        let found = shop.store.audience_piece(shop.workspace, &query, None).await.unwrap();
        let numbers: Vec<_> = found.facts.matched.iter().collect();
        let listed: Vec<u64> = numbers.iter().map(|place| found.piece << 16 | u64::from(*place)).collect();
        let contacts = shop
            .store
            .campaign_recipients(shop.workspace, id.parse().unwrap(), Channel::Email, ViberService::Business, &listed)
            .await
            .unwrap();
        let places: BTreeMap<_, _> =
            contacts.iter().zip(&numbers).map(|(contact, place)| (contact.contact_id.to_string(), *place)).collect();
        let verdict_of = |id: &str| verdicts.iter().find(|(one, _)| *one == id).map(|(_, verdict)| *verdict);
        let recipients = places.keys().filter(|id| verdict_of(id).is_none()).count() as u64;
        let campaign = shop
            .change(&id, |campaign| {
                campaign.status = CampaignStatus::Sending;
                campaign.started_at = Some(START);
                campaign.recipients = Some(recipients);
            })
            .await;
        let mut sets: BTreeMap<AudienceSet, Bits> = BTreeMap::new();
        for (contact, place) in &places {
            let set = verdict_of(contact).map_or(AudienceSet::Recipients(START), AudienceSet::Left);
            sets.entry(set).or_default().insert(*place);
        }
        let rows = sets.into_iter().map(|(set, bits)| {
            let piece = found.piece;
            Write::PutAudience(Box::new(AudienceRow {
                workspace_id: shop.workspace,
                campaign_id: campaign.id,
                piece,
                set,
                bits,
            }))
        });
        let progress = CampaignProgress {
            freeze: Freeze::Done,
            counts: AudienceCounts { recipients, ..AudienceCounts::default() },
            waves: vec![Wave { due_at: START, recipients }],
            ..CampaignProgress::new(&campaign, START, Vec::new())
        };
        let progress = Write::put(Box::new(progress), Expect::Absent);
        shop.commit(rows.chain([progress]).collect()).await;
        Self { shop, campaign, piece: found.piece, places }
    }

    /// Stores a message to a contact in a state, with its milestones and events.
    pub(super) async fn message(
        &self,
        contact: &str,
        status: MessageStatus,
        seen: &[(EngagementFlags, EventKind)],
        change: impl FnOnce(&mut Message),
    ) -> Message {
        let shop = &self.shop;
        let at = Timestamp::from_millis(START.as_millis() + 1000);
        let mut message = Message {
            id: shop.app.new_id(START),
            workspace_id: shop.workspace,
            revision: 1,
            status,
            channel: Channel::Email,
            to: shop.read(&format!("/contacts/{contact}")).await["email"].as_str().unwrap().to_owned(),
            from_email: None,
            contact_id: Some(contact.parse().unwrap()),
            campaign_id: Some(self.campaign.id),
            automation_id: None,
            variant: Some(0),
            template_id: None,
            fallback_of: None,
            has_fallback: false,
            is_test: false,
            tags: Vec::new(),
            metadata: Map::new(),
            created_at: START,
            updated_at: at,
            hold: None,
            milestones: seen.iter().fold(Milestones::default(), |all, (_, kind)| all.with_event(*kind, false)),
        };
        change(&mut message);
        let mut changes = Changes::default();
        let content = MessageContent { request: bytes::Bytes::from_static(b"{}") };
        changes.push(Write::InsertMessage(Box::new(message.clone()), content));
        for (bit, kind) in seen {
            changes.push(Write::NoteEngagement(Engagement {
                workspace_id: shop.workspace,
                campaign_id: self.campaign.id,
                seen: *bit,
                message_id: message.id,
                at,
            }));
            changes.push(event(&message, *kind, json!({})));
        }
        shop.commit(changes).await;
        message
    }

    async fn list(&self, query: &str) -> Reply {
        self.shop.read(&format!("/campaigns/{}/recipients{query}", self.campaign.id)).await
    }

    /// All recipients, page by page.
    async fn all(&self, query: &str, limit: usize) -> Vec<Value> {
        let (mut lines, mut cursor) = (Vec::new(), None);
        for _ in 0..200 {
            let after = cursor.map(|cursor: String| format!("&cursor={cursor}")).unwrap_or_default();
            let page = self.list(&format!("?limit={limit}{query}{after}")).await;
            assert_eq!(page.summary(), "200", "{query}");
            let data = page["data"].as_array().unwrap();
            assert!(data.len() <= limit);
            lines.extend(data.iter().cloned());
            cursor = page["next_cursor"].as_str().map(ToOwned::to_owned);
            if cursor.is_none() {
                return lines;
            }
        }
        panic!("the listing does not end: {query}");
    }
}

/// An event of a message, a second after the start.
pub(super) fn event(message: &Message, kind: EventKind, meta: Value) -> Write {
    let Value::Object(meta) = meta else { panic!("{meta}") };
    Write::AppendEvent(Box::new(MessageEvent {
        id: messaging_core::ids::Id::from_bytes(rand_bytes(message, kind)),
        workspace_id: message.workspace_id,
        message_id: message.id,
        kind,
        at: Timestamp::from_millis(START.as_millis() + 1000),
        meta,
    }))
}

/// An id derived from the message and the event.
fn rand_bytes(message: &Message, kind: EventKind) -> [u8; 16] {
    let mut bytes = messaging_core::ids::Id::to_bytes(message.id);
    bytes[15] = bytes[15].wrapping_add(kind as u8).wrapping_add(1);
    bytes
}

/// Every result that a contact can have, the query that finds it, and its reason.
#[tokio::test]
async fn every_contact_has_one_line_whatever_became_of_it() {
    use EventKind as K;
    use MessageStatus as S;

    let shop = Shop::start().await;
    let mut contacts = BTreeMap::new();
    for name in [
        "opened",
        "clicked",
        "unsubscribed",
        "complained",
        "bounced",
        "failed",
        "suppressed",
        "delivered",
        "sent",
        "queued",
        "deferred",
        "cancelled",
        "unborn",
        "excluded",
        "listed",
        "no_consent",
        "duplicate",
    ] {
        contacts.insert(name, shop.contact(&format!("{name}@example.com")).await);
    }
    contacts.insert("no_address", shop.contact_with(json!({"external_id": "none"})).await);
    let verdicts = [
        ("excluded", AudienceVerdict::Excluded),
        ("listed", AudienceVerdict::Suppressed),
        ("no_consent", AudienceVerdict::NoConsent),
        ("duplicate", AudienceVerdict::Duplicate),
        ("no_address", AudienceVerdict::NoAddress),
    ]
    .map(|(name, verdict)| (contacts[name].as_str(), verdict));
    let frozen = Frozen::of(shop, json!({}), &verdicts).await;
    let (open, click) = ((EngagementFlags::OPENED, K::Open), (EngagementFlags::CLICKED, K::Click));
    let unsubscribe = (EngagementFlags::UNSUBSCRIBED, K::Unsubscribe);
    let complaint = (EngagementFlags::COMPLAINED, K::Complaint);
    for (name, status, seen) in [
        ("opened", S::Delivered, &[open][..]),
        ("clicked", S::Delivered, &[open, click]),
        ("unsubscribed", S::Delivered, &[open, click, unsubscribe]),
        ("complained", S::Complained, &[open, complaint]),
        ("delivered", S::Delivered, &[]),
        ("sent", S::Sent, &[]),
        ("deferred", S::Deferred, &[]),
        ("cancelled", S::Cancelled, &[]),
    ] {
        frozen.message(&contacts[name], status, seen, |_| {}).await;
    }
    let hold = Hold { reason: HoldReason::QuietHours, until: None, since: START };
    frozen.message(&contacts["queued"], S::Queued, &[], |message| message.hold = Some(hold)).await;
    for (name, status, kind, meta) in [
        ("bounced", S::Bounced, K::Bounce, json!({"bounce_class": "invalid_recipient"})),
        ("failed", S::Failed, K::Failed, json!({"reason": "render_error"})),
        ("suppressed", S::Suppressed, K::Suppressed, json!({"reason": "frequency_cap"})),
    ] {
        let message = frozen.message(&contacts[name], status, &[], |_| {}).await;
        frozen.shop.commit(Changes::from_iter([event(&message, kind, meta)])).await;
    }

    let by_id: BTreeMap<_, _> = contacts.iter().map(|(name, id)| (id.as_str(), *name)).collect();
    let named = |lines: &[Value]| {
        let mut names: Vec<_> = lines.iter().map(|line| by_id[line["contact_id"].as_str().unwrap()]).collect();
        names.sort_unstable();
        names
    };
    let mut everybody: Vec<_> = contacts.keys().copied().collect();
    everybody.sort_unstable();
    for limit in [1, 2, 3, 5, 7, 17, 18, 200] {
        assert_eq!(named(&frozen.all("", limit).await), everybody, "pages of {limit}");
    }
    let lines = frozen.all("", 200).await;
    let line = |name: &str| {
        let line = lines.iter().find(|line| line["contact_id"] == contacts[name].as_str()).unwrap();
        (line["outcome"].as_str().unwrap().to_owned(), line["reason"].clone(), line["at"].clone())
    };
    let (start, later) = (json!("2026-01-31T09:15:00.000Z"), json!("2026-01-31T09:15:01.000Z"));
    for (name, outcome, reason, at) in [
        ("opened", "opened", Value::Null, &later),
        ("clicked", "clicked", Value::Null, &later),
        ("unsubscribed", "unsubscribed", Value::Null, &later),
        ("complained", "complained", Value::Null, &later),
        ("bounced", "bounced", json!("invalid_recipient"), &later),
        ("failed", "failed", json!("render_error"), &later),
        ("suppressed", "suppressed", json!("frequency_cap"), &later),
        ("delivered", "delivered", Value::Null, &later),
        ("sent", "sent", Value::Null, &later),
        ("queued", "waiting", json!("quiet_hours"), &Value::Null),
        ("deferred", "waiting", Value::Null, &Value::Null),
        ("cancelled", "cancelled", Value::Null, &later),
        ("unborn", "waiting", Value::Null, &Value::Null),
        ("excluded", "excluded", Value::Null, &start),
        ("listed", "suppressed", Value::Null, &start),
        ("no_consent", "no_consent", Value::Null, &start),
        ("duplicate", "duplicate", Value::Null, &start),
        ("no_address", "no_address", Value::Null, &start),
    ] {
        assert_eq!(line(name), (outcome.to_owned(), reason, at.clone()), "{name}");
    }
    let without_address = lines.iter().find(|line| line["outcome"] == "no_address").unwrap();
    assert_eq!(without_address["to"], Value::Null);
    assert_eq!(lines.iter().filter(|line| line["message_id"].is_null()).count(), 6);

    for (outcome, expected) in [
        ("opened", &["clicked", "complained", "opened", "unsubscribed"][..]),
        ("clicked", &["clicked", "unsubscribed"]),
        ("unsubscribed", &["unsubscribed"]),
        ("complained", &["complained"]),
        ("bounced", &["bounced"]),
        ("failed", &["failed"]),
        ("suppressed", &["listed", "suppressed"]),
        ("delivered", &["delivered"]),
        ("sent", &["sent"]),
        ("waiting", &["deferred", "queued", "unborn"]),
        ("cancelled", &["cancelled"]),
        ("excluded", &["excluded"]),
        ("no_address", &["no_address"]),
        ("no_consent", &["no_consent"]),
        ("duplicate", &["duplicate"]),
    ] {
        for limit in [1, 200] {
            let found = frozen.all(&format!("&outcome={outcome}"), limit).await;
            assert_eq!(named(&found), expected, "{outcome}");
        }
    }
    // Once the campaign is withdrawn, contacts without a message get none.
    frozen.shop.change(&frozen.id().to_string(), |campaign| campaign.status = CampaignStatus::Cancelled).await;
    assert_eq!(named(&frozen.all("&outcome=cancelled", 200).await), ["cancelled", "unborn"]);
    assert_eq!(named(&frozen.all("&outcome=waiting", 200).await), ["deferred", "queued"]);
    assert_eq!(named(&frozen.all("", 4).await), everybody);
}

#[tokio::test]
async fn lines_are_narrowed_to_a_variant() {
    let shop = Shop::start().await;
    let (ann, bob) = (shop.contact("ann@example.com").await, shop.contact("bob@example.com").await);
    shop.contact("cid@example.com").await;
    let variants = json!({"kind": "ab_test", "variants": [{"name": "Left"}, {"name": "Right"}]});
    let frozen = Frozen::of(shop, variants, &[]).await;
    frozen.message(&ann, MessageStatus::Delivered, &[], |_| {}).await;
    frozen.message(&bob, MessageStatus::Delivered, &[], |message| message.variant = Some(1)).await;
    let names = |lines: Vec<Value>| -> Vec<Value> { lines.into_iter().map(|line| line["variant"].clone()).collect() };
    assert_eq!(names(frozen.all("", 200).await), [json!("Right"), json!("Left"), Value::Null]);
    assert_eq!(names(frozen.all("&variant=Left", 200).await), [json!("Left")]);
    assert_eq!(names(frozen.all("&variant=Right&outcome=delivered", 1).await), [json!("Right")]);
    assert_eq!(frozen.all("&variant=Right&outcome=waiting", 1).await, [] as [Value; 0]);
    for (query, expected) in [
        ("?variant=Middle", "422 variant unknown_value"),
        ("?outcome=lost", "422 outcome unknown_value"),
        ("?limit=201", "422 limit out_of_range"),
        ("?cursor=x", "400 invalid_cursor"),
    ] {
        assert_eq!(frozen.list(query).await.summary(), expected);
    }
    let first = frozen.list("?limit=1").await;
    let cursor = first["next_cursor"].as_str().unwrap();
    let elsewhere = frozen.list(&format!("?outcome=waiting&cursor={cursor}")).await;
    assert_eq!(elsewhere.summary(), "400 invalid_cursor", "a cursor belongs to its filters");
}

#[tokio::test]
async fn nobody_is_listed_before_the_start() {
    let shop = Shop::start().await;
    shop.contact("ann@example.com").await;
    let id = shop.campaign(json!({})).await;
    let page = shop.read(&format!("/campaigns/{id}/recipients")).await;
    assert_eq!(page.body, json!({"data": [], "next_cursor": null}));
}

/// Contacts that were erased or merged after the freeze have no line of their own; their messages have.
#[tokio::test]
async fn who_was_erased_is_listed_by_the_message_alone() {
    let shop = Shop::start().await;
    let (ann, bob) = (shop.contact("ann@example.com").await, shop.contact("bob@example.com").await);
    let frozen = Frozen::of(shop, json!({}), &[]).await;
    frozen.message(&ann, MessageStatus::Delivered, &[], |_| {}).await;
    for id in [&ann, &bob] {
        let target = frozen.shop.path(&format!("/contacts/{id}"));
        assert_eq!(frozen.shop.delete(&frozen.shop.caller, &target).await.summary(), "204");
    }
    frozen.shop.work().await;
    let lines = frozen.all("", 200).await;
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!((&lines[0]["to"], &lines[0]["outcome"]), (&Value::Null, &json!("delivered")));
}

#[tokio::test]
async fn addresses_of_recipients_are_masked() {
    let shop = Shop::start().await;
    let (ann, _) = (shop.contact("ann@example.com").await, shop.contact("bob@example.com").await);
    let frozen = Frozen::of(shop, json!({}), &[]).await;
    frozen.message(&ann, MessageStatus::Delivered, &[], |_| {}).await;
    let reader = frozen.shop.key(frozen.shop.workspace, &["campaigns:read"]).await;
    let target = frozen.shop.path(&format!("/campaigns/{}/recipients", frozen.id()));
    let page = frozen.shop.get(&reader, &target).await;
    let shown: Vec<_> = page["data"].as_array().unwrap().iter().map(|line| line["to"].as_str().unwrap()).collect();
    assert_eq!(shown, ["a***@example.com", "b***@example.com"]);
    assert!(frozen.all("", 200).await.iter().any(|line| line["to"] == "ann@example.com"));
}

/// Contacts before the progress of the fan-out have a message or are gone: they are not looked at again.
#[tokio::test]
async fn what_was_fanned_out_is_passed_by() {
    let shop = Shop::start().await;
    let mut contacts = Vec::new();
    for number in 0..6 {
        contacts.push(shop.contact(&format!("c{number}@example.com")).await);
    }
    let frozen = Frozen::of(shop, json!({}), &[]).await;
    for contact in &contacts[..3] {
        frozen.message(contact, MessageStatus::Queued, &[], |_| {}).await;
    }
    let stored = frozen.shop.store.campaign_progress(frozen.shop.workspace, frozen.id()).await.unwrap().unwrap();
    let reached = frozen.places[&contacts[3]];
    let fan_out = FanOut { due_at: Some(START), piece: frozen.piece, place: reached, ..stored.record.fan_out.clone() };
    let progress = CampaignProgress { fan_out, ..stored.record };
    let put = Write::put(Box::new(progress), Expect::Revision(stored.revision));
    frozen.shop.commit(Changes::from_iter([put])).await;
    for limit in [1, 2, 200] {
        let lines = frozen.all("", limit).await;
        let mut ids: Vec<_> = lines.iter().map(|line| line["contact_id"].as_str().unwrap().to_owned()).collect();
        ids.sort_unstable();
        let mut expected = contacts.clone();
        expected.sort_unstable();
        assert_eq!(ids, expected);
        assert_eq!(lines.iter().filter(|line| line["message_id"].is_null()).count(), 3);
    }
}
