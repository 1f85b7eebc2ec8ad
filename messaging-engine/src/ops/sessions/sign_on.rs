//! The end of a sign-in by single sign-on: which user the person is, and which roles their groups give.
//!
//! Contract section 25. The pair of issuer and subject identifies a person, and nothing else that the provider says
//! does. A first sign-in joins the pair to the user with the same email, which the provider must have verified: at once
//! when that user has no password, and otherwise after they confirm it. A user with a second factor is asked for it at
//! every sign-in; without a password, the second factor alone confirms the first sign-in. Where the contract is silent:
//! a person without a user here gets one only if a group of theirs gives a role, because providers such as Google let
//! everybody in. A joined user counts as confirmed by the operator, so sessions that a link of a workspace opened
//! before end.

use http::{Method, StatusCode};
use messaging_core::changes::{AccountWrite, Expect, Write};
use messaging_core::domain::security::account::User;
use messaging_core::domain::security::audit::{Actor, ActorKind, Resource};
use messaging_core::domain::security::factor::FirstFactor;
use messaging_core::domain::security::oidc::flow::LIFETIME;
use messaging_core::domain::security::oidc::group_roles::roles_of;
use messaging_core::domain::security::oidc::id_token::Person;
use messaging_core::domain::security::oidc::{LinkedIdentity, OidcSettings, VerifiedIdentity};
use messaging_core::domain::security::password;
use messaging_core::domain::security::secret::Secret;
use messaging_core::domain::security::user_email::UserEmail;
use messaging_core::ids::{UserId, WorkspaceId};
use messaging_core::input::{Empty, Input};
use messaging_core::ports::store::Stored;
use messaging_core::scope::Access;
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::group_memberships::follow_groups;
use super::{LoginReport, check_password, open_session};
use crate::error::Error;
use crate::ops::auditing::{of_person, record_refused_sign_in};
use crate::ops::context::Context;
use crate::ops::operation::{Call, Operation};
use crate::ops::recordings::REFUSED_SIGN_IN;
use crate::services::auditing::{Recorded, actor_of};
use crate::services::second_factors::FirstStep;
use crate::services::single_sign_on::SignOnRefusal;

/// Additional authenticated data under which the ticket of a confirmation is encrypted.
const TICKET_AAD: &str = "sign-on/confirm";

/// Operation under which the audit log records a sign-in by single sign-on.
const SIGN_ON: &str = "signOn";

/// Claims about a person from an ID token that was verified. The front end makes it from the answer of
/// [`App::finish_sign_on`], never from a request.
///
/// [`App::finish_sign_on`]: crate::App::finish_sign_on
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SignOnInput {
    /// Identifier of the person at the provider, the claim `sub`, which never changes.
    pub subject: String,
    /// Email of the person; absent when the provider names none.
    pub email: Option<UserEmail>,
    /// True if the provider has verified the email.
    pub email_verified: bool,
    /// Display name of the person.
    pub name: Option<String>,
    /// Groups of the person at the provider.
    pub groups: Vec<String>,
}

impl Input for SignOnInput {}

impl From<Person> for SignOnInput {
    fn from(person: Person) -> Self {
        let Person { subject, email, email_verified, name, groups } = person;
        Self { subject, email, email_verified, name, groups }
    }
}

/// Result of a sign-in. A user with a second factor gets the error [`Error::SecondFactorRequired`] instead, as at every
/// sign-in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SignOnOutcome {
    /// A session was opened; the answer holds its cookie.
    SignedIn,
    /// The user with this email has a password, which has to be given together with this ticket ([`ConfirmSignOn`]).
    Confirm {
        /// The ticket, good for ten minutes.
        ticket: Secret,
    },
    /// The person gets no session.
    Refused {
        /// The reason.
        reason: SignOnRefusal,
    },
}

/// Signs in a person whose ID token was verified. It is not in the list of operations, because only the front end may
/// call it, with what it has verified.
pub struct FinishSignOn;

impl Operation for FinishSignOn {
    const ID: &'static str = "finishSignOn";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/auth/oidc/callback";
    const ACCESS: Access = Access::Public;
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "auth finish-sign-on";
    const SUMMARY: &'static str = "End a sign-in by single sign-on";
    type Path = Empty;
    type Query = Empty;
    type Body = SignOnInput;
    type Output = SignOnOutcome;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<SignOnOutcome, Error> {
        let settings = cx.app.sign_on().ok_or(Error::NotFound)?;
        let SignOnInput { subject, email, email_verified, name, mut groups } = call.body;
        groups.retain(|group| settings.group_roles.iter().any(|given| given.group == *group));
        groups.sort_unstable();
        groups.dedup();
        let person = VerifiedIdentity { issuer: settings.issuer.clone(), subject, name, groups };
        if let Some(known) = cx.store().user_by_identity(&person.issuer, &person.subject).await? {
            return signed_in(cx, person, known.record.clone(), Some(known)).await;
        }
        let Some(email) = email else { return refuse(cx, SignOnRefusal::EmailMissing).await };
        if !email_verified {
            return refuse(cx, SignOnRefusal::EmailUnverified).await;
        }
        let Some(known) = cx.store().user_by_email(email.as_str()).await? else {
            if roles_of(&settings.group_roles, &person.groups).is_empty() {
                return refuse(cx, SignOnRefusal::NoAccount).await;
            }
            let user = User::new(cx.new_id(), email.as_str().to_owned(), cx.now);
            return signed_in(cx, person, user, None).await;
        };
        if known.record.password_hash.is_some() {
            let ticket = ConfirmTicket::seal(cx, known.record.id, person);
            return Ok(SignOnOutcome::Confirm { ticket });
        }
        signed_in(cx, person, known.record.clone().vouched_for(), Some(known)).await
    }
}

/// Opens a session in a cookie of the browser and records the sign-in; a user with a second factor is asked for it
/// instead.
async fn signed_in(
    cx: &mut Context<'_>,
    person: VerifiedIdentity,
    user: User,
    known: Option<Stored<User>>,
) -> Result<SignOnOutcome, Error> {
    if let Some(known) = known.as_ref().filter(|known| known.record.second_factor) {
        // As for passwords: the first step counts as a failure until the second is done, so that codes cannot be
        // guessed by many sign-ins at once. This commits at once, apart from the changes of the operation.
        let attempt = cx.app.admit_sign_in(&known.record.email, cx.client_ip).await?;
        cx.app.count_sign_in(attempt).await?;
        return Err(ask_factor(cx, &known.record, person, true).await?);
    }
    let logs = of_person(cx.app, user.id).await?;
    let user = join(cx, &person, user, known).await?;
    let actor = actor_of(&user);
    record(cx, SIGN_ON, actor, &logs).await?;
    open_session(cx, user, true);
    Ok(SignOnOutcome::SignedIn)
}

/// Returns the error that asks a user for their second factor. The person is joined to the user after that step.
async fn ask_factor(cx: &Context<'_>, user: &User, person: VerifiedIdentity, cookie: bool) -> Result<Error, Error> {
    let first_factor = FirstFactor::SignOn(Box::new(person));
    let step = FirstStep { cookie, first_factor, is_vouched: true, ..FirstStep::default() };
    cx.app.ask_second_factor(user, step, cx.now).await
}

/// Joins a person to the user who has passed their second factor. Fails with [`Error::SignInOver`] when the settings
/// name another provider by now, or the person was joined to another user meanwhile.
pub(super) async fn join_after_factor(
    cx: &mut Context<'_>,
    person: &VerifiedIdentity,
    user: User,
    known: Stored<User>,
) -> Result<User, Error> {
    let is_of_provider = cx.app.sign_on().is_some_and(|settings| settings.issuer == person.issuer);
    let joined = cx.store().user_by_identity(&person.issuer, &person.subject).await?;
    if !is_of_provider || joined.is_some_and(|joined| joined.record.id != user.id) {
        return Err(Error::SignInOver);
    }
    join(cx, person, user, Some(known)).await
}

/// Joins a person to a user unless they are joined already, and gives the user the roles of the person's groups. `user`
/// is the record to be stored, `known` the stored one.
async fn join(
    cx: &mut Context<'_>,
    person: &VerifiedIdentity,
    user: User,
    known: Option<Stored<User>>,
) -> Result<User, Error> {
    let settings = cx.app.sign_on().ok_or(Error::NotFound)?;
    let user = User { name: user.name.clone().or_else(|| person.name.clone()), ..user };
    let expect = known.as_ref().map_or(Expect::Absent, |known| Expect::Revision(known.revision));
    let is_first = cx.store().user_by_identity(&person.issuer, &person.subject).await?.is_none();
    // The user is written at the revision that was read: if they set a password or a factor at this moment, the commit
    // conflicts, and they are asked for it.
    if is_first || known.is_none_or(|known| known.record != user) {
        cx.change(Write::put(user.clone(), expect));
    }
    if is_first {
        let (issuer, subject) = (person.issuer.clone(), person.subject.clone());
        let identity = LinkedIdentity { issuer, subject, user_id: user.id, linked_at: cx.now };
        cx.change(Write::Account(AccountWrite::LinkIdentity(identity)));
    }
    follow_groups(cx, &user, &roles_of(&settings.group_roles, &person.groups)).await?;
    Ok(user)
}

/// Refuses a person and records it, without the name and email that the provider gave.
async fn refuse(cx: &mut Context<'_>, reason: SignOnRefusal) -> Result<SignOnOutcome, Error> {
    record(cx, REFUSED_SIGN_IN, Actor::unnamed(ActorKind::User), &[None]).await?;
    Ok(SignOnOutcome::Refused { reason })
}

async fn record(
    cx: &mut Context<'_>,
    operation: &str,
    actor: Actor,
    logs: &[Option<WorkspaceId>],
) -> Result<(), Error> {
    let recorded = Recorded {
        operation: operation.to_owned(),
        resource: Resource { kind: "user".to_owned(), id: actor.id.clone(), name: actor.name.clone() },
        actor,
        changes: Vec::new(),
        ip: cx.client_ip,
        request_id: cx.request_id.map(ToOwned::to_owned),
    };
    for write in cx.app.record_entry(logs, &recorded).await? {
        cx.change(write);
    }
    Ok(())
}

/// Content of the encrypted ticket with which a person confirms, by the user's password, that they are this user.
#[derive(Debug, Serialize, Deserialize)]
struct ConfirmTicket {
    user_id: UserId,
    person: VerifiedIdentity,
    expires_at: Timestamp,
}

impl ConfirmTicket {
    fn seal(cx: &Context<'_>, user_id: UserId, person: VerifiedIdentity) -> Secret {
        let ticket = Self { user_id, person, expires_at: cx.now + LIFETIME };
        let text = serde_json::to_string(&ticket).unwrap_or_default();
        cx.app.vault().seal(TICKET_AAD, &text, cx.app.entropy()).into()
    }

    /// Decrypts a ticket; [`Error::LinkExpired`] when it has expired or is of a provider other than the one in the
    /// settings.
    fn open(cx: &Context<'_>, settings: &OidcSettings, sealed: &Secret) -> Result<Self, Error> {
        let text = cx.app.vault().open(TICKET_AAD, sealed.expose()).map_err(|_| Error::LinkExpired)?;
        let ticket: Self = serde_json::from_str(&text).map_err(|_| Error::LinkExpired)?;
        let is_live = cx.now < ticket.expires_at && ticket.person.issuer == settings.issuer;
        if is_live { Ok(ticket) } else { Err(Error::LinkExpired) }
    }
}

/// The confirmation of a first sign-in.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ConfirmInput {
    /// Ticket: the text after `#confirm=` in the address at which the first sign-in ended. It works once, for ten
    /// minutes.
    #[validate(length(min = 1, max = 12_000))]
    pub ticket: Secret,
    /// Password of the user with the person's email.
    #[validate(length(min = 1, max = password::MAX_COMPARED))]
    pub password: Secret,
    /// True if the session is kept in a browser cookie, which no script can read, instead of a token.
    #[serde(default)]
    pub cookie: bool,
}

impl Input for ConfirmInput {}

/// `POST /auth/oidc/confirm`
pub struct ConfirmSignOn;

impl Operation for ConfirmSignOn {
    const ID: &'static str = "confirmSignOn";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/auth/oidc/confirm";
    const ACCESS: Access = Access::Public;
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "auth confirm";
    const SUMMARY: &'static str =
        "Confirm a first sign-in by single sign-on with the password that you have here, and sign in";
    type Path = Empty;
    type Query = Empty;
    type Body = ConfirmInput;
    type Output = LoginReport;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<LoginReport, Error> {
        let ConfirmInput { ticket, password, cookie } = call.body;
        let settings = cx.app.sign_on().ok_or(Error::NotFound)?;
        let ticket = ConfirmTicket::open(cx, settings, &ticket)?;
        // A person who is joined already needs no confirmation: they sign in at the provider.
        if cx.store().user_by_identity(&ticket.person.issuer, &ticket.person.subject).await?.is_some() {
            return Err(Error::LinkExpired);
        }
        let user = cx.store().user(ticket.user_id).await?.ok_or(Error::LinkExpired)?.record;
        let checked = check_password(cx, &user.email, password).await;
        if let Err(Error::InvalidCredentials) = checked {
            record_refused_sign_in(cx, &user.email).await?;
        }
        let (attempt, known) = checked?;
        if known.record.second_factor {
            return Err(ask_factor(cx, &known.record, ticket.person, cookie).await?);
        }
        cx.change(Write::Account(AccountWrite::ForgetSignIns(attempt)));
        let user = known.record.clone().vouched_for();
        let user = join(cx, &ticket.person, user, Some(known)).await?;
        Ok(open_session(cx, user, cookie))
    }
}
