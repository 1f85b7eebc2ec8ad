//! Audit logs: rows that are only added at the end, each with the digest that links it to the row before, and the ends of
//! each chain of them. Sixteen zero bytes stand for the workspace of the installation's log.

use std::collections::BTreeSet;

use async_trait::async_trait;
use messaging_core::changes::{Changes, Write};
use messaging_core::domain::security::audit::{
    AuditEntry, AuditFilter, AuditRow, Chain, FIRST_LINK, Link, StoredRow, link,
};
use messaging_core::ids::{Id, WorkspaceId};
use messaging_core::ports::store::{AuditLogs, PageRequest, Slice, StoreError};
use messaging_core::time::Timestamp;

use crate::database::open_commit::OpenCommit;
use crate::database::{Database, Query, SqlStore, Statements};
use crate::fault::Fault;
use crate::pages::{numbered_place, one_more, place_number, sql_limit};
use crate::row::{Row, count, document, get, record};
use crate::sql::{Params, Sql, params, sql};

/// Stands for the workspace of the installation's log.
const INSTALLATION: [u8; 16] = [0; 16];

fn owner(workspace: Option<WorkspaceId>) -> [u8; 16] {
    workspace.map_or(INSTALLATION, Id::to_bytes)
}

fn number(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// Makes sure that there is a chain, and locks its ends until the commit is over.
fn lock(on: &mut dyn Statements, owner: [u8; 16]) -> Result<(), Fault> {
    const SQL: Sql = sql!(
        "INSERT INTO audit_chains (workspace, n, hash, anchor_n, anchor_hash) VALUES ($1, 0, $2, 0, $2)
         ON CONFLICT (workspace) DO UPDATE SET n = audit_chains.n"
    );
    on.run(SQL, params![owner, FIRST_LINK.as_slice()])
}

/// Locks the ends of all chains that commits add to, always in the same order, before anything else is locked: commits that
/// add to the same chain wait for one another, and no two of them for each other.
#[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "SQLite applies one commit at a time"))]
pub(crate) fn lock_all(on: &mut dyn Statements, all: &[&Changes]) -> Result<(), Fault> {
    let owners: BTreeSet<_> = all
        .iter()
        .flat_map(|changes| changes.writes())
        .filter_map(|write| match write {
            Write::Audit(row) => Some(owner(row.workspace_id)),
            _ => None,
        })
        .collect();
    owners.into_iter().try_for_each(|owner| lock(on, owner))
}

/// Adds a row at the end of its chain.
pub(crate) async fn append(open: &mut impl OpenCommit, row: &AuditRow) -> Result<(), Fault> {
    const END: Sql = sql!("SELECT n, hash FROM audit_chains WHERE workspace = $1");
    const INSERT: Sql = sql!(
        "INSERT INTO audit_log (workspace, n, at, actor_kind, actor, operation, resource_kind, resource, doc, hash)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
    );
    const MOVE: Sql = sql!("UPDATE audit_chains SET n = $2, hash = $3 WHERE workspace = $1");
    let AuditRow { workspace_id, entry } = row;
    let owner = owner(*workspace_id);
    lock(open.statements(), owner)?;
    let end = Query::new(END, params![owner], |row| Ok((count(row, 0)?, get::<Link>(row, 1)?)));
    let (last, before) = open.one(end).await?.ok_or(Fault::Malformed("an audit log has no chain"))?;
    let text = document(entry)?;
    let next = last + 1;
    let hash = link(&before, *workspace_id, next, &text);
    let statements = open.statements();
    let columns = params![
        owner,
        number(next),
        entry.at,
        entry.actor.kind.as_str(),
        entry.actor.id.as_deref(),
        entry.operation.as_str(),
        entry.resource.kind.as_str(),
        entry.resource.id.as_deref(),
        text,
        hash.as_slice(),
    ];
    statements.run(INSERT, columns)?;
    statements.run_one(MOVE, params![owner, number(next), hash.as_slice()])
}

/// Lets the rows up to a number go; the link of the last one is the anchor.
pub(crate) fn trim(on: &mut dyn Statements, workspace: Option<WorkspaceId>, up_to: u64) -> Result<(), Fault> {
    const ANCHOR: Sql = sql!(
        "UPDATE audit_chains SET anchor_n = $2,
             anchor_hash = (SELECT hash FROM audit_log WHERE workspace = $1 AND n = $2)
         WHERE workspace = $1 AND EXISTS (SELECT 1 FROM audit_log WHERE workspace = $1 AND n = $2)"
    );
    on.run_one(ANCHOR, params![owner(workspace), number(up_to)])?;
    on.run(sql!("DELETE FROM audit_log WHERE workspace = $1 AND n <= $2"), params![owner(workspace), number(up_to)])
}

fn row_of_chain(row: &dyn Row) -> Result<Chain, Fault> {
    Ok(Chain { anchor: count(row, 0)?, anchor_link: get(row, 1)?, last: count(row, 2)?, last_link: get(row, 3)? })
}

fn filters(workspace: Option<WorkspaceId>, filter: &AuditFilter, page: &PageRequest) -> Params {
    params![
        owner(workspace),
        page.after.map_or(i64::MAX, place_number),
        filter.actor.as_deref(),
        filter.operation.as_deref(),
        filter.resource.as_deref(),
        filter.since,
        filter.until,
        one_more(page),
    ]
}

#[async_trait]
impl<D: Database> AuditLogs for SqlStore<D> {
    async fn audit_entries(
        &self,
        workspace: Option<WorkspaceId>,
        filter: &AuditFilter,
        page: PageRequest,
    ) -> Result<Slice<AuditEntry>, StoreError> {
        const SQL: Sql = sql!(
            "SELECT n, doc FROM audit_log WHERE workspace = $1 AND n < $2
                 AND (CAST($3 AS text) IS NULL OR actor = CAST($3 AS text) OR actor_kind = CAST($3 AS text))
                 AND (CAST($4 AS text) IS NULL OR operation = CAST($4 AS text))
                 AND (CAST($5 AS text) IS NULL OR resource = CAST($5 AS text) OR resource_kind = CAST($5 AS text))
                 AND (CAST($6 AS bigint) IS NULL OR at >= CAST($6 AS bigint))
                 AND (CAST($7 AS bigint) IS NULL OR at < CAST($7 AS bigint))
             ORDER BY n DESC LIMIT $8"
        );
        let query = Query::new(SQL, filters(workspace, filter, &page), |row| {
            Ok((get::<i64>(row, 0)?, record::<AuditEntry>(row, 1)?))
        });
        let slice = self.page(query.scan(), page, |(n, _)| numbered_place(*n).to_bytes()).await?;
        Ok(Slice { items: slice.items.into_iter().map(|(_, entry)| entry).collect(), next: slice.next })
    }

    async fn audit_chain(&self, workspace: Option<WorkspaceId>) -> Result<Option<Chain>, StoreError> {
        const SQL: Sql = sql!("SELECT anchor_n, anchor_hash, n, hash FROM audit_chains WHERE workspace = $1");
        self.one(Query::new(SQL, params![owner(workspace)], row_of_chain).point()).await
    }

    async fn audit_rows(
        &self,
        workspace: Option<WorkspaceId>,
        after: u64,
        limit: usize,
    ) -> Result<Vec<StoredRow>, StoreError> {
        const SQL: Sql = sql!("SELECT n, doc, hash FROM audit_log WHERE workspace = $1 AND n > $2 ORDER BY n LIMIT $3");
        let query = Query::new(SQL, params![owner(workspace), number(after), sql_limit(limit)], |row| {
            Ok(StoredRow { number: count(row, 0)?, text: get(row, 1)?, link: get(row, 2)? })
        });
        self.many(query.scan()).await
    }

    async fn expired_audit_rows(
        &self,
        before: Timestamp,
        limit: usize,
    ) -> Result<Option<(Option<WorkspaceId>, u64)>, StoreError> {
        const LOG: Sql = sql!(
            "SELECT c.workspace FROM audit_chains c
             WHERE (SELECT a.at FROM audit_log a WHERE a.workspace = c.workspace AND a.n = c.anchor_n + 1) < $1 LIMIT 1"
        );
        const ROWS: Sql = sql!("SELECT n, at FROM audit_log WHERE workspace = $1 ORDER BY n LIMIT $2");
        let found = self.one(Query::new(LOG, params![before], |row| get::<[u8; 16]>(row, 0)).scan()).await?;
        let Some(owner) = found else { return Ok(None) };
        let query = Query::new(ROWS, params![owner, sql_limit(limit)], |row| {
            Ok((count(row, 0)?, Timestamp::from_millis(get(row, 1)?)))
        });
        let rows = self.many(query).await?;
        let last = rows.into_iter().take_while(|(_, at)| *at < before).last();
        let workspace = Some(owner).filter(|owner| *owner != INSTALLATION).map(WorkspaceId::from_bytes);
        Ok(last.map(|(n, _)| (workspace, n)))
    }
}
