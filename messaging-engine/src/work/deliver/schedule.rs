//! Timing of a message's attempts: their number, the time of the next one, and the expiry.

use std::time::Duration;

use messaging_core::domain::channel::Channel;
use messaging_core::domain::delivery::{Attempt, retry};
use messaging_core::domain::message::Message;
use messaging_core::time::Timestamp;

use crate::app::App;

/// Wait of a message that was not sent because the store is not healthy; it is claimed when the store is healthy.
pub(super) const HELD_FOR: Duration = Duration::from_secs(5);

/// Number of an attempt at a message, and the time for which the message may still be tried.
#[derive(Debug, Clone, Copy)]
pub(super) struct AttemptClock {
    /// Number of the attempt, from 1.
    pub(super) number: u32,
    /// Time from which the expiry of the message counts.
    pub(super) accepted_at: Timestamp,
    /// Time after `accepted_at` at which the message expires.
    pub(super) expiry: Duration,
}

pub(super) fn circumstances(app: &App, message: &Message, clock: AttemptClock) -> Attempt {
    let now = app.now();
    Attempt {
        number: clock.number,
        channel: message.channel,
        now,
        next_attempt_at: next_attempt(app, message.channel, clock),
        expires_at: clock.accepted_at + clock.expiry,
        held_until: held_until(app, message.channel, clock, HELD_FOR),
    }
}

/// Returns the time when recipients that were not tried now are tried. On channels other than email that is never after
/// the message has expired.
pub(super) fn held_until(app: &App, channel: Channel, clock: AttemptClock, wait: Duration) -> Timestamp {
    let (now, end) = (app.now(), clock.accepted_at + clock.expiry);
    if channel != Channel::Email && now < end { (now + wait).min(end) } else { now + wait }
}

fn next_attempt(app: &App, channel: Channel, clock: AttemptClock) -> Option<Timestamp> {
    let settings = app.settings();
    let jitter = app.random_below(settings.message_retry_jitter + 1);
    let schedule = match channel {
        Channel::Email => &settings.message_retry[..],
        _ => &retry::OFF_EMAIL,
    };
    retry::next_attempt(schedule, clock.number, jitter, app.now(), clock.accepted_at, clock.expiry)
}
