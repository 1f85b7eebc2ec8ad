//! Signing in by a ticket, and making one for a member.
//!
//! The contract says that an administrator makes tickets for members. Where it is silent: a ticket signs in as the
//! person, everywhere they are a member, so whoever makes one must be able to manage the person in each of these
//! workspaces, an owner only as an owner; otherwise an administrator of one workspace could get into another. For the
//! same reason a ticket is void once the person has joined another workspace or set a password.

use http::{Method, StatusCode};
use messaging_core::changes::{Expect, Write};
use messaging_core::domain::account::{Ticket, User};
use messaging_core::domain::digest::Digest;
use messaging_core::domain::password;
use messaging_core::domain::secret::Secret;
use messaging_core::ids::{UserId, WorkspaceId};
use messaging_core::input::{Empty, Input};
use messaging_core::ports::store::PageRequest;
use messaging_core::scope::{Access, Role};
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::Violations;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LoginReport, open_session};
use crate::caller::Caller;
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::members::MemberPath;
use crate::ops::operation::{Call, Operation};
use crate::services::tickets::MEMBERS_LIFETIME;

/// Memberships of a person that are looked at; nobody makes a ticket for somebody with more.
const MAX_MEMBERSHIPS: usize = 200;

/// A ticket to sign in with.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct RedeemInput {
    /// The ticket: what stands after `#ticket=` in its link.
    #[validate(length(min = 1, max = 200))]
    pub ticket: Secret,
    /// A new password: 12 to 200 characters, and none of the commonest. Left out, the password stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
    /// Whether the session is kept as a cookie of the browser, which no script can read, instead of a token.
    #[serde(default)]
    pub cookie: bool,
}

impl Input for RedeemInput {
    fn check(&self, violations: &mut Violations) {
        if let Some(password) = &self.password {
            password::check_new(violations, "/password", password.expose());
        }
    }
}

/// `POST /auth/redeem`
pub struct Redeem;

impl Operation for Redeem {
    const ID: &'static str = "redeemTicket";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/auth/redeem";
    const ACCESS: Access = Access::Public;
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "auth redeem";
    const SUMMARY: &'static str = "Sign in with a ticket, which works once, and set a password by it";
    type Path = Empty;
    type Query = Empty;
    type Body = RedeemInput;
    type Output = LoginReport;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<LoginReport, Error> {
        let RedeemInput { ticket, password, cookie } = call.body;
        let digest = Digest::of(ticket.expose());
        let ticket = cx.store().ticket(&digest).await?.filter(|ticket| cx.now < ticket.expires_at);
        let ticket = ticket.ok_or(Error::LinkExpired)?;
        let stored = cx.store().user(ticket.user_id).await?.ok_or(Error::LinkExpired)?;
        let mut user = stored.record;
        if user.password_version != ticket.password_version || !is_still_meant(cx, &ticket).await? {
            return Err(Error::LinkExpired);
        }
        cx.change(Write::TakeTicket(digest));
        if let Some(password) = password {
            let turn = cx.app.password_turn(cx.client).await?;
            let password_hash = Some(cx.app.hash_password_in(turn, password.into_inner()).await?);
            user = User { password_hash, password_version: user.password_version.wrapping_add(1), ..user };
            cx.change(Write::PutUser(user.clone(), Expect::Revision(stored.revision)));
        }
        Ok(open_session(cx, user, cookie))
    }
}

/// Whether what an administrator made a ticket for is still so: the person is a member there, and of no workspace that
/// they joined since.
async fn is_still_meant(cx: &Context<'_>, ticket: &Ticket) -> Result<bool, Error> {
    let Some(workspace) = ticket.workspace_id else { return Ok(true) };
    let page = PageRequest { after: None, limit: MAX_MEMBERSHIPS };
    let memberships = cx.store().workspaces_of(ticket.user_id, page).await?;
    let is_there = memberships.items.iter().any(|(found, _)| found.id == workspace);
    let has_joined = memberships.items.iter().any(|(_, member)| member.created_at > ticket.created_at);
    Ok(is_there && !has_joined && memberships.next.is_none())
}

/// A ticket for a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Ticket")]
#[non_exhaustive]
pub struct TicketReport {
    /// The link to hand to the member. It cannot be shown again, and opens one session.
    pub url: Secret,
    /// Until when it works.
    pub expires_at: Timestamp,
}

/// `POST /workspaces/{workspace_id}/members/{user_id}/ticket`
pub struct CreateTicket;

impl Operation for CreateTicket {
    const ID: &'static str = "createMemberTicket";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/members/{user_id}/ticket";
    const ACCESS: Access = Access::SessionRole(Role::Admin);
    const SUCCESS: StatusCode = StatusCode::CREATED;
    const CLI: &'static str = "member ticket";
    const SUMMARY: &'static str = "Make a link by which a member signs in once and sets a password";
    const ANSWERS_SECRET: bool = true;
    type Path = MemberPath;
    type Query = Empty;
    type Body = Empty;
    type Output = TicketReport;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<TicketReport, Error> {
        let MemberPath { workspace_id, user_id } = call.path;
        cx.store().member(workspace_id, user_id).await?.ok_or(Error::NotFound)?;
        let user = cx.store().user(user_id).await?.ok_or(Error::NotFound)?.record;
        manages_everywhere(cx, workspace_id, user_id).await?;
        let (ticket, url) = cx.app.new_ticket(&user, Some(workspace_id), MEMBERS_LIFETIME, cx.now);
        let expires_at = ticket.expires_at;
        cx.change(Write::PutTicket(ticket));
        Ok(TicketReport { url, expires_at })
    }
}

/// Whether the caller may manage a person in every workspace where that person is a member.
async fn manages_everywhere(cx: &Context<'_>, workspace: WorkspaceId, person: UserId) -> Result<(), Error> {
    let caller = match cx.caller {
        Caller::Session(session) if session.user.id == person => return Ok(()),
        Caller::Session(session) => session,
        Caller::Operator(_) => return Ok(()),
        Caller::Anonymous | Caller::Key(_) => return Err(Error::SessionRequired),
    };
    let page = PageRequest { after: None, limit: MAX_MEMBERSHIPS };
    let memberships = cx.store().workspaces_of(person, page).await?;
    if memberships.next.is_some() {
        return Err(Error::RoleForbidden);
    }
    for (found, member) in memberships.items {
        let least = if member.role == Role::Owner { Role::Owner } else { Role::Admin };
        let held = if found.id == workspace {
            caller.role_in(workspace)
        } else {
            cx.store().member(found.id, caller.user.id).await?.map(|stored| stored.record.role)
        };
        if !matches!((held, least), (Some(Role::Owner), _) | (Some(Role::Admin), Role::Admin)) {
            return Err(Error::RoleForbidden);
        }
    }
    Ok(())
}
