//! Lists of contacts.

use async_trait::async_trait;
use messaging_core::changes::Expect;
use messaging_core::domain::audience::form::Form;
use messaging_core::domain::audience::list::{ContactList, OptIn, Visibility};
use messaging_core::domain::audience::subscription::{Subscription, SubscriptionStatus};
use messaging_core::ids::{ContactId, FormId, Id as _, ListId, WorkspaceId};
use messaging_core::ports::store::{Lists, PageRequest, Slice, StoreError, Stored};
use messaging_core::time::Timestamp;

use super::{forms, subscriptions};
use crate::database::{Database, Query, SqlStore, Statements};
use crate::fault::Fault;
use crate::pages::{below, one_more, sql_limit};
use crate::row::{Row, count, get, id, time};
use crate::sql::{Sql, Value, key, params, sql};

/// Methods that each database implements in its own way.
#[async_trait]
pub(crate) trait ListRows {
    /// See [`Lists::forget_members`].
    async fn forget_members_of_lists(&self, limit: usize) -> Result<u64, StoreError>;
}

/// The number of the workspace in `$1`.
macro_rules! workspace_number {
    () => {
        "(SELECT number FROM workspace_numbers WHERE workspace = $1)"
    };
}

/// Selects lists by the columns that [`list`] reads. On PostgreSQL members are counted in several rows, so that joins do
/// not wait for one another.
macro_rules! select {
    ($which:literal) => {
        sql!(
            sqlite: concat!(
                "SELECT id, revision, contacts, created_at, updated_at, name, is_public, is_double, description
                 FROM lists l WHERE l.workspace_number = ",
                workspace_number!(),
                " AND NOT removed AND ",
                $which
            ),
            postgres: concat!(
                "SELECT id, revision, (SELECT coalesce(sum(members), 0)::bigint FROM list_counts WHERE list = l.n),
                     created_at, updated_at, name, is_public, is_double, description
                 FROM lists l WHERE l.workspace_number = ",
                workspace_number!(),
                " AND NOT removed AND ",
                $which
            ),
        )
    };
}

/// Gives a workspace a number if it has none.
pub(crate) fn number_workspace(on: &mut dyn Statements, workspace: WorkspaceId) -> Result<(), Fault> {
    const SQL: Sql = sql!(
        sqlite: "INSERT INTO workspace_numbers (workspace, newest, contacts)
            SELECT $1, 0, 0 WHERE NOT EXISTS (SELECT 1 FROM workspace_numbers WHERE workspace = $1)",
        postgres: "INSERT INTO workspace_numbers (workspace)
            SELECT $1 WHERE NOT EXISTS (SELECT 1 FROM workspace_numbers WHERE workspace = $1) ON CONFLICT DO NOTHING",
    );
    on.run(SQL, params![key(workspace)])
}

pub(crate) fn put(on: &mut dyn Statements, list: &ContactList, expect: Expect) -> Result<(), Fault> {
    const INSERT: Sql = sql!(
        "INSERT INTO lists (workspace_number, id, revision, removed, {contacts,} created_at, updated_at, name, is_public,
             is_double, description)
         SELECT number, $2, 1, false, {0,} $3, $4, $5, $6, $7, $8 FROM workspace_numbers WHERE workspace = $1"
    );
    const UPDATE: Sql = sql!(concat!(
        "UPDATE lists SET name = $3, updated_at = $4, is_public = $6, is_double = $7, description = $8,
             revision = revision + 1 WHERE workspace_number = ",
        workspace_number!(),
        " AND id = $2 AND NOT removed AND revision = $5"
    ));
    let (workspace, id, name) = (key(list.workspace_id), key(list.id), list.name.as_str());
    let (is_public, is_double) = (list.is_public(), list.opt_in == OptIn::Double);
    let description = list.description.clone();
    match expect {
        Expect::Absent => {
            number_workspace(on, list.workspace_id)?;
            let (created_at, updated_at) = (list.created_at, list.updated_at);
            let row = params![workspace, id, created_at, updated_at, name, is_public, is_double, description];
            on.run_one(INSERT, row)
        }
        Expect::Revision(revision) => {
            let row = params![workspace, id, name, list.updated_at, revision, is_public, is_double, description];
            on.run_one(UPDATE, row)
        }
    }
}

/// Removes a list. On PostgreSQL a transaction that adds a member locks the row: it ends before the removal, or finds
/// no list.
pub(crate) fn delete(on: &mut dyn Statements, workspace: WorkspaceId, id: ListId) -> Result<(), Fault> {
    const SQL: Sql = sql!(
        sqlite: concat!(
            "UPDATE lists SET removed = true, name = '', description = NULL WHERE workspace_number = ",
            workspace_number!(),
            " AND id = $2 AND NOT removed"
        ),
        postgres: concat!(
            "UPDATE lists SET removed = true, name = '', description = NULL WHERE n = (SELECT n FROM lists WHERE workspace_number = ",
            workspace_number!(),
            " AND id = $2 AND NOT removed FOR UPDATE)"
        ),
    );
    on.run(SQL, params![key(workspace), key(id)])
}

fn list(workspace: WorkspaceId, row: &dyn Row) -> Result<Stored<ContactList>, Fault> {
    let record = ContactList {
        id: id(row, 0)?,
        workspace_id: workspace,
        name: get(row, 5)?,
        visibility: if get(row, 6)? { Visibility::Public } else { Visibility::Private },
        opt_in: if get(row, 7)? { OptIn::Double } else { OptIn::Single },
        description: get(row, 8)?,
        contact_count: count(row, 2)?,
        created_at: time(row, 3)?,
        updated_at: time(row, 4)?,
    };
    Ok(Stored { record, revision: get(row, 1)? })
}

#[async_trait]
impl<D: Database + ListRows> Lists for SqlStore<D> {
    async fn list(&self, workspace: WorkspaceId, id: ListId) -> Result<Option<Stored<ContactList>>, StoreError> {
        const SQL: Sql = select!("id = $2");
        self.one(Query::new(SQL, params![key(workspace), key(id)], move |row| list(workspace, row)).point()).await
    }

    async fn lists(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<ContactList>, StoreError> {
        const SQL: Sql = select!("id < $2 ORDER BY id DESC LIMIT $3");
        let bounds = params![key(workspace), below(&page), one_more(&page)];
        let query = Query::new(SQL, bounds, move |row| Ok(list(workspace, row)?.record));
        self.page(query, page, |list| list.id.to_bytes()).await
    }

    async fn lists_among(&self, workspace: WorkspaceId, ids: &[ListId]) -> Result<Vec<ListId>, StoreError> {
        const SQL: Sql = sql!(
            sqlite: concat!(
                "SELECT id FROM lists WHERE workspace_number = ",
                workspace_number!(),
                " AND id IN (SELECT unhex(value) FROM json_each($2)) AND NOT removed"
            ),
            postgres: concat!(
                "SELECT id FROM lists WHERE workspace_number = ",
                workspace_number!(),
                " AND id = ANY ($2) AND NOT removed"
            ),
        );
        let ids = Value::List(ids.iter().copied().map(key).collect());
        self.many(Query::new(SQL, params![key(workspace), ids], |row| id(row, 0)).point()).await
    }

    async fn public_lists(&self, workspace: WorkspaceId, limit: usize) -> Result<Vec<ContactList>, StoreError> {
        const SQL: Sql = select!("is_public ORDER BY id DESC LIMIT $2");
        let query =
            Query::new(SQL, params![key(workspace), sql_limit(limit)], move |row| Ok(list(workspace, row)?.record));
        self.many(query).await
    }

    async fn public_lists_among(&self, workspace: WorkspaceId, ids: &[ListId]) -> Result<Vec<ListId>, StoreError> {
        const SQL: Sql = sql!(
            sqlite: concat!(
                "SELECT id FROM lists WHERE workspace_number = ",
                workspace_number!(),
                " AND id IN (SELECT unhex(value) FROM json_each($2)) AND NOT removed AND is_public"
            ),
            postgres: concat!(
                "SELECT id FROM lists WHERE workspace_number = ",
                workspace_number!(),
                " AND id = ANY ($2) AND NOT removed AND is_public"
            ),
        );
        let ids = Value::List(ids.iter().copied().map(key).collect());
        self.many(Query::new(SQL, params![key(workspace), ids], |row| id(row, 0)).point()).await
    }

    async fn memberships(
        &self,
        workspace: WorkspaceId,
        list: ListId,
        contacts: &[ContactId],
    ) -> Result<Vec<(ContactId, bool)>, StoreError> {
        macro_rules! memberships {
            ($among:literal) => {
                concat!(
                    "SELECT c.id, EXISTS (SELECT 1 FROM list_members m WHERE m.contact = c.n AND m.list = (
                         SELECT n FROM lists WHERE workspace_number = ",
                    workspace_number!(),
                    " AND id = $2 AND NOT removed)) FROM contacts c WHERE c.workspace_number = ",
                    workspace_number!(),
                    " AND c.id ",
                    $among
                )
            };
        }
        const SQL: Sql = sql!(
            sqlite: memberships!("IN (SELECT unhex(value) FROM json_each($3))"),
            postgres: memberships!("= ANY ($3)"),
        );
        let contacts = Value::List(contacts.iter().copied().map(key).collect());
        let query =
            Query::new(SQL, params![key(workspace), key(list), contacts], |row| Ok((id(row, 0)?, get(row, 1)?)));
        self.many(query).await
    }

    async fn subscriptions_among(
        &self,
        workspace: WorkspaceId,
        lists: &[ListId],
        contacts: &[ContactId],
    ) -> Result<Vec<Stored<Subscription>>, StoreError> {
        self.many(subscriptions::among(workspace, lists, contacts)).await
    }

    async fn subscriptions_of(
        &self,
        workspace: WorkspaceId,
        contact: ContactId,
        limit: usize,
    ) -> Result<Vec<Stored<Subscription>>, StoreError> {
        self.many(subscriptions::of(workspace, contact, limit)).await
    }

    async fn subscriptions(
        &self,
        workspace: WorkspaceId,
        list: ListId,
        status: SubscriptionStatus,
        page: PageRequest,
    ) -> Result<Slice<Subscription>, StoreError> {
        let query = subscriptions::listing(workspace, list, status, &page);
        self.page(query, page, |subscription| subscription.contact_id.to_bytes()).await
    }

    async fn unconfirmed_since_before(
        &self,
        before: Timestamp,
        limit: usize,
    ) -> Result<Vec<Stored<Subscription>>, StoreError> {
        self.many(subscriptions::unconfirmed(before, limit)).await
    }

    async fn form(&self, workspace: WorkspaceId, id: FormId) -> Result<Option<Stored<Form>>, StoreError> {
        self.one(forms::form(workspace, id)).await
    }

    async fn forms(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<Form>, StoreError> {
        self.page(forms::listing(workspace, &page), page, |form| form.id.to_bytes()).await
    }

    async fn forget_members(&self, limit: usize) -> Result<u64, StoreError> {
        self.forget_members_of_lists(limit).await
    }
}
