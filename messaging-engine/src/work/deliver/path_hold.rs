//! Messages that no path is open to: their addresses warm up, a provider wants less, or no node has an address for them.

use std::time::Duration;

use messaging_core::changes::Changes;
use messaging_core::domain::delivery::lane::JobClass;
use messaging_core::domain::message::hold::HoldReason;
use messaging_core::domain::message::recipients::{Recipient, RecipientKind};
use messaging_core::domain::message::{Message, MessageStatus};
use messaging_core::ports::paths::PathTerms;
use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;

use crate::jobs::deliver_message::DeliverMessage;
use crate::work::deliver::marketing_look::hold;
use crate::work::job::{JobContext, JobError};

impl DeliverMessage {
    /// Conditions under which the message may leave. Only mail that somebody waits for goes out at the end of its time
    /// whatever the warm-up says; the time of other mail begins with its turn.
    pub(super) async fn path_terms(
        &self,
        cx: &JobContext,
        message: &Message,
        expires_at: Timestamp,
    ) -> Result<PathTerms, StoreError> {
        let is_waited_for = self.lane.class() == JobClass::Transactional;
        let sources = cx.app.sources_for(message).await?;
        Ok(PathTerms { sources, expires_at: is_waited_for.then_some(expires_at) })
    }

    /// Puts the message back until a path may be open to it, and says what it waits for.
    pub(super) async fn hold_for_path(
        &self,
        cx: &JobContext,
        message: &Message,
        reason: HoldReason,
        wait: Duration,
    ) -> Result<(), JobError> {
        let now = cx.app.now();
        if let Some(campaign) = message.campaign_id.filter(|_| self.reserved_at.is_none()) {
            cx.app.campaign_pace().put_back(campaign, 1);
        }
        let (until, held) = hold(message, reason, Some(now + wait), now);
        let changes = if self.tells_hold(message) { held } else { Changes::default() };
        let released_at = match self.lane.class() {
            JobClass::Transactional => self.released_at,
            JobClass::Bulk => Some(until),
        };
        cx.again_at(until, &Self { released_at, ..self.clone() }, changes).await
    }

    /// True if the hold of this job is that of the message: it serves the message's own recipient, who waits.
    fn tells_hold(&self, message: &Message) -> bool {
        let waits = matches!(message.status, MessageStatus::Queued | MessageStatus::Deferred);
        waits && self.single_domain() == Some(&Recipient::new(RecipientKind::To, message.to.clone()).domain())
    }
}
