//! TLS of connections, according to `sslmode`.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_platform_verifier::Verifier;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::url::{PostgresUrl, Verification};
use crate::open_error::{OpenError, failed};

const ATTEMPT: &str = "prepare TLS for the connections to the database";

/// Creates the TLS connector for connections to a database.
pub(super) fn connector(url: &PostgresUrl) -> Result<MakeRustlsConnect, OpenError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let signed_by: Option<Arc<dyn ServerCertVerifier>> = match (url.verification(), url.roots()) {
        (Verification::None, _) => None,
        (_, Some(file)) if file.as_os_str() != "system" => {
            let mut roots = RootCertStore::empty();
            for certificate in CertificateDer::pem_file_iter(file).map_err(failed("read the file of sslrootcert"))? {
                let certificate = certificate.map_err(failed("read the file of sslrootcert"))?;
                roots.add(certificate).map_err(failed("use a certificate of sslrootcert"))?;
            }
            let built = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build();
            Some(built.map_err(failed(ATTEMPT))?)
        }
        // Authorities that the system trusts.
        _ => Some(Arc::new(Verifier::new(Arc::clone(&provider)).map_err(failed(ATTEMPT))?)),
    };
    let names_matter = url.verification() == Verification::Full;
    let verifier = Arc::new(ServerVerifier { signed_by, names_matter, provider: Arc::clone(&provider) });
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed(ATTEMPT))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// Verifies the certificate of a server as strictly as libpq does with the same `sslmode`.
#[derive(Debug)]
struct ServerVerifier {
    /// `None` if any signer is accepted.
    signed_by: Option<Arc<dyn ServerCertVerifier>>,
    names_matter: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(signed_by) = &self.signed_by else { return Ok(ServerCertVerified::assertion()) };
        match signed_by.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            // The chain is verified before the name.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.names_matter => Ok(ServerCertVerified::assertion()),
            Ok(verified) if self.names_matter => {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                Ok(verified)
            }
            outcome => outcome,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
