//! What the sandbox captured.

use async_trait::async_trait;
use bytes::Bytes;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::Capture;
use messaging_core::ids::{Id as _, MessageId, WorkspaceId};
use messaging_core::ports::store::{PageRequest, Sandbox, Slice, StoreError};
use tokio_postgres::Row;

use super::PostgresStore;
use super::fault::Fault;
use super::query::params;
use super::row::{below_id, get, id, number, numbered, one_more, slice, sql_limit, time, uuid};
use super::sweep::sweep;
use super::transaction::Transaction;

/// Stores a capture, in the place of an earlier one of its message.
pub(super) fn put(transaction: &mut Transaction, capture: &Capture) {
    transaction.add_row(
        "INSERT INTO captures (workspace, message, channel, captured_at, recipient, sender, subject, source)
         SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[],
             $8::bytea[])
         ON CONFLICT (workspace, message) DO UPDATE SET channel = excluded.channel, captured_at = excluded.captured_at,
             recipient = excluded.recipient, sender = excluded.sender, subject = excluded.subject,
             source = excluded.source",
        params![
            uuid(capture.workspace_id),
            uuid(capture.message_id),
            number(&Channel::ALL, &capture.channel),
            capture.captured_at.as_millis(),
            capture.to.clone(),
            capture.from.clone(),
            capture.subject.clone(),
            capture.source.to_vec(),
        ],
    );
}

/// A capture without its source, from the columns message to subject.
fn capture(workspace: WorkspaceId, row: &Row) -> Result<Capture, Fault> {
    Ok(Capture {
        workspace_id: workspace,
        message_id: id(row, 0)?,
        channel: numbered(&Channel::ALL, get(row, 1)?)?,
        captured_at: time(row, 2)?,
        to: get(row, 3)?,
        from: get(row, 4)?,
        subject: get(row, 5)?,
        source: Bytes::new(),
    })
}

#[async_trait]
impl Sandbox for PostgresStore {
    async fn capture(&self, workspace: WorkspaceId, message: MessageId) -> Result<Option<Capture>, StoreError> {
        const SQL: &str = "SELECT message, channel, captured_at, recipient, sender, subject, source FROM captures
            WHERE workspace = $1 AND message = $2";
        self.reads
            .one(SQL, params![uuid(workspace), uuid(message)], |row| {
                Ok(Capture { source: get::<Vec<u8>>(row, 6)?.into(), ..capture(workspace, row)? })
            })
            .await
    }

    async fn captures(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<Capture>, StoreError> {
        const SQL: &str = "SELECT message, channel, captured_at, recipient, sender, subject FROM captures
            WHERE workspace = $1 AND message < $2 ORDER BY message DESC LIMIT $3";
        let bounds = params![uuid(workspace), below_id(&page), one_more(&page)];
        let items = self.reads.many(SQL, bounds, |row| capture(workspace, row)).await?;
        Ok(slice(items, page.limit, |capture: &Capture| capture.message_id.to_bytes()))
    }

    async fn trim_captures(&self, keep: usize, limit: usize) -> Result<u64, StoreError> {
        // From workspace to workspace by the index, whatever they have captured.
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
