//! Deletion of workspaces and users by the operator.

use std::collections::BTreeMap;

use messaging_core::changes::{AccountWrite, Changes, Expect, Write};
use messaging_core::domain::security::account::{Member, MemberStatus, User, Workspace, WorkspaceEnd};
use messaging_core::domain::security::user_email::UserEmail;
use messaging_core::ids::{UserId, WorkspaceId};
use messaging_core::ports::store::{CommitError, PageRequest, StoreError, Stored};
use messaging_core::time::Timestamp;
use messaging_core::violation::{FieldCode, refuse};
use serde::{Deserialize, Serialize};

use super::UserReport;
use crate::app::App;
use crate::error::Error;
use crate::services::auditing::Command;

/// Number of workspaces that are read at a time.
const PAGE: usize = 200;

/// A workspace that is to be deleted, as `admin delete-workspace` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeletedWorkspace {
    /// Id of the workspace.
    pub id: WorkspaceId,
    /// Name of the workspace.
    pub name: String,
    /// Time when the workspace is removed with all its data.
    pub deletes_at: Timestamp,
    /// Number of rows removed so far, by table, and of files; empty if a server removes them.
    pub removed: BTreeMap<String, u64>,
}

/// Schedules the deletion of a workspace: in seven days, or now, which also advances a deletion that was scheduled
/// before.
///
/// The server removes the data; if none runs, [`remove_workspace`] does.
pub async fn delete_workspace(app: &App, id: WorkspaceId, now: bool) -> Result<DeletedWorkspace, Error> {
    app.until_committed(|| async {
        let stored = app.store().workspace(id).await?.ok_or(Error::NotFound)?;
        let deletes_at = if now { app.now() } else { app.now() + WorkspaceEnd::GRACE };
        let known = stored.record.end.map(|end| end.deletes_at).filter(|known| *known <= deletes_at);
        let changes: Changes = match known {
            Some(known) => app.see_to_the_end(id, known).into_iter().collect(),
            None => app.set_end(&stored, deletes_at).into_iter().collect(),
        };
        let deletes_at = known.unwrap_or(deletes_at);
        let report = DeletedWorkspace { id, name: stored.record.name, deletes_at, removed: BTreeMap::new() };
        let command = Command::new("admin delete-workspace", "workspace", Some(id.to_string()), Some(&report.name));
        let command = command.within(id).after(&report);
        Ok((app.record_command(changes, command).await?, report))
    })
    .await
}

/// Removes a workspace whose deletion is due, completely: for a program that works on the database alone. `note` is
/// called with the number of rows and files removed so far. Returns the number of each kind.
pub async fn remove_workspace(
    app: &App,
    id: WorkspaceId,
    note: &mut (dyn FnMut(u64) + Send),
) -> Result<BTreeMap<String, u64>, Error> {
    let removed = app.remove_workspace(id, &mut |removed| note(removed.values().sum())).await;
    let removed = removed.map_err(CommitError::into_store_error)?;
    Ok(removed.into_iter().map(|(what, number)| (what.to_owned(), number)).collect())
}

/// Removes a user with their password, sessions, tickets and memberships; records of their acts keep their name.
/// Refused as long as a workspace has no other owner, also one under deletion, which an owner may restore until its
/// end.
pub async fn delete_user(app: &App, email: &str) -> Result<UserReport, Error> {
    app.until_committed(|| async {
        let user = match email.parse::<UserEmail>() {
            Ok(email) => app.store().user_by_email(email.as_str()).await?,
            Err(_) => None,
        };
        let unknown = || refuse("/email", FieldCode::NotFound, "is no user's: see `messaging admin list-users`");
        let Stored { record: user, revision } = user.ok_or_else(unknown)?;
        let mut changes = leave_all(app, &user).await?;
        changes.push(Write::Account(AccountWrite::DeleteUser(user.id, revision)));
        let report = UserReport::of(user);
        let command = Command::new("admin delete-user", "user", Some(report.id.to_string()), Some(&report.email));
        Ok((app.record_command(changes, command.before(&report)).await?, report))
    })
    .await
}

/// Returns the writes that keep a workspace from losing its last owner with a user.
async fn leave_all(app: &App, user: &User) -> Result<Changes, Error> {
    let (mut changes, mut needed) = (Changes::default(), Vec::new());
    for (workspace, _) in owned(app, user.id).await? {
        let Some(stored) = app.store().workspace(workspace.id).await? else { continue };
        let has_ended = stored.record.end.is_some_and(|end| end.deletes_at <= app.now());
        if !has_ended && app.store().owner_count(workspace.id).await? <= 1 {
            needed.push(format!("{} ({})", workspace.name, workspace.id));
        }
        // If another owner leaves meanwhile, that also writes the workspace.
        changes.push(Write::put(stored.record, Expect::Revision(stored.revision)));
    }
    if needed.is_empty() {
        return Ok(changes);
    }
    let rule = format!(
        "is the only owner of {}: make somebody else an owner with `messaging member update`, or remove the workspace with \
         `messaging admin delete-workspace --now`",
        needed.join(", ")
    );
    Err(refuse("/email", FieldCode::NotAllowed, rule).into())
}

/// Returns the workspaces that a user owns.
async fn owned(app: &App, user: UserId) -> Result<Vec<(Workspace, Member)>, StoreError> {
    let (mut page, mut found) = (PageRequest { after: None, limit: PAGE }, Vec::new());
    loop {
        let slice = app.store().workspaces_of(user, MemberStatus::Active, page).await?;
        found.extend(slice.items.into_iter().filter(|(_, member)| member.is_active_owner()));
        match slice.next {
            Some(next) => page.after = Some(next),
            None => return Ok(found),
        }
    }
}
