//! Sources of mail and their paths.

use async_trait::async_trait;
use messaging_core::changes::{Expect, SourceWrite};
use messaging_core::domain::delivery::ip_pool::source::{NamedSource, NodeSource, PathRow, SourceAddress, SourceRow};
use messaging_core::domain::delivery::lane::Lane;
use messaging_core::ports::store::{Sources, StoreError, Stored};
use messaging_core::time::Timestamp;

use super::installation::{Processes, SaidSources};
use super::ip_pools;
use crate::database::{Database, Query, SqlStore, Statements};
use crate::fault::Fault;
use crate::pages::sql_limit;
use crate::row::{Row, count, document, get, stored, time};
use crate::sql::{Sql, params, sql};

/// Changes what is kept of sources.
pub(crate) fn change(on: &mut dyn Statements, write: &SourceWrite) -> Result<(), Fault> {
    match write {
        SourceWrite::Grant(grant) => ip_pools::grant(on, grant),
        SourceWrite::Revoke(workspace, ip) => ip_pools::revoke(on, *workspace, *ip),
        SourceWrite::PutSource(row, expect) | SourceWrite::OrderSource(row, expect) => put(on, row, *expect),
        SourceWrite::PutPath(row, expect) | SourceWrite::OrderPath(row, expect) => put_path(on, row, *expect),
    }
}

fn put(on: &mut dyn Statements, source: &SourceRow, expect: Expect) -> Result<(), Fault> {
    let mut row = params![source.ip.to_string(), document(source)?];
    match expect {
        Expect::Absent => on.run(sql!("INSERT INTO sources (ip, revision, doc) VALUES ($1, 1, $2)"), row),
        Expect::Revision(revision) => {
            row.push(revision.into());
            on.run_one(
                sql!("UPDATE sources SET doc = $2, revision = revision + 1 WHERE ip = $1 AND revision = $3"),
                row,
            )
        }
    }
}

fn put_path(on: &mut dyn Statements, path: &PathRow, expect: Expect) -> Result<(), Fault> {
    let sent_today = i64::try_from(path.sent_today).unwrap_or(i64::MAX);
    let mut row = params![
        path.ip.to_string(),
        path.site.as_str(),
        sent_today,
        path.day,
        path.is_stopped,
        path.updated_at,
        path.state.as_str()
    ];
    match expect {
        Expect::Absent => on.run(
            sql!(
                "INSERT INTO paths (ip, site, revision, sent_today, day, is_stopped, updated_at, state)
                 VALUES ($1, $2, 1, $3, $4, $5, $6, $7)"
            ),
            row,
        ),
        Expect::Revision(revision) => {
            row.push(revision.into());
            on.run_one(
                sql!(
                    "UPDATE paths SET sent_today = $3, day = $4, is_stopped = $5, updated_at = $6, state = $7,
                         revision = revision + 1 WHERE ip = $1 AND site = $2 AND revision = $8"
                ),
                row,
            )
        }
    }
}

/// The path of a row that has the columns of [`PATHS`] from a column on.
fn path(row: &dyn Row, from: usize) -> Result<PathRow, Fault> {
    Ok(PathRow {
        ip: get::<&str>(row, from)?.parse().map_err(|_| Fault::Malformed("the address of a path is none"))?,
        site: get(row, from + 1)?,
        sent_today: count(row, from + 2)?,
        day: get(row, from + 3)?,
        is_stopped: get(row, from + 4)?,
        updated_at: time(row, from + 5)?,
        state: get(row, from + 6)?,
    })
}

fn stored_path(row: &dyn Row) -> Result<Stored<PathRow>, Fault> {
    Ok(Stored { revision: get(row, 0)?, record: path(row, 1)? })
}

/// The columns of a path.
macro_rules! select_paths {
    ($first:literal, $rest:literal) => {
        concat!(
            "SELECT ",
            $first,
            "ip, site, sent_today, day, is_stopped, updated_at, state FROM paths WHERE ip = $1 ",
            $rest
        )
    };
}

#[async_trait]
impl<D: Database + Processes> Sources for SqlStore<D> {
    async fn announce_sources(&self, sources: &[NamedSource]) -> Result<(), StoreError> {
        self.announce_own_sources(document(&sources)?).await
    }

    async fn live_sources(&self) -> Result<Vec<NodeSource>, StoreError> {
        let mut live = Vec::new();
        for SaidSources { node, joined, is_own, sources } in self.sources_of_nodes().await? {
            let sources: Vec<NamedSource> = serde_json::from_str(&sources).map_err(Fault::from)?;
            live.extend(sources.into_iter().map(|source| NodeSource { source, node: node.clone(), joined, is_own }));
        }
        Ok(live)
    }

    async fn lane_of_node(&self, lane: &Lane, joined: i64) -> Result<Option<Lane>, StoreError> {
        self.lane_claimed_by(lane, joined).await
    }

    async fn source_rows(
        &self,
        after: Option<SourceAddress>,
        limit: usize,
    ) -> Result<Vec<Stored<SourceRow>>, StoreError> {
        const SQL: Sql = sql!("SELECT revision, doc FROM sources WHERE ip > $1 ORDER BY ip LIMIT $2");
        let after = after.map_or_else(String::new, |ip| ip.to_string());
        self.many(Query::new(SQL, params![after, sql_limit(limit)], stored)).await
    }

    async fn source_row(&self, ip: SourceAddress) -> Result<Option<Stored<SourceRow>>, StoreError> {
        const SQL: Sql = sql!("SELECT revision, doc FROM sources WHERE ip = $1");
        self.one(Query::new(SQL, params![ip.to_string()], stored)).await
    }

    async fn path_row(&self, ip: SourceAddress, site: &str) -> Result<Option<Stored<PathRow>>, StoreError> {
        const SQL: Sql = sql!(select_paths!("revision, ", "AND site = $2"));
        self.one(Query::new(SQL, params![ip.to_string(), site], stored_path)).await
    }

    async fn path_rows(
        &self,
        ip: SourceAddress,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Stored<PathRow>>, StoreError> {
        const SQL: Sql = sql!(select_paths!("revision, ", "AND site > $2 ORDER BY site LIMIT $3"));
        let bounds = params![ip.to_string(), after.unwrap_or_default(), sql_limit(limit)];
        self.many(Query::new(SQL, bounds, stored_path)).await
    }

    async fn busiest_paths(&self, ip: SourceAddress, day: i64, limit: usize) -> Result<Vec<PathRow>, StoreError> {
        const SQL: Sql =
            sql!(select_paths!("", "ORDER BY CASE WHEN day = $2 THEN sent_today ELSE 0 END DESC, site LIMIT $3"));
        let query = Query::new(SQL, params![ip.to_string(), day, sql_limit(limit)], |row| path(row, 0));
        self.many(query.scan()).await
    }

    async fn forget_paths(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        const SQL: Sql = sql!(
            sqlite: "DELETE FROM paths WHERE (ip, site) IN
                (SELECT ip, site FROM paths WHERE is_stopped = 0 AND updated_at < $1 LIMIT $2)",
            postgres: "DELETE FROM paths WHERE ctid = ANY (ARRAY (
                SELECT ctid FROM paths WHERE NOT is_stopped AND updated_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED))",
        );
        self.sweep(SQL, params![before, sql_limit(limit)]).await
    }
}
