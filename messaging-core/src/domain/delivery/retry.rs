//! Times of retries after temporary refusals, and their end.
//!
//! Contract section 4.2, last paragraph.

use std::time::Duration;

use crate::time::Timestamp;

/// Waits between attempts on the channels other than email.
pub const OFF_EMAIL: [Duration; 7] = [
    Duration::from_secs(5),
    Duration::from_secs(15),
    Duration::from_mins(1),
    Duration::from_mins(5),
    Duration::from_mins(15),
    Duration::from_mins(30),
    Duration::from_hours(1),
];

/// Time for which a message of a channel other than email is tried.
pub const OFF_EMAIL_EXPIRY: Duration = Duration::from_hours(24);

/// Returns the time of the next attempt after attempt number `attempt` (the first is 1), made at `now`, was put off;
/// `None` if the message has expired. The last wait of the schedule repeats; the last attempt is at the expiry of the
/// message: email is attempted once more then, everything else ends.
///
/// The wait is longer than the schedule says by `jitter` thousandths, so that messages that one outage put off do not
/// come back together.
pub fn next_attempt(
    schedule: &[Duration],
    attempt: u32,
    jitter: u32,
    now: Timestamp,
    accepted: Timestamp,
    expiry: Duration,
) -> Option<Timestamp> {
    let end = accepted + expiry;
    let index = usize::try_from(attempt.saturating_sub(1)).unwrap_or(usize::MAX);
    let wait = longer(*schedule.get(index).or(schedule.last())?, jitter);
    if now < accepted {
        // The clock was ahead when the message was accepted: the time for which it has been tried counts instead.
        let waits = (0..index).filter_map(|past| schedule.get(past).or(schedule.last()));
        let left = expiry.saturating_sub(waits.fold(Duration::ZERO, |sum, wait| sum.saturating_add(*wait)));
        return (!left.is_zero()).then(|| now + wait.min(left));
    }
    (now < end).then(|| (now + wait).min(end))
}

fn longer(wait: Duration, thousandths: u32) -> Duration {
    wait.saturating_add((wait / 1000).saturating_mul(thousandths))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_the_schedule_and_ends_at_the_expiry() {
        let schedule = [1, 5, 12].map(|minutes| Duration::from_secs(minutes * 60));
        let minute = |n: i64| Timestamp::from_millis(n * 60_000);
        let expiry = Duration::from_mins(40);
        let next = |attempt, now| next_attempt(&schedule, attempt, 0, minute(now), minute(0), expiry);
        assert_eq!(next(1, 0), Some(minute(1)));
        assert_eq!(next(2, 1), Some(minute(6)));
        assert_eq!(next(3, 6), Some(minute(18)));
        assert_eq!(next(4, 18), Some(minute(30)));
        assert_eq!(next(5, 30), Some(minute(40)));
        assert_eq!(next(6, 40), None);
        assert_eq!(next_attempt(&[], 1, 0, minute(0), minute(0), expiry), None);
    }

    #[test]
    fn a_message_from_a_wrong_future_expires_by_what_was_waited_for_it() {
        let schedule = [1, 5, 12].map(|minutes| Duration::from_secs(minutes * 60));
        let minute = |n: i64| Timestamp::from_millis(n * 60_000);
        let next = |attempt| next_attempt(&schedule, attempt, 0, minute(0), minute(1_000_000), Duration::from_mins(40));
        let waits = [1, 5, 12, 12, 10];
        for (attempt, wait) in (1..).zip(waits) {
            assert_eq!(next(attempt), Some(minute(wait)), "{attempt}");
        }
        assert_eq!(next(6), None);
    }

    #[test]
    fn jitter_lengthens_the_wait_but_not_beyond_the_expiry() {
        let schedule = [Duration::from_mins(10)];
        let (now, expiry) = (Timestamp::from_millis(0), Duration::from_secs(630));
        for (jitter, seconds) in [(0, 600), (10, 606), (50, 630), (100, 630)] {
            let next = next_attempt(&schedule, 1, jitter, now, now, expiry);
            assert_eq!(next, Some(Timestamp::from_millis(seconds * 1000)), "{jitter}");
        }
        assert_eq!(longer(Duration::MAX, 100), Duration::MAX);
    }
}
