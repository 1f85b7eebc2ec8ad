//! Contacts of a page of runs: read once, changed in memory, written once.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::tz::TimeZone;
use messaging_core::DomainError;
use messaging_core::changes::{AutomationWrite, Expect, PutContact, Write};
use messaging_core::domain::audience::contact::Contact;
use messaging_core::domain::audience::contact::input::ContactInput;
use messaging_core::domain::audience::custom_field::FieldTypes;
use messaging_core::domain::automation::graph::ContactUpdate;
use messaging_core::domain::delivery::recipient_time::zone_of;
use messaging_core::domain::template::values::Values;
use messaging_core::ids::{ContactId, ListId, WorkspaceId};
use messaging_core::input;
use messaging_core::patch::Patch;
use messaging_core::ports::store::{StoreError, Stored};
use messaging_core::time::Timestamp;
use messaging_core::violation::Violations;

use serde_json::Value;

use crate::app::App;
use crate::services::texts::TextFault;

/// A contact as it was read, with its changes.
#[derive(Debug)]
pub(super) struct Person {
    before: Stored<Contact>,
    /// The contact as the runs of the page have changed it.
    pub(super) contact: Contact,
    /// Time zone of the contact, as it was read.
    pub(super) zone: TimeZone,
    /// Greatest depth of the runs that changed it.
    depth: u8,
}

/// Reads contacts; those that are gone are left out.
pub(super) async fn load(
    app: &App,
    workspace: WorkspaceId,
    contacts: impl Iterator<Item = ContactId>,
) -> Result<HashMap<ContactId, Person>, StoreError> {
    let mut people = HashMap::new();
    let zone = app.workspace(workspace).await?.map_or_else(|| "UTC".to_owned(), |one| one.timezone.clone());
    for id in contacts {
        if people.contains_key(&id) {
            continue;
        }
        if let Some(before) = app.store().contact(workspace, id).await? {
            let contact = before.record.clone();
            let zone = zone_of(contact.timezone.as_deref(), &zone);
            people.insert(id, Person { before, contact, zone, depth: 0 });
        }
    }
    Ok(people)
}

impl Person {
    /// Changes the contact by the rules of contacts; the error is the reason if they refuse it.
    pub(super) fn update(&mut self, sent: ContactInput, types: &FieldTypes, depth: u8) -> Result<(), String> {
        let (sent, mut violations) = match input::made_body(sent) {
            Ok(made) => made,
            Err(DomainError::Invalid(violations)) => return Err(summary_of(&violations)),
            Err(_) => return Err("the contact cannot be changed so".to_owned()),
        };
        let mut changed = self.contact.clone();
        sent.apply(&mut changed, types, &mut violations);
        if !violations.is_empty() {
            return Err(summary_of(&violations));
        }
        self.contact = changed;
        self.depth = self.depth.max(depth);
        Ok(())
    }

    /// Adds the contact to a list, or removes it.
    pub(super) fn set_membership(&mut self, list: ListId, is_member: bool, depth: u8) {
        self.contact.list_ids.retain(|id| *id != list);
        if is_member {
            self.contact.list_ids.push(list);
        }
        self.depth = self.depth.max(depth);
    }

    /// Returns the writes that store the changes of the contact and of its lists.
    pub(super) fn writes(self, now: Timestamp) -> Vec<Write> {
        let Self { before: Stored { record: before, revision }, mut contact, zone: _, depth } = self;
        let (workspace, id) = (contact.workspace_id, contact.id);
        let missing_in = |all: &[ListId], some: &[ListId]| -> Vec<ListId> {
            all.iter().filter(|id| !some.contains(id)).copied().collect()
        };
        let joins = missing_in(&contact.list_ids, &before.list_ids);
        let leaves = missing_in(&before.list_ids, &contact.list_ids);
        let mut writes = Vec::new();
        if !contact.equals_but_for_lists(&before) {
            contact.updated_at = now;
            let put = PutContact { contact: Arc::new(contact), expect: Expect::Revision(revision) };
            writes.push(Write::PutContacts(vec![put]));
        }
        writes.extend(joins.into_iter().map(|list| Write::JoinList(workspace, list, id, now)));
        writes.extend(leaves.into_iter().map(|list| Write::LeaveList(workspace, list, id, now)));
        if !writes.is_empty() {
            writes.insert(0, Write::Automation(AutomationWrite::CausedAt(depth)));
        }
        writes
    }
}

/// Renders an update of a contact.
pub(super) async fn input_of(
    app: &App,
    update: &ContactUpdate,
    contact: &Contact,
    values: &Values,
) -> Result<ContactInput, TextFault> {
    let mut sent = ContactInput::default();
    if !update.attributes.is_empty() {
        sent.attributes = Patch::Set(app.render_members(&update.attributes, values).await?);
    }
    if let Some(locale) = &update.locale {
        sent.locale = Patch::Set(app.render_text(locale, values).await?);
    }
    if let Some(timezone) = &update.timezone {
        sent.timezone = Patch::Set(app.render_text(timezone, values).await?);
    }
    if !update.tags_add.is_empty() || !update.tags_remove.is_empty() {
        let mut tags = contact.tags.clone();
        for tag in &update.tags_remove {
            let tag = app.render_text(tag, values).await?;
            tags.retain(|one| *one != tag);
        }
        for tag in &update.tags_add {
            let tag = app.render_text(tag, values).await?;
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
        sent.tags = Patch::Set(tags);
    }
    Ok(sent)
}

/// Describes violations without the values.
pub(super) fn summary_of(violations: &Violations) -> String {
    let all = violations.as_slice().iter().map(|one| {
        let one = serde_json::to_value(one).unwrap_or_default();
        let text = |name: &str| one.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        format!("{} {}", text("pointer"), text("message"))
    });
    all.collect::<Vec<_>>().join("; ")
}
