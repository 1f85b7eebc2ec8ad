//! Letting contents of messages go.

use async_trait::async_trait;
use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;

use super::Postgres;
use super::sweep::sweep;
use crate::pages::{first_id_of, sql_limit};
use crate::sql::params;
use crate::tables::messages::ContentRows;

#[async_trait]
impl ContentRows for Postgres {
    async fn forget_old_contents(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        // Queued, sending, deferred (0, 1, 4) are not settled. What a provider has taken (2) is needed for the next message of
        // its chain, should it not arrive. Contents stand in the order of acceptance, which ids tell.
        const SQL: &str = "DELETE FROM message_contents WHERE ctid = ANY (ARRAY (
            SELECT c.ctid FROM message_contents c CROSS JOIN LATERAL (
                SELECT 1 FROM messages m WHERE m.workspace = c.workspace AND m.id = c.message
                    AND m.created_at < $1 AND m.status NOT IN (0, 1, 4)
                    AND (m.status <> 2 OR m.has_fallback IS NOT TRUE OR m.updated_at < $1) OFFSET 0) AS settled
            WHERE c.message < $2 ORDER BY c.message LIMIT $3 FOR UPDATE OF c SKIP LOCKED))";
        sweep(&self.writes, SQL, params![before, first_id_of(before), sql_limit(limit)]).await
    }
}
