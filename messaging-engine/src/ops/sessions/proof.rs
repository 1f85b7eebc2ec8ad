//! Proofs that the person themselves calls, for what would prove everything else later.

use messaging_core::changes::{AccountWrite, Write};
use messaging_core::domain::security::account::User;
use messaging_core::domain::security::factor::SIGN_IN_PROVES_FOR;
use messaging_core::domain::security::password;
use messaging_core::domain::security::secret::Secret;
use messaging_core::input::{BodyKind, Input};
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::{FieldCode, refuse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{check_password, signed_in};
use crate::error::Error;
use crate::ops::context::Context;

/// Proof that the person themselves calls, and not somebody who found an open session.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ProofInput {
    /// The present code of an authenticator app, or a recovery code. One of `code` and `password` is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(min = 1, max = 100))]
    pub code: Option<Secret>,
    /// The password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(min = 1, max = password::MAX_COMPARED))]
    pub password: Option<Secret>,
}

impl Input for ProofInput {
    const BODY: BodyKind = BodyKind::Optional;
}

/// Makes sure that the person themselves adds a credential that proves who they are from then on. A person without a
/// second factor has no proof beyond the session, and one who has just signed in has given it.
pub(super) async fn prove_to_add(cx: &mut Context<'_>, user: &User, proof: ProofInput) -> Result<(), Error> {
    if proof.code.is_some() || proof.password.is_some() {
        return prove(cx, user, proof).await;
    }
    if user.second_factor && !has_just_signed_in(cx).await? {
        let rule = "a code of a factor or a recovery code is needed, because you signed in more than 15 minutes ago; signing \
                    in anew does as well";
        return Err(refuse("/code", FieldCode::Required, rule).into());
    }
    Ok(())
}

async fn has_just_signed_in(cx: &Context<'_>) -> Result<bool, Error> {
    let token = signed_in(cx.caller)?.token_digest;
    let session = cx.store().session(&token).await?.ok_or(Error::InvalidCredentials)?;
    Ok(cx.now < session.created_at + SIGN_IN_PROVES_FOR)
}

/// Makes sure that the person themselves calls, by a code or the password. Wrong ones count as failed sign-ins.
pub(super) async fn prove(cx: &mut Context<'_>, user: &User, proof: ProofInput) -> Result<(), Error> {
    let attempt = match proof {
        ProofInput { code: Some(code), .. } => {
            let attempt = cx.app.admit_sign_in(&user.email, cx.client_ip).await?;
            // A commit outside of `changes`, as for passwords: a repetition counts as another attempt.
            cx.app.count_sign_in(attempt).await?;
            let used = cx.app.judge_code(user.id, code.expose(), cx.now).await?;
            cx.change(used.ok_or(Error::InvalidCredentials)?);
            attempt
        }
        ProofInput { password: Some(password), .. } => check_password(cx, &user.email, password).await?.0,
        ProofInput { .. } => {
            let rule = "is required: a code of an authenticator app or a recovery code, or else `password`";
            return Err(refuse("/code", FieldCode::Required, rule).into());
        }
    };
    cx.change(Write::Account(AccountWrite::ForgetSignIns(attempt)));
    Ok(())
}
