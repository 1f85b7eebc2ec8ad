//! Requests of the API that were logged.

use async_trait::async_trait;

use super::{PageRequest, Slice, StoreError};
use crate::domain::security::request_log::{LoggedBodies, LoggedRequest, RequestFilter};
use crate::ids::{RequestId, WorkspaceId};
use crate::time::Timestamp;

/// Reads of logged requests.
#[async_trait]
pub trait RequestLogs {
    /// Requests of a workspace that pass a filter, newest first.
    async fn logged_requests(
        &self,
        workspace: WorkspaceId,
        filter: &RequestFilter,
        page: PageRequest,
    ) -> Result<Slice<LoggedRequest>, StoreError>;
    /// The newest request of an id, with its bodies.
    async fn logged_request(
        &self,
        workspace: WorkspaceId,
        id: &str,
    ) -> Result<Option<(LoggedRequest, LoggedBodies)>, StoreError>;
    /// Requests of a workspace of which bodies are kept, newest first, each with its resource.
    async fn logged_bodies(
        &self,
        workspace: WorkspaceId,
        page: PageRequest,
    ) -> Result<Slice<(RequestId, Option<String>, LoggedBodies)>, StoreError>;
    /// Removes up to `limit` requests that are older than `before` or beyond the newest `keep` of their workspace; answers
    /// how many.
    ///
    /// A write outside of [`Changes`](crate::changes::Changes): it decides nothing and may stop anywhere.
    async fn forget_requests(&self, before: Timestamp, keep: usize, limit: usize) -> Result<u64, StoreError>;
}
