//! Memberships that follow a person's groups, at a sign-in.

use std::collections::BTreeMap;

use messaging_core::changes::{Expect, Write};
use messaging_core::domain::security::account::{Member, MemberStatus, User};
use messaging_core::domain::security::audit::Resource;
use messaging_core::domain::security::audit::changes::{Detail, between};
use messaging_core::domain::security::oidc::group_roles::{self, MembershipChange};
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::{PageRequest, Stored};
use messaging_core::scope::Role;
use serde_json::Value;

use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::members::{MemberView, end_membership, require_other_owner};
use crate::services::auditing::Recorded;

/// Name under which a change of a membership by groups is recorded.
const FOLLOW_GROUPS: &str = "followGroups";

/// Memberships of a person that are looked at.
const MAX_MEMBERSHIPS: usize = 1000;

/// Gives a person the roles that their groups have, and takes those away that groups gave before. A workspace keeps its
/// last owner whatever the groups say; one that does not exist, or is being removed, is skipped.
pub(super) async fn follow_groups(
    cx: &mut Context<'_>,
    user: &User,
    roles: &BTreeMap<WorkspaceId, Role>,
) -> Result<(), Error> {
    let page = PageRequest { after: None, limit: MAX_MEMBERSHIPS };
    let given = cx.store().workspaces_of(user.id, MemberStatus::Active, page).await?.items;
    let mut concerned: BTreeMap<_, _> = roles.iter().map(|(workspace, role)| (*workspace, Some(*role))).collect();
    for (workspace, _) in given.into_iter().filter(|(_, member)| member.from_groups) {
        concerned.entry(workspace.id).or_insert(None);
    }
    for (workspace, wanted) in concerned {
        follow_in(cx, user, workspace, wanted).await?;
    }
    Ok(())
}

async fn follow_in(
    cx: &mut Context<'_>,
    user: &User,
    workspace: WorkspaceId,
    wanted: Option<Role>,
) -> Result<(), Error> {
    let there = cx.store().workspace(workspace).await?;
    if there.is_none_or(|there| there.record.end.is_some_and(|end| end.removing_since.is_some())) {
        tracing::warn!(%workspace, "a group of single sign-on gives a role in a workspace that is not there");
        return Ok(());
    }
    let stored = cx.store().member(workspace, user.id).await?;
    let current = stored.as_ref().map(|stored| stored.record.clone());
    let change = group_roles::follow_groups(current.as_ref(), wanted, (workspace, user.id), cx.now);
    let after = match &change {
        MembershipChange::None => return Ok(()),
        MembershipChange::Put(member) => Some(member.clone()),
        MembershipChange::Remove => None,
    };
    match apply(cx, stored, after.clone()).await {
        Err(Error::InUse { .. }) => {
            tracing::warn!(%workspace, "groups would take the last owner of a workspace away, who stays");
            Ok(())
        }
        applied => {
            applied?;
            record(cx, user, workspace, current.as_ref(), after.as_ref()).await
        }
    }
}

/// Refuses with [`Error::InUse`] to take the last owner away.
async fn apply(cx: &mut Context<'_>, stored: Option<Stored<Member>>, after: Option<Member>) -> Result<(), Error> {
    match (stored, after) {
        (Some(stored), None) => end_membership(cx, stored).await,
        (None, Some(member)) => {
            cx.change(Write::put(member, Expect::Absent));
            Ok(())
        }
        (Some(stored), Some(member)) => {
            if stored.record.is_active_owner() && !member.is_active_owner() {
                require_other_owner(cx, member.workspace_id).await?;
            }
            cx.change(Write::put(member, Expect::Revision(stored.revision)));
            Ok(())
        }
        (None, None) => Ok(()),
    }
}

/// Records a change of a membership, which the server made by itself.
async fn record(
    cx: &mut Context<'_>,
    user: &User,
    workspace: WorkspaceId,
    before: Option<&Member>,
    after: Option<&Member>,
) -> Result<(), Error> {
    let shown = |member: &Member| serde_json::to_value(MemberView::of(member, user.clone())).unwrap_or(Value::Null);
    let (before, after) = (before.map(shown), after.map(shown));
    let changes = between(before.as_ref(), after.as_ref(), Detail::Values);
    let resource =
        Resource { kind: "member".to_owned(), id: Some(user.id.to_string()), name: Some(user.email.clone()) };
    let recorded = Recorded {
        ip: cx.client_ip,
        request_id: cx.request_id.map(ToOwned::to_owned),
        ..Recorded::by_system(FOLLOW_GROUPS, resource, changes)
    };
    for write in cx.app.record_entry(&[Some(workspace)], &recorded).await? {
        cx.change(write);
    }
    Ok(())
}
