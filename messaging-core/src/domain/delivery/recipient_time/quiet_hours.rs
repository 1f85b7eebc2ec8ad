//! Quiet hours: no attempt begins while the recipient's local time is within them.
//!
//! Each instant is judged by the wall clock that the time zone has then. An hour that occurs twice at the end of
//! daylight saving time is quiet both times, and one that is skipped at its beginning never occurs. Quiet hours may
//! cross midnight.

use jiff::SignedDuration;
use jiff::civil::Time;
use jiff::tz::TimeZone;

use crate::domain::campaign::settings::QuietHours;
use crate::time::Timestamp;

/// Most changes of a zone's offset that one search follows. Quiet hours are shorter than a day, and no zone changes its
/// offset twice a day; the bound only guarantees that the search ends.
const MAX_CHANGES: usize = 16;

impl QuietHours {
    /// Returns true if a time of day is within the quiet hours: from the start, which is included, to the end, which is
    /// not.
    pub fn contains(self, time: Time) -> bool {
        let (start, end) = (self.start.time(), self.end.time());
        if start <= end { start <= time && time < end } else { start <= time || time < end }
    }

    /// Returns the first instant from `from` on at which the local time of a zone is outside the quiet hours.
    pub fn next_allowed(self, zone: &TimeZone, from: Timestamp) -> Timestamp {
        let mut at = from.to_jiff();
        for _ in 0..MAX_CHANGES {
            let time = zone.to_datetime(at).time();
            if !self.contains(time) {
                return at.into();
            }
            // The quiet hours end after the time that is left, unless the zone's offset changes before that.
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
