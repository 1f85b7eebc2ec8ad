//! The suppression list.

use async_trait::async_trait;

use super::{PageRequest, Slice, StoreError, Stored};
use crate::domain::audience::suppression::{Suppression, SuppressionFilter};
use crate::domain::channel::Channel;
use crate::ids::{SuppressionId, WorkspaceId};

/// Reads of the suppression list.
#[async_trait]
pub trait Suppressions {
    /// Those of the given addresses (normalised) that are on the list of their channel, in no particular
    /// order.
    async fn suppressed_anywhere(
        &self,
        workspace: WorkspaceId,
        addresses: &[(Channel, String)],
    ) -> Result<Vec<Suppression>, StoreError>;
    /// Those of the given addresses (normalised) that are on the channel's list, in no particular order.
    async fn suppressed(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        addresses: &[String],
    ) -> Result<Vec<Stored<Suppression>>, StoreError>;
    /// A suppression by id.
    async fn suppression(
        &self,
        workspace: WorkspaceId,
        id: SuppressionId,
    ) -> Result<Option<Stored<Suppression>>, StoreError>;
    /// The suppressions that match, newest first.
    async fn suppressions(
        &self,
        workspace: WorkspaceId,
        filter: &SuppressionFilter,
        page: PageRequest,
    ) -> Result<Slice<Suppression>, StoreError>;
}
