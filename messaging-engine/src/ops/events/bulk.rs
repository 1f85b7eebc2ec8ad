//! Many product events in one request.
//!
//! Nearly every request fits into one commit, which then also holds the answer to its Idempotency-Key: it happens once
//! or not at all. A request with long properties, or with an event that the store refuses, is done in parts, each a
//! commit of its own.

use http::{Method, StatusCode};
use messaging_core::DomainError;
use messaging_core::changes::Changes;
use messaging_core::domain::audience::product_event::input::ProductEventInput;
use messaging_core::domain::limits::MAX_BULK;
use messaging_core::input::items::Items;
use messaging_core::input::{Empty, Input};
use messaging_core::scope::{Access, Scope};
use messaging_core::validate::{Setters, Validate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::ops::contacts::ItemError;
use crate::ops::context::Context;
use crate::ops::operation::{Call, Operation};
use crate::ops::parts::{PartLimit, PartReport};
use crate::services::ingesting::{CheckedItem, IngestResult};

/// Bytes of JSON of a part, unless one event alone is longer; written in some ten milliseconds.
const PART_BYTES: usize = 1 << 20;

/// Product events to store.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct BulkEventsInput {
    /// 1 to 1000 events, processed in order; each is accepted or refused alone.
    #[validate(length(min = 1, max = MAX_BULK))]
    pub events: Items<ProductEventInput>,
}

impl Input for BulkEventsInput {}

/// Results of sending many product events: totals, and the errors of those refused.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct BulkEventsReport {
    /// Number of events that are new and were accepted.
    pub accepted: usize,
    /// Number of events that repeat an earlier one.
    pub duplicates: usize,
    /// Number of events that were refused, of which nothing is stored.
    pub rejected: usize,
    /// Errors of the refused events, in the order of the request.
    pub errors: Vec<RefusedEvent>,
}

/// An event that was refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct RefusedEvent {
    /// Index of the event in the request, from 0.
    pub index: usize,
    /// Reason why the event was refused.
    pub error: ItemError,
}

impl BulkEventsReport {
    /// Reports the outcomes of the events from index `start` of the request on.
    fn of(start: usize, outcomes: Vec<Result<IngestResult, DomainError>>) -> Self {
        let mut report = Self::default();
        for (index, outcome) in (start..).zip(outcomes) {
            match outcome {
                Ok(result) if result.is_duplicate => report.duplicates += 1,
                Ok(_) => report.accepted += 1,
                Err(error) => {
                    report.rejected += 1;
                    report.errors.push(RefusedEvent { index, error: ItemError::of(error) });
                }
            }
        }
        report
    }

    fn append(&mut self, part: Self) {
        self.accepted += part.accepted;
        self.duplicates += part.duplicates;
        self.rejected += part.rejected;
        self.errors.extend(part.errors);
    }
}

impl PartReport for BulkEventsReport {
    fn items(&self) -> usize {
        self.accepted + self.duplicates + self.rejected
    }
}

/// `POST /events/bulk`
pub struct SendEvents;

impl Operation for SendEvents {
    const ID: &'static str = "sendEvents";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/events/bulk";
    const ACCESS: Access = Access::Scope(Scope::EventsWrite);
    const SUCCESS: StatusCode = StatusCode::ACCEPTED;
    const CLI: &'static str = "event bulk";
    const SUMMARY: &'static str = "Tell up to 1000 things that contacts did, each independent of the others";
    const IN_PARTS: bool = true;
    type Path = Empty;
    type Query = Empty;
    type Body = BulkEventsInput;
    type Output = BulkEventsReport;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<BulkEventsReport, Error> {
        let workspace = super::workspace(cx).await?;
        let items = call.body.events.reading(cx.unknown_members::<Empty>());
        let mut report = BulkEventsReport::default();
        let mut start = 0;
        while start < items.len() {
            let part = judge_part(&items, start);
            let turn = cx.app.part().await;
            let done = if cx.progress.is_whole(part.len() == items.len()) {
                // Other requests wait until the caller has committed.
                cx.commit_permit = Some(turn);
                let (writes, outcomes) = cx.app.take_events(workspace, part, cx.now).await?;
                cx.changes.extend(writes);
                BulkEventsReport::of(start, outcomes)
            } else {
                let (app, mut part) = (cx.app, Some(part));
                let decide = |limit: PartLimit| {
                    let mut part = part.take().unwrap_or_else(|| judge_part(&items, start));
                    part.truncate(limit.most);
                    async move {
                        if limit.is_refused {
                            let report = BulkEventsReport::of(start, vec![Err(DomainError::NotStorable)]);
                            return Ok((Changes::default(), Vec::new(), report));
                        }
                        let (writes, outcomes) = app.take_events(workspace, part, app.now()).await?;
                        Ok((writes.into_iter().collect(), Vec::new(), BulkEventsReport::of(start, outcomes)))
                    }
                };
                // Events that were stored before a failure stay, and the answer is the failure. Repeating the request
                // with its Idempotency-Key replays the parts that were done and does the rest.
                cx.do_part(Vec::new, decide).await?
            };
            start += done.items();
            report.append(done);
        }
        Ok(report)
    }
}

/// Parses the items from `start` on, as many as make a part.
fn judge_part(items: &Items<ProductEventInput>, start: usize) -> Vec<CheckedItem> {
    let mut bytes = 0;
    let of_part = |index: &usize| {
        bytes += items.length_of(*index);
        *index == start || bytes <= PART_BYTES
    };
    (start..items.len()).take_while(of_part).map(|index| items.judge(index)).collect()
}
