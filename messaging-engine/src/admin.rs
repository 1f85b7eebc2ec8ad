//! Tasks of the operator who holds the database: run on an [`App`] without credentials, by the `admin` commands and for
//! the set-up of `messaging dev`.
//!
//! If an operation does the same, it is called as [`Caller::Operator`]; the other tasks have no operation in the API.
//! Field errors point at the names of the command's flags, as in `/password`.

mod accounts;
mod deletion;
mod dns_records;
mod embedding;
mod ip_pools;
mod quarantine;
mod secret_key;
mod verify;

use messaging_core::changes::{AccountWrite, Changes, Expect, JobWrite, Write};
use messaging_core::domain::campaign::archive::ReaderSettings;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address::EmailAddress;
use messaging_core::domain::channel::provider::SANDBOX;
use messaging_core::domain::channel::settings::ChannelSettings;
use messaging_core::domain::installation::fence::FenceState;
use messaging_core::domain::limits::MAX_NAME;
use messaging_core::domain::mail::dkim::Algorithm;
use messaging_core::domain::mail::domain_name::is_fully_qualified;
use messaging_core::domain::mail::sending_domain::SendingDomain;
use messaging_core::domain::mail::verification::{self, SANDBOX_DOMAIN};
use messaging_core::domain::security::account::{Member, MemberStatus, User, Workspace};
use messaging_core::domain::security::api_key::{ApiKey, generate, random_text};
use messaging_core::domain::security::digest::Digest;
use messaging_core::domain::security::password;
use messaging_core::domain::security::request_log::RequestLog;
use messaging_core::domain::security::secret::Secret;
use messaging_core::domain::security::secret_members::HIDDEN;
use messaging_core::domain::security::user_email::UserEmail;
use messaging_core::ids::{ApiKeyId, Id as _, UserId, WorkspaceId};
use messaging_core::ports::store::{CommitError, PageRequest, Stored};
use messaging_core::scope::{Role, Scope};
use messaging_core::time::Timestamp;
use messaging_core::violation::{FieldCode, Violations, refuse};
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::caller::Caller;
use crate::error::Error;
use crate::jobs::JobData as _;
use crate::jobs::cancel_waiting::CancelWaiting;
use crate::ops::keys::{ApiKeyInput, ApiKeyView, CreateApiKey, DEFAULT_RATE_LIMIT, ListApiKeys};
use crate::ops::workspaces::WorkspaceView;
use crate::ops::{Page, PageQuery};
use crate::services::auditing::Command;
use crate::services::dkim::{ALGORITHMS, NewKeys};

pub use self::accounts::{ResetFactorsReport, UserReport, list_users, list_workspaces, login_link, reset_factors};
pub use self::deletion::{DeletedWorkspace, delete_user, delete_workspace, remove_workspace};
pub use self::dns_records::{InstallationRecord, dns_records};
pub use self::embedding::embedded_workspace;
pub use self::ip_pools::{
    GrantReport, SharedPoolChange, SharedPoolInput, create_shared_pool, delete_shared_pool, grant_ip, list_grants,
    list_shared_pools, revoke_ip, update_shared_pool,
};
pub use self::quarantine::{
    LeftReport, QuarantinedReport, ReleaseReport, drop_quarantined, list_quarantined, release_quarantined,
};
pub use self::secret_key::{ResealReport, reseal, switch_secret_key};
pub use self::verify::{DifferenceReport, VerifyReport, verify};

/// Email address of the user that `messaging dev` creates.
pub const DEV_EMAIL: &str = "admin@localhost";
/// Sender that `messaging dev` suggests.
pub const DEV_SENDER: &str = "hello@sandbox.test";
const DEV_WORKSPACE: &str = "Dev";
/// The length of a made-up password, in characters.
const PASSWORD_LENGTH: usize = 20;
/// Characters of a generated password; none look alike, because somebody types it.
const PASSWORD_ALPHABET: &[u8] = b"abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";

/// The installation as the `admin` commands show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstallationReport {
    /// Name of the installation: the right side of Message-IDs, whichever machine sends.
    pub name: String,
}

/// Renames the installation, whose name is at first the `hostname` of its first start. Messages that are tried again
/// after that have another Message-ID.
pub async fn set_installation_name(app: &App, name: &str) -> Result<InstallationReport, Error> {
    let name = name.to_ascii_lowercase();
    let mut violations = Violations::new();
    if !name.is_ascii() || EmailAddress::parse(&format!("a@{name}")).is_err() {
        violations.add("/name", FieldCode::InvalidFormat, "is not a domain name");
    } else if !is_fully_qualified(&name) {
        violations.add(
            "/name",
            FieldCode::InvalidFormat,
            "is no name that others could look up, such as mx.example.org",
        );
    }
    violations.into_result()?;
    app.until_committed(|| async {
        let before = app.store().installation_name().await?;
        let mut changes = Changes::default();
        let report = InstallationReport { name: name.clone() };
        if before.as_ref() != Some(&name) {
            let command = Command::new("admin set-name", "installation", None, Some(&name)).after(&report);
            let command = match &before {
                Some(name) => command.before(&InstallationReport { name: name.clone() }),
                None => command,
            };
            changes.push(Write::PutInstallationName(name.clone(), before));
            changes = app.record_command(changes, command).await?;
        }
        Ok((changes, report))
    })
    .await
}

/// Decision about waiting work when a copy begins to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queued {
    /// Waiting messages and deliveries are sent.
    Send,
    /// Every waiting message and webhook delivery is cancelled first, and runs of automations from before the copy end.
    Cancel,
}

/// State in which `admin resume` left the installation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResumeReport {
    /// Start of the fence, since when nothing left; null if there was none.
    pub fenced_since: Option<Timestamp>,
    /// Work that has to end before the server sends again; null if it sends.
    pub doing: Option<String>,
}

/// Ends the fence of a copy. Waiting messages continue at once; to cancel them, the server does so, or
/// [`cancel_waiting`] where none runs, and then the fence comes down. A fence whose messages are being cancelled stays.
pub async fn resume(app: &App, queued: Queued) -> Result<ResumeReport, Error> {
    // A copy on which no server has started yet.
    app.heed_fence().await.map_err(CommitError::into_store_error)?;
    let report = app.until_committed(|| async {
        let mut changes = Changes::default();
        let Some(fence) = app.store().fence().await? else {
            return Ok((changes, ResumeReport { fenced_since: None, doing: None }));
        };
        let doing = match (fence.state, queued) {
            (FenceState::Held, Queued::Send) => {
                changes.push(Write::PutFence(None, Some(fence)));
                None
            }
            (FenceState::Held, Queued::Cancel) => {
                let now = app.now();
                changes.push(Write::PutFence(Some(fence.cancelling()), Some(fence)));
                changes.push(Write::Job(JobWrite::EnqueueOnce(CancelWaiting {}.enqueue(app.new_id(now), now))));
                Some("cancelling".to_owned())
            }
            (FenceState::Cancelling, _) => Some("cancelling".to_owned()),
        };
        let report = ResumeReport { fenced_since: Some(fence.since), doing };
        let command = Command::new("admin resume", "installation", None, None).after(&report);
        Ok((app.record_command(changes, command).await?, report))
    });
    let report = report.await?;
    app.look_at_fence().await?;
    Ok(report)
}

/// Cancels all waiting work for which [`resume`] chose that: for a program that works on the database alone. `note` is
/// called with the number of items of each page.
pub async fn cancel_waiting(app: &App, note: &mut (dyn FnMut(usize) + Send)) -> Result<(), Error> {
    Ok(app.cancel_waiting(note).await?)
}

/// Returns a random password of some 115 bits.
pub fn random_password(app: &App) -> String {
    random_text(app.entropy(), PASSWORD_ALPHABET, PASSWORD_LENGTH)
}

/// Creates a user. If a user has the email already, sets the given password and name instead; so this is also how a
/// password is set or reset.
///
/// A new password ends the open sessions of the user, in a running server within a second. For a user created by the
/// invitation of a workspace it is the word of the operator: second factors that were added until then are removed.
pub async fn create_user(
    app: &App,
    email: &str,
    password: Option<String>,
    name: Option<String>,
) -> Result<UserReport, Error> {
    let mut violations = Violations::new();
    let email = email.parse::<UserEmail>();
    if email.is_err() {
        violations.add("/email", FieldCode::InvalidFormat, "is not an email address");
    }
    if let Some(password) = &password {
        check_password(&mut violations, password);
    }
    if let Some(name) = &name {
        check_length(&mut violations, "/name", name, 1, MAX_NAME);
    }
    let Ok(email) = email else { return Err(violations.into()) };
    violations.into_result()?;
    let password_hash = match password {
        Some(password) => Some(app.hash_password(password).await?),
        None => None,
    };
    app.until_committed(|| async {
        let known = app.store().user_by_email(email.as_str()).await?;
        let (mut user, expected) = match known {
            Some(Stored { record, revision }) => (record, Expect::Revision(revision)),
            None => (new_user(app, email.as_str()), Expect::Absent),
        };
        let mut changes = Changes::default();
        if let Some(hash) = &password_hash {
            user.password_hash = Some(hash.clone());
            user.password_version = user.password_version.wrapping_add(1);
            // A password set by a link of a workspace is void: from here on the operator vouches. A passkey that was
            // added with that link would still sign in, and an authenticator app would keep the person out.
            if user.created_by.take().is_some() {
                user.second_factor = false;
                changes.push(Write::Account(AccountWrite::DeleteFactors(user.id)));
            }
        }
        user.name = name.clone().or(user.name);
        changes.push(Write::put(user.clone(), expected));
        let report = UserReport::of(user);
        let secret = serde_json::json!({"name": report.name, "password": password_hash.as_ref().map(|_| HIDDEN)});
        let command = Command::new("admin create-user", "user", Some(report.id.to_string()), Some(&report.email));
        Ok((app.record_command(changes, command.after(&secret)).await?, report))
    })
    .await
}

/// Advice about users whose sessions and password come from links that administrators of workspaces made.
const NOT_VOUCHED: &str = "was created by the invitation of a workspace, so that somebody else may hold its password: set \
    one first with `admin create-user --email EMAIL --generate-password`";

/// Grants or withdraws a user's right to operate the installation. Open sessions notice within a second.
pub async fn set_operator(app: &App, email: &str, operator: bool) -> Result<UserReport, Error> {
    app.until_committed(|| async {
        let user = match email.parse::<UserEmail>() {
            Ok(email) => app.store().user_by_email(email.as_str()).await?,
            Err(_) => None,
        };
        let Some(Stored { record: mut user, revision }) = user else {
            return Err(refuse("/email", FieldCode::NotFound, "is no user's: see `messaging admin list-users`").into());
        };
        if operator && user.created_by.is_some() {
            return Err(refuse("/email", FieldCode::NotAllowed, NOT_VOUCHED).into());
        }
        let command = Command::new("admin set-operator", "user", Some(user.id.to_string()), Some(&user.email));
        let command = command.before(&UserReport::of(user.clone()));
        user.operator = operator;
        let changes = Changes::from_iter([Write::put(user.clone(), Expect::Revision(revision))]);
        let report = UserReport::of(user);
        Ok((app.record_command(changes, command.after(&report)).await?, report))
    })
    .await
}

/// Creates a workspace whose owner is the user with `owner_email`.
pub async fn create_workspace(app: &App, name: &str, owner_email: &str) -> Result<WorkspaceView, Error> {
    let mut violations = Violations::new();
    check_length(&mut violations, "/name", name, 1, MAX_NAME);
    let owner = match owner_email.parse::<UserEmail>() {
        Ok(email) => app.store().user_by_email(email.as_str()).await?,
        Err(_) => None,
    };
    if owner.is_none() {
        violations.add("/owner", FieldCode::NotFound, "is no user: make one with `messaging admin create-user`");
    } else if owner.as_ref().is_some_and(|owner| owner.record.created_by.is_some()) {
        violations.add("/owner", FieldCode::NotAllowed, NOT_VOUCHED);
    }
    let Some(owner) = owner else { return Err(violations.into()) };
    violations.into_result()?;
    app.until_committed(|| async {
        let (workspace, member) = new_workspace(app, name, owner.record.id);
        let view = WorkspaceView::of(workspace.clone(), app.settings());
        let command = Command::new("admin create-workspace", "workspace", Some(workspace.id.to_string()), Some(name));
        let command = command.within(workspace.id).after(&view);
        let writes = [Write::put(workspace, Expect::Absent), Write::put(member, Expect::Absent)];
        Ok((app.record_command(Changes::from_iter(writes), command).await?, view))
    })
    .await
}

/// Creates an API key; the answer contains the whole key.
pub async fn create_key(app: &App, workspace: WorkspaceId, input: &ApiKeyInput) -> Result<ApiKeyView, Error> {
    app.run(CreateApiKey).body(input.clone()).by(&Caller::Operator(Some(workspace))).await
}

/// Revokes an API key of any workspace. A key that is revoked already stays as it is.
///
/// A server that runs on the same database notices within a second.
pub async fn revoke_key(app: &App, id: ApiKeyId) -> Result<ApiKeyView, Error> {
    app.until_committed(|| async {
        let Stored { record: mut key, revision } = app.store().api_key_anywhere(id).await?.ok_or(Error::NotFound)?;
        let mut changes = Changes::default();
        if key.revoked_at.is_none() {
            let command = Command::new("admin revoke-key", "api_key", Some(key.id.to_string()), Some(&key.name));
            let command = command.within(key.workspace_id).before(&ApiKeyView::of(key.clone(), None));
            key.revoked_at = Some(app.now());
            changes.push(Write::put(key.clone(), Expect::Revision(revision)));
            changes = app.record_command(changes, command.after(&ApiKeyView::of(key.clone(), None))).await?;
        }
        let last_used_at = app.store().api_key_last_used(key.workspace_id, key.id).await?;
        Ok((changes, ApiKeyView::of(key, last_used_at)))
    })
    .await
}

/// Lists the API keys of a workspace, revoked ones included.
pub async fn list_keys(app: &App, workspace: WorkspaceId, page: &PageQuery) -> Result<Page<ApiKeyView>, Error> {
    app.store().workspace(workspace).await?.ok_or(Error::NotFound)?;
    app.run(ListApiKeys).query(page.clone()).by(&Caller::Operator(Some(workspace))).await
}

/// Results of setting up `messaging dev`. A secret is present if this call created it: it cannot be read again.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DevSetup {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// Sender of a verified domain.
    pub from_email: String,
    /// Email address of the user who signs in to the console.
    pub console_email: String,
    /// Password, if the user was created now.
    pub console_password: Option<Secret>,
    /// Key with scope `*`, if the workspace was created now.
    pub api_key: Option<Secret>,
}

/// Sets up a workspace to try things out: the user `admin@localhost`, who is an operator, the workspace "Dev", a key
/// with scope `*`, the verified sending domain `sandbox.test`, and the email channel on `sandbox`.
///
/// Everything is created together or not at all. Where the user is a member of a workspace already, nothing is created,
/// and the oldest one named "Dev", or else the oldest, is returned.
pub async fn prepare_dev(app: &App) -> Result<DevSetup, Error> {
    let console_password = random_password(app);
    let (prefix, secret) = generate(app.entropy());
    let known = app.store().user_by_email(DEV_EMAIL).await?.is_some();
    let password_hash = if known { None } else { Some(app.hash_password(console_password.clone()).await?) };
    let keys = if is_prepared(app).await? { None } else { Some(app.make_dkim_keys(ALGORITHMS).await?) };
    app.until_committed(|| async {
        let mut changes = Changes::default();
        let mut setup = DevSetup {
            workspace_id: WorkspaceId::from_bytes([0; 16]),
            from_email: DEV_SENDER.to_owned(),
            console_email: DEV_EMAIL.to_owned(),
            console_password: None,
            api_key: None,
        };
        let user = if let Some(Stored { record: mut user, revision }) = app.store().user_by_email(DEV_EMAIL).await? {
            // The user was created, or lost the right, without regard to this use.
            if !user.operator {
                user.operator = true;
                changes.push(Write::put(user.clone(), Expect::Revision(revision)));
            }
            user
        } else {
            let user = User { password_hash: password_hash.clone(), operator: true, ..new_user(app, DEV_EMAIL) };
            changes.push(Write::put(user.clone(), Expect::Absent));
            setup.console_password = Some(console_password.clone().into());
            user
        };
        if let Some(workspace) = dev_workspace(app, user.id).await? {
            setup.workspace_id = workspace;
            return Ok((changes.of_setup(), setup));
        }
        let (workspace, member) = new_workspace(app, DEV_WORKSPACE, user.id);
        setup.workspace_id = workspace.id;
        setup.api_key = Some(format!("{prefix}.{secret}").into());
        let now = workspace.created_at;
        let key = ApiKey {
            id: app.new_id(now),
            workspace_id: workspace.id,
            name: DEV_WORKSPACE.to_owned(),
            prefix: prefix.clone(),
            secret_digest: Digest::of(&secret),
            scopes: vec![Scope::All],
            rate_limit: DEFAULT_RATE_LIMIT,
            ip_allowlist: Vec::new(),
            created_at: now,
            expires_at: None,
            revoked_at: None,
            rotated_from: None,
            replaced_by: None,
            warned_days: None,
        };
        changes.push(Write::put(workspace, Expect::Absent));
        changes.push(Write::put(member, Expect::Absent));
        changes.push(Write::put(key, Expect::Absent));
        changes.extend(sandbox(app, setup.workspace_id, keys.as_ref(), now));
        Ok((changes.of_setup(), setup))
    })
    .await
}

/// Lets a workspace send email to the sandbox: a verified domain, whose mail is signed with a key of each of these
/// algorithms, and the channel's settings. Changes nothing in a workspace that has the domain. `messaging dev` does
/// this by itself; programs call it for tests and trials.
pub async fn prepare_sandbox(app: &App, workspace: WorkspaceId, algorithms: &[Algorithm]) -> Result<(), Error> {
    let keys = app.make_dkim_keys(algorithms).await?;
    app.until_committed(|| async {
        let known = app.store().domain_by_name(workspace, SANDBOX_DOMAIN).await?;
        let writes = known.is_none().then(|| sandbox(app, workspace, Some(&keys), app.now()));
        Ok((writes.into_iter().flatten().collect(), ()))
    })
    .await
}

/// Returns the writes of a verified domain and of the channel that carries its mail to the sandbox.
fn sandbox(app: &App, workspace: WorkspaceId, keys: Option<&NewKeys>, now: Timestamp) -> [Write; 2] {
    let mut domain = SendingDomain::new(app.new_id(now), workspace, SANDBOX_DOMAIN, now);
    domain.dkim = keys.iter().flat_map(|keys| app.seal_dkim_keys(keys, domain.id, now)).collect();
    verification::publish(&mut domain, now);
    let email = ChannelSettings {
        workspace_id: workspace,
        channel: Channel::Email,
        provider: SANDBOX.to_owned(),
        config: serde_json::Map::new(),
        registration: None,
    };
    [Write::put(domain, Expect::Absent), Write::put(email, Expect::Absent)]
}

fn new_user(app: &App, email: &str) -> User {
    let now = app.now();
    User::new(app.new_id(now), email.to_owned(), now)
}

fn new_workspace(app: &App, name: &str, owner: UserId) -> (Workspace, Member) {
    let now = app.now();
    let workspace = Workspace {
        id: app.new_id(now),
        name: name.to_owned(),
        timezone: "UTC".to_owned(),
        opt_out_keywords: Vec::new(),
        request_log: RequestLog::default(),
        require_second_factor: false,
        readers: ReaderSettings::default(),
        end: None,
        created_at: now,
    };
    let member = Member::active(workspace.id, owner, Role::Owner, now);
    (workspace, member)
}

/// Returns the workspace of `messaging dev`, or the user's oldest if it was renamed.
async fn dev_workspace(app: &App, user: UserId) -> Result<Option<WorkspaceId>, Error> {
    let (named, oldest) = oldest_workspaces(app, user, DEV_WORKSPACE).await?;
    Ok(named.or(oldest))
}

/// Returns the oldest workspace of this name that a user belongs to, and the oldest of any name.
async fn oldest_workspaces(
    app: &App,
    user: UserId,
    name: &str,
) -> Result<(Option<WorkspaceId>, Option<WorkspaceId>), Error> {
    let (mut named, mut oldest) = (None, None);
    let mut page = PageRequest { after: None, limit: 200 };
    loop {
        let slice = app.store().workspaces_of(user, MemberStatus::Active, page).await?;
        // The newest come first.
        for (workspace, _) in slice.items {
            oldest = Some(workspace.id);
            if workspace.name == name {
                named = oldest;
            }
        }
        match slice.next {
            Some(next) => page.after = Some(next),
            None => return Ok((named, oldest)),
        }
    }
}

/// Returns true if the workspace of an earlier start exists, so that no keys have to be made.
async fn is_prepared(app: &App) -> Result<bool, Error> {
    let Some(user) = app.store().user_by_email(DEV_EMAIL).await? else { return Ok(false) };
    Ok(dev_workspace(app, user.record.id).await?.is_some())
}

fn check_password(violations: &mut Violations, password: &str) {
    check_length(violations, "/password", password, 1, password::MAX_LENGTH);
    password::check_new(violations, "/password", password);
}

fn check_length(violations: &mut Violations, pointer: &str, text: &str, least: u64, most: u64) {
    match text.chars().count() as u64 {
        _ if text.contains('\0') => violations.add(pointer, FieldCode::InvalidFormat, "must not contain U+0000"),
        0 => violations.add(pointer, FieldCode::Required, "must not be empty"),
        length if length < least => {
            violations.add(pointer, FieldCode::TooShort, format_args!("must have at least {least} characters"));
        }
        length if length > most => {
            violations.add(pointer, FieldCode::TooLong, format_args!("must have at most {most} characters"));
        }
        _ => {}
    }
}
