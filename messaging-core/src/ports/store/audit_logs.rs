//! Audit logs of workspaces and of the installation, whose workspace is `None`.

use async_trait::async_trait;

use super::{PageRequest, Slice, StoreError};
use crate::domain::security::audit::{AuditEntry, AuditFilter, Chain, StoredRow};
use crate::ids::WorkspaceId;
use crate::time::Timestamp;

/// Reads of audit logs.
#[async_trait]
pub trait AuditLogs {
    /// Entries of a log that pass a filter, newest first.
    async fn audit_entries(
        &self,
        workspace: Option<WorkspaceId>,
        filter: &AuditFilter,
        page: PageRequest,
    ) -> Result<Slice<AuditEntry>, StoreError>;
    /// The ends of a log's chain; `None` where nothing was ever recorded.
    async fn audit_chain(&self, workspace: Option<WorkspaceId>) -> Result<Option<Chain>, StoreError>;
    /// Rows of a log after a number, in their order.
    async fn audit_rows(
        &self,
        workspace: Option<WorkspaceId>,
        after: u64,
        limit: usize,
    ) -> Result<Vec<StoredRow>, StoreError>;
    /// A log whose first row was recorded before a time, with the number of the last one of its first `limit` rows up to
    /// which all were; `None` where there is no such log.
    async fn expired_audit_rows(
        &self,
        before: Timestamp,
        limit: usize,
    ) -> Result<Option<(Option<WorkspaceId>, u64)>, StoreError>;
}
