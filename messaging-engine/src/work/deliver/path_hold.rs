//! Messages without an open path: their addresses warm up, a site wants less mail, or this node has no address for
//! them.
//!
//! The jobs of a recipient domain are claimed by one node, whichever pools their messages use. A message that may leave
//! from no address of that node continues in a separate lane, which a node claims that has one; only if no node has one
//! it is held.

use std::time::Duration;

use messaging_core::changes::Changes;
use messaging_core::domain::delivery::lane::{JobClass, Lane};
use messaging_core::domain::message::hold::HoldReason;
use messaging_core::domain::message::recipients::{Recipient, RecipientKind};
use messaging_core::domain::message::{Message, MessageStatus};
use messaging_core::ports::paths::PathTerms;
use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;

use crate::jobs::deliver_message::DeliverMessage;
use crate::services::source_choice::SourceHolder;
use crate::work::deliver::marketing_look::hold;
use crate::work::job::{JobContext, JobError};

/// Wait of a message whose node is about to appear.
const SOON: Duration = Duration::from_secs(3);

/// Place at which a message continues for which this node had no address.
enum Way {
    /// This node: it uses an address for the message by now.
    Here,
    /// A lane that another node claims.
    There(Lane),
    /// Another node, not known yet for a moment.
    Soon,
    /// None: no node has an address for the message.
    Nowhere,
}

impl DeliverMessage {
    /// Returns the conditions on the path of a message. Only transactional mail is sent at the end of its time whatever
    /// the warm-up allows; the time of other mail begins with its turn.
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

    /// Puts the message back until a path may be open, and records the reason.
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
        if reason == HoldReason::NoSource {
            match self.way_to_source(cx, message).await? {
                Way::Here => return cx.again_at(now, self, Changes::default()).await,
                Way::Soon => return cx.again_at(now + SOON, self, Changes::default()).await,
                Way::There(lane) => {
                    // Nodes that briefly disagree do not pass a message on without end.
                    let due_at = if self.lane.route().is_some() { now + SOON } else { now };
                    return cx.go_on_in_its_lane(due_at, &Self { lane, ..self.clone() }).await;
                }
                Way::Nowhere => {}
            }
        }
        let (until, held) = hold(message, reason, Some(now + wait), now);
        let changes = if self.tells_hold(message) { held } else { Changes::default() };
        let released_at = match self.lane.class() {
            JobClass::Transactional => self.released_at,
            JobClass::Bulk => Some(until),
        };
        cx.again_at(until, &Self { released_at, ..self.clone() }, changes).await
    }

    /// Finds the place at which a message continues that may leave from none of the addresses that this node uses.
    async fn way_to_source(&self, cx: &JobContext, message: &Message) -> Result<Way, StoreError> {
        let app = &cx.app;
        match app.source_holder_for(message).await? {
            SourceHolder::Nobody => Ok(Way::Nowhere),
            SourceHolder::Own => {
                app.paths().look_who_uses_what(app.store()).await?;
                let is_here = app.paths().uses_any(app.sources_for(message).await?.as_deref());
                Ok(if is_here { Way::Here } else { Way::Nowhere })
            }
            SourceHolder::Node(joined) => {
                let lane = app.store().lane_of_node(&self.lane, joined).await?;
                // A node that comes or goes has no places for a moment, and one that was just taken over is still this
                // node's.
                Ok(lane.filter(|lane| *lane != self.lane).map_or(Way::Soon, Way::There))
            }
        }
    }

    /// Returns true if this job decides the message's hold: it serves the message's own recipient, who waits.
    fn tells_hold(&self, message: &Message) -> bool {
        let waits = matches!(message.status, MessageStatus::Queued | MessageStatus::Deferred);
        waits && self.single_domain() == Some(&Recipient::new(RecipientKind::To, message.to.clone()).domain())
    }
}
