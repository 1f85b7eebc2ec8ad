//! The index by which contacts and messages are searched.

use async_trait::async_trait;

use super::StoreError;
use crate::domain::search::contacts::ContactBlock;
use crate::domain::search::messages::DueMessages;
use crate::time::Timestamp;

/// Reads of what the index lacks.
///
/// The index follows the rows: whoever works on the database asks for what is due every few seconds and commits it
/// ([`Write::PutContactBlock`](crate::changes::Write::PutContactBlock),
/// [`Write::PutMessageBlock`](crate::changes::Write::PutMessageBlock)). Listings find contacts of which the index does not
/// know yet all the same, and messages by their row.
#[async_trait]
pub trait SearchIndex {
    /// Blocks of contacts of which some changed, at most `limit`, those first that have been due for longest.
    async fn contact_blocks_due(&self, limit: usize) -> Result<Vec<ContactBlock>, StoreError>;
    /// Messages accepted before a time that no block has, and those of blocks that are to be made anew: because a message
    /// was changed, or because all were accepted before `aged`. At most `limit` blocks.
    async fn message_blocks_due(
        &self,
        before: Timestamp,
        aged: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueMessages>, StoreError>;
}
