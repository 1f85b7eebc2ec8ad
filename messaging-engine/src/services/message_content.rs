//! Content of stored messages for readers: read from the store or rendered again, because rendered content is not kept.

use std::sync::Arc;

use messaging_core::changes::Write;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::sms::{self, Size};
use messaging_core::domain::message::Message;
use messaging_core::domain::message::content::{self, RequestContent};
use messaging_core::domain::security::redaction::Redactor;
use messaging_core::error::Chain;
use messaging_core::ports::store::StoreError;

use crate::app::App;
use crate::app::memory_budget::Charge;
use crate::services::templates::Unrendered;

/// Contents up to this many bytes are read without reserving memory.
const SMALL: u64 = 64 << 10;

/// Upper bound on the copies of a content in memory while it is shown: stored, rendered, and in the answer.
const COPIES: u64 = 4;

/// Share of the content memory that all readers use together, as if they were one mail server.
const LANE: &str = "read";

/// Request of a message with the memory reserved for reading it.
pub(crate) struct KeptContent {
    pub(crate) request: RequestContent,
    _room: Option<Charge>,
}

impl App {
    /// Reads the request of a message; `None` once its recipient was erased, its content was removed, or its campaign
    /// was.
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
                .inspect_err(|error| tracing::error!(message_id = %id, error = %Chain(error), "unreadable content"))
                .ok()
                .flatten()
        };
        Ok(request.map(|request| KeptContent { request, _room: room }))
    }

    /// Returns the outline of a message as it was sent or would be: empty on channels without subject and parts, if the
    /// content is not kept, and if it cannot be rendered.
    pub(crate) async fn outline_of(&self, message: &Message, redactor: Redactor) -> Result<Outline, StoreError> {
        if !matches!(message.channel, Channel::Email | Channel::Push | Channel::Sms) {
            return Ok(Outline::default());
        }
        let Some(kept) = self.kept_content(message).await? else { return Ok(Outline::default()) };
        if message.channel == Channel::Sms {
            return Ok(Outline { subject: None, sms: self.sms_size(message, &kept.request, redactor).await? });
        }
        let subject = or_unrenderable(self.rendered_subject(message, &kept.request, redactor).await)?.flatten();
        Ok(Outline { subject: subject.map(|subject| redactor.text(subject)), sms: None })
    }

    /// Returns the size of a text message; `None` if it cannot be rendered.
    async fn sms_size(
        &self,
        message: &Message,
        request: &RequestContent,
        redactor: Redactor,
    ) -> Result<Option<Size>, StoreError> {
        let parts = or_unrenderable(self.message_parts_for(message, request, redactor).await)?;
        Ok(parts.and_then(|parts| parts.text).map(|text| sms::size(&text)))
    }

    /// Returns the number of segments of a text message that these writes accept; `None` on other channels, and if it
    /// is not known now: that is no reason to refuse it.
    pub(crate) async fn segments_of_new(&self, writes: &[Write], redactor: Redactor) -> Option<u32> {
        let inserted = writes.iter().find_map(|write| match write {
            Write::InsertMessage(message, content) if message.channel == Channel::Sms => Some((message, content)),
            _ => None,
        });
        let (message, content) = inserted?;
        let request = content::decode(content).ok()?;
        let size = self.sms_size(message, &request, redactor).await.ok()??;
        u32::try_from(size.segments).ok()
    }
}

/// Summary of a message's content for answers.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    /// The subject of an email, the title of a push message.
    pub(crate) subject: Option<String>,
    /// Size of a text message in parts, and its encoding; `None` on other channels.
    pub(crate) sms: Option<Size>,
}

/// Turns a failure to render into `None` if repeating it cannot help; other failures are errors.
pub(crate) fn or_unrenderable<T>(rendered: Result<T, Unrendered>) -> Result<Option<T>, StoreError> {
    match rendered {
        Ok(rendered) => Ok(Some(rendered)),
        Err(Unrendered::Store(error)) => Err(error),
        Err(Unrendered::Busy) => Err(StoreError::Unavailable),
        Err(Unrendered::Gone | Unrendered::Broken | Unrendered::Failed { .. } | Unrendered::Unsendable(_)) => Ok(None),
    }
}
