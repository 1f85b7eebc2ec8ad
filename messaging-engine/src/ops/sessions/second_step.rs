//! The second step of a sign-in, for persons with a second factor.
//!
//! Contract section 25. The first step, by a password or a link, answers `second_factor_required` with a token. Where
//! the contract is silent: a link is used up by its first step, a password that it brings is set by the second, and the
//! session becomes a cookie if the first step asked for one. Where single sign-on is the only way to sign in, only
//! sign-ins that the operator's link or the provider began are completed here.

use http::{Method, StatusCode};
use messaging_core::changes::{AccountWrite, Expect, Write};
use messaging_core::domain::security::digest::Digest;
use messaging_core::domain::security::factor::{FirstFactor, MAX_TRIES, PendingSignIn, REMEMBERED_FOR};
use messaging_core::domain::security::passkey::{Assertion, challenge_of, request_options};
use messaging_core::domain::security::secret::Secret;
use messaging_core::ids::{Id as _, UserId};
use messaging_core::input::{BodyKind, Empty, Input};
use messaging_core::scope::Access;
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::{FieldCode, Violations, refuse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::sign_on::join_after_factor;
use super::{LoginReport, open_session};
use crate::error::Error;
use crate::ops::auditing::record_refused_sign_in;
use crate::ops::context::Context;
use crate::ops::operation::{Call, Operation};
use crate::services::second_factors::PASSKEY_MARKER;
use crate::services::single_sign_on::ONLY;

/// Error if the public URL of the installation is none that browsers keep passkeys for.
pub(super) const NO_SITE: Error = Error::SettingNeeded {
    setting: "public_url",
    cure: "browsers keep passkeys only for an https address or for localhost, so whoever runs the server has to set one",
};

/// A second factor for a sign-in, or a passkey alone.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct FactorLoginInput {
    /// Token from the answer of the first step (`details.token`), or of `POST /auth/login/passkey`. It works for ten
    /// minutes, and the one of a first step for five codes.
    #[validate(length(min = 1, max = 400))]
    pub token: Secret,
    /// Current code of an authenticator app, or a recovery code. Each works once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(min = 1, max = 100))]
    pub code: Option<Secret>,
    /// Assertion of a passkey, as the browser's `toJSON` writes it. One of `code` and `assertion` is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assertion: Option<Map<String, Value>>,
}

impl Input for FactorLoginInput {
    fn check(&self, violations: &mut Violations) {
        match (&self.code, &self.assertion) {
            (None, None) => violations.add("/code", FieldCode::Required, "is required: send `code` or `assertion`"),
            (Some(_), Some(_)) => {
                violations.add("/code", FieldCode::NotAllowed, "cannot be sent together with `assertion`");
            }
            _ => {}
        }
    }
}

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
        let FactorLoginInput { token, code, assertion } = call.body;
        let is_passkey_alone = token.expose().starts_with(PASSKEY_MARKER);
        if is_passkey_alone && cx.app.is_sign_on_only() {
            return Err(ONLY);
        }
        let assertion = assertion.map(Assertion::read).transpose();
        let assertion = assertion.map_err(|fault| refuse("/assertion", FieldCode::InvalidFormat, fault))?;
        if is_passkey_alone {
            let assertion = assertion.ok_or_else(|| {
                refuse("/assertion", FieldCode::Required, "is required: this token belongs to a sign-in by a passkey")
            })?;
            return by_passkey_alone(cx, &token, &assertion).await;
        }
        let digest = Digest::of(token.expose());
        let (pending, tries) = cx.app.pending_sign_in(&digest, cx.now).await?;
        if cx.app.is_sign_on_only() && !pending.first_factor.counts_with_sign_on_only() {
            return Err(ONLY);
        }
        let stored = cx.store().user(pending.user_id).await?.ok_or(Error::SignInOver)?;
        let user = pending.completed(stored.record.clone()).ok_or(Error::SignInOver)?;
        // A commit outside of `changes`, as for passwords. It is safe here: a repetition counts as another try.
        let attempt = cx.app.count_code(&digest, &user.email, cx.client_ip).await?;
        let used = match (code, assertion) {
            (_, Some(assertion)) => {
                cx.app.judge_assertion(user.id, &assertion, &challenge_of(token.expose()), cx.now).await?
            }
            (Some(code), None) => cx.app.judge_code(user.id, code.expose(), cx.now).await?,
            (None, None) => None,
        };
        let Some(used) = used else {
            record_refused_sign_in(cx, &user.email).await?;
            return Err(Error::WrongCode { tries_left: MAX_TRIES.saturating_sub(tries + 1) });
        };
        cx.change(used);
        cx.change(Write::Account(AccountWrite::TakePendingSignIn(digest)));
        cx.change(Write::Account(AccountWrite::ForgetSignIns(attempt)));
        let user = match &pending.first_factor {
            FirstFactor::SignOn(person) => join_after_factor(cx, person, user, stored).await?,
            FirstFactor::Password | FirstFactor::OperatorLink => {
                if user != stored.record {
                    cx.change(Write::put(user.clone(), Expect::Revision(stored.revision)));
                }
                user
            }
        };
        Ok(open_session(cx, user, pending.cookie))
    }
}

/// Signs in the owner of a passkey, with both factors at once.
async fn by_passkey_alone(cx: &mut Context<'_>, token: &Secret, assertion: &Assertion) -> Result<LoginReport, Error> {
    let digest = Digest::of(token.expose());
    let (expires_at, cookie) = cx.app.read_passkey_token(token.expose()).ok_or(Error::SignInOver)?;
    if expires_at <= cx.now || cx.store().pending_sign_in(&digest).await?.is_some() {
        return Err(Error::SignInOver);
    }
    let handle = assertion.user_handle().ok_or(Error::InvalidCredentials)?;
    let user = cx.store().user(UserId::from_bytes(handle)).await?.ok_or(Error::InvalidCredentials)?.record;
    let attempt = cx.app.admit_sign_in(&user.email, cx.client_ip).await?;
    // A commit outside of `changes`, as for passwords.
    cx.app.count_sign_in(attempt).await?;
    let challenge = challenge_of(token.expose());
    let Some(used) = cx.app.judge_assertion(user.id, assertion, &challenge, cx.now).await? else {
        record_refused_sign_in(cx, &user.email).await?;
        return Err(Error::InvalidCredentials);
    };
    // The row records that the token was used, for longer than any clock accepts it.
    let spent = PendingSignIn {
        digest,
        user_id: user.id,
        password_version: user.password_version,
        first_factor: FirstFactor::default(),
        cookie,
        is_vouched: false,
        password_hash: None,
        created_at: cx.now,
        expires_at: expires_at + REMEMBERED_FOR,
    };
    cx.change(used);
    cx.change(Write::Account(AccountWrite::PutPendingSignIn(Box::new(spent))));
    cx.change(Write::Account(AccountWrite::ForgetSignIns(attempt)));
    Ok(open_session(cx, user, cookie))
}

/// Options of a sign-in by a passkey.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PasskeyLoginInput {
    /// True if the session is kept in a browser cookie, which no script can read, instead of a token.
    #[serde(default)]
    pub cookie: bool,
}

impl Input for PasskeyLoginInput {
    const BODY: BodyKind = BodyKind::Optional;
}

/// Options for the browser to use a passkey, with the token of the sign-in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PasskeyLogin")]
#[non_exhaustive]
pub struct PasskeyLoginReport {
    /// Token for `POST /auth/login/factor`. It opens one session.
    pub token: Secret,
    /// Time when the token expires.
    pub expires_at: Timestamp,
    /// Options for the browser, as `parseRequestOptionsFromJSON` reads them.
    pub options: Map<String, Value>,
}

/// `POST /auth/login/passkey`
pub struct BeginPasskeyLogin;

impl Operation for BeginPasskeyLogin {
    const ID: &'static str = "beginPasskeyLogin";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/auth/login/passkey";
    const ACCESS: Access = Access::Public;
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "auth passkey";
    const SUMMARY: &'static str = "Begin a sign-in with a passkey alone; the browser completes it";
    type Path = Empty;
    type Query = Empty;
    type Body = PasskeyLoginInput;
    type Output = PasskeyLoginReport;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<PasskeyLoginReport, Error> {
        if cx.app.is_sign_on_only() {
            return Err(ONLY);
        }
        let site = cx.app.passkey_site().ok_or(NO_SITE)?;
        let (token, expires_at) = cx.app.new_passkey_token(call.body.cookie, cx.now);
        let options = request_options(&site, &challenge_of(token.expose()), &[]);
        Ok(PasskeyLoginReport { token, expires_at, options })
    }
}
