//! URLs of databases, and the verification of their servers.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use tokio_postgres::Config;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};

/// The URL of a PostgreSQL database, in libpq's syntax. Its `Display` and `Debug` hide the password.
#[derive(Clone)]
pub struct PostgresUrl(Arc<Parts>);

struct Parts {
    config: Config,
    verification: Verification,
    roots: Option<PathBuf>,
    /// Text of the URL without the password.
    shown: String,
    /// Text as it was given.
    text: String,
}

/// Extent to which the server's certificate is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verification {
    /// Not at all: the connection is only encrypted.
    None,
    /// It must be signed by a trusted authority.
    Chain,
    /// It must be signed by a trusted authority, and be valid for this host.
    Full,
}

/// Error for a text that is no URL of a PostgreSQL database.
#[derive(Debug, thiserror::Error)]
#[error(
    "--database must be postgres://USER:PASSWORD@HOST:PORT/DATABASE, with sslmode (disable, prefer, require, verify-ca, \
     verify-full), sslrootcert, connect_timeout or target_session_attrs after a question mark: {problem}"
)]
pub struct MalformedPostgresUrl {
    problem: String,
}

impl PostgresUrl {
    /// Reads a URL. Several hosts are separated by commas.
    pub fn parse(text: &str) -> Result<Self, MalformedPostgresUrl> {
        let malformed = |problem: String| MalformedPostgresUrl { problem };
        let (address, query) = text.split_once('?').unwrap_or((text, ""));
        let (mut mode, mut roots, mut rest) = (None, None, Vec::new());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("sslmode", value)) => mode = Some(value.to_owned()),
                Some(("sslrootcert", value)) => roots = Some(PathBuf::from(decoded(value))),
                _ => rest.push(pair),
            }
        }
        let (ssl, verification) = match mode.as_deref() {
            None | Some("prefer") => (SslMode::Prefer, Verification::None),
            Some("disable") => (SslMode::Disable, Verification::None),
            // As with libpq: with a file of roots, the signer of the certificate is verified.
            Some("require") if roots.is_some() => (SslMode::Require, Verification::Chain),
            Some("require") => (SslMode::Require, Verification::None),
            Some("verify-ca") => (SslMode::Require, Verification::Chain),
            Some("verify-full") => (SslMode::Require, Verification::Full),
            Some(other) => return Err(malformed(format!("sslmode {other} is not known"))),
        };
        let plain = if rest.is_empty() { address.to_owned() } else { format!("{address}?{}", rest.join("&")) };
        let mut config = plain.parse::<Config>().map_err(|error| malformed(chain(&error)))?;
        if config.get_hosts().is_empty() {
            return Err(malformed("it names no host".to_owned()));
        }
        config.ssl_mode(ssl);
        // Of several hosts the one that takes writes is needed: a standby takes none.
        if config.get_hosts().len() > 1 && !rest.iter().any(|pair| pair.starts_with("target_session_attrs=")) {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        let (shown, text) = (without_password(text), text.to_owned());
        Ok(Self(Arc::new(Parts { config, verification, roots, shown, text })))
    }

    /// Returns true if a text begins like the URL of a PostgreSQL database.
    pub fn is_one(text: &str) -> bool {
        text.starts_with("postgres://") || text.starts_with("postgresql://")
    }

    pub(super) fn config(&self) -> &Config {
        &self.0.config
    }

    pub(super) fn verification(&self) -> Verification {
        self.0.verification
    }

    pub(super) fn roots(&self) -> Option<&PathBuf> {
        self.0.roots.as_ref()
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.shown)
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresUrl").field(&self.0.shown).finish()
    }
}

impl PartialEq for PostgresUrl {
    fn eq(&self, other: &Self) -> bool {
        self.0.text == other.0.text
    }
}

impl Eq for PostgresUrl {}

fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    messaging_core::error::Chain(error).to_string()
}

/// Replaces the password of a URL by stars, wherever it stands.
fn without_password(text: &str) -> String {
    let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
    let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = address.split_once('/').unwrap_or((address, ""));
    let authority = match authority.rsplit_once('@') {
        Some((user, host)) => {
            let name = user.split(':').next().unwrap_or_default();
            let password = if user.contains(':') { ":***" } else { "" };
            format!("{name}{password}@{host}")
        }
        None => authority.to_owned(),
    };
    let query: Vec<_> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| if pair.starts_with("password=") { "password=***" } else { pair })
        .collect();
    let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
    format!("{scheme}://{authority}/{path}{query}")
}

/// Decodes the percent signs in a value of a query.
fn decoded(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let octet = after.get(..2).and_then(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
        match octet {
            Some(octet) if *first == b'%' => {
                bytes.push(octet);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_say_how_the_server_is_verified() {
        for (query, expected) in [
            ("", (SslMode::Prefer, Verification::None)),
            ("?sslmode=disable", (SslMode::Disable, Verification::None)),
            ("?sslmode=require", (SslMode::Require, Verification::None)),
            ("?sslmode=require&sslrootcert=/a%20b.pem", (SslMode::Require, Verification::Chain)),
            ("?sslmode=verify-ca&connect_timeout=3", (SslMode::Require, Verification::Chain)),
            ("?target_session_attrs=read-write&sslmode=verify-full", (SslMode::Require, Verification::Full)),
        ] {
            let url = PostgresUrl::parse(&format!("postgres://u:secret@one,two:5433/db{query}")).unwrap();
            assert_eq!((url.config().get_ssl_mode(), url.verification()), expected, "{query}");
            assert_eq!(url.config().get_hosts().len(), 2);
        }
        let url = PostgresUrl::parse("postgres://one/db?sslrootcert=/a%20b.pem").unwrap();
        assert_eq!(url.roots(), Some(&PathBuf::from("/a b.pem")));
    }

    #[test]
    fn passwords_are_never_shown() {
        for (text, shown) in [
            (
                "postgres://u:se:cr@t@one,two:5433/db?sslmode=require",
                "postgres://u:***@one,two:5433/db?sslmode=require",
            ),
            ("postgresql://u@one/db", "postgresql://u@one/db"),
            ("postgres:///db?host=/run/pg&password=x&user=u", "postgres:///db?host=/run/pg&password=***&user=u"),
        ] {
            let url = PostgresUrl::parse(text).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(url.to_string(), shown);
            assert!(format!("{url:?}").contains(shown));
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for (text, word) in [
            ("postgres://one/db?sslmode=maybe", "sslmode maybe"),
            ("postgres://one/db?nonsense=1", "nonsense"),
            ("postgres://one:port/db", "port"),
            ("postgres:///db", "no host"),
        ] {
            let problem = PostgresUrl::parse(text).unwrap_err().to_string();
            assert!(problem.contains(word), "{text}: {problem}");
        }
    }
}
