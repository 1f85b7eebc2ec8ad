//! Workspaces of programs that embed the engine.

use messaging_core::changes::{Changes, Expect, Write};
use messaging_core::domain::limits::MAX_NAME;
use messaging_core::ids::WorkspaceId;
use messaging_core::violation::Violations;

use super::{check_length, new_user, new_workspace, oldest_workspaces};
use crate::app::App;
use crate::error::Error;

/// Owner of the workspaces that programs make. It has no password, so nobody signs in as it without a link of the
/// operator's.
const OWNER: &str = "embedded@localhost";

/// The workspace of this name that the embedding program keeps; made, with its owner, at the first call. Programs that
/// open the same database get the same workspace.
pub async fn embedded_workspace(app: &App, name: &str) -> Result<WorkspaceId, Error> {
    let mut violations = Violations::new();
    check_length(&mut violations, "/name", name, 1, MAX_NAME);
    violations.into_result()?;
    app.until_committed(|| async {
        let mut changes = Changes::default();
        let owner = if let Some(user) = app.store().user_by_email(OWNER).await? {
            if let (Some(known), _) = oldest_workspaces(app, user.record.id, name).await? {
                return Ok((changes, known));
            }
            // Of two processes that make the same workspace at the same moment one runs again and finds it.
            changes.push(Write::put(user.record.clone(), Expect::Revision(user.revision)));
            user.record.id
        } else {
            let user = new_user(app, OWNER);
            let id = user.id;
            changes.push(Write::put(user, Expect::Absent));
            id
        };
        let (workspace, member) = new_workspace(app, name, owner);
        let id = workspace.id;
        changes.push(Write::put(workspace, Expect::Absent));
        changes.push(Write::put(member, Expect::Absent));
        Ok((changes.of_setup(), id))
    })
    .await
}
