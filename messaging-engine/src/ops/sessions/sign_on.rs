//! The end of a sign-in by single sign-on: whom the person is here, and what their groups open.
//!
//! Contract section 25. A person is the user that issuer and subject were joined to; nothing else of what the provider says
//! finds a user again. A first sign-in is joined by the email, which the provider must have verified: to a user without a
//! password at once, and to one with a password once that was confirmed. Somebody with a second factor shows it at every sign-in,
//! and is joined by that alone where they have no password. Where the contract is silent: somebody whom nobody
//! here knows becomes a user only if a group of theirs gives them a role, because providers such as Google let everybody in.
//! Whoever is joined is vouched for, as by the operator: sessions that a workspace's link opened before are over.

use http::{Method, StatusCode};
use messaging_core::changes::{AccountWrite, Expect, Write};
use messaging_core::domain::security::account::User;
use messaging_core::domain::security::audit::{Actor, ActorKind, Resource};
use messaging_core::domain::security::factor::FirstFactor;
use messaging_core::domain::security::oidc::flow::LIFETIME;
use messaging_core::domain::security::oidc::group_roles::roles_of;
use messaging_core::domain::security::oidc::id_token::Person;
use messaging_core::domain::security::oidc::{LinkedIdentity, OidcSettings, VouchedPerson};
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

/// The place that a ticket to confirm by a password is sealed for.
const PLACE: &str = "sign-on/confirm";

/// Name under which a sign-in by single sign-on is recorded.
const SIGN_ON: &str = "signOn";

/// A person whom the provider has vouched for. Made by the front end of what [`App::finish_sign_on`] answers, never of what
/// somebody sent.
///
/// [`App::finish_sign_on`]: crate::App::finish_sign_on
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SignOnInput {
    /// Name of the person at the provider, which never changes.
    pub subject: String,
    /// The email.
    pub email: Option<UserEmail>,
    /// Whether the provider has verified the email.
    pub email_verified: bool,
    /// A display name.
    pub name: Option<String>,
    /// Their groups.
    pub groups: Vec<String>,
}

impl Input for SignOnInput {}

impl From<Person> for SignOnInput {
    fn from(person: Person) -> Self {
        let Person { subject, email, email_verified, name, groups } = person;
        Self { subject, email, email_verified, name, groups }
    }
}

/// End of a sign-in. Somebody with a second factor is asked for it by the refusal that all sign-ins answer,
/// [`Error::SecondFactorRequired`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SignOnOutcome {
    /// A session was opened; the answer holds its cookie.
    SignedIn,
    /// The user with this email has a password, which they confirm with this ticket ([`ConfirmSignOn`]).
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

/// Ends a sign-in whose person the provider has vouched for. In no list of operations: only the front end calls it, with what
/// it has verified.
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
        let person = VouchedPerson { issuer: settings.issuer.clone(), subject, name, groups };
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

/// Signs a person in by the cookie of their browser, and records it; asks for the second factor where they have one.
async fn signed_in(
    cx: &mut Context<'_>,
    person: VouchedPerson,
    user: User,
    known: Option<Stored<User>>,
) -> Result<SignOnOutcome, Error> {
    if let Some(known) = known.as_ref().filter(|known| known.record.second_factor) {
        // As for passwords: the first step counts as failed until the second is done, so that codes are not guessed at by many
        // sign-ins at once. A commit outside of `changes`.
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

/// The refusal that asks a user, as they are stored, for their second factor. The second step joins the person.
async fn ask_factor(cx: &Context<'_>, user: &User, person: VouchedPerson, cookie: bool) -> Result<Error, Error> {
    let first_factor = FirstFactor::SignOn(Box::new(person));
    let step = FirstStep { cookie, first_factor, is_vouched: true, ..FirstStep::default() };
    cx.app.ask_second_factor(user, step, cx.now).await
}

/// Joins a person to the user who has shown their second factor. The sign-in is over where the provider is another one by now, or
/// the person is somebody else here.
pub(super) async fn join_after_factor(
    cx: &mut Context<'_>,
    person: &VouchedPerson,
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

/// Makes a person and a user one, where they are not yet, and gives the user the roles of the person's groups. `user` is the user
/// as they shall be, `known` as they are stored.
async fn join(
    cx: &mut Context<'_>,
    person: &VouchedPerson,
    user: User,
    known: Option<Stored<User>>,
) -> Result<User, Error> {
    let settings = cx.app.sign_on().ok_or(Error::NotFound)?;
    let user = User { name: user.name.clone().or_else(|| person.name.clone()), ..user };
    let expect = known.as_ref().map_or(Expect::Absent, |known| Expect::Revision(known.revision));
    let is_first = cx.store().user_by_identity(&person.issuer, &person.subject).await?.is_none();
    // Whoever is joined is written at the revision that was read: a password or a factor that they set at this moment makes a
    // conflict, and is asked for.
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

/// Refuses a person whom the provider has vouched for. What they are called there is not kept.
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

/// What a person confirms by a password: that a user here is them.
#[derive(Debug, Serialize, Deserialize)]
struct ConfirmTicket {
    user_id: UserId,
    person: VouchedPerson,
    expires_at: Timestamp,
}

impl ConfirmTicket {
    fn seal(cx: &Context<'_>, user_id: UserId, person: VouchedPerson) -> Secret {
        let ticket = Self { user_id, person, expires_at: cx.now + LIFETIME };
        let text = serde_json::to_string(&ticket).unwrap_or_default();
        cx.app.vault().seal(PLACE, &text, cx.app.entropy()).into()
    }

    /// A ticket of the provider of today whose time is not over.
    fn open(cx: &Context<'_>, settings: &OidcSettings, sealed: &Secret) -> Result<Self, Error> {
        let text = cx.app.vault().open(PLACE, sealed.expose()).map_err(|_| Error::LinkExpired)?;
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
    /// The ticket: what stands after `#confirm=` in the address that the first sign-in ended at. It works once, for ten minutes.
    #[validate(length(min = 1, max = 12_000))]
    pub ticket: Secret,
    /// The password of the user who has the email of that person.
    #[validate(length(min = 1, max = password::MAX_COMPARED))]
    pub password: Secret,
    /// Whether the session is kept as a cookie of the browser, which no script can read, instead of a token.
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
        // Whoever is joined already signs in at the provider.
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
