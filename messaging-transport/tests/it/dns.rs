use std::net::IpAddr;

use messaging_core::ports::resolver::Resolver;
use messaging_testing::{DnsFailure, TestDns};
use messaging_transport::Dns;
use messaging_transport::dns::LookupFailure;

async fn bed() -> (TestDns, Dns) {
    let server = TestDns::start().await;
    let dns = Dns::new(Some(server.addr()));
    (server, dns)
}

fn ips(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[tokio::test]
async fn mail_exchangers_come_by_preference() {
    let (server, dns) = bed().await;
    server.mx("acme.test", &[(20, "b.acme.test"), (10, "Z.Acme.test"), (20, "a.acme.test")]);
    server.mx("nothing.test", &[(0, ".")]);
    let hosts = [(10, "z.acme.test"), (20, "a.acme.test"), (20, "b.acme.test")];
    let hosts: Vec<_> = hosts.map(|(preference, host)| (preference, host.to_owned())).into();
    assert_eq!(dns.mx("acme.test").await, Ok(hosts.clone()));
    assert_eq!(Resolver::mx(&dns, "ACME.test").await.unwrap(), hosts);
    assert_eq!(dns.mx("nothing.test").await, Ok(vec![(0, String::new())]), "the null MX");
}

#[tokio::test]
async fn addresses_of_both_kinds_are_found_behind_an_alias() {
    let (server, dns) = bed().await;
    server.addresses("mx.acme.test", &ips(&["192.0.2.1", "2001:db8::1", "192.0.2.2"]));
    server.cname("alias.acme.test", "mx.acme.test");
    for name in ["mx.acme.test", "alias.acme.test"] {
        assert_eq!(dns.addresses(name).await, Ok(ips(&["2001:db8::1", "192.0.2.1", "192.0.2.2"])));
    }
    assert_eq!(dns.cname("alias.acme.test").await.unwrap().as_deref(), Some("mx.acme.test"));
    assert_eq!(dns.cname("mx.acme.test").await.unwrap(), None);
}

#[tokio::test]
async fn the_ways_of_not_finding_are_told_apart() {
    let (server, dns) = bed().await;
    server.addresses("host.acme.test", &ips(&["192.0.2.1"]));
    for (name, expected) in [
        ("nowhere.test", LookupFailure::NoSuchDomain),
        ("host.acme.test", LookupFailure::NoRecords),
        ("acme.test", LookupFailure::NoRecords),
        ("not a name..", LookupFailure::NoSuchDomain),
    ] {
        assert_eq!(dns.mx(name).await, Err(expected), "{name}");
        assert_eq!(Resolver::mx(&dns, name).await.unwrap(), [], "{name}");
    }
    assert_eq!(dns.addresses("nowhere.test").await, Err(LookupFailure::NoSuchDomain));
    assert_eq!(dns.addresses("acme.test").await, Err(LookupFailure::NoRecords));
    for failure in [DnsFailure::ServFail, DnsFailure::Refused] {
        server.fail("acme.test", failure);
        assert!(matches!(dns.mx("acme.test").await, Err(LookupFailure::Temporary(_))), "{failure:?}");
        assert!(dns.txt("acme.test").await.is_err(), "{failure:?}");
        assert!(matches!(dns.addresses("acme.test").await, Err(LookupFailure::Temporary(_))), "{failure:?}");
    }
    server.recover("acme.test");
    server.mx("acme.test", &[(5, "host.acme.test")]);
    assert_eq!(dns.mx("acme.test").await.unwrap().len(), 1, "a failure is not remembered");
}

#[tokio::test]
async fn routing_asks_once_and_verification_every_time() {
    let (server, dns) = bed().await;
    server.mx("acme.test", &[(10, "a.test")]);
    for _ in 0..2 {
        assert_eq!(dns.mx("acme.test").await, Ok(vec![(10, "a.test".to_owned())]));
    }
    assert_eq!(server.queries().len(), 1);
    server.mx("acme.test", &[(10, "b.test")]);
    assert_eq!(dns.mx("acme.test").await, Ok(vec![(10, "a.test".to_owned())]));
    for host in ["c.test", "d.test"] {
        server.mx("acme.test", &[(10, host)]);
        assert_eq!(Resolver::mx(&dns, "acme.test").await.unwrap(), [(10, host.to_owned())]);
    }
}

#[tokio::test]
async fn a_long_text_is_whole() {
    let (server, dns) = bed().await;
    let long = "x".repeat(2_000);
    server.txt("acme.test", &[&long, "v=spf1 -all"]);
    let mut found = dns.txt("acme.test").await.unwrap();
    found.sort();
    assert_eq!(found, ["v=spf1 -all", &long]);
}

#[tokio::test]
async fn an_address_has_the_names_that_the_server_knows() {
    let (server, dns) = bed().await;
    for address in ["192.0.2.1", "2001:db8::1", "127.0.0.1", "::1"] {
        let address = address.parse().unwrap();
        assert_eq!(dns.names(address).await.unwrap(), Vec::<String>::new(), "{address}");
        server.names(address, &["MX.One.test.", "two.test"]);
        let mut names = dns.names(address).await.unwrap();
        names.sort();
        assert_eq!(names, ["mx.one.test", "two.test"], "{address}");
    }
    server.fail("1.0.0.127.in-addr.arpa", DnsFailure::ServFail);
    dns.names("127.0.0.1".parse().unwrap()).await.unwrap_err();
}
