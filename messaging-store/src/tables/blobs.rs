//! Which attachments were given up. Those that are named have no rows here.

use async_trait::async_trait;
use messaging_core::domain::message::attachment::MessageBlob;
use messaging_core::ports::store::{Blobs, StoreError};
use messaging_core::time::Timestamp;

use crate::database::{Database, SqlStore, Statements};
use crate::fault::Fault;
use crate::pages::{first_id_of, sql_limit};
use crate::sql::{Sql, key, params, sql};

/// On PostgreSQL whoever names a blob and whoever abandons it come one after the other, and the second sees what the first
/// did.
const LOCK: Sql = sql!(
    sqlite: "",
    postgres: "SELECT pg_advisory_xact_lock(hashtextextended('blob:' || $1::uuid::text, 0))",
);

/// A conflict when the blob was given up.
pub(crate) fn name(on: &mut dyn Statements, blob: MessageBlob) -> Result<(), Fault> {
    const ABANDONED: Sql = sql!("SELECT count(*) FROM abandoned_blobs WHERE blob = $1 AND workspace = $2");
    on.run(LOCK, params![key(blob.id)])?;
    on.expect(0, ABANDONED, params![key(blob.id), key(blob.workspace_id)])
}

/// Gives a blob up; a conflict when its message is there.
pub(crate) fn abandon(on: &mut dyn Statements, blob: MessageBlob) -> Result<(), Fault> {
    const NAMED: Sql = sql!("SELECT count(*) FROM messages WHERE workspace = $1 AND id = $2");
    on.run(LOCK, params![key(blob.id)])?;
    on.expect(0, NAMED, params![key(blob.workspace_id), key(blob.message_id)])?;
    on.run(
        sql!("INSERT INTO abandoned_blobs (blob, workspace) VALUES ($1, $2) ON CONFLICT DO NOTHING"),
        params![key(blob.id), key(blob.workspace_id)],
    )
}

#[async_trait]
impl<D: Database> Blobs for SqlStore<D> {
    async fn forget_abandoned_blobs(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        const SQL: Sql = sql!(
            sqlite: "DELETE FROM abandoned_blobs WHERE (blob, workspace) IN
                (SELECT blob, workspace FROM abandoned_blobs WHERE blob < $1 LIMIT $2)",
            postgres: "DELETE FROM abandoned_blobs WHERE ctid = ANY (ARRAY (
                SELECT ctid FROM abandoned_blobs WHERE blob < $1 ORDER BY blob LIMIT $2 FOR UPDATE SKIP LOCKED))",
        );
        self.sweep(SQL, params![first_id_of(before), sql_limit(limit)]).await
    }
}
