//! Attempts of a message, with the dialogs on the wire.

use async_trait::async_trait;

use super::{PageRequest, Slice, StoreError};
use crate::domain::delivery::attempt::MessageAttempt;
use crate::ids::{MessageId, WorkspaceId};
use crate::time::Timestamp;

/// Reads of attempts.
#[async_trait]
pub trait Attempts {
    /// Returns the attempts of a message, newest first.
    async fn attempts(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
        page: PageRequest,
    ) -> Result<Slice<MessageAttempt>, StoreError>;
    /// Deletes up to `limit` attempts that ended before a time; returns how many.
    ///
    /// A write outside of [`Changes`](crate::changes::Changes): it decides nothing and may stop anywhere.
    async fn forget_attempts(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError>;
}
