//! TLS with hosts that have to prove their name.
//!
//! The roots of the system are trusted; `SSL_CERT_FILE` and `SSL_CERT_DIR` replace them.

use std::sync::{Arc, OnceLock};

use messaging_core::ports::fetch::{FetchError, Protocol};
use rustls::ClientConfig;
use rustls::crypto::ring::default_provider;
use rustls_pki_types::{CertificateDer, ServerName};
use rustls_platform_verifier::Verifier;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use url::{Host, Url};

/// TLS client that trusts the roots of the system and further ones.
#[derive(Debug)]
pub(super) struct Tls {
    roots: Vec<CertificateDer<'static>>,
    /// Built at the first handshake, as reading the system's roots takes a while. A failure is kept too.
    configs: OnceLock<Option<Configs>>,
}

/// Client configurations by the protocols that they offer (ALPN, RFC 7301).
#[derive(Debug)]
struct Configs {
    http1: Arc<ClientConfig>,
    negotiated: Arc<ClientConfig>,
    http2: Arc<ClientConfig>,
}

impl Tls {
    pub(super) fn new(roots: Vec<CertificateDer<'static>>) -> Self {
        Self { roots, configs: OnceLock::new() }
    }

    /// Runs the handshake, in which the peer must prove that it is the host of the URL.
    pub(super) async fn handshake(
        &self,
        stream: TcpStream,
        url: &Url,
        protocol: Protocol,
    ) -> Result<TlsStream<TcpStream>, FetchError> {
        let configs = self.configs.get_or_init(|| {
            self.build().inspect_err(|error| tracing::error!(%error, "this machine has no usable TLS roots")).ok()
        });
        let configs = configs.as_ref().ok_or(FetchError::Tls)?;
        let config = match protocol {
            Protocol::Http1 => &configs.http1,
            Protocol::Negotiated => &configs.negotiated,
            Protocol::Http2 => &configs.http2,
        };
        let name = match url.host().ok_or(FetchError::Tls)? {
            Host::Ipv4(address) => ServerName::from(std::net::IpAddr::from(address)),
            Host::Ipv6(address) => ServerName::from(std::net::IpAddr::from(address)),
            // Certificates do not have the final dot.
            Host::Domain(name) => {
                ServerName::try_from(name.strip_suffix('.').unwrap_or(name).to_owned()).map_err(|_| FetchError::Tls)?
            }
        };
        TlsConnector::from(Arc::clone(config)).connect(name, stream).await.map_err(|_| FetchError::Tls)
    }

    fn build(&self) -> Result<Configs, rustls::Error> {
        let provider = Arc::new(default_provider());
        let verifier = Verifier::new_with_extra_roots(self.roots.iter().cloned(), Arc::clone(&provider))?;
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        let offering = |protocols: &[&[u8]]| {
            let mut config = config.clone();
            config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
            Arc::new(config)
        };
        Ok(Configs {
            http1: offering(&[b"http/1.1"]),
            negotiated: offering(&[b"h2", b"http/1.1"]),
            http2: offering(&[b"h2"]),
        })
    }
}
