use std::collections::HashMap;

use messaging_core::ports::clock::ManualClock;
use messaging_core::time::Timestamp;
use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn pace() -> (Arc<ManualClock>, Pace) {
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(0)));
    (clock.clone(), Pace::new(clock))
}

fn claim(recipient: &str, rate: Rate) -> Claim<'_> {
    Claim { account: PaceKey::account(&["bot"]), recipient, rate }
}

impl Pace {
    /// Asks for a turn: returns when the message may leave, or for how long it is put off.
    fn ask(&self, claim: Claim<'_>) -> Result<Duration, Duration> {
        self.take(claim, self.clock.monotonic()).map(|permit| permit.0.since(BEGINNING))
    }
}

/// Returns the maximum number of these moments within one window, whose end is not part of it.
fn most_within(moments: &[Duration], window: Duration) -> usize {
    let within = |from: &Duration| moments.iter().filter(|at| *at >= from && **at < *from + window).count();
    moments.iter().map(within).max().unwrap_or_default()
}

#[test]
fn a_recipient_gets_its_burst_and_then_one_in_each_interval() {
    let (clock, pace) = pace();
    let rate = Rate::every(SECOND * 6).burst(45);
    let granted = (0..60).filter(|_| pace.ask(claim("+1", rate)).is_ok()).count();
    assert_eq!(granted, 45);
    clock.advance(SECOND * 6);
    assert!(pace.ask(claim("+1", rate)).is_ok());
    assert!(pace.ask(claim("+1", rate)).is_err());
    assert!(pace.ask(claim("+2", rate)).is_ok(), "another recipient is not concerned");
}

#[test]
fn messages_to_one_chat_come_back_one_after_another_and_hold_up_no_other() {
    let (clock, pace) = pace();
    let rate = Rate::every(SECOND);
    assert!(pace.ask(claim("chat", rate)).is_ok());
    let waits: Vec<_> = (0..1000).map(|_| pace.ask(claim("chat", rate)).unwrap_err()).collect();
    let seconds: Vec<_> = waits.iter().map(Duration::as_secs).take(4).collect();
    assert_eq!(seconds, [1, 2, 3, 4]);
    assert!(waits.iter().all(|wait| *wait <= MAX_PUT_OFF));
    assert!(pace.ask(claim("other", rate)).is_ok());
    // Each message that comes back at the time it was given leaves at once.
    for _ in 0..59 {
        clock.advance(SECOND);
        assert!(pace.ask(claim("chat", rate)).is_ok());
    }
}

#[test]
fn other_accounts_and_their_chats_are_apart() {
    let (_, pace) = pace();
    let rate = Rate::every(SECOND);
    let of = |bot: &str| Claim { account: PaceKey::account(&["https://api", bot]), recipient: "1", rate };
    assert!(pace.ask(of("a")).is_ok() && pace.ask(of("b")).is_ok());
    assert!(pace.ask(of("a")).is_err());
    // The parts of an identity are kept apart.
    assert_ne!(PaceKey::account(&["ab", "c"]), PaceKey::account(&["a", "bc"]));
}

#[test]
fn what_is_remembered_is_bounded_and_nobody_goes_without_being_remembered() {
    let (clock, pace) = pace();
    let rate = Rate::every(Duration::from_hours(1));
    let ask = |number: usize| pace.ask(claim(&number.to_string(), rate));
    for number in 0..MAX_REMEMBERED {
        assert!(ask(number).is_ok(), "{number}");
    }
    assert_eq!(ask(MAX_REMEMBERED), Err(NO_ROOM));
    assert!(ask(0).is_err(), "who is known is held to the limit");
    clock.advance(Duration::from_hours(2));
    assert!(ask(MAX_REMEMBERED).is_ok());
    assert_eq!(pace.recipients.lock().unwrap().entries.len(), 1);
}

#[test]
fn a_recipient_that_refuses_again_and_again_is_left_alone_longer_each_time() {
    let (clock, pace) = pace();
    let account = PaceKey::account(&["number"]);
    let mut waits = Vec::new();
    for _ in 0..9 {
        let wait = pace.refused(account, "+1");
        clock.advance(wait);
        waits.push(wait.as_secs());
    }
    assert_eq!(waits, [4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 65_536]);
    assert_eq!(pace.refused(account, "+2").as_secs(), 4);
    clock.advance(Duration::from_hours(48));
    assert_eq!(pace.refused(account, "+1").as_secs(), 4);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// No window holds more than its limit, whatever the times and the number of requests.
    #[test]
    fn no_window_ever_holds_more_than_the_limits(
        interval in 1_u64..5000,
        burst in 1_u32..50,
        steps in prop::collection::vec((0_u64..3000, 0_usize..4, 1_usize..40), 1..60),
    ) {
        let (clock, pace) = pace();
        let interval = Duration::from_millis(interval);
        let rate = Rate::every(interval).burst(burst);
        let mut to: HashMap<usize, Vec<Duration>> = HashMap::new();
        for (millis, recipient, count) in steps {
            clock.advance(Duration::from_millis(millis));
            for _ in 0..count {
                if let Ok(at) = pace.ask(claim(&recipient.to_string(), rate)) {
                    to.entry(recipient).or_default().push(at);
                }
            }
        }
        for moments in to.values() {
            for intervals in [1, 2, 5, 20] {
                let most = usize::try_from(burst).unwrap() - 1 + intervals;
                let window = interval * u32::try_from(intervals).unwrap();
                prop_assert!(most_within(moments, window) <= most, "{intervals}");
            }
        }
    }
}
