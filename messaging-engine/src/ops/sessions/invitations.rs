//! Invitations to workspaces, as the person who is invited sees them, and leaving a workspace.
//!
//! Contract section 2.3. Where it is silent: an account that an invitation created has a password, if any, that was set
//! by a link which an administrator of that workspace made, so that it proves to nobody else that the person is who
//! they say. Such an account neither sees nor declines the invitations of others, and accepts one only with its ticket,
//! which was handed to the person themselves. That ends when the operator sets a password.

use http::{Method, StatusCode};
use messaging_core::changes::{AccountWrite, Expect, Write};
use messaging_core::domain::security::account::{Member, MemberStatus, User};
use messaging_core::domain::security::digest::Digest;
use messaging_core::domain::security::secret::Secret;
use messaging_core::ids::WorkspaceId;
use messaging_core::input::{BodyKind, Empty, Input, PageQuery};
use messaging_core::ports::store::Stored;
use messaging_core::scope::Access;
use messaging_core::validate::{Setters, Validate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::tickets::{invitation_of, live_ticket};
use super::{InvitationView, signed_in};
use crate::app::write_queues::ResourceKey;
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::members::end_membership;
use crate::ops::operation::{Call, NoContent, Operation};
use crate::ops::page::Page;

/// Said to accounts that an invitation created, of the invitations of others.
const LINK_NEEDED: Error = Error::AccountState(
    "this account was set up by the link of another workspace: accept with the ticket of the link that the inviting \
     workspace made for you, or ask whoever runs the server for a password of your own",
);

/// `GET /auth/invitations`
pub struct ListInvitations;

impl Operation for ListInvitations {
    const ID: &'static str = "listInvitations";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/auth/invitations";
    const ACCESS: Access = Access::Session;
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "invitation list";
    const SUMMARY: &'static str = "List the workspaces that you are invited to";
    type Path = Empty;
    type Query = PageQuery;
    type Body = Empty;
    type Output = Page<InvitationView>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<InvitationView>, Error> {
        let page = cx.page(&call.query)?;
        let user = &signed_in(cx.caller)?.user;
        if user.created_by.is_some() {
            return Ok(Page::only(Vec::new()));
        }
        let slice = cx.store().workspaces_of(user.id, MemberStatus::Invited, page).await?;
        Ok(cx.answer_page(slice, |(workspace, member)| InvitationView::of(workspace, member)))
    }
}

/// The path of an invitation or of a membership of one's own.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct OwnMembershipPath {
    /// The workspace.
    pub workspace_id: WorkspaceId,
}

/// Acceptance of an invitation to a workspace.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct AcceptInput {
    /// The ticket of the link, which is used up. Needed only where the account was set up by the link of a workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(min = 1, max = 200))]
    pub ticket: Option<Secret>,
}

impl Input for AcceptInput {
    const BODY: BodyKind = BodyKind::Optional;
}

/// `POST /auth/invitations/{workspace_id}/accept`
pub struct AcceptInvitation;

impl Operation for AcceptInvitation {
    const ID: &'static str = "acceptInvitation";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/auth/invitations/{workspace_id}/accept";
    const ACCESS: Access = Access::Session;
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "invitation accept";
    const SUMMARY: &'static str = "Accept the invitation to a workspace";
    type Path = OwnMembershipPath;
    type Query = Empty;
    type Body = AcceptInput;
    type Output = InvitationView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<InvitationView, Error> {
        let user = caller_now(cx).await?;
        cx.note_workspace(call.path.workspace_id);
        let invited = invitation(cx, call.path.workspace_id, &user).await?;
        let workspace = cx.store().workspace(invited.record.workspace_id).await?.ok_or(Error::NotFound)?.record;
        let up_to = if let Some(ticket) = call.body.ticket {
            let digest = Digest::of(ticket.expose());
            let ticket = live_ticket(cx, &digest).await?;
            let (opened, _) = invitation_of(cx, &ticket).await?.ok_or(Error::LinkExpired)?;
            if ticket.user_id != user.id || opened.workspace_id != workspace.id {
                return Err(Error::LinkExpired);
            }
            cx.change(Write::Account(AccountWrite::TakeTicket(digest)));
            Some(opened.up_to)
        } else if user.created_by.is_some() {
            return Err(LINK_NEEDED);
        } else {
            None
        };
        let member = Member { status: MemberStatus::Active, up_to, ..invited.record };
        cx.change(Write::put(member.clone(), Expect::Revision(invited.revision)));
        Ok(InvitationView::of(workspace, member))
    }
}

/// `DELETE /auth/invitations/{workspace_id}`
pub struct DeclineInvitation;

impl Operation for DeclineInvitation {
    const ID: &'static str = "declineInvitation";
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/auth/invitations/{workspace_id}";
    const ACCESS: Access = Access::Session;
    const SUCCESS: StatusCode = StatusCode::NO_CONTENT;
    const CLI: &'static str = "invitation decline";
    const SUMMARY: &'static str = "Decline the invitation to a workspace";
    type Path = OwnMembershipPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<NoContent, Error> {
        let user = caller_now(cx).await?;
        cx.note_workspace(call.path.workspace_id);
        let invited = invitation(cx, call.path.workspace_id, &user).await?;
        if user.created_by.is_some() {
            return Err(LINK_NEEDED);
        }
        end_membership(cx, invited).await?;
        Ok(NoContent)
    }
}

/// `DELETE /auth/memberships/{workspace_id}`
pub struct LeaveWorkspace;

impl Operation for LeaveWorkspace {
    const ID: &'static str = "leaveWorkspace";
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/auth/memberships/{workspace_id}";
    const ACCESS: Access = Access::Session;
    const SUCCESS: StatusCode = StatusCode::NO_CONTENT;
    const CLI: &'static str = "workspace leave";
    const SUMMARY: &'static str = "Leave a workspace; its last owner cannot";
    type Path = OwnMembershipPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    // The last owner is found by counting those of the workspace.
    fn serialized_resources(_: &str, call: &Call<Self>) -> Vec<ResourceKey> {
        vec![ResourceKey::of_workspace(call.path.workspace_id)]
    }

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<NoContent, Error> {
        let user = signed_in(cx.caller)?.user.id;
        cx.note_workspace(call.path.workspace_id);
        let stored = cx.store().member(call.path.workspace_id, user).await?;
        let stored = stored.filter(|stored| stored.record.is_active()).ok_or(Error::NotFound)?;
        end_membership(cx, stored).await?;
        Ok(NoContent)
    }
}

/// The person who calls, as they are now.
async fn caller_now(cx: &Context<'_>) -> Result<User, Error> {
    let id = signed_in(cx.caller)?.user.id;
    Ok(cx.store().user(id).await?.ok_or(Error::InvalidCredentials)?.record)
}

/// The invitation of a person to a workspace.
async fn invitation(cx: &Context<'_>, workspace: WorkspaceId, user: &User) -> Result<Stored<Member>, Error> {
    let stored = cx.store().member(workspace, user.id).await?;
    stored.filter(|stored| !stored.record.is_active()).ok_or(Error::NotFound)
}
