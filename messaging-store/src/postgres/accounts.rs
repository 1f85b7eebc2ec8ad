//! Users, sessions, workspaces, memberships.

use async_trait::async_trait;
use messaging_core::changes::Expect;
use messaging_core::domain::account::{Member, MemberStatus, Session, Ticket, User, Workspace};
use messaging_core::domain::digest::Digest;
use messaging_core::ids::{Id as _, SessionId, UserId, WorkspaceId};
use messaging_core::ports::store::{Accounts, PageRequest, RemovedRows, Slice, StoreError, Stored};
use messaging_core::time::Timestamp;

use super::PostgresStore;
use super::fault::Fault;
use super::query::params;
use super::row::{below_id, count, document, one_more, record, revision_param, slice, stored, time, uuid};
use super::transaction::Transaction;
use super::workspace_end;

pub(super) fn put_user(transaction: &mut Transaction, user: &User, expect: Expect) -> Result<(), Fault> {
    let (id, doc) = (uuid(user.id), document(user)?);
    match expect {
        Expect::Absent => transaction.run(
            "INSERT INTO users (id, email, revision, doc) VALUES ($1, $2, 1, $3)",
            params![id, user.email.clone(), doc],
        ),
        Expect::Revision(revision) => transaction.run_one(
            "UPDATE users SET email = $2, doc = $3, revision = revision + 1 WHERE id = $1 AND revision = $4",
            params![id, user.email.clone(), doc, revision_param(revision)],
        ),
    }
    Ok(())
}

/// Removes a user with what opens something for them.
pub(super) fn delete_user(transaction: &mut Transaction, user: UserId, revision: u32) {
    const OF_USER: [&str; 3] = [
        "DELETE FROM sessions WHERE user_id = $1",
        "DELETE FROM members WHERE user_id = $1",
        "DELETE FROM replies WHERE credential = $1",
    ];
    for sql in OF_USER {
        transaction.run(sql, params![uuid(user)]);
    }
    transaction.run("DELETE FROM tickets WHERE doc::json ->> 'user_id' = $1", params![user.to_string()]);
    transaction
        .run_one("DELETE FROM users WHERE id = $1 AND revision = $2", params![uuid(user), revision_param(revision)]);
}

pub(super) fn put_session(transaction: &mut Transaction, session: &Session) -> Result<(), Fault> {
    transaction.run(
        "INSERT INTO sessions (token, id, user_id, password_version, expires_at, used_at, doc)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        params![
            session.token_digest.as_bytes().to_vec(),
            uuid(session.id),
            uuid(session.user_id),
            i64::from(session.password_version),
            session.expires_at.as_millis(),
            session.created_at.as_millis(),
            document(session)?,
        ],
    );
    Ok(())
}

/// Notes a use. Nobody waits for whoever notes another use at this moment: the times are nearly the same.
pub(super) fn touch_session(transaction: &mut Transaction, token: &Digest, at: Timestamp) {
    transaction.run(
        "UPDATE sessions SET used_at = $2 WHERE token = (
             SELECT token FROM sessions WHERE token = $1 AND used_at < $2 FOR NO KEY UPDATE SKIP LOCKED)",
        params![token.as_bytes().to_vec(), at.as_millis()],
    );
}

pub(super) fn put_ticket(transaction: &mut Transaction, ticket: &Ticket) -> Result<(), Fault> {
    transaction.run(
        "INSERT INTO tickets (digest, expires_at, doc) VALUES ($1, $2, $3)",
        params![ticket.digest.as_bytes().to_vec(), ticket.expires_at.as_millis(), document(ticket)?],
    );
    Ok(())
}

pub(super) fn take_ticket(transaction: &mut Transaction, digest: &Digest) {
    transaction.run_one("DELETE FROM tickets WHERE digest = $1", params![digest.as_bytes().to_vec()]);
}

pub(super) fn delete_session(transaction: &mut Transaction, token: &Digest) {
    transaction.run("DELETE FROM sessions WHERE token = $1", params![token.as_bytes().to_vec()]);
}

pub(super) fn put_workspace(transaction: &mut Transaction, workspace: &Workspace, expect: Expect) -> Result<(), Fault> {
    let (id, doc) = (uuid(workspace.id), document(workspace)?);
    workspace_end::put(transaction, workspace);
    match expect {
        Expect::Absent => transaction.run_one(
            "INSERT INTO workspaces (id, revision, doc) SELECT $1::uuid, 1, $2::text
             WHERE NOT EXISTS (SELECT 1 FROM ending_workspaces WHERE workspace = $1 AND state = 2)",
            params![id, doc],
        ),
        Expect::Revision(revision) => transaction.run_one(
            "UPDATE workspaces SET doc = $2, revision = revision + 1 WHERE id = $1 AND revision = $3",
            params![id, doc, revision_param(revision)],
        ),
    }
    Ok(())
}

pub(super) fn put_member(transaction: &mut Transaction, member: &Member, expect: Expect) -> Result<(), Fault> {
    let (workspace, user) = (uuid(member.workspace_id), uuid(member.user_id));
    let (owner, invited, doc) = (member.is_active_owner(), !member.is_active(), document(member)?);
    match expect {
        Expect::Absent => transaction.run(
            "INSERT INTO members (workspace, user_id, owner, invited, revision, doc) VALUES ($1, $2, $3, $4, 1, $5)",
            params![workspace, user, owner, invited, doc],
        ),
        Expect::Revision(revision) => transaction.run_one(
            "UPDATE members SET owner = $3, invited = $4, doc = $5, revision = revision + 1
             WHERE workspace = $1 AND user_id = $2 AND revision = $6",
            params![workspace, user, owner, invited, doc, revision_param(revision)],
        ),
    }
    Ok(())
}

pub(super) fn delete_member(transaction: &mut Transaction, workspace: WorkspaceId, user: UserId) {
    transaction.run("DELETE FROM members WHERE workspace = $1 AND user_id = $2", params![uuid(workspace), uuid(user)]);
}

#[async_trait]
impl Accounts for PostgresStore {
    async fn user(&self, id: UserId) -> Result<Option<Stored<User>>, StoreError> {
        self.reads.one("SELECT revision, doc FROM users WHERE id = $1", params![uuid(id)], stored).await
    }

    async fn user_by_email(&self, email: &str) -> Result<Option<Stored<User>>, StoreError> {
        let sql = "SELECT revision, doc FROM users WHERE email = $1";
        self.reads.one(sql, params![email.to_owned()], stored).await
    }

    async fn session(&self, token: &Digest) -> Result<Option<Session>, StoreError> {
        let sql = "SELECT doc FROM sessions WHERE token = $1";
        self.reads.one(sql, params![token.as_bytes().to_vec()], |row| record(row, 0)).await
    }

    async fn sessions_of(
        &self,
        user: UserId,
        password_version: u32,
        now: Timestamp,
        page: PageRequest,
    ) -> Result<Slice<(Session, Timestamp)>, StoreError> {
        const SQL: &str = "SELECT doc, used_at FROM sessions
            WHERE user_id = $1 AND id < $2 AND password_version = $3 AND expires_at > $4 ORDER BY id DESC LIMIT $5";
        let version = i64::from(password_version);
        let key = params![uuid(user), below_id(&page), version, now.as_millis(), one_more(&page)];
        let items = self.reads.many(SQL, key, |row| Ok((record(row, 0)?, time(row, 1)?))).await?;
        Ok(slice(items, page.limit, |(session, _): &(Session, Timestamp)| session.id.to_bytes()))
    }

    async fn session_by_id(&self, user: UserId, id: SessionId) -> Result<Option<Session>, StoreError> {
        const SQL: &str = "SELECT doc FROM sessions WHERE user_id = $1 AND id = $2";
        self.reads.one(SQL, params![uuid(user), uuid(id)], |row| record(row, 0)).await
    }

    async fn ticket(&self, digest: &Digest) -> Result<Option<Ticket>, StoreError> {
        let sql = "SELECT doc FROM tickets WHERE digest = $1";
        self.reads.one(sql, params![digest.as_bytes().to_vec()], |row| record(row, 0)).await
    }

    async fn users(&self, page: PageRequest) -> Result<Slice<User>, StoreError> {
        const SQL: &str = "SELECT doc FROM users WHERE id < $1 ORDER BY id DESC LIMIT $2";
        let key = params![below_id(&page), one_more(&page)];
        let items = self.reads.many(SQL, key, |row| record(row, 0)).await?;
        Ok(slice(items, page.limit, |user: &User| user.id.to_bytes()))
    }

    async fn workspaces(&self, page: PageRequest) -> Result<Slice<Workspace>, StoreError> {
        const SQL: &str = "SELECT doc FROM workspaces WHERE id < $1 ORDER BY id DESC LIMIT $2";
        let key = params![below_id(&page), one_more(&page)];
        let items = self.reads.many(SQL, key, |row| record(row, 0)).await?;
        Ok(slice(items, page.limit, |workspace: &Workspace| workspace.id.to_bytes()))
    }

    async fn workspace(&self, id: WorkspaceId) -> Result<Option<Stored<Workspace>>, StoreError> {
        self.reads.one_shared("SELECT revision, doc FROM workspaces WHERE id = $1", params![uuid(id)], stored).await
    }

    async fn ending_workspaces(&self) -> Result<Vec<WorkspaceId>, StoreError> {
        workspace_end::ending(self).await
    }

    async fn remove_rows_of(
        &self,
        workspace: WorkspaceId,
        step: usize,
        limit: usize,
    ) -> Result<Option<RemovedRows>, StoreError> {
        workspace_end::remove_rows(self, workspace, step, limit).await
    }

    async fn workspaces_of(
        &self,
        user: UserId,
        status: MemberStatus,
        page: PageRequest,
    ) -> Result<Slice<(Workspace, Member)>, StoreError> {
        const SQL: &str = "SELECT workspaces.doc, members.doc
            FROM members JOIN workspaces ON workspaces.id = members.workspace
            WHERE members.user_id = $1 AND members.invited = $2 AND members.workspace < $3
            ORDER BY members.workspace DESC LIMIT $4";
        let key = params![uuid(user), status == MemberStatus::Invited, below_id(&page), one_more(&page)];
        let items = self.reads.many(SQL, key, |row| Ok((record(row, 0)?, record(row, 1)?))).await?;
        Ok(slice(items, page.limit, |(workspace, _): &(Workspace, Member)| workspace.id.to_bytes()))
    }

    async fn member(&self, workspace: WorkspaceId, user: UserId) -> Result<Option<Stored<Member>>, StoreError> {
        const SQL: &str = "SELECT revision, doc FROM members WHERE workspace = $1 AND user_id = $2";
        self.reads.one(SQL, params![uuid(workspace), uuid(user)], stored).await
    }

    async fn members(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<(Member, User)>, StoreError> {
        const SQL: &str = "SELECT members.doc, users.doc FROM members JOIN users ON users.id = members.user_id
            WHERE members.workspace = $1 AND members.user_id < $2 ORDER BY members.user_id DESC LIMIT $3";
        let key = params![uuid(workspace), below_id(&page), one_more(&page)];
        let items = self.reads.many(SQL, key, |row| Ok((record(row, 0)?, record(row, 1)?))).await?;
        Ok(slice(items, page.limit, |(_, user): &(Member, User)| user.id.to_bytes()))
    }

    async fn owner_count(&self, workspace: WorkspaceId) -> Result<u64, StoreError> {
        const SQL: &str = "SELECT count(*) FROM members WHERE workspace = $1 AND owner";
        Ok(self.reads.one(SQL, params![uuid(workspace)], |row| count(row, 0)).await?.unwrap_or(0))
    }
}
