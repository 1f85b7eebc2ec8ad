//! Messages that the sandbox captured instead of sending them.

use async_trait::async_trait;
use bytes::Bytes;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::Capture;
use messaging_core::ids::{Id as _, MessageId, WorkspaceId};
use messaging_core::ports::store::{PageRequest, Sandbox, Slice, StoreError};

use crate::database::{Database, Query, SqlStore, Statements};
use crate::fault::Fault;
use crate::pages::{below, number, one_more};
use crate::row::{Row, get, id, numbered, time};
use crate::sql::{Sql, key, params, sql};

/// Methods that each database implements in its own way.
#[async_trait]
pub(crate) trait CaptureRows {
    /// The source of a capture that has none in its row.
    async fn source_elsewhere(&self, workspace: WorkspaceId, message: MessageId) -> Result<Option<Bytes>, StoreError>;

    /// See [`Sandbox::trim_captures`].
    async fn trim_rows_of_captures(&self, keep: usize, limit: usize) -> Result<u64, StoreError>;
}

/// Stores a capture, in place of an earlier one of its message. With `is_in_file` its source was written to a file
/// before.
pub(crate) fn put(on: &mut dyn Statements, capture: &Capture, is_in_file: bool) -> Result<(), Fault> {
    const SQL: Sql = sql!(
        sqlite: "INSERT OR REPLACE INTO captures
                (workspace, message, channel, captured_at, recipient, sender, subject, source)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        postgres: "INSERT INTO captures (workspace, message, channel, captured_at, recipient, sender, subject, source)
            SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[],
                $8::bytea[])
            ON CONFLICT (workspace, message) DO UPDATE SET channel = excluded.channel,
                captured_at = excluded.captured_at, recipient = excluded.recipient, sender = excluded.sender,
                subject = excluded.subject, source = excluded.source",
    );
    let row = params![
        key(capture.workspace_id),
        key(capture.message_id),
        number(&Channel::ALL, &capture.channel),
        capture.captured_at,
        capture.to.as_str(),
        capture.from.as_deref(),
        capture.subject.as_deref(),
        (!is_in_file).then(|| capture.source.clone()),
    ];
    on.gather(SQL, row)
}

/// A capture without its source, from the columns message to subject.
fn capture(workspace: WorkspaceId, row: &dyn Row) -> Result<Capture, Fault> {
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
impl<D: Database + CaptureRows> Sandbox for SqlStore<D> {
    async fn capture(&self, workspace: WorkspaceId, message: MessageId) -> Result<Option<Capture>, StoreError> {
        const SQL: Sql = sql!(
            "SELECT message, channel, captured_at, recipient, sender, subject, source FROM captures
             WHERE workspace = $1 AND message = $2"
        );
        let query = Query::new(SQL, params![key(workspace), key(message)], move |row| {
            Ok((capture(workspace, row)?, get::<Option<Vec<u8>>>(row, 6)?))
        });
        let Some((capture, source)) = self.one(query).await? else { return Ok(None) };
        let source = match source {
            Some(source) => Some(source.into()),
            None => self.source_elsewhere(workspace, message).await?,
        };
        Ok(source.map(|source| Capture { source, ..capture }))
    }

    async fn captures(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<Capture>, StoreError> {
        const SQL: Sql = sql!(
            "SELECT message, channel, captured_at, recipient, sender, subject FROM captures
             WHERE workspace = $1 AND message < $2 ORDER BY message DESC LIMIT $3"
        );
        let bounds = params![key(workspace), below(&page), one_more(&page)];
        let query = Query::new(SQL, bounds, move |row| capture(workspace, row));
        self.page(query, page, |capture| capture.message_id.to_bytes()).await
    }

    async fn trim_captures(&self, keep: usize, limit: usize) -> Result<u64, StoreError> {
        self.trim_rows_of_captures(keep, limit).await
    }
}
