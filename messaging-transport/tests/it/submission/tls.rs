//! TLS: by STARTTLS, at once, with certificates that are renewed, and nothing before it that counts.

use std::fs;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use messaging_core::ports::clock::{Clock, ManualClock, SystemClock};
use messaging_transport::smtp_server::{ServerTls, ServerTlsError, SmtpServerOptions};
use messaging_transport::submission::Submission;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{PLAIN, Running, certificate, tls_in};
use crate::smtp_client::{Client, PATIENCE};

/// A server with a certificate, and what clients trust.
struct Secure {
    server: Running,
    root: CertificateDer<'static>,
    directory: tempfile::TempDir,
}

impl Secure {
    /// Starts a server whose clients begin in the clear.
    fn start() -> Self {
        Self::waiting(Duration::from_millis(1))
    }

    /// Starts a server that waits so long for clients that begin with TLS.
    fn waiting(patience: Duration) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (tls, root) = tls_in(directory.path());
        let server = Running::with(|options| {
            options.tls = Some(tls);
            options.implicit_tls = Some(patience);
        });
        Self { server, root, directory }
    }
}

pub(crate) async fn handshake(
    stream: TcpStream,
    root: &CertificateDer<'static>,
) -> io::Result<Client<TlsStream<TcpStream>>> {
    let mut roots = RootCertStore::empty();
    roots.add(root.clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("mail.test").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.map(Client)
}

#[tokio::test]
async fn passwords_are_taken_within_tls_alone() {
    let Secure { server, root, directory: _directory } = Secure::start();
    let mut client = server.connect().await;
    assert_eq!(client.reply().await, "220");
    let offered = client.ask("EHLO client.test").await;
    assert!(offered.contains("250-STARTTLS\r\n") && !offered.contains("AUTH"), "{offered}");
    assert_eq!(client.ask(PLAIN).await, "538 5.7.11 say STARTTLS first\r\n");
    assert_eq!(client.say("AUTH LOGIN").await, "538", "no password is asked for");
    assert_eq!(client.ask("MAIL FROM:<a@acme.io>").await, "530 5.7.0 say STARTTLS, then AUTH\r\n");
    assert_eq!(client.say("STARTTLS").await, "220");
    let mut client = handshake(client.0, &root).await.unwrap();
    // Nobody has said who they are yet.
    assert_eq!(client.say(PLAIN).await, "503");
    let offered = client.ask("EHLO client.test").await;
    assert!(offered.contains("250-AUTH PLAIN LOGIN\r\n") && !offered.contains("STARTTLS"), "{offered}");
    assert_eq!(client.say("STARTTLS").await, "503");
    assert_eq!(client.say(PLAIN).await, "235");
    client.send(b"MAIL FROM:<a@acme.io>\r\nRCPT TO:<ann@x.io>\r\nDATA\r\n").await;
    assert_eq!(client.replies(3).await, "250 250 354");
    client.send(b"Subject: s\r\n\r\nx\r\n.\r\n").await;
    assert_eq!(client.reply().await, "250");
}

#[tokio::test]
async fn tls_may_begin_at_once() {
    let Secure { server, root, directory: _directory } = Secure::waiting(PATIENCE);
    let mut client = handshake(TcpStream::connect(server.address).await.unwrap(), &root).await.unwrap();
    assert_eq!(client.full_reply().await, "220 mail.test ESMTP for submission\r\n");
    assert_eq!(client.say("EHLO client.test").await, "250");
    assert_eq!(client.say(PLAIN).await, "235");
}

#[tokio::test]
async fn what_came_before_tls_is_forgotten() {
    let Secure { server, root, directory: _directory } = Secure::start();
    let mut client = server.known().await;
    // Somebody on the way adds commands to the last segment in the clear.
    client.send(b"STARTTLS\r\nEHLO attacker.test\r\nNOOP\r\nQUIT\r\n").await;
    assert_eq!(client.reply().await, "220");
    let mut client = handshake(client.0, &root).await.unwrap();
    assert_eq!(client.ask("NOOP").await, "250 2.0.0 ok\r\n");
    assert_eq!(client.say("MAIL FROM:<a@acme.io>").await, "503", "the EHLO of before does not count");
    assert_eq!(client.say("EHLO client.test").await, "250");
    assert_eq!(client.say("NOOP").await, "250");
}

#[tokio::test]
async fn a_renewed_certificate_is_used_without_a_restart() {
    let Secure { server, root, directory } = Secure::waiting(PATIENCE);
    let connect = async |root: &CertificateDer<'static>| {
        handshake(TcpStream::connect(server.address).await.unwrap(), root).await.map(drop)
    };
    connect(&root).await.unwrap();
    let (certificate, key, renewed) = certificate();
    // Half of a renewal: the former pair serves on.
    let replace = |name: &str, text: &str| {
        fs::write(directory.path().join("new"), text).unwrap();
        fs::rename(directory.path().join("new"), directory.path().join(name)).unwrap();
    };
    replace("cert.pem", &certificate);
    connect(&root).await.unwrap();
    replace("key.pem", &key);
    connect(&renewed).await.unwrap();
    connect(&root).await.unwrap_err();
    // Files that are gone, or no certificate at all.
    fs::remove_file(directory.path().join("key.pem")).unwrap();
    connect(&renewed).await.unwrap();
    replace("cert.pem", "nothing");
    connect(&renewed).await.unwrap();
}

#[tokio::test]
async fn a_handshake_that_fails_is_the_end_of_the_connection() {
    let Secure { server, root: _root, directory: _directory } = Secure::start();
    let mut client = server.known().await;
    assert_eq!(client.say("STARTTLS").await, "220");
    client.send(b"EHLO client.test\r\n").await;
    let rest = {
        let mut bytes = Vec::new();
        let _ = tokio::io::AsyncReadExt::read_to_end(&mut client.0, &mut bytes).await;
        bytes
    };
    // At most a TLS alert.
    assert!(rest.is_empty() || rest[0] == 21, "{rest:?}");
}

#[tokio::test]
async fn without_a_certificate_only_loopback_is_listened_at() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "[::ffff:0.0.0.0]:0"] {
        let refused =
            Submission::bind(address.parse().unwrap(), SmtpServerOptions::submission("mail.test")).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{address}");
    }
    let directory = tempfile::tempdir().unwrap();
    let (tls, _) = tls_in(directory.path());
    let options = SmtpServerOptions { tls: Some(tls), ..SmtpServerOptions::submission("mail.test") };
    Submission::bind("0.0.0.0:0".parse().unwrap(), options).unwrap();
}

#[test]
fn what_is_no_certificate_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let (certificate_pem, key_pem, _) = certificate();
    let (_, other_key, _) = certificate();
    let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nYQ==\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let long = "x".repeat((1 << 20) + 1);
    for (name, text) in [
        ("cert", &*certificate_pem),
        ("key", &key_pem),
        ("other", &other_key),
        ("sealed", encrypted),
        ("none", "x"),
        ("long", &long),
    ] {
        fs::write(path(name), text).unwrap();
    }
    for (certificate, key, words) in [
        ("missing", "key", "failed to read"),
        ("cert", "missing", "failed to read"),
        ("none", "key", "has no certificate in PEM"),
        ("key", "key", "has no certificate in PEM"),
        ("cert", "none", "has no private key in PEM"),
        ("cert", "sealed", "under a passphrase"),
        ("cert", "other", "is not the one of the first certificate"),
        ("long", "key", "longer than 1 MiB"),
    ] {
        let error = ServerTls::load(path(certificate), path(key), Arc::new(SystemClock)).unwrap_err();
        assert!(error.to_string().contains(words), "{certificate} {key}: {error}");
    }
    let mismatch = ServerTls::load(path("cert"), path("other"), Arc::new(SystemClock)).unwrap_err();
    assert!(matches!(mismatch, ServerTlsError::Mismatch { .. }));
}

#[test]
fn the_end_of_a_certificate_is_known() {
    let directory = tempfile::tempdir().unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::new(vec!["mail.test".to_owned()]).unwrap();
    parameters.not_after = rcgen::date_time_ymd(2031, 5, 17);
    let certificate = parameters.self_signed(&key).unwrap();
    fs::write(directory.path().join("cert.pem"), certificate.pem()).unwrap();
    fs::write(directory.path().join("key.pem"), key.serialize_pem()).unwrap();
    let end = "2031-05-17T00:00:00.000Z".parse().unwrap();
    // One that has expired is used: the former was no better.
    let clock = ManualClock::new(end);
    clock.advance(Duration::from_secs(1));
    assert!(clock.now() > end);
    let load = || ServerTls::load(directory.path().join("cert.pem"), directory.path().join("key.pem"), Arc::new(clock));
    assert_eq!(load().unwrap().expires_at(), Some(end));
}
