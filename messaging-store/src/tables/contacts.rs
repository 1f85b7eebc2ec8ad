//! Contacts.

use async_trait::async_trait;
use messaging_core::domain::audience::contact::attributes::Attributes;
use messaging_core::domain::audience::contact::fields::CONTACT_FIELDS;
use messaging_core::domain::audience::contact::{Consent, Contact, ContactFilter, Identifier};
use messaging_core::ids::{ContactId, Id as _, ListId, WorkspaceId};
use messaging_core::ports::store::{Contacts, PageRequest, Slice, StoreError, Stored};

use crate::database::{Database, Query, SqlStore};
use crate::fault::Fault;
use crate::row::{Row, count, document, get, id, or_empty, time};
use crate::sql::{Sql, key, params, sql};

/// The columns that [`contact`] reads, in its order. The last are the lists, in hexadecimal digits.
macro_rules! contact_columns {
    (sqlite) => {
        concat!(
            $crate::tables::contacts::contact_columns!(),
            $crate::tables::contacts::contact_columns!(lists of sqlite)
        )
    };
    (lists of sqlite) => {
        "(SELECT group_concat(hex(l.id)) FROM list_members lm CROSS JOIN lists l ON l.n = lm.list
            WHERE lm.contact = c.n AND NOT l.removed)"
    };
    (postgres) => {
        concat!(
            $crate::tables::contacts::contact_columns!(),
            "(SELECT string_agg(encode(uuid_send(l.id), 'hex'), ',') FROM list_members lm
                JOIN lists l ON l.n = lm.list WHERE lm.contact = c.n AND NOT l.removed)"
        )
    };
    () => {
        concat!(
            "c.n, c.id, c.revision, c.created_at, c.updated_at, c.marketing_email, c.sms, ",
            $crate::tables::contacts::text_columns!(c),
            ", c.tags, c.attributes, "
        )
    };
}
pub(crate) use contact_columns;

/// The columns with the texts of contacts, in the order of [`CONTACT_FIELDS`].
macro_rules! text_columns {
    () => {
        "external_id, email, phone, locale, timezone"
    };
    (c) => {
        "c.external_id, c.email, c.phone, c.locale, c.timezone"
    };
    // PostgreSQL: null unless they are asked for.
    (if $asked:literal) => {
        concat!(
            "CASE WHEN ",
            $asked,
            " THEN c.external_id END, CASE WHEN ",
            $asked,
            " THEN c.email END, CASE WHEN ",
            $asked,
            " THEN c.phone END, CASE WHEN ",
            $asked,
            " THEN c.locale END, CASE WHEN ",
            $asked,
            " THEN c.timezone END"
        )
    };
}
pub(crate) use text_columns;

/// Where the texts stand among the columns of `contact_columns`.
const TEXTS: usize = 7;
/// Where the columns after the texts begin.
const AFTER_TEXTS: usize = TEXTS + CONTACT_FIELDS.len();

/// How many columns those are: where those of a longer selection begin.
#[cfg(feature = "postgres")]
pub(crate) const CONTACT_COLUMNS: usize = AFTER_TEXTS + 3;

/// What each database does in its own way.
#[async_trait]
pub(crate) trait ContactRows {
    /// See [`Contacts::contacts_identified`].
    async fn identified_by(
        &self,
        workspace: WorkspaceId,
        identifiers: Vec<Identifier>,
    ) -> Result<Vec<Stored<Contact>>, StoreError>;

    /// See [`Contacts::contacts`].
    async fn matching(
        &self,
        workspace: WorkspaceId,
        filter: &ContactFilter,
        page: PageRequest,
    ) -> Result<Slice<Contact>, StoreError>;
}

/// The lists of a contact.
fn lists(row: &dyn Row, column: usize) -> Result<Vec<ListId>, Fault> {
    let Some(text) = get::<Option<&str>>(row, column)? else { return Ok(Vec::new()) };
    let id = |digits: &str| Some(ListId::from_bytes(u128::from_str_radix(digits, 16).ok()?.to_be_bytes()));
    let ids: Option<Vec<ListId>> = text.split(',').map(id).collect();
    let mut ids = ids.ok_or(Fault::Malformed("an id is no hexadecimal number"))?;
    ids.sort_unstable();
    Ok(ids)
}

/// A contact from the columns of `contact_columns`, with its number.
pub(crate) fn contact(workspace: WorkspaceId, row: &dyn Row) -> Result<(i64, Stored<Contact>), Fault> {
    let attributes = get::<Option<&str>>(row, AFTER_TEXTS + 1)?.map(Attributes::parse).transpose()?;
    let mut record = Contact {
        updated_at: time(row, 4)?,
        consent: Consent { marketing_email: get(row, 5)?, sms: get(row, 6)? },
        tags: or_empty(row, AFTER_TEXTS)?,
        attributes: attributes.unwrap_or_default(),
        list_ids: lists(row, AFTER_TEXTS + 2)?,
        ..Contact::new(id(row, 1)?, workspace, time(row, 3)?)
    };
    for field in CONTACT_FIELDS {
        *record.field_mut(field) = get(row, TEXTS + field as usize)?;
    }
    Ok((get(row, 0)?, Stored { record, revision: get(row, 2)? }))
}

/// The tags of a contact as they are stored.
pub(crate) fn tags_text(contact: &Contact) -> Result<Option<String>, Fault> {
    if contact.tags.is_empty() { Ok(None) } else { Ok(Some(document(&contact.tags)?)) }
}

/// The attributes of a contact as they are stored.
pub(crate) fn attributes_text(contact: &Contact) -> Option<&str> {
    if contact.attributes.is_empty() { None } else { Some(contact.attributes.json()) }
}

/// The identifier that a filter asks for, which finds one contact at most.
pub(crate) fn identifier(filter: &ContactFilter) -> Option<Identifier> {
    let external_id = filter.external_id.clone().map(Identifier::ExternalId);
    let email = || filter.email.clone().map(Identifier::Email);
    external_id.or_else(email).or_else(|| filter.phone.clone().map(Identifier::Phone))
}

/// Whether a contact is as a filter says, but for its segments.
pub(crate) fn matches(filter: &ContactFilter, contact: &Contact) -> bool {
    let is = |wanted: &Option<String>, held: &Option<String>| wanted.is_none() || wanted == held;
    is(&filter.external_id, &contact.external_id)
        && is(&filter.email, &contact.email)
        && is(&filter.phone, &contact.phone)
        && filter.updated_since.is_none_or(|since| contact.updated_at >= since)
        && filter.tag.as_ref().is_none_or(|tag| contact.tags.contains(tag))
        && filter.list_id.is_none_or(|list| contact.list_ids.contains(&list))
}

/// Selects the id of the contact that has an identifier.
macro_rules! identified {
    ($column:literal) => {
        sql!(concat!(
            "SELECT id FROM contacts WHERE ",
            $column,
            " = $2 AND workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1)"
        ))
    };
}

#[async_trait]
impl<D: Database + ContactRows> Contacts for SqlStore<D> {
    async fn contact(&self, workspace: WorkspaceId, id: ContactId) -> Result<Option<Stored<Contact>>, StoreError> {
        macro_rules! by_id {
            ($database:ident) => {
                concat!(
                    "SELECT ",
                    contact_columns!($database),
                    " FROM contacts c
                     WHERE c.workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1) AND c.id = $2"
                )
            };
        }
        const SQL: Sql = sql!(sqlite: by_id!(sqlite), postgres: by_id!(postgres));
        let query = Query::new(SQL, params![key(workspace), key(id)], move |row| Ok(contact(workspace, row)?.1));
        self.one(query.point()).await
    }

    async fn contacts_identified(
        &self,
        workspace: WorkspaceId,
        identifiers: Vec<Identifier>,
    ) -> Result<Vec<Stored<Contact>>, StoreError> {
        self.identified_by(workspace, identifiers).await
    }

    async fn contact_identified(
        &self,
        workspace: WorkspaceId,
        identifier: &Identifier,
    ) -> Result<Option<ContactId>, StoreError> {
        let (sql, text): (Sql, _) = match identifier {
            Identifier::ExternalId(text) => (identified!("external_id"), text),
            Identifier::Email(text) => (identified!("email"), text),
            Identifier::Phone(text) => (identified!("phone"), text),
        };
        self.one(Query::new(sql, params![key(workspace), text.as_str()], |row| id(row, 0)).point()).await
    }

    async fn contacts(
        &self,
        workspace: WorkspaceId,
        filter: &ContactFilter,
        page: PageRequest,
    ) -> Result<Slice<Contact>, StoreError> {
        self.matching(workspace, filter, page).await
    }

    async fn contact_count(&self, workspace: WorkspaceId) -> Result<u64, StoreError> {
        const SQL: Sql = sql!(
            sqlite: "SELECT contacts FROM workspace_numbers WHERE workspace = $1",
            postgres: "SELECT coalesce(sum(contacts), 0)::bigint FROM contact_counts
                WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1)",
        );
        let found = self.one(Query::new(SQL, params![key(workspace)], |row| count(row, 0)).point()).await?;
        Ok(found.unwrap_or(0))
    }
}
