//! Contacts on PostgreSQL: writing them with their tags, and finding many.

mod identifiers;
mod list;
mod locked_contact;
mod put;
mod tags;

use async_trait::async_trait;
use messaging_core::domain::audience::contact::{Contact, ContactFilter, Identifier};
use messaging_core::ids::{ContactId, ListId, WorkspaceId};
use messaging_core::ports::store::{PageRequest, Slice, StoreError, Stored};

use super::Postgres;
use super::fault::Fault;
use super::query::{many, one};
use super::transaction::Transaction;
use super::{campaigns, segments};
use crate::row::{get, maybe_id, or_empty};
use crate::sql::{key, params};
use crate::tables::contacts::{ContactRows, contact, contact_columns};
use crate::tables::{automations, product_events};

pub(super) use self::identifiers::Kinds;
pub(super) use self::put::put;

pub(super) async fn delete(transaction: &mut Transaction, workspace: WorkspaceId, id: ContactId) -> Result<(), Fault> {
    // A transaction that adds a membership or an event of the contact at this moment locks the row: it ends before, or
    // finds no contact.
    const HELD: &str = "SELECT n, workspace_number, tags FROM contacts
        WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1) AND id = $2 FOR UPDATE";
    const MEMBERSHIPS: &str = "DELETE FROM list_members WHERE contact = $1
        RETURNING (SELECT lists.id FROM lists WHERE lists.n = list_members.list)";
    let held = one(transaction, HELD, params![key(workspace), key(id)], |row| {
        Ok((get::<i64>(row, 0)?, get::<i64>(row, 1)?, or_empty::<Vec<String>>(row, 2)?))
    })
    .await?;
    let Some((n, workspace_number, held_tags)) = held else { return Ok(()) };
    tags::remove_all(transaction, workspace_number, n, held_tags);
    let lists: Vec<Option<ListId>> = many(transaction, MEMBERSHIPS, params![n], |row| maybe_id(row, 0)).await?;
    for list in lists.into_iter().flatten() {
        transaction.counts.add_members(workspace, list, -1);
    }
    transaction.run("DELETE FROM list_subscriptions WHERE contact = $1", params![n]);
    product_events::remember_deleted(transaction, workspace_number, id, n)?;
    campaigns::delete_contact_sends(transaction, n);
    automations::depart(transaction, workspace, id, n)?;
    transaction.run_one("DELETE FROM contacts WHERE n = $1", params![n]);
    segments::remove_contact(transaction, workspace, workspace_number, n);
    transaction.counts.add_contacts(workspace, -1);
    Ok(())
}

#[async_trait]
impl ContactRows for Postgres {
    async fn identified_by(
        &self,
        workspace: WorkspaceId,
        identifiers: Vec<Identifier>,
    ) -> Result<Vec<Stored<Contact>>, StoreError> {
        const SQL: &str = concat!(
            "WITH w AS (SELECT number FROM workspace_numbers WHERE workspace = $1),
             found AS (
                 SELECT n FROM contacts WHERE workspace_number = (SELECT number FROM w) AND external_id = ANY ($2)
                 UNION SELECT n FROM contacts WHERE workspace_number = (SELECT number FROM w) AND email = ANY ($3)
                 UNION SELECT n FROM contacts WHERE workspace_number = (SELECT number FROM w) AND phone = ANY ($4)
             )
             SELECT ",
            contact_columns!(postgres),
            " FROM found JOIN contacts c ON c.n = found.n"
        );
        let Kinds { external_ids, emails, phones } = identifiers.into_iter().collect();
        let wanted = params![key(workspace), external_ids, emails, phones];
        self.reads.many(SQL, wanted, |row| Ok(contact(workspace, row)?.1)).await
    }

    async fn matching(
        &self,
        workspace: WorkspaceId,
        filter: &ContactFilter,
        page: PageRequest,
    ) -> Result<Slice<Contact>, StoreError> {
        Ok(list::contacts(&self.reads, workspace, filter, &page).await?)
    }
}
