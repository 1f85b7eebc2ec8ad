//! The job that gives the messages and product events of a merged contact to the one it became.
//!
//! Contract section 6.2. A page after another, so that no commit is long.

use std::time::Duration;

use messaging_core::changes::{AttributeMessage, Changes, MoveProductEvents, Write};
use messaging_core::domain::message::MessageFilter;
use messaging_core::ports::store::PageRequest;

use crate::jobs::move_messages::{EVENTS_AT_A_TIME, MoveMessages};
use crate::work::job::{Job, JobContext, JobError};

/// Messages of one commit.
const PAGE: usize = 200;

/// A message that was being accepted while its contact went is found so much later.
pub(super) const LOOK_AGAIN: Duration = Duration::from_mins(1);

impl Job for MoveMessages {
    async fn run(self, cx: &JobContext) -> Result<(), JobError> {
        let filter = MessageFilter { contact_id: Some(self.from), ..MessageFilter::default() };
        let page = PageRequest { after: None, limit: PAGE };
        let messages = cx.app.store().messages(self.workspace_id, &filter, page).await?.items;
        let attribute = |message_id| {
            let Self { workspace_id, from, to, .. } = self;
            Write::AttributeMessage(AttributeMessage { workspace_id, message_id, from, to })
        };
        let mut changes: Changes = messages.iter().map(|message| attribute(message.id)).collect();
        let Self { workspace_id, from, to, .. } = self;
        if cx.app.store().has_left_events(workspace_id, from).await? {
            let movement = MoveProductEvents { workspace_id, from, to, limit: EVENTS_AT_A_TIME };
            changes.push(Write::MoveProductEvents(movement));
        }
        let now = cx.app.now();
        match (changes.is_empty(), self.again) {
            (false, _) => cx.again_at(now, &self, changes).await,
            (true, false) => cx.again_at(now + LOOK_AGAIN, &Self { again: true, ..self }, changes).await,
            (true, true) => Ok(cx.finish(changes).await?),
        }
    }
}
