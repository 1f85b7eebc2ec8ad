//! The second step of a sign-in, by somebody with a second factor.
//!
//! Contract section 25. The first step, by a password or a link, answers `second_factor_required` with a token. Where the
//! contract is silent: a link is used up by its first step, a password that it brings is set by the second, and the session
//! becomes a cookie if the first step asked for one.

use http::{Method, StatusCode};
use messaging_core::changes::{AccountWrite, Expect, Write};
use messaging_core::domain::security::digest::Digest;
use messaging_core::domain::security::factor::MAX_TRIES;
use messaging_core::domain::security::secret::Secret;
use messaging_core::input::{Empty, Input};
use messaging_core::scope::Access;
use messaging_core::validate::{Setters, Validate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LoginReport, open_session};
use crate::error::Error;
use crate::ops::auditing::record_refused_sign_in;
use crate::ops::context::Context;
use crate::ops::operation::{Call, Operation};

/// A second factor for a sign-in.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct FactorLoginInput {
    /// The token that the first step answered in `details.token`. It works for ten minutes and five codes.
    #[validate(length(min = 1, max = 200))]
    pub token: Secret,
    /// The present code of an authenticator app, or a recovery code. Each counts once.
    #[validate(length(min = 1, max = 100))]
    pub code: Secret,
}

impl Input for FactorLoginInput {}

/// `POST /auth/login/factor`
pub struct LoginWithFactor;

impl Operation for LoginWithFactor {
    const ID: &'static str = "loginWithFactor";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/auth/login/factor";
    const ACCESS: Access = Access::Public;
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "auth login-factor";
    const SUMMARY: &'static str = "Complete a sign-in that asked for a second factor";
    type Path = Empty;
    type Query = Empty;
    type Body = FactorLoginInput;
    type Output = LoginReport;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<LoginReport, Error> {
        let FactorLoginInput { token, code } = call.body;
        let digest = Digest::of(token.expose());
        let (pending, tries) = cx.app.pending_sign_in(&digest, cx.now).await?;
        let stored = cx.store().user(pending.user_id).await?.ok_or(Error::SignInOver)?;
        let user = pending.completed(stored.record.clone()).ok_or(Error::SignInOver)?;
        // A commit outside of `changes`, as for passwords. It is safe here: a repetition counts as another try.
        let attempt = cx.app.count_code(&digest, &user.email, cx.client_ip).await?;
        let Some(used) = cx.app.judge_code(user.id, code.expose(), cx.now).await? else {
            record_refused_sign_in(cx, &user.email).await?;
            return Err(Error::WrongCode { tries_left: MAX_TRIES.saturating_sub(tries + 1) });
        };
        cx.change(used);
        cx.change(Write::Account(AccountWrite::TakePendingSignIn(digest)));
        cx.change(Write::Account(AccountWrite::ForgetSignIns(attempt)));
        if user != stored.record {
            cx.change(Write::put(user.clone(), Expect::Revision(stored.revision)));
        }
        Ok(open_session(cx, user, pending.cookie))
    }
}
