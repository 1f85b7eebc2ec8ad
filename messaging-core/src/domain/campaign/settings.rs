//! Settings of a campaign: link parameters, quiet hours, frequency cap, A/B test, pace.
//!
//! Contract sections 12.1 and 12.5. The same types are sent and answered: members that are left out have their
//! defaults, and answers show all of them.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::validate::Validate;
use jiff::civil::Time;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::domain::limits::MAX_NAME;

/// Settings for sending a campaign. Unset ones are null in answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "CampaignSettings")]
pub struct Settings {
    /// Parameters for links.
    #[validate(nested)]
    pub utm: Option<Utm>,
    /// Hours in which no messages are sent, by the recipient's clock.
    pub quiet_hours: Option<QuietHours>,
    /// Maximum number of marketing messages for a contact.
    #[validate(nested)]
    pub frequency_cap: Option<FrequencyCap>,
    /// A test with a part of the audience; without one the variants share the whole audience.
    #[validate(nested)]
    pub ab_test: Option<AbTest>,
    /// At most this many messages a minute, 1 to 1,000,000.
    #[validate(range(min = 1, max = 1_000_000))]
    pub rate_limit: Option<u32>,
}

/// Parameters that are added to links which lack them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct Utm {
    /// `utm_source`.
    #[validate(length(min = 1, max = MAX_NAME))]
    pub source: Option<String>,
    /// `utm_medium`.
    #[validate(length(min = 1, max = MAX_NAME))]
    pub medium: Option<String>,
    /// `utm_campaign`.
    #[validate(length(min = 1, max = MAX_NAME))]
    pub campaign: Option<String>,
}

/// A span of each day: `start` belongs to it, `end` does not. It may cross midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuietHours {
    /// First minute of the quiet hours.
    pub start: HourMinute,
    /// First minute after the quiet hours; another than `start`.
    pub end: HourMinute,
}

/// Maximum number of marketing messages that a contact gets on the channel, whatever campaign or automation sends
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct FrequencyCap {
    /// Maximum number within any 24 hours.
    #[serde(default)]
    #[validate(range(min = 1))]
    pub per_day: Option<u32>,
    /// Maximum number within any 168 hours.
    #[serde(default)]
    #[validate(range(min = 1))]
    pub per_week: Option<u32>,
    /// Consequence for a message beyond the cap.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(with = "Option<WhenReached>")]
    pub when_reached: WhenReached,
    /// Longest wait of a deferred message, 1 to 168 hours.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(with = "Option<DeferHours>")]
    pub defer_hours: DeferHours,
}

/// Longest wait of a deferred message: 1 to 168 hours, 24 by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct DeferHours(u32);

impl DeferHours {
    /// The maximum number of hours.
    const MAX: u32 = 168;

    /// Returns the wait as a duration.
    pub const fn span(self) -> Duration {
        Duration::from_secs(self.0 as u64 * 3600)
    }
}

impl Default for DeferHours {
    fn default() -> Self {
        Self(24)
    }
}

impl TryFrom<u32> for DeferHours {
    type Error = &'static str;
    fn try_from(hours: u32) -> Result<Self, &'static str> {
        if (1..=Self::MAX).contains(&hours) { Ok(Self(hours)) } else { Err("not from 1 to 168 hours") }
    }
}

impl From<DeferHours> for u32 {
    fn from(hours: DeferHours) -> Self {
        hours.0
    }
}

impl JsonSchema for DeferHours {
    fn schema_name() -> Cow<'static, str> {
        "DeferHours".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "minimum": 1, "maximum": Self::MAX})
    }
}

/// Deserializes an optional member, which null clears (contract section 1.1) so that it has its default.
fn null_is_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Consequence for a message beyond the frequency cap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "FrequencyCapAction")]
pub enum WhenReached {
    /// The message is not sent.
    #[default]
    Suppress,
    /// The message waits until the cap allows it.
    Defer,
}

/// A test with a part of the audience, after which the rest gets the winner.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct AbTest {
    /// Share of the recipients that takes part, 1 to 90 percent.
    #[validate(range(min = 1, max = 90))]
    pub test_percent: u32,
    /// Time for which opens and clicks are counted, 1 to 10,080 minutes.
    #[validate(range(min = 1, max = 10_080))]
    pub wait_minutes: u32,
    /// Metric by which the variants are compared.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(with = "Option<WinnerMetric>")]
    pub winner_metric: WinnerMetric,
    /// The least probability of being best with which a variant wins on its own, 0.5 to 0.99.
    #[serde(default)]
    #[validate(range(min = 0.5, max = 0.99))]
    pub min_probability: Option<f64>,
    /// Consequence if the variant with the highest rate does not reach it.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(with = "Option<Otherwise>")]
    pub otherwise: Otherwise,
}

/// Metric by which the variants of an A/B test are compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WinnerMetric {
    /// Unique opens for each delivered message.
    #[default]
    OpenRate,
    /// Unique clicks for each delivered message.
    ClickRate,
    /// A person decides.
    Manual,
}

/// Consequence if no variant of an A/B test is probable enough to win.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "WinnerFallback")]
pub enum Otherwise {
    /// A person decides.
    #[default]
    Manual,
    /// The first variant wins.
    First,
}

/// A time of day in whole minutes, `22:00`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HourMinute {
    hour: i8,
    minute: i8,
}

/// Error: the text is no time of day in the form `HH:MM`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a time of day, HH:MM")]
pub struct MalformedHourMinute;

impl HourMinute {
    /// Returns the time of day.
    pub fn time(self) -> Time {
        Time::constant(self.hour, self.minute, 0, 0)
    }
}

impl FromStr for HourMinute {
    type Err = MalformedHourMinute;
    fn from_str(text: &str) -> Result<Self, MalformedHourMinute> {
        let (hour, minute) = text.split_once(':').ok_or(MalformedHourMinute)?;
        let number = |digits: &str, end: i8| {
            let is_number = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse::<i8>().ok().filter(|number| is_number && *number < end).ok_or(MalformedHourMinute)
        };
        Ok(Self { hour: number(hour, 24)?, minute: number(minute, 60)? })
    }
}

impl fmt::Display for HourMinute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.hour, self.minute)
    }
}

impl Serialize for HourMinute {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HourMinute {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for HourMinute {
    fn schema_name() -> Cow<'static, str> {
        "HourMinute".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$"})
    }
}

/// A variant's share in relation to the others' shares: more than 0, in steps of a millionth, so that a split can
/// be computed without rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight {
    millionths: u64,
}

/// Millionths of 1.
const UNIT: u64 = 1_000_000;

/// Maximum weight.
const MAX_WEIGHT: f64 = 1_000_000.0;

/// Error: the number is out of the range of weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a weight is from 0.000001 to 1000000")]
pub struct MalformedWeight;

impl Weight {
    /// Weight of a variant unless another is given.
    pub const ONE: Self = Self { millionths: UNIT };

    /// Returns the weight in millionths; from 1 to 10^12.
    pub const fn millionths(self) -> u64 {
        self.millionths
    }
}

impl TryFrom<f64> for Weight {
    type Error = MalformedWeight;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
    fn try_from(number: f64) -> Result<Self, MalformedWeight> {
        let millionths = (number * 1e6).round();
        let fits = (1.0..=MAX_WEIGHT * 1e6).contains(&millionths);
        if fits { Ok(Self { millionths: millionths as u64 }) } else { Err(MalformedWeight) }
    }
}

impl Default for Weight {
    fn default() -> Self {
        Self::ONE
    }
}

impl Serialize for Weight {
    #[expect(clippy::cast_precision_loss, reason = "at most 10^12")]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.millionths.is_multiple_of(UNIT) {
            serializer.serialize_u64(self.millionths / UNIT)
        } else {
            serializer.serialize_f64(self.millionths as f64 / 1e6)
        }
    }
}

impl<'de> Deserialize<'de> for Weight {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer)?.try_into().map_err(de::Error::custom)
    }
}

impl JsonSchema for Weight {
    fn schema_name() -> Cow<'static, str> {
        "Weight".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "number", "minimum": 0.000_001, "maximum": MAX_WEIGHT})
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_of_day_have_one_spelling() {
        for good in ["00:00", "09:05", "23:59"] {
            assert_eq!(good.parse::<HourMinute>().unwrap().to_string(), good);
        }
        for bad in ["", "9:05", "24:00", "12:60", "12:5", "12:30:00", "+1:30", "1a:00", "12-30", "１２:30"] {
            assert_eq!(bad.parse::<HourMinute>(), Err(MalformedHourMinute), "{bad}");
        }
    }

    #[test]
    fn weights_are_answered_as_they_were_sent() {
        for number in [json!(1), json!(3), json!(0.1), json!(2.5), json!(1_000_000), json!(0.000_001)] {
            let weight: Weight = serde_json::from_value(number.clone()).unwrap();
            assert_eq!(serde_json::to_value(weight).unwrap(), number);
        }
        for bad in [json!(0), json!(-1), json!(1e-7), json!(1_000_001), json!("1")] {
            assert!(serde_json::from_value::<Weight>(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_left_out_has_its_default() {
        let sent = json!({"frequency_cap": {"per_day": 1}, "ab_test": {"test_percent": 20, "wait_minutes": 240}});
        let settings: Settings = serde_json::from_value(sent).unwrap();
        assert_eq!(
            serde_json::to_value(settings).unwrap(),
            json!({"utm": null, "quiet_hours": null, "rate_limit": null,
                "frequency_cap": {"per_day": 1, "per_week": null, "when_reached": "suppress", "defer_hours": 24},
                "ab_test": {"test_percent": 20, "wait_minutes": 240, "winner_metric": "open_rate",
                    "min_probability": null, "otherwise": "manual"}})
        );
    }
}
