//! TLS to a relay: the certificate must be valid for the host of the settings.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use messaging_core::ports::transport::TransportError;
use rustls::ClientConfig;
use rustls::crypto::ring::default_provider;
use rustls_pki_types::{CertificateDer, ServerName};
use rustls_platform_verifier::Verifier;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::settings::misconfigured;

/// The trust in relays.
pub(super) struct Tls {
    extra_roots: Vec<CertificateDer<'static>>,
    /// Built at the first handshake, as reading the system's roots takes a while and a machine without
    /// any can still send in plain text. Kept, also if it failed: it would fail again.
    config: OnceLock<Result<Arc<ClientConfig>, String>>,
}

impl Tls {
    pub(super) fn new(extra_roots: Vec<CertificateDer<'static>>) -> Self {
        Self { extra_roots, config: OnceLock::new() }
    }

    pub(super) async fn handshake(
        &self,
        stream: TcpStream,
        host: &str,
        limit: Duration,
    ) -> Result<TlsStream<TcpStream>, TransportError> {
        let config = self.config.get_or_init(|| self.build().map_err(|error| error.to_string()));
        let config = config
            .as_ref()
            .map_err(|error| TransportError::Misconfigured(format!("this machine has no usable TLS roots: {error}")))?;
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| misconfigured("the host cannot be the name of a certificate"))?;
        match timeout(limit, TlsConnector::from(Arc::clone(config)).connect(name, stream)).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => Err(refusal(&error)),
            Err(_) => Err(TransportError::Unreachable(format!("no TLS handshake within {limit:?}"))),
        }
    }

    fn build(&self) -> Result<Arc<ClientConfig>, rustls::Error> {
        let provider = Arc::new(default_provider());
        let verifier = Verifier::new_with_extra_roots(self.extra_roots.iter().cloned(), Arc::clone(&provider))?;
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(Arc::new(config))
    }
}

/// A certificate that does not fit is for whoever wrote the settings to know.
fn refusal(error: &io::Error) -> TransportError {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    match cause {
        Some(rustls::Error::InvalidCertificate(_)) => {
            TransportError::Misconfigured(format!("the relay's certificate is not valid for its host: {error}"))
        }
        _ => TransportError::Unreachable(format!("the TLS handshake failed: {error}")),
    }
}
