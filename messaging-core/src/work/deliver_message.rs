//! The job that delivers a message: one attempt, then done or later.
//!
//! Contract section 4.2. Delivery is at least once: the attempt is made, then its outcome committed; a
//! crash between the two repeats the attempt with the same Message-ID and marks it `ambiguous`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::changes::{Changes, MoveMessage, Write};
use crate::domain::address::EmailAddress;
use crate::domain::attempt::{Dialog, MessageAttempt};
use crate::domain::channel::Channel;
use crate::domain::contact::erasure::ErasedAddresses;
use crate::domain::content::{self, RequestContent};
use crate::domain::delivery::Judgment;
use crate::domain::message::{Capture, Message, MessageStatus};
use crate::domain::recipients::{self, Recipient, RecipientKey, RecipientKind};
use crate::ids::{MessageId, WorkspaceId};
use crate::ports::store::{CommitError, StoreError};
use crate::work::delivery::{Impossible, Performed, Prepared, Unprepared, perform, prepare};
use crate::work::job::{Job, JobContext, JobError, insist};

/// How often an outcome is decided again because the message changed meanwhile.
const MAX_COMMITS: usize = 8;

/// Delivers a message to those of its recipients that are still open.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DeliverMessage {
    workspace_id: WorkspaceId,
    message_id: MessageId,
    lane: String,
    /// Counts from 1.
    attempt: u32,
    /// Who is still open; `None` before the first attempt: everybody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    open: Option<Vec<RecipientKey>>,
}

impl DeliverMessage {
    /// The job of a new message.
    pub fn first(message: &Message) -> Self {
        Self {
            workspace_id: message.workspace_id,
            message_id: message.id,
            lane: lane_of(message),
            attempt: 1,
            open: None,
        }
    }
}

/// Email shares a lane by the recipient's domain, so that one dead domain delays nobody else; the other
/// channels by workspace, each of which has its own provider account.
fn lane_of(message: &Message) -> String {
    if message.channel == Channel::Email
        && let Ok(to) = EmailAddress::parse(&message.to)
    {
        return format!("email:{}", to.ascii_domain());
    }
    format!("{}:{}", message.channel, message.workspace_id)
}

impl Job for DeliverMessage {
    const KIND: &'static str = "deliver_message";

    fn lane(&self) -> String {
        self.lane.clone()
    }

    async fn run(self, cx: &JobContext) -> Result<(), JobError> {
        let store = cx.app.store();
        let Some((mut message, stored)) = store.message_with_content(self.workspace_id, self.message_id).await? else {
            return Ok(cx.finish(Changes::default()).await?);
        };
        if message.status == MessageStatus::Cancelled {
            return Ok(cx.finish(Changes::default()).await?);
        }
        // Only an attempt that was cut off leaves a message in this state.
        let interrupted = message.status == MessageStatus::Sending;
        let request = match stored.map(|stored| content::decode(&stored)) {
            Some(Ok(request)) => request,
            Some(Err(error)) => {
                let impossible = Impossible::new("render_error", error);
                return self.record(cx, message, Performed::only(impossible.judgment())).await;
            }
            None => {
                let impossible = Impossible::new("render_error", "the content is no longer stored");
                return self.record(cx, message, Performed::only(impossible.judgment())).await;
            }
        };
        let recipients = self.recipients(&message, &request);
        if recipients.is_empty() {
            return Ok(cx.finish(Changes::default()).await?);
        }
        let memory = cx.app.file_memory(request.files.iter().map(|file| file.size).sum()).await;
        let performed = match prepare(&cx.app, &message, &request, recipients).await {
            Ok(mut prepared) => {
                announce(cx, &mut message, &mut prepared).await?;
                perform(&cx.app, &message, self.attempt, interrupted, prepared).await
            }
            Err(Unprepared::Impossible(impossible)) => Performed::only(impossible.judgment()),
            Err(Unprepared::Store(error)) => return Err(error.into()),
            Err(Unprepared::PutOff(reason)) => return Err(StoreError::Failed(reason.into()).into()),
        };
        drop(memory);
        self.record(cx, message, performed).await
    }
}

/// Notes, before anything leaves the process, that an attempt has begun, and where the links of the
/// message lead. What stays in the process does both with its outcome.
///
/// A message whose `to` recipient is served, with a copy still open, keeps its state.
async fn announce(cx: &JobContext, message: &mut Message, prepared: &mut Prepared) -> Result<(), JobError> {
    if !prepared.leaves_the_process() {
        return Ok(());
    }
    let mut changes: Changes = cx.app.store_urls(message.workspace_id, prepared.take_urls()).into_iter().collect();
    let is_marked = message.status.may_become(MessageStatus::Sending);
    if is_marked {
        changes.push(Write::MoveMessage(MoveMessage {
            workspace_id: message.workspace_id,
            message_id: message.id,
            revision: message.revision,
            status: MessageStatus::Sending,
            at: cx.app.now(),
        }));
    }
    if !changes.is_empty() {
        cx.app.commit_in_background(changes).await?;
    }
    if is_marked {
        message.status = MessageStatus::Sending;
        message.revision += 1;
    }
    Ok(())
}

impl DeliverMessage {
    /// Who is still to be served. A report may have settled the message between two attempts, a bounce
    /// after the reply to the content was lost: then only the copies are left.
    fn recipients(&self, message: &Message, request: &RequestContent) -> Vec<Recipient> {
        let list = |copies: &Option<Vec<String>>| copies.clone().unwrap_or_default();
        // From the request as it is now: whoever was erased since the last attempt is not in it any more.
        let mut open = recipients::all(&message.to, &list(&request.input.cc), &list(&request.input.bcc));
        if let Some(keys) = &self.open {
            open.retain(|recipient| keys.contains(&RecipientKey::of(&recipient.address)));
        }
        if message.status.is_settled() {
            open.retain(|recipient| recipient.kind != RecipientKind::To);
        }
        open
    }

    /// Commits the outcome. What left cannot be taken back: when the message changed meanwhile, the same
    /// outcome is written over its new state.
    async fn record(self, cx: &JobContext, mut message: Message, performed: Performed) -> Result<(), JobError> {
        let Performed { mut judgment, mut captured, subject, mut dialogs, urls } = performed;
        for _ in 0..MAX_COMMITS {
            let mut changes = insist(&cx.app, || self.outcome(cx, &message, &judgment)).await?;
            for write in cx.app.store_urls(self.workspace_id, urls.clone()) {
                changes.push(write);
            }
            for dialog in &dialogs {
                changes.push(Write::AppendAttempt(Box::new(self.attempt(cx, dialog))));
            }
            if let Some(source) = &captured {
                changes.push(Write::PutCapture(Box::new(Capture {
                    workspace_id: message.workspace_id,
                    message_id: message.id,
                    channel: message.channel,
                    to: message.to.clone(),
                    from: message.from_email.clone(),
                    subject: subject.clone(),
                    captured_at: cx.app.now(),
                    source: source.clone(),
                })));
            }
            let committed = match judgment.next_attempt_at {
                Some(due_at) => {
                    let open = judgment.open.iter().map(|recipient| RecipientKey::of(&recipient.address)).collect();
                    let again = Self { attempt: self.attempt + 1, open: Some(open), ..self.clone() };
                    cx.again_at(due_at, &again, changes).await
                }
                None => cx.finish(changes).await.map_err(JobError::from),
            };
            match committed {
                Err(JobError::Commit(CommitError::Conflict)) => {
                    let read = || cx.app.store().message(self.workspace_id, self.message_id);
                    let read = insist(&cx.app, read).await?;
                    let Some(fresh) = read else { return Ok(cx.finish(Changes::default()).await?) };
                    message = fresh;
                    if message.to.is_empty() {
                        // The recipient was erased meanwhile: that it was sent stays, to whom does not.
                        judgment.forget_recipients();
                        (captured, dialogs) = (None, Vec::new());
                    } else if let Some(erased) = erased_copies(cx, &message, &judgment).await? {
                        erased.out_of_judgment(&mut judgment);
                        for dialog in &mut dialogs {
                            *dialog = erased.out_of_dialog(dialog).unwrap_or_else(|| dialog.clone());
                        }
                        captured = captured.map(|source| erased.out_of_source(&source).unwrap_or(source));
                    }
                }
                other => return other,
            }
        }
        Err(JobError::Commit(CommitError::Conflict))
    }

    fn attempt(&self, cx: &JobContext, dialog: &Dialog) -> MessageAttempt {
        let at = cx.app.now();
        MessageAttempt {
            id: cx.app.new_id(at),
            workspace_id: self.workspace_id,
            message_id: self.message_id,
            attempt: self.attempt,
            at,
            dialog: dialog.clone(),
        }
    }

    async fn outcome(&self, cx: &JobContext, message: &Message, judgment: &Judgment) -> Result<Changes, StoreError> {
        let now = cx.app.now();
        let mut changes = Changes::default();
        if let Some(status) = judgment.status
            && (message.status.may_become(status) || moves_through_sending(message.status, status))
        {
            changes.push(Write::MoveMessage(MoveMessage {
                workspace_id: message.workspace_id,
                message_id: message.id,
                revision: message.revision,
                status,
                at: now,
            }));
        }
        if changes.is_empty() && !copies_in(judgment, message).is_empty() {
            // Somebody who is copied may have been erased since the message was read.
            changes.push(Write::ExpectMessage(message.workspace_id, message.id, message.revision));
        }
        changes.extend(cx.app.append_events(message.workspace_id, message.id, judgment.events.clone()).await?);
        for write in cx.app.address_writes(message, judgment).await? {
            changes.push(write);
        }
        Ok(changes)
    }
}

/// The copied recipients that an outcome names.
fn copies_in<'a>(judgment: &'a Judgment, message: &Message) -> Vec<&'a str> {
    let named = judgment.events.iter().filter_map(|(_, meta)| meta.get("recipient").and_then(Value::as_str));
    named.filter(|recipient| !recipient.eq_ignore_ascii_case(&message.to)).collect()
}

/// The copied recipients of an outcome who were erased while the attempt was under way: the message does not copy
/// them any more.
async fn erased_copies(
    cx: &JobContext,
    message: &Message,
    judgment: &Judgment,
) -> Result<Option<ErasedAddresses>, StoreError> {
    let named = copies_in(judgment, message);
    if named.is_empty() {
        return Ok(None);
    }
    let found = cx.app.store().message_with_content(message.workspace_id, message.id).await?;
    let stored = found.and_then(|(_, content)| content);
    let Some(Ok(request)) = stored.map(|stored| content::decode(&stored)) else { return Ok(None) };
    let copied: Vec<_> =
        request.input.cc.iter().chain(&request.input.bcc).flatten().map(|copy| copy.to_lowercase()).collect();
    let erased = ErasedAddresses::new(named.into_iter().filter(|named| !copied.contains(&named.to_lowercase())));
    Ok((!erased.is_empty()).then_some(erased))
}

/// An attempt that stays in the process is not marked; its message moves through `sending` in one step.
/// One that found its recipient suppressed at the last look was marked although nothing left.
const fn moves_through_sending(from: MessageStatus, to: MessageStatus) -> bool {
    if matches!((from, to), (MessageStatus::Sending, MessageStatus::Suppressed)) {
        return true;
    }
    from.may_become(MessageStatus::Sending)
        && (MessageStatus::Sending.may_become(to) || matches!(to, MessageStatus::Complained))
}
