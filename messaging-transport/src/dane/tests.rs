use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, PublicKeyData as _};

use super::*;

/// The certificate of `mx.b.test` with that of its issuer, and a foreign one.
struct Chains {
    own: Vec<CertificateDer<'static>>,
    own_key: Vec<u8>,
    issuer_key: Vec<u8>,
    other: CertificateDer<'static>,
}

fn chains() -> Chains {
    let root_of = |name: &str| {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params
    };
    let (issuer_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let (own_spki, issuer_spki) = (key.subject_public_key_info(), issuer_key.subject_public_key_info());
    let root = root_of("one");
    let root_certificate = root.self_signed(&issuer_key).unwrap();
    let issuer = Issuer::new(root, issuer_key);
    let own = CertificateParams::new(vec!["mx.b.test".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let other = root_of("two").self_signed(&KeyPair::generate().unwrap()).unwrap();
    Chains {
        own: vec![own.der().clone(), root_certificate.der().clone()],
        own_key: own_spki,
        issuer_key: issuer_spki,
        other: other.der().clone(),
    }
}

fn record(usage: u8, selector: u8, matching: u8, selected: &[u8]) -> Tlsa {
    let data = match matching {
        BY_SHA256 => digest(&SHA256, selected).as_ref().to_vec(),
        BY_SHA512 => digest(&SHA512, selected).as_ref().to_vec(),
        _ => selected.to_vec(),
    };
    Tlsa { usage, selector, matching, data }
}

/// A time within the validity of the generated certificates, and one after it.
const IN_TIME: u64 = 1_800_000_000;
const TOO_LATE: u64 = 90_000_000_000;

fn judged(record: &Tlsa, chain: &[CertificateDer<'_>], names: &[&str], now: u64) -> bool {
    let records = std::slice::from_ref(record);
    is_named(records, chain, names, UnixTime::since_unix_epoch(Duration::from_secs(now)))
}

#[test]
fn the_certificate_of_the_server_is_enough() {
    let chains = chains();
    for matching in [EXACT, BY_SHA256, BY_SHA512] {
        for (selector, selected) in [(CERTIFICATE, chains.own[0].as_ref()), (PUBLIC_KEY, &chains.own_key[..])] {
            let named = record(END_ENTITY, selector, matching, selected);
            for (names, now) in [(&["mx.b.test"][..], IN_TIME), (&["elsewhere.test"], IN_TIME), (&[], TOO_LATE)] {
                assert!(judged(&named, &chains.own, names, now), "{selector} {matching} {names:?} {now}");
            }
            assert!(
                !judged(&named, std::slice::from_ref(&chains.other), &["mx.b.test"], IN_TIME),
                "{selector} {matching}"
            );
            assert!(!judged(&named, &[], &["mx.b.test"], IN_TIME), "{selector} {matching}");
        }
        // The issuer is not the server.
        let issuer = record(END_ENTITY, CERTIFICATE, matching, &chains.own[1]);
        assert!(!judged(&issuer, &chains.own, &["mx.b.test"], IN_TIME), "{matching}");
    }
}

#[test]
fn the_issuer_counts_for_the_names_in_their_time() {
    let chains = chains();
    for matching in [EXACT, BY_SHA256, BY_SHA512] {
        for (selector, selected) in [(CERTIFICATE, chains.own[1].as_ref()), (PUBLIC_KEY, &chains.issuer_key[..])] {
            let named = record(TRUST_ANCHOR, selector, matching, selected);
            for (names, now, expected) in [
                (&["mx.b.test"][..], IN_TIME, true),
                (&["elsewhere.test", "mx.b.test"], IN_TIME, true),
                (&["elsewhere.test"], IN_TIME, false),
                (&["mx.b.test"], TOO_LATE, false),
            ] {
                assert_eq!(judged(&named, &chains.own, names, now), expected, "{selector} {matching} {names:?} {now}");
            }
            let stranger = [chains.other.clone(), chains.own[1].clone()];
            assert!(!judged(&named, &stranger, &["mx.b.test"], IN_TIME), "{selector} {matching}");
        }
    }
    // The whole certificate of the issuer may be in the record alone.
    let held = record(TRUST_ANCHOR, CERTIFICATE, EXACT, &chains.own[1]);
    assert!(judged(&held, &chains.own[..1], &["mx.b.test"], IN_TIME));
    let digested = record(TRUST_ANCHOR, CERTIFICATE, BY_SHA256, &chains.own[1]);
    assert!(!judged(&digested, &chains.own[..1], &["mx.b.test"], IN_TIME));
    let other = record(TRUST_ANCHOR, CERTIFICATE, BY_SHA256, &chains.other);
    assert!(!judged(&other, &chains.own, &["mx.b.test"], IN_TIME));
}

#[test]
fn records_that_cannot_be_followed_are_left_out() {
    let tlsa = |usage, selector, matching, length| Tlsa { usage, selector, matching, data: vec![1; length] };
    for (usage, selector, matching, length, expected) in [
        (3, 1, 1, 32, true),
        (3, 0, 2, 64, true),
        (2, 0, 0, 1, true),
        (2, 1, 1, 32, true),
        (0, 0, 1, 32, false),
        (1, 0, 1, 32, false),
        (4, 0, 1, 32, false),
        (255, 0, 1, 32, false),
        (3, 2, 1, 32, false),
        (3, 1, 3, 32, false),
        (3, 1, 1, 31, false),
        (3, 1, 2, 32, false),
        (3, 1, 0, 0, false),
    ] {
        let record = tlsa(usage, selector, matching, length);
        assert_eq!(usable(vec![record]).len(), usize::from(expected), "{usage} {selector} {matching} {length}");
    }
}

#[test]
fn the_weaker_digest_is_left_out() {
    let kinds = [(3, 1, BY_SHA256), (3, 1, BY_SHA512), (3, 0, BY_SHA256), (3, 1, EXACT)];
    let records = kinds.map(|(usage, selector, matching)| record(usage, selector, matching, b"x"));
    let left: Vec<_> = usable(records.to_vec()).iter().map(|one| (one.usage, one.selector, one.matching)).collect();
    assert_eq!(left, [(3, 1, BY_SHA512), (3, 0, BY_SHA256), (3, 1, EXACT)]);
}
