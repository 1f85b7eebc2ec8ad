//! What the server is told: flags, environment, a file, defaults, in this order (contract section 22).

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use ipnet::IpNet;
use messaging_core::domain::api_key::parse_block;
use messaging_transport::MxOverride;
use messaging_transport::direct::MalformedMxOverride;
use serde::{Deserialize, Deserializer, de};

use crate::logging::LogFormat;

const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);
const DEFAULT_DATA: &str = "./messaging-data";
const DATABASE_FILE: &str = "messaging.db";
const SECRET_KEY_FILE: &str = "secret.key";
const MAX_WEBHOOK_RETRIES: usize = 100;

/// The settings as they are given: every one may be missing.
///
/// The same type is read from flags, the environment and the file, so no setting can be known to one
/// and unknown to another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SettingsArgs {
    /// TOML file with further settings; its keys are the flags' names with `_` for `-`
    ///
    /// A flag beats the environment, which beats the file. An unknown key is an error.
    #[arg(long, env = "MESSAGING_CONFIG", value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,

    /// Address of the API [default: 127.0.0.1:8080]
    ///
    /// Port 0 takes any free port. The address that was found is logged and written to the file
    /// `listen` in the data directory.
    #[arg(long, env = "MESSAGING_LISTEN", value_name = "IP:PORT")]
    pub listen: Option<SocketAddr>,

    /// Directory of the database, the secret key and files [default: ./messaging-data]
    ///
    /// Made when it is not there, for its owner alone (0700).
    #[arg(long, env = "MESSAGING_DATA", value_name = "DIRECTORY")]
    pub data: Option<PathBuf>,

    /// The database: a path or `sqlite://PATH` [default: messaging.db in the data directory]
    #[arg(long, env = "MESSAGING_DATABASE", value_name = "PATH")]
    pub database: Option<String>,

    /// File of the key that secrets in the database are sealed under [default: secret.key in the data directory]
    ///
    /// Made with the database, for its owner alone (0600). A database is used with the key it was made with and
    /// no other, so keep a copy with the backup: without it the secrets are lost.
    #[arg(long, env = "MESSAGING_SECRET_KEY_FILE", value_name = "FILE")]
    pub secret_key_file: Option<PathBuf>,

    /// How the server is reached from outside [default: http:// and the address it listens at]
    ///
    /// The base of tracking, unsubscribe, upload and callback links. Behind a proxy with TLS this is
    /// the proxy's address, such as `https://mail.example.org`.
    #[arg(long, env = "MESSAGING_PUBLIC_URL", value_name = "URL")]
    pub public_url: Option<String>,

    /// The name this machine sends mail under [default: the machine's host name]
    ///
    /// Said in EHLO, and the right side of Message-IDs. Receivers look it up: use a name that resolves
    /// to the address mail is sent from.
    #[arg(long, env = "MESSAGING_HOSTNAME", value_name = "NAME")]
    pub hostname: Option<String>,

    /// The DNS resolver that is asked for everything [default: the system's]
    #[arg(long, env = "MESSAGING_DNS", value_name = "IP:PORT")]
    pub dns: Option<SocketAddr>,

    /// Host and port that take the place of every recipient's mail exchangers [default: none]
    ///
    /// The DNS is not asked where mail goes. STARTTLS is used where it is offered, and no certificate
    /// verified. For mail that has to leave through one door, and for trying things out.
    #[arg(long, env = "MESSAGING_MX_OVERRIDE", value_name = "HOST:PORT")]
    pub mx_override: Option<String>,

    /// Seconds between attempts to deliver an email, comma separated; the last one repeats
    /// [default: 60,300,900,1800,3600,7200,14400,28800,43200]
    #[arg(long, env = "MESSAGING_MESSAGE_RETRY", value_name = "SECONDS,…", value_delimiter = ',')]
    pub message_retry: Option<Vec<u64>>,

    /// Seconds after acceptance at which an email is given up [default: 259200, three days]
    #[arg(long, env = "MESSAGING_MESSAGE_EXPIRY", value_name = "SECONDS")]
    pub message_expiry: Option<u64>,

    /// Seconds between attempts to deliver a webhook, comma separated; after the last one it is given up
    /// [default: 5,300,1800,7200,18000,36000,50400,72000,86400]
    #[arg(long, env = "MESSAGING_WEBHOOK_RETRY", value_name = "SECONDS,…", value_delimiter = ',')]
    pub webhook_retry: Option<Vec<u64>>,

    /// Allow http and private addresses for webhooks and other URLs that users give [default: false]
    ///
    /// Whoever may create a webhook can then reach everything that this machine can reach.
    #[arg(
        long,
        env = "MESSAGING_ALLOW_PRIVATE_TARGETS",
        value_name = "true|false",
        num_args = 0..=1,
        default_missing_value = "true"
    )]
    pub allow_private_targets: Option<bool>,
    /// Seconds after which segments that depend on the present are calculated anew [default: 900]
    /// Changes of contacts and events reach segments at once; this is for the mere passing of time.
    #[arg(long, env = "MESSAGING_SEGMENT_REFRESH", value_name = "SECONDS")]
    pub segment_refresh: Option<u64>,

    /// Proxies whose X-Forwarded-For is believed: addresses or CIDR blocks, comma separated [default: none]
    ///
    /// Without it the caller's address, which the allowlists of API keys look at, is that of the TCP
    /// connection.
    #[arg(
        long,
        env = "MESSAGING_TRUSTED_PROXY",
        value_name = "CIDR,…",
        value_delimiter = ',',
        value_parser = block
    )]
    #[serde(deserialize_with = "blocks")]
    pub trusted_proxy: Option<Vec<IpNet>>,

    /// Address at which bounces, complaints and requests to unsubscribe arrive by SMTP [default: off]
    ///
    /// The MX of the `bounce.` sub-domains of the sending domains points there, at port 25. Port 0 takes
    /// any free port. The address that was found is logged and written to the file `smtp-listen` in the
    /// data directory.
    #[arg(long, env = "MESSAGING_SMTP_LISTEN", value_name = "IP:PORT")]
    pub smtp_listen: Option<SocketAddr>,

    /// Bytes to be kept free on the disk of the database [default: 32 MiB, or twice the write-ahead log]
    ///
    /// With less than that free, requests that add something get 503; what was accepted is still delivered, and
    /// its outcomes are still stored.
    #[arg(long, env = "MESSAGING_DISK_RESERVE", value_name = "BYTES")]
    pub disk_reserve: Option<u64>,

    /// Where the data is, as shown on workspaces [default: local]
    #[arg(long, env = "MESSAGING_DATA_REGION", value_name = "NAME")]
    pub data_region: Option<String>,

    /// What is logged to standard error: a level, or levels by module [default: info]
    ///
    /// For example `warn`, or `info,messaging_http=debug`. Requests are logged at info, one line each,
    /// without bodies, addresses or keys.
    #[arg(long, env = "MESSAGING_LOG", value_name = "FILTER")]
    pub log: Option<String>,

    /// How log lines look [default: text]
    #[arg(long, env = "MESSAGING_LOG_FORMAT", value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,

    /// Address at which Prometheus finds /metrics [default: off]
    ///
    /// Not meant for the public: it tells what the server is used for. Port 0 takes any free port. The address that
    /// was found is logged and written to the file `metrics-listen` in the data directory.
    #[arg(long, env = "MESSAGING_METRICS_LISTEN", value_name = "IP:PORT")]
    pub metrics_listen: Option<SocketAddr>,
}

/// The settings, complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Address of the API.
    pub listen: SocketAddr,
    /// The data directory.
    pub data: PathBuf,
    /// The SQLite file.
    pub database: PathBuf,
    /// The file with the key that stored secrets are sealed under.
    pub secret_key_file: PathBuf,
    /// How the server is reached from outside; `None` for the address it listens at.
    pub public_url: Option<String>,
    /// The name this machine sends mail under.
    pub hostname: String,
    /// The DNS resolver; `None` for the system's.
    pub dns: Option<SocketAddr>,
    /// What takes the place of every recipient's mail exchangers.
    pub mx_override: Option<MxOverride>,
    /// Waits between email attempts.
    pub message_retry: Vec<Duration>,
    /// How long after acceptance an email is given up.
    pub message_expiry: Duration,
    /// Waits between attempts to deliver a webhook.
    pub webhook_retry: Vec<Duration>,
    /// Whether `http` and addresses that are not public may be called.
    pub allow_private_targets: bool,
    /// How often segments that depend on the present are calculated anew.
    pub segment_refresh: Duration,
    /// Proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxy: Vec<IpNet>,
    /// Where mail comes back to.
    pub smtp_listen: Option<SocketAddr>,
    /// Bytes to be kept free on the disk of the database; `None` for the default of the store.
    pub disk_reserve: Option<u64>,
    /// Where the data is.
    pub data_region: String,
    /// What is logged.
    pub log: String,
    /// How log lines look.
    pub log_format: LogFormat,
    /// Address of the metrics page.
    pub metrics_listen: Option<SocketAddr>,
}

/// The settings make no sense.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file cannot be read.
    #[error("failed to read the settings file {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: std::io::Error,
    },
    /// The file has an unknown key, or a value of the wrong type.
    #[error("the settings file {} is not right:\n{problem}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What and where, in several lines.
        problem: String,
    },
    /// The database is of a kind that is not built in.
    #[error("this build has SQLite only; give --database a path or sqlite://PATH")]
    UnknownDatabase,
    /// The public URL cannot be the base of links.
    #[error("--public-url must be http:// or https://, a host, and no query or fragment")]
    PublicUrl,
    /// The host name cannot be said in EHLO.
    #[error("--hostname must be a domain name such as mail.example.org")]
    Hostname,
    /// The override cannot be connected to.
    #[error("--mx-override must be a host and a port such as mail.example.org:25")]
    MxOverride(#[source] MalformedMxOverride),
    /// There is no first wait, or a wait of no time.
    #[error("--message-retry must be a list of at least one number of seconds, each at least 1")]
    MessageRetry,
    /// A wait of no time, or more of them than anybody means.
    #[error("--webhook-retry must be a list of at most 100 numbers of seconds, each at least 1")]
    WebhookRetry,
    /// Emails would be given up at once.
    #[error("--message-expiry must be at least 1 second")]
    MessageExpiry,
    /// Segments would be calculated all the time.
    #[error("--segment-refresh must be at least 1 second")]
    SegmentRefresh,
}

impl SettingsArgs {
    /// Adds the file and the defaults, and checks that the whole makes sense.
    pub fn resolve(self) -> Result<Settings, SettingsError> {
        let file = match &self.config {
            Some(path) => Self::read(path)?,
            None => Self::default(),
        };
        self.or(file).complete()
    }

    fn read(path: &Path) -> Result<Self, SettingsError> {
        let text =
            fs::read_to_string(path).map_err(|source| SettingsError::Unreadable { path: path.to_owned(), source })?;
        toml::from_str(&text)
            .map_err(|error| SettingsError::Malformed { path: path.to_owned(), problem: error.to_string() })
    }

    /// Takes from `other` what is missing here.
    fn or(self, other: Self) -> Self {
        Self {
            config: self.config,
            listen: self.listen.or(other.listen),
            data: self.data.or(other.data),
            database: self.database.or(other.database),
            secret_key_file: self.secret_key_file.or(other.secret_key_file),
            public_url: self.public_url.or(other.public_url),
            hostname: self.hostname.or(other.hostname),
            dns: self.dns.or(other.dns),
            mx_override: self.mx_override.or(other.mx_override),
            message_retry: self.message_retry.or(other.message_retry),
            message_expiry: self.message_expiry.or(other.message_expiry),
            webhook_retry: self.webhook_retry.or(other.webhook_retry),
            allow_private_targets: self.allow_private_targets.or(other.allow_private_targets),
            segment_refresh: self.segment_refresh.or(other.segment_refresh),
            trusted_proxy: self.trusted_proxy.or(other.trusted_proxy),
            smtp_listen: self.smtp_listen.or(other.smtp_listen),
            disk_reserve: self.disk_reserve.or(other.disk_reserve),
            data_region: self.data_region.or(other.data_region),
            log: self.log.or(other.log),
            log_format: self.log_format.or(other.log_format),
            metrics_listen: self.metrics_listen.or(other.metrics_listen),
        }
    }

    fn complete(self) -> Result<Settings, SettingsError> {
        let defaults = messaging_engine::Settings::default();
        let data = self.data.unwrap_or_else(|| DEFAULT_DATA.into());
        let database = match self.database {
            Some(text) => database_path(&text)?,
            None => data.join(DATABASE_FILE),
        };
        let public_url = self.public_url.map(|url| url.trim_end_matches('/').to_owned());
        if public_url.as_deref().is_some_and(|url| !is_base_url(url)) {
            return Err(SettingsError::PublicUrl);
        }
        let hostname = match self.hostname {
            Some(name) if is_hostname(&name) => name,
            Some(_) => return Err(SettingsError::Hostname),
            None => machine_name().unwrap_or(defaults.hostname),
        };
        let mx_override = self.mx_override.map(|text| text.parse().map_err(SettingsError::MxOverride)).transpose()?;
        let message_retry = match self.message_retry {
            Some(seconds) if seconds.is_empty() || seconds.contains(&0) => return Err(SettingsError::MessageRetry),
            Some(seconds) => seconds.into_iter().map(Duration::from_secs).collect(),
            None => defaults.message_retry,
        };
        let message_expiry = self.message_expiry.map_or(defaults.message_expiry, Duration::from_secs);
        if message_expiry.is_zero() {
            return Err(SettingsError::MessageExpiry);
        }
        let webhook_retry = match self.webhook_retry {
            Some(seconds) if seconds.contains(&0) || seconds.len() > MAX_WEBHOOK_RETRIES => {
                return Err(SettingsError::WebhookRetry);
            }
            Some(seconds) => seconds.into_iter().map(Duration::from_secs).collect(),
            None => defaults.webhook_retry,
        };
        let segment_refresh = self.segment_refresh.map_or(defaults.segment_refresh, Duration::from_secs);
        if segment_refresh.is_zero() {
            return Err(SettingsError::SegmentRefresh);
        }
        Ok(Settings {
            listen: self.listen.unwrap_or(DEFAULT_LISTEN),
            secret_key_file: self.secret_key_file.unwrap_or_else(|| data.join(SECRET_KEY_FILE)),
            data,
            database,
            public_url,
            hostname,
            dns: self.dns,
            mx_override,
            message_retry,
            message_expiry,
            webhook_retry,
            allow_private_targets: self.allow_private_targets.unwrap_or(false),
            segment_refresh,
            trusted_proxy: self.trusted_proxy.unwrap_or_default(),
            smtp_listen: self.smtp_listen,
            disk_reserve: self.disk_reserve,
            data_region: self.data_region.unwrap_or(defaults.data_region),
            log: self.log.unwrap_or_else(|| "info".to_owned()),
            log_format: self.log_format.unwrap_or_default(),
            metrics_listen: self.metrics_listen,
        })
    }
}

fn database_path(text: &str) -> Result<PathBuf, SettingsError> {
    match text.split_once("://") {
        Some(("sqlite", path)) if !path.is_empty() => Ok(path.into()),
        Some(_) => Err(SettingsError::UnknownDatabase),
        None if text.is_empty() => Err(SettingsError::UnknownDatabase),
        None => Ok(text.into()),
    }
}

fn is_base_url(url: &str) -> bool {
    let Ok(uri) = url.parse::<http::Uri>() else { return false };
    matches!(uri.scheme_str(), Some("http" | "https"))
        && uri.host().is_some_and(|host| !host.is_empty())
        && uri.query().is_none()
        && !url.contains('#')
}

fn is_hostname(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

/// What the machine calls itself, if that can be said in EHLO.
fn machine_name() -> Option<String> {
    let name = rustix::system::uname().nodename().to_str().ok()?.to_owned();
    is_hostname(&name).then_some(name)
}

fn block(text: &str) -> Result<IpNet, String> {
    parse_block(text.trim()).ok_or_else(|| "expected an address or a CIDR block such as 10.0.0.0/8".to_owned())
}

fn blocks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<IpNet>>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    texts.iter().map(|text| block(text)).collect::<Result<_, _>>().map(Some).map_err(de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_toml(text: &str) -> Result<Settings, String> {
        let args: SettingsArgs = toml::from_str(text).map_err(|error| error.to_string())?;
        args.complete().map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_is_needed() {
        let settings = from_toml("").unwrap();
        assert_eq!(settings.listen.to_string(), "127.0.0.1:8080");
        assert_eq!(settings.database, Path::new("./messaging-data/messaging.db"));
        assert_eq!(settings.secret_key_file, Path::new("./messaging-data/secret.key"));
        assert_eq!(settings.log, "info");
        assert_eq!(settings.message_retry.len(), 9);
    }

    #[test]
    fn the_file_takes_every_setting() {
        let settings = from_toml(
            r#"
            listen = "[::1]:0"
            data = "/var/lib/messaging"
            database = "sqlite:///var/db/m.db"
            secret_key_file = "/etc/messaging/secret.key"
            public_url = "https://m.example.org/"
            hostname = "m.example.org"
            dns = "127.0.0.1:5353"
            mx_override = "localhost:2525"
            message_retry = [1, 2]
            message_expiry = 60
            webhook_retry = [1, 2, 3]
            allow_private_targets = true
            segment_refresh = 5
            trusted_proxy = ["10.0.0.0/8", "192.0.2.1"]
            smtp_listen = "[::]:25"
            disk_reserve = 1000000
            data_region = "eu"
            log = "debug"
            log_format = "json"
            metrics_listen = "127.0.0.1:9100"
            "#,
        )
        .unwrap();
        assert_eq!(settings.database, Path::new("/var/db/m.db"));
        assert_eq!(settings.secret_key_file, Path::new("/etc/messaging/secret.key"));
        assert_eq!(settings.public_url.as_deref(), Some("https://m.example.org"));
        assert_eq!(settings.dns.map(|dns| dns.port()), Some(5353));
        assert_eq!(settings.mx_override.map(|host| host.to_string()).as_deref(), Some("localhost:2525"));
        assert_eq!(settings.trusted_proxy.len(), 2);
        assert_eq!(settings.smtp_listen.unwrap().port(), 25);
        assert_eq!(settings.disk_reserve, Some(1_000_000));
        assert_eq!(settings.log_format, LogFormat::Json);
        assert_eq!(settings.message_expiry, Duration::from_mins(1));
        assert_eq!(settings.webhook_retry, [1, 2, 3].map(Duration::from_secs));
        assert!(settings.allow_private_targets);
        assert_eq!(settings.segment_refresh, Duration::from_secs(5));
    }

    #[test]
    fn the_first_source_wins() {
        let flags = SettingsArgs { log: Some("warn".to_owned()), ..SettingsArgs::default() };
        let file: SettingsArgs = toml::from_str("log = \"debug\"\ndata = \"/x\"").unwrap();
        let settings = flags.or(file).complete().unwrap();
        assert_eq!((settings.log.as_str(), settings.data.as_path()), ("warn", Path::new("/x")));
    }

    #[test]
    fn an_unknown_key_is_named_with_its_place() {
        let problem = from_toml("log = \"info\"\nlisten_on = \"127.0.0.1:1\"").unwrap_err();
        assert!(problem.contains("line 2, column 1") && problem.contains("listen_on"), "{problem}");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (bad, word) in [
            ("database = \"postgres://localhost/x\"", "SQLite only"),
            ("public_url = \"example.org\"", "--public-url"),
            ("public_url = \"ftp://example.org\"", "--public-url"),
            ("public_url = \"https://example.org/?a\"", "--public-url"),
            ("hostname = \"a b\"", "--hostname"),
            ("dns = \"127.0.0.1\"", "line 1"),
            ("mx_override = \"mail.example.org\"", "--mx-override"),
            ("message_retry = []", "--message-retry"),
            ("message_retry = [0]", "--message-retry"),
            ("message_expiry = 0", "--message-expiry"),
            ("webhook_retry = [5, 0]", "--webhook-retry"),
            ("allow_private_targets = 1", "line 1"),
            ("segment_refresh = 0", "--segment-refresh"),
            ("disk_reserve = -1", "line 1"),
            ("trusted_proxy = [\"x\"]", "CIDR"),
            ("listen = \"8080\"", "line 1"),
            ("smtp_listen = \"mail.example.org:25\"", "line 1"),
            ("log_format = \"xml\"", "line 1"),
        ] {
            let problem = from_toml(bad).unwrap_err();
            assert!(problem.contains(word), "{bad}: {problem}");
        }
    }
}
