//! Webhooks and their deliveries.

mod deliveries;

use async_trait::async_trait;
use messaging_core::changes::Expect;
use messaging_core::domain::webhook::delivery::{Delivery, DeliveryStatus};
use messaging_core::domain::webhook::{Webhook, WebhookStatus};
use messaging_core::ids::{DeliveryId, Id as _, MessageId, WebhookId, WorkspaceId};
use messaging_core::ports::store::{PageRequest, ReplayRange, Slice, StoreError, Stored, Webhooks};
use messaging_core::time::Timestamp;

use crate::database::{Database, Query, SqlStore, Statements};
use crate::fault::Fault;
use crate::pages::{below, one_more};
use crate::row::{document, record, stored, time};
use crate::sql::{Sql, key, params, sql};

pub(crate) use deliveries::{insert as insert_delivery, mark_replayed, update as update_delivery};

pub(crate) fn put(on: &mut dyn Statements, webhook: &Webhook, expect: Expect) -> Result<(), Fault> {
    let mut row = params![key(webhook.workspace_id), key(webhook.id), webhook.status.as_str(), document(webhook)?];
    match expect {
        Expect::Absent => {
            on.run(sql!("INSERT INTO webhooks (workspace, id, revision, status, doc) VALUES ($1, $2, 1, $3, $4)"), row)
        }
        Expect::Revision(revision) => {
            row.push(revision.into());
            on.run_one(
                sql!(
                    "UPDATE webhooks SET status = $3, doc = $4, revision = revision + 1
                     WHERE workspace = $1 AND id = $2 AND revision = $5"
                ),
                row,
            )
        }
    }
}

/// A conflict unless the webhook is in this state, and stays so until the commit.
pub(crate) fn expect(
    on: &mut dyn Statements,
    workspace: WorkspaceId,
    id: WebhookId,
    status: WebhookStatus,
) -> Result<(), Fault> {
    const SQL: Sql = sql!(
        sqlite: "SELECT count(*) FROM webhooks WHERE workspace = $1 AND id = $2 AND status = $3",
        postgres: "SELECT count(*) FROM (
            SELECT 1 FROM webhooks WHERE workspace = $1 AND id = $2 AND status = $3 FOR SHARE) AS held",
    );
    on.expect(1, SQL, params![key(workspace), key(id), status.as_str()])
}

pub(crate) fn delete(on: &mut dyn Statements, workspace: WorkspaceId, id: WebhookId) -> Result<(), Fault> {
    on.run(sql!("DELETE FROM webhooks WHERE workspace = $1 AND id = $2"), params![key(workspace), key(id)])?;
    end_failures(on, workspace, id)
}

pub(crate) fn note_failure(
    on: &mut dyn Statements,
    workspace: WorkspaceId,
    id: WebhookId,
    at: Timestamp,
) -> Result<(), Fault> {
    on.run(
        sql!("INSERT INTO webhook_failures (workspace, webhook, since) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"),
        params![key(workspace), key(id), at],
    )
}

pub(crate) fn end_failures(on: &mut dyn Statements, workspace: WorkspaceId, id: WebhookId) -> Result<(), Fault> {
    on.run(sql!("DELETE FROM webhook_failures WHERE workspace = $1 AND webhook = $2"), params![key(workspace), key(id)])
}

#[async_trait]
impl<D: Database> Webhooks for SqlStore<D> {
    async fn webhook(&self, workspace: WorkspaceId, id: WebhookId) -> Result<Option<Stored<Webhook>>, StoreError> {
        const SQL: Sql = sql!("SELECT revision, doc FROM webhooks WHERE workspace = $1 AND id = $2");
        self.one(Query::new(SQL, params![key(workspace), key(id)], stored).point()).await
    }

    async fn webhooks(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<Webhook>, StoreError> {
        const SQL: Sql = sql!("SELECT doc FROM webhooks WHERE workspace = $1 AND id < $2 ORDER BY id DESC LIMIT $3");
        let bounds = params![key(workspace), below(&page), one_more(&page)];
        let query = Query::new(SQL, bounds, |row| record::<Webhook>(row, 0)).shared();
        self.page(query, page, |webhook| webhook.id.to_bytes()).await
    }

    async fn failing_since(&self, workspace: WorkspaceId, id: WebhookId) -> Result<Option<Timestamp>, StoreError> {
        const SQL: Sql = sql!("SELECT since FROM webhook_failures WHERE workspace = $1 AND webhook = $2");
        self.one(Query::new(SQL, params![key(workspace), key(id)], |row| time(row, 0)).point()).await
    }

    async fn delivery(&self, workspace: WorkspaceId, id: DeliveryId) -> Result<Option<Delivery>, StoreError> {
        deliveries::get(&self.0, workspace, id).await
    }

    async fn deliveries_among(&self, workspace: WorkspaceId, ids: &[DeliveryId]) -> Result<Vec<Delivery>, StoreError> {
        deliveries::among(&self.0, workspace, ids).await
    }

    async fn deliveries(
        &self,
        workspace: WorkspaceId,
        webhook: WebhookId,
        status: Option<DeliveryStatus>,
        page: PageRequest,
    ) -> Result<Slice<Delivery>, StoreError> {
        deliveries::list(&self.0, (workspace, webhook), status, page).await
    }

    async fn deliveries_of_message(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
        page: PageRequest,
    ) -> Result<Slice<Delivery>, StoreError> {
        deliveries::of_message(&self.0, workspace, message, page).await
    }

    async fn backlog(
        &self,
        workspace: WorkspaceId,
        webhook: WebhookId,
        limit: usize,
    ) -> Result<Vec<Delivery>, StoreError> {
        deliveries::backlog(&self.0, (workspace, webhook), limit).await
    }

    async fn replayable(
        &self,
        workspace: WorkspaceId,
        webhook: WebhookId,
        range: &ReplayRange,
        limit: usize,
    ) -> Result<Vec<Delivery>, StoreError> {
        deliveries::replayable(&self.0, (workspace, webhook), range, limit).await
    }

    async fn count_replayable(
        &self,
        workspace: WorkspaceId,
        webhook: WebhookId,
        range: &ReplayRange,
        limit: usize,
    ) -> Result<Option<(u64, DeliveryId)>, StoreError> {
        deliveries::count_replayable(&self.0, (workspace, webhook), range, limit).await
    }

    async fn expire_deliveries(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        deliveries::expire(&self.0, before, limit).await
    }

    async fn give_up_backlogs(&self, limit: usize) -> Result<u64, StoreError> {
        deliveries::give_up_backlogs(&self.0, limit).await
    }

    async fn forget_deliveries(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        deliveries::forget(&self.0, before, limit).await
    }
}
