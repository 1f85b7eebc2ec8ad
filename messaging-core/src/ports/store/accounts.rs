//! Users, sessions, workspaces, memberships.

use async_trait::async_trait;

use super::{PageRequest, Slice, StoreError, Stored};
use crate::domain::account::{Member, Session, User, Workspace};
use crate::domain::digest::Digest;
use crate::ids::{UserId, WorkspaceId};

/// Reads of accounts.
#[async_trait]
pub trait Accounts {
    /// A user by id.
    async fn user(&self, id: UserId) -> Result<Option<Stored<User>>, StoreError>;
    /// A user by email, lower case.
    async fn user_by_email(&self, email: &str) -> Result<Option<Stored<User>>, StoreError>;
    /// A session by the digest of its token, expired or not.
    async fn session(&self, token: &Digest) -> Result<Option<Session>, StoreError>;
    /// A workspace.
    async fn workspace(&self, id: WorkspaceId) -> Result<Option<Stored<Workspace>>, StoreError>;
    /// The workspaces a user is a member of, newest workspace first.
    async fn workspaces_of(&self, user: UserId, page: PageRequest) -> Result<Slice<(Workspace, Member)>, StoreError>;
    /// One membership.
    async fn member(&self, workspace: WorkspaceId, user: UserId) -> Result<Option<Stored<Member>>, StoreError>;
    /// The members of a workspace with their users, newest user first.
    async fn members(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<(Member, User)>, StoreError>;
    /// How many owners the workspace has.
    async fn owner_count(&self, workspace: WorkspaceId) -> Result<u64, StoreError>;
}
