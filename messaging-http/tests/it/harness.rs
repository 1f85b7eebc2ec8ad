//! A server for one test, and helpers to talk to it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use messaging_conformance::fresh_file::FreshFile;
use messaging_core::changes::{AccountWrite, Changes, Document, Expect, Write};
use messaging_core::domain::campaign::archive::ReaderSettings;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::security::account::{Member, Session, User, Workspace};
use messaging_core::domain::security::api_key::{self, ApiKey};
use messaging_core::domain::security::digest::Digest;
use messaging_core::domain::security::request_log::RequestLog;
use messaging_core::ids::{UserId, WorkspaceId};
use messaging_core::ports::Transport;
use messaging_core::ports::clock::{Entropy, ManualClock, SystemEntropy};
use messaging_core::ports::store::Priority;
use messaging_core::scope::{Role, Scope};
use messaging_core::time::Timestamp;
use messaging_engine::app::Builder;
use messaging_engine::{App, SecretKey};
use messaging_http::{Server, ServerOptions};
use messaging_store::{SqliteOptions, SqliteStore};
use messaging_testing::MemoryTransport;
use messaging_transport::submission::SubmissionSink;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::wire::{Response, Wire};

/// The database that servers begin with.
static FRESH: FreshFile = FreshFile::new();

/// A server with a separate database.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) metrics: Option<SocketAddr>,
    pub(crate) app: App,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) transport: Arc<MemoryTransport>,
    pub(crate) workspace: WorkspaceId,
    /// Sink for mail that is submitted.
    pub(crate) submissions: Arc<dyn SubmissionSink>,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<()>,
    /// The directory that holds the database; removed when dropped.
    pub(crate) directory: TempDir,
}

/// Port 0: the system chooses a free one.
pub(crate) fn any_port() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

impl TestServer {
    pub(crate) async fn start() -> Self {
        Self::with(ServerOptions::new(any_port())).await
    }

    pub(crate) async fn with(options: ServerOptions) -> Self {
        Self::with_entropy(options, Arc::new(SystemEntropy::default())).await
    }

    pub(crate) async fn with_entropy(options: ServerOptions, entropy: Arc<dyn Entropy>) -> Self {
        Self::carrying(options, entropy, Vec::new()).await
    }

    /// A server with these providers besides `smtp`.
    pub(crate) async fn carrying(
        options: ServerOptions,
        entropy: Arc<dyn Entropy>,
        transports: Vec<(Channel, &'static str, Arc<dyn Transport>)>,
    ) -> Self {
        Self::built(options, |builder, _| builder.entropy(entropy).transports(transports)).await
    }

    /// A server whose application is built with these changes; they may use its directory.
    pub(crate) async fn built(options: ServerOptions, change: impl FnOnce(Builder, &Path) -> Builder) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let database = SqliteOptions::new(directory.path().join("test.db"));
        FRESH.put_at(&database.path, |path| drop(SqliteStore::open(SqliteOptions::new(path)).unwrap()));
        let store = SqliteStore::open(database).unwrap();
        let clock = Arc::new(ManualClock::new("2026-01-31T09:15:00.000Z".parse().unwrap()));
        let transport = Arc::new(MemoryTransport::default());
        let builder = App::builder(Arc::new(store), SecretKey::from_bytes([3; 32])).clock(clock.clone()).transport(
            Channel::Email,
            "smtp",
            transport.clone(),
        );
        let app = change(builder, directory.path()).build().await.unwrap();
        let server = Server::bind(app.clone(), options).unwrap();
        let submissions = server.submission_sink();
        let (stop, stopped) = oneshot::channel();
        let (address, metrics) = (server.local_addr(), server.metrics_addr());
        let running = tokio::spawn(server.run(async {
            let _ = stopped.await;
        }));
        let workspace = app.new_id(app.now());
        let this = Self {
            address,
            metrics,
            app,
            clock,
            transport,
            workspace,
            submissions,
            stop: Some(stop),
            running,
            directory,
        };
        this.commit([this.put_workspace(workspace)]).await;
        this
    }

    /// Asks the server to stop, without waiting for it.
    pub(crate) fn begin_to_stop(&mut self) {
        let _ = self.stop.take().unwrap().send(());
    }

    pub(crate) async fn stopped(&mut self) {
        (&mut self.running).await.unwrap();
    }

    pub(crate) async fn commit(&self, writes: impl IntoIterator<Item = Write>) {
        self.app.store().commit(Changes::from_iter(writes), Priority::Foreground).await.unwrap();
    }

    fn put_workspace(&self, id: WorkspaceId) -> Write {
        let workspace = Workspace {
            id,
            name: "Test".to_owned(),
            timezone: "UTC".to_owned(),
            opt_out_keywords: Vec::new(),
            request_log: RequestLog::default(),
            require_second_factor: false,
            readers: ReaderSettings::default(),
            end: None,
            created_at: self.app.now(),
        };
        Write::put(workspace, Expect::Absent)
    }

    /// Another workspace.
    pub(crate) async fn other_workspace(&self) -> WorkspaceId {
        let id = self.app.new_id(self.app.now());
        self.add_workspace(id).await;
        id
    }

    /// Adds a workspace with this id.
    pub(crate) async fn add_workspace(&self, id: WorkspaceId) {
        self.commit([self.put_workspace(id)]).await;
    }

    /// The text of a new key with these scopes.
    pub(crate) async fn key(&self, scopes: &[Scope]) -> String {
        self.key_with(scopes, |_| {}).await
    }

    /// The text of a new key with these scopes, changed before it is stored.
    pub(crate) async fn key_with(&self, scopes: &[Scope], change: impl FnOnce(&mut ApiKey)) -> String {
        let (text, write) = self.new_key(scopes, change);
        self.commit([write]).await;
        text
    }

    pub(crate) fn new_key(&self, scopes: &[Scope], change: impl FnOnce(&mut ApiKey)) -> (String, Write) {
        let (prefix, secret) = api_key::generate(self.app.entropy());
        let mut key = ApiKey {
            id: self.app.new_id(self.app.now()),
            workspace_id: self.workspace,
            name: "test".to_owned(),
            prefix: prefix.clone(),
            secret_digest: Digest::of(&secret),
            scopes: scopes.to_vec(),
            rate_limit: 100_000,
            ip_allowlist: Vec::new(),
            created_at: self.app.now(),
            expires_at: None,
            revoked_at: None,
            rotated_from: None,
            replaced_by: None,
            warned_days: None,
        };
        change(&mut key);
        (format!("{prefix}.{secret}"), Write::put(key, Expect::Absent))
    }

    /// The token of a new session of a new person with this role in the test's workspace.
    pub(crate) async fn session(&self, role: Option<Role>) -> String {
        let (token, writes) = self.new_session(role);
        self.commit(writes).await;
        token
    }

    pub(crate) fn new_session(&self, role: Option<Role>) -> (String, Vec<Write>) {
        let now = self.app.now();
        let user_id: UserId = self.app.new_id(now);
        let token = format!("ms_{}", api_key::random_text(self.app.entropy(), b"abcdefghijklmnop", 40));
        let user = User::new(user_id, format!("{user_id}@example.com").to_lowercase(), now);
        let session = Session {
            id: self.app.new_id(now),
            token_digest: Digest::of(&token),
            user_id,
            password_version: 0,
            created_at: now,
            expires_at: now + Duration::from_hours(12),
            ip: None,
            user_agent: None,
        };
        let mut writes = vec![Write::put(user, Expect::Absent), Write::Account(AccountWrite::PutSession(session))];
        if let Some(role) = role {
            let member = Member::active(self.workspace, user_id, role, now);
            writes.push(Write::put(member, Expect::Absent));
        }
        (token, writes)
    }

    /// The token of a new session of an operator of the installation, and the writes that store it.
    pub(crate) fn new_operator(&self, role: Option<Role>) -> (String, Vec<Write>) {
        let (token, mut writes) = self.new_session(role);
        for write in &mut writes {
            if let Write::Put(Document::User(user), _) = write {
                user.operator = true;
            }
        }
        (token, writes)
    }

    pub(crate) async fn get(&self, path: &str, token: &str) -> Response {
        self.request("GET", path, &[("authorization", &format!("Bearer {token}"))], None).await
    }

    pub(crate) async fn post(&self, path: &str, token: &str, body: &str) -> Response {
        self.send("POST", path, token, body).await
    }

    pub(crate) async fn put(&self, path: &str, token: &str, body: &str) -> Response {
        self.send("PUT", path, token, body).await
    }

    async fn send(&self, method: &str, path: &str, token: &str, body: &str) -> Response {
        let headers = [("authorization", &*format!("Bearer {token}")), ("content-type", "application/json")];
        self.request(method, path, &headers, Some(body)).await
    }

    /// One request on a new connection.
    pub(crate) async fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> Response {
        let mut wire = Wire::connect(self.address).await;
        wire.send(request_text(method, path, headers, body)).await;
        let response = if method == "HEAD" { wire.head_response().await } else { wire.response().await };
        response.expect("an answer")
    }
}

/// A request as it is sent over the wire.
pub(crate) fn request_text(method: &str, path: &str, headers: &[(&str, &str)], body: Option<&str>) -> String {
    let mut lines = vec![format!("{method} {path} HTTP/1.1"), "host: test".to_owned()];
    lines.extend(headers.iter().map(|(name, value)| format!("{name}: {value}")));
    lines.extend(body.map(|body| format!("content-length: {}", body.len())));
    format!("{}\r\n\r\n{}", lines.join("\r\n"), body.unwrap_or_default())
}

/// A time before every test.
pub(crate) fn long_ago() -> Timestamp {
    Timestamp::from_millis(0)
}
