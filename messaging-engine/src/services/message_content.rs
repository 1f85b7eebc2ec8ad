//! What a message says, for whoever asks about it: read or made anew, because what was rendered is not kept.

use std::sync::Arc;

use messaging_core::domain::channel::Channel;
use messaging_core::domain::content::{self, RequestContent};
use messaging_core::domain::message::Message;
use messaging_core::ports::store::StoreError;

use crate::app::App;
use crate::app::memory_budget::Charge;
use crate::services::templates::Unrendered;

/// Contents up to this many bytes are read without asking for room.
const SMALL: u64 = 64 << 10;

/// How often a content is in memory while it is shown: as it is stored, as it was rendered, as it is answered.
const COPIES: u64 = 4;

/// Whoever reads contents shares room as if it were one mail server.
const LANE: &str = "read";

/// What a message is made of, and the room that it takes while it is looked at.
pub(crate) struct KeptContent {
    pub(crate) request: RequestContent,
    _room: Option<Charge>,
}

impl App {
    /// What a message is made of; `None` once its recipient was erased, its content was removed, or its campaign was.
    pub(crate) async fn kept_content(&self, message: &Message) -> Result<Option<KeptContent>, StoreError> {
        if message.is_redacted() {
            return Ok(None);
        }
        let (workspace, id) = (message.workspace_id, message.id);
        let length = match message.campaign_id {
            Some(_) => self.campaign_content_size(message).await?,
            None => match self.store().message_with_length(workspace, id).await? {
                Some((_, Some(length))) => length,
                _ => return Ok(None),
            },
        };
        let room = match length {
            ..=SMALL => None,
            length => Some(Arc::clone(self.content_memory()).take(LANE, length * COPIES).await),
        };
        let request = if message.campaign_id.is_some() {
            self.campaign_request(message).await?
        } else {
            let stored = self.store().message_with_content(workspace, id).await?.and_then(|(_, stored)| stored);
            let decoded = stored.map(|stored| content::decode(&stored)).transpose();
            decoded
                .inspect_err(|error| tracing::error!(message_id = %id, error = %error, "unreadable content"))
                .ok()
                .flatten()
        };
        Ok(request.map(|request| KeptContent { request, _room: room }))
    }

    /// The subject of a message or its title, as it was sent or would be; `None` on channels that have none, when the
    /// content is not kept, and where it cannot be rendered.
    pub(crate) async fn subject_of(&self, message: &Message) -> Result<Option<String>, StoreError> {
        if !matches!(message.channel, Channel::Email | Channel::Push) {
            return Ok(None);
        }
        let Some(kept) = self.kept_content(message).await? else { return Ok(None) };
        or_unrenderable(self.rendered_subject(message, &kept.request).await).map(Option::flatten)
    }
}

/// What was rendered; `None` where that is not possible, however often it is tried.
pub(crate) fn or_unrenderable<T>(rendered: Result<T, Unrendered>) -> Result<Option<T>, StoreError> {
    match rendered {
        Ok(rendered) => Ok(Some(rendered)),
        Err(Unrendered::Store(error)) => Err(error),
        Err(Unrendered::Busy) => Err(StoreError::Unavailable),
        Err(Unrendered::Gone | Unrendered::Broken | Unrendered::Failed { .. } | Unrendered::Unsendable(_)) => Ok(None),
    }
}
