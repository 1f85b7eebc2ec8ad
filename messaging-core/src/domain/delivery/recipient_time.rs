//! Time at which one recipient gets a marketing message: now, later, or not at all.
//!
//! Contract sections 12.3 and 12.5. [`look`] composes all rules: a pause, the wall-clock time of the recipient's zone
//! ([`wall_clock`]), quiet hours ([`quiet_hours`]), suppression and consent, the frequency cap ([`frequency_cap`]) and
//! the rate limit ([`pacing`]). [`waves`] calculates beforehand when each zone is due, so that later recipients do not
//! stand in the way of due ones.

pub mod frequency_cap;
pub mod pacing;
pub mod quiet_hours;
pub mod wall_clock;
pub mod waves;

use self::frequency_cap::CapLook;
use crate::domain::audience::suppression::SuppressionReason;
use crate::domain::campaign::settings::{FrequencyCap, QuietHours};
use crate::domain::message::hold::HoldReason;
use crate::time::{Timestamp, zone};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// Reason why a marketing message is not sent at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SuppressCause {
    /// The address is suppressed.
    Listed(SuppressionReason),
    /// The contact has not agreed.
    NoConsent,
    /// The contact has received as many messages as the frequency cap allows.
    FrequencyCap,
}

impl SuppressCause {
    /// Returns the `reason` of the event `suppressed`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Listed(reason) => reason.as_str(),
            Self::NoConsent => "no_consent",
            Self::FrequencyCap => "frequency_cap",
        }
    }
}

/// Verdict of the check right before an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The attempt may begin.
    Go,
    /// The attempt may not begin now.
    Hold {
        /// Reason for which the message is held.
        reason: HoldReason,
        /// When to check again; `None` until somebody acts.
        until: Option<Timestamp>,
    },
    /// The message is never sent.
    Suppress(SuppressCause),
}

/// Rules of a campaign or an automation for its messages.
#[derive(Debug, Clone, Copy, Default)]
pub struct Terms {
    /// True if the campaign or automation is paused.
    pub is_paused: bool,
    /// Time that the recipient's clock must have reached.
    pub wall_time: Option<DateTime>,
    /// Local hours of the recipient during which nothing is sent.
    pub quiet_hours: Option<QuietHours>,
    /// Maximum number of marketing messages to one contact within a period.
    pub frequency_cap: Option<FrequencyCap>,
    /// When the rate limit lets the next message begin; `None` for at once. See [`pacing::Pacing::next_at`].
    pub pace_free_at: Option<Timestamp>,
}

/// Facts about the recipient at this moment.
#[derive(Debug, Clone, Copy)]
pub struct Recipient<'a> {
    /// The recipient's zone; see [`zone_of`].
    pub zone: &'a TimeZone,
    /// Reason for which the address is suppressed; marketing heeds every reason.
    pub suppression: Option<SuppressionReason>,
    /// True if the contact agreed, and on channels that need no consent.
    pub has_consent: bool,
    /// Times at which attempts of marketing messages to the contact on the channel began, in any order.
    pub sends: &'a [Timestamp],
    /// When the cap first held this message; `None` if it has not yet.
    pub cap_since: Option<Timestamp>,
}

/// Returns the recipient's zone: the contact's, else the workspace's. UTC if neither is a zone.
pub fn zone_of(contact: Option<&str>, workspace: &str) -> TimeZone {
    let found = contact.and_then(zone).or_else(|| zone(workspace));
    found.map_or(TimeZone::UTC, |(zone, _)| zone)
}

/// Decides whether an attempt may begin at `now`.
///
/// A message that has to wait for the clock is not judged before that: suppression, consent and cap are checked right
/// before it is sent. Only the end of the longest wait for the cap does not wait for the clock. `until` heeds all
/// rules, so that no job is woken only to wait again.
pub fn look(terms: &Terms, recipient: &Recipient<'_>, now: Timestamp) -> Verdict {
    if terms.is_paused {
        return Verdict::Hold { reason: HoldReason::Paused, until: None };
    }
    let cap = terms.frequency_cap.map_or(CapLook::Free, |cap| cap.look(recipient.sends, recipient.cap_since, now));
    if recipient.cap_since.is_some() && cap == CapLook::Reached {
        return Verdict::Suppress(SuppressCause::FrequencyCap);
    }
    if let Some((reason, until)) = clock_hold(terms, recipient.zone, now) {
        return Verdict::Hold { reason, until: Some(until) };
    }
    if let Some(reason) = recipient.suppression {
        return Verdict::Suppress(SuppressCause::Listed(reason));
    }
    if !recipient.has_consent {
        return Verdict::Suppress(SuppressCause::NoConsent);
    }
    match cap {
        CapLook::Free => {}
        CapLook::Reached => return Verdict::Suppress(SuppressCause::FrequencyCap),
        CapLook::FreeAt(free) => {
            let until = Some(undisturbed(terms, recipient.zone, free));
            return Verdict::Hold { reason: HoldReason::FrequencyCap, until };
        }
        // At the end of its longest wait the message is suppressed, whatever the hour.
        CapLook::GivesUpAt(end) => return Verdict::Hold { reason: HoldReason::FrequencyCap, until: Some(end) },
    }
    match terms.pace_free_at.filter(|free| *free > now) {
        Some(free) => {
            Verdict::Hold { reason: HoldReason::DomainPace, until: Some(undisturbed(terms, recipient.zone, free)) }
        }
        None => Verdict::Go,
    }
}

/// Returns the time, not before `from`, at which wall-clock time and quiet hours let a message to a zone begin.
pub fn due_at(terms: &Terms, zone: &TimeZone, from: Timestamp) -> Timestamp {
    let reached = terms.wall_time.map_or(from, |wall| wall_clock::instant(wall, zone).max(from));
    undisturbed(terms, zone, reached)
}

fn undisturbed(terms: &Terms, zone: &TimeZone, from: Timestamp) -> Timestamp {
    terms.quiet_hours.map_or(from, |quiet| quiet.next_allowed(zone, from))
}

/// Returns the reason for which wall-clock time or quiet hours hold a message at `now`, and the end of the hold.
fn clock_hold(terms: &Terms, zone: &TimeZone, now: Timestamp) -> Option<(HoldReason, Timestamp)> {
    let until = due_at(terms, zone, now);
    let waits_for_zone = terms.wall_time.is_some_and(|wall| wall_clock::instant(wall, zone) > now);
    let reason = if waits_for_zone { HoldReason::ByTimezone } else { HoldReason::QuietHours };
    (until > now).then_some((reason, until))
}

#[cfg(test)]
mod tests;
