//! Records are read back from the name servers of a zone, at real servers on loopback ports.
//!
//! Servers have public or documentation addresses in the DNS, and stand-ins on loopback.

use std::net::IpAddr;

use messaging_core::domain::mail::dns_record::RecordType;
use messaging_core::ports::name_servers::{NameServers as _, RecordQuestion, ServerAnswers};
use messaging_testing::{DnsFailure, TestDns};
use messaging_transport::auto_dns::ZoneServers;
use messaging_transport::{Dns, Options};

use super::list;

const PUBLIC: [&str; 2] = ["93.184.215.1", "93.184.215.2"];

/// Another address of the second server.
const PRIVATE: &str = "10.0.0.1";

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// The zone `acme.test` with two name servers, and a resolver that knows these but no other record of the zone.
struct Bed {
    resolver: TestDns,
    servers: [TestDns; 2],
}

impl Bed {
    async fn start() -> Self {
        let resolver = TestDns::start().await;
        let servers = [TestDns::start().await, TestDns::start().await];
        resolver.name_servers("acme.test", &["NS2.acme.test", "ns1.acme.test"]);
        for (name, address) in ["ns1.acme.test", "ns2.acme.test"].into_iter().zip(PUBLIC) {
            resolver.addresses(name, &[ip(address)]);
        }
        Self { resolver, servers }
    }

    fn asking(&self, allow_private: bool) -> ZoneServers {
        let options =
            Options { dns: Dns::new(Some(self.resolver.addr())), allow_private, ..Options::new("mx.service.test") };
        let [first, second] = self.servers.each_ref().map(TestDns::addr);
        let stand_ins = [(ip(PUBLIC[0]), first), (ip(PUBLIC[1]), second), (ip(PRIVATE), second)];
        ZoneServers::new(&options).stand_ins(stand_ins)
    }
}

fn question(host: &str, kind: RecordType) -> RecordQuestion {
    RecordQuestion { host: host.to_owned(), kind }
}

/// `ns1.acme.test: a | b; !why`, an answer for each question.
fn said(answered: &[ServerAnswers]) -> Vec<String> {
    let answer = |answer: &Result<Vec<String>, _>| match answer {
        Ok(values) => values.join(" | "),
        Err(messaging_core::ports::resolver::LookupError(why)) => format!("!{why}"),
    };
    let line = |one: &ServerAnswers| {
        format!("{}: {}", one.server, one.answers.iter().map(answer).collect::<Vec<_>>().join("; "))
    };
    answered.iter().map(line).collect()
}

#[tokio::test]
async fn every_name_server_is_asked_itself() {
    let bed = Bed::start().await;
    let questions = [
        question("bounce.acme.test", RecordType::Txt),
        question("bounce.acme.test", RecordType::Mx),
        question("links.acme.test", RecordType::Cname),
        question("links.acme.test", RecordType::Txt),
        question("nothing.acme.test", RecordType::Txt),
    ];
    for server in &bed.servers {
        server.txt("bounce.acme.test", &["v=spf1 -all", "note"]);
        server.mx("bounce.acme.test", &[(10, "MX.service.test")]);
        server.cname("links.acme.test", "track.service.test");
        // It is no record of the alias.
        server.txt("track.service.test", &["theirs"]);
    }
    bed.servers[1].txt("bounce.acme.test", &["older"]);
    let answered = bed.asking(false).ask("acme.test", &questions).await.unwrap();
    assert_eq!(
        said(&answered),
        [
            "ns1.acme.test: v=spf1 -all | note; 10 mx.service.test; track.service.test; ; ",
            "ns2.acme.test: older; 10 mx.service.test; track.service.test; ; ",
        ]
    );
    let asked = bed.resolver.queries();
    assert!(asked.iter().all(|(name, _)| name == "acme.test" || name.starts_with("ns")), "{asked:?}");
}

#[tokio::test]
async fn what_does_not_fit_a_datagram_comes_over_tcp() {
    let bed = Bed::start().await;
    let long = "x".repeat(3000);
    bed.servers[0].txt("k._domainkey.acme.test", &[&long]);
    let questions = [question("k._domainkey.acme.test", RecordType::Txt)];
    let answered = bed.asking(false).ask("acme.test", &questions).await.unwrap();
    assert_eq!(answered[0].answers[0].as_deref().unwrap(), list(&[&long]));
    assert_eq!(bed.servers[0].queries().len(), 2, "over UDP and TCP");
}

#[tokio::test]
async fn answers_without_authority_do_not_count() {
    let bed = Bed::start().await;
    for server in &bed.servers {
        server.txt("bounce.acme.test", &["v=spf1 -all"]);
    }
    bed.servers[0].fail("bounce.acme.test", DnsFailure::NotAuthoritative);
    bed.servers[1].fail("bounce.acme.test", DnsFailure::Refused);
    let questions = [question("bounce.acme.test", RecordType::Txt), question("acme.test", RecordType::Mx)];
    let answered = bed.asking(false).ask("acme.test", &questions).await.unwrap();
    assert!(answered.iter().all(|one| one.answers[0].is_err() && one.answers[1].is_ok()), "{answered:?}");
    let lines = said(&answered);
    assert!(lines[0].contains("authorit") && lines[1].to_ascii_uppercase().contains("REFUSED"), "{lines:?}");
}

#[tokio::test]
async fn servers_at_private_addresses_are_asked_only_where_that_is_permitted() {
    let bed = Bed::start().await;
    bed.resolver.name_servers("acme.test", &["ns2.acme.test"]);
    for server in &bed.servers {
        server.txt("bounce.acme.test", &["v=spf1 -all"]);
    }
    let questions = [question("bounce.acme.test", RecordType::Txt)];
    for addresses in [&[PRIVATE][..], &[PUBLIC[1], PRIVATE], &["127.0.0.1"], &["::1"], &["169.254.169.254", PUBLIC[0]]]
    {
        let addresses: Vec<_> = addresses.iter().map(|address| ip(address)).collect();
        bed.resolver.addresses("ns2.acme.test", &addresses);
        let answered = said(&bed.asking(false).ask("acme.test", &questions).await.unwrap());
        assert!(answered[0].contains("private") && answered[0].contains("--allow-private-targets"), "{answered:?}");
    }
    assert!(bed.servers.iter().all(|server| server.queries().is_empty()));
    bed.resolver.addresses("ns2.acme.test", &[ip(PRIVATE)]);
    assert_eq!(said(&bed.asking(true).ask("acme.test", &questions).await.unwrap()), ["ns2.acme.test: v=spf1 -all"]);
}

#[tokio::test]
async fn six_name_servers_are_asked_at_most() {
    let bed = Bed::start().await;
    let names: Vec<_> = (0..9).map(|number| format!("ns{number}.acme.test")).collect();
    for name in &names {
        bed.resolver.addresses(name, &[ip(PUBLIC[0])]);
    }
    bed.resolver.name_servers("acme.test", &names.iter().map(String::as_str).collect::<Vec<_>>());
    let answered = bed.asking(false).ask("acme.test", &[question("a.acme.test", RecordType::Txt)]).await.unwrap();
    assert_eq!(answered.iter().map(|one| one.server.as_str()).collect::<Vec<_>>(), names[..6]);
    assert_eq!(bed.servers[0].queries().len(), 6);
}

#[tokio::test]
async fn a_name_has_no_name_servers_of_the_zone_that_it_is_an_alias_of() {
    let bed = Bed::start().await;
    bed.resolver.cname("shop.example.test", "acme.test");
    let questions = [question("k._domainkey.shop.example.test", RecordType::Txt)];
    for zone in ["shop.example.test", "nowhere.test"] {
        assert!(bed.asking(true).ask(zone, &questions).await.is_err(), "{zone}");
    }
    assert!(bed.servers.iter().all(|server| server.queries().is_empty()));
}
