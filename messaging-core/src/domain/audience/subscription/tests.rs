use super::SubscriptionStatus::{Confirmed, Left, Unconfirmed};
use super::*;
use crate::ids::Id as _;

fn at(minutes: i64) -> Timestamp {
    Timestamp::from_millis(minutes * 60_000)
}

fn record(contact: u8, status: SubscriptionStatus, how: SubscriptionAct, minutes: i64) -> Subscription {
    let ids = (WorkspaceId::from_bytes([1; 16]), ListId::from_bytes([2; 16]), ContactId::from_bytes([contact; 16]));
    Subscription::new(ids, status, Proof::of_reader(how, at(minutes), None, None))
}

#[track_caller]
fn check_admission(
    wanted: SubscriptionStatus,
    (status, is_member, resubscribes): (Option<SubscriptionStatus>, bool, bool),
    expected: Admission,
) {
    assert_eq!(admit(wanted, status, is_member, resubscribes), expected, "{wanted:?} {status:?} {is_member}");
}

#[test]
fn who_left_comes_back_only_when_that_is_said() {
    check_admission(Confirmed, (None, false, false), Admission::Becomes(Confirmed));
    check_admission(Unconfirmed, (None, false, false), Admission::Becomes(Unconfirmed));
    check_admission(Confirmed, (Some(Left), false, false), Admission::Refused);
    check_admission(Unconfirmed, (Some(Left), false, false), Admission::Refused);
    check_admission(Confirmed, (Some(Left), false, true), Admission::Becomes(Confirmed));
    check_admission(Unconfirmed, (Some(Left), false, true), Admission::Becomes(Unconfirmed));
    check_admission(Confirmed, (Some(Unconfirmed), false, false), Admission::Becomes(Confirmed));
    check_admission(Unconfirmed, (Some(Unconfirmed), false, false), Admission::Stays);
    check_admission(Confirmed, (Some(Confirmed), true, false), Admission::Stays);
    // A member without a record, from before the list was public, is no less confirmed.
    check_admission(Unconfirmed, (None, true, true), Admission::Stays);
}

#[test]
fn confirmations_are_ten_minutes_apart_and_three_in_thirty_days() {
    let mut one = record(3, Unconfirmed, SubscriptionAct::Form, 0);
    assert!(one.may_ask(at(0)));
    one = one.asked_at(at(0));
    assert!(!one.may_ask(at(9)) && one.may_ask(at(10)));
    one = one.asked_at(at(10)).asked_at(at(20));
    let days = 30 * 24 * 60;
    assert!(!one.may_ask(at(days - 1)) && one.may_ask(at(days)));
    one = one.asked_at(at(days));
    assert_eq!(one.asked, [at(10), at(20), at(days)]);
    let proof = |how| Proof::of_reader(how, at(days), None, None);
    // Who left may be asked again, by subscribing anew; who is confirmed is not.
    assert!(one.with(Left, proof(SubscriptionAct::Unsubscribe)).may_ask(at(2 * days)));
    assert!(!one.with(Confirmed, proof(SubscriptionAct::Confirmation)).may_ask(at(2 * days)));
}

#[test]
fn the_first_proof_of_a_status_stays() {
    let one = record(3, Confirmed, SubscriptionAct::Confirmation, 5);
    let again = one.with(Confirmed, Proof::of_reader(SubscriptionAct::Preferences, at(9), None, None));
    assert_eq!(again, one);
    let left = one.with(Left, Proof::of_reader(SubscriptionAct::Unsubscribe, at(9), None, Some(&"x".repeat(600))));
    assert_eq!((left.status, left.since), (Left, at(9)));
    assert_eq!(left.proof.user_agent.map(|text| text.len()), Some(512));
}

#[test]
fn of_two_contacts_that_become_one_the_later_act_of_the_reader_counts() {
    let cases = [
        ((Left, SubscriptionAct::Unsubscribe, 9), (Confirmed, SubscriptionAct::Confirmation, 5), Left),
        ((Left, SubscriptionAct::Unsubscribe, 5), (Confirmed, SubscriptionAct::Confirmation, 9), Confirmed),
        ((Confirmed, SubscriptionAct::Api, 9), (Left, SubscriptionAct::Unsubscribe, 5), Left),
        ((Left, SubscriptionAct::Unsubscribe, 5), (Confirmed, SubscriptionAct::Import, 9), Left),
        ((Unconfirmed, SubscriptionAct::Api, 9), (Confirmed, SubscriptionAct::Import, 5), Confirmed),
        ((Unconfirmed, SubscriptionAct::Form, 9), (Confirmed, SubscriptionAct::Api, 5), Confirmed),
        ((Left, SubscriptionAct::Unsubscribe, 5), (Unconfirmed, SubscriptionAct::Form, 9), Left),
    ];
    for ((status, how, minutes), (other, other_how, other_minutes), expected) in cases {
        let (primary, duplicate) = (record(3, status, how, minutes), record(4, other, other_how, other_minutes));
        let kept = merged(Some(primary.clone()), Some(duplicate.clone())).unwrap();
        assert_eq!((kept.status, kept.contact_id), (expected, primary.contact_id));
        assert_eq!(merged(Some(primary.clone()), None), Some(primary));
        assert_eq!(merged(None, Some(duplicate.clone())), Some(duplicate));
    }
    assert_eq!(merged(None, None), None);
}
