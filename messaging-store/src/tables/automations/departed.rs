//! Deleted contacts that still have automation runs.

use messaging_core::ids::{ContactId, WorkspaceId};

use crate::database::{Query, Statements};
use crate::fault::Fault;
use crate::row::get;
use crate::sql::{Sql, key, params, sql};

/// Records a contact that is being deleted if it has runs, else deletes its entries and date triggers. On PostgreSQL,
/// the caller holds the lock of the contact's row, so that no run begins meanwhile.
pub(crate) fn depart(on: &mut dyn Statements, workspace: WorkspaceId, id: ContactId, n: i64) -> Result<(), Fault> {
    const KEEP: Sql = sql!(
        "INSERT INTO automation_deleted_contacts (workspace, id, n)
         SELECT $1, $2, $3 WHERE EXISTS (SELECT 1 FROM automation_runs WHERE contact = $3) ON CONFLICT DO NOTHING"
    );
    on.run(KEEP, params![key(workspace), key(id), n])?;
    delete_entries(on, workspace, n)
}

/// Deletes the record, entries and date triggers of a deleted contact, unless it still has runs.
pub(crate) fn end_departure(
    on: &mut dyn Statements,
    workspace: WorkspaceId,
    id: ContactId,
    n: i64,
) -> Result<(), Fault> {
    const FORGET: Sql = sql!(
        "DELETE FROM automation_deleted_contacts
         WHERE workspace = $1 AND id = $2 AND NOT EXISTS (SELECT 1 FROM automation_runs WHERE contact = $3)"
    );
    delete_entries(on, workspace, n)?;
    on.run(FORGET, params![key(workspace), key(id), n])
}

/// Deletes the automation entries and date triggers of a contact, unless it has runs.
fn delete_entries(on: &mut dyn Statements, workspace: WorkspaceId, contact: i64) -> Result<(), Fault> {
    /// PostgreSQL evaluates the array once and then finds the rows by their primary key.
    macro_rules! delete {
        ($table:literal) => {
            sql!(
                sqlite: delete!($table, "IN (SELECT n FROM automations WHERE workspace = $1)"),
                postgres: delete!($table, "= ANY (ARRAY (SELECT n FROM automations WHERE workspace = $1))"),
            )
        };
        ($table:literal, $of_workspace:literal) => {
            concat!(
                "DELETE FROM ",
                $table,
                " WHERE automation ",
                $of_workspace,
                " AND contact = $2 AND NOT EXISTS (SELECT 1 FROM automation_runs WHERE contact = $2)"
            )
        };
    }
    for sql in [delete!("automation_entries"), delete!("automation_date_fires")] {
        on.run(sql, params![key(workspace), contact])?;
    }
    Ok(())
}

/// Returns the query for the row number of a deleted contact that still has runs.
pub(crate) fn number(workspace: WorkspaceId, id: ContactId) -> Query<i64> {
    const SQL: Sql = sql!("SELECT n FROM automation_deleted_contacts WHERE workspace = $1 AND id = $2");
    Query::new(SQL, params![key(workspace), key(id)], |row| get(row, 0)).point()
}
