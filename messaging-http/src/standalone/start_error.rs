//! Errors of starting a server, and of a server that had to stop.

use std::io;
use std::path::PathBuf;

use messaging_core::ports::store::StoreError;
use messaging_engine::KeyRefused;
use messaging_store::key_file::KeyFileError;
use messaging_store::{FileError, OpenError};
use messaging_transport::smtp_server::ServerTlsError;

use crate::settings::Database;

/// Error of starting or running a server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The data directory or a file in it cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The secret key cannot be read or created.
    #[error(transparent)]
    SecretKey(#[from] KeyFileError),
    /// The secret key is not that of the database.
    #[error(
        "the secret key {} does not fit the database {database}: restore the file that was made with the database from the \
         backup, or name where it is with --secret-key-file; nothing was changed",
        key.display()
    )]
    WrongKey {
        /// The key file.
        key: PathBuf,
        /// The database.
        database: Database,
    },
    /// The secret key could not be checked.
    #[error("failed to check the secret key")]
    KeyCheck(#[source] KeyRefused),
    /// The name of the installation could not be read.
    #[error("failed to read the name of the installation")]
    Name(#[source] StoreError),
    /// The database cannot be opened.
    #[error("failed to open the database {database}")]
    Database {
        /// The database.
        database: Database,
        /// The error of opening the database.
        #[source]
        source: OpenError,
    },
    /// There is no database, and `--require-database` forbids to create one.
    #[error(
        "there is no database {0}, and --require-database (MESSAGING_REQUIRE_DATABASE) says not to begin a new installation: \
         see whether its disk is mounted and --data is right, put a backup back with `messaging restore FILE --data DIR`, \
         or start once without it to begin anew"
    )]
    NoDatabase(Database),
    /// The bucket of attachments cannot be used.
    #[cfg(feature = "s3")]
    #[error("--blobs does not work")]
    Bucket(#[from] messaging_store::BucketError),
    /// Several nodes need one public URL for links.
    #[error("a postgres:// database needs --public-url: links in messages must lead to whichever node answers")]
    PublicUrl,
    /// A worker without a server needs a database that several processes can use.
    #[error("`messaging worker` needs a postgres:// database; on SQLite the server does the work: `messaging serve`")]
    WorkerNeedsPostgres,
    /// The directory of the console has no `index.html`.
    #[error("failed to read index.html in --console-dir {}", directory.display())]
    Console {
        /// The directory.
        directory: PathBuf,
        /// The error of reading `index.html`.
        #[source]
        source: io::Error,
    },
    /// The certificate of the SMTP listeners cannot be used.
    #[error(transparent)]
    Tls(#[from] ServerTlsError),
    /// An address cannot be bound.
    #[error("failed to listen at {address}{}", listening(flag, source))]
    Listen {
        /// The flag that names the address.
        flag: &'static str,
        /// The address.
        address: std::net::SocketAddr,
        /// The error of binding the address.
        #[source]
        source: io::Error,
    },
    /// Mail cannot be sent from an address.
    #[error(
        "--source names {address}, which this machine cannot send from: give addresses of its own (`ip address` lists them)"
    )]
    Source {
        /// The address.
        address: std::net::IpAddr,
        /// The error of binding the address.
        #[source]
        source: io::Error,
    },
    /// After a failed sync the database cannot be written until a new process has read it from the disk.
    #[error("the disk failed and lost what was not synced; start the server again")]
    Broken,
    /// Another server has taken the database over.
    #[error("another messaging server has taken over the database {0}; this one has stopped")]
    Displaced(Database),
    /// The process cannot get a resource of the operating system.
    #[error("failed to {attempt}")]
    System {
        /// The action that failed, put after "failed to" in the error text.
        attempt: &'static str,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
}

/// Advice about an address that cannot be bound.
fn listening(flag: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!(
                ": another program has this port (`ss -ltnp` shows which); stop it, or give another one with {flag}"
            )
        }
        io::ErrorKind::AddrNotAvailable => {
            format!(": this machine has no such address; give one of its own with {flag}, or 0.0.0.0 for all")
        }
        io::ErrorKind::PermissionDenied => format!(
            ": ports below 1024 take the privilege CAP_NET_BIND_SERVICE, which the systemd unit gives; or give a higher one \
             with {flag}"
        ),
        _ => format!(" ({flag})"),
    }
}

impl StartError {
    /// Returns true if the settings are wrong, rather than that an action failed.
    pub const fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::PublicUrl
                | Self::WorkerNeedsPostgres
                | Self::Console { .. }
                | Self::NoDatabase(_)
                | Self::Source { .. }
        )
    }

    /// Returns true if a server uses the database.
    pub const fn is_in_use(&self) -> bool {
        matches!(self, Self::Database { source: OpenError::InUse, .. })
    }
}
