//! Points in time, in whole milliseconds.
//!
//! Contract section 1.2: out as `2026-01-31T09:15:00.000Z`, in as RFC 3339 with `Z` or an offset. Zones by the
//! names of the IANA database.

use std::borrow::Cow;
use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;
use std::sync::LazyLock;
use std::time::Duration;

use jiff::tz::{TimeZone, TimeZoneDatabase};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// A moment on a clock that is never set, for measuring elapsed time whatever happens to the date.
///
/// Means nothing outside of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Monotonic(Duration);

impl Monotonic {
    /// A moment that never comes.
    pub const NEVER: Self = Self(Duration::MAX);

    /// Returns the moment with this distance from the clock's beginning.
    pub const fn new(since_beginning: Duration) -> Self {
        Self(since_beginning)
    }

    /// Returns the time since `earlier`; zero if that is later.
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Monotonic {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }
}

/// The text is not an RFC 3339 time with `Z` or an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an RFC 3339 time with an offset")]
pub struct MalformedTime;

impl Timestamp {
    /// Returns the time with these milliseconds since the Unix epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Returns the milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Returns the whole seconds since the Unix epoch.
    pub const fn as_seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// Returns the time since `earlier`; zero if that is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0 - earlier.0).unwrap_or(0))
    }

    /// Returns the same date and time of the next year in UTC: the limit for planning ahead.
    pub fn in_a_year(self) -> Self {
        let next = self.to_jiff().to_zoned(TimeZone::UTC).checked_add(jiff::Span::new().years(1));
        next.map_or(self, |next| next.timestamp().into())
    }

    /// Returns the same instant for calendar arithmetic.
    pub fn to_jiff(self) -> jiff::Timestamp {
        jiff::Timestamp::from_millisecond(self.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
    }
}

impl From<jiff::Timestamp> for Timestamp {
    fn from(value: jiff::Timestamp) -> Self {
        Self(value.as_millisecond())
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;
    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.to_jiff())
    }
}

impl FromStr for Timestamp {
    type Err = MalformedTime;
    fn from_str(text: &str) -> Result<Self, MalformedTime> {
        // The parser accepts more than RFC 3339: a space for the T, no seconds, offsets of 25 hours.
        if !is_rfc3339(text) {
            return Err(MalformedTime);
        }
        text.parse::<jiff::Timestamp>().map(Self::from).map_err(|_| MalformedTime)
    }
}

/// True if a text has the form `date-time` of RFC 3339 section 5.6, whose letters may be lower case, with at most nine
/// digits of a second. Whether the day exists is not checked.
fn is_rfc3339(text: &str) -> bool {
    let Some((start, rest)) = text.as_bytes().split_at_checked("2026-01-31T09:15:00".len()) else { return false };
    let fits = |bytes: &[u8], form: &[u8]| {
        bytes.len() == form.len()
            && bytes.iter().zip(form).all(|(byte, form)| match form {
                b'0' => byte.is_ascii_digit(),
                _ => byte.eq_ignore_ascii_case(form),
            })
    };
    let offset = match rest.split_first() {
        Some((b'.', fraction)) => {
            let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if !(1..=9).contains(&digits) {
                return false;
            }
            &fraction[digits..]
        }
        _ => rest,
    };
    let is_offset = match offset.split_first() {
        Some((b'Z' | b'z', [])) => true,
        Some((b'+' | b'-', time)) => fits(time, b"00:00") && &time[..2] <= b"23".as_slice() && time[3] <= b'5',
        _ => false,
    };
    is_offset && fits(start, b"0000-00-00T00:00:00")
}

/// Names in the database that are no places: the zone of the system, and an unset zone.
const NO_ZONES: [&str; 4] = ["Factory", "localtime", "posixrules", "Etc/Unknown"];

/// Looks up a time zone by its name in the IANA database, in any case, and returns it with the name as the database
/// spells it.
pub fn zone(name: &str) -> Option<(TimeZone, String)> {
    static DATABASE: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);
    if NO_ZONES.iter().any(|none| none.eq_ignore_ascii_case(name)) {
        return None;
    }
    let zone = DATABASE.get(name).ok()?;
    let spelled = zone.iana_name()?.to_owned();
    Some((zone, spelled))
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for Timestamp {
    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "date-time"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_milliseconds_and_zulu() {
        let time: Timestamp = "2026-01-31T10:15:00.0004+01:00".parse().unwrap();
        assert_eq!(time.to_string(), "2026-01-31T09:15:00.000Z");
        assert_eq!(Timestamp::from_millis(0).to_string(), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn times_are_rfc_3339_and_nothing_else() {
        for good in [
            "2026-01-31T09:15:00Z",
            "2026-01-31t09:15:00z",
            "2026-01-31T09:15:00.1Z",
            "2026-01-31T09:15:00.123456789Z",
            "2026-01-31T09:15:00+23:59",
            "2026-01-31T09:15:00.000-23:00",
            "2024-02-29T00:00:00Z",
        ] {
            assert!(good.parse::<Timestamp>().is_ok(), "{good}");
        }
        for bad in [
            "2026-01-31T09:15:00",
            "2026-01-31",
            "yesterday",
            "",
            "2026-01-31 09:15:00Z",
            "2026-01-31T09:15Z",
            "2026-01-31T0915:00Z",
            "20260131T091500Z",
            "2026-01-31T09:15:00,5Z",
            "2026-01-31T09:15:00.Z",
            "2026-01-31T09:15:00.1234567891Z",
            "2026-01-31T09:15:00+24:00",
            "2026-01-31T09:15:00+25:00",
            "2026-01-31T09:15:00+01:60",
            "2026-01-31T09:15:00+0100",
            "2026-01-31T09:15:00+01",
            "2026-01-31T09:15:00+01:00:00",
            "2026-01-31T09:15:00Z[UTC]",
            "2026-01-31T09:15:00+01:00[Europe/Berlin]",
            " 2026-01-31T09:15:00Z",
            "2026-01-31T09:15:00Z ",
            "+002026-01-31T09:15:00Z",
            "2026-02-30T09:15:00Z",
            "2026-01-31T24:00:00Z",
            "2026-01-31T09:60:00Z",
            "2026-01-31T09:15:00\u{2212}01:00",
        ] {
            assert_eq!(bad.parse::<Timestamp>(), Err(MalformedTime), "{bad}");
        }
    }

    #[test]
    fn zones_have_the_names_of_the_database() {
        let spelled = |name: &str| zone(name).map(|(_, spelled)| spelled);
        for name in ["Europe/Berlin", "UTC", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "US/Eastern"] {
            assert_eq!(spelled(name).as_deref(), Some(name));
            assert_eq!(spelled(&name.to_ascii_uppercase()).as_deref(), Some(name));
        }
        for name in [
            "",
            "Berlin",
            "localtime",
            "posixrules",
            "Factory",
            "FACTORY",
            "Etc/Unknown",
            "posix/UTC",
            "right/UTC",
            "+01:00",
        ] {
            assert_eq!(spelled(name), None, "{name}");
        }
    }
}
