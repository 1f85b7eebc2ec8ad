//! Contacts that are gone while runs of theirs are still there.

use messaging_core::ids::{ContactId, WorkspaceId};

use crate::database::{Query, Statements};
use crate::fault::Fault;
use crate::row::get;
use crate::sql::{Sql, key, params, sql};

/// Remembers a contact that is being removed, if runs of it are there, or else lets go what is known of its entries. On
/// PostgreSQL it goes after the lock of the contact's row, so that no run begins meanwhile.
pub(crate) fn depart(on: &mut dyn Statements, workspace: WorkspaceId, id: ContactId, n: i64) -> Result<(), Fault> {
    const KEEP: Sql = sql!(
        "INSERT INTO automation_deleted_contacts (workspace, id, n)
         SELECT $1, $2, $3 WHERE EXISTS (SELECT 1 FROM automation_runs WHERE contact = $3) ON CONFLICT DO NOTHING"
    );
    on.run(KEEP, params![key(workspace), key(id), n])?;
    delete_entries(on, workspace, n)
}

/// Forgets a contact that is gone, unless runs of it are left.
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

/// Lets go what is known of the entries of a contact, unless it has runs.
fn delete_entries(on: &mut dyn Statements, workspace: WorkspaceId, contact: i64) -> Result<(), Fault> {
    /// A list that PostgreSQL knows before it looks finds rows by their key.
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

/// The number of a contact that is gone and has runs left.
pub(crate) fn number(workspace: WorkspaceId, id: ContactId) -> Query<i64> {
    const SQL: Sql = sql!("SELECT n FROM automation_deleted_contacts WHERE workspace = $1 AND id = $2");
    Query::new(SQL, params![key(workspace), key(id)], |row| get(row, 0)).point()
}
