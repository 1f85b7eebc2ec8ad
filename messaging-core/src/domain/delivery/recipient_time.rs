//! When one recipient gets a marketing message: now, later, or not at all.
//!
//! Contract sections 12.3 and 12.5. [`look`] composes all rules: a pause, the wall-clock time of the recipient's zone
//! ([`wall_clock`]), quiet hours ([`quiet_hours`]), suppression and consent, the frequency cap ([`frequency_cap`]) and
//! the rate limit ([`pacing`]). [`waves`] says beforehand when each zone is due, so that whoever is later does not
//! stand in the way of those who are due.

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

/// Why a marketing message is not sent at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SuppressCause {
    /// The address is suppressed.
    Listed(SuppressionReason),
    /// The contact has not agreed.
    NoConsent,
    /// The contact has had its share.
    FrequencyCap,
}

impl SuppressCause {
    /// `reason` of the event `suppressed`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Listed(reason) => reason.as_str(),
            Self::NoConsent => "no_consent",
            Self::FrequencyCap => "frequency_cap",
        }
    }
}

/// What the last look right before an attempt says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The attempt may begin.
    Go,
    /// Not now.
    Hold {
        /// Reason for which the message is held.
        reason: HoldReason,
        /// When to look again; `None` until somebody acts.
        until: Option<Timestamp>,
    },
    /// Never.
    Suppress(SuppressCause),
}

/// What a campaign or an automation asks for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Terms {
    /// True if the campaign or automation is paused.
    pub is_paused: bool,
    /// The time that the recipient's clock must have shown.
    pub wall_time: Option<DateTime>,
    /// Local hours of the recipient during which nothing is sent.
    pub quiet_hours: Option<QuietHours>,
    /// Most marketing messages to one contact within a span of time.
    pub frequency_cap: Option<FrequencyCap>,
    /// When its rate limit lets the next message begin; `None` is at once. See [`pacing::Pacing::next_at`].
    pub pace_free_at: Option<Timestamp>,
}

/// What is known of the recipient at this moment.
#[derive(Debug, Clone, Copy)]
pub struct Recipient<'a> {
    /// The recipient's zone; see [`zone_of`].
    pub zone: &'a TimeZone,
    /// Why the address is suppressed, for any reason: marketing heeds them all.
    pub suppression: Option<SuppressionReason>,
    /// Whether the contact agreed; true on channels that need no consent.
    pub has_consent: bool,
    /// When attempts of marketing messages to the contact on the channel began, in any order.
    pub sends: &'a [Timestamp],
    /// When the cap first held this message; `None` if it has not yet.
    pub cap_since: Option<Timestamp>,
}

/// The recipient's zone: the contact's, else the workspace's. UTC where neither is a zone.
pub fn zone_of(contact: Option<&str>, workspace: &str) -> TimeZone {
    let found = contact.and_then(zone).or_else(|| zone(workspace));
    found.map_or(TimeZone::UTC, |(zone, _)| zone)
}

/// The last look: whether an attempt may begin at `now`.
///
/// Whoever must wait for the clock is not judged otherwise before: suppression, consent and cap are looked at right
/// before the send. Only the end of a cap's patience does not wait for the clock. `until` heeds all that is known, so that
/// nobody is woken to be told to wait again.
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
        // At the end of its patience the message is suppressed, whatever the hour.
        CapLook::GivesUpAt(end) => return Verdict::Hold { reason: HoldReason::FrequencyCap, until: Some(end) },
    }
    match terms.pace_free_at.filter(|free| *free > now) {
        Some(free) => {
            Verdict::Hold { reason: HoldReason::DomainPace, until: Some(undisturbed(terms, recipient.zone, free)) }
        }
        None => Verdict::Go,
    }
}

/// When the clock lets a message to somebody in a zone begin, not before `from`.
pub fn due_at(terms: &Terms, zone: &TimeZone, from: Timestamp) -> Timestamp {
    let reached = terms.wall_time.map_or(from, |wall| wall_clock::instant(wall, zone).max(from));
    undisturbed(terms, zone, reached)
}

fn undisturbed(terms: &Terms, zone: &TimeZone, from: Timestamp) -> Timestamp {
    terms.quiet_hours.map_or(from, |quiet| quiet.next_allowed(zone, from))
}

/// What the clock holds a message for at `now`, and when it lets go.
fn clock_hold(terms: &Terms, zone: &TimeZone, now: Timestamp) -> Option<(HoldReason, Timestamp)> {
    let until = due_at(terms, zone, now);
    let waits_for_zone = terms.wall_time.is_some_and(|wall| wall_clock::instant(wall, zone) > now);
    let reason = if waits_for_zone { HoldReason::ByTimezone } else { HoldReason::QuietHours };
    (until > now).then_some((reason, until))
}

#[cfg(test)]
mod tests;
