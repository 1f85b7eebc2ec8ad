//! Probes of connections for the checks of the operator. They send nothing that is delivered or stored.

mod inbound_tls;
mod smtp_certificate;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use messaging_core::domain::installation::checkup::CertificateFact;
use messaging_core::ports::Clock;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::default_provider;
use rustls::{DigitallySignedStruct, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use rustls_platform_verifier::Verifier;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::smtp::tls::{certificate_fault, config_of};

pub use self::inbound_tls::{sts_policy, tlsa};
pub use self::smtp_certificate::smtp_certificate;
pub use crate::guard::is_public;

/// Time limit of one connection, greeting or answer.
const WITHIN: Duration = Duration::from_secs(5);

/// Maximum length of a greeting line in octets (RFC 5321 section 4.5.3.1.5).
const MAX_GREETING: usize = 512;

/// Time before its expiry at which a certificate is reported.
const SOON: Duration = Duration::from_hours(14 * 24);

/// Seconds between the beginning of NTP's first era and the Unix epoch (RFC 5905 section 6).
const NTP_TO_UNIX: u64 = 2_208_988_800;

/// Returns the addresses that connections to the internet leave from, as far as this machine knows. It sends no packet:
/// connecting a UDP socket only looks up the route.
pub async fn outgoing_addresses() -> Vec<IpAddr> {
    // Documentation addresses (RFC 5737, RFC 3849): they take the default route, if there is one.
    let far: [(SocketAddr, SocketAddr); 2] = [
        ((Ipv4Addr::UNSPECIFIED, 0).into(), (Ipv4Addr::new(192, 0, 2, 1), 9).into()),
        ((Ipv6Addr::UNSPECIFIED, 0).into(), (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1), 9).into()),
    ];
    let mut found = Vec::new();
    for (own, far) in far {
        if let Ok(address) = source_address(own, far).await {
            found.push(address);
        }
    }
    found
}

async fn source_address(own: SocketAddr, far: SocketAddr) -> io::Result<IpAddr> {
    let socket = UdpSocket::bind(own).await?;
    socket.connect(far).await?;
    Ok(socket.local_addr()?.ip())
}

/// Returns the addresses of a host as the system looks them up.
pub async fn system_addresses(host: &str) -> Result<Vec<IpAddr>, String> {
    match timeout(WITHIN, lookup_host((host, 0))).await {
        Ok(Ok(found)) => {
            let mut addresses: Vec<_> = found.map(|address| address.ip()).collect();
            addresses.dedup();
            Ok(addresses)
        }
        Ok(Err(error)) => Err(told(&error)),
        Err(_) => Err(late()),
    }
}

/// Returns the first line of a mail server, without its line end and without characters that could control a terminal.
pub async fn smtp_greeting(address: SocketAddr) -> Result<String, String> {
    let talk = async {
        let mut stream = TcpStream::connect(address).await.map_err(|error| told(&error))?;
        let mut line = Vec::with_capacity(MAX_GREETING);
        let mut piece = [0; MAX_GREETING];
        while !line.contains(&b'\n') && line.len() < MAX_GREETING {
            match stream.read(&mut piece).await {
                Ok(0) => break,
                Ok(read) => line.extend_from_slice(&piece[..read]),
                Err(error) => return Err(told(&error)),
            }
        }
        let end = line.iter().position(|octet| *octet == b'\n').unwrap_or(line.len()).min(MAX_GREETING);
        let text = String::from_utf8_lossy(&line[..end]).trim_end().to_owned();
        if text.is_empty() {
            return Err("the connection was closed without a greeting".to_owned());
        }
        // QUIT, without waiting for the reply.
        let _ = stream.write_all(b"QUIT\r\n").await;
        Ok(text.replace(|character: char| character.is_control(), " "))
    };
    timeout(WITHIN, talk).await.unwrap_or_else(|_| Err(late()))
}

/// Returns the result of a TLS handshake with a host of this name, at the first address that accepts a connection.
/// `more_roots` are trusted besides those of the system.
pub async fn certificate(
    host: &str,
    addresses: &[SocketAddr],
    more_roots: &[CertificateDer<'static>],
    clock: &dyn Clock,
) -> CertificateFact {
    let mut refused = "it has no address".to_owned();
    for address in addresses {
        match timeout(WITHIN, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return handshake(host, stream, more_roots, clock).await,
            Ok(Err(error)) => refused = told(&error),
            Err(_) => refused = late(),
        }
    }
    CertificateFact::Unreached(refused)
}

async fn handshake(
    host: &str,
    stream: TcpStream,
    more_roots: &[CertificateDer<'static>],
    clock: &dyn Clock,
) -> CertificateFact {
    let Ok(name) = ServerName::try_from(host.to_owned()) else {
        return CertificateFact::Refused("the host cannot be the name of a certificate".to_owned());
    };
    let provider = Arc::new(default_provider());
    let verifier = match Verifier::new_with_extra_roots(more_roots.iter().cloned(), Arc::clone(&provider)) {
        Ok(verifier) => verifier,
        Err(error) => return CertificateFact::Refused(format!("this machine has no usable TLS roots: {error}")),
    };
    let in_two_weeks = Duration::from_millis(u64::try_from(clock.now().as_millis()).unwrap_or_default()) + SOON;
    let verifier = Arc::new(ExpiryVerifier {
        inner: verifier,
        at: UnixTime::since_unix_epoch(in_two_weeks),
        ends: AtomicBool::new(false),
    });
    let config = match config_of(provider, Arc::clone(&verifier) as _) {
        Ok(config) => config,
        Err(error) => return CertificateFact::Refused(error.to_string()),
    };
    match timeout(WITHIN, TlsConnector::from(config).connect(name, stream)).await {
        Ok(Ok(_)) => CertificateFact::Valid { ends_soon: verifier.ends.load(Ordering::Relaxed) },
        Ok(Err(error)) => match certificate_fault(&error) {
            Some(fault) => CertificateFact::Refused(format!("{fault:?}")),
            None => CertificateFact::Unreached(told(&error)),
        },
        Err(_) => CertificateFact::Unreached(late()),
    }
}

/// Verifies like the system, and notes if the certificate expires within two weeks.
#[derive(Debug)]
struct ExpiryVerifier {
    inner: Verifier,
    at: UnixTime,
    ends: AtomicBool,
}

impl ServerCertVerifier for ExpiryVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified = self.inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)?;
        let later = self.inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, self.at);
        self.ends.store(later.is_err(), Ordering::Relaxed);
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// Returns by how many milliseconds the clock is ahead of a time server: one query of SNTP (RFC 4330). The answer
/// counts only if it belongs to this query and the server says that it knows the time.
pub async fn clock_ahead(server: SocketAddr, clock: &dyn Clock) -> Result<i64, String> {
    let own: SocketAddr =
        if server.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
    let ask = async {
        let socket = UdpSocket::bind(own).await.map_err(|error| told(&error))?;
        socket.connect(server).await.map_err(|error| told(&error))?;
        let sent = clock.now().as_millis();
        let mut question = [0; 48];
        // Version 4, client.
        question[0] = 0x23;
        question[40..].copy_from_slice(&ntp(sent));
        socket.send(&question).await.map_err(|error| told(&error))?;
        let mut answer = [0; 96];
        loop {
            let length = socket.recv(&mut answer).await.map_err(|error| told(&error))?;
            let received = clock.now().as_millis();
            if length < 48 || answer[24..32] != question[40..48] {
                continue;
            }
            let (leap, mode, stratum) = (answer[0] >> 6, answer[0] & 7, answer[1]);
            if mode != 4 || leap == 3 || !(1..16).contains(&stratum) {
                return Err("the time server does not know the time".to_owned());
            }
            let (theirs_received, theirs_sent) = (unix_millis(&answer[32..40]), unix_millis(&answer[40..48]));
            let behind = (theirs_received - sent).midpoint(theirs_sent - received);
            return Ok(-behind);
        }
    };
    timeout(WITHIN, ask).await.unwrap_or_else(|_| Err(late()))
}

/// Converts milliseconds of Unix time to an NTP timestamp.
fn ntp(millis: i64) -> [u8; 8] {
    let millis = u64::try_from(millis).unwrap_or_default();
    // Modulo 2^32: the eras from 2036 on begin again at zero.
    let seconds = (millis / 1000 + NTP_TO_UNIX) & 0xFFFF_FFFF;
    let fraction = ((millis % 1000) << 32) / 1000;
    ((seconds << 32) | fraction).to_be_bytes()
}

/// Converts an NTP timestamp to milliseconds of Unix time. A time before 1968 by the first era belongs to the second
/// (RFC 4330 section 3).
fn unix_millis(octets: &[u8]) -> i64 {
    let stamp = octets.iter().fold(0_u64, |value, octet| (value << 8) | u64::from(*octet));
    let (seconds, fraction) = (stamp >> 32, stamp & 0xFFFF_FFFF);
    let era = if seconds & 0x8000_0000 == 0 { 1_u64 << 32 } else { 0 };
    let millis =
        i128::from(seconds + era) * 1000 - i128::from(NTP_TO_UNIX) * 1000 + i128::from((fraction * 1000) >> 32);
    i64::try_from(millis).unwrap_or_default()
}

fn told(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "the connection was refused".to_owned(),
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
            "the network does not lead there".to_owned()
        }
        _ => error.to_string(),
    }
}

fn late() -> String {
    format!("no answer within {} s", WITHIN.as_secs())
}

#[cfg(test)]
mod tests {
    use messaging_core::ports::clock::SystemClock;
    use tokio::net::TcpListener;

    use super::*;

    /// A mail server that says one thing.
    async fn saying(text: &'static [u8]) -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.write_all(text).await;
                // Until the peer has read it.
                let _ = stream.read(&mut [0; 16]).await;
            }
        });
        address
    }

    #[tokio::test]
    async fn a_greeting_is_one_line_without_control_characters() {
        let greeting = smtp_greeting(saying(b"220 mx.test \x1b[31mESMTP\r\n220 more\r\n").await).await;
        assert_eq!(greeting.as_deref(), Ok("220 mx.test  [31mESMTP"));
        let endless = smtp_greeting(saying(&[b'x'; 2000]).await).await.unwrap();
        assert_eq!(endless.len(), MAX_GREETING);
        let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap().local_addr().unwrap();
        assert_eq!(smtp_greeting(closed).await, Err("the connection was refused".to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_mail_server_is_given_up() {
        // Paused time runs ahead while nothing else can be done.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        assert_eq!(smtp_greeting(listener.local_addr().unwrap()).await, Err("no answer within 5 s".to_owned()));
    }

    /// A time server whose clock is ahead by so many milliseconds; `first` is the first octet of its answers.
    async fn time_server(ahead: i64, first: u8) -> SocketAddr {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = socket.local_addr().unwrap();
        tokio::spawn(async move {
            let mut question = [0; 96];
            while let Ok((_, peer)) = socket.recv_from(&mut question).await {
                let mut answer = [0; 48];
                (answer[0], answer[1]) = (first, 2);
                answer[24..32].copy_from_slice(&question[40..48]);
                let now = ntp(SystemClock.now().as_millis() + ahead);
                answer[32..40].copy_from_slice(&now);
                answer[40..48].copy_from_slice(&now);
                // Somebody else's answer comes first.
                let _ = socket.send_to(&[0; 48], peer).await;
                let _ = socket.send_to(&answer, peer).await;
            }
        });
        address
    }

    #[tokio::test]
    async fn the_clock_is_compared_with_a_time_server() {
        // Half the way there and back is all that is unknown, and the machine may be busy.
        for ahead in [0, 90_000, -90_000] {
            let measured = clock_ahead(time_server(-ahead, 0x24).await, &SystemClock).await.unwrap();
            assert!((measured - ahead).abs() < 5_000, "{measured} for {ahead}");
        }
        let unsynchronized = clock_ahead(time_server(0, 0xE4).await, &SystemClock).await;
        assert!(unsynchronized.unwrap_err().contains("does not know"));
    }

    #[test]
    fn dates_of_ntp_are_those_of_unix() {
        for millis in [0, 1_763_769_600_123, 2_085_978_496_000, 4_000_000_000_999] {
            assert!((unix_millis(&ntp(millis)) - millis).abs() <= 1, "{millis}");
        }
    }

    #[tokio::test]
    async fn addresses_that_mail_leaves_from_are_no_others() {
        for address in outgoing_addresses().await {
            assert!(!address.is_unspecified() && !address.is_multicast(), "{address}");
        }
    }
}
