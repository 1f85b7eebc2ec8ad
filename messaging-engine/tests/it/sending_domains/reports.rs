//! Reports about sending domains, from the socket to the verdict.

use std::net::SocketAddr;
use std::sync::Arc;

use messaging_transport::inbound::Inbound;
use messaging_transport::smtp_server::SmtpServerOptions;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use super::Domains;

const DMARC: &str = include_str!("../../../../messaging-transport/tests/samples/domain_reports/aggregate.xml");
const TLS: &str = include_str!("../../../../messaging-transport/tests/samples/domain_reports/tls.json");

/// An installation with the domain `example.com` that receives mail. The reporter `example.net` may send from loopback.
struct Receiving {
    domains: Domains,
    id: String,
    server: SocketAddr,
}

impl Receiving {
    async fn start() -> Self {
        let domains = Domains::start().await;
        let id = domains.add("example.com").await;
        domains.dns.set("TXT", "mx.service.test", &["v=spf1 a -all"]);
        domains.dns.set("A", "mx.service.test", &["192.0.2.1"]);
        domains.dns.set("TXT", "example.net", &["v=spf1 ip4:127.0.0.1 -all"]);
        domains.dns.set("TXT", "company-x.example", &["v=spf1 ip4:127.0.0.1 -all"]);
        domains.dns.set("PTR", "2001:db8::7", &["mail.sender.example"]);
        domains.dns.set("A", "mail.sender.example", &["2001:db8::7"]);
        // The owner of an address may give it a foreign name.
        domains.dns.set("PTR", "192.0.2.1", &["mail.sender.example"]);
        let options = SmtpServerOptions::returned_mail("mx.service.test");
        let server = Inbound::bind("127.0.0.1:0".parse().unwrap(), options).unwrap();
        let address = server.local_addr();
        tokio::spawn(server.run(Arc::new(domains.bed.app.clone()), std::future::pending()));
        Self { domains, id, server: address }
    }

    /// The address that the records of the domain name for reports of a kind.
    async fn address(&self, purpose: &str) -> String {
        let path = self.domains.path(&format!("/{}/records", self.id));
        let records = self.domains.bed.get(&self.domains.caller, &path).await.body;
        let record = records["data"].as_array().unwrap().iter().find(|record| record["purpose"] == purpose).unwrap();
        assert_eq!((&record["required"], &record["type"]), (&json!(false), &json!("TXT")));
        record["value"].as_str().unwrap().split_once("rua=mailto:").unwrap().1.to_owned()
    }

    /// Sends a report; returns the reply to the final dot, or to the recipient that was refused.
    async fn post(&self, from: &str, to: &str, media_type: &str, report: &str) -> String {
        let (reader, mut writer) = TcpStream::connect(self.server).await.unwrap().into_split();
        let mut replies = BufReader::new(reader).lines();
        let mut reply = String::new();
        let letter = format!("From: {from}\nSubject: Report\nContent-Type: {media_type}\n\n{report}");
        let letter = format!("{}\r\n.\r\n", letter.replace('\n', "\r\n"));
        let (mail, rcpt) = (format!("MAIL FROM:<{from}>\r\n"), format!("RCPT TO:<{to}>\r\n"));
        for command in ["", "HELO mx.example.net\r\n", &mail, &rcpt, "DATA\r\n", &letter] {
            writer.write_all(command.as_bytes()).await.unwrap();
            reply = replies.next_line().await.unwrap().unwrap();
            if reply.starts_with(['4', '5']) {
                break;
            }
        }
        reply
    }

    async fn dmarc(&self, query: &str) -> Value {
        let path = self.domains.path(&format!("/{}/dmarc{query}", self.id));
        let reply = self.domains.bed.get(&self.domains.caller, &path).await;
        assert_eq!(reply.summary(), "200");
        reply.body
    }
}

#[tokio::test]
async fn a_report_becomes_sources_and_a_verdict() {
    let receiving = Receiving::start().await;
    let address = receiving.address("dmarc").await;
    assert!(address.starts_with("dmarc+") && address.ends_with("@bounce.mx.service.test"), "{address}");
    let record = format!("v=DMARC1; p=none; rua=mailto:{address}");
    receiving.domains.dns.set("TXT", "_dmarc.example.com", &[&record]);
    let before = receiving.dmarc("").await;
    assert_eq!((&before["verdict"]["status"], &before["sources"]), (&json!("no_data"), &json!([])));
    // The same report twice counts once, even if the address is written in other letters.
    for to in [&address, &address.to_uppercase()] {
        let reply = receiving.post("dmarc-reports@example.net", to, "text/xml", DMARC).await;
        assert_eq!(reply, "250 2.0.0 noted");
    }
    let found = receiving.dmarc("").await;
    assert_eq!(
        found["totals"],
        json!({"messages": 55, "passed": 52, "failed": 3, "reports": 1, "unverified_reports": 0})
    );
    assert_eq!(
        found["policy"],
        json!({"record": record, "p": "none", "sp": null, "np": null, "t": null, "found_at": "_dmarc.example.com"})
    );
    let last_seen = "2026-01-01T23:59:59.000Z";
    assert_eq!(
        found["sources"],
        json!([
            {"ip": "2001:db8::7", "name": "mail.sender.example", "ours": false, "messages": 40, "spf": "fail",
             "dkim": "pass", "aligned": true, "disposition": "none", "reporters": ["example.net"], "last_seen": last_seen},
            {"ip": "192.0.2.1", "name": null, "ours": true, "messages": 12, "spf": "pass", "dkim": "pass",
             "aligned": true, "disposition": "none", "reporters": ["example.net"], "last_seen": last_seen},
            {"ip": "192.0.2.1", "name": null, "ours": true, "messages": 3, "spf": "pass", "dkim": "fail",
             "aligned": false, "disposition": "quarantine", "reporters": ["example.net"], "last_seen": last_seen},
        ])
    );
    assert_eq!(found["verdict"]["status"], "unsafe");
    assert!(found["verdict"]["text"].as_str().unwrap().starts_with("192.0.2.1 of this server sent 3 messages"));
    assert_eq!(found["verdict"]["next_record"], Value::Null);
    let later = receiving.dmarc("?since=2026-01-02T00:00:00Z&until=2026-01-31T00:00:00Z").await;
    assert_eq!(later["totals"]["messages"], 0);
}

#[tokio::test]
async fn a_stricter_policy_is_advised_when_all_mail_passes() {
    let receiving = Receiving::start().await;
    let address = receiving.address("dmarc").await;
    receiving.domains.dns.set("TXT", "_dmarc.example.com", &["v=DMARC1; p=none; rua=mailto:a@b.test"]);
    let all =
        DMARC.replace("<spf>fail</spf>", "<spf>pass</spf>").replace("quarantine</disposition>", "none</disposition>");
    assert_eq!(receiving.post("dmarc-reports@example.net", &address, "text/xml", &all).await, "250 2.0.0 noted");
    let verdict = receiving.dmarc("").await["verdict"].clone();
    let text =
        "All mail passes, from us (15) and from one other sender (mail.sender.example, 40). p=quarantine is safe.";
    let next = format!("v=DMARC1; p=quarantine; rua=mailto:a@b.test,mailto:{address}");
    assert_eq!(verdict, json!({"status": "ok", "text": text, "next_record": next}));
}

#[tokio::test]
async fn a_forged_report_counts_nowhere_and_displaces_no_genuine_one() {
    let receiving = Receiving::start().await;
    let address = receiving.address("dmarc").await;
    receiving.domains.dns.set("TXT", "forger.test", &["v=spf1 ip4:127.0.0.1 -all"]);
    let totals = async || receiving.dmarc("").await["totals"].clone();
    let sums = |messages: u64, passed: u64, reports: u64, unverified: u64| {
        let failed = messages - passed;
        json!({"messages": messages, "passed": passed, "failed": failed, "reports": reports, "unverified_reports": unverified})
    };
    for _ in 0..2 {
        assert_eq!(receiving.post("a@forger.test", &address, "text/xml", DMARC).await, "250 2.0.0 noted");
    }
    assert_eq!(totals().await, sums(0, 0, 0, 1));
    // Of the reporter, but from an address that may not send for it.
    receiving.domains.dns.set("TXT", "example.net", &["v=spf1 ip4:192.0.2.9 -all"]);
    let other = DMARC.replace("3v98", "other");
    assert_eq!(receiving.post("a@example.net", &address, "text/xml", &other).await, "250 2.0.0 noted");
    assert_eq!(totals().await, sums(0, 0, 0, 2));
    // While SPF cannot be checked, the sender has to try again later.
    receiving.domains.dns.set("TXT", "example.net", &["!"]);
    assert!(receiving.post("a@example.net", &address, "text/xml", DMARC).await.starts_with("451 "));
    assert_eq!(totals().await, sums(0, 0, 0, 2));
    receiving.domains.dns.set("TXT", "example.net", &["v=spf1 ip4:127.0.0.1 -all"]);
    assert_eq!(receiving.post("a@example.net", &address, "text/xml", DMARC).await, "250 2.0.0 noted");
    assert_eq!(totals().await, sums(55, 52, 1, 2));
}

#[tokio::test]
async fn rows_of_tls_reports_are_listed() {
    let receiving = Receiving::start().await;
    let address = receiving.address("tls_rpt").await;
    assert!(address.starts_with("tlsrpt+"), "{address}");
    let post = async || receiving.post("a@company-x.example", &address, "application/tlsrpt+json", TLS).await;
    assert_eq!((post().await, post().await), ("250 2.0.0 noted".to_owned(), "250 2.0.0 noted".to_owned()));
    let path = receiving.domains.path(&format!("/{}/tls-reports", receiving.id));
    let (bed, caller) = (&receiving.domains.bed, &receiving.domains.caller);
    let mut rows = bed.get(caller, &path).await.body["data"].as_array().unwrap().clone();
    rows.sort_by_key(|row| row["sessions"].as_u64());
    let row = |mx: &str, result: &str, sessions: u64, failures: u64| {
        json!({"day": "2026-01-01", "reporter": "company-x.example", "mx": mx, "result": result, "sessions": sessions,
               "failures": failures})
    };
    let expected = [
        row("*.mail.example.com", "unspecified", 3, 3),
        row("mx1.mail.example.com", "certificate-expired", 100, 100),
        row("mx2.mail.example.com", "starttls-not-supported", 200, 200),
        row("*.mail.example.com", "successful", 5326, 0),
    ];
    assert_eq!(rows, expected);
    let mut pages = 0;
    let mut next = format!("{path}?limit=3");
    loop {
        let page = bed.get(caller, &next).await.body;
        pages += 1;
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        next = format!("{path}?limit=3&cursor={cursor}");
    }
    assert_eq!(pages, 2);
}

#[tokio::test]
async fn what_is_no_report_is_refused() {
    let receiving = Receiving::start().await;
    let (dmarc, tls) = (receiving.address("dmarc").await, receiving.address("tls_rpt").await);
    let from = "a@example.net";
    let swapped = dmarc.replace("dmarc+", "tlsrpt+");
    let (local_part, _) = dmarc.split_once('@').unwrap();
    for to in [swapped.as_str(), &format!("{local_part}@mx.service.test"), "dmarc@bounce.mx.service.test"] {
        assert!(receiving.post(from, to, "text/xml", DMARC).await.starts_with("550 5.1.1"), "{to}");
    }
    for (to, report, words) in [
        (&dmarc, "I am away.", "no report is attached"),
        (&tls, DMARC, "no report is attached"),
        (&dmarc, &DMARC[..900], "damaged"),
        (&dmarc, "<?xml version=\"1.0\"?><!DOCTYPE a [<!ENTITY b \"c\">]><feedback/>", "entities"),
        (&dmarc, &DMARC.replace("<domain>example.com", "<domain>example.org"), "another domain"),
    ] {
        let reply = receiving.post(from, to, "text/xml", report).await;
        assert!(reply.starts_with("554 5.6.0") && reply.contains(words), "{reply}");
    }
    let long = format!("{}\n", "x".repeat(79)).repeat((11 << 20) / 80);
    assert!(receiving.post(from, &dmarc, "text/xml", &long).await.starts_with("552 5.3.4"));
    // Of another time.
    let old = DMARC.replace("17672256", "16672256");
    assert_eq!(receiving.post(from, &dmarc, "text/xml", &old).await, "250 2.0.0 noted");
    assert_eq!(receiving.dmarc("?since=2025-06-01T00:00:00Z").await["totals"]["reports"], 0);
    let path = receiving.domains.path(&format!("/{}", receiving.id));
    receiving.domains.bed.delete(&receiving.domains.caller, &path).await;
    assert!(receiving.post(from, &dmarc, "text/xml", DMARC).await.starts_with("550 5.1.1"));
}

#[tokio::test]
async fn the_period_has_bounds() {
    let receiving = Receiving::start().await;
    for query in ["since=2026-02-01T00:00:00Z", "since=2025-01-01T00:00:00Z&until=2026-01-02T00:00:01Z"] {
        let path = receiving.domains.path(&format!("/{}/dmarc?{query}", receiving.id));
        let reply = receiving.domains.bed.get(&receiving.domains.caller, &path).await;
        assert_eq!(reply.summary(), "422 since out_of_range", "{query}");
    }
    let path = receiving.domains.path("/dom_01JB3Q8Z5N6W7X8Y9ZABCDEFGH/dmarc");
    assert!(receiving.domains.bed.get(&receiving.domains.caller, &path).await.summary().starts_with("404"));
}
