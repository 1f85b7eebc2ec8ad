//! Users, sessions, workspaces, memberships.

use async_trait::async_trait;
use messaging_core::changes::Expect;
use messaging_core::domain::account::{Member, MemberStatus, Session, Ticket, User, Workspace};
use messaging_core::domain::digest::Digest;
use messaging_core::ids::{Id as _, SessionId, UserId, WorkspaceId};
use messaging_core::ports::store::{Accounts, PageRequest, RemovedRows, Slice, StoreError, Stored};
use messaging_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::fault::{Fault, expect_one};
use super::query::{many, one};
use super::row::{below, document, one_more, record, slice, stored, time};
use super::workspace_end;

pub(super) fn put_user(connection: &Connection, user: &User, expect: Expect) -> Result<(), Fault> {
    let (id, doc) = (user.id.to_bytes(), document(user)?);
    expect_one(match expect {
        Expect::Absent => connection
            .prepare_cached("INSERT INTO users (id, email, revision, doc) VALUES (?1, ?2, 1, ?3)")?
            .execute(params![id, user.email, doc])?,
        Expect::Revision(revision) => connection
            .prepare_cached(
                "UPDATE users SET email = ?2, doc = ?3, revision = revision + 1 WHERE id = ?1 AND revision = ?4",
            )?
            .execute(params![id, user.email, doc, revision])?,
    })
}

/// Removes a user with what opens something for them.
pub(super) fn delete_user(connection: &Connection, user: UserId, revision: u32) -> Result<(), Fault> {
    const OF_USER: [&str; 3] = [
        "DELETE FROM sessions WHERE user = ?1",
        "DELETE FROM members WHERE user = ?1",
        "DELETE FROM replies WHERE credential = ?1",
    ];
    let id = user.to_bytes();
    for sql in OF_USER {
        connection.prepare_cached(sql)?.execute([id])?;
    }
    connection.prepare_cached("DELETE FROM tickets WHERE doc ->> '$.user_id' = ?1")?.execute([user.to_string()])?;
    expect_one(
        connection
            .prepare_cached("DELETE FROM users WHERE id = ?1 AND revision = ?2")?
            .execute(params![id, revision])?,
    )
}

pub(super) fn put_session(connection: &Connection, session: &Session) -> Result<(), Fault> {
    connection
        .prepare_cached(
            "INSERT INTO sessions (token, id, user, password_version, expires_at, used_at, doc)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            session.token_digest.as_bytes(),
            session.id.to_bytes(),
            session.user_id.to_bytes(),
            session.password_version,
            session.expires_at.as_millis(),
            session.created_at.as_millis(),
            document(session)?
        ])?;
    Ok(())
}

pub(super) fn touch_session(connection: &Connection, token: &Digest, at: Timestamp) -> Result<(), Fault> {
    connection
        .prepare_cached("UPDATE sessions SET used_at = ?2 WHERE token = ?1 AND used_at < ?2")?
        .execute(params![token.as_bytes(), at.as_millis()])?;
    Ok(())
}

pub(super) fn put_ticket(connection: &Connection, ticket: &Ticket) -> Result<(), Fault> {
    let (expires, doc) = (ticket.expires_at.as_millis(), document(ticket)?);
    connection
        .prepare_cached("INSERT INTO tickets (digest, expires_at, doc) VALUES (?1, ?2, ?3)")?
        .execute(params![ticket.digest.as_bytes(), expires, doc])?;
    Ok(())
}

pub(super) fn take_ticket(connection: &Connection, digest: &Digest) -> Result<(), Fault> {
    expect_one(connection.prepare_cached("DELETE FROM tickets WHERE digest = ?1")?.execute([digest.as_bytes()])?)
}

pub(super) fn delete_session(connection: &Connection, token: &Digest) -> Result<(), Fault> {
    connection.prepare_cached("DELETE FROM sessions WHERE token = ?1")?.execute([token.as_bytes()])?;
    Ok(())
}

pub(super) fn put_workspace(connection: &Connection, workspace: &Workspace, expect: Expect) -> Result<(), Fault> {
    let (id, doc) = (workspace.id.to_bytes(), document(workspace)?);
    workspace_end::put(connection, workspace)?;
    expect_one(match expect {
        Expect::Absent => connection
            .prepare_cached(
                "INSERT INTO workspaces (id, revision, doc) SELECT ?1, 1, ?2
                 WHERE NOT EXISTS (SELECT 1 FROM ending_workspaces WHERE workspace = ?1 AND state = 2)",
            )?
            .execute(params![id, doc])?,
        Expect::Revision(revision) => connection
            .prepare_cached("UPDATE workspaces SET doc = ?2, revision = revision + 1 WHERE id = ?1 AND revision = ?3")?
            .execute(params![id, doc, revision])?,
    })
}

pub(super) fn put_member(connection: &Connection, member: &Member, expect: Expect) -> Result<(), Fault> {
    let (workspace, user) = (member.workspace_id.to_bytes(), member.user_id.to_bytes());
    let (owner, invited, doc) = (member.is_active_owner(), !member.is_active(), document(member)?);
    expect_one(match expect {
        Expect::Absent => connection
            .prepare_cached(
                "INSERT INTO members (workspace, user, owner, invited, revision, doc) VALUES (?1, ?2, ?3, ?4, 1, ?5)",
            )?
            .execute(params![workspace, user, owner, invited, doc])?,
        Expect::Revision(revision) => connection
            .prepare_cached(
                "UPDATE members SET owner = ?3, invited = ?4, doc = ?5, revision = revision + 1
                 WHERE workspace = ?1 AND user = ?2 AND revision = ?6",
            )?
            .execute(params![workspace, user, owner, invited, doc, revision])?,
    })
}

pub(super) fn delete_member(connection: &Connection, workspace: WorkspaceId, user: UserId) -> Result<(), Fault> {
    connection
        .prepare_cached("DELETE FROM members WHERE workspace = ?1 AND user = ?2")?
        .execute([workspace.to_bytes(), user.to_bytes()])?;
    Ok(())
}

#[async_trait]
impl Accounts for SqliteStore {
    async fn user(&self, id: UserId) -> Result<Option<Stored<User>>, StoreError> {
        self.readers
            .read(move |connection| {
                one(connection, "SELECT revision, doc FROM users WHERE id = ?1", [id.to_bytes()], stored)
            })
            .await
    }

    async fn user_by_email(&self, email: &str) -> Result<Option<Stored<User>>, StoreError> {
        let email = email.to_owned();
        self.readers
            .read(move |connection| {
                one(connection, "SELECT revision, doc FROM users WHERE email = ?1", [email], stored)
            })
            .await
    }

    async fn session(&self, token: &Digest) -> Result<Option<Session>, StoreError> {
        let token = *token.as_bytes();
        self.readers
            .read(move |connection| {
                one(connection, "SELECT doc FROM sessions WHERE token = ?1", [token], |row| record(row, 0))
            })
            .await
    }

    async fn sessions_of(
        &self,
        user: UserId,
        password_version: u32,
        now: Timestamp,
        page: PageRequest,
    ) -> Result<Slice<(Session, Timestamp)>, StoreError> {
        const SQL: &str = "SELECT doc, used_at FROM sessions INDEXED BY sessions_by_user
            WHERE user = ?1 AND id < ?2 AND password_version = ?3 AND expires_at > ?4 ORDER BY id DESC LIMIT ?5";
        self.readers
            .read(move |connection| {
                let key = params![user.to_bytes(), below(&page), password_version, now.as_millis(), one_more(&page)];
                let items = many(connection, SQL, key, |row| Ok((record(row, 0)?, time(row, 1)?)))?;
                Ok(slice(items, page.limit, |(session, _): &(Session, Timestamp)| session.id.to_bytes()))
            })
            .await
    }

    async fn session_by_id(&self, user: UserId, id: SessionId) -> Result<Option<Session>, StoreError> {
        const SQL: &str = "SELECT doc FROM sessions WHERE user = ?1 AND id = ?2";
        self.readers
            .read(move |connection| one(connection, SQL, [user.to_bytes(), id.to_bytes()], |row| record(row, 0)))
            .await
    }

    async fn ticket(&self, digest: &Digest) -> Result<Option<Ticket>, StoreError> {
        let digest = *digest.as_bytes();
        self.readers
            .read(move |connection| {
                one(connection, "SELECT doc FROM tickets WHERE digest = ?1", [digest], |row| record(row, 0))
            })
            .await
    }

    async fn users(&self, page: PageRequest) -> Result<Slice<User>, StoreError> {
        const SQL: &str = "SELECT doc FROM users WHERE id < ?1 ORDER BY id DESC LIMIT ?2";
        self.readers
            .read(move |connection| {
                let key = params![below(&page), one_more(&page)];
                let items = many(connection, SQL, key, |row| record(row, 0))?;
                Ok(slice(items, page.limit, |user: &User| user.id.to_bytes()))
            })
            .await
    }

    async fn workspaces(&self, page: PageRequest) -> Result<Slice<Workspace>, StoreError> {
        const SQL: &str = "SELECT doc FROM workspaces WHERE id < ?1 ORDER BY id DESC LIMIT ?2";
        self.readers
            .read(move |connection| {
                let key = params![below(&page), one_more(&page)];
                let items = many(connection, SQL, key, |row| record(row, 0))?;
                Ok(slice(items, page.limit, |workspace: &Workspace| workspace.id.to_bytes()))
            })
            .await
    }

    async fn workspace(&self, id: WorkspaceId) -> Result<Option<Stored<Workspace>>, StoreError> {
        self.readers
            .read(move |connection| {
                one(connection, "SELECT revision, doc FROM workspaces WHERE id = ?1", [id.to_bytes()], stored)
            })
            .await
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
            FROM members INDEXED BY members_by_user JOIN workspaces ON workspaces.id = members.workspace
            WHERE members.user = ?1 AND members.invited = ?2 AND members.workspace < ?3
            ORDER BY members.workspace DESC LIMIT ?4";
        self.readers
            .read(move |connection| {
                let invited = status == MemberStatus::Invited;
                let key = params![user.to_bytes(), invited, below(&page), one_more(&page)];
                let items = many(connection, SQL, key, |row| Ok((record(row, 0)?, record(row, 1)?)))?;
                Ok(slice(items, page.limit, |(workspace, _): &(Workspace, Member)| workspace.id.to_bytes()))
            })
            .await
    }

    async fn member(&self, workspace: WorkspaceId, user: UserId) -> Result<Option<Stored<Member>>, StoreError> {
        const SQL: &str = "SELECT revision, doc FROM members WHERE workspace = ?1 AND user = ?2";
        self.readers.read(move |connection| one(connection, SQL, [workspace.to_bytes(), user.to_bytes()], stored)).await
    }

    async fn members(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<(Member, User)>, StoreError> {
        const SQL: &str = "SELECT members.doc, users.doc FROM members JOIN users ON users.id = members.user
            WHERE members.workspace = ?1 AND members.user < ?2 ORDER BY members.user DESC LIMIT ?3";
        self.readers
            .read(move |connection| {
                let key = params![workspace.to_bytes(), below(&page), one_more(&page)];
                let items = many(connection, SQL, key, |row| Ok((record(row, 0)?, record(row, 1)?)))?;
                Ok(slice(items, page.limit, |(_, user): &(Member, User)| user.id.to_bytes()))
            })
            .await
    }

    async fn owner_count(&self, workspace: WorkspaceId) -> Result<u64, StoreError> {
        const SQL: &str = "SELECT count(*) FROM members WHERE workspace = ?1 AND owner = 1";
        self.readers
            .read(move |connection| {
                let count = one(connection, SQL, [workspace.to_bytes()], |row| Ok(row.get::<_, i64>(0)?))?;
                Ok(count.unwrap_or(0).unsigned_abs())
            })
            .await
    }
}
