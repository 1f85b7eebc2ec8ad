//! Connecting, on the runtime that opened the store.
//!
//! A connection is driven by a task. A program may have several runtimes, some of which stand still while one of their
//! threads waits; a connection made on one of those would stand still as well, for all its users.
//!
//! Several hosts are tried in turn, beginning with the one that was reached last. If a host does not answer in its
//! share of the time, the next is tried beside it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use deadpool_postgres::Connect;
use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, JoinSet};
use tokio_postgres::config::Host;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Connection, Error, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Time after which a host that has not answered is no longer waited for alone.
const SHARE: Duration = Duration::from_millis(500);

/// Time limit for connecting to one address of a host, unless the URL has one.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Time without an acknowledgement of sent data after which a connection ends.
const USER_TIMEOUT: Duration = Duration::from_secs(6);

/// Keepalive: time without a packet before the first probe, interval of the probes, and their number.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(5);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(2);
const KEEPALIVE_RETRIES: u32 = 3;

/// Drives a connection, and yields its asynchronous messages.
pub(super) type Driver = Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// Makes connections on a runtime.
#[derive(Clone)]
pub(super) struct OnRuntime {
    runtime: Handle,
    tls: MakeRustlsConnect,
    /// Addresses and options of each host of the URL.
    hosts: Arc<Hosts>,
}

struct Hosts {
    configs: Vec<Config>,
    /// Index of the host that was reached last.
    last: Arc<AtomicUsize>,
}

impl OnRuntime {
    /// Uses the present runtime.
    pub(super) fn present(config: &Config, tls: MakeRustlsConnect) -> Self {
        let hosts = Hosts { configs: each_host(config), last: Arc::default() };
        Self { runtime: Handle::current(), tls, hosts: Arc::new(hosts) }
    }

    /// Returns the same hosts for connections with other options: settings for the server.
    pub(super) fn with_options(&self, options: &str) -> Self {
        let mut configs = self.hosts.configs.clone();
        for config in &mut configs {
            config.options(options);
        }
        Self { hosts: Arc::new(Hosts { configs, last: Arc::clone(&self.hosts.last) }), ..self.clone() }
    }

    /// Connects to the first host that can be reached. Attempts to reach the others are then abandoned, also if this is
    /// dropped.
    pub(super) async fn connect(&self) -> Result<(Client, Driver), Error> {
        let count = self.hosts.configs.len();
        let first = self.hosts.last.load(Ordering::Relaxed);
        let mut untried = (0..count).map(|place| (first + place) % count).peekable();
        let mut attempts = JoinSet::new();
        let mut failure = None;
        loop {
            if let Some(host) = untried.next() {
                let (config, tls) = (self.hosts.configs[host].clone(), self.tls.clone());
                attempts.spawn_on(async move { (host, config.connect(tls).await) }, &self.runtime);
            } else if attempts.is_empty()
                && let Some(error) = failure
            {
                return Err(error);
            }
            let share = if untried.peek().is_some() { SHARE } else { Duration::MAX };
            match tokio::time::timeout(share, attempts.join_next()).await {
                Ok(Some(Ok((host, Ok(connected))))) => {
                    self.hosts.last.store(host, Ordering::Relaxed);
                    return Ok(connected);
                }
                Ok(Some(Ok((_, Err(error))))) => failure = Some(error),
                Ok(Some(Err(ended))) if ended.is_panic() => std::panic::resume_unwind(ended.into_panic()),
                // The runtime ends, and with it all callers that could wait for this.
                Ok(Some(Err(_)) | None) => std::future::pending().await,
                // The next host is tried beside this one.
                Err(_) => {}
            }
        }
    }
}

impl Connect for OnRuntime {
    fn connect(&self, _: &Config) -> BoxFuture<'_, Result<(Client, JoinHandle<()>), Error>> {
        Box::pin(async {
            let (client, driver) = self.connect().await?;
            let driving = self.runtime.spawn(async move {
                // The user of the connection hears of the failure, too.
                if let Err(error) = driver.await {
                    tracing::debug!(%error, "a connection to the database ended");
                }
            });
            Ok((client, driving))
        })
    }
}

/// Options for each of the hosts alone, so that each has its own time limit.
fn each_host(config: &Config) -> Vec<Config> {
    let count = config.get_hosts().len().max(config.get_hostaddrs().len());
    let port_of = |place: usize| config.get_ports().get(place).or(config.get_ports().first()).copied();
    let of_host = |place: usize| {
        let mut own = without_hosts(config);
        match config.get_hosts().get(place) {
            Some(Host::Tcp(name)) => {
                own.host(name);
            }
            Some(Host::Unix(path)) => {
                own.host_path(path);
            }
            None => {}
        }
        if let Some(address) = config.get_hostaddrs().get(place) {
            own.hostaddr(*address);
        }
        if let Some(port) = port_of(place) {
            own.port(port);
        }
        own
    };
    (0..count).map(of_host).collect()
}

fn without_hosts(config: &Config) -> Config {
    let mut own = Config::new();
    own.ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .channel_binding(config.get_channel_binding())
        .target_session_attrs(config.get_target_session_attrs())
        .load_balance_hosts(config.get_load_balance_hosts())
        .connect_timeout(config.get_connect_timeout().copied().unwrap_or(CONNECT_TIMEOUT))
        .tcp_user_timeout(config.get_tcp_user_timeout().copied().unwrap_or(USER_TIMEOUT))
        .keepalives(config.get_keepalives())
        .keepalives_interval(config.get_keepalives_interval().unwrap_or(KEEPALIVE_INTERVAL))
        .keepalives_retries(config.get_keepalives_retries().unwrap_or(KEEPALIVE_RETRIES))
        // Without a setting in the URL it is two hours.
        .keepalives_idle(config.get_keepalives_idle().min(KEEPALIVE_IDLE));
    if let Some(user) = config.get_user() {
        own.user(user);
    }
    if let Some(password) = config.get_password() {
        own.password(password);
    }
    if let Some(name) = config.get_dbname() {
        own.dbname(name);
    }
    if let Some(options) = config.get_options() {
        own.options(options);
    }
    if let Some(name) = config.get_application_name() {
        own.application_name(name);
    }
    own
}
