//! Users, sessions, workspaces, memberships.

use async_trait::async_trait;

use super::{PageRequest, Slice, StoreError, Stored};
use crate::domain::security::account::{Member, MemberStatus, Session, Ticket, User, Workspace};
use crate::domain::security::digest::Digest;
use crate::ids::{SessionId, UserId, WorkspaceId};
use crate::time::Timestamp;

/// A page of rows that was removed with a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemovedRows {
    /// The table that they were in.
    pub table: &'static str,
    /// Number of rows that were removed.
    pub rows: u64,
}

/// Reads of accounts.
#[async_trait]
pub trait Accounts {
    /// A user by id.
    async fn user(&self, id: UserId) -> Result<Option<Stored<User>>, StoreError>;
    /// A user by email, lower case.
    async fn user_by_email(&self, email: &str) -> Result<Option<Stored<User>>, StoreError>;
    /// The user that a person at a single sign-on provider is joined to, by the provider's issuer and the person's subject.
    async fn user_by_identity(&self, issuer: &str, subject: &str) -> Result<Option<Stored<User>>, StoreError>;
    /// A session by the digest of its token, expired or not.
    async fn session(&self, token: &Digest) -> Result<Option<Session>, StoreError>;
    /// The sessions that a user has opened under this [`password_version`](User::password_version) and that last beyond
    /// `now`, newest first, each with its last use.
    async fn sessions_of(
        &self,
        user: UserId,
        password_version: u32,
        now: Timestamp,
        page: PageRequest,
    ) -> Result<Slice<(Session, Timestamp)>, StoreError>;
    /// A session by its user and id, expired or not.
    async fn session_by_id(&self, user: UserId, id: SessionId) -> Result<Option<Session>, StoreError>;
    /// A ticket by its digest, expired or not.
    async fn ticket(&self, digest: &Digest) -> Result<Option<Ticket>, StoreError>;
    /// All users of the installation, newest first.
    async fn users(&self, page: PageRequest) -> Result<Slice<User>, StoreError>;
    /// All workspaces of the installation, newest first.
    async fn workspaces(&self, page: PageRequest) -> Result<Slice<Workspace>, StoreError>;
    /// A workspace.
    async fn workspace(&self, id: WorkspaceId) -> Result<Option<Stored<Workspace>>, StoreError>;
    /// The workspaces under deletion, those that are being removed among them.
    async fn ending_workspaces(&self) -> Result<Vec<WorkspaceId>, StoreError>;
    /// Removes up to `limit` rows of the `step`th kind, from 0 on, of a workspace that is being removed: of each kind a page
    /// after another until one has none, then of the next. `None` when there is no such kind. Nothing is removed of any
    /// other workspace. A power cut may undo it until the next commit.
    async fn remove_rows_of(
        &self,
        workspace: WorkspaceId,
        step: usize,
        limit: usize,
    ) -> Result<Option<RemovedRows>, StoreError>;
    /// The workspaces in which a user has memberships of this status, newest workspace first.
    async fn workspaces_of(
        &self,
        user: UserId,
        status: MemberStatus,
        page: PageRequest,
    ) -> Result<Slice<(Workspace, Member)>, StoreError>;
    /// One membership.
    async fn member(&self, workspace: WorkspaceId, user: UserId) -> Result<Option<Stored<Member>>, StoreError>;
    /// The members of a workspace with their users, newest user first.
    async fn members(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<(Member, User)>, StoreError>;
    /// Number of active owners of the workspace.
    async fn owner_count(&self, workspace: WorkspaceId) -> Result<u64, StoreError>;
}
