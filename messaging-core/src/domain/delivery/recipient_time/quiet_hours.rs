//! Quiet hours: no attempt begins while the recipient's clock is in them.
//!
//! They ask the real wall clock of each instant. In a fold both halves count, what a gap leaves out does not happen,
//! and a span may cross midnight.

use jiff::SignedDuration;
use jiff::civil::Time;
use jiff::tz::TimeZone;

use crate::domain::campaign::settings::QuietHours;
use crate::time::Timestamp;

/// Changes of a zone's offset that are looked at. A span is shorter than a day, and in no zone are there two on one;
/// the bound only makes sure that the search ends.
const MAX_CHANGES: usize = 16;

impl QuietHours {
    /// Whether a time of day belongs to them.
    pub fn contains(self, time: Time) -> bool {
        let (start, end) = (self.start.time(), self.end.time());
        if start <= end { start <= time && time < end } else { start <= time || time < end }
    }

    /// The first instant from `from` on at which the clock of a zone is outside of them.
    pub fn next_allowed(self, zone: &TimeZone, from: Timestamp) -> Timestamp {
        let mut at = from.to_jiff();
        for _ in 0..MAX_CHANGES {
            let time = zone.to_datetime(at).time();
            if !self.contains(time) {
                return at.into();
            }
            // Until then the clock runs evenly, unless the zone's offset changes first.
            let left = time.duration_until(self.end.time());
            let left = if left.is_negative() { left + SignedDuration::from_hours(24) } else { left };
            let Ok(end) = at.checked_add(left) else { return at.into() };
            match zone.following(at).next().map(|change| change.timestamp()).filter(|change| *change <= end) {
                Some(change) => at = change,
                None => return end.into(),
            }
        }
        at.into()
    }
}

#[cfg(test)]
mod tests;
