//! Many messages in one request.
//!
//! A request that fits into one commit is one commit, which also holds the answer to its Idempotency-Key. A request
//! with long texts or files, or with a message that the store refuses, is done in parts, each a commit of its own.

use bytes::Bytes;
use http::{Method, StatusCode};
use messaging_core::DomainError;
use messaging_core::changes::{Changes, Write};
use messaging_core::domain::message::MessageStatus;
use messaging_core::domain::message::message_input::MessageInput;
use messaging_core::domain::security::redaction::Redactor;
use messaging_core::ids::{MessageId, WorkspaceId};
use messaging_core::input::items::Items;
use messaging_core::input::{Empty, Input};
use messaging_core::scope::{Access, Scope};
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::Violations;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AcceptedMessage, MESSAGE_BODY_LIMIT};
use crate::app::App;
use crate::error::Error;
use crate::ops::contacts::ItemError;
use crate::ops::context::Context;
use crate::ops::operation::{Call, Operation};
use crate::ops::parts::{PartLimit, PartReport};
use crate::services::acceptance::{AcceptedWrites, NewFile, SentMessage};

/// Largest number of messages of one request (contract section 4).
const MAX_BATCH: u64 = 100;

/// Bytes of JSON of a part, unless one message alone is longer; written in some ten milliseconds.
const PART_BYTES: usize = 1 << 20;

/// Messages to send.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct BatchInput {
    /// 1 to 100 messages, accepted in order; each is refused or accepted alone.
    #[validate(length(min = 1, max = MAX_BATCH))]
    pub messages: Items<MessageInput>,
}

impl Input for BatchInput {}

/// Results of sending many messages: totals, and one entry for each message.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct BatchReport {
    /// Number of messages that were accepted.
    pub accepted: usize,
    /// Number of messages that were refused.
    pub failed: usize,
    /// Result of each message, in the order of the request.
    pub results: Vec<BatchResult>,
}

/// Result for one message of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct BatchResult {
    /// Index of the message in the request, from 0.
    pub index: usize,
    /// Result for the message: `queued`, or `error` if it was refused.
    pub status: BatchStatus,
    /// Id of the message; left out if it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// Number of parts in which a text message is sent, each of which is paid for; left out for other messages, and if
    /// the text is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segments: Option<u32>,
    /// Reason why the message was refused; left out if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ItemError>,
}

/// Result for one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BatchStatus {
    /// The message is accepted.
    Queued,
    /// The message was refused.
    Error,
}

impl BatchReport {
    /// Reports the outcomes of the messages from index `start` of the request on.
    fn of(start: usize, outcomes: Vec<Result<AcceptedMessage, Error>>) -> Self {
        let mut report = Self::default();
        for (index, outcome) in (start..).zip(outcomes) {
            let result = match outcome {
                Ok(accepted) => {
                    report.accepted += 1;
                    let AcceptedMessage { message_id, segments, .. } = accepted;
                    let status = BatchStatus::Queued;
                    BatchResult { index, status, message_id: Some(message_id), segments, error: None }
                }
                Err(refusal) => {
                    report.failed += 1;
                    let error = Some(ItemError::of_refusal(&refusal));
                    BatchResult { index, status: BatchStatus::Error, message_id: None, segments: None, error }
                }
            };
            report.results.push(result);
        }
        report
    }

    fn append(&mut self, part: Self) {
        self.accepted += part.accepted;
        self.failed += part.failed;
        self.results.extend(part.results);
    }
}

impl PartReport for BatchReport {
    fn items(&self) -> usize {
        self.results.len()
    }
}

/// `POST /messages/batch`
pub struct SendMessages;

impl Operation for SendMessages {
    const ID: &'static str = "sendMessages";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/messages/batch";
    const ACCESS: Access = Access::Scope(Scope::MessagesSend);
    const SUCCESS: StatusCode = StatusCode::ACCEPTED;
    const CLI: &'static str = "message batch";
    const SUMMARY: &'static str = "Send up to 100 messages, each independent of the others";
    const IN_PARTS: bool = true;
    type Path = Empty;
    type Query = Empty;
    type Body = BatchInput;
    type Output = BatchReport;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<BatchReport, Error> {
        let workspace = cx.workspace()?;
        let items = call.body.messages.reading(cx.unknown_members::<AcceptedMessage>());
        cx.take_tokens_in_all(items.len())?;
        let reader = (workspace, cx.redactor());
        let mut report = BatchReport::default();
        let mut start = 0;
        while start < items.len() {
            let end = end_of_part(&items, start);
            let turn = cx.app.part().await;
            let done = if cx.progress.is_whole(end - start == items.len()) {
                // Other requests wait until the caller has committed.
                cx.commit_permit = Some(turn);
                let part = accept(cx.app, reader, &items, start..end, cx.now).await?;
                cx.changes.extend(part.writes);
                cx.files.extend(part.files);
                BatchReport::of(start, part.outcomes)
            } else {
                let (app, items) = (cx.app, &items);
                let decide = |limit: PartLimit| async move {
                    if limit.is_refused {
                        let report = BatchReport::of(start, vec![Err(DomainError::NotStorable.into())]);
                        return Ok((Changes::default(), Vec::new(), report));
                    }
                    let range = start..end.min(start + limit.most);
                    let part = accept(app, reader, items, range, app.now()).await?;
                    Ok((part.writes.into_iter().collect(), part.files, BatchReport::of(start, part.outcomes)))
                };
                // Messages that were accepted before a failure stay, and the answer is the failure. Repeating the
                // request with its Idempotency-Key replays the parts that were done and does the rest.
                cx.do_part(Vec::new, decide).await?
            };
            start += done.items();
            report.append(done);
        }
        Ok(report)
    }
}

/// Returns the end of the part that begins at an item.
fn end_of_part(items: &Items<MessageInput>, start: usize) -> usize {
    let mut bytes = 0;
    let of_part = |index: &usize| {
        bytes += items.length_of(*index);
        *index == start || bytes <= PART_BYTES
    };
    start + (start..items.len()).take_while(of_part).count()
}

/// Messages that were decided on one by one.
struct Decided {
    writes: Vec<Write>,
    files: Vec<NewFile>,
    outcomes: Vec<Result<AcceptedMessage, Error>>,
}

/// Decides on messages one after another. An error is a failure that concerns no single message.
async fn accept(
    app: &App,
    (workspace, redactor): (WorkspaceId, Redactor),
    items: &Items<MessageInput>,
    range: std::ops::Range<usize>,
    now: Timestamp,
) -> Result<Decided, Error> {
    let mut decided = Decided { writes: Vec::new(), files: Vec::new(), outcomes: Vec::new() };
    for index in range {
        let outcome = match accept_one(app, workspace, items, index, now).await {
            Ok(AcceptedWrites { message_id, writes, files }) => {
                let segments = app.segments_of_new(&writes, redactor).await;
                decided.writes.extend(writes);
                decided.files.extend(files);
                Ok(AcceptedMessage { message_id, status: MessageStatus::Queued, segments })
            }
            Err(refusal) if refusal.status() == StatusCode::UNPROCESSABLE_ENTITY => Err(refusal),
            Err(failure) => return Err(failure),
        };
        decided.outcomes.push(outcome);
    }
    Ok(decided)
}

async fn accept_one(
    app: &App,
    workspace: WorkspaceId,
    items: &Items<MessageInput>,
    index: usize,
    now: Timestamp,
) -> Result<AcceptedWrites, Error> {
    let (input, mut violations) = items.judge(index)?;
    let request = Some(Bytes::copy_from_slice(items.text_of(index).as_bytes()));
    let sent = SentMessage { request, ..SentMessage::new(workspace, input) };
    app.accept_message(sent, now, &mut violations).await
}

/// Messages that are accepted all or not at all.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct AllMessagesInput {
    /// 1 to 100 messages.
    #[validate(length(min = 1, max = MAX_BATCH))]
    pub messages: Items<MessageInput>,
    /// True if they are only checked: nothing is accepted, and the ids name nothing.
    #[serde(default)]
    pub check_only: bool,
}

impl Input for AllMessagesInput {}

/// Messages that were accepted together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct AcceptedMessages {
    /// Accepted messages, in the order of the request.
    pub messages: Vec<AcceptedMessage>,
}

/// Operation by which the drop-in endpoints of contract section 18 send: all messages in one commit or none. It has no
/// path of its own and is in no list of operations.
pub struct SendAllMessages;

impl Operation for SendAllMessages {
    const ID: &'static str = "sendAllMessages";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/messages";
    const ACCESS: Access = Access::Scope(Scope::MessagesSend);
    const SUCCESS: StatusCode = StatusCode::ACCEPTED;
    const CLI: &'static str = "";
    const SUMMARY: &'static str = "Send up to 100 messages, all or none";
    const BODY_LIMIT: usize = MESSAGE_BODY_LIMIT;
    type Path = Empty;
    type Query = Empty;
    type Body = AllMessagesInput;
    type Output = AcceptedMessages;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<AcceptedMessages, Error> {
        let workspace = cx.workspace()?;
        let items = call.body.messages;
        cx.take_tokens_in_all(items.len())?;
        if items.len() > 1 {
            cx.commit_permit = Some(cx.app.part().await);
        }
        let decided = accept(cx.app, (workspace, cx.redactor()), &items, 0..items.len(), cx.now).await?;
        let mut messages = Vec::with_capacity(items.len());
        let (mut faults, mut refused) = (Violations::new(), None);
        for (index, outcome) in decided.outcomes.into_iter().enumerate() {
            match outcome {
                Ok(accepted) => messages.push(accepted),
                Err(Error::Validation(violations)) => faults.merge(violations.below(&format!("/messages/{index}"))),
                Err(refusal) => refused = refused.or(Some(refusal)),
            }
        }
        faults.into_result()?;
        if let Some(refusal) = refused {
            return Err(refusal);
        }
        if !call.body.check_only {
            cx.changes.extend(decided.writes);
            cx.files.extend(decided.files);
        }
        Ok(AcceptedMessages { messages })
    }
}
