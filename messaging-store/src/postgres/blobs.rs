//! What the database notes about blobs.

use async_trait::async_trait;
use messaging_core::domain::attachment::MessageBlob;
use messaging_core::ports::store::{Blobs, StoreError};
use messaging_core::time::Timestamp;

use super::PostgresStore;
use super::query::params;
use super::row::{first_id, sql_limit, uuid};
use super::sweep::sweep;
use super::transaction::Transaction;

/// A conflict when the blob was abandoned.
pub(super) fn name(transaction: &mut Transaction, blob: MessageBlob) {
    lock(transaction, blob);
    transaction.run(
        "SELECT expect_rows(count(*), 0) FROM abandoned_blobs WHERE blob = $1 AND workspace = $2",
        params![uuid(blob.id), uuid(blob.workspace_id)],
    );
}

/// Abandons a blob, unless its message is there.
pub(super) fn abandon(transaction: &mut Transaction, blob: MessageBlob) {
    lock(transaction, blob);
    transaction.run(
        "SELECT expect_rows(count(*), 0) FROM messages WHERE workspace = $1 AND id = $2",
        params![uuid(blob.workspace_id), uuid(blob.message_id)],
    );
    transaction.run(
        "INSERT INTO abandoned_blobs (blob, workspace) VALUES ($1, $2) ON CONFLICT DO NOTHING",
        params![uuid(blob.id), uuid(blob.workspace_id)],
    );
}

/// Whoever names a blob and whoever abandons it come one after the other, and the second sees what the first did.
fn lock(transaction: &mut Transaction, blob: MessageBlob) {
    transaction
        .run("SELECT pg_advisory_xact_lock(hashtextextended('blob:' || $1::uuid::text, 0))", params![uuid(blob.id)]);
}

#[async_trait]
impl Blobs for PostgresStore {
    async fn forget_abandoned_blobs(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        const SQL: &str = "DELETE FROM abandoned_blobs WHERE ctid = ANY (ARRAY (
            SELECT ctid FROM abandoned_blobs WHERE blob < $1 ORDER BY blob LIMIT $2 FOR UPDATE SKIP LOCKED))";
        sweep(&self.writes, SQL, params![first_id(before), sql_limit(limit)]).await
    }
}
