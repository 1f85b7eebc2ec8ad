//! Webhooks and their deliveries.

mod deliveries;

use async_trait::async_trait;
use messaging_core::changes::Expect;
use messaging_core::domain::webhook::delivery::{Delivery, DeliveryStatus};
use messaging_core::domain::webhook::{Webhook, WebhookStatus};
use messaging_core::ids::{DeliveryId, Id as _, MessageId, WebhookId, WorkspaceId};
use messaging_core::ports::store::{PageRequest, ReplayRange, Slice, StoreError, Stored, Webhooks};
use messaging_core::time::Timestamp;
use uuid::Uuid;

use super::PostgresStore;
use super::fault::Fault;
use super::query::params;
use super::row::{
    below_id, document, first_id_of, one_more, record, revision_param, slice, sql_limit, stored, time, uuid,
};
use super::sweep::sweep;
use super::transaction::Transaction;

pub(super) use deliveries::{insert as insert_delivery, mark_replayed, update as update_delivery};

pub(super) fn put(transaction: &mut Transaction, webhook: &Webhook, expect: Expect) -> Result<(), Fault> {
    let (workspace, id) = (uuid(webhook.workspace_id), uuid(webhook.id));
    let (status, doc) = (webhook.status.as_str(), document(webhook)?);
    match expect {
        Expect::Absent => transaction.run(
            "INSERT INTO webhooks (workspace, id, revision, status, doc) VALUES ($1, $2, 1, $3, $4)",
            params![workspace, id, status, doc],
        ),
        Expect::Revision(revision) => transaction.run_one(
            "UPDATE webhooks SET status = $3, doc = $4, revision = revision + 1
             WHERE workspace = $1 AND id = $2 AND revision = $5",
            params![workspace, id, status, doc, revision_param(revision)],
        ),
    }
    Ok(())
}

/// A conflict unless the webhook is in this state, and stays so until the commit.
pub(super) fn expect(transaction: &mut Transaction, workspace: WorkspaceId, id: WebhookId, status: WebhookStatus) {
    transaction.run(
        "SELECT expect_rows((SELECT count(*) FROM (
             SELECT 1 FROM webhooks WHERE workspace = $1 AND id = $2 AND status = $3 FOR SHARE) AS held), 1)",
        params![uuid(workspace), uuid(id), status.as_str()],
    );
}

pub(super) fn delete(transaction: &mut Transaction, workspace: WorkspaceId, id: WebhookId) {
    transaction.run("DELETE FROM webhooks WHERE workspace = $1 AND id = $2", params![uuid(workspace), uuid(id)]);
    end_failures(transaction, workspace, id);
}

pub(super) fn note_failure(transaction: &mut Transaction, workspace: WorkspaceId, id: WebhookId, at: Timestamp) {
    transaction.run(
        "INSERT INTO webhook_failures (workspace, webhook, since) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        params![uuid(workspace), uuid(id), at.as_millis()],
    );
}

pub(super) fn end_failures(transaction: &mut Transaction, workspace: WorkspaceId, id: WebhookId) {
    transaction
        .run("DELETE FROM webhook_failures WHERE workspace = $1 AND webhook = $2", params![uuid(workspace), uuid(id)]);
}

#[async_trait]
impl Webhooks for PostgresStore {
    async fn webhook(&self, workspace: WorkspaceId, id: WebhookId) -> Result<Option<Stored<Webhook>>, StoreError> {
        const SQL: &str = "SELECT revision, doc FROM webhooks WHERE workspace = $1 AND id = $2";
        self.reads.one(SQL, params![uuid(workspace), uuid(id)], stored).await
    }

    async fn webhooks(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<Webhook>, StoreError> {
        const SQL: &str = "SELECT doc FROM webhooks WHERE workspace = $1 AND id < $2 ORDER BY id DESC LIMIT $3";
        let bounds = params![uuid(workspace), below_id(&page), one_more(&page)];
        let items = self.reads.many_shared(SQL, bounds, |row| record(row, 0)).await?;
        Ok(slice(items, page.limit, |webhook: &Webhook| webhook.id.to_bytes()))
    }

    async fn failing_since(&self, workspace: WorkspaceId, id: WebhookId) -> Result<Option<Timestamp>, StoreError> {
        const SQL: &str = "SELECT since FROM webhook_failures WHERE workspace = $1 AND webhook = $2";
        self.reads.one(SQL, params![uuid(workspace), uuid(id)], |row| time(row, 0)).await
    }

    async fn delivery(&self, workspace: WorkspaceId, id: DeliveryId) -> Result<Option<Delivery>, StoreError> {
        deliveries::get(&self.reads, workspace, id).await
    }

    async fn deliveries(
        &self,
        workspace: WorkspaceId,
        webhook: WebhookId,
        status: Option<DeliveryStatus>,
        page: PageRequest,
    ) -> Result<Slice<Delivery>, StoreError> {
        deliveries::list(&self.reads, (workspace, webhook), status, &page).await
    }

    async fn deliveries_of_message(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
        page: PageRequest,
    ) -> Result<Slice<Delivery>, StoreError> {
        deliveries::of_message(&self.reads, workspace, message, &page).await
    }

    async fn backlog(
        &self,
        workspace: WorkspaceId,
        webhook: WebhookId,
        limit: usize,
    ) -> Result<Vec<Delivery>, StoreError> {
        deliveries::backlog(&self.reads, (workspace, webhook), limit).await
    }

    async fn replayable(
        &self,
        workspace: WorkspaceId,
        webhook: WebhookId,
        range: &ReplayRange,
        limit: usize,
    ) -> Result<Vec<Delivery>, StoreError> {
        deliveries::replayable(&self.reads, (workspace, webhook), range, limit).await
    }

    async fn count_replayable(
        &self,
        workspace: WorkspaceId,
        webhook: WebhookId,
        range: &ReplayRange,
        limit: usize,
    ) -> Result<Option<(u64, DeliveryId)>, StoreError> {
        deliveries::count_replayable(&self.reads, (workspace, webhook), range, limit).await
    }

    async fn expire_deliveries(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        // Ids begin with their time: those behind are too young.
        const SQL: &str = "UPDATE webhook_deliveries
            SET status = 4, next_attempt_at = NULL, backlog = false, missed = (message IS NOT NULL)
            WHERE id = ANY (ARRAY (
                SELECT d.id FROM marked_deliveries k JOIN webhook_deliveries d ON d.id = k.delivery
                WHERE k.status = 3 AND k.delivery < $2 AND d.status = 3 AND d.created_at < $1
                ORDER BY k.delivery LIMIT $3 FOR UPDATE OF d SKIP LOCKED))";
        let bounds = params![before.as_millis(), Uuid::from_bytes(first_id_of(before)), sql_limit(limit)];
        sweep(&self.writes, SQL, bounds).await
    }

    async fn give_up_backlogs(&self, limit: usize) -> Result<u64, StoreError> {
        const SQL: &str = "UPDATE webhook_deliveries
            SET status = 2, next_attempt_at = NULL, backlog = false, missed = (message IS NOT NULL)
            WHERE id = ANY (ARRAY (
                SELECT d.id FROM marked_deliveries k JOIN webhook_deliveries d ON d.id = k.delivery
                WHERE (k.status = 3 OR k.backlog) AND (d.status = 3 OR d.backlog)
                ORDER BY k.delivery LIMIT $1 FOR UPDATE OF d SKIP LOCKED))";
        sweep(&self.writes, SQL, params![sql_limit(limit)]).await
    }

    async fn forget_deliveries(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        const SQL: &str = "DELETE FROM webhook_deliveries WHERE id = ANY (ARRAY (
            SELECT id FROM webhook_deliveries WHERE id < $2 AND created_at < $1
            ORDER BY id LIMIT $3 FOR UPDATE SKIP LOCKED))";
        let bounds = params![before.as_millis(), Uuid::from_bytes(first_id_of(before)), sql_limit(limit)];
        sweep(&self.writes, SQL, bounds).await
    }
}
