//! Verdicts by policy and sources.

use super::*;

const OFFERED: &str = "v=DMARC1; p=none; rua=mailto:dmarc+t@bounce.mx.test";
const RECEIVER: &str = "mailto:dmarc+t@bounce.mx.test";

/// `(address, messages, passes)`: addresses in 192.0.2.0/24 are ours.
fn sources(list: &[(&str, u64, bool)]) -> Vec<SourceFacts> {
    let source = |&(ip, messages, passes): &(&str, u64, bool)| SourceFacts {
        ip: ip.parse().unwrap(),
        name: (ip == "198.51.100.7").then(|| "mail.zendesk.example".to_owned()),
        is_ours: ip.starts_with("192.0.2."),
        result: AggregateResult {
            disposition: DmarcAction::None,
            spf: passes,
            dkim: passes,
            spf_aligned: passes,
            dkim_aligned: passes,
        },
        messages,
    };
    list.iter().map(source).collect()
}

fn verdict(record: Option<&str>, list: &[(&str, u64, bool)]) -> Verdict {
    let sources = sources(list);
    let policy = record.map(|text| PolicyRecord::parse("acme.test", text).unwrap());
    let is_missing = policy.as_ref().is_some_and(|policy| !policy.rua.iter().any(|uri| uri == RECEIVER));
    judge(&VerdictFacts {
        domain: "acme.test",
        policy: Ok(policy.as_ref()),
        offered: OFFERED,
        missing_receiver: is_missing.then_some(RECEIVER),
        sources: &sources,
        messages: list.iter().map(|(_, messages, _)| messages).sum(),
        days: 30,
    })
}

#[track_caller]
fn check(record: Option<&str>, list: &[(&str, u64, bool)], status: VerdictStatus, words: &str, next: Option<&str>) {
    let found = verdict(record, list);
    assert_eq!(found.status, status, "{found:?}");
    assert!(found.text.contains(words), "{found:?}");
    assert_eq!(found.next_record.as_deref(), next, "{found:?}");
}

use VerdictStatus::{Attention, NoData, Ok as Fine, Unsafe};

const GOOD: &[(&str, u64, bool)] = &[("192.0.2.1", 3412, true), ("198.51.100.7", 40, true)];

#[test]
fn all_that_passes_lets_the_policy_become_stricter_a_step_at_a_time() {
    let reported = |action: &str| format!("v=DMARC1; p={action}; rua={RECEIVER}");
    let none = reported("none");
    check(
        Some(&none),
        GOOD,
        Fine,
        "All mail passes, from us (3,412) and from one other sender (mail.zendesk.example, 40). p=quarantine is safe.",
        Some(&reported("quarantine")),
    );
    check(Some(&reported("quarantine")), GOOD, Fine, "p=reject is safe", Some(&reported("reject")));
    check(Some(&reported("reject")), GOOD, Fine, "is refused", None);
    let testing = format!("v=DMARC1; p=reject; t=y; rua={RECEIVER}");
    check(Some(&testing), GOOD, Fine, "p=reject is safe", Some(&reported("reject")));
    check(Some("v=DMARC1; p=reject"), GOOD, Fine, "", Some(&reported("reject")));
    check(Some(&format!("v=DMARC1; p=none; pct=100; rua={RECEIVER}")), GOOD, Fine, "", Some(&reported("quarantine")));
}

#[test]
fn a_source_that_fails_stands_in_the_way() {
    let none = format!("v=DMARC1; p=none; rua={RECEIVER}");
    let spoofed = &[("192.0.2.1", 3412, true), ("203.0.113.9", 3600, false)];
    check(Some(&none), spoofed, Unsafe, "203.0.113.9 sends 120 a day in your name and fails: yours?", None);
    let quarantine = format!("v=DMARC1; p=quarantine; rua={RECEIVER}");
    check(Some(&quarantine), spoofed, Attention, "put it aside", None);
    let reject = format!("v=DMARC1; p=reject; rua={RECEIVER}");
    check(Some(&reject), spoofed, Attention, "refuse it", None);
    // Never stricter, but the address for reports is added.
    check(Some("v=DMARC1; p=none"), spoofed, Unsafe, "", Some(&none));
    // One message in a hundred is not more than one in a hundred.
    check(
        Some(&none),
        &[("192.0.2.1", 9900, true), ("203.0.113.9", 100, false)],
        Fine,
        "Nearly all",
        Some(&quarantine),
    );
    check(Some(&none), &[("192.0.2.1", 9899, true), ("203.0.113.9", 101, false)], Unsafe, "203.0.113.9", None);
    check(Some(&none), &[("192.0.2.1", 1, true), ("203.0.113.9", 1, false)], Unsafe, "1 message in your name", None);
}

#[test]
fn mail_of_ours_that_fails_is_told_first() {
    let failing = &[("192.0.2.1", 3000, false), ("203.0.113.9", 3600, false), ("192.0.2.2", 9000, true)];
    let none = format!("v=DMARC1; p=none; rua={RECEIVER}");
    check(Some(&none), failing, Unsafe, "192.0.2.1 of this server sent 3,000 messages", None);
    let reject = format!("v=DMARC1; p=reject; rua={RECEIVER}");
    check(Some(&reject), failing, Unsafe, "receivers refuse it", None);
}

#[test]
fn many_small_sources_are_looked_at_first() {
    let none = format!("v=DMARC1; p=none; rua={RECEIVER}");
    let addresses: Vec<_> = (1..=9).map(|n| format!("203.0.113.{n}")).collect();
    let mut list = vec![("192.0.2.1", 9100, true)];
    list.extend(addresses.iter().map(|address| (address.as_str(), 90, false)));
    check(Some(&none), &list, Attention, "810 messages from many small sources fail", None);
}

#[test]
fn without_reports_the_first_record_is_told() {
    check(None, &[], NoData, "no DMARC policy", Some(OFFERED));
    check(Some("v=DMARC1; p=none"), &[], NoData, "sends no reports here", Some(OFFERED));
    check(Some(OFFERED), &[], NoData, "No report has come in", None);
    check(None, GOOD, Attention, "no DMARC policy any more", Some(OFFERED));
}

#[test]
fn a_policy_from_above_is_followed_by_one_of_its_own() {
    let policy = PolicyRecord::parse("test", "v=DMARC1; p=reject; sp=none; rua=mailto:a@b.test").unwrap();
    let sources = sources(GOOD);
    let facts = VerdictFacts {
        domain: "acme.test",
        policy: Ok(Some(&policy)),
        offered: OFFERED,
        missing_receiver: Some(RECEIVER),
        sources: &sources,
        messages: 3452,
        days: 30,
    };
    let next = format!("v=DMARC1; p=quarantine; rua=mailto:a@b.test,{RECEIVER}");
    assert_eq!(judge(&facts).next_record, Some(next));
    let silent = VerdictFacts { policy: Err("SERVFAIL".to_owned()), ..facts };
    assert_eq!((judge(&silent).status, judge(&silent).next_record), (Attention, None));
}
