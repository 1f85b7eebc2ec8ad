//! The watch over a message that another one follows should it not arrive.

use std::time::Duration;

use messaging_core::domain::delivery::lane::Lane;
use messaging_core::domain::message::fallback;
use messaging_core::ids::{MessageId, WorkspaceId};
use messaging_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::jobs::{JobData, Reach};

/// A message that is looked at when it is settled is looked at so often besides.
pub(crate) const LOOK_AGAIN_AFTER: Duration = Duration::from_hours(24);

/// Sends the next message of a chain when it is known that this one does not arrive, or it takes too long.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SendFallback {
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) message_id: MessageId,
    /// When it is not waited for any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<Timestamp>,
}

impl JobData for SendFallback {
    const KIND: &'static str = "send_fallback";
    const REACH: Reach = Reach::Outside;

    fn lane(&self) -> Lane {
        fallback::lane(self.workspace_id, self.message_id)
    }
}
