use super::*;
use crate::domain::mail::dkim::{Algorithm, generate};
use crate::domain::mail::link_token::LinkKey;
use crate::domain::mail::sending_domain::Check;
use crate::entropy::SeededEntropy;
use crate::ids::{DomainId, Id as _, WorkspaceId};
use crate::time::Timestamp;

fn domain() -> SendingDomain {
    let ids = (DomainId::from_bytes([1; 16]), WorkspaceId::from_bytes([2; 16]));
    let now = Timestamp::from_millis(0);
    let mut domain = SendingDomain::new(ids.0, ids.1, "mail.acme.test", now);
    domain.tracking_subdomain = Some("links.mail.acme.test".to_owned());
    domain.dkim.push(DkimKey {
        selector: "mk1".to_owned(),
        algorithm: Algorithm::Ed25519Sha256,
        public: generate(Algorithm::Ed25519Sha256, &SeededEntropy::new(1)).public,
        sealed: String::new(),
        check: Check::default(),
        created_at: now,
        verified_at: None,
    });
    domain
}

fn here() -> Installation {
    Installation::new("mx.service.test", "https://track.service.test")
}

fn list(values: &[&str]) -> Vec<String> {
    values.iter().map(|&value| value.to_owned()).collect()
}

/// Returns the change that is planned for the record of a purpose, if the zone has these records at its name.
fn planned(purpose: Purpose, found: &HostRecords, covered_by: Option<&str>) -> PlannedChange {
    let (here, domain) = (here(), domain());
    let around = Surroundings { here: &here, domain: &domain, covered_by };
    let offered = here.offered(&domain, &LinkKey::new(&[7; 32]));
    let (_, wanted) = offered.iter().find(|(of, _)| *of == purpose).unwrap();
    plan(around, purpose, wanted, found)
}

/// `create a | b`, or `conflict` with its sentence.
fn said(change: &PlannedChange) -> String {
    let action = format!("{:?}", change.action).to_lowercase();
    match change.action {
        ChangeAction::Create | ChangeAction::Update => format!("{action} {}", change.after.join(" | ")),
        ChangeAction::Keep | ChangeAction::Conflict => {
            assert_eq!(change.before, change.after);
            format!("{action} {}", change.detail.clone().unwrap_or_default())
        }
    }
}

#[track_caller]
fn check_txt(purpose: Purpose, found: &[&str], expected: &str) {
    let found = HostRecords { txt: list(found), ..HostRecords::default() };
    let change = planned(purpose, &found, None);
    assert!(said(&change).starts_with(expected), "{found:?}: {}", said(&change));
    if matches!(change.action, ChangeAction::Create | ChangeAction::Update) {
        // The written record is kept the next time.
        let again = planned(purpose, &HostRecords { txt: change.after, ..HostRecords::default() }, None);
        assert_eq!(again.action, ChangeAction::Keep, "{again:?}");
    }
}

#[test]
fn an_spf_record_of_others_is_merged() {
    check_txt(Purpose::Spf, &[], "create v=spf1 include:mx.service.test ~all");
    check_txt(Purpose::Spf, &["note"], "update note | v=spf1 include:mx.service.test ~all");
    check_txt(Purpose::Spf, &["v=spf1 include:mx.service.test ~all"], "keep");
    check_txt(
        Purpose::Spf,
        &["note", "v=spf1 ip4:192.0.2.1 -all"],
        "update note | v=spf1 ip4:192.0.2.1 include:mx.service.test -all",
    );
    check_txt(Purpose::Spf, &["v=spf1 -all", "v=spf1 ~all"], "conflict There are several");
}

#[test]
fn a_dmarc_policy_is_never_replaced() {
    check_txt(Purpose::Dmarc, &[], "create v=DMARC1; p=none");
    check_txt(Purpose::Dmarc, &["v=DMARC1; p=none"], "keep");
    check_txt(Purpose::Dmarc, &["v=DMARC1; p=reject; rua=mailto:a@b.test"], "keep The DMARC policy that is here stays");
    check_txt(Purpose::Dmarc, &["v=DMARC1; p=maybe"], "conflict The DMARC policy is damaged");
    check_txt(Purpose::Dmarc, &["v=DMARC1; p=none", "v=DMARC1; p=reject"], "conflict There are several");
    let nothing = HostRecords::default();
    for (above, expected) in [(None, "create"), (Some("acme.test"), "keep The DMARC policy of acme.test covers")] {
        let change = planned(Purpose::Dmarc, &nothing, above);
        assert!(said(&change).starts_with(expected), "{above:?}: {}", said(&change));
    }
}

#[test]
fn receivers_of_tls_reports_stay() {
    check_txt(Purpose::TlsRpt, &[], "create v=TLSRPTv1; rua=mailto:");
    check_txt(Purpose::TlsRpt, &["v=TLSRPTv1; rua=mailto:a@b.test"], "keep The record is kept. To see its reports");
    check_txt(Purpose::TlsRpt, &["v=TLSRPTv1; rua=mailto:a@b.test", "v=TLSRPTv1; rua=mailto:c@d.test"], "conflict");
}

#[test]
fn the_selector_is_ours() {
    let ours = planned(Purpose::Dkim, &HostRecords::default(), None).after;
    assert!(ours[0].starts_with("v=DKIM1; k=ed25519; p="));
    check_txt(Purpose::Dkim, &[], "create v=DKIM1; k=ed25519; p=");
    check_txt(Purpose::Dkim, &[&ours[0]], "keep");
    check_txt(Purpose::Dkim, &["v=DKIM1; k=ed25519; p=AAAA"], &format!("update {}", ours[0]));
}

#[test]
fn mail_exchangers_of_others_are_a_conflict() {
    for (found, expected) in [
        (&[][..], "create 10 mx.service.test"),
        (&["10 mx.service.test"], "keep"),
        (&["50 mx.service.test", "10 other.test"], "keep Another MX record"),
        (&["10 other.test"], "conflict Mail for bounce.mail.acme.test goes to another server"),
    ] {
        let found = HostRecords { mx: list(found), ..HostRecords::default() };
        let change = planned(Purpose::ReturnPath, &found, None);
        assert!(said(&change).starts_with(expected), "{found:?}: {}", said(&change));
    }
}

#[test]
fn nothing_stands_beside_an_alias() {
    let alias = |target: &str| HostRecords { cname: list(&[target]), ..HostRecords::default() };
    for purpose in [Purpose::Spf, Purpose::Dmarc, Purpose::ReturnPath, Purpose::Dkim] {
        assert!(said(&planned(purpose, &alias("other.test"), None)).contains("is an alias (CNAME) of other.test"));
    }
    // The owner of a policy is not told to remove it.
    assert!(said(&planned(Purpose::Dmarc, &alias("other.test"), None)).contains("Leave it if that is meant"));
    for (found, expected) in [
        (HostRecords::default(), "create track.service.test"),
        (alias("track.service.test"), "keep"),
        (
            HostRecords { is_proxied: true, ..alias("track.service.test") },
            "conflict links.mail.acme.test leads to track.service.test through the proxy",
        ),
        (alias("other.test"), "conflict links.mail.acme.test is an alias of other.test"),
        (HostRecords { has_others: true, ..HostRecords::default() }, "conflict links.mail.acme.test has records"),
        (HostRecords { txt: list(&["x"]), ..HostRecords::default() }, "conflict links.mail.acme.test has records"),
    ] {
        let change = planned(Purpose::Tracking, &found, None);
        assert!(said(&change).starts_with(expected), "{found:?}: {}", said(&change));
    }
}

#[test]
fn an_address_is_no_target_of_an_alias() {
    let (here, domain) = (Installation::new("mx.service.test", "http://192.0.2.1:8080"), domain());
    let around = Surroundings { here: &here, domain: &domain, covered_by: None };
    let wanted = here.tracking(&domain).unwrap();
    let change = plan(around, Purpose::Tracking, &wanted, &HostRecords::default());
    assert_eq!(change.action, ChangeAction::Conflict);
}

#[test]
fn only_what_is_exactly_ours_is_removed() {
    let ours = here().spf(&domain());
    let removal = |found: &[&str]| {
        plan_removal(&ours, &HostRecords { txt: list(found), ..HostRecords::default() }).map(|change| change.after)
    };
    assert_eq!(removal(&[]), None);
    assert_eq!(removal(&["v=spf1 mx include:mx.service.test ~all"]), None);
    assert_eq!(removal(&["v=spf1 include:mx.service.test ~all"]), Some(Vec::new()));
    assert_eq!(removal(&["note", "v=spf1 include:mx.service.test ~all"]), Some(list(&["note"])));
}
