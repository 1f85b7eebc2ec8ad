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
        /// A flag beats the environment, which beats the file. What is separated by commas in a flag is an array in the file. An
        /// unknown key is an error.
        #[arg(long, env = "MESSAGING_CONFIG", value_name = "FILE")]
        #[serde(skip)]
        pub config: Option<PathBuf>,

        /// Address of the API [default: 127.0.0.1:8080]
        ///
        /// Port 0 takes any free port. The address that was found is logged and written to the file
        /// `listen` in the data directory.
        #[arg(long, env = "MESSAGING_LISTEN", value_name = "IP:PORT", value_parser = socket_address)]
        pub listen: Option<SocketAddr>,

        /// Directory of the database, the secret key and files [default: ./messaging-data]
        ///
        /// Made when it is not there, for its owner alone (0700).
        #[arg(long, env = "MESSAGING_DATA", value_name = "DIRECTORY")]
        pub data: Option<PathBuf>,

        /// The database: a path, `sqlite://PATH` or `postgres://…` [default: messaging.db in the data directory]
        ///
        /// Several servers and workers may work on one PostgreSQL database. They have one secret key and one --public-url,
        /// which must be given then.
        #[arg(long, env = "MESSAGING_DATABASE", value_name = "PATH|URL")]
        pub database: Option<String>,

        /// Bucket for attachments: `s3://BUCKET/PREFIX` [default: in the database]
        ///
        /// With a PostgreSQL database only. `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_REGION` are read from
        /// the environment, and `AWS_ENDPOINT_URL` for a bucket that is not Amazon's. Without a key it is the machine's
        /// role.
        #[arg(long, env = "MESSAGING_BLOBS", value_name = "URL")]
        pub blobs: Option<String>,

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
        /// Said in EHLO. Receivers look it up: use a name that resolves to the address mail is sent from.
        /// That of the first start is kept as the name of the installation, which stands in Message-IDs;
        /// `messaging admin set-name` changes it.
        #[arg(long, env = "MESSAGING_HOSTNAME", value_name = "NAME")]
        pub hostname: Option<String>,

        /// The DNS resolver that is asked for everything [default: the system's]
        #[arg(long, env = "MESSAGING_DNS", value_name = "IP:PORT", value_parser = socket_address)]
        pub dns: Option<SocketAddr>,

        /// Believe the DNS resolver, which must be on this machine, which answers are signed [default: false]
        ///
        /// For a resolver at a loopback address that validates DNSSEC, such as Unbound: answers with the AD bit count as
        /// secure, and mail goes to exchangers with TLSA records over TLS that those verify (DANE).
        #[arg(
            long,
            env = "MESSAGING_DNS_TRUST_AD",
            value_name = "true|false",
            num_args = 0..=1,
            default_missing_value = "true"
        )]
        pub dns_trust_ad: Option<bool>,

        /// Host and port that take the place of every recipient's mail exchangers [default: none]
        ///
        /// The DNS is not asked where mail goes. STARTTLS is used where it is offered, and no certificate
        /// verified. For mail that has to leave through one door, and for trying things out.
        #[arg(long, env = "MESSAGING_MX_OVERRIDE", value_name = "HOST:PORT")]
        pub mx_override: Option<String>,

        /// Addresses that mail leaves from, each perhaps with its name in EHLO, comma separated
        /// [default: one that the system chooses, named --hostname]
        ///
        /// For example `203.0.113.7=m1.example.org,203.0.113.8=m2.example.org`. Each must be an address of this machine,
        /// and its name should resolve to it and back. IP pools choose among them. An IPv6 address sends to IPv6
        /// addresses alone, and IPv4 to IPv4.
        #[arg(long, env = "MESSAGING_SOURCE", value_name = "IP[=NAME],…", value_delimiter = ',')]
        pub source: Option<Vec<SourceArg>>,

        /// Those of the addresses that receivers know already, comma separated: they need no warm-up [default: none]
        ///
        /// An address that never sent mail, or none for 30 days, begins slowly at each provider and gets faster by the
        /// day. Name here what sent as much with another program.
        #[arg(long, env = "MESSAGING_SOURCE_WARM", value_name = "IP,…", value_delimiter = ',')]
        pub source_warm: Option<Vec<IpAddr>>,

        /// TOML file of what mailbox providers allow and what their replies mean [default: the rules that are built in]
        ///
        /// Its sites and patterns go before those that are built in, or take their place where it says `replace = true`.
        /// `messaging site list --site-rules FILE` shows what comes of it. Exit code 2 where it is not right, with line
        /// and column.
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
        ///
        /// Changes of contacts and events reach segments at once; this is for the mere passing of time.
        #[arg(long, env = "MESSAGING_SEGMENT_REFRESH", value_name = "SECONDS")]
        pub segment_refresh: Option<u64>,

        /// Issuer of the OpenID Connect provider that people sign in with, a URL [default: passwords alone]
        ///
        /// Exactly as its discovery document names it. At the provider register `PUBLIC_URL/v1/auth/oidc/callback` as the
        /// redirect URI. A provider at a private address, or without TLS, needs --allow-private-targets.
        #[arg(long, env = "MESSAGING_OIDC_ISSUER", value_name = "URL")]
        pub oidc_issuer: Option<String>,

        /// Id under which the provider of --oidc-issuer knows this server [default: none]
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
        /// A name with dots that is no claim leads into objects, such as `realm_access.roles`.
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
        /// `messaging admin login-link` stays as the way back in.
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

        /// Bits of work that a browser proves before it posts to a form, 0 to 24 [default: 0]
        ///
        /// Makes posting to forms in masses expensive. 18 take a browser about a second; each further bit doubles that. With
        /// more than 0 the pages of forms need JavaScript.
        #[arg(long, env = "MESSAGING_POW_BITS", value_name = "BITS")]
        pub pow_bits: Option<u32>,

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
        #[serde(serialize_with = "texts", deserialize_with = "blocks")]
        pub trusted_proxy: Option<Vec<IpNet>>,

        /// Address at which bounces, complaints and requests to unsubscribe arrive by SMTP [default: off]
        ///
        /// The MX of the `bounce.` sub-domains of the sending domains points there, at port 25. Port 0 takes
        /// any free port. The address that was found is logged and written to the file `smtp-listen` in the
        /// data directory.
        #[arg(long, env = "MESSAGING_SMTP_LISTEN", value_name = "IP:PORT", value_parser = socket_address)]
        pub smtp_listen: Option<SocketAddr>,

        /// Address at which programs submit mail by SMTP, with an API key as password [default: off]
        ///
        /// STARTTLS and TLS at once are both understood there; ports 587 and 465 are usual. Without --tls-cert only a
        /// loopback address is allowed. Port 0 takes any free port. The address that was found is logged and written to
        /// the file `submission-listen` in the data directory.
        #[arg(long, env = "MESSAGING_SUBMISSION_LISTEN", value_name = "IP:PORT", value_parser = socket_address)]
        pub submission_listen: Option<SocketAddr>,

        /// Whom mail to postmaster and abuse of this server's names is handed on to [default: such mail is refused]
        ///
        /// It arrives by --smtp-listen and goes on as a message of the workspace whose verified sending domain covers the
        /// name, or else this address. At most 30 an hour; automatic mail is not handed on.
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
        /// For example `warn`, or `info,messaging_http=debug`. Requests are logged at debug, one line each,
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
        #[arg(long, env = "MESSAGING_METRICS_LISTEN", value_name = "IP:PORT", value_parser = socket_address)]
        pub metrics_listen: Option<SocketAddr>,

        /// Directory with the files of the console at /console [default: the console that is built in]
        ///
        /// `messaging console export` writes the files to begin with. They are read for every request, so reloading the
        /// page shows a change; operations.js, schemas.js and providers.js are always those of this program.
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

        /// Refuse to begin a new installation: start only where the database is [default: false]
        ///
        /// Keeps a server whose data directory was moved, renamed or not mounted from starting empty. The unit of the
        /// Debian package sets it after the first start. Exit code 2 where the database is missing.
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
