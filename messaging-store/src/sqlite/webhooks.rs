//! Webhooks and their deliveries.

mod deliveries;

use async_trait::async_trait;
use messaging_core::changes::Expect;
use messaging_core::domain::webhook::delivery::{Delivery, DeliveryStatus};
use messaging_core::domain::webhook::{Webhook, WebhookStatus};
use messaging_core::ids::{DeliveryId, Id as _, MessageId, WebhookId, WorkspaceId};
use messaging_core::ports::store::{PageRequest, ReplayRange, Slice, StoreError, Stored, Webhooks};
use messaging_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::fault::{Fault, expect_one};
use super::query::{many, one};
use super::row::{below, document, one_more, record, slice, stored, time};

pub(super) use deliveries::{insert as insert_delivery, mark_replayed, update as update_delivery};

pub(super) fn put(connection: &Connection, webhook: &Webhook, expect: Expect) -> Result<(), Fault> {
    let (workspace, id, doc) = (webhook.workspace_id.to_bytes(), webhook.id.to_bytes(), document(webhook)?);
    expect_one(match expect {
        Expect::Absent => connection
            .prepare_cached("INSERT INTO webhooks (workspace, id, revision, doc) VALUES (?1, ?2, 1, ?3)")?
            .execute(params![workspace, id, doc])?,
        Expect::Revision(revision) => connection
            .prepare_cached(
                "UPDATE webhooks SET doc = ?3, revision = revision + 1
                 WHERE workspace = ?1 AND id = ?2 AND revision = ?4",
            )?
            .execute(params![workspace, id, doc, revision])?,
    })
}

/// A conflict unless the webhook is in this state.
pub(super) fn expect(
    connection: &Connection,
    workspace: WorkspaceId,
    id: WebhookId,
    status: WebhookStatus,
) -> Result<(), Fault> {
    const SQL: &str = "SELECT 1 FROM webhooks WHERE workspace = ?1 AND id = ?2 AND doc ->> '$.status' = ?3";
    let is_so =
        connection.prepare_cached(SQL)?.exists(params![workspace.to_bytes(), id.to_bytes(), status.as_str()])?;
    if is_so { Ok(()) } else { Err(Fault::Conflict) }
}

pub(super) fn delete(connection: &Connection, workspace: WorkspaceId, id: WebhookId) -> Result<(), Fault> {
    connection
        .prepare_cached("DELETE FROM webhooks WHERE workspace = ?1 AND id = ?2")?
        .execute([workspace.to_bytes(), id.to_bytes()])?;
    end_failures(connection, workspace, id)
}

pub(super) fn note_failure(
    connection: &Connection,
    workspace: WorkspaceId,
    id: WebhookId,
    at: Timestamp,
) -> Result<(), Fault> {
    connection
        .prepare_cached(
            "INSERT INTO webhook_failures (workspace, webhook, since) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
        )?
        .execute(params![workspace.to_bytes(), id.to_bytes(), at.as_millis()])?;
    Ok(())
}

pub(super) fn end_failures(connection: &Connection, workspace: WorkspaceId, id: WebhookId) -> Result<(), Fault> {
    connection
        .prepare_cached("DELETE FROM webhook_failures WHERE workspace = ?1 AND webhook = ?2")?
        .execute([workspace.to_bytes(), id.to_bytes()])?;
    Ok(())
}

#[async_trait]
impl Webhooks for SqliteStore {
    async fn webhook(&self, workspace: WorkspaceId, id: WebhookId) -> Result<Option<Stored<Webhook>>, StoreError> {
        const SQL: &str = "SELECT revision, doc FROM webhooks WHERE workspace = ?1 AND id = ?2";
        self.readers
            .point_read(move |connection| one(connection, SQL, [workspace.to_bytes(), id.to_bytes()], stored))
            .await
    }

    async fn webhooks(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<Webhook>, StoreError> {
        const SQL: &str = "SELECT doc FROM webhooks WHERE workspace = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3";
        self.readers
            .read(move |connection| {
                let bounds = params![workspace.to_bytes(), below(&page), one_more(&page)];
                let items = many(connection, SQL, bounds, |row| record(row, 0))?;
                Ok(slice(items, page.limit, |webhook: &Webhook| webhook.id.to_bytes()))
            })
            .await
    }

    async fn failing_since(&self, workspace: WorkspaceId, id: WebhookId) -> Result<Option<Timestamp>, StoreError> {
        const SQL: &str = "SELECT since FROM webhook_failures WHERE workspace = ?1 AND webhook = ?2";
        self.readers
            .point_read(move |connection| {
                one(connection, SQL, [workspace.to_bytes(), id.to_bytes()], |row| time(row, 0))
            })
            .await
    }

    async fn delivery(&self, workspace: WorkspaceId, id: DeliveryId) -> Result<Option<Delivery>, StoreError> {
        self.readers.point_read(move |connection| deliveries::get(connection, workspace, id)).await
    }

    async fn deliveries(
        &self,
        workspace: WorkspaceId,
        webhook: WebhookId,
        status: Option<DeliveryStatus>,
        page: PageRequest,
    ) -> Result<Slice<Delivery>, StoreError> {
        self.readers.read(move |connection| deliveries::list(connection, (workspace, webhook), status, &page)).await
    }

    async fn deliveries_of_message(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
        page: PageRequest,
    ) -> Result<Slice<Delivery>, StoreError> {
        self.readers.read(move |connection| deliveries::of_message(connection, workspace, message, &page)).await
    }

    async fn backlog(
        &self,
        workspace: WorkspaceId,
        webhook: WebhookId,
        limit: usize,
    ) -> Result<Vec<Delivery>, StoreError> {
        self.readers.read(move |connection| deliveries::backlog(connection, (workspace, webhook), limit)).await
    }

    async fn replayable(
        &self,
        workspace: WorkspaceId,
        webhook: WebhookId,
        range: &ReplayRange,
        limit: usize,
    ) -> Result<Vec<Delivery>, StoreError> {
        let range = *range;
        self.readers
            .read(move |connection| deliveries::replayable(connection, (workspace, webhook), &range, limit))
            .await
    }

    async fn count_replayable(
        &self,
        workspace: WorkspaceId,
        webhook: WebhookId,
        range: &ReplayRange,
        limit: usize,
    ) -> Result<Option<(u64, DeliveryId)>, StoreError> {
        let range = *range;
        self.readers
            .read(move |connection| deliveries::count_replayable(connection, (workspace, webhook), &range, limit))
            .await
    }

    async fn expire_deliveries(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        self.writer.undurably(move |connection| deliveries::expire(connection, before, limit)).await
    }

    async fn give_up_backlogs(&self, limit: usize) -> Result<u64, StoreError> {
        self.writer.undurably(move |connection| deliveries::give_up_backlogs(connection, limit)).await
    }

    async fn forget_deliveries(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        self.writer.undurably(move |connection| deliveries::forget(connection, before, limit)).await
    }
}
