//! Certificate of the SMTP servers, and its renewals.
//!
//! Certificates are renewed every few weeks by programs that replace the two files. So before a handshake the state of
//! the files is checked (two system calls, against an asymmetric signature), and they are read again if it has changed.
//! A renewal is not one step: as long as certificate and key do not match, the former ones are used.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use messaging_core::error::Chain;
use messaging_core::ports::clock::Clock;
use messaging_core::time::Timestamp;
use rustls::crypto::ring::default_provider;
use rustls::{InconsistentKeys, ServerConfig};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::x509;

/// Maximum length of a file that is read: a chain has a few thousand octets.
const MAX_FILE: u64 = 1 << 20;

/// A certificate with its chain and its key, read from two PEM files and again whenever these change.
#[derive(Debug)]
pub struct ServerTls {
    certificate: PathBuf,
    key: PathBuf,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    material: Material,
    /// State of the files when they were last read, whether they could be used or not.
    seen: FileStamps,
}

/// TLS configuration of handshakes, and the expiry of its certificate.
#[derive(Debug)]
struct Material {
    config: Arc<ServerConfig>,
    /// Expiry of the certificate, if it could be read.
    expires_at: Option<Timestamp>,
}

/// Stamps by which changes of the two files are noticed; `None` for a file that is not there.
type FileStamps = [Option<Stamp>; 2];

/// Device, inode, length, and the time of the last change in seconds and nanoseconds.
type Stamp = (u64, u64, u64, i64, i64);

/// Reason why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerTlsError {
    /// A file cannot be read.
    #[error("failed to read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of reading the file.
        #[source]
        source: io::Error,
    },
    /// A file is longer than any certificate.
    #[error("{} is longer than 1 MiB, so it is no certificate and no key", .0.display())]
    TooLong(PathBuf),
    /// There is no certificate in the file.
    #[error("{} has no certificate in PEM (-----BEGIN CERTIFICATE-----)", .0.display())]
    NoCertificate(PathBuf),
    /// There is no key in the file.
    #[error("{} has no private key in PEM (-----BEGIN PRIVATE KEY-----); one under a passphrase cannot be read", .0.display())]
    NoKey(PathBuf),
    /// The two files do not belong together.
    #[error("the key {} is not the one of the first certificate in {}", key.display(), certificate.display())]
    Mismatch {
        /// The file with the certificate.
        certificate: PathBuf,
        /// The file with the key.
        key: PathBuf,
    },
    /// The certificate or the key is of a kind that TLS cannot use.
    #[error("the certificate in {} cannot be used", certificate.display())]
    Unusable {
        /// The file with the certificate.
        certificate: PathBuf,
        /// The error that TLS has with the certificate or the key.
        #[source]
        source: rustls::Error,
    },
}

impl ServerTls {
    /// Reads a chain, the server's own certificate first, and its key. An expired certificate is used with a warning:
    /// without it nobody could connect at all.
    pub fn load(
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ServerTlsError> {
        let (certificate, key) = (certificate.into(), key.into());
        // The stamps are taken before the files are read, so that a change in between is noticed at the next handshake.
        let seen = [stamp(&certificate), stamp(&key)];
        let material = read(&certificate, &key)?;
        material.warn_of_its_end(&certificate, clock.as_ref());
        Ok(Self { certificate, key, clock, state: Mutex::new(State { material, seen }) })
    }

    /// Returns the expiry of the certificate, if it could be read.
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).material.expires_at
    }

    /// Returns the configuration for the next handshake.
    pub(super) fn config(&self) -> Arc<ServerConfig> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = [stamp(&self.certificate), stamp(&self.key)];
        if seen != state.seen {
            state.seen = seen;
            match read(&self.certificate, &self.key) {
                Ok(material) => {
                    tracing::info!(certificate = %self.certificate.display(), "the certificate was read again");
                    material.warn_of_its_end(&self.certificate, self.clock.as_ref());
                    state.material = material;
                }
                Err(error) => {
                    tracing::warn!(error = %Chain(&error), "the certificate has changed and cannot be used; the former one is");
                }
            }
        }
        Arc::clone(&state.material.config)
    }
}

impl Material {
    fn warn_of_its_end(&self, certificate: &Path, clock: &dyn Clock) {
        if let Some(expires_at) = self.expires_at.filter(|end| *end <= clock.now()) {
            let certificate = certificate.display();
            tracing::warn!(%certificate, %expires_at, "the certificate has expired, so most clients will not connect");
        }
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let found = fs::metadata(path).ok()?;
    Some((found.dev(), found.ino(), found.len(), found.mtime(), found.mtime_nsec()))
}

/// Reads the certificates in a file, at least one.
pub(crate) fn read_chain(certificate: &Path) -> Result<Vec<CertificateDer<'static>>, ServerTlsError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read_file(certificate)?).collect();
    let chain = chain.ok().filter(|chain| !chain.is_empty());
    chain.ok_or_else(|| ServerTlsError::NoCertificate(certificate.to_owned()))
}

fn read(certificate: &Path, key: &Path) -> Result<Material, ServerTlsError> {
    let chain = read_chain(certificate)?;
    let private = PrivateKeyDer::from_pem_slice(&read_file(key)?);
    let private = private.map_err(|_| ServerTlsError::NoKey(key.to_owned()))?;
    let expires_at = x509::not_after(&chain[0]);
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, private));
    match config {
        Ok(config) => Ok(Material { config: Arc::new(config), expires_at }),
        Err(rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
            Err(ServerTlsError::Mismatch { certificate: certificate.to_owned(), key: key.to_owned() })
        }
        Err(source) => Err(ServerTlsError::Unusable { certificate: certificate.to_owned(), source }),
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, ServerTlsError> {
    let unreadable = |source| ServerTlsError::Unreadable { path: path.to_owned(), source };
    if fs::metadata(path).map_err(unreadable)?.len() > MAX_FILE {
        return Err(ServerTlsError::TooLong(path.to_owned()));
    }
    fs::read(path).map_err(unreadable)
}
