//! Contacts on SQLite: writing them with their tags, and finding many.

mod list;
mod rows;
mod tags;

use std::collections::BTreeSet;

use async_trait::async_trait;
use messaging_core::changes::{Expect, PutContact};
use messaging_core::domain::audience::contact::{Consent, Contact, ContactFilter, Identifier};
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{ContactId, Id as _, WorkspaceId};
use messaging_core::ports::store::{PageRequest, Slice, StoreError, Stored};
use rusqlite::{Connection, OptionalExtension as _, Statement, params};

use self::rows::{numbered, text_at};
use self::tags::Tags;
use super::Sqlite;
use super::campaigns;
use super::change_subscribers::ChangeSubscribers;
use super::fault::{Fault, expect_one};
use super::listeners::Happened;
use super::numbers::{BY_EMAIL, BY_EXTERNAL_ID, BY_PHONE, COUNT_BITS, make_workspace_number, workspace_number};
use super::query::one;
use super::segments::{self, note};
use crate::row::{or_empty, time};
use crate::tables::contacts::{ContactRows, attributes_text, tags_text};
use crate::tables::{automations, product_events};

pub(super) use rows::identified;

pub(super) fn put(
    connection: &Connection,
    subscribers: &mut ChangeSubscribers,
    puts: &[PutContact],
) -> Result<(), Fault> {
    let mut rest = puts;
    while let Some(first) = rest.first() {
        let workspace = first.contact.workspace_id;
        let count = rest.iter().take_while(|put| put.contact.workspace_id == workspace).count();
        let (of_workspace, others) = rest.split_at(count);
        put_of(connection, subscribers, workspace, of_workspace)?;
        rest = others;
    }
    Ok(())
}

/// Stores contacts of one workspace: shared data is looked up once.
fn put_of(
    connection: &Connection,
    subscribers: &mut ChangeSubscribers,
    workspace: WorkspaceId,
    puts: &[PutContact],
) -> Result<(), Fault> {
    let workspace_number = make_workspace_number(connection, workspace)?;
    let read_mask = subscribers.read_masks.of(connection, workspace)?;
    let listeners = &mut subscribers.listeners;
    let is_heard = listeners.is_any(connection, workspace)?;
    let newest: i64 = connection
        .prepare_cached("SELECT newest FROM workspace_numbers WHERE number = ?1")?
        .query_row([workspace_number], |row| row.get(0))?;
    let mut tags = Tags::new(connection, workspace_number)?;
    let mut insertion = connection.prepare_cached(INSERT)?;
    let mut added = 0;
    for put in puts {
        match put.expect {
            Expect::Absent => {
                added += 1;
                let n = (workspace_number << COUNT_BITS) | (newest + added);
                insert(&mut insertion, workspace_number, n, &put.contact, &mut tags)?;
                if let Some(read_mask) = read_mask {
                    note(connection, read_mask, n, ReadMask::ALL)?;
                }
                if is_heard {
                    listeners.hear(connection, workspace, n, put.contact.created_at, Happened::Created)?;
                }
            }
            Expect::Revision(revision) => {
                let is_asked = is_heard || read_mask.is_some();
                let (n, changed) = update(connection, workspace_number, is_asked, &put.contact, revision, &mut tags)?;
                if let Some(read_mask) = read_mask {
                    note(connection, read_mask, n, changed)?;
                }
                if is_heard && !changed.is_empty() {
                    // Dates are attributes, and a time zone is a field.
                    let dates = changed.intersects(ReadMask::ATTRIBUTES | ReadMask::FIELDS);
                    let happened = Happened::Changed { dates };
                    listeners.hear(connection, workspace, n, put.contact.updated_at, happened)?;
                }
            }
        }
    }
    if added > 0 {
        connection
            .prepare_cached(
                "UPDATE workspace_numbers SET newest = newest + ?2, contacts = contacts + ?2 WHERE number = ?1",
            )?
            .execute([workspace_number, added])?;
    }
    Ok(())
}

const INSERT: &str =
    "INSERT INTO contacts (n, workspace_number, id, revision, created_at, updated_at, marketing_email, sms,
        external_id, email, phone, locale, timezone, tags, attributes)
    VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";

fn insert(
    insertion: &mut Statement<'_>,
    workspace_number: i64,
    n: i64,
    contact: &Contact,
    tags: &mut Tags<'_>,
) -> Result<(), Fault> {
    insertion.execute(params![
        n,
        workspace_number,
        contact.id.to_bytes(),
        contact.created_at.as_millis(),
        contact.updated_at.as_millis(),
        contact.consent.marketing_email,
        contact.consent.sms,
        contact.external_id,
        contact.email,
        contact.phone,
        contact.locale,
        contact.timezone,
        tags_text(contact)?,
        attributes_text(contact),
    ])?;
    tags.add(n, contact.tags.iter())
}

/// Updates a contact; returns its number and, if asked for, the mask of its changes.
fn update(
    connection: &Connection,
    workspace_number: i64,
    is_asked: bool,
    contact: &Contact,
    revision: u32,
    tags: &mut Tags<'_>,
) -> Result<(i64, ReadMask), Fault> {
    let tags_text = tags_text(contact)?;
    let held = one(
        connection,
        "SELECT n, external_id, email, phone, tags FROM contacts WHERE workspace_number = ?1 AND id = ?2 AND revision = ?3",
        params![workspace_number, contact.id.to_bytes(), revision],
        |row| {
            let same =
                |column, text: &Option<String>| -> Result<bool, Fault> { Ok(text_at(row, column)? == text.as_deref()) };
            let same_identifiers =
                same(1, &contact.external_id)? && same(2, &contact.email)? && same(3, &contact.phone)?;
            // Unchanged tags need not be parsed.
            let held_tags = if same(4, &tags_text)? { None } else { Some(or_empty::<Vec<String>>(row, 4)?) };
            Ok((row.get::<_, i64>(0)?, same_identifiers, held_tags))
        },
    )?;
    let Some((n, same_identifiers, held_tags)) = held else { return Err(Fault::Conflict) };
    let mut changed = ReadMask::NONE;
    if is_asked {
        changed = changes(connection, n, contact)?;
        if !same_identifiers {
            changed = changed | ReadMask::FIELDS | ReadMask::SUPPRESSIONS;
        }
        if held_tags.is_some() {
            changed = changed | ReadMask::TAGS;
        }
    }
    connection
        .prepare_cached(
            "UPDATE contacts SET revision = revision + 1, updated_at = ?2, marketing_email = ?3, sms = ?4, locale = ?5,
                 timezone = ?6, tags = ?7, attributes = ?8
             WHERE n = ?1",
        )?
        .execute(params![
            n,
            contact.updated_at.as_millis(),
            contact.consent.marketing_email,
            contact.consent.sms,
            contact.locale,
            contact.timezone,
            tags_text,
            attributes_text(contact),
        ])?;
    // A statement of its own, because naming an indexed column rewrites its index even if it stays the same.
    if !same_identifiers {
        connection
            .prepare_cached("UPDATE contacts SET external_id = ?2, email = ?3, phone = ?4 WHERE n = ?1")?
            .execute(params![n, contact.external_id, contact.email, contact.phone])?;
    }
    if let Some(held) = held_tags {
        tags.remove(n, held.iter().filter(|tag| !contact.tags.contains(tag)))?;
        tags.add(n, contact.tags.iter().filter(|tag| !held.contains(tag)))?;
    }
    Ok((n, changed))
}

/// Mask of the fields that differ from the stored contact, apart from identifiers and tags. To be read before storing.
fn changes(connection: &Connection, n: i64, contact: &Contact) -> Result<ReadMask, Fault> {
    const SQL: &str =
        "SELECT updated_at, locale, timezone, marketing_email, sms, attributes FROM contacts WHERE n = ?1";
    let held = one(connection, SQL, [n], |row| {
        let consent = Consent { marketing_email: row.get(3)?, sms: row.get(4)? };
        let same_fields =
            text_at(row, 1)? == contact.locale.as_deref() && text_at(row, 2)? == contact.timezone.as_deref();
        let same_attributes = text_at(row, 5)? == attributes_text(contact);
        Ok([
            (time(row, 0)? == contact.updated_at, ReadMask::UPDATED_AT),
            (same_fields, ReadMask::FIELDS),
            (consent == contact.consent, ReadMask::CONSENT),
            // Some addresses are attributes.
            (same_attributes, ReadMask::ATTRIBUTES | ReadMask::SUPPRESSIONS),
        ])
    })?;
    let changed = held.into_iter().flatten().filter(|(same, _)| !same).map(|(_, mask)| mask);
    Ok(changed.fold(ReadMask::NONE, |all, one| all | one))
}

pub(super) fn delete(connection: &Connection, workspace: WorkspaceId, id: ContactId) -> Result<(), Fault> {
    let Some(workspace_number) = workspace_number(connection, workspace)? else { return Ok(()) };
    let sql = "SELECT n, tags FROM contacts WHERE workspace_number = ?1 AND id = ?2";
    let held = one(connection, sql, params![workspace_number, id.to_bytes()], |row| {
        Ok((row.get::<_, i64>(0)?, or_empty::<Vec<String>>(row, 1)?))
    })?;
    let Some((n, held_tags)) = held else { return Ok(()) };
    Tags::new(connection, workspace_number)?.remove(n, held_tags.iter())?;
    connection
        .prepare_cached(
            "UPDATE lists SET contacts = contacts - 1 WHERE n IN (SELECT list FROM list_members WHERE contact = ?1)",
        )?
        .execute([n])?;
    connection.prepare_cached("DELETE FROM list_members WHERE contact = ?1")?.execute([n])?;
    connection.prepare_cached("DELETE FROM list_subscriptions WHERE contact = ?1")?.execute([n])?;
    segments::remove_contact(connection, workspace_number, n)?;
    campaigns::delete_contact_sends(connection, n)?;
    product_events::remember_deleted(&mut &*connection, workspace_number, id, n)?;
    automations::depart(&mut &*connection, workspace, id, n)?;
    expect_one(connection.prepare_cached("DELETE FROM contacts WHERE n = ?1")?.execute([n])?)?;
    connection
        .prepare_cached("UPDATE workspace_numbers SET contacts = contacts - 1 WHERE number = ?1")?
        .execute([workspace_number])?;
    Ok(())
}

#[async_trait]
impl ContactRows for Sqlite {
    async fn identified_by(
        &self,
        workspace: WorkspaceId,
        identifiers: Vec<Identifier>,
    ) -> Result<Vec<Stored<Contact>>, StoreError> {
        /// Looking up more identifiers than this takes longer than waking a thread.
        const FEW: usize = 8;
        let few = identifiers.len() <= FEW;
        let read = move |connection: &Connection| {
            // One transaction: for one moment, and one lock instead of one for every look-up.
            let connection = connection.unchecked_transaction()?;
            let Some(workspace_number) = workspace_number(&connection, workspace)? else { return Ok(Vec::new()) };
            let mut by_external_id = connection.prepare_cached(BY_EXTERNAL_ID)?;
            let mut by_email = connection.prepare_cached(BY_EMAIL)?;
            let mut by_phone = connection.prepare_cached(BY_PHONE)?;
            let mut numbers = BTreeSet::new();
            for identifier in &identifiers {
                let (statement, text) = match identifier {
                    Identifier::ExternalId(text) => (&mut by_external_id, text),
                    Identifier::Email(text) => (&mut by_email, text),
                    Identifier::Phone(text) => (&mut by_phone, text),
                };
                let n: Option<i64> =
                    statement.query_row(params![workspace_number, text], |row| row.get(0)).optional()?;
                numbers.extend(n);
            }
            let mut contacts = Vec::with_capacity(numbers.len());
            for n in numbers {
                contacts.extend(numbered(&connection, workspace, n)?);
            }
            Ok(contacts)
        };
        if few { self.readers.point_read(read).await } else { self.readers.read(read).await }
    }

    async fn matching(
        &self,
        workspace: WorkspaceId,
        filter: &ContactFilter,
        page: PageRequest,
    ) -> Result<Slice<Contact>, StoreError> {
        let filter = filter.clone();
        self.readers.read(move |connection| list::contacts(connection, workspace, &filter, &page)).await
    }
}
