use messaging_core::ports::fetch::{Fetch as _, FetchError};
use messaging_testing::{DnsFailure, ScriptedHttpServer};
use messaging_transport::{Dns, GuardedFetch};

use super::{PUBLIC, Public, request};

#[tokio::test]
async fn a_public_host_is_called_by_its_name() {
    let public = Public::start().await;
    for url in ["https://acme.test/hook?a=1#b", "https://ACME.test./"] {
        assert_eq!(public.fetch(url).await.unwrap().status.as_u16(), 200, "{url}");
    }
    let requests = public.server.requests();
    assert_eq!((requests[0].target.as_str(), requests[0].header("host")), ("/hook?a=1", "acme.test"));
    assert!(public.dns.queries().iter().all(|(name, _)| name == "acme.test"));
}

#[tokio::test]
async fn the_literal_rules_hold_at_the_call_too() {
    let public = Public::start().await;
    for url in [
        "http://acme.test/",
        "https://user@acme.test/",
        "https://127.1/",
        "https://2130706433/",
        "https://[::ffff:127.0.0.1]/",
        "https://localhost/",
        "acme.test",
    ] {
        assert_eq!(public.fetch(url).await.unwrap_err(), FetchError::Blocked, "{url}");
    }
    assert!(public.server.requests().is_empty() && public.dns.queries().is_empty());
}

#[tokio::test]
async fn a_name_that_leads_inside_is_refused() {
    let public = Public::start().await;
    for address in [
        "127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "::1",
        "::ffff:10.0.0.1",
        "fd00::1",
        "64:ff9b::a00:1",
    ] {
        public.dns.addresses("inside.test", &[address.parse().unwrap()]);
        assert_eq!(public.fetch("https://inside.test/").await.unwrap_err(), FetchError::Blocked, "{address}");
        // One good address does not make the other one good.
        public.dns.addresses("inside.test", &[PUBLIC.parse().unwrap(), address.parse().unwrap()]);
        assert_eq!(public.fetch("https://inside.test/").await.unwrap_err(), FetchError::Blocked, "{address}");
    }
    public.dns.cname("alias.test", "inside.test");
    assert_eq!(public.fetch("https://alias.test/").await.unwrap_err(), FetchError::Blocked);
    assert!(public.server.requests().is_empty());
}

#[tokio::test]
async fn an_answer_that_turns_private_is_refused_although_a_connection_is_open() {
    let public = Public::start().await;
    assert!(public.fetch("https://acme.test/").await.is_ok());
    public.dns.addresses("acme.test", &["192.168.1.1".parse().unwrap()]);
    assert_eq!(public.fetch("https://acme.test/").await.unwrap_err(), FetchError::Blocked);
    public.dns.addresses("acme.test", &[PUBLIC.parse().unwrap()]);
    assert!(public.fetch("https://acme.test/").await.is_ok());
    assert_eq!(public.server.requests().len(), 2);
}

#[tokio::test]
async fn names_that_do_not_resolve_are_told() {
    let public = Public::start().await;
    assert_eq!(public.fetch("https://nowhere.test/").await.unwrap_err(), FetchError::Dns);
    public.dns.fail("acme.test", DnsFailure::ServFail);
    assert_eq!(public.fetch("https://acme.test/").await.unwrap_err(), FetchError::Dns);
}

#[tokio::test]
async fn a_host_has_to_prove_its_name() {
    let public = Public::start().await;
    public.dns.addresses("wrong.test", &[PUBLIC.parse().unwrap()]);
    assert_eq!(public.fetch("https://wrong.test/").await.unwrap_err(), FetchError::Tls);
    let stranger =
        GuardedFetch::builder(Dns::new(Some(public.dns.addr()))).connect_instead(public.server.address()).build();
    assert_eq!(stranger.fetch(request("https://acme.test/")).await.unwrap_err(), FetchError::Tls, "an unknown root");
    let plain = ScriptedHttpServer::start().await;
    let client = GuardedFetch::builder(Dns::new(Some(public.dns.addr()))).connect_instead(plain.address()).build();
    assert_eq!(client.fetch(request("https://acme.test/")).await.unwrap_err(), FetchError::Tls, "no TLS at all");
    assert!(public.server.requests().is_empty() && plain.requests().is_empty());
}

#[tokio::test]
async fn this_machine_is_called_where_that_is_allowed() {
    let server = ScriptedHttpServer::start().await;
    let fetch = GuardedFetch::builder(Dns::new(None)).allow_private(true).build();
    let port = server.address().port();
    for host in ["localhost", "127.0.0.1", "2130706433", "[::ffff:127.0.0.1]"] {
        let fetched = fetch.fetch(request(&format!("http://{host}:{port}/"))).await;
        assert!(fetched.is_ok(), "{host}: {fetched:?}");
    }
}
