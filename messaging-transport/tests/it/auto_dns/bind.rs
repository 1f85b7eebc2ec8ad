//! Updates of a real name server: BIND, started by the test on a loopback port.
//!
//! Without BIND on the machine the tests say so and pass, unless `REQUIRE_BIND` is set. `NAMED` names the program.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use messaging_core::domain::mail::auto_dns::{DnsCredentials, DnsProviderName, HostRecords};
use messaging_core::domain::mail::dns_record::RecordType;
use messaging_core::ports::dns_provider::DnsProviderError;
use messaging_core::ports::name_servers::{NameServers as _, RecordQuestion};
use messaging_testing::TestDns;
use messaging_transport::auto_dns::ZoneServers;
use messaging_transport::{Dns, Options};
use serde_json::json;

use super::{list, provider, write_and_read};

/// Keys by their names and algorithms; the last may not change the zone.
const KEYS: [(&str, &str, &str); 3] = [
    ("short.acme.test", "hmac-sha256", "c2hvcnQtc2VjcmV0LW9mLWFjbWUtdGVzdC4uLi4uLi4="),
    ("long.acme.test", "hmac-sha512", "bG9uZy1zZWNyZXQtb2YtYWNtZS10ZXN0Li4uLi4uLi4uLi4u"),
    ("reader.acme.test", "hmac-sha256", "cmVhZGVyLXNlY3JldC1vZi1hY21lLXRlc3QuLi4uLi4u"),
];

/// A server that hosts `acme.test`, and `mail.acme.test` with wildcards; it ends when dropped.
struct Bind {
    child: Child,
    port: u16,
    _directory: tempfile::TempDir,
}

impl Drop for Bind {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program() -> Option<PathBuf> {
    let named = std::env::var_os("NAMED").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path: Vec<_> = std::env::split_paths(&path).map(|place| place.join("named")).collect();
    let usual = ["/usr/sbin/named", "/usr/local/sbin/named"].map(PathBuf::from);
    named.into_iter().chain(on_path).chain(usual).find(|place| place.is_file())
}

impl Bind {
    /// `None` where there is none to start.
    fn start() -> Option<Self> {
        let Some(program) = program() else {
            assert!(std::env::var_os("REQUIRE_BIND").is_none(), "no BIND was found to start");
            let _ = writeln!(std::io::stderr(), "SKIPPED: there is no BIND to start; set NAMED");
            return None;
        };
        let directory = tempfile::tempdir().unwrap();
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let write = |name: &str, text: String| std::fs::write(directory.path().join(name), text).unwrap();
        let keys: String = KEYS
            .iter()
            .map(|(name, algorithm, secret)| {
                format!("key \"{name}\" {{ algorithm {algorithm}; secret \"{secret}\"; }};\n")
            })
            .collect();
        let zones: String = [("acme.test", ""), ("mail.acme.test", "* IN A 192.0.2.9\n* IN TXT \"v=spf1 -all\"\n")]
            .iter()
            .map(|(zone, more)| {
                write(
                    &format!("{zone}.zone"),
                    format!("$TTL 300\n@ IN SOA ns.{zone}. admin.{zone}. 1 300 300 300 300\n@ IN NS ns.{zone}.\nns IN A 192.0.2.1\n{more}"),
                );
                let allowed = "key short.acme.test; key long.acme.test;";
                format!("zone \"{zone}\" {{ type primary; file \"{zone}.zone\"; allow-update {{ {allowed} }}; }};\n")
            })
            .collect();
        let place = directory.path().display();
        write(
            "named.conf",
            format!(
                "options {{ directory \"{place}\"; pid-file none; session-keyfile none; recursion no;\n\
                 listen-on port {port} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }}; dnssec-validation no;\n\
                 minimal-responses yes; }};\ncontrols {{ }};\n{keys}{zones}"
            ),
        );
        let mut child = Command::new(program)
            .args(["-g", "-c"])
            .arg(directory.path().join("named.conf"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        loop {
            let mut line = String::new();
            assert!(log.read_line(&mut line).unwrap() > 0, "BIND does not start:\n{said}");
            if line.trim_end().ends_with(" running") && !line.contains("zone ") {
                break;
            }
            said.push_str(&line);
        }
        // What it says from now on is thrown away, so that it never waits for a reader.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Some(Self { child, port, _directory: directory })
    }

    fn credentials(&self, key: usize) -> DnsCredentials {
        let (name, algorithm, secret) = KEYS[key];
        self.with(name, algorithm, secret, None)
    }

    fn with(&self, name: &str, algorithm: &str, secret: &str, zone: Option<&str>) -> DnsCredentials {
        let mut json = json!({"server": format!("127.0.0.1:{}", self.port), "key_name": name, "key_secret": secret,
            "algorithm": algorithm});
        if let Some(zone) = zone {
            json["zone"] = zone.into();
        }
        serde_json::from_value(json).unwrap()
    }
}

#[tokio::test]
async fn bind_takes_updates_that_are_signed() {
    for key in [0, 1] {
        let Some(bind) = Bind::start() else { return };
        let provider = provider(DnsProviderName::Rfc2136, None);
        let zone = provider.zone(&bind.credentials(key), "acme.test").await.unwrap();
        assert_eq!(zone.name(), "acme.test");
        write_and_read(zone.as_ref(), KEYS[key].1).await;
        assert!(zone.at("ns.acme.test").await.unwrap().has_others);
    }
}

#[tokio::test]
async fn what_was_written_is_read_back_from_bind() {
    let Some(bind) = Bind::start() else { return };
    let zone = provider(DnsProviderName::Rfc2136, None).zone(&bind.credentials(0), "acme.test").await.unwrap();
    let key = format!("v=DKIM1; k=rsa; p={}", "A".repeat(2000));
    zone.replace("k._domainkey.acme.test", RecordType::Txt, &[], std::slice::from_ref(&key)).await.unwrap();
    zone.replace("bounce.acme.test", RecordType::Mx, &[], &list(&["10 mx.service.test"])).await.unwrap();
    // A resolver that knows where the zone is, and nothing of it.
    let resolver = TestDns::start().await;
    let address = [192, 0, 2, 1].into();
    for name in ["acme.test", "elsewhere.test"] {
        resolver.name_servers(name, &["ns.acme.test"]);
    }
    resolver.addresses("ns.acme.test", &[address]);
    let options =
        Options { dns: Dns::new(Some(resolver.addr())), allow_private: true, ..Options::new("mx.service.test") };
    let servers = ZoneServers::new(&options).stand_ins([(address, (Ipv4Addr::LOCALHOST, bind.port).into())]);
    let question = |host: &str, kind: RecordType| RecordQuestion { host: host.to_owned(), kind };
    let questions = [
        question("k._domainkey.acme.test", RecordType::Txt),
        question("bounce.acme.test", RecordType::Mx),
        question("links.acme.test", RecordType::Cname),
    ];
    let answered = servers.ask("acme.test", &questions).await.unwrap();
    assert_eq!(answered[0].server, "ns.acme.test");
    let values: Vec<_> = answered[0].answers.iter().map(|answer| answer.as_deref().unwrap()).collect();
    assert_eq!(values, [list(&[&key]), list(&["10 mx.service.test"]), list(&[])]);
    // It has no such zone, whoever says so.
    let foreign = servers.ask("elsewhere.test", &[question("a.elsewhere.test", RecordType::Txt)]).await.unwrap();
    assert!(foreign[0].answers[0].is_err(), "{foreign:?}");
}

#[tokio::test]
async fn what_a_wildcard_answers_is_not_at_the_name() {
    let Some(bind) = Bind::start() else { return };
    let provider = provider(DnsProviderName::Rfc2136, None);
    let zone = provider.zone(&bind.credentials(0), "mail.acme.test").await.unwrap();
    let host = "bounce.mail.acme.test";
    assert_eq!(zone.at(host).await.unwrap(), HostRecords::default());
    zone.replace(host, RecordType::Txt, &[], &list(&["x"])).await.unwrap();
    assert_eq!(zone.at(host).await.unwrap(), HostRecords { txt: list(&["x"]), ..HostRecords::default() });
    assert_eq!(zone.at("*.mail.acme.test").await.unwrap().txt, ["v=spf1 -all"]);
}

#[tokio::test]
async fn the_longest_zone_of_bind_is_found() {
    let Some(bind) = Bind::start() else { return };
    let provider = provider(DnsProviderName::Rfc2136, None);
    let name = async |credentials: &DnsCredentials, domain: &str| {
        provider.zone(credentials, domain).await.map(|zone| zone.name().to_owned())
    };
    assert_eq!(name(&bind.credentials(0), "eu.mail.acme.test").await.as_deref(), Ok("mail.acme.test"));
    assert_eq!(name(&bind.credentials(0), "shop.acme.test").await.as_deref(), Ok("acme.test"));
    assert_eq!(name(&bind.credentials(0), "elsewhere.test").await, Err(DnsProviderError::NoZone));
    let (key, algorithm, secret) = KEYS[0];
    let given = bind.with(key, algorithm, secret, Some("acme.test."));
    assert_eq!(name(&given, "eu.mail.acme.test").await.as_deref(), Ok("acme.test"));
    assert_eq!(name(&given, "elsewhere.test").await, Err(DnsProviderError::NoZone));
}

#[tokio::test]
async fn bind_refuses_keys_that_are_wrong_or_may_not() {
    let Some(bind) = Bind::start() else { return };
    let provider = provider(DnsProviderName::Rfc2136, None);
    let (key, algorithm, secret) = KEYS[0];
    for (name, secret, word) in [(key, KEYS[2].2, "BADSIG"), ("unknown.acme.test", secret, "BADKEY")] {
        let refused = provider.zone(&bind.with(name, algorithm, secret, None), "acme.test").await.map(|_| ());
        let Err(DnsProviderError::Credentials(words)) = refused else { panic!("{name}: {refused:?}") };
        assert!(words.contains(word), "{words}");
    }
    let zone = provider.zone(&bind.credentials(2), "acme.test").await.unwrap();
    let refused = zone.replace("a.acme.test", RecordType::Txt, &[], &list(&["x"])).await;
    assert!(matches!(refused, Err(DnsProviderError::Credentials(_))), "{refused:?}");
}
