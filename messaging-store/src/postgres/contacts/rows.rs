//! Reading contacts from their rows.

use messaging_core::domain::contact::Contact;
use messaging_core::ids::{Id as _, ListId, WorkspaceId};
use messaging_core::ports::store::Stored;
use tokio_postgres::Row;
use uuid::Uuid;

use super::super::fault::Fault;
use crate::tables::contacts;

/// The columns that [`contact`] reads, in its order.
macro_rules! contact_columns {
    () => {
        concat!(
            $crate::tables::contacts::contact_columns!(),
            ", array(SELECT l.id FROM list_members lm JOIN lists l ON l.n = lm.list
                WHERE lm.contact = c.n AND NOT l.removed ORDER BY l.id)"
        )
    };
}
pub(in super::super) use contact_columns;

/// A contact from the columns of `contact_columns`, with its number.
pub(in super::super) fn contact(workspace: WorkspaceId, row: &Row) -> Result<(i64, Stored<Contact>), Fault> {
    let lists = row.try_get::<_, Vec<Uuid>>(14)?;
    contacts::contact(workspace, row, lists.into_iter().map(|id| ListId::from_bytes(id.into_bytes())).collect())
}
