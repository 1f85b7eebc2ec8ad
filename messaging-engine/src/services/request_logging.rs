//! Logging requests: a task writes those that wait, some in each commit, as their workspaces want it.

use std::time::Duration;

use futures_util::future::join_all;
use messaging_core::changes::{Changes, Write};
use messaging_core::domain::security::request_log::{
    self, Kept, LoggedBodies, LoggedRequest, MAX_PATH, MAX_USER_AGENT, RequestLog,
};
use messaging_core::error::Chain;
use messaging_core::ids::WorkspaceId;
use messaging_core::time::Timestamp;

use crate::app::{AnsweredRequest, App};

/// Time for which requests are gathered before they are written.
const GATHER: Duration = Duration::from_millis(100);

/// Maximum number of requests in one commit: a store commits what others wait for together with whole commits of the
/// background, so these are small.
const COMMIT: usize = 32;

impl App {
    /// Logs a request that was answered, as its workspace wants it, in the background. Never waits: where requests come
    /// faster than they are written, it is dropped and counted.
    pub fn log_request(&self, request: AnsweredRequest) {
        let (is_taken, begins) = self.0.request_logger.take(request, self.now());
        if !is_taken {
            self.0.metrics.request_log_dropped.inc();
        }
        if begins {
            let app = self.clone();
            tokio::spawn(async move { app.write_requests().await });
        }
    }

    /// Waits until every request that was logged so far is written or dropped: before the store is closed, and in
    /// tests.
    pub async fn requests_written(&self) {
        loop {
            let idle = self.0.request_logger.idle.notified();
            tokio::pin!(idle);
            idle.as_mut().enable();
            if !self.0.request_logger.is_writing() {
                return;
            }
            self.0.request_logger.hurry.notify_one();
            idle.await;
        }
    }

    async fn write_requests(&self) {
        tokio::select! {
            biased;
            () = tokio::time::sleep(GATHER) => {}
            () = self.0.request_logger.hurry.notified() => {}
        }
        loop {
            let batch = self.0.request_logger.next();
            if batch.is_empty() {
                return;
            }
            let mut logged = Vec::with_capacity(batch.len());
            for (request, at) in batch {
                match self.request_log(request.workspace_id).await {
                    Some(setting) => logged.extend(self.logged(setting, request, at)),
                    None => self.0.metrics.request_log_dropped.inc(),
                }
            }
            let mut logged = logged.into_iter().peekable();
            let mut commits = Vec::new();
            while logged.peek().is_some() {
                commits.push(self.commit_requests(logged.by_ref().take(COMMIT).collect()));
            }
            join_all(commits).await;
        }
    }

    async fn commit_requests(&self, logged: Vec<(LoggedRequest, LoggedBodies)>) {
        let count = logged.len() as u64;
        if let Err(error) = self.commit_in_background(Changes::from_iter([Write::LogRequests(logged)])).await {
            self.0.metrics.request_log_dropped.inc_by(count);
            tracing::debug!(error = %Chain(&error), requests = count, "requests were not logged");
        }
    }

    /// The setting of a workspace; `None` where it cannot be read.
    async fn request_log(&self, workspace: WorkspaceId) -> Option<RequestLog> {
        let setting = self.workspace(workspace).await.ok()?.map(|workspace| workspace.request_log);
        // A workspace that is gone has no log.
        let setting = setting.unwrap_or(RequestLog::Off);
        self.0.request_logger.remember(workspace, setting, self.now());
        Some(setting)
    }

    /// The part of a request that its workspace wants to be kept.
    fn logged(
        &self,
        setting: RequestLog,
        request: AnsweredRequest,
        at: Timestamp,
    ) -> Option<(LoggedRequest, LoggedBodies)> {
        let kept = setting.keeps(request.is_write, request.is_failure());
        if kept == Kept::Nothing {
            return None;
        }
        let mut bodies = LoggedBodies::default();
        if kept == Kept::Bodies {
            let of_settings = self.secrets_of_own_providers();
            bodies.request = request_log::body(&request.request, &of_settings);
            bodies.response = request_log::body(&request.response, &of_settings);
        }
        let (code, created) = request_log::named_in(&request.response);
        let cut = |text: String, most: usize| text.chars().take(most).collect::<String>();
        let entry = LoggedRequest {
            key: self.new_id(at),
            workspace_id: request.workspace_id,
            id: request.id,
            at,
            method: request.method.as_str().to_owned(),
            path: cut(request.path, MAX_PATH),
            operation: request.operation.to_owned(),
            status: request.status,
            code,
            duration_ms: u64::try_from(request.took.as_millis()).unwrap_or(u64::MAX >> 1),
            request_bytes: request.request_bytes,
            key_id: request.key_id,
            user_id: request.user_id,
            ip: request.ip,
            user_agent: request.user_agent.map(|text| cut(text, MAX_USER_AGENT)),
            idempotency_key: request.idempotency_key,
            resource_id: request.resource_id.or(created),
        };
        Some((entry, bodies))
    }
}
