//! TLS of SMTP clients, with and without verification of the peer's name.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use messaging_core::domain::delivery::attempt::TlsVerification;
use messaging_core::ports::transport::TransportError;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::default_provider;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use rustls_platform_verifier::Verifier;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Peers that a TLS client trusts.
pub(crate) enum Trust {
    /// Peers with a certificate that is valid for the host, by the system's roots or these.
    Verified(Vec<CertificateDer<'static>>),
    /// Any peer. The names of most mail exchangers come from DNS records without signature, so a valid certificate
    /// would prove nothing, and without TLS the message would go in plain text (RFC 7435). If something is to be
    /// proved, the certificate is judged after the handshake.
    Anyone,
}

/// TLS client, with its trust.
pub(crate) struct Tls {
    trust: Trust,
    /// Built at the first handshake, as reading the system's roots takes a while, and a machine without roots can still
    /// send in plain text. A failure is kept too: it would happen again.
    config: OnceLock<Result<Arc<ClientConfig>, String>>,
}

impl Tls {
    pub(crate) fn new(trust: Trust) -> Self {
        Self { trust, config: OnceLock::new() }
    }

    /// Returns the verification of the peer that a handshake includes.
    pub(crate) const fn verification(&self) -> TlsVerification {
        match self.trust {
            Trust::Verified(_) => TlsVerification::Pkix,
            Trust::Anyone => TlsVerification::None,
        }
    }

    pub(crate) async fn handshake(
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
            .map_err(|_| TransportError::Misconfigured("the host cannot be the name of a certificate".to_owned()))?;
        match timeout(limit, TlsConnector::from(Arc::clone(config)).connect(name, stream)).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => Err(refusal(&error)),
            Err(_) => Err(TransportError::Unreachable(format!("no TLS handshake within {limit:?}"))),
        }
    }

    fn build(&self) -> Result<Arc<ClientConfig>, rustls::Error> {
        let provider = Arc::new(default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match &self.trust {
            Trust::Verified(extra) => {
                Arc::new(Verifier::new_with_extra_roots(extra.iter().cloned(), Arc::clone(&provider))?)
            }
            Trust::Anyone => Arc::new(AnyCertificate(Arc::clone(&provider))),
        };
        config_of(provider, verifier)
    }
}

/// Builds the client configuration with a verifier of certificates.
pub(crate) fn config_of(
    provider: Arc<CryptoProvider>,
    verifier: Arc<dyn ServerCertVerifier>,
) -> Result<Arc<ClientConfig>, rustls::Error> {
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Returns the fault of the peer's certificate, if that made the handshake fail.
pub(crate) fn certificate_fault(error: &io::Error) -> Option<&CertificateError> {
    match error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(fault)) => Some(fault),
        _ => None,
    }
}

/// Classifies a failed handshake: an invalid certificate is a fault of the settings.
fn refusal(error: &io::Error) -> TransportError {
    match certificate_fault(error) {
        Some(_) => TransportError::Misconfigured(format!("the peer's certificate is not valid for its host: {error}")),
        None => TransportError::Unreachable(format!("the TLS handshake failed: {error}")),
    }
}

/// Verifier that accepts every certificate, but checks that the peer has its key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
