//! Contacts and their tags.
//!
//! What the numbers mean stands in the migration that makes the tables.

mod list;
mod tags;

use async_trait::async_trait;
use messaging_core::changes::Expect;
use messaging_core::domain::contact::{Consent, Contact, ContactFilter, Identifier};
use messaging_core::ids::{ContactId, Id as _, ListId, WorkspaceId};
use messaging_core::ports::store::{Contacts, PageRequest, Slice, StoreError, Stored};
use rusqlite::{Connection, Params, Row, params};
use serde::Serialize;
use serde_json::{Map, Value};

use super::SqliteStore;
use super::fault::{Fault, expect_one};
use super::messages::or_empty;
use super::query::{many, one};
use super::row::{count, document, id, time};

/// The low bits of a contact's number count within its audience.
const COUNT_BITS: i64 = 40;

/// The columns that [`contact`] reads, in its order.
macro_rules! contact_columns {
    () => {
        "c.n, c.id, c.revision, c.created_at, c.updated_at, c.marketing_email, c.sms, c.external_id, c.email, \
         c.phone, c.locale, c.timezone, c.tags, c.attributes"
    };
}
use contact_columns;

/// The number of a workspace, if it has any contacts, lists or tags.
pub(super) fn audience(connection: &Connection, workspace: WorkspaceId) -> Result<Option<i64>, Fault> {
    let sql = "SELECT number FROM audiences WHERE workspace = ?1";
    one(connection, sql, [workspace.to_bytes()], |row| Ok(row.get(0)?))
}

/// The number of a workspace, given to it when it has none.
pub(super) fn make_audience(connection: &Connection, workspace: WorkspaceId) -> Result<i64, Fault> {
    if let Some(number) = audience(connection, workspace)? {
        return Ok(number);
    }
    let sql = "INSERT INTO audiences (workspace, newest, contacts) VALUES (?1, 0, 0) RETURNING number";
    Ok(connection.prepare_cached(sql)?.query_row([workspace.to_bytes()], |row| row.get(0))?)
}

/// The number of a contact.
pub(super) fn contact_number(
    connection: &Connection,
    workspace: WorkspaceId,
    id: ContactId,
) -> Result<Option<i64>, Fault> {
    const SQL: &str = "SELECT n FROM contacts
        WHERE audience = (SELECT number FROM audiences WHERE workspace = ?1) AND id = ?2";
    one(connection, SQL, [workspace.to_bytes(), id.to_bytes()], |row| Ok(row.get(0)?))
}

pub(super) fn put(connection: &Connection, contact: &Contact, expect: Expect) -> Result<(), Fault> {
    match expect {
        Expect::Absent => insert(connection, contact),
        Expect::Revision(revision) => update(connection, contact, revision),
    }
}

fn insert(connection: &Connection, contact: &Contact) -> Result<(), Fault> {
    let (audience, count): (i64, i64) = connection
        .prepare_cached(
            "INSERT INTO audiences (workspace, newest, contacts) VALUES (?1, 1, 1)
             ON CONFLICT (workspace) DO UPDATE SET newest = newest + 1, contacts = contacts + 1
             RETURNING number, newest",
        )?
        .query_row([contact.workspace_id.to_bytes()], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let n = (audience << COUNT_BITS) | count;
    connection
        .prepare_cached(
            "INSERT INTO contacts (n, audience, id, revision, created_at, updated_at, marketing_email, sms,
                 external_id, email, phone, locale, timezone, tags, attributes)
             VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
        )?
        .execute(params![
            n,
            audience,
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
            unless(contact.tags.is_empty(), &contact.tags)?,
            unless(contact.attributes.is_empty(), &contact.attributes)?,
        ])?;
    tags::add(connection, audience, n, contact.tags.iter())
}

fn update(connection: &Connection, contact: &Contact, revision: u32) -> Result<(), Fault> {
    let Some(audience) = audience(connection, contact.workspace_id)? else { return Err(Fault::Conflict) };
    let held = one(
        connection,
        "SELECT n, external_id, email, phone, tags FROM contacts WHERE audience = ?1 AND id = ?2 AND revision = ?3",
        params![audience, contact.id.to_bytes(), revision],
        |row| {
            let text = |column| row.get::<_, Option<String>>(column);
            let identifiers = [text(1)?, text(2)?, text(3)?];
            Ok((row.get::<_, i64>(0)?, identifiers, or_empty::<Vec<String>>(row, 4)?))
        },
    )?;
    let Some((n, identifiers, held_tags)) = held else { return Err(Fault::Conflict) };
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
            unless(contact.tags.is_empty(), &contact.tags)?,
            unless(contact.attributes.is_empty(), &contact.attributes)?,
        ])?;
    // Apart, because naming an indexed column rewrites its index even if it stays the same.
    if identifiers != [contact.external_id.clone(), contact.email.clone(), contact.phone.clone()] {
        connection
            .prepare_cached("UPDATE contacts SET external_id = ?2, email = ?3, phone = ?4 WHERE n = ?1")?
            .execute(params![n, contact.external_id, contact.email, contact.phone])?;
    }
    if held_tags != contact.tags {
        tags::remove(connection, audience, n, held_tags.iter().filter(|tag| !contact.tags.contains(tag)))?;
        tags::add(connection, audience, n, contact.tags.iter().filter(|tag| !held_tags.contains(tag)))?;
    }
    Ok(())
}

pub(super) fn delete(connection: &Connection, workspace: WorkspaceId, id: ContactId) -> Result<(), Fault> {
    let Some(audience) = audience(connection, workspace)? else { return Ok(()) };
    let sql = "SELECT n, tags FROM contacts WHERE audience = ?1 AND id = ?2";
    let held = one(connection, sql, params![audience, id.to_bytes()], |row| {
        Ok((row.get::<_, i64>(0)?, or_empty::<Vec<String>>(row, 1)?))
    })?;
    let Some((n, held_tags)) = held else { return Ok(()) };
    tags::remove(connection, audience, n, held_tags.iter())?;
    connection
        .prepare_cached(
            "UPDATE lists SET contacts = contacts - 1 WHERE n IN (SELECT list FROM list_members WHERE contact = ?1)",
        )?
        .execute([n])?;
    connection.prepare_cached("DELETE FROM list_members WHERE contact = ?1")?.execute([n])?;
    expect_one(connection.prepare_cached("DELETE FROM contacts WHERE n = ?1")?.execute([n])?)?;
    connection.prepare_cached("UPDATE audiences SET contacts = contacts - 1 WHERE number = ?1")?.execute([audience])?;
    Ok(())
}

/// A document column in which NULL stands for an empty document.
fn unless<T: Serialize>(empty: bool, value: &T) -> Result<Option<String>, Fault> {
    if empty { Ok(None) } else { Ok(Some(document(value)?)) }
}

/// A contact from the columns of `contact_columns`, with its number.
fn contact(connection: &Connection, workspace: WorkspaceId, row: &Row<'_>) -> Result<(i64, Stored<Contact>), Fault> {
    let n = row.get(0)?;
    let record = Contact {
        id: id(row, 1)?,
        workspace_id: workspace,
        external_id: row.get(7)?,
        email: row.get(8)?,
        phone: row.get(9)?,
        attributes: or_empty::<Map<String, Value>>(row, 13)?,
        tags: or_empty(row, 12)?,
        locale: row.get(10)?,
        timezone: row.get(11)?,
        consent: Consent { marketing_email: row.get(5)?, sms: row.get(6)? },
        list_ids: lists_of(connection, n)?,
        created_at: time(row, 3)?,
        updated_at: time(row, 4)?,
    };
    Ok((n, Stored { record, revision: row.get(2)? }))
}

fn lists_of(connection: &Connection, n: i64) -> Result<Vec<ListId>, Fault> {
    const SQL: &str = "SELECT lists.id FROM list_members CROSS JOIN lists ON lists.n = list_members.list
        WHERE list_members.contact = ?1 AND lists.removed = 0 ORDER BY lists.id";
    many(connection, SQL, [n], |row| id(row, 0))
}

/// The contact that a query of one contact finds.
fn found(
    connection: &Connection,
    workspace: WorkspaceId,
    sql: &'static str,
    params: impl Params,
) -> Result<Option<(i64, Stored<Contact>)>, Fault> {
    one(connection, sql, params, |row| contact(connection, workspace, row))
}

/// The contact that has an identifier.
fn identified(
    connection: &Connection,
    workspace: WorkspaceId,
    audience: i64,
    identifier: &Identifier,
) -> Result<Option<(i64, Stored<Contact>)>, Fault> {
    let (sql, text) = match identifier {
        Identifier::ExternalId(text) => (
            concat!("SELECT ", contact_columns!(), " FROM contacts c WHERE c.audience = ?1 AND c.external_id = ?2"),
            text,
        ),
        Identifier::Email(text) => {
            (concat!("SELECT ", contact_columns!(), " FROM contacts c WHERE c.audience = ?1 AND c.email = ?2"), text)
        }
        Identifier::Phone(text) => {
            (concat!("SELECT ", contact_columns!(), " FROM contacts c WHERE c.audience = ?1 AND c.phone = ?2"), text)
        }
    };
    found(connection, workspace, sql, params![audience, text])
}

#[async_trait]
impl Contacts for SqliteStore {
    async fn contact(&self, workspace: WorkspaceId, id: ContactId) -> Result<Option<Stored<Contact>>, StoreError> {
        const SQL: &str = concat!(
            "SELECT ",
            contact_columns!(),
            " FROM contacts c
             WHERE c.audience = (SELECT number FROM audiences WHERE workspace = ?1) AND c.id = ?2"
        );
        self.readers
            .glance(move |connection| {
                let found = found(connection, workspace, SQL, [workspace.to_bytes(), id.to_bytes()])?;
                Ok(found.map(|(_, stored)| stored))
            })
            .await
    }

    async fn contacts_identified(
        &self,
        workspace: WorkspaceId,
        identifiers: &[Identifier],
    ) -> Result<Vec<Stored<Contact>>, StoreError> {
        /// Looking up more than this takes longer than waking a thread.
        const FEW: usize = 8;
        let identifiers = identifiers.to_vec();
        let few = identifiers.len() <= FEW;
        let read = move |connection: &Connection| {
            let mut contacts = std::collections::BTreeMap::new();
            if let Some(audience) = audience(connection, workspace)? {
                for identifier in &identifiers {
                    contacts.extend(identified(connection, workspace, audience, identifier)?);
                }
            }
            Ok(contacts.into_values().collect())
        };
        if few { self.readers.glance(read).await } else { self.readers.read(read).await }
    }

    async fn contact_identified(
        &self,
        workspace: WorkspaceId,
        identifier: &Identifier,
    ) -> Result<Option<ContactId>, StoreError> {
        let identifier = identifier.clone();
        self.readers
            .glance(move |connection| {
                let (sql, text) = match &identifier {
                    Identifier::ExternalId(text) => (
                        "SELECT id FROM contacts WHERE external_id = ?2
                         AND audience = (SELECT number FROM audiences WHERE workspace = ?1)",
                        text,
                    ),
                    Identifier::Email(text) => (
                        "SELECT id FROM contacts WHERE email = ?2
                         AND audience = (SELECT number FROM audiences WHERE workspace = ?1)",
                        text,
                    ),
                    Identifier::Phone(text) => (
                        "SELECT id FROM contacts WHERE phone = ?2
                         AND audience = (SELECT number FROM audiences WHERE workspace = ?1)",
                        text,
                    ),
                };
                one(connection, sql, params![workspace.to_bytes(), text], |row| id(row, 0))
            })
            .await
    }

    async fn contacts(
        &self,
        workspace: WorkspaceId,
        filter: &ContactFilter,
        page: PageRequest,
    ) -> Result<Slice<Contact>, StoreError> {
        let filter = filter.clone();
        self.readers.read(move |connection| list::contacts(connection, workspace, &filter, &page)).await
    }

    async fn contact_count(&self, workspace: WorkspaceId) -> Result<u64, StoreError> {
        const SQL: &str = "SELECT contacts FROM audiences WHERE workspace = ?1";
        self.readers
            .glance(move |connection| {
                let found = one(connection, SQL, [workspace.to_bytes()], |row| count(row, 0))?;
                Ok(found.unwrap_or(0))
            })
            .await
    }
}
