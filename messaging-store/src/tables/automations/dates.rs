//! Moments that follow from dates of contacts.

use messaging_core::changes::DateFire;
use messaging_core::ids::{AutomationId, WorkspaceId};
use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;

use super::keys::{Of, automation, contact};
use crate::database::{Database, Query, Statements};
use crate::fault::Fault;
use crate::pages::sql_limit;
use crate::row::{id, time};
use crate::sql::{Sql, key, params, sql};

pub(crate) fn take(
    on: &mut dyn Statements,
    workspace: WorkspaceId,
    automation: AutomationId,
    fire: &DateFire,
) -> Result<(), Fault> {
    const SQL: Sql = sql!(concat!(
        "UPDATE automation_date_fires SET taken = true WHERE automation = ",
        automation!(),
        " AND contact = ",
        contact!("$3"),
        " AND due_at = $4 AND NOT taken"
    ));
    on.run_one(SQL, params![key(workspace), key(automation), key(fire.contact_id), fire.due_at])
}

/// Moments of a share of the contacts that have come, at most so many.
pub(super) async fn due(
    database: &impl Database,
    (workspace, automation): Of,
    shard: u8,
    (now, limit): (Timestamp, usize),
) -> Result<Vec<DateFire>, StoreError> {
    const SQL: Sql = sql!(concat!(
        "SELECT c.id, f.due_at FROM automation_date_fires f {INDEXED BY automation_date_fires_due}
         {CROSS} JOIN contacts c ON c.n = f.contact WHERE f.automation = ",
        automation!(),
        " AND f.contact & 3 = $3 AND f.due_at <= $4 AND NOT f.taken ORDER BY f.due_at, f.contact LIMIT $5"
    ));
    let bounds = params![key(workspace), key(automation), shard, now, sql_limit(limit)];
    let read = |row: &dyn crate::row::Row| Ok(DateFire { contact_id: id(row, 0)?, due_at: time(row, 1)? });
    database.many(Query::new(SQL, bounds, read)).await
}
