//! The checks of the operator, with a DNS and a host that a test makes up.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use messaging_core::domain::delivery::ip_pool::source::NamedSource;
use messaging_core::domain::installation::checkup::{
    CertificateFact, CheckReport, CheckStatus, DiskFacts, FileFact, SecretKeyFact, SmtpCertificateFact, TlsaFact,
};
use messaging_core::domain::mail::mta_sts::{self, StsText};
use messaging_core::ports::HostProbe;
use messaging_engine::app::checks::{CheckOptions, Checkup};
use messaging_engine::{App, Settings};
use serde_json::json;

use super::Domains;
use crate::bed::KEY;

/// A host on which all is well, unless a test says otherwise. An address that is not listed answers nothing.
#[derive(Debug)]
struct FakeHost {
    greetings: Mutex<BTreeMap<SocketAddr, String>>,
    ahead: Result<i64, String>,
    outgoing: Vec<IpAddr>,
}

#[async_trait]
impl HostProbe for FakeHost {
    async fn outgoing_addresses(&self) -> Vec<IpAddr> {
        self.outgoing.clone()
    }
    fn counts_as_public(&self, address: IpAddr) -> bool {
        !address.is_loopback()
    }
    async fn system_addresses(&self, _: &str) -> Result<Vec<IpAddr>, String> {
        Ok(Vec::new())
    }
    async fn smtp_greeting(&self, address: SocketAddr) -> Result<String, String> {
        self.greetings.lock().unwrap().get(&address).cloned().ok_or_else(|| "refused".to_owned())
    }
    async fn certificate(&self, _: &str, _: &[SocketAddr]) -> CertificateFact {
        CertificateFact::Valid { ends_soon: false }
    }
    async fn smtp_certificate(&self, _: &str) -> SmtpCertificateFact {
        SmtpCertificateFact::Off
    }
    async fn tlsa(&self, _: &str) -> Result<TlsaFact, String> {
        Ok(TlsaFact::Absent)
    }
    async fn sts_policy(&self, domain: &str) -> Result<StsText, String> {
        assert_eq!(domain, "bounce.mx.service.test");
        mta_sts::parse("version: STSv1\nmode: testing\nmx: other.test\nmax_age: 1").map_err(|fault| fault.to_string())
    }
    async fn clock_ahead(&self, _: SocketAddr) -> Result<i64, String> {
        self.ahead.clone()
    }
    async fn files(&self) -> Result<Vec<FileFact>, String> {
        Ok(vec![FileFact { path: "/data".to_owned(), mode: 0o700, most: 0o700, is_own: true }])
    }
    async fn disk(&self) -> DiskFacts {
        DiskFacts { free: Some(1 << 40), reserve: 32 << 20 }
    }
    async fn secret_key(&self) -> SecretKeyFact {
        SecretKeyFact::Fits
    }
    async fn inbound_port(&self) -> Option<Result<u16, ()>> {
        Some(Ok(2525))
    }
}

/// An installation whose DNS and host have no faults.
async fn sound(ahead: i64) -> (Domains, String) {
    sound_with(ahead, Vec::new()).await
}

/// An installation without faults that sends from named addresses.
async fn sound_with(ahead: i64, sources: Vec<NamedSource>) -> (Domains, String) {
    let mut domains = Domains::start().await;
    let id = domains.add("acme.test").await;
    domains.dns.publish(&domains.get(&id).await);
    domains.dns.set("TXT", "_dmarc.acme.test", &["v=DMARC1; p=none; rua=mailto:d@acme.test"]);
    domains.dns.set("A", "mx.service.test", &["192.0.2.1"]);
    domains.dns.set("A", "track.service.test", &["192.0.2.1"]);
    domains.dns.set("A", "time.test", &["192.0.2.123"]);
    domains.dns.set("PTR", "192.0.2.1", &["mx.service.test"]);
    domains.dns.set("MX", "probe.test", &["20 second.probe.test", "10 mx.probe.test"]);
    domains.dns.set("A", "mx.probe.test", &["192.0.2.25"]);
    let greetings = [("192.0.2.25:25", "220 mx.probe.test"), ("192.0.2.1:2525", "220 mx.service.test ESMTP")];
    let greetings = greetings.map(|(address, text)| (address.parse().unwrap(), text.to_owned()));
    let host = FakeHost { greetings: Mutex::new(greetings.into()), ahead: Ok(ahead), outgoing: Vec::new() };
    let options = CheckOptions::default()
        .probe("probe.test".to_owned())
        .sources(sources)
        .blocklists(vec!["bl.test".to_owned()])
        .time_server("time.test".to_owned())
        .resolver("fake")
        .data("/data")
        .database("/data/messaging.db")
        .secret_key("/data/secret.key");
    domains.bed.app = App::builder(domains.bed.store.clone(), KEY)
        .clock(domains.bed.clock.clone())
        .resolver(domains.dns.clone())
        .settings(Settings::default().hostname("mx.service.test").public_url("https://track.service.test"))
        .checkup(Checkup { probe: Arc::new(host), options })
        .build()
        .await
        .unwrap();
    (domains, id)
}

fn statuses(reports: &[CheckReport]) -> String {
    let line = |report: &CheckReport| format!("{} {}: {}", report.id.as_str(), report.subject, report.status.as_str());
    reports.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn an_installation_that_is_sound_has_no_fault() {
    let (domains, _) = sound(0).await;
    let reports = domains.bed.app.check_up().await.unwrap();
    insta::assert_snapshot!(statuses(&reports), @r"
    name mx.service.test: ok
    address mx.service.test: ok
    ptr 192.0.2.1: ok
    spf mx.service.test: ok
    port25_out mx.probe.test:25: ok
    inbound mx.service.test: ok
    tls https://track.service.test: ok
    clock time.test: ok
    disk /data/messaging.db: ok
    files /data: ok
    secret_key /data/secret.key: ok
    resolver fake: ok
    blocklist 192.0.2.1 at bl.test: ok
    certificate mx.service.test: skipped
    fence /data/messaging.db: ok
    api_keys API keys: ok
    dkim acme.test: ok
    return_path acme.test: ok
    dmarc acme.test: ok
    alignment acme.test: ok
    one_click acme.test: ok
    ");
}

#[tokio::test]
async fn the_policy_of_mail_that_comes_here_is_looked_at_where_there_is_one() {
    let (domains, _) = sound(0).await;
    domains.dns.set("TXT", "_mta-sts.bounce.mx.service.test", &["v=STSv1; id=1"]);
    let reports = domains.bed.app.check_up().await.unwrap();
    let of_certificate: Vec<_> = reports.into_iter().filter(|report| report.id.as_str() == "certificate").collect();
    insta::assert_snapshot!(statuses(&of_certificate), @r"
    certificate mx.service.test: skipped
    certificate _mta-sts.bounce.mx.service.test: warning
    ");
    assert!(of_certificate[1].text.contains("does not list mx.service.test"), "{:?}", of_certificate[1]);
}

#[tokio::test]
async fn each_source_is_looked_at_under_its_own_name() {
    let source = |ip: &str, name: &str| NamedSource { ip: ip.parse().unwrap(), name: name.to_owned() };
    let (domains, _) =
        sound_with(0, vec![source("192.0.2.7", "m7.service.test"), source("192.0.2.8", "m8.service.test")]).await;
    domains.dns.set("PTR", "192.0.2.7", &["m7.service.test"]);
    domains.dns.set("A", "m7.service.test", &["192.0.2.7"]);
    domains.dns.set("PTR", "192.0.2.8", &["mx.service.test"]);
    let reports = domains.bed.app.check_up().await.unwrap();
    let of_ptr: Vec<_> = reports.into_iter().filter(|report| report.id.as_str() == "ptr").collect();
    insta::assert_snapshot!(statuses(&of_ptr), @r"
    ptr 192.0.2.1: ok
    ptr 192.0.2.7: ok
    ptr 192.0.2.8: fault
    ");
}

/// Breaks one record and returns the faults that the check-up reports.
async fn broken(kind: &'static str, name: &str, values: &[&str]) -> Vec<String> {
    let (domains, _) = sound(0).await;
    domains.dns.set(kind, name, values);
    let reports = domains.bed.app.check_up().await.unwrap();
    let faults = reports.iter().filter(|report| report.is_fault());
    faults.map(|report| format!("{} {}", report.id.as_str(), report.subject)).collect()
}

#[tokio::test]
async fn each_thing_that_is_broken_is_found() {
    let pair = |first: &str, second: &str| vec![first.to_owned(), second.to_owned()];
    for (kind, name, values, faults) in [
        ("PTR", "192.0.2.1", &["wrong.test"][..], vec!["ptr 192.0.2.1".to_owned()]),
        ("PTR", "192.0.2.1", &["!"], vec!["ptr 192.0.2.1".to_owned()]),
        (
            "TXT",
            "mx.service.test",
            &["v=spf1 a -all", "v=spf1 -all"],
            pair("spf mx.service.test", "return_path acme.test"),
        ),
        ("TXT", "mx.service.test", &["v=spf1 ip4:192.0.2.77 -all"], vec!["spf mx.service.test".to_owned()]),
        ("MX", "probe.test", &["0 "], vec!["port25_out probe.test".to_owned()]),
        ("A", "mx.probe.test", &["127.0.0.1"], vec!["port25_out probe.test".to_owned()]),
        ("A", "mx.probe.test", &["192.0.2.26"], vec!["port25_out mx.probe.test:25".to_owned()]),
        ("A", "1.2.0.192.bl.test", &["127.0.0.2"], vec!["blocklist 192.0.2.1 at bl.test".to_owned()]),
        ("TXT", ".", &["!"], vec!["resolver fake".to_owned()]),
        ("MX", "bounce.acme.test", &[], vec!["return_path acme.test".to_owned()]),
        ("TXT", "_dmarc.acme.test", &["v=DMARC1; p=none", "v=DMARC1; p=none"], vec!["dmarc acme.test".to_owned()]),
        (
            "TXT",
            "mk01234567._domainkey.acme.test",
            &["v=DKIM1; p="],
            vec!["dkim acme.test".to_owned(), "one_click acme.test".to_owned()],
        ),
    ] {
        assert_eq!(broken(kind, name, values).await, faults, "{kind} {name} {values:?}");
    }
    let (domains, _) = sound(120_000).await;
    let reports = domains.bed.app.check_up().await.unwrap();
    let clock = reports.iter().find(|report| report.is_fault()).unwrap();
    assert_eq!((clock.id.as_str(), clock.found.as_str()), ("clock", "120.000 s ahead"));
}

#[tokio::test(start_paused = true)]
async fn a_dns_that_says_nothing_does_not_hold_the_checks_up() {
    let (domains, _) = sound(0).await;
    for (kind, name) in [
        ("A", "mx.service.test"),
        ("TXT", "mx.service.test"),
        ("TXT", "."),
        ("MX", "probe.test"),
        ("A", "track.service.test"),
        ("A", "time.test"),
        ("TXT", "bounce.acme.test"),
        ("TXT", "_dmarc.acme.test"),
        ("TXT", "mk01234567._domainkey.acme.test"),
    ] {
        domains.dns.set(kind, name, &["…"]);
    }
    let begun = tokio::time::Instant::now();
    let reports = domains.bed.app.check_up().await.unwrap();
    let took = begun.elapsed();
    assert!((Duration::from_secs(1)..Duration::from_secs(30)).contains(&took), "{took:?}");
    let status = |id: &str| reports.iter().find(|report| report.id.as_str() == id).unwrap().status;
    for id in ["address", "spf", "port25_out", "resolver", "dkim", "dmarc"] {
        assert_eq!(status(id), CheckStatus::Fault, "{id}");
    }
    for id in ["disk", "files", "secret_key"] {
        assert_eq!(status(id), CheckStatus::Ok, "{id}");
    }
}

#[tokio::test]
async fn what_was_found_is_shown_for_some_minutes_and_then_looked_at_again() {
    let (domains, _) = sound(0).await;
    let app = domains.bed.app.clone();
    assert_eq!(app.checks().len(), 0, "metrics do not wait");
    let first = app.checks_within(Duration::from_mins(1)).await;
    assert_eq!(first.len(), 21);
    let asked = domains.dns.questions();
    assert_eq!(app.checks_within(Duration::from_mins(1)).await, first);
    assert_eq!(app.checks(), first);
    tokio::task::yield_now().await;
    assert_eq!(domains.dns.questions(), asked, "nobody looks again");

    domains.dns.set("PTR", "192.0.2.1", &["wrong.test"]);
    domains.bed.clock.advance(Duration::from_mins(5));
    assert_eq!(app.checks(), first, "until it has been looked");
    while app.checks() == first {
        tokio::task::yield_now().await;
    }
    let found = app.checks();
    assert_eq!(found.iter().filter(|report| report.is_fault()).count(), 1);
}

#[tokio::test]
async fn the_owner_of_a_workspace_sees_the_checks() {
    let (domains, _) = sound(0).await;
    let reply = domains.bed.get(&domains.caller, "/system").await;
    assert_eq!(reply.summary(), "200");
    assert_eq!(reply["checks"].as_array().unwrap().len(), 21);
    assert_eq!(reply["checks"][2]["id"], "ptr");
    assert_eq!(reply["checks"][2]["subject"], "192.0.2.1");
}

#[tokio::test]
async fn a_domain_whose_pool_no_node_has_an_address_of_is_a_fault() {
    let (domains, id) = sound(0).await;
    let source = |ip: &str| NamedSource { ip: ip.parse().unwrap(), name: "mx.service.test".to_owned() };
    let announce = async |ip: &str| domains.bed.store.announce_sources(&[source(ip)]).await.unwrap();
    announce("203.0.113.7").await;
    let found = async || {
        domains.bed.clock.advance(Duration::from_secs(2));
        let reports = domains.bed.app.check_up().await.unwrap();
        let found: Vec<_> = reports.into_iter().filter(|report| report.id.as_str() == "sources").collect();
        (statuses(&found), found.first().map(|report| report.found.clone()).unwrap_or_default())
    };
    assert_eq!(found().await.0, "", "there is no pool");
    let workspace = domains.stored(&id).await.workspace_id;
    messaging_engine::admin::grant_ip(&domains.bed.app, workspace, "203.0.113.8").await.unwrap();
    let pools = format!("/workspaces/{workspace}/ip-pools");
    let pool = domains.bed.post(&domains.caller, &pools, json!({"name": "news", "ips": ["203.0.113.8"]})).await;
    assert_eq!(found().await.0, "sources IP pools: ok", "no domain names the pool");
    let pool = pool["id"].as_str().unwrap();
    let path = domains.path(&format!("/{id}"));
    let named = domains.bed.patch(&domains.caller, &path, json!({"marketing_ip_pool_id": pool})).await;
    assert_eq!(named.summary(), "200");
    assert_eq!(found().await, ("sources IP pools: fault".to_owned(), "none for acme.test (pool news)".to_owned()));
    announce("203.0.113.8").await;
    assert_eq!(found().await.0, "sources IP pools: ok");
}
