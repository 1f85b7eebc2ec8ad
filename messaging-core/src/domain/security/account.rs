//! Users, their sessions, workspaces and memberships, as stored.
//!
//! Contract sections 2.3 and 3.

use std::net::IpAddr;
use std::time::Duration;

use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::campaign::archive::ReaderSettings;
use crate::domain::security::digest::Digest;
use crate::domain::security::request_log::RequestLog;
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
    /// Number of times that the password was set after the user was created. Sessions opened under another number have
    /// ended.
    pub password_version: u32,
    /// True if the user may administer the whole installation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub operator: bool,
    /// True if the user has a confirmed second factor, which every sign-in asks for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub second_factor: bool,
    /// Workspace that first invited this person. Sessions and the password then come from links that administrators of
    /// workspaces made, so they prove nothing to other workspaces; `None` once the operator has vouched for the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<WorkspaceId>,
    /// True if the user has signed in by a ticket of the workspace that created it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub signed_in: bool,
    /// When it was created.
    pub created_at: Timestamp,
}

impl User {
    /// Returns a user who has not signed in yet and has no password.
    pub const fn new(id: UserId, email: String, created_at: Timestamp) -> Self {
        Self {
            id,
            email,
            name: None,
            password_hash: None,
            password_version: 0,
            operator: false,
            second_factor: false,
            created_by: None,
            signed_in: false,
            created_at,
        }
    }

    /// True if a ticket of a workspace may set the first password: the workspace created the user, and nobody has ever
    /// signed in as them. Memberships in other workspaces are for the caller to check (contract section 2.3).
    pub fn is_first_opened_by(&self, workspace: WorkspaceId) -> bool {
        self.created_by == Some(workspace) && !self.signed_in && self.password_hash.is_none()
    }

    /// Returns the user after the operator has vouched for the person. If a workspace had created the user, earlier
    /// sessions end.
    #[must_use]
    pub fn vouched_for(self) -> Self {
        let password_version = self.password_version.wrapping_add(u32::from(self.created_by.is_some()));
        Self { created_by: None, password_version, ..self }
    }
}

/// A signed-in session. The token itself is known to its holder alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Id of the session, for listings of its holder's sessions.
    pub id: SessionId,
    /// SHA-256 of the token.
    pub token_digest: Digest,
    /// Id of the user who signed in and who acts through the session.
    pub user_id: UserId,
    /// The user's [`password_version`](User::password_version) that the session was opened under.
    pub password_version: u32,
    /// When it was made.
    pub created_at: Timestamp,
    /// Time at which the token expires.
    pub expires_at: Timestamp,
    /// Address from which it was opened, if known.
    pub ip: Option<IpAddr>,
    /// Program that opened it, as it names itself; at most 200 characters.
    pub user_agent: Option<String>,
}

/// A ticket that opens one session for a user without their password. The ticket itself is known to its holder alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// SHA-256 of the ticket.
    pub digest: Digest,
    /// Id of the user that the ticket signs in.
    pub user_id: UserId,
    /// The user's [`password_version`](User::password_version) when it was made; a ticket of the operator is void under
    /// another one.
    pub password_version: u32,
    /// The invitation that it opens; `None` for one that the operator made.
    pub invitation: Option<TicketInvitation>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Time at which it expires.
    pub expires_at: Timestamp,
}

/// The membership that a ticket of an administrator is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketInvitation {
    /// The workspace whose administrator made the ticket.
    pub workspace_id: WorkspaceId,
    /// The member's role when it was made; under a higher one the ticket is void.
    pub role: Role,
    /// Highest role that the administrator could give.
    pub up_to: Role,
}

/// The scheduled deletion of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceEnd {
    /// Time at which all data of the workspace is removed; until then it can be restored.
    pub deletes_at: Timestamp,
    /// Time at which the removal of rows and files began: the workspace no longer exists for anybody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removing_since: Option<Timestamp>,
}

impl WorkspaceEnd {
    /// Time between the request to delete a workspace and its removal (contract section 3).
    pub const GRACE: Duration = Duration::from_hours(7 * 24);

    /// Returns the deletion of a workspace that is due at a time.
    pub const fn at(deletes_at: Timestamp) -> Self {
        Self { deletes_at, removing_since: None }
    }

    /// True until the moment of the removal, while the workspace can be restored.
    pub fn is_revocable(&self, now: Timestamp) -> bool {
        self.removing_since.is_none() && now < self.deletes_at
    }
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
    /// Further words that opt out of text messages and WhatsApp, as the only word of a message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opt_out_keywords: Vec<String>,
    /// The requests of the API that are logged.
    #[serde(default, skip_serializing_if = "RequestLog::is_default")]
    pub request_log: RequestLog,
    /// True if members without a second factor have no access.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub require_second_factor: bool,
    /// Settings for the pages that recipients see.
    #[serde(default, skip_serializing_if = "ReaderSettings::is_default")]
    pub readers: ReaderSettings,
    /// Scheduled deletion; `None` unless there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<WorkspaceEnd>,
    /// When it was created.
    pub created_at: Timestamp,
}

impl Workspace {
    /// Returns the time zone; UTC if the name is no longer in the database.
    pub fn zone(&self) -> TimeZone {
        time::zone(&self.timezone).map_or(TimeZone::UTC, |(zone, _)| zone)
    }
}

/// Status of a membership, by whether the person has accepted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MemberStatus {
    /// Somebody else added the person, who has not accepted: the membership gives no access.
    Invited,
    /// The person has accepted.
    Active,
}

/// A user's membership in a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The member.
    pub user_id: UserId,
    /// Role of the member in the workspace, which decides what the member may do.
    pub role: Role,
    /// Status of the membership, by whether the person has accepted.
    pub status: MemberStatus,
    /// Sign-in name of the user who invited the person; `None` for the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invited_by: Option<String>,
    /// Highest role that the maker of the ticket could give with which the membership was accepted; `None` if no ticket
    /// was needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_to: Option<Role>,
    /// True if groups of a single sign-on provider gave the role: they may change and end the membership.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_groups: bool,
    /// When the person was added.
    pub created_at: Timestamp,
}

impl Member {
    /// Returns a membership that is active from its beginning.
    pub const fn active(workspace_id: WorkspaceId, user_id: UserId, role: Role, created_at: Timestamp) -> Self {
        let status = MemberStatus::Active;
        Self { workspace_id, user_id, role, status, invited_by: None, up_to: None, from_groups: false, created_at }
    }

    /// True for an owner who has accepted: a workspace keeps one.
    pub fn is_active_owner(&self) -> bool {
        self.role == Role::Owner && self.is_active()
    }

    /// True once the person has accepted.
    pub fn is_active(&self) -> bool {
        self.status == MemberStatus::Active
    }

    /// Returns the membership with another role. A role above the highest that the maker of the accepted ticket could
    /// give makes it an invitation again, because nobody who could give it knows that the person is who they say;
    /// `user` is that person. A changed role counts as given by hand from then on.
    #[must_use]
    pub fn with_role(self, role: Role, user: &User) -> Self {
        let is_vouched = user.created_by.is_none() || self.up_to.is_none_or(|most| role <= most);
        let status = if is_vouched { self.status } else { MemberStatus::Invited };
        Self { from_groups: self.from_groups && role == self.role, role, status, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Id as _;

    #[test]
    fn a_role_beyond_what_the_ticket_could_give_is_an_invitation() {
        let (workspace, at) = (WorkspaceId::from_bytes([1; 16]), Timestamp::from_millis(0));
        let free = User::new(UserId::from_bytes([2; 16]), "ann@example.com".to_owned(), at);
        let made = User { created_by: Some(workspace), signed_in: true, ..free.clone() };
        let of = |up_to| Member { up_to, ..Member::active(workspace, free.id, Role::Editor, at) };
        let status = |up_to, role, user: &User| of(up_to).with_role(role, user).status;
        assert_eq!(status(Some(Role::Admin), Role::Admin, &made), MemberStatus::Active);
        assert_eq!(status(Some(Role::Admin), Role::Owner, &made), MemberStatus::Invited);
        assert_eq!(status(Some(Role::Owner), Role::Owner, &made), MemberStatus::Active);
        assert_eq!(status(Some(Role::Admin), Role::Owner, &free), MemberStatus::Active);
        assert_eq!(status(None, Role::Owner, &made), MemberStatus::Active);
    }

    #[test]
    fn a_role_that_somebody_changes_is_given_by_hand() {
        let (workspace, at) = (WorkspaceId::from_bytes([1; 16]), Timestamp::from_millis(0));
        let user = User::new(UserId::from_bytes([2; 16]), "ann@example.com".to_owned(), at);
        let member = Member { from_groups: true, ..Member::active(workspace, user.id, Role::Editor, at) };
        assert!(member.clone().with_role(Role::Editor, &user).from_groups);
        assert!(!member.with_role(Role::Viewer, &user).from_groups);
    }

    #[test]
    fn a_first_password_is_for_the_workspace_that_created_the_user() {
        let (workspace, other) = (WorkspaceId::from_bytes([1; 16]), WorkspaceId::from_bytes([3; 16]));
        let user = User::new(UserId::from_bytes([2; 16]), "ann@example.com".to_owned(), Timestamp::from_millis(0));
        let made = User { created_by: Some(workspace), ..user.clone() };
        assert!(made.is_first_opened_by(workspace) && !made.is_first_opened_by(other));
        assert!(!user.is_first_opened_by(workspace));
        assert!(!User { signed_in: true, ..made.clone() }.is_first_opened_by(workspace));
        let freed = made.vouched_for();
        assert_eq!((freed.created_by, freed.password_version), (None, 1), "what was opened before is over");
        assert_eq!(user.vouched_for().password_version, 0);
    }
}
