//! The index by which contacts and messages are searched.

use async_trait::async_trait;

use super::StoreError;
use crate::domain::search::contacts::ContactBlock;
use crate::domain::search::messages::DueMessages;
use crate::time::Timestamp;

/// Reads of rows that are not indexed yet.
///
/// The index follows the rows: the process that runs jobs asks every few seconds for due blocks and commits them
/// ([`Write::PutContactBlock`](crate::changes::Write::PutContactBlock),
/// [`Write::PutMessageBlock`](crate::changes::Write::PutMessageBlock)). Listings also find contacts that are not
/// indexed yet, and messages by their row.
#[async_trait]
pub trait SearchIndex {
    /// Returns blocks of contacts with changes, at most `limit`, those first that have been due for longest.
    async fn contact_blocks_due(&self, limit: usize) -> Result<Vec<ContactBlock>, StoreError>;
    /// Returns messages accepted before a time that are in no block, and those of blocks to rebuild: because a message
    /// was changed, or because all were accepted before `aged`. At most `limit` blocks.
    async fn message_blocks_due(
        &self,
        before: Timestamp,
        aged: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueMessages>, StoreError>;
}
