//! The workspace's log of events, read from a position on: each event once, in the order of commits, also if the server
//! restarts meanwhile.

use std::time::Duration;

use http::StatusCode;
use messaging_core::ports::clock::{Clock as _, SystemClock};
use messaging_engine::ops::Endpoint;
use serde_json::Value;

use crate::command::operation;
use crate::failure::Failure;
use crate::output;
use crate::request::Request;
use crate::target::Target;

/// Seconds for which a poll waits for events.
const WAIT: u32 = 25;

/// Events in one answer, at most.
const LIMIT: u32 = 200;

/// Pause before an unreachable server is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// A reader of the log.
pub(crate) struct EventLog {
    target: Target,
    from: ReadFrom,
    /// True until the first answer: until then a server that cannot be reached ends the command.
    is_first: bool,
}

/// The position in the log from which events are read.
#[derive(Debug, Clone)]
pub(crate) enum ReadFrom {
    /// The events of this time, RFC 3339, and later ones.
    Since(String),
    /// The events after this cursor.
    After(String),
}

impl ReadFrom {
    /// The events from now on.
    pub(crate) fn now() -> Self {
        Self::Since(SystemClock.now().to_string())
    }
}

/// The operation that reads it.
pub(crate) fn endpoint() -> &'static Endpoint {
    operation::endpoint(&["webhook", "events"]).expect("part of the contract")
}

impl EventLog {
    /// Reads from a position on.
    pub(crate) const fn new(target: Target, from: ReadFrom) -> Self {
        Self { target, from, is_first: true }
    }

    /// The cursor after the events that [`next`](Self::next) has returned; none before the first answer, unless reading
    /// began at one.
    pub(crate) fn cursor(&self) -> Option<&str> {
        match &self.from {
            ReadFrom::After(cursor) => Some(cursor),
            ReadFrom::Since(_) => None,
        }
    }

    /// Returns the next events; none if a poll ended without any. The first poll does not wait, so that errors show at
    /// once; later ones wait for events, and for a server that cannot be reached.
    pub(crate) async fn next(&mut self) -> Result<Vec<Value>, Failure> {
        loop {
            let mut request = Request::new(endpoint());
            let (name, text) = match &self.from {
                ReadFrom::Since(time) => ("since", time),
                ReadFrom::After(cursor) => ("after", cursor),
            };
            request.query.push((name.to_owned(), text.clone()));
            request.query.push(("limit".to_owned(), LIMIT.to_string()));
            request.query.push(("wait".to_owned(), if self.is_first { 0 } else { WAIT }.to_string()));
            let reply = match self.target.call(&request).await {
                Ok(reply) if is_passing(reply.status) && (!self.is_first || reply.retry_after.is_some()) => {
                    let seconds = reply.retry_after.and_then(|text| text.parse().ok()).unwrap_or(1);
                    tokio::time::sleep(Duration::from_secs(seconds)).await;
                    continue;
                }
                Ok(reply) if reply.status.is_success() => reply,
                Ok(reply) => return Err(Failure::Refused(reply)),
                Err(Failure::Unreachable(reason)) if !self.is_first => {
                    output::note(&format!("{reason}; trying again"));
                    tokio::time::sleep(AGAIN).await;
                    continue;
                }
                Err(failure) => return Err(failure),
            };
            let mut page: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
            let Some(cursor) = page["next_cursor"].as_str() else {
                return Err(Failure::Unreachable("the server answered something that is not the API".to_owned()));
            };
            self.from = ReadFrom::After(cursor.to_owned());
            self.is_first = false;
            return Ok(match page["data"].take() {
                Value::Array(events) => events,
                _ => Vec::new(),
            });
        }
    }
}

/// Returns true if the same request may succeed later.
fn is_passing(status: StatusCode) -> bool {
    matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE)
}
