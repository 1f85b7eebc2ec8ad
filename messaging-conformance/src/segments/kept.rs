//! Random test of segments: the members that a store maintains, the members that it calculates and the contacts that
//! the filter matches in memory must be the same.

use std::collections::HashSet;

use jiff::tz::TimeZone;
use messaging_core::changes::{AttributeMessage, DocumentKey, Expect, MoveProductEvents, Write};
use messaging_core::domain::audience::contact::{Contact, ContactFilter};
use messaging_core::domain::audience::product_event::ProductEvent;
use messaging_core::domain::audience::subscription::SubscriptionStatus;
use messaging_core::domain::audience::suppression::Suppression;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::{EventKind, Message, MessageEvent, MessageFilter};
use messaging_core::domain::segment::filter::{Condition, Filter, MessageEventKind};
use messaging_core::domain::segment::matching::{EventFact, Facts, MessageFact};
use messaging_core::domain::segment::values::Present;
use messaging_core::domain::segment::{Segment, SegmentKind, StoredFilter};
use messaging_core::ids::{ContactId, EventId, ListId, SegmentId, WorkspaceId};
use messaging_core::ports::store::Store;
use messaging_core::ports::store::segments::MemberQuery;
use serde_json::Value;

use super::super::sample::{at, bare_message, contact_list, event, id, insert, product_event, segment, suppression};
use super::super::{all_pages, first, put};
use super::keeping::{calculate, follow};
use super::random::{self, Dice, Named};

/// Number of random filters that are compared besides those of the segments.
const EXTRA_FILTERS: usize = 40;
/// A limit above the number of rows of any kind in the workspace.
const MANY: usize = 1000;

/// A small workspace, filled and changed at random.
pub(in super::super) struct World<'s> {
    pub(in super::super) store: &'s dyn Store,
    pub(in super::super) dice: Dice,
    pub(in super::super) workspace: WorkspaceId,
    pub(in super::super) present: Present,
    pub(in super::super) named: Named,
    contacts: Vec<(ContactId, usize)>,
    made: usize,
    lists: Vec<ListId>,
    messages: Vec<Message>,
    dynamic: Vec<(SegmentId, StoredFilter)>,
}

/// Changes the contacts of a random workspace; at random moments between, its segments are recalculated, follow
/// changes, or get other filters. At the end, once all changes were followed, compares all members.
pub async fn everybody_is_where_filters_say(store: &dyn Store, seed: u64) {
    let mut world = World::begin(store, seed).await;
    for _ in 0..30 {
        match world.dice.below(20) {
            0 => world.change_filter().await,
            1 => world.recalculate().await,
            2 | 3 => {
                let limit = 1 + world.dice.below(3);
                follow(store, world.workspace, &world.queries(), limit).await;
            }
            _ => world.happen().await,
        }
    }
    while follow(store, world.workspace, &world.queries(), 1 + world.dice.below(5)).await {}
    world.check(seed).await;
}

impl<'s> World<'s> {
    pub(in super::super) async fn begin(store: &'s dyn Store, seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let zone =
            TimeZone::get(dice.one(&["UTC", "Europe/Riga", "America/New_York", "Pacific/Apia"])).expect("is known");
        let named =
            Named { lists: Vec::new(), segments: Vec::new(), campaigns: random::names(2), templates: random::names(2) };
        let mut world = Self {
            store,
            dice,
            workspace: id(),
            present: Present { now: at(0), zone },
            named,
            contacts: Vec::new(),
            made: 0,
            lists: Vec::new(),
            messages: Vec::new(),
            dynamic: Vec::new(),
        };
        for _ in 0..3 {
            let list = contact_list(world.workspace);
            put(store, [Write::put(list.clone(), Expect::Absent)]).await;
            world.lists.push(list.id);
            world.named.lists.push(list.id);
        }
        for _ in 0..15 {
            world.happen().await;
        }
        for _ in 0..2 {
            let (id, filter) = world.add_segment(SegmentKind::Static).await;
            calculate(store, world.workspace, id, &world.query(&filter)).await;
            world.named.segments.push(id);
        }
        for _ in 0..4 {
            let (id, filter) = world.add_segment(SegmentKind::Dynamic).await;
            world.dynamic.push((id, filter));
            world.recalculate().await;
        }
        for index in 0..4 {
            world.calculate(index).await;
        }
        world
    }

    async fn add_segment(&mut self, kind: SegmentKind) -> (SegmentId, StoredFilter) {
        let filter = random::filter(&mut self.dice, &self.named);
        let segment = Segment { kind, filter: filter.clone(), ..segment(self.workspace) };
        let id = segment.id;
        put(self.store, [Write::PutSegment(Box::new(segment), Expect::Absent)]).await;
        (id, filter)
    }

    fn query(&self, filter: &StoredFilter) -> MemberQuery {
        let Present { now, zone } = self.present.clone();
        MemberQuery { filter: Filter::clone(filter.tree()), now, zone }
    }

    fn queries(&self) -> Vec<(SegmentId, MemberQuery)> {
        self.dynamic.iter().map(|(id, filter)| (*id, self.query(filter))).collect()
    }

    /// Recalculates the members of a random dynamic segment.
    async fn recalculate(&mut self) {
        let index = self.dice.below(self.dynamic.len());
        self.calculate(index).await;
    }

    async fn calculate(&self, index: usize) {
        let (id, filter) = &self.dynamic[index];
        calculate(self.store, self.workspace, *id, &self.query(filter)).await;
    }

    /// Gives a random dynamic segment another filter, and calculates its members.
    async fn change_filter(&mut self) {
        let index = self.dice.below(self.dynamic.len());
        let filter = random::filter(&mut self.dice, &self.named);
        let id = self.dynamic[index].0;
        let stored = self.store.segment(self.workspace, id).await.unwrap().expect("a segment");
        let changed = Segment { filter: filter.clone(), ..stored.record };
        put(self.store, [Write::PutSegment(Box::new(changed), Expect::Revision(stored.revision))]).await;
        self.dynamic[index].1 = filter;
        self.calculate(index).await;
    }

    async fn somebody(&mut self) -> Option<(Contact, u32, usize)> {
        if self.contacts.is_empty() {
            return None;
        }
        let (id, number) = self.dice.one(&self.contacts);
        let stored = self.store.contact(self.workspace, id).await.unwrap().expect("a contact");
        Some((stored.record, stored.revision, number))
    }

    /// Makes one random change: adds a contact, or changes one, its lists, suppressions, messages or events.
    pub(in super::super) async fn happen(&mut self) {
        let Some((contact, revision, number)) = self.somebody().await.filter(|_| self.dice.below(5) > 0) else {
            // Module `random` has eight different email addresses.
            if self.made < 8 {
                let contact = random::newcomer(&mut self.dice, self.workspace, self.made);
                self.contacts.push((contact.id, self.made));
                self.made += 1;
                put(self.store, [Write::put_contact(contact, Expect::Absent)]).await;
            }
            return;
        };
        match self.dice.below(16) {
            0..=2 => {
                let changed = random::change(&mut self.dice, &contact, number);
                put(self.store, [Write::put_contact(changed, Expect::Revision(revision))]).await;
            }
            3 if self.dice.percent(30) => self.erase_or_merge(&contact).await,
            3..=5 if !self.lists.is_empty() => {
                let list = self.dice.one(&self.lists);
                let write = if contact.list_ids.contains(&list) {
                    Write::LeaveList(self.workspace, list, contact.id, at(0))
                } else {
                    Write::JoinList(self.workspace, list, contact.id, at(0))
                };
                put(self.store, [write]).await;
            }
            6 if self.dice.percent(30) && !self.lists.is_empty() => {
                let list = self.lists.swap_remove(0);
                put(self.store, [Write::Delete(DocumentKey::List(self.workspace, list))]).await;
                if self.dice.percent(50) {
                    self.store.forget_members(self.dice.below(3)).await.unwrap();
                }
            }
            7 | 8 => self.change_suppression().await,
            9..=11 => {
                let (name, properties) = random::product_event(&mut self.dice);
                let occurred_at = at(self.dice.millis());
                let properties = properties.into();
                let event = ProductEvent { occurred_at, properties, ..product_event(&contact, name) };
                put(self.store, [Write::AppendProductEvents(vec![event])]).await;
            }
            12 => self.message_to(&contact).await,
            _ => self.message_event().await,
        }
    }

    /// Erases a contact, or merges it into another.
    async fn erase_or_merge(&mut self, contact: &Contact) {
        self.contacts.retain(|(id, _)| *id != contact.id);
        let (workspace_id, from) = (self.workspace, contact.id);
        let mut writes = Vec::new();
        if let Some((to, _)) = self.contacts.first().copied().filter(|_| self.dice.percent(50)) {
            writes.push(Write::MoveProductEvents(MoveProductEvents { workspace_id, from, to, limit: MANY }));
            for message in self.messages.iter_mut().filter(|message| message.contact_id == Some(from)) {
                message.contact_id = Some(to);
                let message_id = message.id;
                writes.push(Write::AttributeMessage(AttributeMessage { workspace_id, message_id, from, to }));
            }
        }
        writes.push(Write::DeleteContact(workspace_id, from));
        put(self.store, writes).await;
    }

    /// Adds a random address to the suppressions; changes or removes its entry if it has one.
    async fn change_suppression(&mut self) {
        let name = random::channel(&mut self.dice);
        let channel = Channel::parse(name).expect("a channel");
        let address = random::address(&mut self.dice, name);
        let held = self.store.suppressed(self.workspace, channel, std::slice::from_ref(&address)).await.unwrap();
        let write = match held.into_iter().next() {
            Some(held) if self.dice.percent(70) => Write::DeleteSuppression(self.workspace, held.record.id, at(0)),
            Some(held) => {
                let raised = Suppression { detail: None, ..held.record };
                Write::PutSuppression(raised, Expect::Revision(held.revision))
            }
            None => Write::PutSuppression(suppression(self.workspace, channel, &address), Expect::Absent),
        };
        put(self.store, [write]).await;
    }

    async fn message_to(&mut self, contact: &Contact) {
        let message = Message {
            contact_id: Some(contact.id),
            channel: self.dice.one(&[Channel::Email, Channel::Sms]),
            campaign_id: self.dice.percent(50).then(|| self.dice.one(&self.named.campaigns)),
            template_id: self.dice.percent(50).then(|| self.dice.one(&self.named.templates)),
            ..bare_message(self.workspace)
        };
        put(self.store, [insert(&message)]).await;
        self.messages.push(message);
    }

    async fn message_event(&mut self) {
        if self.messages.is_empty() {
            return;
        }
        let message = self.dice.one(&self.messages);
        let (kind, meta) = random::message_event(&mut self.dice);
        let happened = MessageEvent { meta, ..event(&message, kind, self.dice.millis()) };
        put(self.store, [Write::AppendEvent(Box::new(happened))]).await;
    }

    /// Compares the members and previews of every filter with the matches in memory.
    async fn check(&mut self, seed: u64) {
        let (store, workspace) = (self.store, self.workspace);
        let all = self.stored_facts().await;
        for (id, filter) in &self.dynamic {
            let place = format!("seed {seed}, {}", filter.json());
            let expected = self.matching(filter.tree(), &all);
            let members =
                all_pages(3, async |page| store.segment_contacts(workspace, *id, page).await, async || ()).await;
            let members: Vec<_> = members.iter().map(|contact| contact.id).collect();
            assert_eq!(members, expected, "kept: {place}");
            let query = self.query(filter);
            assert_eq!(calculate(store, workspace, *id, &query).await, (0, 0), "calculated: {place}");
        }
        // Previews calculate the members of a filter that has no segment.
        let kept: Vec<_> = self.dynamic.iter().map(|(_, filter)| filter.clone()).collect();
        let others: Vec<_> = (0..EXTRA_FILTERS).map(|_| random::filter(&mut self.dice, &self.named)).collect();
        for filter in kept.iter().chain(&others) {
            let place = format!("seed {seed}, {}", filter.json());
            let (expected, query) = (self.matching(filter.tree(), &all), self.query(filter));
            let conditions: Vec<_> =
                filter.tree().leaves().map(|leaf| Filter::Where(Condition::Leaf(leaf.clone()))).collect();
            let preview = store.preview(workspace, &query, &conditions, 3).await.unwrap();
            assert!(preview.exact, "{place}");
            assert_eq!(preview.size, expected.len() as u64, "counted: {place}");
            let sample: Vec<_> = preview.sample.iter().map(|contact| contact.id).collect();
            assert_eq!(sample, expected[..expected.len().min(3)], "{place}");
            let sizes: Vec<_> =
                conditions.iter().map(|condition| self.matching(condition, &all).len() as u64).collect();
            assert_eq!(preview.sizes, sizes, "conditions: {place}");
        }
    }

    /// Returns the contacts that a filter matches in memory, in the order of `all`.
    fn matching(&self, filter: &Filter, all: &[StoredFacts]) -> Vec<ContactId> {
        let matches = all.iter().filter(|one| filter.matches(one.facts(), &self.present));
        matches.map(|one| one.contact.id).collect()
    }

    /// Returns all facts that the store has about each contact, newest contact first.
    pub(in super::super) async fn stored_facts(&self) -> Vec<StoredFacts> {
        let (store, workspace) = (self.store, self.workspace);
        let everyone = ContactFilter::default();
        let contacts = all_pages(3, async |page| store.contacts(workspace, &everyone, page).await, async || ()).await;
        let mut all = Vec::new();
        for contact in contacts {
            all.push(self.stored_facts_of(contact).await);
        }
        all
    }

    async fn stored_facts_of(&self, contact: Contact) -> StoredFacts {
        let (store, workspace) = (self.store, self.workspace);
        let suppressed = store.suppressed_anywhere(workspace, &contact.all_addresses()).await.unwrap();
        let mut segments = HashSet::new();
        for id in &self.named.segments {
            let members = store.segment_contacts(workspace, *id, first(MANY)).await.unwrap().items;
            segments.extend(members.iter().any(|member| member.id == contact.id).then_some(*id));
        }
        let events = store.product_events(workspace, contact.id, first(MANY)).await.unwrap().items;
        let events = events.into_iter().map(|event| {
            let properties = serde_json::from_str(event.properties.json()).expect("an object");
            (event.id, EventFact { name: event.name, at: event.occurred_at, properties })
        });
        let (event_ids, events) = events.unzip();
        let of_contact = MessageFilter { contact_id: Some(contact.id), ..MessageFilter::default() };
        let (mut message_event_ids, mut messages) = (Vec::new(), Vec::new());
        for message in store.messages(workspace, &of_contact, first(MANY)).await.unwrap().items {
            let happened = store.message_events(workspace, message.id, MANY).await.unwrap();
            for event in happened {
                if let Some(fact) = message_fact(&message, &event) {
                    message_event_ids.push(event.id);
                    messages.push(fact);
                }
            }
        }
        let suppressed = suppressed.into_iter().map(|one| one.channel).collect();
        let recorded = store.subscriptions_of(workspace, contact.id, MANY).await.unwrap();
        let subscriptions = recorded.into_iter().map(|one| (one.record.list_id, one.record.status)).collect();
        StoredFacts { contact, suppressed, subscriptions, segments, event_ids, events, message_event_ids, messages }
    }
}

fn message_fact(message: &Message, event: &MessageEvent) -> Option<MessageFact> {
    let kind = match event.kind {
        EventKind::Sent => MessageEventKind::Sent,
        EventKind::Delivered => MessageEventKind::Delivered,
        EventKind::Open => MessageEventKind::Open,
        EventKind::Click => MessageEventKind::Click,
        EventKind::Bounce => MessageEventKind::Bounce,
        EventKind::Complaint => MessageEventKind::Complaint,
        EventKind::Unsubscribe => MessageEventKind::Unsubscribe,
        _ => return None,
    };
    Some(MessageFact {
        event: kind,
        at: event.at,
        is_machine: event.meta.get("machine") == Some(&Value::Bool(true)),
        url: event.meta.get("url").and_then(Value::as_str).map(ToOwned::to_owned),
        channel: message.channel,
        campaign_id: message.campaign_id,
        automation_id: message.automation_id,
        template_id: message.template_id,
    })
}

/// All facts that the store has about a contact.
#[derive(Clone)]
pub(in super::super) struct StoredFacts {
    pub(in super::super) contact: Contact,
    suppressed: HashSet<Channel>,
    subscriptions: HashSet<(ListId, SubscriptionStatus)>,
    pub(in super::super) segments: HashSet<SegmentId>,
    /// Ids of `events`, in the same order; `message_event_ids` belongs to `messages` likewise.
    pub(in super::super) event_ids: Vec<EventId>,
    events: Vec<EventFact>,
    pub(in super::super) message_event_ids: Vec<EventId>,
    messages: Vec<MessageFact>,
}

/// Returns the facts whose ids are `wanted`; `ids` and `facts` are in the same order.
fn only<T: Clone>(ids: &[EventId], facts: &[T], wanted: impl Fn(EventId) -> bool) -> Vec<T> {
    ids.iter().zip(facts).filter(|(id, _)| wanted(**id)).map(|(_, fact)| fact.clone()).collect()
}

impl StoredFacts {
    /// Returns the same facts, without the product and message events that are not `wanted`.
    pub(in super::super) fn with_events(&self, wanted: impl Fn(EventId) -> bool) -> Self {
        let ids = |ids: &[EventId]| ids.iter().copied().filter(|id| wanted(*id)).collect();
        Self {
            event_ids: ids(&self.event_ids),
            events: only(&self.event_ids, &self.events, &wanted),
            message_event_ids: ids(&self.message_event_ids),
            messages: only(&self.message_event_ids, &self.messages, &wanted),
            ..self.clone()
        }
    }

    pub(in super::super) fn facts(&self) -> Facts<'_> {
        Facts {
            contact: &self.contact,
            suppressed: &self.suppressed,
            subscriptions: &self.subscriptions,
            segments: &self.segments,
            events: &self.events,
            messages: &self.messages,
        }
    }
}
