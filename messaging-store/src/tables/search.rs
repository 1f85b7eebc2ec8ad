//! The index by which contacts and messages are searched.
//!
//! A row holds the searched texts of some neighbors. It is so small that a million of them are searched in the time of
//! a request, and contains nothing that the rows themselves do not: contacts are compared anew, messages by the texts
//! of the index, because their texts are rendered. One call examines a limited number of blocks and rows, and its page
//! may be short, or empty, and still have a next one.
//!
//! Writes of contacts and messages do not wait for the index. Triggers note the blocks of changed contacts, and those
//! are examined besides the ones that the index finds; messages that the index does not have yet are compared by their
//! rows.

mod contacts;
mod messages;
mod pieces;

use async_trait::async_trait;
use messaging_core::domain::search::contacts::ContactBlock;
use messaging_core::domain::search::messages::DueMessages;
use messaging_core::ports::store::{SearchIndex, StoreError};
use messaging_core::time::Timestamp;

use crate::database::{Database, SqlStore};

pub(crate) use self::contacts::{page as contacts, put as put_contacts};
pub(crate) use self::messages::{index_anew, page as messages, put as put_messages};

#[async_trait]
impl<D: Database> SearchIndex for SqlStore<D> {
    async fn contact_blocks_due(&self, limit: usize) -> Result<Vec<ContactBlock>, StoreError> {
        contacts::due(&self.0, limit).await
    }

    async fn message_blocks_due(
        &self,
        before: Timestamp,
        aged: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueMessages>, StoreError> {
        messages::due(&self.0, before, aged, limit).await
    }
}
