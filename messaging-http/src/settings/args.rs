//! The settings as flags, variables of the environment and keys of a file: each declared here and nowhere else.

use std::fs;
use std::io::Read as _;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use clap::Args;
use ipnet::IpNet;
use messaging_core::domain::delivery::site::SiteRules;
use messaging_core::domain::delivery::site::parse::MAX_RULES_BYTES;
use messaging_core::domain::security::api_key::parse_block;
use messaging_core::domain::security::oidc::group_roles::GroupRole;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::error::SettingsError;
use super::sources::SourceArg;
use crate::logging::LogFormat;

/// Declares a type whose members may all be missing, and how one is filled up from another.
macro_rules! optional {
    ($(#[$attribute:meta])* pub struct $name:ident { $($(#[$about:meta])* pub $member:ident: Option<$kind:ty>,)* }) => {
        $(#[$attribute])*
        pub struct $name {
            $($(#[$about])* pub $member: Option<$kind>,)*
        }

        impl $name {
            /// Takes from `other` what is missing here.
            pub fn or(self, other: Self) -> Self {
                Self { $($member: self.$member.or(other.$member),)* }
            }

            /// Names of the settings that are others in `other`.
            pub fn differing(&self, other: &Self) -> Vec<&'static str> {
                let mut names = Vec::new();
                $(if self.$member != other.$member {
                    names.push(stringify!($member));
                })*
                names
            }

            /// Names of the settings that are given.
            pub fn given(&self) -> Vec<&'static str> {
                let mut given = Vec::new();
                $(if self.$member.is_some() {
                    given.push(stringify!($member));
                })*
                given
            }
        }
    };
}

optional! {
    /// The settings as they are given: every one may be missing.
    ///
    /// The same type is read from flags, the environment and the file, so no setting can be known to one
    /// and unknown to another.
    #[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct SettingsArgs {
        /// TOML file with further settings; its keys are the flags' names with `_` for `-`
        ///
        /// A flag overrides the environment, which overrides the file. A list that is separated by commas in a flag is an array in
        /// the file. An unknown key is an error.
        #[arg(long, env = "MESSAGING_CONFIG", value_name = "FILE")]
        #[serde(skip)]
        pub config: Option<PathBuf>,

        /// Address of the API [default: 127.0.0.1:8080]
        ///
        /// Port 0 takes any free port. The bound address is logged and written to the file `listen` in the data directory.
        #[arg(long, env = "MESSAGING_LISTEN", value_name = "IP:PORT", value_parser = socket_address)]
        pub listen: Option<SocketAddr>,

        /// Directory of the database, the secret key and files [default: ./messaging-data]
        ///
        /// Created if it does not exist, for its owner alone (0700).
        #[arg(long, env = "MESSAGING_DATA", value_name = "DIRECTORY")]
        pub data: Option<PathBuf>,

        /// The database: a path, `sqlite://PATH` or `postgres://…` [default: messaging.db in the data directory]
        ///
        /// Several servers and workers may work on one PostgreSQL database. They need the same secret key and the same
        /// --public-url, which is then required.
        #[arg(long, env = "MESSAGING_DATABASE", value_name = "PATH|URL")]
        pub database: Option<String>,

        /// Bucket for attachments: `s3://BUCKET/PREFIX` [default: in the database]
        ///
        /// With a PostgreSQL database only. `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_REGION` are read from
        /// the environment, and `AWS_ENDPOINT_URL` for a bucket that is not Amazon's. Without a key the machine's role is
        /// used.
        #[arg(long, env = "MESSAGING_BLOBS", value_name = "URL")]
        pub blobs: Option<String>,

        /// File with the key that encrypts secrets in the database [default: secret.key in the data directory]
        ///
        /// Created with the database, for its owner alone (0600). A database works only with its own key, so keep a copy with
        /// the backup: without it the secrets are lost.
        #[arg(long, env = "MESSAGING_SECRET_KEY_FILE", value_name = "FILE")]
        pub secret_key_file: Option<PathBuf>,

        /// URL of the server as others reach it [default: http:// and the address of --listen]
        ///
        /// Tracking, unsubscribe, upload and callback links begin with it. Behind a proxy with TLS it is the proxy's URL, such
        /// as `https://mail.example.org`.
        #[arg(long, env = "MESSAGING_PUBLIC_URL", value_name = "URL")]
        pub public_url: Option<String>,

        /// Host name that the server gives when it sends mail [default: the machine's host name]
        ///
        /// It is the name in EHLO. Receivers look it up: use a name that resolves to the address that mail is sent from. The
        /// name of the first start becomes the name of the installation, which is part of Message-IDs; `messaging admin
        /// set-name` changes that.
        #[arg(long, env = "MESSAGING_HOSTNAME", value_name = "NAME")]
        pub hostname: Option<String>,

        /// DNS resolver for all queries [default: the system's]
        #[arg(long, env = "MESSAGING_DNS", value_name = "IP:PORT", value_parser = socket_address)]
        pub dns: Option<SocketAddr>,

        /// Trust the DNS resolver, which must be on this machine, to validate DNSSEC [default: false]
        ///
        /// For a validating resolver at a loopback address, such as Unbound: answers with the AD bit count as secure, and TLS to
        /// exchangers with TLSA records is verified by these records (DANE).
        #[arg(
            long,
            env = "MESSAGING_DNS_TRUST_AD",
            value_name = "true|false",
            num_args = 0..=1,
            default_missing_value = "true"
        )]
        pub dns_trust_ad: Option<bool>,

        /// Host and port that receive all mail in place of the recipients' mail exchangers [default: none]
        ///
        /// The DNS is not asked for exchangers. STARTTLS is used if it is offered, and no certificate is verified. For networks
        /// whose mail has to leave through one host, and for tests.
        #[arg(long, env = "MESSAGING_MX_OVERRIDE", value_name = "HOST:PORT")]
        pub mx_override: Option<String>,

        /// Addresses that mail leaves from, comma separated, each with an optional name for EHLO
        /// [default: the system chooses the address; the name is --hostname]
        ///
        /// For example `203.0.113.7=m1.example.org,203.0.113.8=m2.example.org`. Each must be an address of this machine, and its
        /// name should resolve to the address and back. IP pools choose among them. Mail leaves from an IPv6 address only to IPv6
        /// addresses, and from IPv4 only to IPv4.
        #[arg(long, env = "MESSAGING_SOURCE", value_name = "IP[=NAME],…", value_delimiter = ',')]
        pub source: Option<Vec<SourceArg>>,

        /// Addresses of --source that need no warm-up, because receivers know them, comma separated [default: none]
        ///
        /// An address that has sent no mail for 30 days begins slowly at each provider and gets faster every day. Name addresses
        /// here that sent as much with another program.
        #[arg(long, env = "MESSAGING_SOURCE_WARM", value_name = "IP,…", value_delimiter = ',')]
        pub source_warm: Option<Vec<IpAddr>>,

        /// TOML file with limits of mailbox providers and meanings of their replies [default: the built-in rules]
        ///
        /// Its sites and patterns take precedence over the built-in ones, or replace them if it says `replace = true`.
        /// `messaging site list --site-rules FILE` shows the result. Exit code 2 if the file is invalid, with line and column.
        #[arg(long, env = "MESSAGING_SITE_RULES", value_name = "FILE")]
        pub site_rules: Option<PathBuf>,

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
        /// Anybody who may create a webhook can then call everything that this machine can reach.
        #[arg(
            long,
            env = "MESSAGING_ALLOW_PRIVATE_TARGETS",
            value_name = "true|false",
            num_args = 0..=1,
            default_missing_value = "true"
        )]
        pub allow_private_targets: Option<bool>,

        /// Seconds between recalculations of segments with conditions that depend on the present time [default: 900]
        ///
        /// Changes of contacts and events reach segments at once; only conditions such as `last` need this.
        #[arg(long, env = "MESSAGING_SEGMENT_REFRESH", value_name = "SECONDS")]
        pub segment_refresh: Option<u64>,

        /// Issuer of the OpenID Connect provider that people sign in with, a URL [default: passwords alone]
        ///
        /// Exactly as its discovery document names it. At the provider register `PUBLIC_URL/v1/auth/oidc/callback` as the
        /// redirect URI. A provider at a private address, or without TLS, needs --allow-private-targets.
        #[arg(long, env = "MESSAGING_OIDC_ISSUER", value_name = "URL")]
        pub oidc_issuer: Option<String>,

        /// Client id of this server at the provider of --oidc-issuer [default: none]
        #[arg(long, env = "MESSAGING_OIDC_CLIENT_ID", value_name = "ID")]
        pub oidc_client_id: Option<String>,

        /// File with the client's secret, one line [default: none, a public client that PKCE protects]
        #[arg(long, env = "MESSAGING_OIDC_CLIENT_SECRET_FILE", value_name = "FILE")]
        pub oidc_client_secret_file: Option<PathBuf>,

        /// Name of the provider on the console's button to sign in [default: single sign-on]
        #[arg(long, env = "MESSAGING_OIDC_NAME", value_name = "NAME")]
        pub oidc_name: Option<String>,

        /// Claim of ID tokens that lists a person's groups [default: groups]
        ///
        /// A name with dots, such as `realm_access.roles`, names a member of an object.
        #[arg(long, env = "MESSAGING_OIDC_GROUPS_CLAIM", value_name = "CLAIM")]
        pub oidc_groups_claim: Option<String>,

        /// Roles that groups give in workspaces, comma separated [default: none]
        ///
        /// Each is `group=workspace:role`, such as `staff=wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH:editor`. They are set at each
        /// sign-in; roles given by hand stay. Groups with commas in their names can be named in the file, where this is an
        /// array.
        #[arg(long, env = "MESSAGING_OIDC_MAP", value_name = "GROUP=WORKSPACE:ROLE,…", value_delimiter = ',')]
        pub oidc_map: Option<Vec<GroupRole>>,

        /// Refuse passwords and the sign-in links of workspaces: people sign in with the provider alone [default: false]
        ///
        /// `messaging admin login-link` still works, if the provider fails.
        #[arg(
            long,
            env = "MESSAGING_OIDC_ONLY",
            value_name = "true|false",
            num_args = 0..=1,
            default_missing_value = "true"
        )]
        pub oidc_only: Option<bool>,

        /// Days for which entries of audit logs are kept [default: 400]
        #[arg(long, env = "MESSAGING_AUDIT_DAYS", value_name = "DAYS")]
        pub audit_days: Option<u32>,

        /// Bits of the proof of work that a browser does before it posts to a form, 0 to 24 [default: 0]
        ///
        /// It makes mass submissions expensive. A browser needs about a second for 18 bits; each further bit doubles that. With
        /// more than 0 the pages of forms need JavaScript.
        #[arg(long, env = "MESSAGING_POW_BITS", value_name = "BITS")]
        pub pow_bits: Option<u32>,

        /// Proxies whose X-Forwarded-For is trusted: addresses or CIDR blocks, comma separated [default: none]
        ///
        /// Otherwise the caller's address, which the allowlists of API keys check, is that of the TCP connection.
        #[arg(
            long,
            env = "MESSAGING_TRUSTED_PROXY",
            value_name = "CIDR,…",
            value_delimiter = ',',
            value_parser = block
        )]
        #[serde(serialize_with = "texts", deserialize_with = "blocks")]
        pub trusted_proxy: Option<Vec<IpNet>>,

        /// Address at which bounces, complaints and requests to unsubscribe arrive by SMTP [default: off]
        ///
        /// The MX records of the `bounce.` subdomains of sending domains lead there, to port 25. Port 0 takes any free port. The
        /// bound address is logged and written to the file `smtp-listen` in the data directory.
        #[arg(long, env = "MESSAGING_SMTP_LISTEN", value_name = "IP:PORT", value_parser = socket_address)]
        pub smtp_listen: Option<SocketAddr>,

        /// Address at which programs submit mail by SMTP, with an API key as password [default: off]
        ///
        /// One port accepts both STARTTLS and implicit TLS; 587 and 465 are usual. Without --tls-cert only a loopback address is
        /// allowed. Port 0 takes any free port. The bound address is logged and written to the file `submission-listen` in the
        /// data directory.
        #[arg(long, env = "MESSAGING_SUBMISSION_LISTEN", value_name = "IP:PORT", value_parser = socket_address)]
        pub submission_listen: Option<SocketAddr>,

        /// Address to which mail to postmaster and abuse of this server's names is forwarded [default: such mail is refused]
        ///
        /// The mail arrives at --smtp-listen and is forwarded as a message of the workspace whose verified sending domain covers
        /// the name, or else this address. At most 30 an hour; automatic mail is not forwarded.
        #[arg(long, env = "MESSAGING_POSTMASTER", value_name = "ADDRESS")]
        pub postmaster: Option<String>,

        /// PEM file with the certificate of the host name and its chain, for both SMTP listeners [default: no TLS]
        ///
        /// Read again when it changes, so a renewal needs no restart. Not used for the API.
        #[arg(long, env = "MESSAGING_TLS_CERT", value_name = "FILE")]
        pub tls_cert: Option<PathBuf>,

        /// PEM file with the private key of --tls-cert, without a passphrase [default: no TLS]
        #[arg(long, env = "MESSAGING_TLS_KEY", value_name = "FILE")]
        pub tls_key: Option<PathBuf>,

        /// Bytes to keep free on the disk of the database [default: 32 MiB, or twice the write-ahead log]
        ///
        /// If less is free, requests that add data get 503. Accepted messages are still delivered, and the outcomes stored.
        #[arg(long, env = "MESSAGING_DISK_RESERVE", value_name = "BYTES")]
        pub disk_reserve: Option<u64>,

        /// Region of the data, as shown on workspaces [default: local]
        #[arg(long, env = "MESSAGING_DATA_REGION", value_name = "NAME")]
        pub data_region: Option<String>,

        /// Filter of the log on standard error: a level, or levels by module [default: info]
        ///
        /// For example `warn`, or `info,messaging_http=debug`. Requests are logged at debug, one line each,
        /// without bodies, addresses or keys.
        #[arg(long, env = "MESSAGING_LOG", value_name = "FILTER")]
        pub log: Option<String>,

        /// Format of log lines [default: text]
        #[arg(long, env = "MESSAGING_LOG_FORMAT", value_name = "FORMAT")]
        pub log_format: Option<LogFormat>,

        /// Address at which Prometheus finds /metrics [default: off]
        ///
        /// Do not make it public: it shows the use of the server. Port 0 takes any free port. The bound address is logged and
        /// written to the file `metrics-listen` in the data directory.
        #[arg(long, env = "MESSAGING_METRICS_LISTEN", value_name = "IP:PORT", value_parser = socket_address)]
        pub metrics_listen: Option<SocketAddr>,

        /// Directory with the files of the console at /console [default: the console that is built in]
        ///
        /// `messaging console export` writes the built-in files, to be changed. The server reads them for every request, so
        /// reloading the page shows a change; operations.js, schemas.js and providers.js are always those of this program.
        #[arg(long, env = "MESSAGING_CONSOLE_DIR", value_name = "DIRECTORY")]
        pub console_dir: Option<PathBuf>,

        /// Answer nothing at /console [default: false]
        #[arg(
            long,
            env = "MESSAGING_NO_CONSOLE",
            value_name = "true|false",
            num_args = 0..=1,
            default_missing_value = "true"
        )]
        pub no_console: Option<bool>,

        /// Start only if the database exists, and do not create a new installation [default: false]
        ///
        /// So a server whose data directory was moved, renamed or not mounted does not start empty. The unit of the Debian
        /// package sets it after the first start. Exit code 2 if the database is missing.
        #[arg(
            long,
            env = "MESSAGING_REQUIRE_DATABASE",
            value_name = "true|false",
            num_args = 0..=1,
            default_missing_value = "true"
        )]
        pub require_database: Option<bool>,
    }
}

impl SettingsArgs {
    /// Reads the settings of a file.
    pub(super) fn read(path: &Path) -> Result<Self, SettingsError> {
        let text =
            fs::read_to_string(path).map_err(|source| SettingsError::Unreadable { path: path.to_owned(), source })?;
        toml::from_str(&text)
            .map_err(|error| SettingsError::Malformed { path: path.to_owned(), problem: error.to_string() })
    }
}

/// Reads a file of rules of sites, of at most [`MAX_RULES_BYTES`].
pub fn read_site_rules(path: &Path) -> Result<SiteRules, SettingsError> {
    let unreadable = |source| SettingsError::SiteRulesUnreadable { path: path.to_owned(), source };
    let mut text = String::new();
    // One octet more shows that the file is too large.
    let most = u64::try_from(MAX_RULES_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    fs::File::open(path).and_then(|file| file.take(most).read_to_string(&mut text)).map_err(unreadable)?;
    SiteRules::parse(&text).map_err(|fault| SettingsError::SiteRules { path: path.to_owned(), fault })
}

fn socket_address(text: &str) -> Result<SocketAddr, String> {
    text.trim().parse().map_err(|_| "expected an IP address and a port such as 127.0.0.1:8080".to_owned())
}

fn block(text: &str) -> Result<IpNet, String> {
    parse_block(text.trim()).ok_or_else(|| "expected an address or a CIDR block such as 10.0.0.0/8".to_owned())
}

#[expect(clippy::ref_option, reason = "serde calls it so")]
fn texts<S: Serializer>(blocks: &Option<Vec<IpNet>>, serializer: S) -> Result<S::Ok, S::Error> {
    blocks.as_ref().map(|blocks| blocks.iter().map(IpNet::to_string).collect::<Vec<_>>()).serialize(serializer)
}

fn blocks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<IpNet>>, D::Error> {
    let texts = Option::<Vec<String>>::deserialize(deserializer)?;
    let read = |texts: Vec<String>| texts.iter().map(|text| block(text)).collect::<Result<_, _>>();
    texts.map(read).transpose().map_err(de::Error::custom)
}
