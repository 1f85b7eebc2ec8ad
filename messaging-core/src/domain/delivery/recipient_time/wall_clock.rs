//! Wall-clock times.
//!
//! Contract section 13.4: a time in a gap moves forward by the length of the gap (02:30 becomes 03:30), one in a fold
//! is the earlier of the two.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::time::Timestamp;

/// Returns the instant at which the clock of a zone shows a date and time. Where the calendar has no such instant it is
/// the Unix epoch.
pub fn instant(wall: DateTime, zone: &TimeZone) -> Timestamp {
    let found = zone.to_ambiguous_timestamp(wall).compatible();
    found.map_or(Timestamp::from_millis(0), Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::zone;

    #[track_caller]
    fn check(wall: &str, name: &str, expected: &str) {
        let (zone, _) = zone(name).unwrap();
        assert_eq!(instant(wall.parse().unwrap(), &zone).to_string(), expected, "{wall} {name}");
    }

    #[test]
    fn gaps_move_forward_and_folds_are_the_earlier() {
        check("2026-05-01T09:00:00", "Europe/Berlin", "2026-05-01T07:00:00.000Z");
        check("2026-03-29T02:30:00", "Europe/Berlin", "2026-03-29T01:30:00.000Z");
        check("2026-10-25T02:30:00", "Europe/Berlin", "2026-10-25T00:30:00.000Z");
        check("2026-10-25T03:00:00", "Europe/Berlin", "2026-10-25T02:00:00.000Z");
        check("2026-05-01T09:00:00.25", "Asia/Kathmandu", "2026-05-01T03:15:00.250Z");
        // Half an hour of gap and of fold.
        check("2026-10-04T02:10:00", "Australia/Lord_Howe", "2026-10-03T15:40:00.000Z");
        check("2026-04-05T01:45:00", "Australia/Lord_Howe", "2026-04-04T14:45:00.000Z");
        // A whole day that there was not.
        check("2011-12-30T12:00:00", "Pacific/Apia", "2011-12-30T22:00:00.000Z");
    }

    #[test]
    fn no_zone_is_ahead_of_the_first_one() {
        let wall: DateTime = "2026-05-01T09:00:00".parse().unwrap();
        let east = instant(wall, &jiff::tz::Offset::constant(14).to_time_zone());
        assert_eq!(instant(wall, &zone("Pacific/Kiritimati").unwrap().0), east);
        for name in jiff::tz::TimeZoneDatabase::bundled().available() {
            if let Some((zone, _)) = zone(name.as_str()) {
                assert!(instant(wall, &zone) >= east, "{}", name.as_str());
            }
        }
    }
}
