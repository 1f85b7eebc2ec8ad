//! IP pools, and the IP addresses that workspaces may put into their pools.

use std::net::IpAddr;

use async_trait::async_trait;
use messaging_core::changes::Expect;
use messaging_core::domain::delivery::ip_pool::{IpGrant, IpPool};
use messaging_core::ids::{Id, PoolId, WorkspaceId};
use messaging_core::ports::store::{IpPools, PageRequest, Slice, StoreError, Stored};

use crate::database::{Database, Query, SqlStore, Statements};
use crate::fault::Fault;
use crate::pages::{below, one_more, sql_limit};
use crate::row::{Row, document, get, record, stored, time};
use crate::sql::{Sql, key, params, sql};

/// Value of the column `workspace` for a shared pool.
const SHARED: [u8; 16] = [0; 16];

fn owner(workspace: Option<WorkspaceId>) -> [u8; 16] {
    workspace.map_or(SHARED, Id::to_bytes)
}

pub(crate) fn put(on: &mut dyn Statements, pool: &IpPool, expect: Expect) -> Result<(), Fault> {
    let mut row = params![owner(pool.workspace_id), key(pool.id), pool.name.as_str(), document(pool)?];
    match expect {
        Expect::Absent => {
            on.run(sql!("INSERT INTO ip_pools (workspace, id, name, revision, doc) VALUES ($1, $2, $3, 1, $4)"), row)
        }
        Expect::Revision(revision) => {
            row.push(revision.into());
            on.run_one(
                sql!(
                    "UPDATE ip_pools SET name = $3, doc = $4, revision = revision + 1
                     WHERE workspace = $1 AND id = $2 AND revision = $5"
                ),
                row,
            )
        }
    }
}

pub(crate) fn delete(on: &mut dyn Statements, workspace: Option<WorkspaceId>, id: PoolId) -> Result<(), Fault> {
    on.run(sql!("DELETE FROM ip_pools WHERE workspace = $1 AND id = $2"), params![owner(workspace), key(id)])
}

/// Allows a workspace to put an address into its pools; has no effect if the workspace may already.
pub(crate) fn grant(on: &mut dyn Statements, grant: &IpGrant) -> Result<(), Fault> {
    on.run(
        sql!(
            "INSERT INTO ip_grants (workspace, ip, granted_at) VALUES ($1, $2, $3)
             ON CONFLICT (workspace, ip) DO NOTHING"
        ),
        params![key(grant.workspace_id), grant.ip.to_string(), grant.granted_at],
    )
}

/// Withdraws the permission of a workspace to put an address into its pools.
pub(crate) fn revoke(on: &mut dyn Statements, workspace: WorkspaceId, ip: IpAddr) -> Result<(), Fault> {
    on.run(sql!("DELETE FROM ip_grants WHERE workspace = $1 AND ip = $2"), params![key(workspace), ip.to_string()])
}

/// Reads a grant from a row of address and time.
fn grant_of(workspace_id: WorkspaceId, row: &dyn Row) -> Result<IpGrant, Fault> {
    let ip = get::<&str>(row, 0)?.parse().map_err(|_| Fault::Malformed("a granted address is none"))?;
    Ok(IpGrant { workspace_id, ip, granted_at: time(row, 1)? })
}

#[async_trait]
impl<D: Database> IpPools for SqlStore<D> {
    async fn ip_pool(&self, workspace: WorkspaceId, id: PoolId) -> Result<Option<Stored<IpPool>>, StoreError> {
        const SQL: Sql = sql!("SELECT revision, doc FROM ip_pools WHERE workspace IN ($1, $2) AND id = $3");
        self.one(Query::new(SQL, params![key(workspace), SHARED, key(id)], stored)).await
    }

    async fn ip_pool_by_name(&self, workspace: WorkspaceId, name: &str) -> Result<Option<Stored<IpPool>>, StoreError> {
        // A shared pool comes after one of the workspace with the same name, because `SHARED` is less than every id.
        const SQL: Sql = sql!(
            "SELECT revision, doc FROM ip_pools WHERE workspace IN ($1, $2) AND name = $3
             ORDER BY workspace DESC LIMIT 1"
        );
        self.one(Query::new(SQL, params![key(workspace), SHARED, name], stored)).await
    }

    async fn ip_pools(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<IpPool>, StoreError> {
        const SQL: Sql =
            sql!("SELECT doc FROM ip_pools WHERE workspace IN ($1, $2) AND id < $3 ORDER BY id DESC LIMIT $4");
        let bounds = params![key(workspace), SHARED, below(&page), one_more(&page)];
        let query = Query::new(SQL, bounds, |row| record::<IpPool>(row, 0)).shared();
        self.page(query, page, |pool| pool.id.to_bytes()).await
    }

    async fn shared_ip_pools(&self, limit: usize) -> Result<Vec<Stored<IpPool>>, StoreError> {
        const SQL: Sql = sql!("SELECT revision, doc FROM ip_pools WHERE workspace = $1 ORDER BY id DESC LIMIT $2");
        self.many(Query::new(SQL, params![SHARED, sql_limit(limit)], stored)).await
    }

    async fn all_ip_pools(&self, after: Option<PoolId>, limit: usize) -> Result<Vec<IpPool>, StoreError> {
        const SQL: Sql = sql!("SELECT doc FROM ip_pools WHERE id > $1 ORDER BY id LIMIT $2");
        let after = after.map_or([0; 16], Id::to_bytes);
        self.many(Query::new(SQL, params![after, sql_limit(limit)], |row| record(row, 0)).shared()).await
    }

    async fn ip_grants(
        &self,
        workspace: WorkspaceId,
        after: Option<IpAddr>,
        limit: usize,
    ) -> Result<Vec<IpGrant>, StoreError> {
        const SQL: Sql =
            sql!("SELECT ip, granted_at FROM ip_grants WHERE workspace = $1 AND ip > $2 ORDER BY ip LIMIT $3");
        let after = after.map_or_else(String::new, |ip| ip.to_string());
        let query =
            Query::new(SQL, params![key(workspace), after, sql_limit(limit)], move |row| grant_of(workspace, row));
        self.many(query).await
    }

    async fn granted_ips(&self, workspace: WorkspaceId, ips: &[IpAddr]) -> Result<Vec<IpGrant>, StoreError> {
        const SQL: Sql = sql!(
            sqlite: "SELECT ip, granted_at FROM ip_grants WHERE workspace = $1 AND ip IN (SELECT value FROM json_each($2))",
            postgres: "SELECT ip, granted_at FROM ip_grants WHERE workspace = $1 AND ip = ANY ($2)",
        );
        let ips: Vec<_> = ips.iter().map(ToString::to_string).collect();
        self.many(Query::new(SQL, params![key(workspace), ips], move |row| grant_of(workspace, row))).await
    }
}
