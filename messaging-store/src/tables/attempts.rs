//! Transaction logs of delivery attempts.

use async_trait::async_trait;
use messaging_core::domain::delivery::attempt::{KEPT_ATTEMPTS, MessageAttempt};
use messaging_core::ids::{Id as _, MessageId, WorkspaceId};
use messaging_core::ports::store::{Attempts, PageRequest, Slice, StoreError};
use messaging_core::time::Timestamp;

use crate::database::{Aged, Database, Query, SqlStore, Statements};
use crate::fault::Fault;
use crate::pages::{below, one_more};
use crate::row::{document, get, id, record, time};
use crate::sql::{Sql, key, params, sql};

const OLD: Aged = Aged {
    table: "message_attempts",
    window: 2_000,
    slice: 500,
    find: "SELECT n, at < ?3 FROM message_attempts WHERE n > ?1 ORDER BY n LIMIT ?2",
    delete: sql!(
        sqlite: "DELETE FROM message_attempts WHERE n = ?1 AND at < ?2",
        postgres: "DELETE FROM message_attempts WHERE ctid = ANY (ARRAY (
            SELECT ctid FROM message_attempts WHERE at < $1 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED))",
    ),
};

pub(crate) fn append(on: &mut dyn Statements, attempt: &MessageAttempt) -> Result<(), Fault> {
    const APPEND: Sql = sql!(
        sqlite: "INSERT INTO message_attempts (workspace, message, id, attempt, at, provider, doc)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        postgres: "INSERT INTO message_attempts (workspace, message, id, attempt, at, provider, doc)
            SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::bigint[], $5::bigint[], $6::text[],
                $7::text[])",
    );
    const FORGET: Sql = sql!("DELETE FROM message_attempts WHERE workspace = $1 AND message = $2 AND attempt <= $3");
    let MessageAttempt { workspace_id, message_id, id, attempt: number, at, provider, dialog, .. } = attempt;
    let (workspace, message) = (key(*workspace_id), key(*message_id));
    on.gather(
        APPEND,
        params![workspace.clone(), message.clone(), key(*id), *number, *at, provider.as_deref(), document(dialog)?],
    )?;
    match number.checked_sub(KEPT_ATTEMPTS) {
        None | Some(0) => Ok(()),
        Some(too_old) => on.run(FORGET, params![workspace, message, too_old]),
    }
}

#[async_trait]
impl<D: Database> Attempts for SqlStore<D> {
    async fn attempts(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
        page: PageRequest,
    ) -> Result<Slice<MessageAttempt>, StoreError> {
        const SQL: Sql = sql!(
            "SELECT id, attempt, at, provider, doc FROM message_attempts
             WHERE workspace = $1 AND message = $2 AND id < $3 ORDER BY id DESC LIMIT $4"
        );
        let bounds = params![key(workspace), key(message), below(&page), one_more(&page)];
        let query = Query::new(SQL, bounds, move |row| {
            Ok(MessageAttempt {
                id: id(row, 0)?,
                workspace_id: workspace,
                message_id: message,
                attempt: get(row, 1)?,
                at: time(row, 2)?,
                provider: get(row, 3)?,
                dialog: record(row, 4)?,
            })
        });
        self.page(query, page, |attempt| attempt.id.to_bytes()).await
    }

    async fn forget_attempts(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        self.sweep_aged(&OLD, before, limit).await
    }
}
