//! The product as it is measured: accepting on SQLite, email going into the sandbox.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use messaging_core::ids::WorkspaceId;
use messaging_core::ops::contacts::{BulkReport, BulkUpsertContacts};
use messaging_core::ops::keys::ApiKeyInput;
use messaging_core::ops::messages::SendMessage;
use messaging_core::ops::{Endpoint, Operation, Request};
use messaging_core::scope::Scope;
use messaging_core::{App, Caller, Error, admin};
use messaging_store::{SqliteOptions, SqliteStore};

/// An application with a workspace to send from.
#[derive(Debug, Clone)]
pub struct Product {
    /// The application.
    pub app: App,
    /// The workspace.
    pub workspace: WorkspaceId,
    caller: Caller,
}

impl Product {
    /// Opens one on a new database.
    pub async fn open(path: &Path) -> Result<Self, Box<dyn std::error::Error>> {
        let store = SqliteStore::open(SqliteOptions::new(path))?;
        let app = App::builder(Arc::new(store))
            .transports(messaging_transport::defaults(&messaging_transport::Options::new("localhost")))
            .build();
        let workspace = admin::prepare_dev(&app).await?.workspace_id;
        Ok(Self { app, workspace, caller: Caller::Operator(Some(workspace)) })
    }

    /// A key with the highest rate limit there is. It starts with as many requests in hand.
    pub async fn key(&self) -> Result<String, Error> {
        let input = ApiKeyInput {
            name: "bench".to_owned(),
            scopes: vec![Scope::MessagesSend],
            rate_limit: Some(100_000),
            ip_allowlist: None,
            expires_at: None,
        };
        let key = admin::create_key(&self.app, self.workspace, &input).await?.key;
        Ok(key.map(|key| key.expose().to_owned()).unwrap_or_default())
    }

    /// Accepts one message as a front end would, with an Idempotency-Key of its own.
    pub async fn accept(&self, n: u64) -> bool {
        let key = format!("k-{n:012}");
        let request = Request {
            app: &self.app,
            caller: &self.caller,
            workspace: Some(self.workspace),
            path: SendMessage::PATH,
            path_parameters: Vec::new(),
            query: "",
            body: Bytes::from(crate::message(n)),
            idempotency_key: Some(key.as_bytes()),
            client: None,
        };
        (Endpoint::of::<SendMessage>().call)(request).await.is_ok()
    }

    /// Creates or updates contacts as a front end would; answers how many were refused.
    pub async fn upsert(&self, body: Bytes) -> usize {
        let request = Request {
            app: &self.app,
            caller: &self.caller,
            workspace: Some(self.workspace),
            path: BulkUpsertContacts::PATH,
            path_parameters: vec![("workspace_id".to_owned(), self.workspace.to_string())],
            query: "",
            body,
            idempotency_key: None,
            client: None,
        };
        let answer = (Endpoint::of::<BulkUpsertContacts>().call)(request).await.map(|answer| answer.body);
        let report = answer.ok().and_then(|body| serde_json::from_slice::<BulkReport>(&body).ok());
        report.map_or(usize::MAX, |report| report.failed)
    }
}
