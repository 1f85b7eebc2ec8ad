//! Captures on PostgreSQL.

use async_trait::async_trait;
use bytes::Bytes;
use messaging_core::ids::{MessageId, WorkspaceId};
use messaging_core::ports::store::StoreError;

use super::Postgres;
use super::sweep::sweep;
use crate::pages::sql_limit;
use crate::sql::params;
use crate::tables::sandbox::CaptureRows;

#[async_trait]
impl CaptureRows for Postgres {
    async fn source_elsewhere(&self, _: WorkspaceId, _: MessageId) -> Result<Option<Bytes>, StoreError> {
        Ok(None)
    }

    async fn trim_rows_of_captures(&self, keep: usize, limit: usize) -> Result<u64, StoreError> {
        // From workspace to workspace by the index, with any number of captures.
        const SQL: &str = "WITH RECURSIVE spaces (workspace) AS (
                (SELECT workspace FROM captures ORDER BY workspace LIMIT 1)
                UNION ALL
                SELECT (SELECT c.workspace FROM captures c WHERE c.workspace > spaces.workspace
                    ORDER BY c.workspace LIMIT 1)
                FROM spaces WHERE spaces.workspace IS NOT NULL
            ),
            surplus AS MATERIALIZED (
                SELECT old.workspace, old.message FROM spaces CROSS JOIN LATERAL (
                    SELECT c.workspace, c.message FROM captures c WHERE c.workspace = spaces.workspace
                    ORDER BY c.message DESC OFFSET $1
                ) old LIMIT $2
            )
            DELETE FROM captures WHERE (workspace, message) IN (
                SELECT c.workspace, c.message FROM captures c JOIN surplus USING (workspace, message)
                FOR UPDATE OF c SKIP LOCKED)";
        sweep(&self.writes, SQL, params![sql_limit(keep), sql_limit(limit)]).await
    }
}
