//! `doctor`: the real program, a DNS server that answers for everything, and mail servers on loopback.

use std::fs::{self, Permissions};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use messaging_core::domain::installation::checkup::CheckId;
use messaging_testing::{DnsFailure, TestDns};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

use crate::support::{Ran, Server, directory, run};

const HOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A mail server that greets.
async fn mail_server(greeting: &'static str) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(greeting.as_bytes()).await;
        }
    });
    address
}

/// A DNS in which all is right for a host that is this machine.
async fn sound_dns() -> TestDns {
    let dns = TestDns::start().await;
    dns.addresses("mx.service.test", &[HOST]);
    dns.names(HOST, &["mx.service.test"]);
    dns.txt("mx.service.test", &["v=spf1 ip4:127.0.0.0/8 -all"]);
    dns
}

/// The command on a data directory, with loopback as public as anything.
fn doctor(data: &Path, dns: &TestDns, more: &[&str]) -> Ran {
    let (data, resolver) = (data.to_str().unwrap(), dns.addr().to_string());
    let line = ["doctor", "--json", "--data", data, "--dns", &resolver, "--hostname", "mx.service.test"];
    run(line.iter().chain(&["--allow-private-targets"]).chain(more))
}

/// `status` of the checks of an id, such as `ok` or `ok fault`.
fn status(report: &Value, id: &str) -> String {
    let checks = report["checks"].as_array().unwrap().iter().filter(|check| check["id"] == id);
    checks.map(|check| check["status"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn expect(report: &Value, expected: &[(&str, &str)]) {
    for (id, wanted) in expected {
        assert_eq!(status(report, id), *wanted, "{id}: {report:#}");
    }
    for check in report["checks"].as_array().unwrap() {
        let is_well = check["status"] == "ok";
        assert!(is_well || !check["cure"].as_str().unwrap().is_empty(), "without a cure: {check}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sound_installation_is_ok_and_each_fault_is_told_with_its_cure() {
    let (dns, data) = (sound_dns().await, directory());
    let resolver = dns.addr().to_string();
    let settings = [
        "--dns",
        &resolver,
        "--hostname",
        "mx.service.test",
        "--smtp-listen",
        "127.0.0.1:0",
        "--allow-private-targets",
    ];
    let server = Server::start("dev", data.path(), &settings);
    let created = server.command(&["domain", "create", "--domain", "acme.test", "--json"]).expect(0).json();
    for key in created["dkim"].as_array().unwrap().iter().chain([&created["dmarc"], &created["spf"]]) {
        dns.txt(key["host"].as_str().unwrap(), &[key["record"].as_str().unwrap()]);
    }
    dns.mx("bounce.acme.test", &[(10, "mx.service.test")]);
    let door = mail_server("220 door.test ESMTP\r\n").await.to_string();
    let more = ["--mx-override", &door, "--blocklists", "bl.test"];
    let sound = doctor(data.path(), &dns, &more).expect(0).json();
    assert_eq!(sound["ok"], true, "{sound:#}");
    expect(
        &sound,
        &[
            ("name", "ok"),
            ("address", "ok"),
            ("ptr", "ok"),
            ("spf", "ok"),
            ("port25_out", "ok"),
            ("inbound", "ok"),
            ("tls", "warning"),
            ("clock", "skipped"),
            ("files", "ok"),
            ("secret_key", "ok"),
            ("resolver", "ok"),
            ("blocklist", "ok"),
            // `acme.test` and the domain that `dev` made up.
            ("dkim", "ok skipped"),
            ("return_path", "ok skipped"),
            ("dmarc", "ok skipped"),
            ("alignment", "ok skipped"),
            ("one_click", "warning skipped"),
        ],
    );
    for check in sound["checks"].as_array().unwrap() {
        let members: Vec<_> = check.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(members.len(), 7, "{check}");
        for member in ["id", "subject", "status", "found", "wanted", "text", "cure"] {
            assert!(check[member].is_string(), "{member} of {check}");
        }
    }
    // For people.
    let (data_path, address) = (data.path().to_str().unwrap(), dns.addr().to_string());
    let line =
        ["doctor", "--data", data_path, "--dns", &address, "--hostname", "mx.service.test", "--allow-private-targets"];
    let shown = run(line).expect(0).stdout;
    assert!(shown.contains("ok       ptr") && shown.contains("cure: messaging doctor --probe DOMAIN"), "{shown}");

    // Wrong names and records, a closed door, a listed address.
    dns.names(HOST, &["wrong.test"]);
    dns.txt("mx.service.test", &["v=spf1 ip4:127.0.0.0/8 -all", "v=spf1 -all"]);
    dns.addresses("1.0.0.127.bl.test", &["127.0.0.2".parse().unwrap()]);
    dns.fail("_dmarc.acme.test", DnsFailure::ServFail);
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap().local_addr().unwrap().to_string();
    assert_eq!(server.stop(), Some(0));
    let more = ["--mx-override", &closed, "--blocklists", "bl.test", "--smtp-listen", "127.0.0.1:0"];
    let broken = doctor(data.path(), &dns, &more).expect(1);
    assert!(broken.stderr.contains("faults"), "{}", broken.stderr);
    let broken = broken.json();
    assert_eq!(broken["ok"], false);
    expect(
        &broken,
        &[
            ("ptr", "fault"),
            ("spf", "fault"),
            ("port25_out", "fault"),
            // No server runs any more.
            ("inbound", "skipped"),
            ("blocklist", "fault"),
            ("return_path", "fault skipped"),
            ("dmarc", "fault skipped"),
            ("dkim", "ok skipped"),
        ],
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_keys_and_space_are_told_as_they_are_and_left_alone() {
    let (dns, data) = (sound_dns().await, directory());
    assert_eq!(Server::start("dev", data.path(), &["--hostname", "mx.service.test"]).stop(), Some(0));
    let key = data.path().join("secret.key");
    fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
    let open = doctor(data.path(), &dns, &[]).expect(1).json();
    expect(&open, &[("files", "fault"), ("secret_key", "ok"), ("disk", "ok")]);
    let files = open["checks"].as_array().unwrap().iter().find(|check| check["id"] == "files").unwrap();
    assert!(files["cure"].as_str().unwrap().contains("chmod 600"), "{files}");
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o644, "nothing is repaired");
    fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();

    let full = doctor(data.path(), &dns, &["--disk-reserve", "9000000000000000000"]).expect(1).json();
    expect(&full, &[("files", "ok"), ("disk", "fault")]);

    // Without the key the domains are not read, and the rest is.
    let own = fs::read(&key).unwrap();
    fs::write(&key, [7; 32]).unwrap();
    let other = doctor(data.path(), &dns, &[]).expect(1).json();
    expect(&other, &[("secret_key", "fault"), ("dkim", "skipped"), ("ptr", "ok"), ("files", "ok")]);
    fs::remove_file(&key).unwrap();
    let none = doctor(data.path(), &dns, &[]).expect(1).json();
    expect(&none, &[("secret_key", "fault"), ("resolver", "ok")]);
    assert!(!key.exists(), "no key is made");
    fs::write(&key, own).unwrap();
    fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
    expect(&doctor(data.path(), &dns, &[]).expect(0).json(), &[("secret_key", "ok")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_installation_the_host_is_looked_at_and_nothing_is_made() {
    let (dns, place) = (sound_dns().await, directory());
    let data = place.path().join("nowhere");
    let report = doctor(&data, &dns, &[]).expect(0).json();
    expect(&report, &[("name", "ok"), ("files", "skipped"), ("secret_key", "skipped"), ("spf", "ok"), ("dkim", "")]);
    assert!(!data.exists());
    // A name that cannot be looked up, and a DNS that does not answer.
    let (data, resolver) = (data.to_str().unwrap(), dns.addr().to_string());
    let line = ["doctor", "--json", "--data", data, "--dns", &resolver, "--hostname", "vm"];
    let unnamed = run(line).expect(1).json();
    expect(&unnamed, &[("name", "fault"), ("address", "skipped"), ("spf", "skipped"), ("resolver", "ok")]);
    for name in [".", "mx.service.test"] {
        dns.fail(name, DnsFailure::Silence);
    }
    let silent = doctor(Path::new(data), &dns, &[]).expect(1).json();
    expect(&silent, &[("resolver", "fault"), ("address", "fault"), ("spf", "fault"), ("disk", "ok")]);
    run(["doctor", "--probe", "http://x", "--data", data]).expect(2);
}

#[test]
fn every_check_stands_in_the_table_with_its_cure() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/doctor.md")).unwrap();
    for id in CheckId::OF_HOST.into_iter().chain(CheckId::OF_DOMAIN) {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{}` |", id.as_str())));
        let row = row.unwrap_or_else(|| panic!("no row of {id:?}"));
        let columns: Vec<_> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        assert!(columns.len() == 3 && columns.iter().all(|column| !column.is_empty()), "{row}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_that_cannot_be_used_is_a_fault() {
    let (dns, place) = (sound_dns().await, directory());
    let data = place.path().join("data");
    let nowhere = data.join("nowhere.pem");
    let nowhere = nowhere.to_str().unwrap();
    let report = doctor(&data, &dns, &["--tls-cert", nowhere, "--tls-key", nowhere]).expect(1).json();
    expect(&report, &[("certificate", "fault")]);
    assert!(report.to_string().contains("nowhere.pem"), "{report:#}");
    expect(&doctor(&data, &dns, &[]).expect(0).json(), &[("certificate", "skipped")]);
}
