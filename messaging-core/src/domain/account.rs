//! Users, their sessions, workspaces and memberships, as stored.
//!
//! Contract sections 2.3 and 3.

use std::net::IpAddr;

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::domain::digest::Digest;
use crate::ids::{SessionId, UserId, WorkspaceId};
use crate::scope::Role;
use crate::time::{self, Timestamp};

/// A person who signs in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// Its id.
    pub id: UserId,
    /// The sign-in name, lower case; unique in the installation.
    pub email: String,
    /// A display name.
    pub name: Option<String>,
    /// The argon2id hash in PHC form; `None` until a password is set, and such a user cannot sign in.
    pub password_hash: Option<String>,
    /// How often the password was set after the user was created. Sessions opened under another one are over.
    #[serde(default)]
    pub password_version: u32,
    /// When it was created.
    pub created_at: Timestamp,
}

/// A signed-in session. The token itself is known to its holder alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Names it where its holder looks at all of their sessions.
    pub id: SessionId,
    /// SHA-256 of the token.
    pub token_digest: Digest,
    /// Who signed in.
    pub user_id: UserId,
    /// The user's [`password_version`](User::password_version) that the session was opened under.
    #[serde(default)]
    pub password_version: u32,
    /// When it was made.
    pub created_at: Timestamp,
    /// Until when the token works.
    pub expires_at: Timestamp,
    /// From where it was opened, where that is known.
    #[serde(default)]
    pub ip: Option<IpAddr>,
    /// The program that it was opened with, as it calls itself; at most 200 characters.
    #[serde(default)]
    pub user_agent: Option<String>,
}

/// What opens one session for somebody without their password. The ticket itself is known to its holder alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// SHA-256 of the ticket.
    pub digest: Digest,
    /// Who signs in with it.
    pub user_id: UserId,
    /// The user's [`password_version`](User::password_version) when it was made; under another one it is void.
    pub password_version: u32,
    /// The workspace whose administrator made it; `None` for one that the operator made.
    pub workspace_id: Option<WorkspaceId>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Until when it works.
    pub expires_at: Timestamp,
}

/// A tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    /// Its id.
    pub id: WorkspaceId,
    /// 1 to 200 characters.
    pub name: String,
    /// An IANA time zone name.
    pub timezone: String,
    /// Further words of which one alone, as a text message or on WhatsApp, asks for nothing more to be sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opt_out_keywords: Vec<String>,
    /// When it was created.
    pub created_at: Timestamp,
}

impl Workspace {
    /// Its time zone; UTC where the name is none any more.
    pub fn zone(&self) -> TimeZone {
        time::zone(&self.timezone).map_or(TimeZone::UTC, |(zone, _)| zone)
    }
}

/// A user's membership in a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The member.
    pub user_id: UserId,
    /// What the member may do.
    pub role: Role,
    /// When the membership began.
    pub created_at: Timestamp,
}
