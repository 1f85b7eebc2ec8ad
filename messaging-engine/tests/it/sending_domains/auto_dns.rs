//! Records that are written where the zone is hosted.

use std::sync::Arc;
use std::time::Duration;

use messaging_core::domain::mail::auto_dns::{DnsProviderName, HostRecords};
use messaging_core::domain::mail::dns_record::RecordType;
use messaging_core::ports::clock::SeededEntropy;
use messaging_core::ports::dns_provider::{DnsProvider, DnsProviderError};
use messaging_core::ports::name_servers::{NameServers, NoNameServers};
use messaging_engine::caller::Caller;
use messaging_engine::{App, Settings};
use messaging_testing::MemoryDnsProvider;
use serde_json::{Value, json};

use super::Domains;
use crate::bed::{KEY, PUBLIC_URL, Reply};

const TOKEN: &str = "token-of-acme";

/// Domains whose DNS answers come from a provider's zone, through the resolver: its name servers cannot be asked.
async fn hosted() -> (Domains, MemoryDnsProvider) {
    hosted_with(|_| Arc::new(NoNameServers)).await
}

/// Domains whose DNS is what a provider has in its zone, as its name servers have it; resolvers remember that nothing
/// was there.
async fn hosted_by_name_servers() -> (Domains, MemoryDnsProvider) {
    let (domains, zone) = hosted_with(|zone| Arc::new(zone.clone())).await;
    *domains.dns.zone.lock().unwrap() = None;
    (domains, zone)
}

async fn hosted_with(
    name_servers: impl FnOnce(&MemoryDnsProvider) -> Arc<dyn NameServers>,
) -> (Domains, MemoryDnsProvider) {
    let mut domains = Domains::start().await;
    let zone = MemoryDnsProvider::new("acme.test", TOKEN);
    *domains.dns.zone.lock().unwrap() = Some(zone.clone());
    domains.dns.set("TXT", "mx.service.test", &["v=spf1 a -all"]);
    domains.dns.set("A", "mx.service.test", &["192.0.2.1"]);
    let settings = Settings::default().hostname("mx.service.test").public_url(PUBLIC_URL).message_retry_jitter(0);
    domains.bed.app = App::builder(Arc::clone(&domains.bed.store), KEY)
        .clock(Arc::clone(&domains.bed.clock) as _)
        .entropy(Arc::new(SeededEntropy::new(18)))
        .resolver(Arc::clone(&domains.dns) as _)
        .name_servers(name_servers(&zone))
        .dns_providers([(DnsProviderName::Hetzner, Arc::new(zone.clone()) as Arc<dyn DnsProvider>)])
        .settings(settings)
        .build()
        .await
        .unwrap();
    (domains, zone)
}

fn body(more: Value) -> Value {
    let mut body = json!({"provider": "hetzner", "credentials": {"api_token": TOKEN}});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

async fn post(domains: &Domains, id: &str, body: Value) -> Reply {
    domains.bed.post(&domains.caller, &domains.path(&format!("/{id}/auto-dns")), body).await
}

/// `create TXT host done`, a line for each change.
fn story(reply: &Reply) -> String {
    let line = |change: &Value| {
        let text = |member: &str| change[member].as_str().unwrap().to_owned();
        let done = if change["done"] == true { "done" } else { "open" };
        format!("{} {} {} {done}", text("action"), text("type"), text("host"))
    };
    reply["changes"].as_array().unwrap().iter().map(line).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn the_records_are_written_and_the_domain_is_verified() {
    let (domains, zone) = hosted().await;
    let id = domains.add("acme.test").await;
    zone.set("bounce.acme.test", RecordType::Txt, &["note", "v=spf1 ip4:192.0.2.9 -all"]);
    zone.set("_dmarc.acme.test", RecordType::Txt, &["v=DMARC1; p=reject"]);
    let dry = post(&domains, &id, body(json!({"dry_run": true}))).await;
    assert_eq!((dry.summary().as_str(), zone.writes()), ("200", 0));
    assert_eq!(dry["domain"], domains.get(&id).await);
    insta::assert_snapshot!(story(&dry), @r"
    create TXT mk01234567._domainkey.acme.test open
    update TXT bounce.acme.test open
    keep TXT _dmarc.acme.test done
    create MX bounce.acme.test open
    create TXT _smtp._tls.acme.test open
    create CNAME links.acme.test open
    ");
    let written = post(&domains, &id, body(json!({}))).await;
    assert_eq!(written.summary(), "200");
    insta::assert_snapshot!(story(&written), @r"
    create TXT mk01234567._domainkey.acme.test done
    update TXT bounce.acme.test done
    keep TXT _dmarc.acme.test done
    create MX bounce.acme.test done
    create TXT _smtp._tls.acme.test done
    create CNAME links.acme.test done
    ");
    assert_eq!(written["domain"]["status"], "verified");
    assert_eq!(written["domain"], domains.get(&id).await);
    assert_eq!(
        zone.values("bounce.acme.test", RecordType::Txt),
        ["note", "v=spf1 ip4:192.0.2.9 include:mx.service.test -all"]
    );
    assert_eq!(zone.values("_dmarc.acme.test", RecordType::Txt), ["v=DMARC1; p=reject"]);
    assert_eq!(zone.values("bounce.acme.test", RecordType::Mx), ["10 mx.service.test"]);
    assert_eq!(zone.values("links.acme.test", RecordType::Cname), ["track.service.test"]);
    // Idempotent.
    let writes = zone.writes();
    let again = post(&domains, &id, body(json!({}))).await;
    assert!(again["changes"].as_array().unwrap().iter().all(|change| change["action"] == "keep"));
    assert_eq!(zone.writes(), writes);
    assert_eq!(domains.stored(&id).await.dns_account, None, "nothing is kept unasked");
}

/// `TXT host verified by name_servers`, with what differs; a line for each change.
fn seen(reply: &Reply) -> String {
    let line = |change: &Value| {
        let read = &change["read_back"];
        let place = format!("{} {}", change["type"].as_str().unwrap(), change["host"].as_str().unwrap());
        match (read["status"].as_str(), read["asked"].as_str()) {
            (Some(status), Some(asked)) if read["differences"] == json!([]) => format!("{place} {status} by {asked}"),
            (Some(status), Some(asked)) => format!("{place} {status} by {asked} {}", read["differences"]),
            _ => format!("{place} {read}"),
        }
    };
    reply["changes"].as_array().unwrap().iter().map(line).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn records_are_read_back_from_the_name_servers_of_the_zone() {
    let (domains, zone) = hosted_by_name_servers().await;
    let id = domains.add("acme.test").await;
    zone.set("links.acme.test", RecordType::Cname, &["elsewhere.test"]);
    let dry = post(&domains, &id, body(json!({"dry_run": true}))).await;
    assert!(dry["changes"].as_array().unwrap().iter().all(|change| change["read_back"] == Value::Null));
    let written = post(&domains, &id, body(json!({}))).await;
    insta::assert_snapshot!(seen(&written), @r"
    TXT mk01234567._domainkey.acme.test verified by name_servers
    TXT bounce.acme.test verified by name_servers
    TXT _dmarc.acme.test verified by name_servers
    MX bounce.acme.test verified by name_servers
    TXT _smtp._tls.acme.test verified by name_servers
    CNAME links.acme.test null
    ");
    assert_eq!(written["changes"][0]["read_back"]["detail"], Value::Null);
    let domain = &written["domain"];
    assert_eq!((&domain["status"], &domain["dmarc"]["status"]), (&json!("verified"), &json!("verified")));
    assert_eq!(domain["return_path"]["status"], "verified");
    assert_eq!(*domain, domains.get(&id).await);
}

#[tokio::test]
async fn a_name_server_without_the_records_is_named() {
    let (domains, zone) = hosted_by_name_servers().await;
    let id = domains.add("acme.test").await;
    let older = HostRecords { txt: vec!["note".to_owned()], ..HostRecords::default() };
    zone.lag("ns2", "bounce.acme.test", Some(older));
    // One that does not answer holds nothing up.
    zone.lag("ns1", "mk01234567._domainkey.acme.test", None);
    let written = post(&domains, &id, body(json!({}))).await;
    insta::assert_snapshot!(seen(&written), @r#"
    TXT mk01234567._domainkey.acme.test verified by name_servers
    TXT bounce.acme.test differs by name_servers [{"server":"ns2.acme.test","values":["note"]}]
    TXT _dmarc.acme.test verified by name_servers
    MX bounce.acme.test differs by name_servers [{"server":"ns2.acme.test","values":[]}]
    TXT _smtp._tls.acme.test verified by name_servers
    CNAME links.acme.test verified by name_servers
    "#);
    assert!(written["changes"].as_array().unwrap().iter().all(|change| change["done"] == true));
    let domain = &written["domain"];
    assert_eq!((&domain["status"], &domain["spf"]["status"]), (&json!("pending"), &json!("pending")));
    assert_eq!(domain["dkim"][0]["status"], "verified");
    zone.catch_up();
    let again = post(&domains, &id, body(json!({}))).await;
    assert!(again["changes"].as_array().unwrap().iter().all(|change| change["action"] == "keep"));
    assert!(seen(&again).lines().all(|line| line.ends_with("verified by name_servers")), "{}", seen(&again));
    assert_eq!(again["domain"]["status"], "verified");
}

#[tokio::test]
async fn a_resolver_is_asked_where_no_name_server_answers() {
    let (domains, zone) = hosted_by_name_servers().await;
    let id = domains.add("acme.test").await;
    *domains.dns.zone.lock().unwrap() = Some(zone.clone());
    for server in ["ns1", "ns2"] {
        for host in ["bounce.acme.test", "_dmarc.acme.test", "links.acme.test"] {
            zone.lag(server, host, None);
        }
    }
    domains.dns.set("TXT", "_dmarc.acme.test", &[]);
    domains.dns.set("CNAME", "links.acme.test", &["!"]);
    let written = post(&domains, &id, body(json!({}))).await;
    insta::assert_snapshot!(seen(&written), @r#"
    TXT mk01234567._domainkey.acme.test verified by name_servers
    TXT bounce.acme.test verified by resolver
    TXT _dmarc.acme.test differs by resolver [{"server":null,"values":[]}]
    MX bounce.acme.test verified by resolver
    TXT _smtp._tls.acme.test verified by name_servers
    CNAME links.acme.test unanswered by resolver
    "#);
    let detail = |place: usize| written["changes"][place]["read_back"]["detail"].as_str().unwrap();
    assert!(detail(1).contains("(ns1.acme.test: no answer in time)"), "{}", detail(1));
    assert!(detail(5).contains("(the server answered SERVFAIL)"), "{}", detail(5));
    assert_eq!(written["domain"]["status"], "verified");
    // Nobody has told this application how to ask name servers.
    let (domains, _) = hosted().await;
    let id = domains.add("acme.test").await;
    let written = post(&domains, &id, body(json!({}))).await;
    assert!(seen(&written).lines().all(|line| line.ends_with("verified by resolver")), "{}", seen(&written));
}

#[tokio::test]
async fn new_keys_sign_once_name_servers_have_them() {
    let (domains, zone) = hosted_by_name_servers().await;
    let id = domains.create(json!({"domain": "acme.test"})).await["id"].as_str().unwrap().to_owned();
    assert_eq!(post(&domains, &id, body(json!({"keep": true}))).await["domain"]["status"], "verified");
    let rotated = domains.act(&id, "rotate-dkim").await.body;
    let new = rotated["dkim"][2]["host"].as_str().unwrap();
    zone.lag("ns1", new, Some(HostRecords::default()));
    domains.bed.app.run_until_idle().await.unwrap();
    let statuses = async || -> Vec<Value> {
        domains.get(&id).await["dkim"].as_array().unwrap().iter().map(|key| key["status"].clone()).collect()
    };
    assert_eq!(statuses().await, ["verified", "verified", "pending", "verified"]);
    zone.catch_up();
    domains.bed.clock.advance(Duration::from_mins(2));
    domains.bed.app.run_until_idle().await.unwrap();
    assert_eq!(statuses().await, ["verified"; 4]);
}

#[tokio::test]
async fn no_weaker_policy_is_published_below_another() {
    let (domains, zone) = hosted().await;
    zone.set("_dmarc.mail.acme.test", RecordType::Txt, &["v=DMARC1; p=reject"]);
    let id = domains.add("news.mail.acme.test").await;
    let written = post(&domains, &id, body(json!({}))).await;
    let host = "_dmarc.news.mail.acme.test";
    let change = written["changes"].as_array().unwrap().iter().find(|change| change["host"] == host).unwrap();
    assert_eq!(change["action"], "keep");
    assert!(change["detail"].as_str().unwrap().contains("The DMARC policy of mail.acme.test covers"), "{change}");
    assert!(zone.values(host, RecordType::Txt).is_empty());
}

#[tokio::test]
async fn records_that_another_workspace_needs_are_not_removed() {
    let (domains, zone) = hosted().await;
    let id = domains.add("acme.test").await;
    post(&domains, &id, body(json!({"keep": true}))).await;
    let other =
        messaging_engine::admin::create_workspace(&domains.bed.app, "Other", "owner@acme.com").await.unwrap().id;
    let (caller, path) = (Caller::Operator(Some(other)), format!("/workspaces/{other}/sending-domains"));
    let namesake = domains.bed.post(&caller, &path, json!({"domain": "acme.test"})).await;
    let namesake = namesake["id"].as_str().unwrap().to_owned();
    let second = domains.bed.post(&caller, &format!("{path}/{namesake}/auto-dns"), body(json!({}))).await;
    assert_eq!(second["domain"]["status"], "verified");
    let records = domains.path(&format!("/{id}/auto-dns?records=true"));
    assert_eq!(domains.bed.delete(&domains.caller, &records).await.summary(), "204");
    assert_eq!(zone.values("bounce.acme.test", RecordType::Mx), ["10 mx.service.test"]);
    for host in ["bounce.acme.test", "_dmarc.acme.test", "_smtp._tls.acme.test"] {
        assert_eq!(zone.values(host, RecordType::Txt).len(), 1, "{host}");
    }
    let theirs = second["domain"]["dkim"][0]["host"].as_str().unwrap();
    assert_eq!(zone.values(theirs, RecordType::Txt).len(), 1);
    assert!(zone.values("mk01234567._domainkey.acme.test", RecordType::Txt).is_empty());
}

#[tokio::test]
async fn a_conflict_stops_nothing_else() {
    let (domains, zone) = hosted().await;
    let id = domains.add("acme.test").await;
    zone.set("links.acme.test", RecordType::Cname, &["elsewhere.test"]);
    let written = post(&domains, &id, body(json!({}))).await;
    let tracking = &written["changes"][5];
    assert_eq!((&tracking["action"], &tracking["done"]), (&json!("conflict"), &json!(false)));
    assert!(tracking["detail"].as_str().unwrap().contains("is an alias of elsewhere.test"));
    assert_eq!(zone.values("links.acme.test", RecordType::Cname), ["elsewhere.test"]);
    assert_eq!(written["domain"]["status"], "verified");
}

#[tokio::test]
async fn what_a_provider_refuses_is_told_in_its_words() {
    let (domains, zone) = hosted().await;
    let id = domains.add("acme.test").await;
    let foreign = domains.add("elsewhere.test").await;
    let violation = |reply: &Reply| {
        let error = &reply["error"]["details"]["errors"][0];
        format!("{} {} {}", error["pointer"].as_str().unwrap(), error["code"].as_str().unwrap(), error["message"])
    };
    let wrong = post(&domains, &id, body(json!({"credentials": {"api_token": "another"}}))).await;
    assert_eq!(violation(&wrong), "/credentials not_allowed \"Invalid API token\"");
    let none = post(&domains, &foreign, body(json!({}))).await;
    assert!(violation(&none).starts_with("/provider not_found "), "{}", violation(&none));
    let unknown = post(&domains, &id, body(json!({"provider": "cloudflare"}))).await;
    assert!(violation(&unknown).starts_with("/provider not_allowed "));
    let mixed = body(json!({"credentials": {"access_key_id": "A"}}));
    let mixed = post(&domains, &id, mixed).await;
    assert_eq!(mixed["error"]["details"]["errors"].as_array().unwrap().len(), 2, "{}", mixed.body);
    zone.fail(Some(DnsProviderError::Away("503".to_owned())));
    let away = post(&domains, &id, body(json!({}))).await;
    assert!(away.summary().starts_with("503"), "{}", away.summary());
    zone.fail(Some(DnsProviderError::Later("429".to_owned(), Duration::from_mins(2))));
    let later = post(&domains, &id, body(json!({}))).await;
    assert_eq!((later.summary().starts_with("503"), later.retry_after), (true, Some(120)), "{}", later.summary());
    assert_eq!(zone.writes(), 0);
}

#[tokio::test]
async fn kept_credentials_publish_new_keys_and_take_old_ones_away() {
    let (domains, zone) = hosted().await;
    let created = domains.create(json!({"domain": "acme.test"})).await.body;
    let id = created["id"].as_str().unwrap().to_owned();
    let hosts = |domain: &Value| -> Vec<String> {
        domain["dkim"].as_array().unwrap().iter().map(|key| key["host"].as_str().unwrap().to_owned()).collect()
    };
    let old = hosts(&created);
    let kept = post(&domains, &id, body(json!({"keep": true}))).await;
    assert_eq!(kept["domain"]["status"], "verified");
    let sealed = domains.stored(&id).await.dns_account.unwrap().sealed;
    assert!(sealed.starts_with("sealed:1:") && !sealed.contains(TOKEN));
    assert!(!kept.body.to_string().contains(TOKEN));

    let rotated = domains.act(&id, "rotate-dkim").await.body;
    let new = hosts(&rotated)[2..].to_vec();
    assert!(new.iter().all(|host| zone.values(host, RecordType::Txt).is_empty()));
    domains.bed.app.run_until_idle().await.unwrap();
    assert!(new.iter().all(|host| zone.values(host, RecordType::Txt).len() == 1));
    let dkim = domains.get(&id).await["dkim"].clone();
    assert!(dkim.as_array().unwrap().iter().all(|key| key["status"] == "verified"), "{dkim}");

    domains.bed.clock.advance(Duration::from_hours(8 * 24));
    domains.bed.app.run_until_idle().await.unwrap();
    assert_eq!(hosts(&domains.get(&id).await), new);
    assert!(old.iter().all(|host| zone.values(host, RecordType::Txt).is_empty()), "the old records are gone");
    assert!(new.iter().all(|host| zone.values(host, RecordType::Txt).len() == 1));
    assert_eq!(domains.stored(&id).await.dns_account.unwrap().retired, []);
}

#[tokio::test]
async fn the_account_is_forgotten_and_only_our_records_are_removed() {
    let (domains, zone) = hosted().await;
    let id = domains.add("acme.test").await;
    let path = domains.path(&format!("/{id}/auto-dns"));
    let unkept = domains.bed.delete(&domains.caller, &format!("{path}?records=true")).await;
    assert!(unkept.summary().starts_with("409"), "{}", unkept.summary());
    assert_eq!(domains.bed.delete(&domains.caller, &path).await.summary(), "204");
    zone.set("bounce.acme.test", RecordType::Txt, &["note"]);
    zone.set("_dmarc.acme.test", RecordType::Txt, &["v=DMARC1; p=reject"]);
    post(&domains, &id, body(json!({"keep": true}))).await;
    let removed = domains.bed.delete(&domains.caller, &format!("{path}?records=true")).await;
    assert_eq!(removed.summary(), "204");
    assert_eq!(domains.stored(&id).await.dns_account, None);
    assert_eq!(zone.values("bounce.acme.test", RecordType::Txt), ["note"]);
    assert_eq!(zone.values("_dmarc.acme.test", RecordType::Txt), ["v=DMARC1; p=reject"]);
    for (host, kind) in [
        ("mk01234567._domainkey.acme.test", RecordType::Txt),
        ("bounce.acme.test", RecordType::Mx),
        ("links.acme.test", RecordType::Cname),
    ] {
        assert!(zone.values(host, kind).is_empty(), "{host}");
    }
}
