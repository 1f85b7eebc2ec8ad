use std::fmt::Write as _;

use super::*;
use crate::domain::mail::dkim::Algorithm;
use crate::ids::WorkspaceId;

const HOUR: Duration = Duration::from_hours(1);

fn at(hours: u32) -> Timestamp {
    Timestamp::from_millis(0) + HOUR * hours
}

fn key(selector: &str, algorithm: Algorithm, made: Timestamp) -> DkimKey {
    DkimKey {
        selector: selector.to_owned(),
        algorithm,
        public: String::new(),
        sealed: String::new(),
        check: Check::default(),
        created_at: made,
        verified_at: None,
    }
}

fn domain() -> SendingDomain {
    let mut domain =
        SendingDomain::new(DomainId::from_bytes([7; 16]), WorkspaceId::from_bytes([2; 16]), "acme.com", at(0));
    domain.dkim = vec![key("rsa1", Algorithm::RsaSha256, at(0)), key("ed1", Algorithm::Ed25519Sha256, at(0))];
    domain
}

#[expect(clippy::unnecessary_wraps, reason = "one of several findings")]
fn good() -> Finding {
    Ok(Check::verified())
}

#[expect(clippy::unnecessary_wraps, reason = "one of several findings")]
fn bad() -> Finding {
    Ok(Check::failed("Wrong."))
}

#[expect(clippy::unnecessary_wraps, reason = "one of several findings")]
fn absent() -> Finding {
    Ok(Check::pending("Nothing."))
}

fn silent() -> Finding {
    Err("no answer".to_owned())
}

/// Looks up a domain with the same verdict for all its keys.
fn look(domain: SendingDomain, dkim: Finding, spf: Finding, now: Timestamp) -> SendingDomain {
    let dkim = domain.dkim.iter().map(|key| (key.selector.clone(), dkim.clone())).collect();
    let findings = Findings { dkim, spf, dmarc: absent(), return_path: absent(), tracking: None, tls_rpt: absent() };
    apply(domain, findings, now)
}

#[test]
fn one_key_and_spf_make_a_domain_verified() {
    let states = [good(), bad(), absent(), silent()];
    let names = ["good", "bad", "absent", "silent"];
    let mut grid = String::new();
    for (dkim, name) in states.iter().zip(names) {
        write!(grid, "\n{name:>6}:").unwrap();
        for spf in &states {
            let looked = look(domain(), dkim.clone(), spf.clone(), at(5));
            assert_eq!(looked.last_checked_at, Some(at(5)));
            assert_eq!(looked.verified_at.is_some(), looked.status == DomainStatus::Verified);
            write!(grid, " {:?}", looked.status).unwrap();
        }
    }
    insta::assert_snapshot!(grid, @r"
      good: Verified Pending Pending Pending
       bad: Pending Pending Pending Pending
    absent: Pending Pending Pending Pending
    silent: Pending Pending Pending Pending
    ");
    let mut one_key = domain();
    one_key.dkim.truncate(1);
    assert_eq!(look(one_key, good(), good(), at(1)).status, DomainStatus::Verified);
}

#[test]
fn a_verified_domain_fails_after_72_hours_and_comes_back() {
    let verified = look(domain(), good(), good(), at(1));
    let broken = look(verified, good(), bad(), at(10));
    assert_eq!((broken.status, broken.broken_since), (DomainStatus::Verified, Some(at(10))));
    let still = look(broken.clone(), absent(), good(), at(81));
    assert_eq!((still.status, still.broken_since), (DomainStatus::Verified, Some(at(10))), "an hour before");
    let failed = look(still.clone(), bad(), good(), at(82));
    assert_eq!(failed.status, DomainStatus::Failed);
    let still_failed = look(failed, silent(), silent(), at(90));
    assert_eq!(still_failed.status, DomainStatus::Failed);
    let back = look(still_failed, good(), good(), at(91));
    assert_eq!((back.status, back.broken_since, back.verified_at), (DomainStatus::Verified, None, Some(at(1))));
    let repaired = look(still, good(), good(), at(81));
    assert_eq!((repaired.status, repaired.broken_since), (DomainStatus::Verified, None));
}

#[test]
fn silence_changes_no_status() {
    let verified = look(domain(), good(), good(), at(1));
    let silenced = look(verified, silent(), silent(), at(30));
    assert_eq!((silenced.status, silenced.broken_since), (DomainStatus::Verified, None));
    assert_eq!(silenced.spf.status, RecordStatus::Verified);
    assert!(silenced.spf.detail.unwrap().contains("no answer"));
    // Broken, and then without any answers: not known to be broken for 72 hours.
    let broken = look(look(domain(), good(), good(), at(1)), good(), bad(), at(10));
    let silenced = look(broken, silent(), silent(), at(100));
    assert_eq!(silenced.status, DomainStatus::Verified);
    assert_eq!(look(silenced, silent(), bad(), at(101)).status, DomainStatus::Failed);
}

#[test]
fn what_came_after_the_look_stays_as_it_is() {
    let mut findings = Findings {
        tls_rpt: absent(),
        dkim: vec![("rsa1".to_owned(), good()), ("gone".to_owned(), good())],
        spf: good(),
        dmarc: good(),
        return_path: bad(),
        tracking: Some(("old.acme.com".to_owned(), good())),
    };
    let mut start = domain();
    start.tracking_subdomain = Some("links.acme.com".to_owned());
    let looked = apply(start.clone(), findings.clone(), at(1));
    let statuses: Vec<_> = looked.dkim.iter().map(|key| key.check.status).collect();
    assert_eq!(statuses, [RecordStatus::Verified, RecordStatus::Pending]);
    assert_eq!((looked.tracking.status, looked.return_path.status), (RecordStatus::Pending, RecordStatus::Failed));
    findings.tracking = Some(("links.acme.com".to_owned(), good()));
    assert_eq!(apply(start, findings, at(1)).tracking.status, RecordStatus::Verified);
}

#[test]
fn old_keys_stay_a_week_after_their_successors_are_published() {
    let selectors = |domain: &SendingDomain| domain.dkim.iter().map(|key| key.selector.clone()).collect::<Vec<_>>();
    let mut rotated = look(domain(), good(), good(), at(1));
    rotated.dkim.push(key("rsa2", Algorithm::RsaSha256, at(2)));
    rotated.dkim.push(key("ed2", Algorithm::Ed25519Sha256, at(2)));
    assert_eq!(key_pairs(&rotated), 2);
    let finding = |selector: &str, finding: Finding| (selector.to_owned(), finding);
    let look_at = |domain: SendingDomain, rsa2: Finding, now| {
        let dkim =
            vec![finding("rsa1", good()), finding("ed1", good()), finding("rsa2", rsa2), finding("ed2", absent())];
        apply(
            domain,
            Findings { dkim, spf: good(), dmarc: good(), return_path: good(), tracking: None, tls_rpt: absent() },
            now,
        )
    };
    let week = 7 * 24;
    let waiting = look_at(rotated, absent(), at(3 + week));
    assert_eq!(selectors(&waiting), ["rsa1", "ed1", "rsa2", "ed2"], "the new key is not published");
    let published = look_at(waiting, good(), at(4 + week));
    let later = look_at(published, good(), at(3 + 2 * week));
    assert_eq!(selectors(&later), ["rsa1", "ed1", "rsa2", "ed2"], "not yet a week");
    let unpublished = look_at(later.clone(), absent(), at(4 + 2 * week));
    assert_eq!(selectors(&unpublished), ["rsa1", "ed1", "rsa2", "ed2"], "the new key went away again");
    let done = look_at(later, good(), at(4 + 2 * week));
    assert_eq!(selectors(&done), ["ed1", "rsa2", "ed2"], "of each kind on its own");
}

#[test]
fn the_next_look_is_within_a_day_and_when_the_72_hours_end() {
    let mut verified = look(domain(), good(), good(), at(1));
    let next = next_look(&verified, at(1));
    assert!(at(23) <= next && next <= at(25), "{next}");
    let mut other = verified.clone();
    other.id = DomainId::from_bytes([200; 16]);
    assert_ne!(next_look(&other, at(1)), next, "domains spread");
    verified.broken_since = Some(at(10));
    assert_eq!(next_look(&verified, at(70)), at(82));
    assert!(next_look(&verified, at(82)) > at(100), "not at once again");
    verified.status = DomainStatus::Failed;
    assert!(next_look(&verified, at(70)) > at(82));
}
