//! Soft bounces in a row.

use async_trait::async_trait;

use super::StoreError;
use crate::domain::audience::soft_bounce::Streak;
use crate::domain::channel::Channel;
use crate::ids::WorkspaceId;

/// Reads of streaks of soft bounces.
#[async_trait]
pub trait SoftBounces {
    /// The streak of an address (normalised); of length 0 when there is none.
    async fn soft_bounces(&self, workspace: WorkspaceId, channel: Channel, address: &str)
    -> Result<Streak, StoreError>;
}
