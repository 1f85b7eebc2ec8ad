//! What was said on the wire.

use async_trait::async_trait;
use messaging_core::domain::attempt::{KEPT_ATTEMPTS, MessageAttempt};
use messaging_core::ids::{Id as _, MessageId, WorkspaceId};
use messaging_core::ports::store::{Attempts, PageRequest, Slice, StoreError};
use messaging_core::time::Timestamp;

use super::PostgresStore;
use super::fault::Fault;
use super::query::params;
use super::row::{below_id, document, get, id, one_more, record, slice, small, sql_limit, time, uuid};
use super::sweep::sweep;
use super::transaction::Transaction;

pub(super) fn append(transaction: &mut Transaction, attempt: &MessageAttempt) -> Result<(), Fault> {
    let (workspace, message) = (uuid(attempt.workspace_id), uuid(attempt.message_id));
    transaction.add_row(
        "INSERT INTO message_attempts (workspace, message, id, attempt, at, provider, doc)
         SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::bigint[], $5::bigint[], $6::text[], $7::text[])",
        params![
            workspace,
            message,
            uuid(attempt.id),
            i64::from(attempt.attempt),
            attempt.at.as_millis(),
            attempt.provider.clone(),
            document(&attempt.dialog)?,
        ],
    );
    if let Some(too_old) = attempt.attempt.checked_sub(KEPT_ATTEMPTS)
        && too_old > 0
    {
        transaction.run(
            "DELETE FROM message_attempts WHERE workspace = $1 AND message = $2 AND attempt <= $3",
            params![workspace, message, i64::from(too_old)],
        );
    }
    Ok(())
}

#[async_trait]
impl Attempts for PostgresStore {
    async fn attempts(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
        page: PageRequest,
    ) -> Result<Slice<MessageAttempt>, StoreError> {
        const SQL: &str = "SELECT id, attempt, at, provider, doc FROM message_attempts
            WHERE workspace = $1 AND message = $2 AND id < $3 ORDER BY id DESC LIMIT $4";
        let bounds = params![uuid(workspace), uuid(message), below_id(&page), one_more(&page)];
        let items = self
            .reads
            .many(SQL, bounds, |row| {
                Ok(MessageAttempt {
                    id: id(row, 0)?,
                    workspace_id: workspace,
                    message_id: message,
                    attempt: small(row, 1)?,
                    at: time(row, 2)?,
                    provider: get(row, 3)?,
                    dialog: record(row, 4)?,
                })
            })
            .await?;
        Ok(slice(items, page.limit, |attempt: &MessageAttempt| attempt.id.to_bytes()))
    }

    async fn forget_attempts(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        const SQL: &str = "DELETE FROM message_attempts WHERE ctid = ANY (ARRAY (
            SELECT ctid FROM message_attempts WHERE at < $1 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED))";
        sweep(&self.writes, SQL, params![before.as_millis(), sql_limit(limit)]).await
    }
}
