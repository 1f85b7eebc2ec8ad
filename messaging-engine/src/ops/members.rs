//! Members of a workspace and their roles.
//!
//! Contract section 2.3: the role admin is needed to manage members, and a workspace keeps at least one owner. A person
//! who was added becomes active by accepting the invitation (`sessions/invitations.rs`).
//!
//! The contract does not say who may make or unmake owners. Here only an owner may, because an admin could otherwise
//! take the workspace over; anybody else gets `role_forbidden`.

use http::{Method, StatusCode};
use messaging_core::changes::{DocumentKey, Expect, Write};
use messaging_core::domain::security::account::{Member, MemberStatus, User};
use messaging_core::domain::security::user_email::UserEmail;
use messaging_core::ids::{UserId, WorkspaceId};
use messaging_core::input::{Empty, Input, PageQuery};
use messaging_core::patch::Replace;
use messaging_core::ports::store::Stored;
use messaging_core::scope::{Access, Role};
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::app::write_queues::ResourceKey;
use crate::caller::Caller;
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, InWorkspace, NoContent, Operation};
use crate::ops::page::Page;

/// A member as shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Member")]
#[non_exhaustive]
pub struct MemberView {
    /// The person.
    pub user_id: UserId,
    /// The person's sign-in name.
    pub email: String,
    /// The person's display name.
    pub name: Option<String>,
    /// Role of the person in the workspace, once the membership is active.
    pub role: Role,
    /// Status of the membership: `invited`, which gives no rights, until the person accepts.
    pub status: MemberStatus,
    /// When the person was added.
    pub created_at: Timestamp,
}

impl MemberView {
    /// A membership in the form that the API shows, with the name and email of its user.
    pub fn of(member: &Member, user: User) -> Self {
        Self {
            user_id: member.user_id,
            email: user.email,
            name: user.name,
            role: member.role,
            status: member.status,
            created_at: member.created_at,
        }
    }
}

/// `GET /workspaces/{workspace_id}/members`
pub struct ListMembers;

impl Operation for ListMembers {
    const ID: &'static str = "listMembers";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/members";
    const ACCESS: Access = Access::SessionRole(Role::Admin);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "member list";
    const SUMMARY: &'static str = "List the members of a workspace";
    type Path = InWorkspace;
    type Query = PageQuery;
    type Body = Empty;
    type Output = Page<MemberView>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<MemberView>, Error> {
        let page = cx.page(&call.query)?;
        let slice = cx.store().members(call.path.workspace_id, page).await?;
        Ok(cx.answer_page(slice, |(member, user)| MemberView::of(&member, user)))
    }
}

/// A new member.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MemberInput {
    /// The person's sign-in name. They are invited until they accept, signed in or by the link of `POST
    /// /workspaces/{workspace_id}/members/{user_id}/ticket`. Where nobody has the name, a user without password is
    /// created, who signs in and sets one by that link.
    pub email: UserEmail,
    /// Role of the person. Only an owner can add an owner.
    pub role: Role,
}

impl Input for MemberInput {}

/// `POST /workspaces/{workspace_id}/members`
pub struct CreateMember;

impl Operation for CreateMember {
    const ID: &'static str = "createMember";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/members";
    const ACCESS: Access = Access::SessionRole(Role::Admin);
    const SUCCESS: StatusCode = StatusCode::CREATED;
    const CLI: &'static str = "member create";
    const SUMMARY: &'static str = "Invite a member to a workspace";
    type Path = InWorkspace;
    type Query = Empty;
    type Body = MemberInput;
    type Output = MemberView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<MemberView, Error> {
        let MemberInput { email, role } = call.body;
        // The operator can name any workspace, also one that does not exist.
        let workspace = cx.app.workspace(call.path.workspace_id).await?.ok_or(Error::NotFound)?;
        require_may_give(cx, workspace.id, &[role])?;
        let user = if let Some(stored) = cx.store().user_by_email(email.as_str()).await? {
            stored.record
        } else {
            let email = email.as_str().to_owned();
            let user = User { created_by: Some(workspace.id), ..User::new(cx.new_id(), email, cx.now) };
            cx.change(Write::put(user.clone(), Expect::Absent));
            user
        };
        if cx.store().member(workspace.id, user.id).await?.is_some() {
            return Err(Error::AlreadyExists);
        }
        let member = Member {
            status: MemberStatus::Invited,
            invited_by: match cx.caller {
                Caller::Session(session) => Some(session.user.email.clone()),
                _ => None,
            },
            ..Member::active(workspace.id, user.id, role, cx.now)
        };
        cx.change(Write::put(member.clone(), Expect::Absent));
        Ok(MemberView::of(&member, user))
    }
}

/// The path of a member.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct MemberPath {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The person.
    pub user_id: UserId,
}

/// A change of a membership.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MemberPatch {
    /// New role of the person. Only an owner can change to or from owner. A person who accepted by a link from somebody
    /// who could not give the new role is invited to it, and accepts it by another link.
    #[serde(default, skip_serializing_if = "Replace::is_absent")]
    pub role: Replace<Role>,
}

impl Input for MemberPatch {}

/// `PATCH /workspaces/{workspace_id}/members/{user_id}`
pub struct UpdateMember;

impl Operation for UpdateMember {
    const ID: &'static str = "updateMember";
    const METHOD: Method = Method::PATCH;
    const PATH: &'static str = "/workspaces/{workspace_id}/members/{user_id}";
    const ACCESS: Access = Access::SessionRole(Role::Admin);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "member update";
    const SUMMARY: &'static str = "Change a member's role";
    // The operation also runs on a faulty body, so that an unknown member is 404 before an unknown role is 422.
    const LOOKS_UP: bool = true;
    type Path = MemberPath;
    type Query = Empty;
    type Body = MemberPatch;
    type Output = MemberView;

    // Calls about the members of one workspace run one after another, because its last owner is found by counting.
    fn serialized_resources(_: &str, call: &Call<Self>) -> Vec<ResourceKey> {
        vec![ResourceKey::of_workspace(call.path.workspace_id)]
    }

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<MemberView, Error> {
        let MemberPath { workspace_id, user_id } = call.path;
        let stored = cx.store().member(workspace_id, user_id).await?.ok_or(Error::NotFound)?;
        let user = cx.store().user(user_id).await?.ok_or(Error::NotFound)?.record;
        cx.note_before(&MemberView::of(&stored.record, user.clone()));
        let role = call.body.role.value().unwrap_or(stored.record.role);
        let member = stored.record.clone().with_role(role, &user);
        if member != stored.record {
            require_may_give(cx, workspace_id, &[stored.record.role, role])?;
            if stored.record.is_active_owner() {
                require_other_owner(cx, workspace_id).await?;
            }
            cx.change(Write::put(member.clone(), Expect::Revision(stored.revision)));
        }
        Ok(MemberView::of(&member, user))
    }
}

/// `DELETE /workspaces/{workspace_id}/members/{user_id}`
pub struct DeleteMember;

impl Operation for DeleteMember {
    const ID: &'static str = "deleteMember";
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/workspaces/{workspace_id}/members/{user_id}";
    const ACCESS: Access = Access::SessionRole(Role::Admin);
    const SUCCESS: StatusCode = StatusCode::NO_CONTENT;
    const CLI: &'static str = "member delete";
    const SUMMARY: &'static str = "Remove a member from a workspace";
    type Path = MemberPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    // Calls about the members of one workspace run one after another, because its last owner is found by counting.
    fn serialized_resources(_: &str, call: &Call<Self>) -> Vec<ResourceKey> {
        vec![ResourceKey::of_workspace(call.path.workspace_id)]
    }

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<NoContent, Error> {
        let MemberPath { workspace_id, user_id } = call.path;
        let stored = cx.store().member(workspace_id, user_id).await?.ok_or(Error::NotFound)?;
        require_may_give(cx, workspace_id, &[stored.record.role])?;
        if let Some(user) = cx.store().user(user_id).await? {
            cx.note_before(&MemberView::of(&stored.record, user.record));
        }
        end_membership(cx, stored).await?;
        Ok(NoContent)
    }
}

/// Ends a membership. That of the last owner is refused with [`Error::InUse`].
pub(super) async fn end_membership(cx: &mut Context<'_>, stored: Stored<Member>) -> Result<(), Error> {
    let (workspace, user) = (stored.record.workspace_id, stored.record.user_id);
    if stored.record.is_active_owner() {
        require_other_owner(cx, workspace).await?;
    } else {
        // The deletion expects no revision, but this write does: it makes a conflict if the member was made an owner
        // meanwhile.
        cx.change(Write::put(stored.record, Expect::Revision(stored.revision)));
    }
    cx.change(Write::Delete(DocumentKey::Member(workspace, user)));
    Ok(())
}

/// Refuses with [`Error::RoleForbidden`] unless the caller may give and take all of these roles.
fn require_may_give(cx: &Context<'_>, workspace: WorkspaceId, roles: &[Role]) -> Result<(), Error> {
    let most = highest_grantable_role(cx, workspace);
    if roles.iter().all(|role| *role <= most) { Ok(()) } else { Err(Error::RoleForbidden) }
}

/// The highest role that the caller may give in a workspace. The caller is at least an admin there, which the operation
/// has checked.
pub(super) fn highest_grantable_role(cx: &Context<'_>, workspace: WorkspaceId) -> Role {
    let is_owner = match cx.caller {
        Caller::Session(session) => session.role_in(workspace) == Some(Role::Owner),
        Caller::Operator(_) => true,
        Caller::Anonymous | Caller::Key(_) => false,
    };
    if is_owner { Role::Owner } else { Role::Admin }
}

/// Refuses with [`Error::InUse`] to take the last owner away. This also holds when several owners are taken away at the
/// same moment: every such change also rewrites the workspace at the revision that was read, so all but one of them are
/// conflicts, run again and count anew.
pub(super) async fn require_other_owner(cx: &mut Context<'_>, workspace: WorkspaceId) -> Result<(), Error> {
    let stored = cx.store().workspace(workspace).await?.ok_or(Error::NotFound)?;
    if cx.store().owner_count(workspace).await? <= 1 {
        return Err(Error::InUse { by: vec![workspace.to_string()] });
    }
    cx.change(Write::put(stored.record, Expect::Revision(stored.revision)));
    Ok(())
}
