//! Settings of the server, complete and checked: flags, environment, a file, defaults, in this order (contract section
//! 22).

mod args;
mod database;
mod error;
mod in_force;
mod machine_name;
mod oidc;
mod reload;
mod sources;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use messaging_core::domain::channel::address::EmailAddress;
use messaging_core::domain::delivery::site::SiteRules;
use messaging_core::domain::security::proof_of_work::MAX_BITS;
use messaging_core::domain::security::web_url::is_absolute;
#[cfg(feature = "s3")]
use messaging_store::BucketUrl;
use messaging_transport::{Dns, MxOverride};

pub use self::args::{SettingsArgs, read_site_rules};
pub use self::database::Database;
pub use self::error::SettingsError;
pub(crate) use self::in_force::{FILE as IN_FORCE, InForce};
pub use self::in_force::{Running, running};
use self::machine_name::{is_hostname, machine_name};
pub use self::reload::Reload;
pub use self::sources::SourceArg;
pub(crate) use self::sources::bind_each;
use crate::console::Console;
use crate::logging::LogFormat;

const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);
const DEFAULT_DATA: &str = "./messaging-data";
const DATABASE_FILE: &str = "messaging.db";
const SECRET_KEY_FILE: &str = "secret.key";
const MAX_WEBHOOK_RETRIES: usize = 100;
/// Days for which entries of audit logs can be stored: up to a hundred years.
const AUDIT_DAYS: std::ops::RangeInclusive<u32> = 1..=36_500;

/// The settings, complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Address of the API.
    pub listen: SocketAddr,
    /// The data directory.
    pub data: PathBuf,
    /// The database.
    pub database: Database,
    /// The bucket of attachments; `None` if they are in the database.
    #[cfg(feature = "s3")]
    pub blobs: Option<BucketUrl>,
    /// The file with the key that encrypts stored secrets.
    pub secret_key_file: PathBuf,
    /// URL by which the server is reached from outside; `None` for the address it listens at.
    pub public_url: Option<String>,
    /// Settings of the engine; `public_url` is filled in when the address is known.
    pub engine: messaging_engine::Settings,
    /// The DNS resolver; `None` for the system's.
    pub dns: Option<SocketAddr>,
    /// True if the resolver, which is on this machine, is trusted to say which answers are DNSSEC-signed.
    pub dns_trust_ad: bool,
    /// Mail server that replaces the MX hosts of every recipient domain.
    pub mx_override: Option<MxOverride>,
    /// The rules of sites; `None` for the built-in ones.
    pub site_rules: Option<Arc<SiteRules>>,
    /// True if `http` URLs and private addresses may be called.
    pub allow_private_targets: bool,
    /// Proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxy: Vec<IpNet>,
    /// Address at which bounces, complaints and requests to unsubscribe arrive by SMTP; `None` for no listener.
    pub smtp_listen: Option<SocketAddr>,
    /// Address at which programs submit mail by SMTP; `None` for no listener.
    pub submission_listen: Option<SocketAddr>,
    /// Certificate with which the SMTP listeners offer TLS.
    pub tls: Option<TlsFiles>,
    /// Bytes to keep free on the disk of the database; `None` for the default of the store.
    pub disk_reserve: Option<u64>,
    /// The filter of the log: which lines are written.
    pub log: String,
    /// The format of the log lines.
    pub log_format: LogFormat,
    /// Address of the metrics page.
    pub metrics_listen: Option<SocketAddr>,
    /// The console that is served.
    pub console: Console,
    /// True if a server starts only if the database exists.
    pub require_database: bool,
    /// The given settings: all of the above without the defaults.
    pub given: SettingsArgs,
}

/// The PEM files of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate and its chain.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl SettingsArgs {
    /// Log filter unless another is given.
    pub(crate) const DEFAULT_LOG: &str = "info";

    /// Adds the file and the defaults, and checks the result.
    pub fn resolve(self) -> Result<Settings, SettingsError> {
        self.with_file()?.complete()
    }

    /// Adds the settings of the file that `config` names.
    pub fn with_file(self) -> Result<Self, SettingsError> {
        let file = match &self.config {
            Some(path) => Self::read(path)?,
            None => Self::default(),
        };
        Ok(self.or(file))
    }

    /// The data directory.
    pub fn data_directory(&self) -> &Path {
        self.data.as_deref().unwrap_or(Path::new(DEFAULT_DATA))
    }

    /// The same settings with absolute paths, for a process in another working directory. The data directory is always
    /// set.
    pub fn with_absolute_paths(mut self) -> Self {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        self.data = Some(absolute(self.data_directory()));
        for path in [
            &mut self.secret_key_file,
            &mut self.site_rules,
            &mut self.oidc_client_secret_file,
            &mut self.tls_cert,
            &mut self.tls_key,
            &mut self.console_dir,
        ] {
            *path = path.as_deref().map(absolute);
        }
        if let Some(Ok(Database::Sqlite(path))) = self.database.as_deref().map(Database::parse) {
            self.database = Some(absolute(&path).display().to_string());
        }
        self
    }

    /// Adds the defaults, and checks the result.
    pub fn complete(self) -> Result<Settings, SettingsError> {
        let given = self.clone();
        let oidc = oidc::oidc(&given)?;
        let defaults = messaging_engine::Settings::default();
        let data = self.data.unwrap_or_else(|| DEFAULT_DATA.into());
        let database = match self.database {
            Some(text) => Database::parse(&text)?,
            None => Database::Sqlite(data.join(DATABASE_FILE)),
        };
        #[cfg(feature = "s3")]
        let blobs = self.blobs.map(|text| BucketUrl::parse(&text).map_err(|_| SettingsError::Blobs)).transpose()?;
        #[cfg(feature = "s3")]
        if blobs.is_some() && database.file().is_some() {
            return Err(SettingsError::BlobsOfFile);
        }
        #[cfg(not(feature = "s3"))]
        if self.blobs.is_some() {
            return Err(SettingsError::Blobs);
        }
        let public_url = self.public_url.map(|url| url.trim_end_matches('/').to_owned());
        if public_url.as_deref().is_some_and(|url| !is_base_url(url)) {
            return Err(SettingsError::PublicUrl);
        }
        let hostname = match self.hostname {
            Some(name) if is_hostname(&name) => name,
            Some(_) => return Err(SettingsError::Hostname),
            None => machine_name().unwrap_or(defaults.hostname),
        };
        let dns_trust_ad = self.dns_trust_ad.unwrap_or(false);
        if dns_trust_ad && !Dns::is_on_this_machine(self.dns) {
            return Err(SettingsError::DnsTrustAd);
        }
        let sources = sources::sources(self.source, &hostname)?;
        let warm = self.source_warm.unwrap_or_default();
        let is_ours = |address: &IpAddr| sources.iter().any(|source| source.ip.ip() == Some(*address));
        if let Some(stranger) = warm.iter().find(|address| !is_ours(address)) {
            return Err(SettingsError::WarmWithoutSource(*stranger));
        }
        let mx_override = self.mx_override.map(|text| text.parse().map_err(SettingsError::MxOverride)).transpose()?;
        let site_rules = self.site_rules.as_deref().map(read_site_rules).transpose()?.map(Arc::new);
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
        let audit_kept = match self.audit_days {
            Some(days) if !AUDIT_DAYS.contains(&days) => return Err(SettingsError::AuditDays),
            Some(days) => Duration::from_hours(24 * u64::from(days)),
            None => defaults.audit_kept,
        };
        let pow_bits = self.pow_bits.unwrap_or(defaults.pow_bits);
        if pow_bits > MAX_BITS {
            return Err(SettingsError::PowBits);
        }
        let is_elsewhere = |address: &String| {
            EmailAddress::parse(address).is_ok_and(|address| !address.ascii_domain().eq_ignore_ascii_case(&hostname))
        };
        if !self.postmaster.as_ref().is_none_or(is_elsewhere) {
            return Err(SettingsError::Postmaster);
        }
        let tls = match (self.tls_cert, self.tls_key) {
            (Some(certificate), Some(key)) => Some(TlsFiles { certificate, key }),
            (None, None) => None,
            _ => return Err(SettingsError::TlsPair),
        };
        let is_open = |address: &SocketAddr| !address.ip().to_canonical().is_loopback();
        if tls.is_none() && self.submission_listen.as_ref().is_some_and(is_open) {
            return Err(SettingsError::SubmissionInTheClear);
        }
        let console = match (self.console_dir, self.no_console.unwrap_or(false)) {
            (None, false) => Console::BuiltIn,
            (Some(directory), false) => Console::Directory(directory),
            (None, true) => Console::Off,
            (Some(_), true) => return Err(SettingsError::Console),
        };
        let mut engine = messaging_engine::Settings::default()
            .hostname(hostname)
            .message_retry(message_retry)
            .message_expiry(message_expiry)
            .webhook_retry(webhook_retry)
            .segment_refresh(segment_refresh)
            .audit_kept(audit_kept)
            .pow_bits(pow_bits)
            .data_region(self.data_region.unwrap_or(defaults.data_region));
        engine.postmaster = self.postmaster;
        engine.oidc = oidc;
        engine.sources = sources;
        engine.warm_sources = warm;
        Ok(Settings {
            listen: self.listen.unwrap_or(DEFAULT_LISTEN),
            secret_key_file: self.secret_key_file.unwrap_or_else(|| data.join(SECRET_KEY_FILE)),
            data,
            database,
            #[cfg(feature = "s3")]
            blobs,
            public_url,
            engine,
            dns: self.dns,
            dns_trust_ad,
            mx_override,
            site_rules,
            allow_private_targets: self.allow_private_targets.unwrap_or(false),
            trusted_proxy: self.trusted_proxy.unwrap_or_default(),
            smtp_listen: self.smtp_listen,
            submission_listen: self.submission_listen,
            tls,
            disk_reserve: self.disk_reserve,
            log: self.log.unwrap_or_else(|| Self::DEFAULT_LOG.to_owned()),
            log_format: self.log_format.unwrap_or_default(),
            metrics_listen: self.metrics_listen,
            console,
            require_database: self.require_database.unwrap_or(false),
            given,
        })
    }
}

fn is_base_url(url: &str) -> bool {
    let Ok(uri) = url.parse::<http::Uri>() else { return false };
    is_absolute(url, &["http", "https"]) && uri.query().is_none() && !url.contains('#')
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
        assert_eq!(settings.database, Database::Sqlite("./messaging-data/messaging.db".into()));
        assert_eq!(settings.secret_key_file, Path::new("./messaging-data/secret.key"));
        assert_eq!(settings.log, "info");
        assert_eq!(settings.engine.message_retry.len(), 9);
        assert_eq!(settings.console, Console::BuiltIn);
        assert_eq!(from_toml("no_console = true").unwrap().console, Console::Off);
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
            dns_trust_ad = true
            mx_override = "localhost:2525"
            source = ["127.0.0.2", "127.0.0.3=m3.example.org"]
            source_warm = ["127.0.0.3"]
            message_retry = [1, 2]
            message_expiry = 60
            webhook_retry = [1, 2, 3]
            allow_private_targets = true
            segment_refresh = 5
            oidc_issuer = "https://id.example.org"
            oidc_client_id = "messaging"
            oidc_map = ["staff=wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH:editor"]
            oidc_only = true
            trusted_proxy = ["10.0.0.0/8", "192.0.2.1"]
            smtp_listen = "[::]:25"
            submission_listen = "[::]:587"
            postmaster = "root@example.org"
            tls_cert = "/etc/cert.pem"
            tls_key = "/etc/key.pem"
            disk_reserve = 1000000
            data_region = "eu"
            log = "debug"
            log_format = "json"
            metrics_listen = "127.0.0.1:9100"
            console_dir = "/srv/console"
            no_console = false
            require_database = true
            "#,
        )
        .unwrap();
        assert_eq!(settings.database, Database::Sqlite("/var/db/m.db".into()));
        assert_eq!(settings.secret_key_file, Path::new("/etc/messaging/secret.key"));
        assert_eq!(settings.public_url.as_deref(), Some("https://m.example.org"));
        assert_eq!(settings.dns.map(|dns| dns.port()), Some(5353));
        assert!(settings.dns_trust_ad);
        assert_eq!(settings.mx_override.map(|host| host.to_string()).as_deref(), Some("localhost:2525"));
        let sources: Vec<_> = settings.engine.sources.iter().map(ToString::to_string).collect();
        assert_eq!(sources, ["127.0.0.2 (m.example.org)", "127.0.0.3 (m3.example.org)"]);
        assert_eq!(settings.engine.warm_sources, [IpAddr::from([127, 0, 0, 3])]);
        assert_eq!(settings.trusted_proxy.len(), 2);
        assert_eq!(settings.smtp_listen.unwrap().port(), 25);
        assert_eq!(settings.submission_listen.unwrap().port(), 587);
        assert_eq!(settings.engine.postmaster.as_deref(), Some("root@example.org"));
        let tls = TlsFiles { certificate: "/etc/cert.pem".into(), key: "/etc/key.pem".into() };
        assert_eq!(settings.tls, Some(tls));
        assert_eq!(settings.disk_reserve, Some(1_000_000));
        assert_eq!(settings.log_format, LogFormat::Json);
        assert_eq!(settings.engine.message_expiry, Duration::from_mins(1));
        assert_eq!(settings.engine.webhook_retry, [1, 2, 3].map(Duration::from_secs));
        assert!(settings.allow_private_targets);
        assert_eq!(settings.engine.segment_refresh, Duration::from_secs(5));
        assert!(settings.engine.oidc.is_some_and(|oidc| oidc.only && oidc.group_roles.len() == 1));
        assert_eq!(settings.console, Console::Directory("/srv/console".into()));
        assert!(settings.require_database);
        assert_eq!(settings.given.tls_cert.as_deref(), Some(Path::new("/etc/cert.pem")));
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
    fn rules_of_sites_are_read_and_a_fault_is_named_with_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("site-rules.toml");
        let setting = format!("site_rules = '{}'", path.display());
        assert!(from_toml(&setting).unwrap_err().contains("failed to read the site rules"));
        std::fs::write(&path, "[[site]]\nname = \"acme\"\nexchangers = [\"acme.com\"]\nconnections = 7\n").unwrap();
        let rules = from_toml(&setting).unwrap().site_rules.unwrap();
        let site = rules.site_of(&["mx.acme.com"]).unwrap();
        assert_eq!((site.as_str(), rules.limits(&site).connections), ("acme", 7));
        std::fs::write(&path, "[[site]]\nname = \"acme\"\nexchangers = [\"acme.com\"]\nconnections = 0\n").unwrap();
        let problem = from_toml(&setting).unwrap_err();
        assert!(problem.contains("line 4, column 15") && problem.contains("1 to 1000"), "{problem}");
        assert_eq!(from_toml("").unwrap().site_rules, None);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (bad, word) in [
            ("database = \"mysql://localhost/x\"", "postgres://"),
            ("database = \"sqlite://\"", "sqlite://PATH"),
            ("database = \"sqlite:/var/x.db\"", "sqlite:///var/lib"),
            ("database = \"postgresql:db/x\"", "postgres://USER@HOST"),
            ("database = \"postgres:///x\"", "names no host"),
            ("blobs = \"s3://files\"", "--blobs"),
            ("database = \"postgres://u@h/x\"\nblobs = \"https://files\"", "s3://BUCKET"),
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
            ("dns = \"192.0.2.53:53\"\ndns_trust_ad = true", "--dns-trust-ad"),
            ("allow_private_targets = 1", "line 1"),
            ("segment_refresh = 0", "--segment-refresh"),
            ("audit_days = 0", "--audit-days"),
            ("audit_days = 40000", "--audit-days"),
            ("pow_bits = 25", "--pow-bits"),
            ("disk_reserve = -1", "line 1"),
            ("trusted_proxy = [\"x\"]", "CIDR"),
            ("listen = \"8080\"", "line 1"),
            ("smtp_listen = \"mail.example.org:25\"", "line 1"),
            ("log_format = \"xml\"", "line 1"),
            ("tls_cert = \"/etc/cert.pem\"", "--tls-key"),
            ("postmaster = \"root\"", "--postmaster"),
            ("hostname = \"mx.example.org\"\npostmaster = \"root@MX.example.org\"", "--postmaster"),
            ("tls_key = \"/etc/key.pem\"", "--tls-cert"),
            ("submission_listen = \"0.0.0.0:587\"", "--tls-cert"),
            ("console_dir = \"/srv/console\"\nno_console = true", "--no-console"),
            ("no_console = 1", "line 1"),
            ("submission_listen = \"[::ffff:0.0.0.0]:587\"", "--tls-cert"),
        ] {
            let problem = from_toml(bad).unwrap_err();
            assert!(problem.contains(word), "{bad}: {problem}");
        }
    }
}
