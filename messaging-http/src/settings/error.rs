//! Errors of settings.

use std::net::IpAddr;
use std::path::PathBuf;

use messaging_core::domain::delivery::site::parse::RulesFault;
use messaging_core::domain::security::proof_of_work::MAX_BITS;
use messaging_transport::direct::MalformedMxOverride;

/// Error of the settings.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file cannot be read.
    #[error("failed to read the settings file {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of reading the file.
        #[source]
        source: std::io::Error,
    },
    /// The file has an unknown key, or a value of the wrong type.
    #[error("the settings file {} is invalid:\n{problem}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Error and its place in the file, in several lines.
        problem: String,
    },
    /// The kind of database is not built in.
    #[error(
        "--database must be a path such as /var/lib/messaging/messaging.db, sqlite://PATH (sqlite:///var/lib/…) or, where it is built in, postgres://USER@HOST/DATABASE"
    )]
    UnknownDatabase,
    /// The PostgreSQL URL is malformed.
    #[cfg(feature = "postgres")]
    #[error(transparent)]
    PostgresUrl(#[from] messaging_store::MalformedPostgresUrl),
    /// A bucket is given, but a SQLite database keeps attachments in files.
    #[error("--blobs is for a PostgreSQL database; beside a file of SQLite attachments are files too")]
    BlobsOfFile,
    /// Buckets are not built in, or the bucket's name is not one of S3.
    #[error("--blobs must be s3://BUCKET or s3://BUCKET/PREFIX{}", if cfg!(feature = "s3") { "" } else { "; this program was built without it: build it with --features s3" })]
    Blobs,
    /// The public URL cannot be the beginning of links.
    #[error("--public-url must be http:// or https://, a host, and no query or fragment")]
    PublicUrl,
    /// The host name is not allowed in EHLO.
    #[error("--hostname must be a domain name such as mail.example.org")]
    Hostname,
    /// The resolver is not on this machine, so that an attacker on the way could claim that an answer is signed.
    #[error(
        "--dns-trust-ad needs a resolver at a loopback address of this machine; --dns names another one, or the system does"
    )]
    DnsTrustAd,
    /// The override is not a host and port.
    #[error("--mx-override must be a host and a port such as mail.example.org:25")]
    MxOverride(#[source] MalformedMxOverride),
    /// An address is given twice as a source.
    #[error("--source names {0} twice; give each address once")]
    SameSource(IpAddr),
    /// There are more sources than a node may have.
    #[error("--source may name at most 100 addresses")]
    TooManySources,
    /// An address is called warm that is no source.
    #[error("--source-warm names {0}, which is none of --source")]
    WarmWithoutSource(IpAddr),
    /// The rules of sites cannot be read.
    #[error("failed to read the site rules {}", path.display())]
    SiteRulesUnreadable {
        /// The file.
        path: PathBuf,
        /// The error of reading the file.
        #[source]
        source: std::io::Error,
    },
    /// The file of site rules is invalid.
    #[error("the site rules {} are invalid: {fault}", path.display())]
    SiteRules {
        /// The file.
        path: PathBuf,
        /// Fault of the file, with its place.
        fault: RulesFault,
    },
    /// Mail to the operator could not be delivered, or would return to this server.
    #[error("--postmaster must be an email address at another host than this server's")]
    Postmaster,
    /// A certificate without a key, or a key without a certificate.
    #[error("--tls-cert and --tls-key belong together; give both")]
    TlsPair,
    /// Keys and mail would travel unencrypted.
    #[error("--submission-listen at an address that is not loopback needs --tls-cert and --tls-key")]
    SubmissionInTheClear,
    /// The list is empty, or has a wait of 0 seconds.
    #[error("--message-retry must be a list of at least one number of seconds, each at least 1")]
    MessageRetry,
    /// The list has a wait of 0 seconds, or more than 100 waits.
    #[error("--webhook-retry must be a list of at most 100 numbers of seconds, each at least 1")]
    WebhookRetry,
    /// Emails would expire at once.
    #[error("--message-expiry must be at least 1 second")]
    MessageExpiry,
    /// Both a console directory and no console are given.
    #[error("--console-dir and --no-console exclude each other")]
    Console,
    /// Segments would be calculated without a pause.
    #[error("--segment-refresh must be at least 1 second")]
    SegmentRefresh,
    /// Entries of audit logs would be removed at once, or never.
    #[error("--audit-days must be from 1 to 36500")]
    AuditDays,
    /// Single sign-on without a provider, or without a client there.
    #[error("--{0} is given without the provider: single sign-on needs both --oidc-issuer and --oidc-client-id")]
    OidcIncomplete(String),
    /// The issuer is not a valid URL.
    #[error(
        "--oidc-issuer must be the provider's issuer URL such as https://id.example.org/realms/acme, without query and fragment"
    )]
    OidcIssuer,
    /// Codes and secrets would travel unencrypted.
    #[error(
        "--oidc-issuer must begin with https://; for a test provider without TLS give --allow-private-targets as well"
    )]
    OidcPlain,
    /// The client's id has a wrong length.
    #[error("--oidc-client-id must have 1 to 512 characters")]
    OidcClientId,
    /// The provider's name is too long for a button, or empty.
    #[error("--oidc-name must have 1 to 60 characters")]
    OidcName,
    /// The claim's name has a wrong length.
    #[error("--oidc-groups-claim must have 1 to 200 characters")]
    OidcGroupsClaim,
    /// The map is too long.
    #[error("--oidc-map may have at most 500 entries")]
    OidcMap,
    /// The file with the client's secret cannot be read.
    #[error("failed to read --oidc-client-secret-file {}", path.display())]
    OidcSecretUnreadable {
        /// The file.
        path: PathBuf,
        /// The error of reading the file.
        #[source]
        source: std::io::Error,
    },
    /// The file holds no secret.
    #[error("--oidc-client-secret-file {} must hold the client's secret: one line of at most 4096 octets, not empty", .0.display())]
    OidcSecret(PathBuf),
    /// The proof of work would take browsers hours.
    #[error("--pow-bits must be from 0 to {MAX_BITS}")]
    PowBits,
}
