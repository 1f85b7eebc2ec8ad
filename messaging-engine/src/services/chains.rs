//! Writes beside an accepted message of a fallback chain: the job that watches it, or a message that failed at once.

use std::time::Duration;

use messaging_core::changes::{JobWrite, Write, moves};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address;
use messaging_core::domain::mail::link_token::CopyKey;
use messaging_core::domain::message::content;
use messaging_core::domain::message::message_input::MessageInput;
use messaging_core::domain::message::{EventKind, Message, MessageStatus};
use messaging_core::ids::{ContactId, MessageId, WorkspaceId};
use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;
use serde_json::{Map, json};

use crate::app::App;
use crate::jobs::JobData as _;
use crate::jobs::send_fallback::{LOOK_AGAIN_AFTER, SendFallback};

/// A message that is not sent, but stored as part of its chain.
pub(crate) struct Unsent {
    pub(crate) workspace_id: WorkspaceId,
    /// Request for the message, as it was made.
    pub(crate) input: MessageInput,
    /// First message of its chain, if it is another one.
    pub(crate) fallback_of: Option<MessageId>,
    /// Contact that it was for.
    pub(crate) contact_id: Option<ContactId>,
}

/// Returns the keys by which an erasure finds a message, for each person that its request names besides its recipient,
/// once: copies, and the recipients of its chain.
pub(crate) fn copy_keys(app: &App, workspace: WorkspaceId, input: &MessageInput) -> Vec<CopyKey> {
    let copies = input.cc.iter().chain(&input.bcc).flatten().map(|copy| (Channel::Email, copy));
    let steps = input.fallback.iter().flatten().filter_map(|step| Some((step.channel, step.to.as_ref()?)));
    let link_key = app.link_key();
    let key = |(channel, address): (Channel, &String)| link_key.copy(workspace, &address::normalize(channel, address));
    let mut keys: Vec<_> = copies.chain(steps).filter(|(_, address)| !address.is_empty()).map(key).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

impl App {
    /// Returns the job that watches a message, if another one may follow it.
    pub(crate) fn watch(&self, message: &Message, input: &MessageInput, goes_out_at: Timestamp) -> Option<Write> {
        let next = input.fallback.as_ref()?.first()?;
        let until = next.after_seconds.map(|seconds| goes_out_at + Duration::from_secs(seconds.into()));
        let watch = SendFallback { workspace_id: message.workspace_id, message_id: message.id, until };
        let due_at = until.unwrap_or(goes_out_at + LOOK_AGAIN_AFTER);
        Some(Write::Job(JobWrite::Enqueue(watch.enqueue(self.new_id(message.created_at), due_at))))
    }

    /// Returns the writes that store a message which failed before any attempt.
    pub(crate) async fn keep_unsent(
        &self,
        unsent: Unsent,
        reason: &'static str,
        why: &str,
        now: Timestamp,
    ) -> Result<(MessageId, Vec<Write>), StoreError> {
        let Unsent { workspace_id, input, fallback_of, contact_id } = unsent;
        let message = Message {
            contact_id,
            fallback_of,
            has_fallback: input.has_fallback(),
            tags: input.tags.clone().unwrap_or_default(),
            metadata: input.metadata.clone().unwrap_or_default(),
            ..Message::queued(self.new_id(now), workspace_id, input.channel, input.to.clone().unwrap_or_default(), now)
        };
        let meta = Map::from_iter([("reason".to_owned(), json!(reason)), ("message".to_owned(), json!(why))]);
        let failed = message.moved(MessageStatus::Failed, now);
        let copies = copy_keys(self, workspace_id, &input);
        let watch = self.watch(&message, &input, now);
        let mut writes =
            vec![Write::InsertMessage(Box::new(message.clone()), content::encode(None, input, Vec::new(), None, None))];
        if !copies.is_empty() {
            writes.push(Write::ListCopies(workspace_id, message.id, copies));
        }
        // The job comes before the move, which wakes it.
        writes.extend(watch);
        writes.extend(moves(&message, &failed, None, now));
        writes.extend(self.append_events((&message).into(), [(EventKind::Failed, meta)]).await?);
        Ok((message.id, writes))
    }
}
