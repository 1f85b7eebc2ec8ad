//! Users, sessions, tickets, workspaces, memberships.

use async_trait::async_trait;
use messaging_core::changes::Expect;
use messaging_core::domain::security::account::{Member, MemberStatus, Session, Ticket, User, Workspace};
use messaging_core::domain::security::digest::Digest;
use messaging_core::domain::security::oidc::LinkedIdentity;
use messaging_core::ids::{Id as _, SessionId, UserId, WorkspaceId};
use messaging_core::ports::store::{Accounts, PageRequest, RemovedRows, Slice, StoreError, Stored};
use messaging_core::time::Timestamp;

use crate::database::{Database, Query, SqlStore, Statements};
use crate::fault::Fault;
use crate::pages::{below, one_more};
use crate::row::{count, document, id, record, stored, time};
use crate::sql::{Sql, key, params, sql};
use crate::tables::second_factors;

pub(crate) fn put_user(on: &mut dyn Statements, user: &User, expect: Expect) -> Result<(), Fault> {
    let mut row = params![key(user.id), user.email.as_str(), document(user)?];
    match expect {
        Expect::Absent => on.run(sql!("INSERT INTO users (id, email, revision, doc) VALUES ($1, $2, 1, $3)"), row),
        Expect::Revision(revision) => {
            row.push(revision.into());
            on.run_one(
                sql!("UPDATE users SET email = $2, doc = $3, revision = revision + 1 WHERE id = $1 AND revision = $4"),
                row,
            )
        }
    }
}

/// Removes a user with what opens something for them.
pub(crate) fn delete_user(on: &mut dyn Statements, user: UserId, revision: u32) -> Result<(), Fault> {
    const OF_USER: [Sql; 4] = [
        sql!("DELETE FROM sessions WHERE user_id = $1"),
        sql!("DELETE FROM members WHERE user_id = $1"),
        sql!("DELETE FROM linked_identities WHERE user_id = $1"),
        sql!("DELETE FROM replies WHERE credential = $1"),
    ];
    const TICKETS: Sql = sql!(
        sqlite: "DELETE FROM tickets WHERE doc ->> '$.user_id' = ?1",
        postgres: "DELETE FROM tickets WHERE doc::json ->> 'user_id' = $1",
    );
    for sql in OF_USER {
        on.run(sql, params![key(user)])?;
    }
    on.run(TICKETS, params![user.to_string()])?;
    second_factors::delete_all(on, user)?;
    on.run_one(sql!("DELETE FROM users WHERE id = $1 AND revision = $2"), params![key(user), revision])
}

pub(crate) fn put_session(on: &mut dyn Statements, session: &Session) -> Result<(), Fault> {
    const SQL: Sql = sql!(
        "INSERT INTO sessions (token, id, user_id, password_version, expires_at, used_at, doc)
         VALUES ($1, $2, $3, $4, $5, $6, $7)"
    );
    let Session { token_digest, id, user_id, password_version, expires_at, created_at, .. } = session;
    let token = token_digest.as_bytes().as_slice();
    on.run(
        SQL,
        params![token, key(*id), key(*user_id), *password_version, *expires_at, *created_at, document(session)?],
    )
}

/// Notes a use. On PostgreSQL nobody waits for whoever notes another use at this moment: the times are nearly the same.
pub(crate) fn touch_session(on: &mut dyn Statements, token: &Digest, at: Timestamp) -> Result<(), Fault> {
    const SQL: Sql = sql!(
        sqlite: "UPDATE sessions SET used_at = ?2 WHERE token = ?1 AND used_at < ?2",
        postgres: "UPDATE sessions SET used_at = $2 WHERE token = (
            SELECT token FROM sessions WHERE token = $1 AND used_at < $2 FOR NO KEY UPDATE SKIP LOCKED)",
    );
    on.run(SQL, params![token.as_bytes().as_slice(), at])
}

pub(crate) fn delete_session(on: &mut dyn Statements, token: &Digest) -> Result<(), Fault> {
    on.run(sql!("DELETE FROM sessions WHERE token = $1"), params![token.as_bytes().as_slice()])
}

pub(crate) fn put_ticket(on: &mut dyn Statements, ticket: &Ticket) -> Result<(), Fault> {
    on.run(
        sql!("INSERT INTO tickets (digest, expires_at, doc) VALUES ($1, $2, $3)"),
        params![ticket.digest.as_bytes().as_slice(), ticket.expires_at, document(ticket)?],
    )
}

pub(crate) fn take_ticket(on: &mut dyn Statements, digest: &Digest) -> Result<(), Fault> {
    on.run_one(sql!("DELETE FROM tickets WHERE digest = $1"), params![digest.as_bytes().as_slice()])
}

pub(crate) fn link_identity(on: &mut dyn Statements, identity: &LinkedIdentity) -> Result<(), Fault> {
    let LinkedIdentity { issuer, subject, user_id, linked_at } = identity;
    on.run(
        sql!("INSERT INTO linked_identities (issuer, subject, user_id, linked_at) VALUES ($1, $2, $3, $4)"),
        params![issuer.as_str(), subject.as_str(), key(*user_id), *linked_at],
    )
}

pub(crate) fn put_workspace(on: &mut dyn Statements, workspace: &Workspace, expect: Expect) -> Result<(), Fault> {
    put_end(on, workspace)?;
    let mut row = params![key(workspace.id), document(workspace)?];
    match expect {
        Expect::Absent => on.run_one(
            sql!(
                sqlite: "INSERT INTO workspaces (id, revision, doc) SELECT ?1, 1, ?2
                    WHERE NOT EXISTS (SELECT 1 FROM ending_workspaces WHERE workspace = ?1 AND state = 2)",
                postgres: "INSERT INTO workspaces (id, revision, doc) SELECT $1::uuid, 1, $2::text
                    WHERE NOT EXISTS (SELECT 1 FROM ending_workspaces WHERE workspace = $1 AND state = 2)",
            ),
            row,
        ),
        Expect::Revision(revision) => {
            row.push(revision.into());
            on.run_one(
                sql!("UPDATE workspaces SET doc = $2, revision = revision + 1 WHERE id = $1 AND revision = $3"),
                row,
            )
        }
    }
}

/// Keeps with a workspace that is written whether it is under deletion.
fn put_end(on: &mut dyn Statements, workspace: &Workspace) -> Result<(), Fault> {
    const PUT: Sql = sql!(
        "INSERT INTO ending_workspaces AS known (workspace, deletes_at, state) VALUES ($1, $2, $3)
         ON CONFLICT (workspace) DO UPDATE SET deletes_at = excluded.deletes_at, state = excluded.state
         WHERE known.state < 2"
    );
    const FORGET: Sql = sql!("DELETE FROM ending_workspaces WHERE workspace = $1 AND state < 2");
    match workspace.end {
        Some(end) => {
            let state = i64::from(end.removing_since.is_some());
            on.run(PUT, params![key(workspace.id), end.deletes_at, state])
        }
        None => on.run(FORGET, params![key(workspace.id)]),
    }
}

pub(crate) fn put_member(on: &mut dyn Statements, member: &Member, expect: Expect) -> Result<(), Fault> {
    let (owner, invited) = (member.is_active_owner(), !member.is_active());
    let mut row = params![key(member.workspace_id), key(member.user_id), owner, invited, document(member)?];
    match expect {
        Expect::Absent => on.run(
            sql!(
                "INSERT INTO members (workspace, user_id, owner, invited, revision, doc)
                 VALUES ($1, $2, $3, $4, 1, $5)"
            ),
            row,
        ),
        Expect::Revision(revision) => {
            row.push(revision.into());
            on.run_one(
                sql!(
                    "UPDATE members SET owner = $3, invited = $4, doc = $5, revision = revision + 1
                     WHERE workspace = $1 AND user_id = $2 AND revision = $6"
                ),
                row,
            )
        }
    }
}

pub(crate) fn delete_member(on: &mut dyn Statements, workspace: WorkspaceId, user: UserId) -> Result<(), Fault> {
    on.run(sql!("DELETE FROM members WHERE workspace = $1 AND user_id = $2"), params![key(workspace), key(user)])
}

#[async_trait]
impl<D: Database> Accounts for SqlStore<D> {
    async fn user(&self, id: UserId) -> Result<Option<Stored<User>>, StoreError> {
        const SQL: Sql = sql!("SELECT revision, doc FROM users WHERE id = $1");
        self.one(Query::new(SQL, params![key(id)], stored)).await
    }

    async fn user_by_email(&self, email: &str) -> Result<Option<Stored<User>>, StoreError> {
        const SQL: Sql = sql!("SELECT revision, doc FROM users WHERE email = $1");
        self.one(Query::new(SQL, params![email], stored)).await
    }

    async fn user_by_identity(&self, issuer: &str, subject: &str) -> Result<Option<Stored<User>>, StoreError> {
        const SQL: Sql = sql!(
            "SELECT users.revision, users.doc FROM linked_identities JOIN users ON users.id = linked_identities.user_id
             WHERE linked_identities.issuer = $1 AND linked_identities.subject = $2"
        );
        self.one(Query::new(SQL, params![issuer, subject], stored)).await
    }

    async fn session(&self, token: &Digest) -> Result<Option<Session>, StoreError> {
        const SQL: Sql = sql!("SELECT doc FROM sessions WHERE token = $1");
        self.one(Query::new(SQL, params![token.as_bytes().as_slice()], |row| record(row, 0))).await
    }

    async fn sessions_of(
        &self,
        user: UserId,
        password_version: u32,
        now: Timestamp,
        page: PageRequest,
    ) -> Result<Slice<(Session, Timestamp)>, StoreError> {
        // SQLite would rather search by the time.
        const SQL: Sql = sql!(
            sqlite: "SELECT doc, used_at FROM sessions INDEXED BY sessions_by_user
                WHERE user_id = ?1 AND id < ?2 AND password_version = ?3 AND expires_at > ?4 ORDER BY id DESC LIMIT ?5",
            postgres: "SELECT doc, used_at FROM sessions
                WHERE user_id = $1 AND id < $2 AND password_version = $3 AND expires_at > $4 ORDER BY id DESC LIMIT $5",
        );
        let bounds = params![key(user), below(&page), password_version, now, one_more(&page)];
        let query = Query::new(SQL, bounds, |row| Ok((record::<Session>(row, 0)?, time(row, 1)?)));
        self.page(query, page, |(session, _)| session.id.to_bytes()).await
    }

    async fn session_by_id(&self, user: UserId, id: SessionId) -> Result<Option<Session>, StoreError> {
        const SQL: Sql = sql!("SELECT doc FROM sessions WHERE user_id = $1 AND id = $2");
        self.one(Query::new(SQL, params![key(user), key(id)], |row| record(row, 0))).await
    }

    async fn ticket(&self, digest: &Digest) -> Result<Option<Ticket>, StoreError> {
        const SQL: Sql = sql!("SELECT doc FROM tickets WHERE digest = $1");
        self.one(Query::new(SQL, params![digest.as_bytes().as_slice()], |row| record(row, 0))).await
    }

    async fn users(&self, page: PageRequest) -> Result<Slice<User>, StoreError> {
        const SQL: Sql = sql!("SELECT doc FROM users WHERE id < $1 ORDER BY id DESC LIMIT $2");
        let query = Query::new(SQL, params![below(&page), one_more(&page)], |row| record::<User>(row, 0));
        self.page(query, page, |user| user.id.to_bytes()).await
    }

    async fn workspaces(&self, page: PageRequest) -> Result<Slice<Workspace>, StoreError> {
        const SQL: Sql = sql!("SELECT doc FROM workspaces WHERE id < $1 ORDER BY id DESC LIMIT $2");
        let query = Query::new(SQL, params![below(&page), one_more(&page)], |row| record::<Workspace>(row, 0));
        self.page(query, page, |workspace| workspace.id.to_bytes()).await
    }

    async fn workspace(&self, id: WorkspaceId) -> Result<Option<Stored<Workspace>>, StoreError> {
        const SQL: Sql = sql!("SELECT revision, doc FROM workspaces WHERE id = $1");
        self.one(Query::new(SQL, params![key(id)], stored).shared()).await
    }

    async fn ending_workspaces(&self) -> Result<Vec<WorkspaceId>, StoreError> {
        const SQL: Sql = sql!("SELECT workspace FROM ending_workspaces WHERE state < 2");
        self.many(Query::new(SQL, params![], |row| id(row, 0))).await
    }

    async fn remove_rows_of(
        &self,
        workspace: WorkspaceId,
        step: usize,
        limit: usize,
    ) -> Result<Option<RemovedRows>, StoreError> {
        const IS_REMOVED: Sql = sql!("SELECT 1 FROM ending_workspaces WHERE workspace = $1 AND state = 1");
        if self.one(Query::new(IS_REMOVED, params![key(workspace)], |_| Ok(()))).await?.is_none() {
            return Ok(None);
        }
        self.remove_rows(workspace, step, limit).await
    }

    async fn workspaces_of(
        &self,
        user: UserId,
        status: MemberStatus,
        page: PageRequest,
    ) -> Result<Slice<(Workspace, Member)>, StoreError> {
        // SQLite would rather begin with the workspaces.
        const SQL: Sql = sql!(
            sqlite: "SELECT workspaces.doc, members.doc
                FROM members INDEXED BY members_by_user JOIN workspaces ON workspaces.id = members.workspace
                WHERE members.user_id = ?1 AND members.invited = ?2 AND members.workspace < ?3
                ORDER BY members.workspace DESC LIMIT ?4",
            postgres: "SELECT workspaces.doc, members.doc
                FROM members JOIN workspaces ON workspaces.id = members.workspace
                WHERE members.user_id = $1 AND members.invited = $2 AND members.workspace < $3
                ORDER BY members.workspace DESC LIMIT $4",
        );
        let bounds = params![key(user), status == MemberStatus::Invited, below(&page), one_more(&page)];
        let query = Query::new(SQL, bounds, |row| Ok((record::<Workspace>(row, 0)?, record(row, 1)?)));
        self.page(query, page, |(workspace, _)| workspace.id.to_bytes()).await
    }

    async fn member(&self, workspace: WorkspaceId, user: UserId) -> Result<Option<Stored<Member>>, StoreError> {
        const SQL: Sql = sql!("SELECT revision, doc FROM members WHERE workspace = $1 AND user_id = $2");
        self.one(Query::new(SQL, params![key(workspace), key(user)], stored)).await
    }

    async fn members(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<(Member, User)>, StoreError> {
        const SQL: Sql = sql!(
            "SELECT members.doc, users.doc FROM members JOIN users ON users.id = members.user_id
             WHERE members.workspace = $1 AND members.user_id < $2 ORDER BY members.user_id DESC LIMIT $3"
        );
        let bounds = params![key(workspace), below(&page), one_more(&page)];
        let query = Query::new(SQL, bounds, |row| Ok((record(row, 0)?, record::<User>(row, 1)?)));
        self.page(query, page, |(_, user)| user.id.to_bytes()).await
    }

    async fn owner_count(&self, workspace: WorkspaceId) -> Result<u64, StoreError> {
        const SQL: Sql = sql!("SELECT count(*) FROM members WHERE workspace = $1 AND owner");
        Ok(self.one(Query::new(SQL, params![key(workspace)], |row| count(row, 0))).await?.unwrap_or(0))
    }
}
