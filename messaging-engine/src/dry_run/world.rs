//! Copies the data that a dry run needs from the workspace into the store of the dry run.
//!
//! It copies only the objects that the design names and the data of the participating contacts. Workspace, contacts,
//! automation and all named objects keep their ids, so that texts, conditions and random splits are those of the
//! workspace.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use messaging_core::changes::{Changes, Expect, PutAutomation, PutContact, Write};
use messaging_core::domain::audience::custom_field::MAX_FIELDS;
use messaging_core::domain::automation::parse::Reading;
use messaging_core::domain::automation::{Automation, AutomationStatus, Design};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::provider::VIBER_BOT;
use messaging_core::domain::channel::settings::ChannelSettings;
use messaging_core::domain::mail::sending_domain::SendingDomain;
use messaging_core::domain::message::channel_content::ViberService;
use messaging_core::domain::segment::filter::{Condition, Filter, Leaf};
use messaging_core::domain::segment::parse::Reference;
use messaging_core::domain::segment::resolve::named;
use messaging_core::domain::segment::{Segment, SegmentKind, SegmentStatus, StoredFilter};
use messaging_core::ids::{ListId, SegmentId, WorkspaceId};
use messaging_core::ports::store::{EventSpan, FilterQuery, PageRequest, StoreError};
use messaging_core::time::Timestamp;
use serde_json::{Map, Value, json};

use super::peers::PROVIDER;
use crate::app::App;
use crate::error::Error;
use crate::services::dry_runs::{DryRun, Participant};

/// Size of a page of product events. The newest events of a contact are copied, [`EVENT_PAGES`] pages of them.
const EVENTS: usize = 1000;
/// Pages of product events that are copied for a contact.
const EVENT_PAGES: usize = 10;
/// Most rounds in which segments that other segments name are looked up; nesting is bounded below this.
const MAX_ROUNDS: usize = 64;
/// Most writes of one commit.
const PIECE: usize = 200;

/// The design for the dry run: a trigger other than an event or a date becomes a call, which enters each contact once.
pub(super) fn performed(design: &Design) -> Design {
    let kind = design.trigger.get("kind").and_then(Value::as_str);
    if matches!(kind, Some("event" | "date")) {
        return design.clone();
    }
    let mut config = Map::new();
    if let Some(filter) = design.trigger.get("config").and_then(|config| config.get("filter")) {
        config.insert("filter".to_owned(), filter.clone());
    }
    let trigger = Map::from_iter([("kind".to_owned(), json!("manual")), ("config".to_owned(), Value::Object(config))]);
    Design { trigger, ..design.clone() }
}

/// The automation, just activated, with the writes that start its jobs.
pub(super) fn activation(app: &App, dry_run: &DryRun, now: Timestamp) -> Result<(Automation, Changes), Error> {
    let design = performed(&dry_run.design);
    let reading = design.read();
    let Some(plan) = &reading.plan else { return Err(Error::AutomationInvalid(reading.gaps)) };
    let automation = Automation {
        id: dry_run.automation,
        workspace_id: dry_run.workspace,
        name: "simulation".to_owned(),
        status: AutomationStatus::Active,
        pause_reason: None,
        design,
        version: 1,
        activated_at: Some(now),
        created_at: now,
        updated_at: now,
    };
    let put = PutAutomation {
        automation: automation.clone(),
        subscription: plan.subscription(),
        lanes: App::automation_lanes(automation.workspace_id, automation.id),
        // Nothing is removed during a dry run.
        holds: Vec::new(),
    };
    let mut changes = Changes::from_iter([Write::PutAutomation(Box::new(put), Expect::Absent)]);
    changes.extend(app.automation_changed(&automation, plan, AutomationStatus::Draft, now));
    Ok((automation, changes))
}

/// Copies what is needed from the workspace into the store of a dry run.
pub(super) async fn copy(from: &App, to: &App, dry_run: &DryRun) -> Result<(), Error> {
    let reading = dry_run.design.read();
    let mut writes = frame(from, dry_run.workspace).await?;
    writes.extend(named_things(from, dry_run, &reading).await?);
    for participant in &dry_run.people {
        writes.extend(person(from, dry_run, participant).await?);
    }
    // In pieces, because one commit of ten thousand contacts would take seconds.
    let mut writes = writes.into_iter().peekable();
    while writes.peek().is_some() {
        let piece: Changes = writes.by_ref().take(PIECE).collect();
        to.commit(piece).await.map_err(|error| Error::from(error.into_store_error()))?;
    }
    Ok(())
}

/// The writes for the workspace, its custom fields, senders and channels.
async fn frame(from: &App, workspace: WorkspaceId) -> Result<Vec<Write>, Error> {
    let found = from.workspace(workspace).await?.ok_or(Error::NotFound)?;
    let mut writes = vec![Write::put((*found).clone(), Expect::Absent)];
    let page = PageRequest { after: None, limit: MAX_FIELDS };
    let fields = from.store().custom_fields(workspace, page).await?.items;
    writes.extend(fields.into_iter().map(|field| Write::put(field, Expect::Absent)));
    for domain in from.sending_domains(workspace).await?.iter() {
        // Nothing is signed, because nothing is sent.
        let domain = SendingDomain { dkim: Vec::new(), ..domain.clone() };
        writes.push(Write::put(domain, Expect::Absent));
    }
    for channel in Channel::ALL {
        if from.has_transport(workspace, channel).await? {
            // The provider of Viber decides which address of a contact is used.
            let provider = match from.viber_service_for(workspace, channel).await? {
                ViberService::Bot => VIBER_BOT,
                ViberService::Business => PROVIDER,
            };
            let settings = ChannelSettings { provider: provider.to_owned(), ..channel_settings(workspace, channel) };
            writes.push(Write::put(settings, Expect::Absent));
        }
    }
    Ok(writes)
}

/// Settings of a channel for the transport of the dry run.
pub(super) fn channel_settings(workspace_id: WorkspaceId, channel: Channel) -> ChannelSettings {
    ChannelSettings { workspace_id, channel, provider: PROVIDER.to_owned(), config: Map::new(), registration: None }
}

/// The writes for the lists, segments and templates that the design names directly or through segments, and for the
/// lists of the participating contacts.
async fn named_things(from: &App, dry_run: &DryRun, reading: &Reading) -> Result<Vec<Write>, Error> {
    let (store, workspace) = (from.store(), dry_run.workspace);
    let mut writes = Vec::new();
    let mut lists: HashSet<ListId> = dry_run.people.iter().flat_map(|one| one.contact.list_ids.clone()).collect();
    let mut segments: Vec<SegmentId> = Vec::new();
    let mut templates = HashSet::new();
    for (_, reference) in &reading.references {
        match reference {
            Reference::List(id) => drop(lists.insert(*id)),
            Reference::Segment(id) => segments.push(*id),
            Reference::Template(id) if templates.insert(*id) => {
                if let Some(stored) = store.template(workspace, *id).await? {
                    writes.push(Write::put(Box::new(stored.record), Expect::Absent));
                }
            }
            _ => {}
        }
    }
    let mut known: HashMap<SegmentId, Segment> = HashMap::new();
    for _ in 0..MAX_ROUNDS {
        let mut next = Vec::new();
        for id in segments.drain(..) {
            if known.contains_key(&id) {
                continue;
            }
            if let Some(stored) = store.segment(workspace, id).await? {
                let segment = stored.record;
                if segment.kind == SegmentKind::Dynamic {
                    next.extend(named(segment.filter.tree()));
                    lists.extend(lists_of(segment.filter.tree()));
                }
                known.insert(id, segment);
            }
        }
        if next.is_empty() {
            break;
        }
        segments = next;
    }
    let mut lists: Vec<_> = lists.into_iter().collect();
    lists.sort_unstable();
    for id in lists {
        if let Some(stored) = store.list(workspace, id).await? {
            writes.push(Write::put(stored.record, Expect::Absent));
        }
    }
    let mut known: Vec<_> = known.into_values().collect();
    known.sort_unstable_by_key(|segment| segment.id);
    for segment in known {
        let filter = match segment.kind {
            SegmentKind::Dynamic => segment.filter.clone(),
            SegmentKind::Static => members_of(from, dry_run, segment.id).await?,
        };
        let segment = Segment { kind: SegmentKind::Dynamic, filter, status: SegmentStatus::Ready, ..segment };
        writes.push(Write::PutSegment(Box::new(segment), Expect::Absent));
    }
    Ok(writes)
}

/// The lists that a filter names.
fn lists_of(filter: &Filter) -> Vec<ListId> {
    fn walk(condition: &Condition, found: &mut Vec<ListId>) {
        match condition {
            Condition::And(parts) | Condition::Or(parts) => parts.iter().for_each(|part| walk(part, found)),
            Condition::Not(part) => walk(part, found),
            Condition::Leaf(Leaf::List { id, .. }) => found.push(*id),
            Condition::Leaf(_) => {}
        }
    }
    let mut found = Vec::new();
    if let Filter::Where(condition) = filter {
        walk(condition, &mut found);
    }
    found
}

/// A filter that replaces a static segment: it matches the participating contacts that are members.
async fn members_of(from: &App, dry_run: &DryRun, id: SegmentId) -> Result<StoredFilter, Error> {
    let workspace = dry_run.workspace;
    let ask = |participant: &Participant| FilterQuery {
        contact_id: participant.contact.id,
        filter: Filter::Where(Condition::Leaf(Leaf::Segment { id, member: true })),
        span: EventSpan::default(),
        at: from.now(),
    };
    let known: Vec<_> = dry_run.people.iter().filter(|participant| participant.is_stored).map(ask).collect();
    let zone = from.workspace_zone(workspace).await?;
    let answers = if known.is_empty() { Vec::new() } else { from.store().answers(workspace, &known, &zone).await? };
    // At most one participant is a contact of the workspace.
    let sent = if answers.first() == Some(&true) { json!({}) } else { nobody() };
    StoredFilter::read(&sent.to_string()).map_err(Error::internal)
}

/// A filter that nobody matches.
pub(super) fn nobody() -> Value {
    let has = |op: &str| json!({"type": "contact", "field": "external_id", "op": op});
    json!({"and": [has("exists"), has("not_exists")]})
}

/// The writes for a contact, its memberships, its suppressions and its earlier events.
async fn person(from: &App, dry_run: &DryRun, participant: &Participant) -> Result<Vec<Write>, Error> {
    let (store, workspace, contact) = (from.store(), dry_run.workspace, &participant.contact);
    let put = PutContact { contact: Arc::new(contact.clone()), expect: Expect::Absent };
    let mut writes = vec![Write::PutContacts(vec![put])];
    let joins = contact.list_ids.iter().map(|list| Write::JoinList(workspace, *list, contact.id, contact.created_at));
    writes.extend(joins);
    let addresses = contact.all_addresses();
    if !addresses.is_empty() {
        let listed = store.suppressed_anywhere(workspace, &addresses).await?;
        writes.extend(listed.into_iter().map(|one| Write::PutSuppression(one, Expect::Absent)));
    }
    if !participant.past.is_empty() {
        writes.push(Write::AppendProductEvents(participant.past.clone()));
    }
    if participant.is_stored {
        writes.extend(past(from, dry_run, participant).await?);
    }
    Ok(writes)
}

/// The writes for the earlier product events of a contact of the workspace, and for the marketing messages of the last
/// days that count for caps.
async fn past(from: &App, dry_run: &DryRun, participant: &Participant) -> Result<Vec<Write>, StoreError> {
    let (store, workspace, contact) = (from.store(), dry_run.workspace, participant.contact.id);
    let mut events = Vec::new();
    let mut page = PageRequest { after: None, limit: EVENTS };
    for _ in 0..EVENT_PAGES {
        let slice = store.product_events(workspace, contact, page).await?;
        events.extend(slice.items.into_iter().filter(|event| event.received_at() <= dry_run.at));
        page.after = slice.next;
        if page.after.is_none() {
            break;
        }
    }
    // Ids increase with time, and so do the positions in the table.
    events.sort_unstable_by_key(|event| event.id);
    let mut writes = Vec::new();
    if !events.is_empty() {
        writes.push(Write::AppendProductEvents(events));
    }
    for channel in Channel::ALL {
        if let Some(sends) = store.contact_sends(workspace, contact, channel).await? {
            writes.push(Write::put(sends.record, Expect::Absent));
        }
    }
    Ok(writes)
}
