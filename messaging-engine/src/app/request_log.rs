//! Log of requests: answered requests wait in a short queue, and a task writes them in the background, a batch in one
//! commit. Nobody waits for it: a request for which there is no room, or that the store does not take, is dropped and
//! counted.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use messaging_core::domain::security::request_log::{Kept, MAX_BODY, RequestLog};
use messaging_core::ids::{ApiKeyId, UserId, WorkspaceId};
use messaging_core::time::Timestamp;
use tokio::sync::Notify;

/// Largest number of requests that wait to be written.
const MAX_WAITING: usize = 4096;

/// Largest number of bytes of their bodies.
const MAX_WAITING_BYTES: usize = 4 << 20;

/// Maximum number of requests that are taken from the queue to be written together.
const BATCH: usize = 250;

/// Time that a workspace's setting is cached; news of changes may be lost.
const BELIEVED: Duration = Duration::from_secs(10);

/// Number of workspaces whose setting is remembered.
const MAX_SETTINGS: usize = 10_000;

/// A request that was answered.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AnsweredRequest {
    /// Workspace that the request was about.
    pub workspace_id: WorkspaceId,
    /// Id of the request, as in `X-Request-Id`.
    pub id: String,
    /// HTTP method.
    pub method: Method,
    /// Path below the version prefix.
    pub path: String,
    /// Id of the operation.
    pub operation: &'static str,
    /// True if the operation changes something.
    pub is_write: bool,
    /// HTTP status of the answer.
    pub status: u16,
    /// Time that it took to answer.
    pub took: Duration,
    /// Length of its body in bytes.
    pub request_bytes: u64,
    /// API key that it was made with.
    pub key_id: Option<ApiKeyId>,
    /// Person who made it.
    pub user_id: Option<UserId>,
    /// Address of the caller.
    pub ip: Option<IpAddr>,
    /// `User-Agent` of the caller.
    pub user_agent: Option<String>,
    /// Idempotency-Key of the request.
    pub idempotency_key: Option<String>,
    /// Id of the resource that its path names.
    pub resource_id: Option<String>,
    /// Body of the request.
    pub request: Bytes,
    /// Body of the answer.
    pub response: Bytes,
}

impl AnsweredRequest {
    /// A request with the data that every request has.
    pub fn new(workspace_id: WorkspaceId, id: String, method: Method, path: String, operation: &'static str) -> Self {
        Self {
            workspace_id,
            id,
            method,
            path,
            operation,
            is_write: false,
            status: 200,
            took: Duration::ZERO,
            request_bytes: 0,
            key_id: None,
            user_id: None,
            ip: None,
            user_agent: None,
            idempotency_key: None,
            resource_id: None,
            request: Bytes::new(),
            response: Bytes::new(),
        }
    }

    pub(crate) const fn is_failure(&self) -> bool {
        self.status >= 400
    }

    /// Returns the number of bytes that its bodies hold in the queue.
    fn size(&self) -> usize {
        self.request.len() + self.response.len()
    }
}

/// Requests that wait, and cached settings.
#[derive(Debug, Default)]
pub(crate) struct RequestLogger {
    state: Mutex<State>,
    /// Notified whenever nothing waits any more.
    pub(crate) idle: Notify,
    /// Notified when somebody waits for `idle`, so that no more requests are gathered first.
    pub(crate) hurry: Notify,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<(AnsweredRequest, Timestamp)>,
    bytes: usize,
    is_writing: bool,
    /// Cached settings of workspaces: enough to leave out most requests that are not logged.
    settings: HashMap<WorkspaceId, (RequestLog, Timestamp)>,
}

impl RequestLogger {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true while a task writes requests.
    pub(crate) fn is_writing(&self) -> bool {
        self.state().is_writing
    }

    /// Takes a request if there is room. Returns whether it was taken or is not logged, and whether a task has to begin
    /// to write.
    pub(crate) fn take(&self, mut request: AnsweredRequest, now: Timestamp) -> (bool, bool) {
        let mut state = self.state();
        let known =
            state.settings.get(&request.workspace_id).filter(|(_, until)| now < *until && *until <= now + BELIEVED);
        let known = known.map(|(setting, _)| *setting);
        match known.map(|setting| setting.keeps(request.is_write, request.is_failure())) {
            Some(Kept::Nothing) => return (true, false),
            // The answer is read for the id of the created resource.
            Some(Kept::Summary) => request.request = Bytes::new(),
            Some(Kept::Bodies) | None => {}
        }
        for body in [&mut request.request, &mut request.response] {
            if body.len() > MAX_BODY {
                *body = Bytes::new();
            }
        }
        let size = request.size();
        if state.waiting.len() >= MAX_WAITING || state.bytes + size > MAX_WAITING_BYTES {
            return (false, false);
        }
        state.bytes += size;
        state.waiting.push_back((request, now));
        (true, !std::mem::replace(&mut state.is_writing, true))
    }

    /// Returns the next requests to be written; without any the task is over.
    pub(crate) fn next(&self) -> Vec<(AnsweredRequest, Timestamp)> {
        let mut state = self.state();
        let count = state.waiting.len().min(BATCH);
        let batch: Vec<_> = state.waiting.drain(..count).collect();
        state.bytes -= batch.iter().map(|(request, _)| request.size()).sum::<usize>();
        if batch.is_empty() {
            state.is_writing = false;
            state.waiting.shrink_to(0);
            drop(state);
            self.idle.notify_waiters();
        }
        batch
    }

    pub(crate) fn remember(&self, workspace: WorkspaceId, setting: RequestLog, now: Timestamp) {
        let mut state = self.state();
        if state.settings.len() >= MAX_SETTINGS {
            state.settings.clear();
        }
        state.settings.insert(workspace, (setting, now + BELIEVED));
    }

    /// Forgets the settings of workspaces, because one may have changed.
    pub(crate) fn forget_settings(&self) {
        self.state().settings.clear();
    }
}

#[cfg(test)]
mod tests {
    use messaging_core::ids::Id as _;

    use super::*;

    fn request(body: usize) -> AnsweredRequest {
        let workspace = WorkspaceId::from_bytes([1; 16]);
        AnsweredRequest {
            is_write: true,
            status: 422,
            request: vec![b'x'; body].into(),
            ..AnsweredRequest::new(workspace, "req_1".to_owned(), Method::POST, "/messages".to_owned(), "sendMessage")
        }
    }

    #[test]
    fn a_full_queue_takes_nothing_more_until_some_is_written() {
        let (logger, now) = (RequestLogger::default(), Timestamp::from_millis(0));
        assert_eq!(logger.take(request(0), now), (true, true));
        for _ in 1..MAX_WAITING {
            assert_eq!(logger.take(request(0), now), (true, false));
        }
        assert_eq!(logger.take(request(0), now), (false, false));
        assert_eq!(logger.next().len(), BATCH);
        assert_eq!(logger.take(request(0), now), (true, false));
        while !logger.next().is_empty() {}
        assert_eq!(logger.take(request(0), now), (true, true));
    }

    #[test]
    fn bodies_have_a_bound_of_their_own() {
        let (logger, now) = (RequestLogger::default(), Timestamp::from_millis(0));
        for _ in 0..MAX_WAITING_BYTES / MAX_BODY {
            assert!(logger.take(request(MAX_BODY), now).0);
        }
        assert_eq!(logger.take(request(1), now), (false, false));
        // A body that is too long to be logged is not held.
        assert!(logger.take(request(MAX_BODY + 1), now).0);
        while !logger.next().is_empty() {}
        assert!(logger.take(request(MAX_BODY), now).0);
    }

    #[test]
    fn what_is_not_logged_takes_no_room() {
        let (logger, now) = (RequestLogger::default(), Timestamp::from_millis(0));
        let workspace = request(0).workspace_id;
        logger.remember(workspace, RequestLog::Off, now);
        assert_eq!(logger.take(request(9), now), (true, false));
        logger.remember(workspace, RequestLog::Failures, now);
        assert_eq!(logger.take(AnsweredRequest { is_write: false, status: 200, ..request(9) }, now), (true, false));
        assert_eq!(logger.take(request(9), now), (true, true));
        logger.forget_settings();
        assert_eq!(logger.next().len(), 1);
    }
}
