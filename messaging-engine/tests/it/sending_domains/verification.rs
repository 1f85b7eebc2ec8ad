//! Looking at the records.

use std::time::Duration;

use messaging_core::domain::mail::sending_domain::DomainStatus;
use serde_json::{Value, json};

use super::Domains;

const HOUR: Duration = Duration::from_hours(1);

/// `pending: dkim verified, spf pending, …`
fn statuses(domain: &Value) -> String {
    let dkim = domain["dkim"].as_array().unwrap().iter().map(|key| ("dkim", key));
    let others = ["spf", "dmarc", "return_path", "tracking"].map(|member| (member, &domain[member]));
    let records: Vec<_> =
        dkim.chain(others).map(|(name, record)| format!("{name} {}", record["status"].as_str().unwrap())).collect();
    format!("{}: {}", domain["status"].as_str().unwrap(), records.join(", "))
}

#[tokio::test]
async fn a_domain_becomes_verified_as_its_records_appear() {
    let domains = Domains::start().await;
    let id = domains.add("acme.test").await;
    let new = domains.get(&id).await;
    assert_eq!((&new["last_checked_at"], &new["spf"]["detail"]), (&Value::Null, &Value::Null));
    let mut story = vec![statuses(&new)];
    let look = async || {
        let looked = domains.verify(&id).await;
        assert_eq!(domains.get(&id).await, looked);
        looked
    };
    let first = look().await;
    assert_eq!(first["last_checked_at"], "2026-01-31T09:15:00.000Z");
    assert!(first["dkim"][0]["detail"].as_str().unwrap().contains("no TXT record"));
    story.push(statuses(&first));
    domains.dns.set("TXT", "bounce.acme.test", &["v=spf1 include:elsewhere.test ~all"]);
    domains.dns.set("MX", "bounce.acme.test", &["10 mx.elsewhere.test"]);
    domains.dns.set("CNAME", "links.acme.test", &["elsewhere.test"]);
    story.push(statuses(&look().await));
    domains.dns.publish(&new);
    domains.dns.set("TXT", "_dmarc.acme.test", &[]);
    domains.dns.set("TXT", "mk01234567._domainkey.acme.test", &["!"]);
    let unanswered = look().await;
    assert!(unanswered["dkim"][0]["detail"].as_str().unwrap().contains("SERVFAIL"));
    story.push(statuses(&unanswered));
    assert_eq!(unanswered["verified_at"], Value::Null);
    domains.dns.publish(&new);
    let verified = look().await;
    assert_eq!(verified["verified_at"], "2026-01-31T09:15:00.000Z");
    assert_eq!(verified["spf"]["detail"], Value::Null);
    story.push(statuses(&verified));
    for (kind, name) in [("TXT", "bounce.acme.test"), ("MX", "bounce.acme.test"), ("CNAME", "links.acme.test")] {
        domains.dns.set(kind, name, &["!"]);
    }
    story.push(statuses(&look().await));
    insta::assert_snapshot!(story.join("\n"), @r"
    pending: dkim pending, spf pending, dmarc pending, return_path pending, tracking pending
    pending: dkim pending, spf pending, dmarc pending, return_path pending, tracking pending
    pending: dkim pending, spf failed, dmarc pending, return_path failed, tracking failed
    pending: dkim pending, spf verified, dmarc pending, return_path verified, tracking verified
    verified: dkim verified, spf verified, dmarc verified, return_path verified, tracking verified
    verified: dkim verified, spf verified, dmarc verified, return_path verified, tracking verified
    ");
}

#[tokio::test]
async fn a_policy_of_the_organizational_domain_is_enough() {
    let domains = Domains::start().await;
    let id = domains.add("eu.mail.acme.co.uk").await;
    domains.dns.set("TXT", "_dmarc.acme.co.uk", &["v=DMARC1; p=reject"]);
    assert_eq!(domains.verify(&id).await["dmarc"]["status"], "verified");
    domains.dns.set("TXT", "_dmarc.acme.co.uk", &["!"]);
    let silent = domains.verify(&id).await;
    assert_eq!(silent["dmarc"]["status"], "verified", "as it was");
    // A policy of the domain itself takes precedence.
    domains.dns.set("TXT", "_dmarc.eu.mail.acme.co.uk", &["v=DMARC1; p=maybe"]);
    assert_eq!(domains.verify(&id).await["dmarc"]["status"], "failed");
}

#[tokio::test]
async fn a_tracking_host_may_have_our_addresses() {
    let domains = Domains::start().await;
    let id = domains.add("acme.test").await;
    domains.dns.set("A", "track.service.test", &["192.0.2.1", "2001:db8::1"]);
    for (alias, addresses, expected) in [
        (&[][..], &["192.0.2.1"][..], "verified"),
        (&["cdn.test"], &["192.0.2.1"], "verified"),
        (&["cdn.test"], &["192.0.2.9"], "failed"),
        (&[], &["!"], "failed"),
        (&["track.service.test"], &["!"], "verified"),
        (&[], &[], "pending"),
    ] {
        domains.dns.set("CNAME", "links.acme.test", alias);
        domains.dns.set("A", "links.acme.test", addresses);
        assert_eq!(domains.verify(&id).await["tracking"]["status"], expected, "{alias:?} {addresses:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn verify_answers_within_ten_seconds_whatever_the_dns_does() {
    let domains = Domains::start().await;
    let id = domains.add("acme.test").await;
    domains.dns.publish(&domains.get(&id).await);
    domains.verify(&id).await;
    for (kind, name) in [
        ("TXT", "mk01234567._domainkey.acme.test"),
        ("TXT", "bounce.acme.test"),
        ("TXT", "_dmarc.acme.test"),
        ("CNAME", "links.acme.test"),
        ("A", "links.acme.test"),
        ("A", "track.service.test"),
    ] {
        domains.dns.set(kind, name, &["…"]);
    }
    domains.dns.set("MX", "bounce.acme.test", &[]);
    let begun = tokio::time::Instant::now();
    let looked = domains.verify(&id).await;
    let took = begun.elapsed();
    assert!((Duration::from_secs(1)..Duration::from_secs(10)).contains(&took), "{took:?}");
    assert_eq!(
        statuses(&looked),
        "verified: dkim verified, spf verified, dmarc verified, return_path pending, tracking verified",
        "what was answered counts, what was not stays"
    );
    assert!(looked["spf"]["detail"].as_str().unwrap().contains("no answer in time"));
}

#[tokio::test]
async fn the_daily_look_fails_a_broken_domain_after_72_hours_and_takes_it_back() {
    let domains = Domains::start().await;
    let id = domains.add("acme.test").await;
    let published = domains.get(&id).await;
    domains.dns.publish(&published);
    let pass = async |hours: u32| {
        domains.bed.clock.advance(HOUR * hours);
        domains.bed.app.run_until_idle().await.unwrap();
        domains.stored(&id).await
    };
    assert_eq!(pass(20).await.last_checked_at, None, "not before its time");
    let verified = pass(4).await;
    assert_eq!(verified.status, DomainStatus::Verified);
    let checked_at = verified.last_checked_at.unwrap();

    domains.dns.set("TXT", "bounce.acme.test", &["v=spf1 -all"]);
    let broken = pass(24).await;
    let since = broken.broken_since.unwrap();
    assert!(since > checked_at);
    assert_eq!(broken.status, DomainStatus::Verified);
    assert_eq!(pass(71).await.status, DomainStatus::Verified);
    let failed = pass(1).await;
    assert_eq!(failed.status, DomainStatus::Failed);
    assert_eq!(failed.last_checked_at.unwrap().since(since), 72 * HOUR, "it looked when the time was over");
    assert_eq!(domains.get(&id).await["status"], "failed");

    domains.dns.publish(&published);
    let back = pass(24).await;
    assert_eq!((back.status, back.broken_since), (DomainStatus::Verified, None));
    assert_eq!(back.verified_at, verified.verified_at);
}

#[tokio::test]
async fn a_change_during_the_look_is_kept() {
    let domains = Domains::start().await;
    let id = domains.add("acme.test").await;
    domains.dns.publish(&domains.get(&id).await);
    domains.dns.set("MX", "bounce.acme.test", &["…"]);
    let look = domains.verify(&id);
    tokio::pin!(look);
    // The check has asked everything and waits for one answer.
    while domains.dns.questions() < 7 {
        tokio::select! {
            biased;
            _ = &mut look => panic!("the look waits"),
            () = tokio::task::yield_now() => {}
        }
    }
    let path = domains.path(&format!("/{id}"));
    let patched = domains.bed.patch(&domains.caller, &path, json!({"tracking_subdomain": "other"})).await;
    assert_eq!(patched.summary(), "200");
    tokio::time::pause();
    let looked = look.await;
    assert_eq!(looked["tracking_subdomain"], "other.acme.test");
    assert_eq!(
        statuses(&looked),
        "verified: dkim verified, spf verified, dmarc verified, return_path pending, tracking pending"
    );
}
