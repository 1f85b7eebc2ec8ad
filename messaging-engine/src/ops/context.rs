//! The call that an operation runs for, and what it reads from and writes to while it decides.

use std::fmt;
use std::net::IpAddr;

use bytes::Bytes;
use messaging_core::changes::{Changes, Write};
use messaging_core::domain::security::account::User;
use messaging_core::domain::security::redaction::Redactor;
use messaging_core::ids::{Id, WorkspaceId};
use messaging_core::input::{UnknownMembers, schema_of};
use messaging_core::patch::Patch;
use messaging_core::ports::Store;
use messaging_core::scope::{Access, Scope};
use messaging_core::time::Timestamp;
use messaging_core::violation::{FieldCode, Violations};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::SemaphorePermit;

use crate::app::App;
use crate::caller::Caller;
use crate::error::Error;
use crate::ops::audit_notes::AuditNotes;
use crate::ops::progress::Progress;
use crate::ops::session_cookie::SessionCookie;
use crate::services::acceptance::NewFile;
use crate::services::auditing::actor_of;

/// Rate limit of a caller. A request that is worth several tokens takes more than the one that every request takes.
pub trait Quota: fmt::Debug + Send + Sync {
    /// Raises the number of tokens that this request has taken to `tokens` in all. An operation that runs again after a
    /// conflict calls this again, which takes no token twice. Fails with [`Error::RateLimited`] and takes none where
    /// there are not enough.
    fn raise_to(&self, tokens: u32) -> Result<(), Error>;
}

/// A call before it is decoded; what a front end hands to [`Admitted::run`](crate::Admitted::run).
#[derive(Debug, Clone, Default)]
pub struct Request<'a> {
    /// The path below the version prefix, as it was called: part of an Idempotency-Key's scope.
    pub path: &'a str,
    /// The parameters of the path, percent-decoded.
    pub path_parameters: Vec<(String, String)>,
    /// The query string without `?`.
    pub query: &'a str,
    /// The body.
    pub body: Bytes,
    /// Idempotency-Key header as sent.
    pub idempotency_key: Option<&'a [u8]>,
    /// IP address of the caller, if any.
    pub client_ip: Option<IpAddr>,
    /// User-Agent header.
    pub user_agent: Option<&'a str>,
    /// Id of the request, as in `X-Request-Id`.
    pub request_id: Option<&'a str>,
    /// True if the caller asks for CSV: `Accept: text/csv`.
    pub wants_csv: bool,
    /// True if unknown members are ignored: `Prefer: handling=lenient` (contract section 1.1).
    pub lenient: bool,
    /// The caller's rate limit, for requests that are worth several tokens; `None` where callers are not limited.
    pub quota: Option<&'a dyn Quota>,
}

/// Context of one run of an operation.
#[derive(Debug)]
pub struct Context<'a> {
    /// The application.
    pub app: &'a App,
    /// Caller that the operation runs for.
    pub caller: &'a Caller,
    /// Time when the operation began; the one time of everything it writes.
    pub now: Timestamp,
    /// Changes of the store that are committed once the operation has succeeded.
    pub changes: Changes,
    /// Faults of the request so far. An operation adds those that it finds by looking things up; see
    /// [`Operation::LOOKS_UP`](crate::ops::Operation::LOOKS_UP).
    pub violations: Violations,
    /// The body as it was received, if it came as bytes.
    pub body: Option<Bytes>,
    /// IP address of the caller, if any.
    pub client_ip: Option<IpAddr>,
    /// User-Agent header.
    pub(super) user_agent: Option<&'a str>,
    /// Id of the request, as in `X-Request-Id`.
    pub(super) request_id: Option<&'a str>,
    /// True if the caller asks for CSV.
    pub(super) wants_csv: bool,
    /// Data for the operation's entry in audit logs that its answer does not show.
    pub(super) audit: AuditNotes,
    /// Instruction to a browser about the cookie of its session, if the operation gives one.
    pub(super) session_cookie: Option<SessionCookie>,
    /// Files that [`Context::changes`] name. They are stored just before the commit, and removed should it fail.
    pub(super) files: Vec<NewFile>,
    /// Progress of a request that is done in parts, with its Idempotency-Key.
    pub(super) progress: Progress<'a>,
    /// True if unknown members of the request are ignored: `Prefer: handling=lenient`.
    pub(super) lenient: bool,
    /// The caller's rate limit; `None` where callers are not limited.
    pub(super) quota: Option<&'a dyn Quota>,
    /// Permit to commit a long list, held until the commit is done: only few such commits run at a time.
    pub(super) commit_permit: Option<SemaphorePermit<'a>>,
    /// The [`Operation::ID`](crate::ops::Operation::ID) of the operation.
    pub(super) operation: &'static str,
    /// Returns the access that an operation requires, by its id; `None` for an unknown id.
    pub(super) access_of: fn(&str) -> Option<Access>,
    /// Workspace that the call is about, if any.
    pub(super) workspace: Option<WorkspaceId>,
    /// The path as in [`Request::path`]; cursors are bound to it.
    pub(super) path: &'a str,
    /// The query string as in [`Request::query`]; cursors are bound to its filters.
    pub(super) query: &'a str,
}

impl<'a> Context<'a> {
    /// Returns the workspace that the call is about. Fails with [`Error::WorkspaceForbidden`] if there is none.
    pub fn workspace(&self) -> Result<WorkspaceId, Error> {
        self.workspace.ok_or(Error::WorkspaceForbidden)
    }

    /// Returns the treatment of unknown members for items that are parsed one by one: the same as for a body whose
    /// answer is `R`.
    pub(super) fn unknown_members<R: JsonSchema + 'static>(&self) -> UnknownMembers {
        UnknownMembers { ignored: self.lenient, resource: Some(schema_of::<R>), ..UnknownMembers::default() }
    }

    /// The store, for reading. Writes go into [`Context::changes`].
    pub fn store(&self) -> &'a dyn Store {
        self.app.store()
    }

    /// Takes tokens of the caller's rate limit, `tokens` in all for this request; see [`Quota::raise_to`].
    pub(super) fn take_tokens_in_all(&self, tokens: usize) -> Result<(), Error> {
        let tokens = u32::try_from(tokens).unwrap_or(u32::MAX);
        self.quota.map_or(Ok(()), |quota| quota.raise_to(tokens))
    }

    /// A new id.
    pub fn new_id<I: Id>(&self) -> I {
        self.app.new_id(self.now)
    }

    /// Adds a write to [`Context::changes`].
    pub fn change(&mut self, write: Write) {
        self.changes.push(write);
    }

    /// Adds a violation if `sent` would change a member that cannot be changed. A member that is absent or has the
    /// current value is accepted, so that a resource can be sent back as it was read.
    pub(super) fn refuse_change_of(&mut self, pointer: &str, sent: &Patch<Value>, current: impl Serialize) {
        let is_kept = sent.is_absent() || sent.as_value() == serde_json::to_value(current).ok().as_ref();
        if !is_kept {
            self.violations.add(pointer, FieldCode::Immutable, "cannot be changed");
        }
    }

    /// Notes the resource before the operation, for the audit log: for one that no operation reads.
    pub(super) fn note_before(&mut self, resource: &impl Serialize) {
        self.audit.before = serde_json::to_value(resource).ok();
    }

    /// Notes the person who signed in.
    pub(super) fn note_user(&mut self, user: &User) {
        self.audit.user = Some((user.id, actor_of(user)));
    }

    /// Notes the workspace whose log the operation belongs to.
    pub(super) const fn note_workspace(&mut self, workspace: WorkspaceId) {
        self.audit.workspace = Some(workspace);
    }

    /// Returns true if the caller sees email addresses and phone numbers in clear (contract section 2.4).
    pub fn sees_addresses(&self) -> bool {
        self.workspace.is_some_and(|workspace| self.caller.covers(workspace, Scope::PiiRead))
    }

    /// Redactor for this caller. Every address, and every text that others wrote, goes through it before it is shown.
    pub fn redactor(&self) -> Redactor {
        Redactor::new(self.sees_addresses())
    }
}
