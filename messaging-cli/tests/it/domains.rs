//! `domain`: from adding it to the first message, with a DNS server that answers for it.

use std::net::IpAddr;

use messaging_transport::testing::{DnsFailure, TestDns};
use serde_json::Value;

use crate::support::{Server, directory};

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("{pointer} in {value}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_domain_sends_once_its_records_are_published() {
    let dns = TestDns::start().await;
    let directory = directory();
    let resolver = dns.addr().to_string();
    let settings = ["--dns", &resolver, "--hostname", "mx.service.test", "--public-url", "https://track.service.test"];
    let server = Server::start("dev", directory.path(), &settings);
    let run = |arguments: &[&str]| server.command(&[arguments, &["--json"]].concat());
    let created = run(&["domain", "create", "--domain", "Acme.test", "--tracking-subdomain", "links"]).expect(0).json();
    let id = text(&created, "/id");
    let verify = || run(&["domain", "verify", id]).expect(0).json();
    let statuses = |domain: &Value| {
        [
            "/status",
            "/dkim/0/status",
            "/dkim/1/status",
            "/spf/status",
            "/dmarc/status",
            "/return_path/status",
            "/tracking/status",
        ]
        .map(|pointer| text(domain, pointer).to_owned())
        .join(" ")
    };
    let send = || {
        run(&[
            "message",
            "send",
            "--from-email",
            "shop@mail.acme.test",
            "--to",
            "ann@example.com",
            "--subject",
            "s",
            "--text",
            "t",
        ])
    };
    assert_eq!(statuses(&verify()), "pending pending pending pending pending pending pending");
    assert_eq!(text(&send().expect(1).json(), "/error/code"), "sender_domain_not_verified");

    // What people copy into their DNS.
    let records = server.command(&["domain", "records", id]).expect(0).stdout;
    for key in ["/dkim/0", "/dkim/1", "/spf", "/return_path", "/tracking"] {
        let shown = [text(&created, &format!("{key}/host")), text(&created, &format!("{key}/record"))];
        assert!(shown.iter().all(|shown| records.contains(shown)), "{shown:?} in {records}");
    }
    for key in ["/dkim/0", "/dkim/1", "/dmarc"] {
        dns.txt(text(&created, &format!("{key}/host")), &[text(&created, &format!("{key}/record"))]);
    }
    dns.mx("bounce.acme.test", &[(10, "MX.service.test")]);
    dns.fail("bounce.acme.test", DnsFailure::ServFail);
    let unanswered = verify();
    assert_eq!(statuses(&unanswered), "pending verified verified pending verified pending pending");
    assert!(text(&unanswered, "/spf/detail").contains("SERVFAIL"), "{unanswered}");

    dns.recover("bounce.acme.test");
    dns.txt("bounce.acme.test", &["v=spf1 include:mx.elsewhere.test ~all", "unrelated"]);
    let address: IpAddr = "192.0.2.1".parse().unwrap();
    dns.addresses("track.service.test", &[address]);
    dns.addresses("links.acme.test", &["192.0.2.2".parse().unwrap()]);
    let wrong = verify();
    assert_eq!(statuses(&wrong), "pending verified verified failed verified verified failed");
    assert!(text(&wrong, "/spf/detail").contains("include:mx.service.test"), "{wrong}");

    dns.txt("bounce.acme.test", &[text(&created, "/spf/record")]);
    dns.addresses("links.acme.test", &[address]);
    assert_eq!(statuses(&verify()), "verified verified verified verified verified verified verified");
    send().expect(0);

    dns.fail(text(&created, "/dkim/0/host"), DnsFailure::Refused);
    dns.fail(text(&created, "/dkim/1/host"), DnsFailure::Refused);
    dns.fail("bounce.acme.test", DnsFailure::Refused);
    assert_eq!(statuses(&verify()), "verified verified verified verified verified verified verified");
    run(&["domain", "delete", id]).expect(0);
    assert_eq!(text(&send().expect(1).json(), "/error/code"), "sender_domain_not_verified");
}

#[test]
fn what_cannot_be_a_resolver_is_refused() {
    let refused = crate::support::run(["serve", "--dns", "resolver.example.org"]).expect(2);
    assert!(refused.stderr.contains("--dns"), "{}", refused.stderr);
}
