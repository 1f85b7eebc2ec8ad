//! Withdrawing a message that waits.

use messaging_core::changes::{Write, moves};
use messaging_core::domain::message::{EventKind, Message, MessageStatus};
use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;
use serde_json::Map;

use crate::app::App;

impl App {
    /// The writes that cancel a message, which must be in a state that allows it. An attempt that is about to begin
    /// finds another revision, and does not begin.
    pub(crate) async fn cancellation_of(&self, message: &Message, now: Timestamp) -> Result<Vec<Write>, StoreError> {
        let mut writes = moves(message, &message.moved(MessageStatus::Cancelled, now), None, now);
        writes.extend(self.append_events(message.into(), [(EventKind::Cancelled, Map::new())]).await?);
        // It may have been the last that its campaign waits for.
        writes.extend(message.campaign_id.map(|id| Self::wake_campaign(message.workspace_id, id, now)));
        Ok(writes)
    }
}
