//! Operations of signed-in persons on their own sessions and password.

use std::net::IpAddr;

use http::{Method, StatusCode};
use messaging_core::changes::{AccountWrite, Expect, Write};
use messaging_core::domain::security::account::{Session, User};
use messaging_core::domain::security::digest::Digest;
use messaging_core::domain::security::password;
use messaging_core::domain::security::secret::Secret;
use messaging_core::ids::SessionId;
use messaging_core::input::{Empty, Input, PageQuery};
use messaging_core::scope::Access;
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::{FieldCode, Violations, refuse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::proof::{ProofInput, prove_to_add};
use super::{check_password, signed_in};
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, NoContent, Operation};
use crate::ops::page::Page;
use crate::ops::session_cookie::SessionCookie;

/// A session as its holder sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Session")]
#[non_exhaustive]
pub struct SessionView {
    /// Id of the session.
    pub id: SessionId,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When it was last used, to the minute.
    pub last_used_at: Timestamp,
    /// Address from which it was opened.
    pub ip: Option<IpAddr>,
    /// Name of the program that opened it, as it calls itself.
    pub user_agent: Option<String>,
    /// True for the session of this request.
    pub current: bool,
}

impl SessionView {
    fn of(session: Session, last_used_at: Timestamp, current: Digest) -> Self {
        Self {
            id: session.id,
            created_at: session.created_at,
            last_used_at,
            ip: session.ip,
            user_agent: session.user_agent,
            current: session.token_digest == current,
        }
    }
}

/// `GET /auth/sessions`
pub struct ListSessions;

impl Operation for ListSessions {
    const ID: &'static str = "listSessions";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/auth/sessions";
    const ACCESS: Access = Access::Session;
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "session list";
    const SUMMARY: &'static str = "List where you are signed in";
    type Path = Empty;
    type Query = PageQuery;
    type Body = Empty;
    type Output = Page<SessionView>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<SessionView>, Error> {
        let (user, current) = {
            let session = signed_in(cx.caller)?;
            (&session.user, session.token_digest)
        };
        let page = cx.page(&call.query)?;
        let slice = cx.store().sessions_of(user.id, user.password_version, cx.now, page).await?;
        Ok(cx.answer_page(slice, |(session, used_at)| SessionView::of(session, used_at, current)))
    }
}

/// The path of a session.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct SessionPath {
    /// The session.
    pub id: SessionId,
}

/// `DELETE /auth/sessions/{id}`
pub struct DeleteSession;

impl Operation for DeleteSession {
    const ID: &'static str = "deleteSession";
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/auth/sessions/{id}";
    const ACCESS: Access = Access::Session;
    const SUCCESS: StatusCode = StatusCode::NO_CONTENT;
    const CLI: &'static str = "session delete";
    const SUMMARY: &'static str = "End one of your sessions";
    type Path = SessionPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<NoContent, Error> {
        let caller = signed_in(cx.caller)?;
        let is_live =
            |session: &Session| cx.now < session.expires_at && session.password_version == caller.user.password_version;
        let found = cx.store().session_by_id(caller.user.id, call.path.id).await?.filter(is_live);
        let session = found.ok_or(Error::NotFound)?;
        if session.token_digest == caller.token_digest {
            cx.session_cookie = Some(SessionCookie::Forget);
        }
        cx.change(Write::Account(AccountWrite::DeleteSession(session.token_digest)));
        Ok(NoContent)
    }
}

/// `DELETE /auth/sessions`
pub struct DeleteOtherSessions;

impl Operation for DeleteOtherSessions {
    const ID: &'static str = "deleteOtherSessions";
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/auth/sessions";
    const ACCESS: Access = Access::Session;
    const SUCCESS: StatusCode = StatusCode::NO_CONTENT;
    const CLI: &'static str = "session delete-others";
    const SUMMARY: &'static str = "End all of your sessions but this one; links that were made to sign you in end too";
    type Path = Empty;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    async fn run(cx: &mut Context<'_>, _: Call<Self>) -> Result<NoContent, Error> {
        let caller = signed_in(cx.caller)?;
        let stored = cx.store().user(caller.user.id).await?.ok_or(Error::InvalidCredentials)?;
        let session = cx.store().session(&caller.token_digest).await?.ok_or(Error::InvalidCredentials)?;
        renew(cx, session, stored.record, stored.revision);
        Ok(NoContent)
    }
}

/// Makes this session the only one of its user: the others were opened under an earlier version of the password.
pub(super) fn renew(cx: &mut Context<'_>, session: Session, user: User, revision: u32) {
    let user = User { password_version: user.password_version.wrapping_add(1), ..user };
    cx.change(Write::Account(AccountWrite::DeleteSession(session.token_digest)));
    cx.change(Write::Account(AccountWrite::PutSession(Session { password_version: user.password_version, ..session })));
    cx.change(Write::put(user, Expect::Revision(revision)));
}

/// A new password.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PasswordInput {
    /// Current password; left out only by persons who have none yet.
    #[serde(default)]
    #[validate(length(max = password::MAX_COMPARED))]
    pub current: Option<Secret>,
    /// New password: 12 to 200 characters, and none of the commonest.
    pub password: Secret,
    /// Current code of an authenticator app, or a recovery code. Needed only if the person has a second factor and no
    /// password yet, and signed in more than 15 minutes ago.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(min = 1, max = 100))]
    pub code: Option<Secret>,
}

impl Input for PasswordInput {
    fn check(&self, violations: &mut Violations) {
        password::check_new(violations, "/password", self.password.expose());
    }
}

/// `POST /auth/password`
pub struct SetPassword;

impl Operation for SetPassword {
    const ID: &'static str = "setPassword";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/auth/password";
    const ACCESS: Access = Access::Session;
    const SUCCESS: StatusCode = StatusCode::NO_CONTENT;
    const CLI: &'static str = "auth password";
    const SUMMARY: &'static str = "Set your password; your other sessions end";
    type Path = Empty;
    type Query = Empty;
    type Body = PasswordInput;
    type Output = NoContent;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<NoContent, Error> {
        let PasswordInput { current, password, code } = call.body;
        let caller = signed_in(cx.caller)?;
        let stored = cx.store().user(caller.user.id).await?.ok_or(Error::InvalidCredentials)?;
        let session = cx.store().session(&caller.token_digest).await?.ok_or(Error::InvalidCredentials)?;
        let user = stored.record;
        if user.password_hash.is_some() {
            let current = current.filter(|text| !text.expose().is_empty());
            let current =
                current.ok_or_else(|| refuse("/current", FieldCode::Required, "is required: your present password"))?;
            let (attempt, _) = check_password(cx, &user.email, current).await?;
            cx.change(Write::Account(AccountWrite::ForgetSignIns(attempt)));
        } else {
            prove_to_add(cx, &user, ProofInput { code, password: None }).await?;
        }
        let turn = cx.app.password_turn(cx.client_ip).await?;
        let password_hash = Some(cx.app.hash_password_in(turn, password.into_inner()).await?);
        // The session of this call stays open, under the new password.
        renew(cx, session, User { password_hash, ..user }, stored.revision);
        Ok(NoContent)
    }
}
