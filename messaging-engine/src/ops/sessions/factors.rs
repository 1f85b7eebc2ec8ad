//! The second factors of whoever is signed in, and their recovery codes.
//!
//! Contract section 25. Where it is silent: the first factor that is confirmed ends the person's other sessions, which
//! were opened without one, and brings recovery codes; the last one that is removed takes them along. Each change of
//! factors writes the user as well, whose record says whether there is one, so that two changes at the same moment do
//! not miss each other. A person with a factor who signed in a while ago proves it, or gives the password, also to add
//! another one: the new factor would prove everything else, so that an open session found by another person would be
//! enough to take the account over.

use http::{Method, StatusCode};
use messaging_core::changes::{AccountWrite, Expect, Write};
use messaging_core::domain::security::account::User;
use messaging_core::domain::security::factor::{Factor, FactorKind, FactorProof, MAX_FACTORS};
use messaging_core::domain::security::passkey::{NewCredential, challenge_of};
use messaging_core::domain::security::secret::Secret;
use messaging_core::domain::security::{password, recovery_code};
use messaging_core::ids::FactorId;
use messaging_core::input::{Empty, Input, PageQuery};
use messaging_core::ports::store::Stored;
use messaging_core::scope::Access;
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::{FieldCode, refuse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::own::renew;
use super::proof::{ProofInput, prove, prove_to_add};
use super::second_step::NO_SITE;
use super::signed_in;
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, NoContent, Operation};
use crate::ops::page::Page;

/// Names of factors that were given none.
const UNNAMED_APP: &str = "Authenticator app";
const UNNAMED_PASSKEY: &str = "Passkey";

/// Said of a factor that counts already.
const IS_CONFIRMED: Error =
    Error::AccountState("the factor is confirmed already and counts; there is nothing left to confirm");

/// A second factor as shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Factor")]
#[non_exhaustive]
pub struct FactorView {
    /// Its id.
    pub id: FactorId,
    /// `totp`: an app that shows codes. `passkey`: a key that a device keeps, which signs in alone as well.
    pub kind: FactorKind,
    /// The person's name for it.
    pub name: String,
    /// Time since which sign-ins ask for it; null until it is confirmed.
    pub confirmed_at: Option<Timestamp>,
    /// Time by which it has to be confirmed; null once it is.
    pub expires_at: Option<Timestamp>,
    /// Time of its last use.
    pub last_used_at: Option<Timestamp>,
    /// When it was added.
    pub created_at: Timestamp,
}

impl FactorView {
    fn of(factor: Factor) -> Self {
        Self {
            id: factor.id,
            kind: factor.kind(),
            expires_at: factor.expires_at(),
            name: factor.name,
            confirmed_at: factor.confirmed_at,
            last_used_at: factor.last_used_at,
            created_at: factor.created_at,
        }
    }
}

/// `GET /auth/factors`
pub struct ListFactors;

impl Operation for ListFactors {
    const ID: &'static str = "listFactors";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/auth/factors";
    const ACCESS: Access = Access::Session;
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "factor list";
    const SUMMARY: &'static str = "List your second factors, unconfirmed ones included";
    type Path = Empty;
    type Query = PageQuery;
    type Body = Empty;
    type Output = Page<FactorView>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<FactorView>, Error> {
        let user = signed_in(cx.caller)?.user.id;
        let page = cx.page(&call.query)?;
        let mut slice = cx.store().factors_of(user, page).await?;
        slice.items.retain(|factor| factor.record.is_live(cx.now));
        Ok(cx.answer_page(slice, |factor| FactorView::of(factor.record)))
    }
}

/// A new second factor.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct FactorInput {
    /// Kind of the factor: `totp`, an app that shows codes, or `passkey`, a key that a device keeps.
    pub kind: FactorKind,
    /// Name of the factor, 1 to 100 characters, such as that of the device; its kind unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(min = 1, max = 100))]
    pub name: Option<String>,
    /// The present code of an authenticator app that you have already, or a recovery code. One of `code` and `password`
    /// is needed if you have a second factor and signed in more than 15 minutes ago.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(min = 1, max = 100))]
    pub code: Option<Secret>,
    /// The password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(min = 1, max = password::MAX_COMPARED))]
    pub password: Option<Secret>,
}

impl Input for FactorInput {}

/// A new second factor, with what an app or a browser needs to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "NewFactor")]
#[non_exhaustive]
pub struct NewFactorReport {
    /// Its id.
    pub id: FactorId,
    /// `totp`: an app that shows codes. `passkey`: a key that a device keeps.
    pub kind: FactorKind,
    /// The person's name for it.
    pub name: String,
    /// The secret in base32, to be typed into an app. It cannot be shown again. Null for a passkey.
    pub secret: Option<Secret>,
    /// The same as an `otpauth://` address, to be shown as a QR code. Null for a passkey.
    pub uri: Option<Secret>,
    /// Options for the browser that makes a passkey, as `parseCreationOptionsFromJSON` reads them; null for an app.
    pub options: Option<Map<String, Value>>,
    /// Until when it has to be confirmed.
    pub expires_at: Timestamp,
    /// When it was added.
    pub created_at: Timestamp,
}

/// `POST /auth/factors`
pub struct CreateFactor;

impl Operation for CreateFactor {
    const ID: &'static str = "createFactor";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/auth/factors";
    const ACCESS: Access = Access::Session;
    const SUCCESS: StatusCode = StatusCode::CREATED;
    const CLI: &'static str = "factor create";
    const SUMMARY: &'static str =
        "Add a second factor, an authenticator app or a passkey; it counts once you confirm it within 15 minutes";
    const ANSWERS_SECRET: bool = true;
    type Path = Empty;
    type Query = Empty;
    type Body = FactorInput;
    type Output = NewFactorReport;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<NewFactorReport, Error> {
        let FactorInput { kind, name, code, password } = call.body;
        let Stored { record: user, revision } = caller_now(cx).await?;
        prove_to_add(cx, &user, ProofInput { code, password }).await?;
        let factors = cx.app.live_factors(user.id).await?;
        if factors.len() >= MAX_FACTORS {
            let rule = format!("a user has at most {MAX_FACTORS} factors, unconfirmed ones included: delete one first");
            return Err(refuse("/kind", FieldCode::TooManyItems, rule).into());
        }
        let id = cx.new_id();
        let (mut secret, mut uri, mut options) = (None, None, None);
        let (proof, unnamed) = match kind {
            FactorKind::Totp => {
                let (made, proof) = cx.app.new_totp_secret(user.id, id);
                secret = Some(made.to_base32().into());
                uri = Some(made.uri(&cx.app.installation_name().await?, &user.email).into());
                (proof, UNNAMED_APP)
            }
            FactorKind::Passkey => {
                let site = cx.app.passkey_site().ok_or(NO_SITE)?;
                let known: Vec<_> = factors.iter().filter_map(|factor| factor.record.passkey()).collect();
                let known: Vec<_> = known.into_iter().map(|passkey| passkey.credential.clone()).collect();
                let (proof, told) = cx.app.new_passkey(&site, &user, &known);
                options = Some(told);
                (proof, UNNAMED_PASSKEY)
            }
        };
        let factor = Factor {
            id,
            user_id: user.id,
            name: name.unwrap_or_else(|| unnamed.to_owned()),
            proof,
            confirmed_at: None,
            last_used_at: None,
            created_at: cx.now,
        };
        let expires_at = factor.expires_at().unwrap_or(cx.now);
        let name = factor.name.clone();
        let report = NewFactorReport { id, kind, name, secret, uri, options, expires_at, created_at: cx.now };
        cx.change(Write::Account(AccountWrite::PutFactor(Box::new(factor), Expect::Absent)));
        cx.change(Write::put(user, Expect::Revision(revision)));
        Ok(report)
    }
}

/// The path of a second factor.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct FactorPath {
    /// The factor.
    pub id: FactorId,
}

/// The proof that confirms a factor: a code of the app, or the new passkey.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ConfirmFactorInput {
    /// The code that the app shows now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(min = 1, max = 100))]
    pub code: Option<Secret>,
    /// The new passkey, as `toJSON` of the browser's answer writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<Map<String, Value>>,
}

impl Input for ConfirmFactorInput {}

/// A second factor that was confirmed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ConfirmedFactor")]
#[non_exhaustive]
pub struct ConfirmedFactorReport {
    /// The factor.
    #[serde(flatten)]
    pub factor: FactorView,
    /// Ten recovery codes, each of which replaces the factor once. They cannot be shown again. Null if the person has
    /// recovery codes already, from another factor.
    pub recovery_codes: Option<Vec<Secret>>,
}

/// `POST /auth/factors/{id}/confirm`
pub struct ConfirmFactor;

impl Operation for ConfirmFactor {
    const ID: &'static str = "confirmFactor";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/auth/factors/{id}/confirm";
    const ACCESS: Access = Access::Session;
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "factor confirm";
    const SUMMARY: &'static str = "Confirm a second factor with a code or the new passkey; sign-ins then ask for it, and the first one ends your other sessions";
    const ANSWERS_SECRET: bool = true;
    type Path = FactorPath;
    type Query = Empty;
    type Body = ConfirmFactorInput;
    type Output = ConfirmedFactorReport;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<ConfirmedFactorReport, Error> {
        let Stored { record: user, revision } = caller_now(cx).await?;
        let found = own_factor(cx, &user, call.path.id).await?;
        if found.record.confirmed_at.is_some() {
            return Err(IS_CONFIRMED);
        }
        let factor = confirmed(cx, found.record, call.body)?;
        let view = FactorView::of(factor.clone());
        cx.change(Write::Account(AccountWrite::PutFactor(Box::new(factor), Expect::Revision(found.revision))));
        if user.second_factor {
            cx.change(Write::put(user, Expect::Revision(revision)));
            return Ok(ConfirmedFactorReport { factor: view, recovery_codes: None });
        }
        let recovery_codes = Some(new_recovery_codes(cx, &user));
        let token = signed_in(cx.caller)?.token_digest;
        let session = cx.store().session(&token).await?.ok_or(Error::InvalidCredentials)?;
        // This session goes on, and is the only one.
        renew(cx, session, User { second_factor: true, ..user }, revision);
        Ok(ConfirmedFactorReport { factor: view, recovery_codes })
    }
}

/// The factor once it was used for the first time.
fn confirmed(cx: &Context<'_>, factor: Factor, input: ConfirmFactorInput) -> Result<Factor, Error> {
    let ConfirmFactorInput { code, credential } = input;
    let FactorProof::Passkey { nonce, .. } = &factor.proof else {
        let code = code.ok_or_else(|| {
            refuse("/code", FieldCode::Required, "is required: the code that the authenticator app shows")
        })?;
        let rule =
            "is not the present code of the app: enter the code that it shows now, and check the clock of its device";
        let used = cx.app.use_code(factor, code.expose(), cx.now);
        return Ok(used.ok_or_else(|| refuse("/code", FieldCode::Conflict, rule))?);
    };
    let credential = credential.ok_or_else(|| {
        refuse(
            "/credential",
            FieldCode::Required,
            "is required: the answer of the browser to the `options` of the factor",
        )
    })?;
    let site = cx.app.passkey_site().ok_or(NO_SITE)?;
    let made = NewCredential::read(credential).and_then(|made| made.verify(&site, &challenge_of(nonce)));
    let passkey = made.map_err(|fault| refuse("/credential", FieldCode::Conflict, fault))?;
    let proof = FactorProof::Passkey { nonce: String::new(), passkey: Some(passkey) };
    Ok(Factor { proof, ..factor.used(cx.now) })
}

/// `DELETE /auth/factors/{id}`
pub struct DeleteFactor;

impl Operation for DeleteFactor {
    const ID: &'static str = "deleteFactor";
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/auth/factors/{id}";
    const ACCESS: Access = Access::Session;
    const SUCCESS: StatusCode = StatusCode::NO_CONTENT;
    const CLI: &'static str = "factor delete";
    const SUMMARY: &'static str =
        "Remove one of your second factors; this needs a code or the password, unless the factor is unconfirmed";
    type Path = FactorPath;
    type Query = Empty;
    type Body = ProofInput;
    type Output = NoContent;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<NoContent, Error> {
        let Stored { record: mut user, revision } = caller_now(cx).await?;
        let found = own_factor(cx, &user, call.path.id).await?.record;
        if found.confirmed_at.is_some() {
            prove(cx, &user, call.body).await?;
            let others = cx.app.live_factors(user.id).await?;
            user.second_factor =
                others.iter().any(|other| other.record.id != found.id && other.record.confirmed_at.is_some());
            if !user.second_factor {
                cx.change(Write::Account(AccountWrite::PutRecoveryCodes(user.id, Vec::new())));
            }
        }
        cx.change(Write::Account(AccountWrite::DeleteFactor(user.id, found.id)));
        cx.change(Write::put(user, Expect::Revision(revision)));
        Ok(NoContent)
    }
}

/// Recovery codes, shown once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RecoveryCodes")]
#[non_exhaustive]
pub struct RecoveryCodesReport {
    /// Ten recovery codes, each of which replaces a factor once. They cannot be shown again.
    pub recovery_codes: Vec<Secret>,
}

/// `POST /auth/recovery-codes`
pub struct CreateRecoveryCodes;

impl Operation for CreateRecoveryCodes {
    const ID: &'static str = "createRecoveryCodes";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/auth/recovery-codes";
    const ACCESS: Access = Access::Session;
    const SUCCESS: StatusCode = StatusCode::CREATED;
    const CLI: &'static str = "factor recovery-codes";
    const SUMMARY: &'static str =
        "Make ten new recovery codes, which replace the old ones; this needs a code or the password";
    const ANSWERS_SECRET: bool = true;
    type Path = Empty;
    type Query = Empty;
    type Body = ProofInput;
    type Output = RecoveryCodesReport;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<RecoveryCodesReport, Error> {
        let Stored { record: user, revision } = caller_now(cx).await?;
        if !user.second_factor {
            return Err(Error::AccountState(
                "there are recovery codes only with a second factor: add one with POST /auth/factors",
            ));
        }
        prove(cx, &user, call.body).await?;
        let recovery_codes = new_recovery_codes(cx, &user);
        cx.change(Write::put(user, Expect::Revision(revision)));
        Ok(RecoveryCodesReport { recovery_codes })
    }
}

/// The person who calls, as they are now.
async fn caller_now(cx: &Context<'_>) -> Result<Stored<User>, Error> {
    let id = signed_in(cx.caller)?.user.id;
    cx.store().user(id).await?.ok_or(Error::InvalidCredentials)
}

/// A factor of a person that counts, or can be confirmed.
async fn own_factor(cx: &Context<'_>, user: &User, id: FactorId) -> Result<Stored<Factor>, Error> {
    let found = cx.store().factor(user.id, id).await?;
    found.filter(|factor| factor.record.is_live(cx.now)).ok_or(Error::NotFound)
}

/// New recovery codes in place of those that there are.
fn new_recovery_codes(cx: &mut Context<'_>, user: &User) -> Vec<Secret> {
    let (codes, digests) = recovery_code::generate(user.id, cx.app.entropy());
    cx.change(Write::Account(AccountWrite::PutRecoveryCodes(user.id, digests)));
    codes
}
