//! A PostgreSQL server for the tests of this process.
//!
//! The server listens on a unix socket in a directory of its own, and ends with the process: a shell waits for the end
//! of a pipe that only this process holds, and then stops the server.

use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use messaging_core::ports::Store as _;
use messaging_store::{PostgresOptions, PostgresStore, PostgresUrl};
use tokio::sync::OnceCell;
use tokio_postgres::NoTls;
use tokio_postgres::error::SqlState;

/// User and group id of `nobody` on Debian, which runs the server because PostgreSQL refuses to run as root.
const NOBODY: u32 = 65_534;

/// Maximum time for the start of the server, and for a wait until a database can be copied.
const PATIENCE: Duration = Duration::from_mins(1);

/// The server of this process; `None` if the programs of the server are not found.
static CLUSTER: OnceCell<Option<Cluster>> = OnceCell::const_new();

/// A running server, whose database `template_of_tests` has the current schema.
#[derive(Debug)]
struct Cluster {
    socket: PathBuf,
    databases: AtomicU64,
    /// The shell that stops the server once its standard input, the pipe, is closed.
    _watchdog: Child,
}

/// A database for one test.
#[derive(Debug)]
pub struct Database {
    /// The URL of the database.
    pub url: String,
}

impl Database {
    /// Creates a database with the current schema, without a row; `None` if there is no server to start.
    pub async fn create() -> Option<Self> {
        let cluster = CLUSTER.get_or_init(|| Cluster::start(false)).await.as_ref()?;
        Some(cluster.copy("template_of_tests").await)
    }

    /// Like `create`, on a server that syncs to disk, for measurements. A process has one server: the first call of the
    /// process, here or of `create`, decides if it syncs.
    pub async fn create_durable() -> Option<Self> {
        let cluster = CLUSTER.get_or_init(|| Cluster::start(true)).await.as_ref()?;
        Some(cluster.copy("template_of_tests").await)
    }

    /// Copies the database with its rows, as `pg_dump` and `pg_restore` would. Waits up to a minute until nobody is
    /// connected to the original.
    pub async fn copy(&self) -> Self {
        let cluster = CLUSTER.get().and_then(Option::as_ref).unwrap();
        let name = self.url.split(['/', '?']).nth(3).unwrap();
        cluster.copy(name).await
    }

    /// Returns the rows of a table, each as the text of its columns.
    pub async fn rows(&self, table: &str) -> Vec<String> {
        let (client, connection) = tokio_postgres::connect(&self.url, NoTls).await.unwrap();
        let driving = tokio::spawn(connection);
        let rows = client.query(&format!("SELECT CAST({table} AS text) FROM {table}"), &[]).await.unwrap();
        drop(client);
        let _ = driving.await;
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// Returns the options with which a store opens the database.
    pub fn options(&self) -> PostgresOptions {
        PostgresOptions::new(PostgresUrl::parse(&self.url).unwrap())
    }
}

impl Cluster {
    /// Starts a server; `None` if its programs are not found. Without `is_durable` it syncs nothing, since the data
    /// does not outlive the process.
    async fn start(is_durable: bool) -> Option<Self> {
        let Some(programs) = programs() else {
            assert!(std::env::var_os("REQUIRE_POSTGRES").is_none(), "no PostgreSQL server was found to start");
            let _ = writeln!(std::io::stderr(), "SKIPPED: there is no PostgreSQL server to start; set PG_BIN");
            return None;
        };
        let directory = std::env::temp_dir().join(format!("messaging-pg-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let is_root = directory_is_of_root(&directory);
        if is_root {
            chown(&directory, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        std::fs::set_permissions(&directory, PermissionsExt::from_mode(0o700)).unwrap();
        let data = directory.join("data");
        run(command(is_root, &programs.join("initdb"))
            .args(["--no-sync", "-A", "trust", "--locale=C", "-E", "UTF8"])
            .args(["-U", "tests", "-D"])
            .arg(&data));
        let watchdog = "\"$@\" & server=$!; cat >/dev/null; kill -INT $server; wait $server; rm -rf \"$DIRECTORY\"";
        let mut shell = Command::new("sh");
        shell.args(["-c", watchdog, "sh"]).env("DIRECTORY", &directory);
        let server = command(is_root, &programs.join("postgres"));
        shell.arg(server.get_program()).args(server.get_args()).arg("-D").arg(&data).arg("-k").arg(&directory);
        // Vacuuming would be wasted on hundreds of databases that are used for a second each.
        let upkeep: &[&str] = if is_durable {
            &["autovacuum_naptime=5s"]
        } else {
            &["fsync=off", "full_page_writes=off", "autovacuum=off"]
        };
        for setting in [
            "listen_addresses=",
            "max_connections=400",
            "shared_buffers=64MB",
            "log_min_messages=panic",
            "log_min_error_statement=panic",
        ]
        .iter()
        .chain(upkeep)
        {
            shell.args(["-c", setting]);
        }
        let child = shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let cluster = Self { socket: directory, databases: AtomicU64::new(0), _watchdog: child };
        cluster.wait_until_it_answers().await;
        cluster.execute("postgres", "CREATE DATABASE template_of_tests").await;
        let options = PostgresOptions::new(PostgresUrl::parse(&cluster.url("template_of_tests")).unwrap());
        PostgresStore::open(options).await.unwrap().close().await;
        Some(cluster)
    }

    fn url(&self, database: &str) -> String {
        format!("postgresql://tests@/{database}?host={}", self.socket.display())
    }

    async fn wait_until_it_answers(&self) {
        let began = Instant::now();
        while tokio_postgres::connect(&self.url("postgres"), NoTls).await.is_err() {
            assert!(began.elapsed() < PATIENCE, "the server does not start");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn copy(&self, database: &str) -> Database {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        // By default, PostgreSQL 15 and later copy pages through the log, so that the copy waits for no checkpoint.
        let sql = format!("CREATE DATABASE {name} TEMPLATE {database}");
        let began = Instant::now();
        while let Err(error) = self.try_to_execute("postgres", &sql).await {
            // The server takes a moment to drop a connection that was closed just now.
            assert!(error.code() == Some(&SqlState::OBJECT_IN_USE) && began.elapsed() < PATIENCE, "{error:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Database { url: self.url(&name) }
    }

    async fn execute(&self, database: &str, sql: &str) {
        self.try_to_execute(database, sql).await.unwrap();
    }

    async fn try_to_execute(&self, database: &str, sql: &str) -> Result<(), tokio_postgres::Error> {
        let (client, connection) = tokio_postgres::connect(&self.url(database), NoTls).await?;
        let driving = tokio::spawn(connection);
        let outcome = client.batch_execute(sql).await;
        drop(client);
        let _ = driving.await;
        outcome
    }
}

/// Returns the first directory that has the server's programs: `PG_BIN`, those of `PATH`, then those of Debian's
/// versions in descending order of their names as text. `None` also if `PATH` is not set.
fn programs() -> Option<PathBuf> {
    let named = std::env::var_os("PG_BIN").map(PathBuf::from);
    let on_path = std::env::split_paths(&std::env::var_os("PATH")?).collect::<Vec<_>>();
    let mut of_debian: Vec<_> = std::fs::read_dir("/usr/lib/postgresql")
        .map(|versions| versions.filter_map(|version| Some(version.ok()?.path().join("bin"))).collect())
        .unwrap_or_default();
    of_debian.sort();
    let places = named.into_iter().chain(on_path).chain(of_debian.into_iter().rev());
    places.into_iter().find(|place| place.join("initdb").is_file() && place.join("postgres").is_file())
}

fn directory_is_of_root(directory: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(directory).unwrap().uid() == 0
}

/// Returns a command for a program, run as `nobody` if this process is root.
fn command(is_root: bool, program: &Path) -> Command {
    if !is_root {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
    command
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
