//! The machine of the program, as the checks of the operator examine it.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use messaging_core::domain::installation::checkup::{
    CertificateFact, DiskFacts, FileFact, SecretKeyFact, SmtpCertificateFact, TlsaFact,
};
use messaging_core::domain::mail::mta_sts::StsText;
use messaging_core::domain::security::secret_key::KeyRing;
use messaging_core::error::Chain;
use messaging_core::ports::HostProbe;
use messaging_core::ports::clock::{Clock, SystemClock};
use messaging_engine::app::checks::{CheckOptions, Checkup};
use messaging_store::{disk_space, key_file};
use messaging_transport::{Dns, GuardedFetch, probe};

use super::data_directory::{SMTP_LISTEN, private_places};
use crate::settings::{Database, Settings, TlsFiles};

/// State of the secret key.
#[derive(Debug, Clone)]
pub(super) enum KeyKnown {
    /// The database was opened with these keys.
    Admitted(KeyRing),
    /// The database could not be opened.
    Refused(SecretKeyFact),
}

/// This machine.
#[derive(Debug)]
pub(super) struct ThisHost {
    data: PathBuf,
    database: Database,
    secret_key: PathBuf,
    key: KeyKnown,
    disk_reserve: Option<u64>,
    allow_private: bool,
    smtp_is_on: bool,
    tls: Option<TlsFiles>,
    dns: Option<SocketAddr>,
}

/// The checkup of the machine with these settings.
pub(super) fn checkup(settings: &Settings, key: KeyKnown) -> Checkup {
    let resolver = settings.dns.map_or_else(|| "the system's resolver".to_owned(), |server| server.to_string());
    let options = CheckOptions::default()
        .sources(settings.engine.sources.clone())
        .resolver(resolver)
        .data(settings.data.display().to_string())
        .database(settings.database.to_string())
        .secret_key(settings.secret_key_file.display().to_string());
    let mx_override = settings.mx_override.as_ref().map(|host| (host.host().to_owned(), host.port()));
    let options = match mx_override {
        Some(host) => options.mx_override(host),
        None => options,
    };
    let probe = ThisHost {
        data: settings.data.clone(),
        database: settings.database.clone(),
        secret_key: settings.secret_key_file.clone(),
        key,
        disk_reserve: settings.disk_reserve,
        allow_private: settings.allow_private_targets,
        smtp_is_on: settings.smtp_listen.is_some(),
        tls: settings.tls.clone(),
        dns: settings.dns,
    };
    Checkup { probe: Arc::new(probe), options }
}

#[async_trait]
impl HostProbe for ThisHost {
    async fn outgoing_addresses(&self) -> Vec<IpAddr> {
        // If private addresses are allowed, the machine's own view of its internet address says nothing.
        if self.allow_private { Vec::new() } else { probe::outgoing_addresses().await }
    }

    fn counts_as_public(&self, address: IpAddr) -> bool {
        self.allow_private || probe::is_public(address)
    }

    async fn system_addresses(&self, host: &str) -> Result<Vec<IpAddr>, String> {
        probe::system_addresses(host).await
    }

    async fn smtp_greeting(&self, address: SocketAddr) -> Result<String, String> {
        probe::smtp_greeting(address).await
    }

    async fn certificate(&self, host: &str, addresses: &[SocketAddr]) -> CertificateFact {
        probe::certificate(host, addresses, &[], &SystemClock).await
    }

    async fn smtp_certificate(&self, host: &str) -> SmtpCertificateFact {
        let Some(TlsFiles { certificate, key }) = self.tls.clone() else { return SmtpCertificateFact::Off };
        let host = host.to_owned();
        // Reading the system's root certificates takes a while.
        let looking = tokio::task::spawn_blocking(move || {
            let clock: Arc<dyn Clock> = Arc::new(SystemClock);
            probe::smtp_certificate(&certificate, &key, &host, &[], &clock)
        });
        looking.await.unwrap_or_else(|error| SmtpCertificateFact::Unusable(error.to_string()))
    }

    async fn tlsa(&self, host: &str) -> Result<TlsaFact, String> {
        let certificate = self.tls.as_ref().map(|tls| tls.certificate.as_path());
        probe::tlsa(&Dns::new(self.dns), host, certificate, &SystemClock).await
    }

    async fn sts_policy(&self, domain: &str) -> Result<StsText, String> {
        let fetch = GuardedFetch::builder(Dns::new(self.dns)).allow_private(self.allow_private).build();
        probe::sts_policy(&fetch, domain).await
    }

    async fn clock_ahead(&self, server: SocketAddr) -> Result<i64, String> {
        probe::clock_ahead(server, &SystemClock).await
    }

    async fn files(&self) -> Result<Vec<FileFact>, String> {
        let own = rustix::process::geteuid().as_raw();
        let mut facts = Vec::new();
        for (path, most) in private_places(&self.data, self.database.file(), &self.secret_key) {
            match fs::metadata(&path) {
                Ok(metadata) => facts.push(FileFact {
                    path: path.display().to_string(),
                    mode: metadata.permissions().mode() & 0o7777,
                    most,
                    is_own: metadata.uid() == own,
                }),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(format!("{}: {error}", path.display())),
            }
        }
        Ok(facts)
    }

    async fn disk(&self) -> DiskFacts {
        match self.database.file() {
            Some(file) => disk_space(file, self.disk_reserve),
            // The disk of the database is that of another machine.
            None => disk_space(&self.data, self.disk_reserve),
        }
    }

    async fn secret_key(&self) -> SecretKeyFact {
        let admitted = match &self.key {
            KeyKnown::Admitted(admitted) => admitted,
            KeyKnown::Refused(fact) => return fact.clone(),
        };
        // The file may have been replaced since; then the next start fails.
        match key_file::read(&self.secret_key) {
            // A rotation since has put another key before them.
            Ok(Some(ring)) if ring.holds(admitted) => SecretKeyFact::Fits,
            Ok(Some(_)) => SecretKeyFact::Wrong,
            Ok(None) => SecretKeyFact::Unusable("the file is missing".to_owned()),
            Err(error) => SecretKeyFact::Unusable(Chain(&error).to_string()),
        }
    }

    async fn inbound_port(&self) -> Option<Result<u16, ()>> {
        let told = fs::read_to_string(self.data.join(SMTP_LISTEN)).ok();
        let address = told.and_then(|text| text.trim().parse::<SocketAddr>().ok());
        match address {
            Some(address) => Some(Ok(address.port())),
            None => self.smtp_is_on.then_some(Err(())),
        }
    }
}
