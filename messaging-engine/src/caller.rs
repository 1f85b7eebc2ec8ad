//! Callers and their rights: checks 2 to 7 of contract section 1.3.

use std::net::IpAddr;
use std::sync::Arc;

use messaging_core::domain::security::account::User;
use messaging_core::domain::security::api_key::ApiKey;
use messaging_core::domain::security::digest::Digest;
use messaging_core::ids::{Id, SessionId, WorkspaceId};
use messaging_core::scope::{Access, Role, Scope};
use messaging_core::time::Timestamp;

use crate::error::Error;

/// Requests a minute that a session may make (contract section 1.6).
const SESSION_RATE_LIMIT: u32 = 600;

/// Identity that a call is made with: an API key, a session, the operator, or none.
#[derive(Debug, Clone)]
pub enum Caller {
    /// A caller without credentials.
    Anonymous,
    /// A program with an API key.
    Key(Arc<ApiKey>),
    /// A person.
    Session(Arc<SignedIn>),
    /// A caller with direct access to the database: the command line in its own process, an embedder. May do everything
    /// in the workspace it names, or in every one where it names none.
    Operator(Option<WorkspaceId>),
}

/// A person with a session.
#[derive(Debug, Clone)]
pub struct SignedIn {
    /// The session.
    pub id: SessionId,
    /// Digest of the token, which identifies the session.
    pub token_digest: Digest,
    /// Time when the session ends.
    pub expires_at: Timestamp,
    /// The person.
    pub user: User,
    /// Workspace that the call names, with the person's role there; `None` if the call names none and if the person is
    /// no member. [`App::admit`](crate::App::admit) looks it up for every call.
    pub membership: Option<(WorkspaceId, Role)>,
}

impl SignedIn {
    /// The person's role in the workspace that the call names; `None` in every other.
    pub fn role_in(&self, workspace: WorkspaceId) -> Option<Role> {
        self.membership.filter(|(id, _)| *id == workspace).map(|(_, role)| role)
    }
}

impl Caller {
    /// Id by which rate limits and Idempotency-Keys are counted: the key's, the user's or, for the operator, the
    /// workspace's; `None` for an anonymous caller.
    pub fn credential(&self) -> Option<[u8; 16]> {
        match self {
            Self::Key(key) => Some(key.id.to_bytes()),
            Self::Session(session) => Some(session.user.id.to_bytes()),
            Self::Operator(workspace) => Some(workspace.map_or([0; 16], Id::to_bytes)),
            Self::Anonymous => None,
        }
    }

    /// The one workspace that the caller belongs to or has named.
    pub fn workspace(&self) -> Option<WorkspaceId> {
        match self {
            Self::Anonymous => None,
            Self::Key(key) => Some(key.workspace_id),
            Self::Session(session) => session.membership.map(|(workspace, _)| workspace),
            Self::Operator(workspace) => *workspace,
        }
    }

    /// Requests a minute; `None` for callers that are not limited.
    pub fn rate_limit(&self) -> Option<u32> {
        match self {
            Self::Key(key) => Some(key.rate_limit),
            Self::Session(_) => Some(SESSION_RATE_LIMIT),
            Self::Anonymous | Self::Operator(_) => None,
        }
    }

    /// Returns true if calls from `address` are accepted (check 3).
    pub fn admits(&self, address: IpAddr) -> bool {
        match self {
            Self::Key(key) => key.admits(address),
            Self::Anonymous | Self::Session(_) | Self::Operator(_) => true,
        }
    }

    /// Returns true if the caller has a scope in a workspace.
    pub fn covers(&self, workspace: WorkspaceId, wanted: Scope) -> bool {
        match self {
            Self::Key(key) => key.workspace_id == workspace && key.covers(wanted),
            Self::Session(session) => session.role_in(workspace).is_some_and(|role| role.covers(wanted)),
            Self::Operator(_) => true,
            Self::Anonymous => false,
        }
    }

    /// Refuses a caller without a scope that only a part of the request needs; the error names the scope.
    pub(crate) fn needs(&self, workspace: WorkspaceId, wanted: Scope) -> Result<(), Error> {
        match self {
            caller if caller.covers(workspace, wanted) => Ok(()),
            Self::Session(_) => Err(Error::RoleLacks(wanted)),
            _ => Err(Error::ScopeRequired(wanted)),
        }
    }

    /// Checks the caller's right to an operation with this access, and returns the workspace that the call is about
    /// (checks 2, 5 to 7).
    ///
    /// A session is judged by [`SignedIn::membership`]; [`App::admit`](crate::App::admit) looks that up first.
    /// `in_path` is the path's workspace id where the path has one; `in_header` that of `X-Workspace-Id`.
    pub fn admit(
        &self,
        access: Access,
        in_path: Option<&str>,
        in_header: Option<&str>,
    ) -> Result<Option<WorkspaceId>, Error> {
        if access == Access::Public {
            return Ok(None);
        }
        match self {
            Self::Anonymous => Err(Error::MissingCredentials),
            Self::Operator(own) => match in_path.or(in_header) {
                Some(text) => match text.parse() {
                    Ok(named) if own.is_none_or(|own| own == named) => Ok(Some(named)),
                    _ => Err(Error::WorkspaceForbidden),
                },
                None => Ok(*own),
            },
            Self::Key(key) => admit_key(key, access, in_path),
            Self::Session(session) => admit_session(session, access, in_path, in_header),
        }
    }
}

fn admit_key(key: &ApiKey, access: Access, in_path: Option<&str>) -> Result<Option<WorkspaceId>, Error> {
    if in_path.is_some_and(|text| text.parse() != Ok(key.workspace_id)) {
        return Err(Error::WorkspaceForbidden);
    }
    let wanted: &[Scope] = match access {
        Access::Public | Access::AnyCredential => &[],
        Access::Session | Access::SessionRole(_) | Access::Operator => return Err(Error::SessionRequired),
        Access::Scope(scope) | Access::ScopeOrAdmin(scope) => &[scope],
        Access::Scopes(first, second) => &[first, second],
        Access::Administration => &[Scope::All],
    };
    match wanted.iter().find(|scope| !key.covers(**scope)) {
        Some(missing) => Err(Error::ScopeRequired(missing.in_refusal())),
        None => Ok(Some(key.workspace_id)),
    }
}

fn admit_session(
    session: &SignedIn,
    access: Access,
    in_path: Option<&str>,
    in_header: Option<&str>,
) -> Result<Option<WorkspaceId>, Error> {
    let wanted: &[Scope] = match access {
        // These operations are about the person, not about a workspace, unless the path names one.
        Access::Public | Access::AnyCredential | Access::Session if in_path.is_none() => return Ok(None),
        Access::Operator if session.user.operator => return Ok(None),
        Access::Operator => return Err(Error::OperatorRequired),
        Access::Scope(scope) => &[scope],
        Access::Scopes(first, second) => &[first, second],
        _ => &[],
    };
    let named = in_path.or(in_header).ok_or(Error::WorkspaceForbidden)?;
    let workspace: WorkspaceId = named.parse().map_err(|_| Error::WorkspaceForbidden)?;
    let role = session.role_in(workspace).ok_or(Error::WorkspaceForbidden)?;
    let least = match access {
        Access::SessionRole(least) => least,
        Access::Administration | Access::ScopeOrAdmin(_) => Role::Admin,
        _ => Role::Viewer,
    };
    if role < least || wanted.iter().any(|scope| !role.covers(*scope)) {
        return Err(Error::RoleForbidden);
    }
    Ok(Some(workspace))
}
