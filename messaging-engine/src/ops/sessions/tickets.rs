//! Signing in by a ticket, and making tickets for members.
//!
//! Contract section 2.3. A ticket of a workspace's administrator signs in only as a user whom that workspace created
//! and as whom nobody has signed in: it proves nothing about any other person, who sees the invitation and accepts it
//! signed in. Where the contract is silent: an active member who has signed in gets no ticket, because it would open
//! nothing; a lost password is for the operator to reset.

use http::{Method, StatusCode};
use messaging_core::changes::{AccountWrite, Expect, Write};
use messaging_core::domain::security::account::{Member, MemberStatus, Ticket, TicketInvitation, User};
use messaging_core::domain::security::digest::Digest;
use messaging_core::domain::security::factor::FirstFactor;
use messaging_core::domain::security::password;
use messaging_core::domain::security::secret::Secret;
use messaging_core::input::{Empty, Input};
use messaging_core::ports::store::{PageRequest, Stored};
use messaging_core::scope::{Access, Role};
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::Violations;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{InvitationView, LoginReport, UserView, open_session};
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::members::{MemberPath, highest_grantable_role};
use crate::ops::operation::{Call, Operation};
use crate::services::second_factors::FirstStep;
use crate::services::single_sign_on::ONLY;
use crate::services::tickets::MEMBERS_LIFETIME;

/// Error for a password that comes with a ticket that sets none.
const NOT_FIRST: Error = Error::AccountState(
    "this link sets no password, because the person has an account already: redeem it without one, and accept the \
     invitation signed in as them; for a lost password, whoever runs the server has `messaging admin login-link`",
);

/// Error for a request of a ticket that would open nothing.
const SIGNS_IN: Error = Error::AccountState(
    "the member has accepted and signs in by themselves; for a lost password, whoever runs the server has `messaging admin \
     login-link`",
);

/// A ticket to sign in with.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct RedeemInput {
    /// The ticket: the text after `#ticket=` in its link.
    #[validate(length(min = 1, max = 200))]
    pub ticket: Secret,
    /// New password: 12 to 200 characters, and none of the commonest. If left out, the password stays as it is. A
    /// ticket of a workspace sets one only for a person whom that workspace created and who has never signed in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
    /// True if the session is kept in a browser cookie, which no script can read, instead of a token.
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
    const SUMMARY: &'static str = "Sign in with the ticket of a link, which works once, and set a password; or show the invitation that the link is for";
    type Path = Empty;
    type Query = Empty;
    type Body = RedeemInput;
    type Output = LoginReport;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<LoginReport, Error> {
        let RedeemInput { ticket, password, cookie } = call.body;
        let digest = Digest::of(ticket.expose());
        let ticket = live_ticket(cx, &digest).await?;
        // A ticket of the operator stays as the way back in.
        if ticket.invitation.is_some() && cx.app.is_sign_on_only() {
            return Err(ONLY);
        }
        let stored_user = cx.store().user(ticket.user_id).await?.ok_or(Error::LinkExpired)?;
        let mut user = stored_user.record.clone();
        let mut is_vouched = false;
        if let Some((invitation, stored)) = invitation_of(cx, &ticket).await? {
            if !is_first_opened(cx, &user, &invitation).await? {
                return match password {
                    Some(_) => Err(NOT_FIRST),
                    None => opened(cx, &ticket, stored.record, user).await,
                };
            }
            user.signed_in = true;
            let member = Member { status: MemberStatus::Active, up_to: Some(invitation.up_to), ..stored.record };
            cx.change(Write::put(member, Expect::Revision(stored.revision)));
        } else if user.password_version != ticket.password_version {
            return Err(Error::LinkExpired);
        } else if password.is_some() || user.password_hash.is_none() {
            // The operator vouches for the person; a password that somebody else may have set stays what it was.
            is_vouched = true;
            user = user.vouched_for();
        }
        let password_hash = match password {
            Some(password) => {
                let turn = cx.app.password_turn(cx.client_ip).await?;
                Some(cx.app.hash_password_in(turn, password.into_inner()).await?)
            }
            None => None,
        };
        if user.second_factor {
            let is_of_operator = ticket.invitation.is_none();
            let first_factor = if is_of_operator { FirstFactor::OperatorLink } else { FirstFactor::Password };
            let step = FirstStep { cookie, first_factor, is_vouched, password_hash, ticket: Some(digest) };
            return Err(cx.app.ask_second_factor(&stored_user.record, step, cx.now).await?);
        }
        cx.change(Write::Account(AccountWrite::TakeTicket(digest)));
        if password_hash.is_some() {
            user = User { password_hash, password_version: user.password_version.wrapping_add(1), ..user };
        }
        if user != stored_user.record {
            cx.change(Write::put(user.clone(), Expect::Revision(stored_user.revision)));
        }
        Ok(open_session(cx, user, cookie))
    }
}

/// Returns a ticket that has not expired.
pub(super) async fn live_ticket(cx: &Context<'_>, digest: &Digest) -> Result<Ticket, Error> {
    let ticket = cx.store().ticket(digest).await?;
    ticket.filter(|ticket| cx.now < ticket.expires_at).ok_or(Error::LinkExpired)
}

/// Returns the invitation that a ticket opens, with the membership; `None` for a ticket of the operator. The ticket is
/// void once the person was removed or got a higher role than when it was made.
pub(super) async fn invitation_of(
    cx: &Context<'_>,
    ticket: &Ticket,
) -> Result<Option<(TicketInvitation, Stored<Member>)>, Error> {
    let Some(invitation) = ticket.invitation else { return Ok(None) };
    let stored = cx.store().member(invitation.workspace_id, ticket.user_id).await?;
    let stored = stored.filter(|stored| stored.record.role <= invitation.role).ok_or(Error::LinkExpired)?;
    Ok(Some((invitation, stored)))
}

/// Returns true if a ticket may sign in as a user and set the first password: nobody ever signed in as them, the
/// workspace of the ticket created them, and they are an active member nowhere else.
async fn is_first_opened(cx: &Context<'_>, user: &User, invitation: &TicketInvitation) -> Result<bool, Error> {
    if !user.is_first_opened_by(invitation.workspace_id) {
        return Ok(false);
    }
    let page = PageRequest { after: None, limit: 2 };
    let active = cx.store().workspaces_of(user.id, MemberStatus::Active, page).await?;
    Ok(active.items.iter().all(|(workspace, _)| workspace.id == invitation.workspace_id))
}

/// Returns the invitation for a ticket's holder, who accepts it signed in as the person. The ticket stays usable for
/// that.
async fn opened(cx: &Context<'_>, ticket: &Ticket, member: Member, user: User) -> Result<LoginReport, Error> {
    if member.is_active() {
        return Err(Error::LinkExpired);
    }
    let workspace = cx.store().workspace(member.workspace_id).await?.ok_or(Error::LinkExpired)?.record;
    Ok(LoginReport {
        token: None,
        expires_at: ticket.expires_at,
        user: UserView::of(user),
        invitation: Some(InvitationView::of(workspace, member)),
    })
}

/// A ticket for a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Ticket")]
#[non_exhaustive]
pub struct TicketReport {
    /// Link to give to the member. It cannot be shown again, and works once.
    pub url: Secret,
    /// Time when the link expires.
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
    const SUMMARY: &'static str =
        "Make a link with which an invited member accepts, and sets a password at the first sign-in";
    const ANSWERS_SECRET: bool = true;
    type Path = MemberPath;
    type Query = Empty;
    type Body = Empty;
    type Output = TicketReport;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<TicketReport, Error> {
        let MemberPath { workspace_id, user_id } = call.path;
        if cx.app.is_sign_on_only() {
            return Err(ONLY);
        }
        let member = cx.store().member(workspace_id, user_id).await?.ok_or(Error::NotFound)?.record;
        let user = cx.store().user(user_id).await?.ok_or(Error::NotFound)?.record;
        let up_to = highest_grantable_role(cx, workspace_id);
        if member.role > up_to {
            return Err(Error::RoleForbidden);
        }
        if member.is_active() && !user.is_first_opened_by(workspace_id) {
            return Err(SIGNS_IN);
        }
        let invitation = TicketInvitation { workspace_id, role: member.role, up_to };
        let (ticket, url) = cx.app.new_ticket(&user, Some(invitation), MEMBERS_LIFETIME, cx.now);
        let expires_at = ticket.expires_at;
        cx.change(Write::Account(AccountWrite::PutTicket(ticket)));
        Ok(TicketReport { url, expires_at })
    }
}
