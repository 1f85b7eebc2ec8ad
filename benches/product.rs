//! The product as it is measured: on SQLite unless another store is given, email going into the sandbox.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use bytes::Bytes;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address::EmailAddress;
use messaging_core::domain::mail::dkim::Algorithm;
use messaging_core::ids::{ImportId, WorkspaceId};
use messaging_core::ports::clock::SystemEntropy;
use messaging_core::ports::transport::{Email, Mailbox};
use messaging_core::ports::{Store, Transport};
use messaging_core::scope::Scope;
use messaging_engine::ops::contacts::{BulkReport, BulkUpsertContacts};
use messaging_engine::ops::events::{BulkEventsReport, SendEvents};
use messaging_engine::ops::imports::{CreateImport, GetImport, ImportInput, ImportPath, ImportView};
use messaging_engine::ops::keys::ApiKeyInput;
use messaging_engine::ops::messages::SendMessage;
use messaging_engine::ops::{Answer, Endpoint, Operation, Request};
use messaging_engine::{App, Caller, Error, SecretKey, admin};
use messaging_store::{SqliteOptions, SqliteStore};
use messaging_transport::{Dns, GuardedFetch, Options};

use crate::load::{closed_loop, each};

/// The domain that the messages are from.
const DOMAIN: &str = "sandbox.test";

/// Email address of the workspace's owner.
const OWNER: &str = "owner@sandbox.test";

/// A secret key for a database that is deleted after the bench.
fn new_key() -> SecretKey {
    SecretKey::generate(&SystemEntropy::default())
}

/// An application on a store, which may call servers on loopback.
async fn app_on(store: Arc<dyn Store>) -> Result<App, Box<dyn std::error::Error>> {
    let fetch = Arc::new(GuardedFetch::builder(Dns::new(None)).allow_private(true).build());
    let options = Options { fetch: Arc::clone(&fetch) as _, ..Options::new("localhost") };
    let building = App::builder(store, new_key()).fetch(fetch).transports(messaging_transport::defaults(&options));
    Ok(building.build().await?)
}

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
        Self::on(Arc::new(SqliteStore::open(SqliteOptions::new(path))?)).await
    }

    /// Opens one on a store that has nothing in it.
    pub async fn on(store: Arc<dyn Store>) -> Result<Self, Box<dyn std::error::Error>> {
        let app = app_on(store).await?;
        let workspace = admin::prepare_dev(&app).await?.workspace_id;
        Ok(Self { app, workspace, caller: Caller::Operator(Some(workspace)) })
    }

    /// Opens one on a new database whose email is signed with keys of these algorithms on its way into the sandbox.
    pub async fn signing(path: &Path, algorithms: &[Algorithm]) -> Result<Self, Box<dyn std::error::Error>> {
        let app = app_on(Arc::new(SqliteStore::open(SqliteOptions::new(path))?)).await?;
        Self::prepared(app, algorithms).await
    }

    /// The workspace of an application that has none.
    async fn prepared(app: App, algorithms: &[Algorithm]) -> Result<Self, Box<dyn std::error::Error>> {
        admin::create_user(&app, OWNER, None, None).await?;
        let workspace = admin::create_workspace(&app, "Bench", OWNER).await?.id;
        admin::prepare_sandbox(&app, workspace, algorithms).await?;
        Ok(Self { app, workspace, caller: Caller::Operator(Some(workspace)) })
    }

    /// Opens one that sends through `transport`, signing with one key.
    pub async fn delivering(
        path: &Path,
        transport: Arc<dyn Transport>,
        algorithm: Algorithm,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let store = SqliteStore::open(SqliteOptions::new(path))?;
        let app =
            App::builder(Arc::new(store), new_key()).transport(Channel::Email, "sandbox", transport).build().await?;
        Self::prepared(app, &[algorithm]).await
    }

    /// The email of message 1, to be built and signed repeatedly.
    pub async fn email(&self) -> Result<Email, Box<dyn std::error::Error>> {
        let input: serde_json::Value = serde_json::from_str(&crate::message(1))?;
        let text = |member: &str| input[member].as_str().unwrap_or_default().to_owned();
        let address = |member: &str| EmailAddress::parse(&text(member));
        let domains = self.app.sending_domains(self.workspace).await?;
        let domain = domains.iter().find(|domain| domain.domain == DOMAIN).ok_or("there is a domain to send from")?;
        Ok(Email {
            envelope_from: EmailAddress::parse("bounce@bounce.sandbox.test")?.into(),
            from: Mailbox { name: Some(text("from_name")), address: address("from_email")? },
            to: address("to")?,
            cc: Vec::new(),
            reply_to: Some(address("reply_to")?),
            subject: text("subject"),
            date: self.app.now(),
            message_id: String::new(),
            headers: vec![("X-Order".to_owned(), "000000000001".to_owned())],
            text: Some(text("text")),
            html: Some(text("html")),
            attachments: Vec::new(),
            signers: self.app.signers(domain)?,
        })
    }

    /// A key with the highest rate limit there is. It starts with as many requests in hand.
    pub async fn key(&self) -> Result<String, Error> {
        let input = ApiKeyInput::new("bench", [Scope::MessagesSend]).rate_limit(100_000);
        let key = admin::create_key(&self.app, self.workspace, &input).await?.key;
        Ok(key.map(|key| key.expose().to_owned()).unwrap_or_default())
    }

    /// Accepts one message as a front end would, with an Idempotency-Key of its own.
    pub async fn accept(&self, n: u64) -> bool {
        self.accept_body(n, crate::message(n)).await
    }

    /// Accepts messages with rising numbers from `callers` tasks for `turn`; returns messages a second.
    pub async fn accept_for(&self, callers: usize, turn: Duration, numbers: &Arc<AtomicU64>) -> f64 {
        let target = self.clone();
        let one = move |n| {
            let target = target.clone();
            async move { assert!(target.accept(n).await, "the product accepts") }
        };
        closed_loop(callers, turn, numbers, one).await
    }

    /// Accepts a message for each number, with the body that `body` makes, from 64 callers; returns messages a second.
    pub async fn accept_all(&self, numbers: Range<u64>, body: impl Fn(u64) -> String + Clone + Send + 'static) -> f64 {
        let target = self.clone();
        let one = move |n| {
            let (target, body) = (target.clone(), body(n));
            async move { assert!(target.accept_body(n, body).await, "the product accepts") }
        };
        each(64, numbers, one).await
    }

    /// Accepts one message with a body.
    pub async fn accept_body(&self, n: u64, body: String) -> bool {
        let key = format!("k-{n:012}");
        self.send::<SendMessage>(Vec::new(), Bytes::from(body), Some(&key)).await.is_ok()
    }

    /// Carries out an operation on the bytes of a request.
    async fn send<O: Operation>(
        &self,
        path_parameters: Vec<(String, String)>,
        body: Bytes,
        key: Option<&str>,
    ) -> Result<Answer, Error> {
        let admitted = self.app.admit(self.caller.clone(), Endpoint::row::<O>(), &path_parameters, None).await?;
        let idempotency_key = key.map(str::as_bytes);
        admitted.run(Request { path: O::PATH, path_parameters, body, idempotency_key, ..Request::default() }).await
    }

    /// Uploads a file of contacts as a front end would; returns the import.
    pub async fn upload(&self, file: &[u8]) -> Result<ImportView, Error> {
        let digest = ring::digest::digest(&ring::digest::SHA256, file);
        let digest: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let input = ImportInput::new("contacts.csv", file.len() as u64, digest);
        let import = self.app.run(CreateImport).body(input).by(&self.caller).await?;
        let token = import.upload_url.as_deref().and_then(|url| url.rsplit('/').next()).unwrap_or_default();
        let mut uploading = self.app.receive_upload(token, None).await?;
        for piece in file.chunks(64 << 10) {
            uploading.add(piece).await?;
        }
        Ok(ImportView::of(uploading.finish().await?, self.app.now(), None))
    }

    /// An import as it is now.
    pub async fn look(&self, import: ImportId) -> Result<ImportView, Error> {
        let path = ImportPath { workspace_id: self.workspace, id: import };
        self.app.run(GetImport).path(path).by(&self.caller).await
    }

    /// Creates or updates contacts as a front end would; returns the number that were refused.
    pub async fn upsert(&self, body: Bytes) -> usize {
        let path = vec![("workspace_id".to_owned(), self.workspace.to_string())];
        let answer = self.send::<BulkUpsertContacts>(path, body, None).await;
        let report = answer.ok().and_then(|answer| serde_json::from_slice::<BulkReport>(&answer.body).ok());
        report.map_or(usize::MAX, |report| report.failed)
    }

    /// Carries out an operation of the workspace, on the resource with an id if one is given, as a front end would;
    /// returns its answer.
    pub async fn call<O: Operation>(
        &self,
        id: Option<&str>,
        body: &serde_json::Value,
    ) -> Result<serde_json::Value, Box<dyn std::error::Error>> {
        let id = id.map(|id| ("id".to_owned(), id.to_owned()));
        let path = std::iter::once(("workspace_id".to_owned(), self.workspace.to_string())).chain(id).collect();
        let answer = self.send::<O>(path, body.to_string().into(), None).await?;
        Ok(serde_json::from_slice(&answer.body)?)
    }

    /// Sends product events as a front end would; returns the number that were refused.
    pub async fn tell(&self, body: Bytes) -> usize {
        let answer = self.send::<SendEvents>(Vec::new(), body, None).await;
        let report = answer.ok().and_then(|answer| serde_json::from_slice::<BulkEventsReport>(&answer.body).ok());
        report.map_or(usize::MAX, |report| report.rejected)
    }
}
