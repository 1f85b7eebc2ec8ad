use std::sync::Arc;

use messaging_core::ids::Id as _;
use serde_json::{Map, json};

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const STEP_OF_TIME: Duration = Duration::from_millis(5);

fn account() -> Account {
    Account::of(WorkspaceId::from_bytes([1; 16]), Channel::Sms)
}

fn provider(settings: Value) -> Provider {
    let settings: Map<_, _> = serde_json::from_value(settings).unwrap();
    Provider { name: "http".to_owned(), settings: Arc::new(settings) }
}

fn at(millis: u64) -> Monotonic {
    Monotonic::new(SECOND * 1000 + Duration::from_millis(millis))
}

fn too_much() -> AccountState {
    AccountState::Rests(Duration::ZERO, "too fast".to_owned())
}

/// Returns the largest number of these moments within one second.
fn most_in_a_second(moments: &[Monotonic]) -> usize {
    let within = |from: &Monotonic| moments.iter().filter(|at| *at >= from && at.since(*from) < SECOND).count();
    moments.iter().map(within).max().unwrap_or_default()
}

#[test]
fn an_account_without_a_limit_is_not_slowed_down() {
    let (rates, unlimited) = (AccountRates::default(), provider(json!({"sender": "ACME"})));
    for _ in 0..10_000 {
        assert_eq!(rates.admit(account(), &unlimited, at(0)), Ok(None));
        assert_eq!(rates.depart(account(), &unlimited, None, at(0)), Ok(None));
        rates.report(account(), &unlimited, &AccountState::Works, (at(0), at(0)));
    }
    assert_eq!(rates.rooms(at(0)).len(), 0);
}

#[test]
fn a_rate_of_the_settings_is_never_exceeded_and_what_is_far_away_is_put_off() {
    let (rates, given) = (AccountRates::default(), provider(json!({"max_rate": 10})));
    let mut slots = Vec::new();
    let mut waits = Vec::new();
    for _ in 0..100 {
        match rates.admit(account(), &given, at(0)) {
            Ok(slot) => slots.push(slot.unwrap().0),
            Err(wait) => waits.push(wait),
        }
    }
    assert_eq!((slots.len(), most_in_a_second(&slots)), (20, 10));
    assert!(waits.windows(2).all(|two| two[0] < two[1]), "each comes back at a time of its own");
    let Room::NotBefore(time) = rates.rooms(at(0))[0].2 else { panic!("there is no room") };
    assert_eq!(time.since(at(0)).as_millis(), 1500);
    assert!(matches!(rates.rooms(at(2000))[0].2, Room::Left(4 | 5)));
    let slow = provider(json!({"max_rate": 1e-300}));
    assert!(rates.admit(account(), &slow, at(0)).is_ok());
    assert_eq!(rates.admit(account(), &slow, at(60_000)), Err(MAX_PUT_OFF));
}

#[test]
fn turns_that_came_late_do_not_leave_in_a_burst() {
    let (rates, given) = (AccountRates::default(), provider(json!({"max_rate": 20})));
    let slots: Vec<_> = (0..20).map(|_| rates.admit(account(), &given, at(0)).unwrap()).collect();
    // All are held up for a second and are ready together.
    let mut left = Vec::new();
    for slot in slots {
        let mut slot = slot;
        let mut now = at(1000);
        while let Some(next) = rates.depart(account(), &given, slot, now).unwrap() {
            (slot, now) = (Some(next), next.0);
        }
        left.push(now);
    }
    left.sort();
    assert!(left.windows(2).all(|two| two[1].since(two[0]) >= SECOND / 20), "{left:?}");
    // A message that is ready in its slot leaves in it.
    let slot = rates.admit(account(), &given, at(5000)).unwrap();
    assert_eq!(rates.depart(account(), &given, slot, at(5005)), Ok(None));
}

#[test]
fn other_settings_and_routes_have_rates_of_their_own() {
    let rates = AccountRates::default();
    let push = json!({"max_rate": 5, "routes": {"apns": {"max_rate": 50}, "webpush": {}}});
    let push = Provider { name: "fcm".to_owned(), ..provider(push) };
    let interval = |name| {
        let account = Account { name: Some(name), ..Account::of(WorkspaceId::from_bytes([1; 16]), Channel::Push) };
        let _ = rates.admit(account, &push, at(0));
        rates.admit(account, &push, at(0)).unwrap().map(|slot| slot.0.since(at(0)).as_millis())
    };
    assert_eq!((interval("fcm"), interval("apns"), interval("webpush")), (Some(200), Some(20), None));
    let given = provider(json!({}));
    rates.depart(account(), &given, None, at(0)).unwrap();
    rates.report(account(), &given, &too_much(), (at(0), at(10)));
    let of = (account().workspace, Channel::Sms);
    assert_eq!(rates.trouble(of, &given, at(20)), Some("too fast".to_owned()));
    assert_eq!(rates.trouble(of, &given, at(70_000)), None, "it said so long ago");
    assert_eq!(rates.trouble(of, &provider(json!({"sender": "x"})), at(20)), None);
    assert!(rates.admit(account(), &given, at(20)).unwrap().is_some());
    assert_eq!(rates.admit(account(), &provider(json!({"sender": "x"})), at(20)), Ok(None));
    rates.report(account(), &given, &too_much(), (at(30), at(30)));
    rates.forget(&[of]);
    assert_eq!(rates.admit(account(), &given, at(40)), Ok(None));
}

/// A gateway that takes a number of messages in a second.
struct Gateway {
    /// Times of the messages that it took.
    taken: Vec<Monotonic>,
    refused: usize,
    rate: usize,
    /// True if it counts over a sliding second; otherwise it wants messages evenly spread.
    is_window: bool,
}

impl Gateway {
    fn takes(&mut self, now: Monotonic) -> bool {
        let is_free = if self.is_window {
            self.taken.iter().rev().take_while(|at| now.since(**at) < SECOND).count() < self.rate
        } else {
            let spread = SECOND / u32::try_from(self.rate).unwrap();
            self.taken.last().is_none_or(|last| now.since(*last) + STEP_OF_TIME * 2 >= spread)
        };
        if is_free {
            self.taken.push(now);
        } else {
            self.refused += 1;
        }
        is_free
    }

    /// Sends an endless queue for a time; answers come after `latency`.
    fn flood(&mut self, rates: &AccountRates, given: &Provider, latency: Duration, (from, to): (u64, u64)) {
        let mut ready: Vec<Option<SendSlot>> = Vec::new();
        let mut answers: std::collections::VecDeque<(Monotonic, Monotonic, bool)> = std::collections::VecDeque::new();
        let mut millis = from;
        while millis < to {
            let now = at(millis);
            while answers.front().is_some_and(|(_, due, _)| *due <= now) {
                let (began, _, is_taken) = answers.pop_front().unwrap();
                let state = if is_taken { AccountState::Works } else { too_much() };
                rates.report(account(), given, &state, (began, now));
            }
            // As many at a time as a lane has places.
            while ready.len() + answers.len() < 100 {
                match rates.admit(account(), given, now) {
                    Ok(slot) => ready.push(slot),
                    Err(_) => break,
                }
            }
            let mut waiting = Vec::new();
            for slot in ready.drain(..) {
                match rates.depart(account(), given, slot, now) {
                    Ok(None) => answers.push_back((now, now + latency, self.takes(now))),
                    Ok(next) => waiting.push(next),
                    Err(_) => {}
                }
            }
            ready = waiting;
            millis += u64::try_from(STEP_OF_TIME.as_millis()).unwrap();
        }
    }
}

#[test]
fn the_rate_of_an_account_that_throttles_is_found_and_followed() {
    for is_window in [true, false] {
        for latency in [5, 100, 800] {
            let (rates, given) = (AccountRates::default(), provider(json!({})));
            let mut gateway = Gateway { taken: Vec::new(), refused: 0, rate: 30, is_window };
            gateway.flood(&rates, &given, Duration::from_millis(latency), (0, 60_000));
            let (taken, refused) = (gateway.taken.len(), gateway.refused);
            assert!(taken > 60 * 30 * 9 / 10, "{is_window} {latency}: {taken} taken, {refused} refused");
            assert!(refused < taken / 4, "{is_window} {latency}: {taken} taken, {refused} refused");
            if !is_window {
                continue;
            }
            // The gateway takes twice as many from now on.
            gateway.rate = 60;
            gateway.flood(&rates, &given, Duration::from_millis(latency), (60_000, 180_000));
            let later = gateway.taken.iter().filter(|time| **time >= at(120_000)).count();
            assert!(later > 60 * 60 * 9 / 10, "{is_window} {latency}: {later}");
            // And then a tenth.
            gateway.rate = 6;
            gateway.flood(&rates, &given, Duration::from_millis(latency), (180_000, 300_000));
            let later = gateway.taken.iter().filter(|time| **time >= at(240_000)).count();
            assert!(later > 6 * 60 * 85 / 100, "{is_window} {latency}: {later}");
        }
    }
}

#[test]
fn a_throttle_halves_the_rate_once_for_all_that_were_on_the_way() {
    let (rates, given) = (AccountRates::default(), provider(json!({"max_rate": 100})));
    for _ in 0..10 {
        rates.report(account(), &given, &too_much(), (at(0), at(100)));
    }
    let interval = |now| {
        let slot = || rates.admit(account(), &given, now).unwrap().unwrap().0;
        let first = slot();
        slot().since(first).as_millis()
    };
    assert_eq!(interval(at(200)), 20);
    rates.report(account(), &given, &too_much(), (at(1100), at(1200)));
    assert_eq!(interval(at(1200)), 40);
}
