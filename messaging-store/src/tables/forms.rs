//! Forms by which readers subscribe.

use messaging_core::changes::Expect;
use messaging_core::domain::audience::form::Form;
use messaging_core::ids::{FormId, WorkspaceId};
use messaging_core::ports::store::{PageRequest, Stored};

use crate::database::{Query, Statements};
use crate::fault::Fault;
use crate::pages::{below, one_more};
use crate::row::{document, record, stored};
use crate::sql::{Sql, key, params, sql};

pub(crate) fn put(on: &mut dyn Statements, form: &Form, expect: Expect) -> Result<(), Fault> {
    let mut row = params![key(form.workspace_id), key(form.id), document(form)?];
    match expect {
        Expect::Absent => on.run(sql!("INSERT INTO forms (workspace, id, revision, doc) VALUES ($1, $2, 1, $3)"), row),
        Expect::Revision(revision) => {
            row.push(revision.into());
            on.run_one(
                sql!(
                    "UPDATE forms SET doc = $3, revision = revision + 1 WHERE workspace = $1 AND id = $2 AND revision = $4"
                ),
                row,
            )
        }
    }
}

pub(crate) fn delete(on: &mut dyn Statements, workspace: WorkspaceId, id: FormId) -> Result<(), Fault> {
    on.run(sql!("DELETE FROM forms WHERE workspace = $1 AND id = $2"), params![key(workspace), key(id)])
}

/// A form by id.
pub(super) fn form(workspace: WorkspaceId, id: FormId) -> Query<Stored<Form>> {
    const SQL: Sql = sql!("SELECT revision, doc FROM forms WHERE workspace = $1 AND id = $2");
    Query::new(SQL, params![key(workspace), key(id)], stored).point()
}

/// The forms of a page and one more, newest first.
pub(super) fn listing(workspace: WorkspaceId, page: &PageRequest) -> Query<Form> {
    const SQL: Sql = sql!("SELECT doc FROM forms WHERE workspace = $1 AND id < $2 ORDER BY id DESC LIMIT $3");
    Query::new(SQL, params![key(workspace), below(page), one_more(page)], |row| record(row, 0))
}
