//! Signing in and out.
//!
//! Contract section 2.3. The token is known to its holder alone; the store keeps its digest.

pub mod factors;
mod group_memberships;
pub mod invitations;
pub mod own;
pub mod proof;
pub mod second_step;
pub mod sign_on;
pub mod tickets;

use std::time::Duration;

use http::{Method, StatusCode};
use messaging_core::changes::{AccountWrite, Write};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address::normalize_email;
use messaging_core::domain::channel::provider::SANDBOX;
use messaging_core::domain::security::account::{Member, MemberStatus, Session, User, Workspace};
use messaging_core::domain::security::api_key::random_text;
use messaging_core::domain::security::digest::Digest;
use messaging_core::domain::security::login_attempts::SignInAttempt;
use messaging_core::domain::security::password;
use messaging_core::domain::security::secret::Secret;
use messaging_core::ids::{UserId, WorkspaceId};
use messaging_core::input::{Empty, Input};
use messaging_core::ports::store::{PageRequest, Stored};
use messaging_core::scope::{Access, Role, Scope};
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::caller::{Caller, SignedIn};
use crate::error::Error;
use crate::ops::auditing::record_refused_sign_in;
use crate::ops::context::Context;
use crate::ops::operation::{Call, NoContent, Operation};
use crate::ops::session_cookie::SessionCookie;
use crate::services::lookups::SESSION_MARKER;
use crate::services::second_factors::FirstStep;
use crate::services::single_sign_on::ONLY;
use crate::services::tickets::{SECRET_ALPHABET, SECRET_LENGTH};

/// Lifetime of a session (contract section 2.3).
const LIFETIME: Duration = Duration::from_hours(12);
/// Characters of a program's name that are kept with a session.
const MAX_USER_AGENT: usize = 200;
/// Memberships that `GET /auth/me` shows.
const MAX_MEMBERSHIPS: usize = 1000;

/// A person as shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "User")]
#[non_exhaustive]
pub struct UserView {
    /// Id of the person.
    pub id: UserId,
    /// The sign-in name, lower case.
    pub email: String,
    /// A display name.
    pub name: Option<String>,
}

impl UserView {
    /// Returns the view of a user.
    pub fn of(user: User) -> Self {
        Self { id: user.id, email: user.email, name: user.name }
    }
}

/// An invitation to a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Invitation")]
#[non_exhaustive]
pub struct InvitationView {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// Name of the workspace.
    pub name: String,
    /// Role that the person gets on accepting.
    pub role: Role,
    /// Sign-in name of the person who sent the invitation; null where the operator did.
    pub invited_by: Option<String>,
    /// Time of the invitation.
    pub created_at: Timestamp,
}

impl InvitationView {
    /// Returns the view of an invitation.
    fn of(workspace: Workspace, member: Member) -> Self {
        let Member { role, invited_by, created_at, .. } = member;
        Self { workspace_id: workspace.id, name: workspace.name, role, invited_by, created_at }
    }
}

/// Credentials to sign in with.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct LoginInput {
    /// Email address of the user, in any case of letters. A malformed one is answered like a wrong password.
    #[validate(length(min = 1, max = 254))]
    pub email: String,
    /// The password.
    #[validate(length(min = 1, max = password::MAX_COMPARED))]
    pub password: Secret,
    /// True if the session is kept in a browser cookie, which no script can read, instead of a token.
    #[serde(default)]
    pub cookie: bool,
}

impl Input for LoginInput {}

/// A new session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Login")]
#[non_exhaustive]
pub struct LoginReport {
    /// The bearer token, which cannot be shown again; null if the session is a cookie, and if no session was opened.
    pub token: Option<Secret>,
    /// End of the session; where none was opened, of the ticket.
    pub expires_at: Timestamp,
    /// Person who signed in, or is invited.
    pub user: UserView,
    /// The invitation that a ticket opened instead of a session. The person accepts it signed in as themselves, with
    /// the ticket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invitation: Option<InvitationView>,
}

/// `POST /auth/login`
pub struct Login;

impl Operation for Login {
    const ID: &'static str = "login";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/auth/login";
    const ACCESS: Access = Access::Public;
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "auth login";
    const SUMMARY: &'static str = "Sign in with email and password";
    type Path = Empty;
    type Query = Empty;
    type Body = LoginInput;
    type Output = LoginReport;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<LoginReport, Error> {
        if cx.app.is_sign_on_only() {
            return Err(ONLY);
        }
        let LoginInput { email, password, cookie } = call.body;
        let email = normalize_email(&email);
        let checked = check_password(cx, &email, password).await;
        if let Err(Error::InvalidCredentials) = checked {
            record_refused_sign_in(cx, &email).await?;
        }
        let (attempt, user) = checked?;
        if user.record.second_factor {
            let step = FirstStep { cookie, ..FirstStep::default() };
            return Err(cx.app.ask_second_factor(&user.record, step, cx.now).await?);
        }
        cx.change(Write::Account(AccountWrite::ForgetSignIns(attempt)));
        Ok(open_session(cx, user.record, cookie))
    }
}

/// Returns the user with this email, lower case, if the password matches; counts as an attempt to sign in. The attempt
/// is returned too; the caller forgets it in its commit.
async fn check_password(
    cx: &Context<'_>,
    email: &str,
    password: Secret,
) -> Result<(SignInAttempt, Stored<User>), Error> {
    let attempt = cx.app.admit_sign_in(email, cx.client_ip).await?;
    let turn = cx.app.password_turn(cx.client_ip).await?;
    // The only commit outside of `changes`. It is safe here: a repetition counts as another attempt.
    cx.app.count_sign_in(attempt).await?;
    let user = cx.store().user_by_email(email).await?;
    let hash = user.as_ref().and_then(|user| user.record.password_hash.clone());
    let matches = App::password_matches(turn, password.into_inner(), hash).await?;
    user.filter(|_| matches).map(|user| (attempt, user)).ok_or(Error::InvalidCredentials)
}

/// Opens a session under the password version that the user has after this call: a password that is set meanwhile ends
/// the session too.
fn open_session(cx: &mut Context<'_>, user: User, cookie: bool) -> LoginReport {
    let token = format!("{SESSION_MARKER}{}", random_text(cx.app.entropy(), SECRET_ALPHABET, SECRET_LENGTH));
    let expires_at = cx.now + LIFETIME;
    cx.note_user(&user);
    let user_agent = cx.user_agent.map(|text| text.chars().take(MAX_USER_AGENT).collect());
    cx.change(Write::Account(AccountWrite::PutSession(Session {
        id: cx.new_id(),
        token_digest: Digest::of(&token),
        user_id: user.id,
        password_version: user.password_version,
        created_at: cx.now,
        expires_at,
        ip: cx.client_ip,
        user_agent,
    })));
    let token = Secret::from(token);
    let token = if cookie {
        cx.session_cookie = Some(SessionCookie::Keep(token, LIFETIME));
        None
    } else {
        Some(token)
    };
    LoginReport { token, expires_at, user: UserView::of(user), invitation: None }
}

/// `POST /auth/logout`
pub struct Logout;

impl Operation for Logout {
    const ID: &'static str = "logout";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/auth/logout";
    const ACCESS: Access = Access::Session;
    const SUCCESS: StatusCode = StatusCode::NO_CONTENT;
    const CLI: &'static str = "auth logout";
    const SUMMARY: &'static str = "End the session that is used to call this";
    type Path = Empty;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    async fn run(cx: &mut Context<'_>, _: Call<Self>) -> Result<NoContent, Error> {
        let session = signed_in(cx.caller)?;
        cx.change(Write::Account(AccountWrite::DeleteSession(session.token_digest)));
        cx.session_cookie = Some(SessionCookie::Forget);
        Ok(NoContent)
    }
}

/// A workspace that the caller is a member of, with the caller's rights there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Membership {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// Name of the workspace.
    pub name: String,
    /// Time zone of the workspace, an IANA name.
    pub timezone: String,
    /// True if the sandbox captures its email: nothing leaves, although messages are shown as sent or delivered.
    pub email_sandboxed: bool,
    /// True if members without a second factor have no access.
    pub require_second_factor: bool,
    /// Role of the caller in the workspace.
    pub role: Role,
    /// Scopes of that role.
    pub scopes: Vec<Scope>,
}

/// The person who is signed in, with the workspaces that they are members of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Me")]
#[non_exhaustive]
pub struct MeReport {
    /// The person.
    pub user: UserView,
    /// True if a password is set. Without one, only tickets sign in.
    pub has_password: bool,
    /// True if sign-ins ask for a second factor.
    pub second_factor: bool,
    /// Recovery codes that are left; 0 without a second factor.
    pub recovery_codes_left: u64,
    /// True if the person may look after the whole installation: `/system`.
    pub operator: bool,
    /// Workspaces that the person is an accepted member of, newest first; at most 1000, `GET /workspaces` lists them
    /// all. Invitations are listed by `GET /auth/invitations`.
    pub workspaces: Vec<Membership>,
}

/// `GET /auth/me`
pub struct GetMe;

impl Operation for GetMe {
    const ID: &'static str = "getMe";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/auth/me";
    const ACCESS: Access = Access::Session;
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "auth me";
    const SUMMARY: &'static str = "Tell who is signed in, and where they are a member";
    type Path = Empty;
    type Query = Empty;
    type Body = Empty;
    type Output = MeReport;

    async fn run(cx: &mut Context<'_>, _: Call<Self>) -> Result<MeReport, Error> {
        let session = signed_in(cx.caller)?;
        let page = PageRequest { after: None, limit: MAX_MEMBERSHIPS };
        let found = cx.store().workspaces_of(session.user.id, MemberStatus::Active, page).await?.items;
        let mut workspaces = Vec::with_capacity(found.len());
        for (workspace, member) in found {
            let provider = cx.app.provider(workspace.id, Channel::Email).await?;
            workspaces.push(Membership {
                workspace_id: workspace.id,
                name: workspace.name,
                timezone: workspace.timezone,
                email_sandboxed: provider.is_some_and(|provider| provider.name == SANDBOX),
                require_second_factor: workspace.require_second_factor,
                role: member.role,
                scopes: Scope::ALL
                    .iter()
                    .copied()
                    .filter(|scope| *scope != Scope::All && member.role.covers(*scope))
                    .collect(),
            });
        }
        let user = &session.user;
        let recovery_codes_left = if user.second_factor { cx.store().recovery_code_count(user.id).await? } else { 0 };
        Ok(MeReport {
            user: UserView::of(user.clone()),
            has_password: user.password_hash.is_some(),
            second_factor: user.second_factor,
            recovery_codes_left,
            operator: user.operator,
            workspaces,
        })
    }
}

/// Returns the session of a caller, or the error that a session is needed, for the operator too.
fn signed_in(caller: &Caller) -> Result<&SignedIn, Error> {
    match caller {
        Caller::Session(session) => Ok(session),
        Caller::Anonymous | Caller::Key(_) | Caller::Operator(_) => Err(Error::SessionRequired),
    }
}
