//! Contacts.

pub(crate) mod rows;

use async_trait::async_trait;
use messaging_core::domain::audience::contact::{Contact, ContactFilter, Identifier};
use messaging_core::ids::{ContactId, WorkspaceId};
use messaging_core::ports::store::{Contacts, PageRequest, Slice, StoreError, Stored};

use crate::database::{Database, Query, SqlStore};
use crate::row::{count, id};
use crate::sql::{Sql, key, params, sql};
use crate::tables::search;

#[cfg(feature = "postgres")]
pub(crate) use self::rows::CONTACT_COLUMNS;
pub(crate) use self::rows::{attributes_text, contact, contact_columns, identifier, matches, tags_text, text_columns};

/// Methods that each database implements in its own way.
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
        match &filter.search {
            Some(search) if identifier(filter).is_none() => {
                search::contacts(&self.0, workspace, (filter, search), &page).await
            }
            _ => self.matching(workspace, filter, page).await,
        }
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
