//! Names in DNS records, and the domains that they may include.

use messaging_engine::{App, Settings, admin};
use serde_json::{Value, json};

use super::Domains;
use crate::bed::KEY;

/// Restarts the installation as a process with other settings, such as another hostname.
async fn named(domains: &mut Domains, settings: Settings) {
    domains.bed.app = App::builder(domains.bed.store.clone(), KEY)
        .clock(domains.bed.clock.clone())
        .resolver(domains.dns.clone())
        .settings(settings.public_url("https://track.service.test"))
        .build()
        .await
        .unwrap();
}

#[tokio::test]
async fn without_a_name_that_can_be_looked_up_no_domain_is_added() {
    let mut domains = Domains::start().await;
    let old = domains.add("old.test").await;
    named(&mut domains, Settings::default().hostname("vm")).await;
    domains.bed.app.prepare_to_work().await.unwrap();
    let refused = domains.create(json!({"domain": "acme.test"})).await;
    assert_eq!(refused.summary(), "409 invalid_state");
    assert_eq!(refused["error"]["details"], json!({"setting": "hostname"}));
    assert!(refused["error"]["message"].as_str().unwrap().contains("--hostname"), "{:?}", refused.body);
    // The records of a domain added before do not show the name either.
    let records = domains.bed.get(&domains.caller, &domains.path(&format!("/{old}/records"))).await.body.to_string();
    assert!(!records.contains("include:vm") && records.contains("include:hostname-not-set.invalid"), "{records}");
    let verified = domains.verify(&old).await;
    assert_eq!(verified["spf"]["status"], "pending");
    assert!(verified["spf"]["detail"].as_str().unwrap().contains("--hostname"), "{verified}");

    // A name that was set on purpose.
    admin::set_installation_name(&domains.bed.app, "mx.service.test").await.unwrap();
    let created = domains.create(json!({"domain": "acme.test"})).await;
    assert_eq!(created.summary(), "201");
    assert_eq!(created["spf"]["record"], "v=spf1 include:mx.service.test ~all");
    assert_eq!(created["return_path"]["record"], "10 mx.service.test");
}

#[tokio::test]
async fn the_first_name_that_can_be_looked_up_stays() {
    let mut domains = Domains::start().await;
    let id = domains.add("acme.test").await;
    for (hostname, expected) in [
        ("vm", "hostname-not-set.invalid"),
        ("MX.One.test", "mx.one.test"),
        ("mx.two.test", "mx.one.test"),
        ("vm", "mx.one.test"),
    ] {
        named(&mut domains, Settings::default().hostname(hostname)).await;
        domains.bed.app.prepare_to_work().await.unwrap();
        let shown = domains.get(&id).await;
        assert_eq!(shown["spf"]["record"], format!("v=spf1 include:{expected} ~all"), "{hostname}");
    }
}

#[tokio::test]
async fn for_trying_out_a_domain_needs_no_name() {
    let mut domains = Domains::start().await;
    named(&mut domains, Settings::default().hostname("vm").allow_unqualified_name(true)).await;
    let created = domains.create(json!({"domain": "acme.test"})).await;
    assert_eq!(created.summary(), "201");
    assert!(!created.body.to_string().contains("include:vm"), "{}", created.body);
}

#[tokio::test]
async fn spf_is_verified_only_if_receivers_could_evaluate_it() {
    let domains = Domains::start().await;
    let id = domains.add("acme.test").await;
    domains.dns.publish(&domains.get(&id).await);
    let look = async || {
        let domain = domains.verify(&id).await;
        let spf = &domain["spf"];
        (spf["status"].as_str().unwrap().to_owned(), spf["detail"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(look().await, ("verified".to_owned(), String::new()));
    for (kind, name, values, status, words) in [
        ("TXT", "mx.service.test", &[][..], "failed", "has no SPF record itself"),
        ("TXT", "mx.service.test", &["v=spf1 a mx -all"], "failed", "mx of mx.service.test finds nothing"),
        ("TXT", "mx.service.test", &["v=spf1 a -all", "v=spf1 -all"], "failed", "several SPF records"),
        // Without an answer the state does not change.
        ("TXT", "mx.service.test", &["!"], "failed", "mx.service.test: the server answered SERVFAIL"),
        ("TXT", "mx.service.test", &["v=spf1 a -all"], "verified", ""),
        ("A", "mx.service.test", &["!"], "verified", "SERVFAIL"),
        ("A", "mx.service.test", &["192.0.2.1"], "verified", ""),
        (
            "TXT",
            "bounce.acme.test",
            &["v=spf1 include:mx.service.test a:1.test a:2.test a:3.test ~all"],
            "failed",
            "3 look-ups find nothing",
        ),
        (
            "TXT",
            "bounce.acme.test",
            &["v=spf1 include:mx.service.test include:a.test include:b.test ~all"],
            "failed",
            "a.test, which it names, has no SPF record",
        ),
        ("TXT", "bounce.acme.test", &["v=spf1 include:mx.service.test ~all"], "verified", ""),
    ] {
        domains.dns.set(kind, name, values);
        let (found, detail) = look().await;
        assert_eq!(found, status, "{name} {values:?}: {detail}");
        assert!(detail.contains(words) && detail.is_empty() == words.is_empty(), "{detail}");
    }
}

#[tokio::test]
async fn a_look_at_records_that_lead_on_and_on_ends() {
    let domains = Domains::start().await;
    let id = domains.add("acme.test").await;
    domains.dns.publish(&domains.get(&id).await);
    let many = (0..400).map(|at| format!("include:x{at}.test")).collect::<Vec<_>>().join(" ");
    domains.dns.set("TXT", "bounce.acme.test", &[&format!("v=spf1 include:mx.service.test {many} ~all")]);
    let before = domains.dns.questions();
    let looked = domains.verify(&id).await;
    assert_eq!(looked["spf"]["status"], "failed");
    assert!(looked["spf"]["detail"] != Value::Null);
    assert!(domains.dns.questions() - before < 40, "{}", domains.dns.questions() - before);
}
