//! `domain`: from adding it to the first message, with a DNS server that answers for it.

use std::net::IpAddr;

use messaging_testing::{DnsFailure, TestDns};
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

    // The values that people copy into their DNS.
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
    // The record includes the name of the server, which must let it send.
    let wrong = verify();
    assert_eq!(statuses(&wrong), "pending verified verified failed verified verified verified");
    assert!(text(&wrong, "/spf/detail").contains("mx.service.test, which has no SPF record itself"), "{wrong}");
    // The waiting command reports when the time is over, and when the domain is verified.
    let waited = run(&["domain", "verify", id, "--wait", "--timeout", "0"]).expect(1);
    assert_eq!(statuses(&waited.json()), statuses(&wrong));
    assert!(waited.stderr.contains("acme.test is pending: TXT bounce.acme.test:"), "{}", waited.stderr);
    run(&["domain", "verify", id, "--timeout", "x"]).expect(2);
    dns.txt("mx.service.test", &["v=spf1 a -all"]);
    dns.addresses("mx.service.test", &[address]);
    let waited = run(&["domain", "verify", id, "--wait", "--timeout", "60"]).expect(0).json();
    assert_eq!(text(&waited, "/status"), "verified");
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_a_name_that_can_be_looked_up_adds_no_domain() {
    let (dns, data) = (TestDns::start().await, directory());
    let resolver = dns.addr().to_string();
    let at = ["--data", data.path().to_str().unwrap(), "--json"];
    let serve = |hostname: &str| Server::start("serve", data.path(), &["--dns", &resolver, "--hostname", hostname]);
    let server = serve("vm");
    let admin = |line: &[&str]| crate::support::run([&["admin"][..], line, &at].concat()).expect(0).json();
    admin(&["create-user", "--email", "ann@example.com"]);
    let workspace = admin(&["create-workspace", "--name", "Acme", "--owner", "ann@example.com"]);
    let workspace = text(&workspace, "/id");
    let key = admin(&["create-key", "--workspace", workspace, "--name", "all", "--scopes", "*"]);
    let add = |server: &Server| {
        let path = format!("/v1/workspaces/{workspace}/sending-domains");
        server.request("POST", &path, text(&key, "/key"), &serde_json::json!({"domain": "acme.test"}))
    };
    let (status, refused) = add(&server);
    assert_eq!((status, text(&refused, "/error/code")), (409, "invalid_state"));
    assert_eq!(refused["error"]["details"], serde_json::json!({"setting": "hostname"}));
    assert_eq!(server.stop(), Some(0));
    // Neither does a command on the stopped installation.
    let create = [&["domain", "create", "--domain", "acme.test", "--workspace", workspace][..], &at].concat();
    let refused = crate::support::run(&create).expect(1).json();
    assert_eq!(refused["error"]["details"], serde_json::json!({"setting": "hostname"}));
    // Started with a name it has one.
    let server = serve("mx.service.test");
    let (status, created) = add(&server);
    assert_eq!((status, text(&created, "/spf/record")), (201, "v=spf1 include:mx.service.test ~all"));
}

#[test]
fn how_mail_arrives_is_told_in_a_sentence() {
    let directory = directory();
    let server = Server::start("dev", directory.path(), &[]);
    let sentence = "No email went to a mailbox provider in this time, so there is nothing to judge.";
    let told = server.command(&["deliverability", "--since", "7d", "--json"]).expect(0).json();
    assert_eq!(text(&told, "/summary"), sentence);
    assert_eq!(text(&told, "/domains/0/domain"), "sandbox.test");
    let shown = server.command(&["deliverability"]).expect(0).stdout;
    assert!(shown.contains("No email went") && shown.contains("sandbox.test"), "{shown}");
}
