use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

#[test]
fn the_first_verdict_that_applies_counts() {
    let good = ContactFacts { has_address: true, has_consent: true, ..ContactFacts::default() };
    let nothing =
        ContactFacts { is_excluded: true, is_suppressed: true, is_duplicate: true, ..ContactFacts::default() };
    let cases = [
        (good, AudienceVerdict::Recipient),
        (nothing, AudienceVerdict::Excluded),
        (ContactFacts { is_excluded: false, ..nothing }, AudienceVerdict::NoAddress),
        (ContactFacts { is_excluded: false, has_address: true, ..nothing }, AudienceVerdict::Suppressed),
        (ContactFacts { is_duplicate: true, has_consent: false, ..good }, AudienceVerdict::NoConsent),
        (ContactFacts { is_duplicate: true, ..good }, AudienceVerdict::Duplicate),
    ];
    for (facts, expected) in cases {
        assert_eq!(verdict(facts), expected, "{facts:?}");
    }
}

#[test]
fn consent_is_asked_by_channel() {
    let consent = |marketing_email, sms| Consent { marketing_email, sms };
    let agreed = |consent: Consent| Channel::ALL.into_iter().filter(|one| agrees(*one, consent)).collect::<Vec<_>>();
    assert_eq!(agreed(consent(None, None)), [Channel::Push, Channel::Telegram]);
    assert_eq!(agreed(consent(Some(true), Some(false))), [Channel::Email, Channel::Push, Channel::Telegram]);
    assert!(!agreed(consent(Some(false), Some(true))).contains(&Channel::Email));
    assert_eq!(agreed(consent(Some(false), Some(true))).len(), 5);
}

#[test]
fn who_was_created_first_keeps_the_address() {
    let mut taken = HashSet::new();
    let mut ask = |tokens: &[&str]| {
        let tokens = tokens.iter().map(|token| (*token).to_owned()).collect();
        let free = claim(tokens, |token| taken.contains(token));
        taken.extend(free.clone().unwrap_or_default());
        free
    };
    assert_eq!(ask(&["a", "b", "a"]).unwrap(), ["a", "b"]);
    assert_eq!(ask(&["b", "c"]).unwrap(), ["c"]);
    assert_eq!(ask(&["c", "a"]), None);
    assert_eq!(ask(&[]), None);
}

#[test]
fn numbers_have_a_piece_and_a_place() {
    let number = (7 << 40) + 65_536 * 3 + 5;
    let (piece, place) = place_of(number);
    assert_eq!((place, number_at(piece, place)), (5, number));
    assert_eq!(place_of(number_at(piece, u16::MAX) + 1), (piece + 1, 0));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// Sets and single contacts agree; each matched contact has one verdict, and no other contact has one.
    #[test]
    fn verdicts_are_disjoint_and_complete(contacts in prop::collection::vec((any::<u16>(), 0_u8..64), 0..500)) {
        let mut piece = Piece::default();
        let mut expected = std::collections::BTreeMap::new();
        for (place, facts) in contacts {
            if expected.contains_key(&place) {
                continue;
            }
            let has = |bit: u8| facts & (1 << bit) != 0;
            let sets = [
                &mut piece.matched, &mut piece.excluded, &mut piece.addressed, &mut piece.suppressed,
                &mut piece.consenting, &mut piece.duplicates,
            ];
            for (bit, set) in (0..).zip(sets) {
                if has(bit) {
                    set.insert(place);
                }
            }
            let facts = ContactFacts {
                is_excluded: has(1), has_address: has(2), is_suppressed: has(3), has_consent: has(4), is_duplicate: has(5),
            };
            expected.insert(place, has(0).then(|| verdict(facts)));
        }
        let judged = piece.judge();
        for (place, expected) in &expected {
            prop_assert_eq!(judged.verdict_at(*place), *expected);
        }
        let counts = judged.counts();
        prop_assert_eq!(counts.matched(), u64::from(piece.matched.len()));
        prop_assert_eq!(counts.estimate(true).breakdown.matched, counts.matched());
        let mut all = Bits::default();
        for verdict in AudienceVerdict::ALL {
            all.add_all(judged.set(verdict));
        }
        prop_assert_eq!(&all, &piece.matched);
        let mut candidates = judged.set(AudienceVerdict::Recipient).clone();
        candidates.add_all(judged.set(AudienceVerdict::Duplicate));
        prop_assert_eq!(candidates, piece.candidates());
        prop_assert_eq!(counts + counts, AudienceCounts { recipients: 2 * counts.recipients, excluded: 2 * counts.excluded,
            no_address: 2 * counts.no_address, suppressed: 2 * counts.suppressed, no_consent: 2 * counts.no_consent,
            duplicates: 2 * counts.duplicates });
    }
}
