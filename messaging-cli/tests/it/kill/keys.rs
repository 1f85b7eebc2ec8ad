//! `admin rotate-secret-key` is killed in the middle, with or without a server: every encrypted value can be opened
//! afterwards, and signatures by older keys are valid.

use std::path::PathBuf;
use std::process::Stdio;
use std::thread;
use std::time::Instant;

use messaging_core::domain::mail::link_token::{Link, LinkKey};
use messaging_core::domain::security::secret_key::KeyRing;
use messaging_core::ids::{Id as _, MessageId};
use messaging_core::ports::Store;
use messaging_engine::vault::Vault;
use messaging_store::{SqliteOptions, SqliteStore, key_file};
use ring::digest::{SHA256, digest};
use serde_json::json;
use tempfile::TempDir;

use super::{rounds, runtime};
use crate::support::{Server, directory, program, run};

/// Webhooks, each with a secret.
const WEBHOOKS: usize = 8;

/// Content uploaded at the end, to a link made before all rotations.
const FILE: &[u8] = b"email\nann@example.com\n";

/// An installation with secrets.
struct Installation {
    data: TempDir,
    /// Flags that name the database, if it is not in the data directory.
    database: Vec<String>,
    /// A token in a link, from before all rotations.
    token: String,
    /// A link for an upload, from before all rotations.
    upload: String,
    runtime: tokio::runtime::Runtime,
    #[cfg(feature = "postgres")]
    postgres: Option<messaging_conformance::cluster::Database>,
}

impl Installation {
    fn on_sqlite() -> Self {
        let mut this = Self::empty();
        this.fill();
        this
    }

    /// `None` if there is no PostgreSQL.
    #[cfg(feature = "postgres")]
    fn on_postgres() -> Option<Self> {
        let mut this = Self::empty();
        let database = this.runtime.block_on(messaging_conformance::cluster::Database::create())?;
        let url = ["--database", &database.url, "--public-url", "http://links.test"];
        this.database = url.map(ToOwned::to_owned).to_vec();
        this.postgres = Some(database);
        this.fill();
        Some(this)
    }

    fn empty() -> Self {
        Self {
            data: directory(),
            database: Vec::new(),
            token: String::new(),
            upload: String::new(),
            runtime: runtime(),
            #[cfg(feature = "postgres")]
            postgres: None,
        }
    }

    /// Begins with `dev`, which makes a workspace and a domain with DKIM keys, and adds objects with secrets.
    fn fill(&mut self) {
        let server = self.start("dev");
        let dev = server.dev_json();
        let (workspace, key) = (dev["workspace_id"].as_str().unwrap(), dev["api_key"].as_str().unwrap());
        let below = |path: &str| format!("/v1/workspaces/{workspace}/{path}");
        for n in 0..WEBHOOKS {
            let body = json!({"url": format!("https://hooks.example.com/{n}"), "events": ["bounce"]});
            let (status, answer) = server.request("POST", &below("webhooks"), key, &body);
            assert_eq!(status, 201, "{answer}");
        }
        let config = json!({"account_sid": "AC1", "auth_token": "secret", "sender": "ACME"});
        let body = json!({"provider": "twilio", "config": config});
        let (status, answer) = server.request("PUT", &below("channels/sms"), key, &body);
        assert_eq!(status, 200, "{answer}");
        let sha256: String = digest(&SHA256, FILE).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let import = json!({"filename": "a.csv", "size_bytes": FILE.len(), "sha256": sha256});
        let (status, answer) = server.request("POST", &below("contacts/import"), key, &import);
        assert_eq!(status, 200, "{answer}");
        answer["upload_url"].as_str().unwrap().clone_into(&mut self.upload);
        assert_eq!(server.stop(), Some(0));
        let link = LinkKey::of(&self.ring());
        self.token = link.link(workspace.parse().unwrap(), MessageId::from_bytes([7; 16]), Link::Unsubscribe);
    }

    fn start(&self, command: &str) -> Server {
        let more: Vec<_> = self.database.iter().map(String::as_str).collect();
        Server::start(command, self.data.path(), &more)
    }

    fn rotate_line(&self) -> Vec<String> {
        let data = self.data.path().to_str().unwrap();
        let line = ["admin", "rotate-secret-key", "--json", "--data", data].map(ToOwned::to_owned);
        line.into_iter().chain(self.database.iter().take(2).cloned()).collect()
    }

    fn key_file(&self) -> PathBuf {
        self.data.path().join("secret.key")
    }

    fn ring(&self) -> KeyRing {
        key_file::read(&self.key_file()).unwrap().unwrap()
    }

    async fn open(&self) -> Box<dyn Store> {
        #[cfg(feature = "postgres")]
        if let Some(database) = &self.postgres {
            let mut options = database.options();
            options.works = false;
            return Box::new(messaging_store::PostgresStore::open(options).await.unwrap());
        }
        let mut options = SqliteOptions::new(self.data.path().join("messaging.db"));
        options.exclusive = false;
        Box::new(SqliteStore::open(options).unwrap())
    }

    /// Checks that every encrypted value opens with a key of a ring.
    fn check_secrets(&self, ring: &KeyRing) {
        let secrets = self.runtime.block_on(async {
            let store = self.open().await;
            let secrets = store.sealed_secrets(1000).await.unwrap();
            store.close().await;
            secrets
        });
        assert!(secrets.len() > WEBHOOKS, "{}", secrets.len());
        let vault = Vault::of(ring);
        for secret in secrets {
            assert!(vault.open(&secret.place, &secret.sealed).is_ok(), "{} does not open", secret.place);
        }
    }

    /// Rotates repeatedly and kills the command a little later each time, and every second time the server as well, if
    /// there is one. Then one rotation runs to its end.
    fn survives(self, with_server: bool) {
        let mut server = with_server.then(|| self.start("serve"));
        let began = Instant::now();
        let first = run(self.rotate_line()).expect(0).json();
        let whole = began.elapsed();
        assert_eq!((&first["keys_in_file"], &first["resumed"]), (&json!(2), &json!(false)), "{first}");
        assert_eq!(first["resealed"]["webhooks"], WEBHOOKS, "{first}");
        let rounds = u32::try_from(rounds()).unwrap();
        for round in 0..rounds {
            let mut rotating = program();
            let rotating = rotating.args(self.rotate_line()).stdout(Stdio::null()).stderr(Stdio::null());
            let mut rotating = rotating.spawn().unwrap();
            thread::sleep(whole * (round + 1) / (rounds + 1));
            if round % 2 == 1
                && let Some(killed) = server.take()
            {
                killed.kill();
            }
            rotating.kill().unwrap();
            rotating.wait().unwrap();
            let ring = self.ring();
            self.check_secrets(&ring);
            assert!(LinkKey::of(&ring).read_link(&self.token).is_some(), "an old token is verified");
            if with_server && server.is_none() {
                server = Some(self.start("serve"));
            }
        }
        let last = run(self.rotate_line()).expect(0).json();
        let ring = self.ring();
        assert_eq!(last["key"], ring.first().id(), "{last}");
        assert_eq!(last["resealed"]["unreadable"], 0);
        self.check_secrets(&KeyRing::from(*ring.first()));
        let server = server.unwrap_or_else(|| self.start("serve"));
        let (status, answer) = server.upload(&self.upload, FILE).unwrap();
        assert_eq!(status, 202, "{answer}");
        assert_eq!(server.stop(), Some(0));
    }
}

#[test]
fn a_rotation_of_the_secret_key_is_killed_while_the_server_is_stopped() {
    Installation::on_sqlite().survives(false);
}

#[test]
fn a_rotation_of_the_secret_key_is_killed_while_the_server_runs() {
    Installation::on_sqlite().survives(true);
}

#[cfg(feature = "postgres")]
#[test]
fn a_rotation_of_the_secret_key_is_killed_on_postgres_while_no_node_runs() {
    let Some(installation) = Installation::on_postgres() else { return };
    installation.survives(false);
}

#[cfg(feature = "postgres")]
#[test]
fn a_rotation_of_the_secret_key_is_killed_on_postgres_while_a_node_runs() {
    let Some(installation) = Installation::on_postgres() else { return };
    installation.survives(true);
}
