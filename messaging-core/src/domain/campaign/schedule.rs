//! Start of a campaign: its time, and the checks before it.
//!
//! Contract section 12.2. The caller looks up what a campaign needs of its workspace and passes it as [`Readiness`];
//! the order of the checks is here and in [`Campaign::schedule`].

use std::borrow::Cow;
use std::time::Duration;

use crate::validate::Validate;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::check::{ReferenceTarget, ResolvedReference};
use super::refusal::Refusal;
use super::{Campaign, CampaignPlan, CampaignStatus, Reference};
use crate::domain::template::Parts;
use crate::input::{BodyKind, Input};
use crate::time::Timestamp;
use crate::violation::{FieldCode, Violations};

/// Longest time that `at` may lie in the past: a request needs time to arrive, and clocks differ.
const PAST: Duration = Duration::from_mins(1);

/// Delay of a start or of progress after which a person has to decide.
pub const STALE: Duration = Duration::from_hours(6);

/// Request that schedules a campaign.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct ScheduleInput {
    /// Start of the campaign, at most a year ahead.
    #[serde(default)]
    pub at: Option<WrittenTime>,
    /// True starts it at once.
    #[serde(default)]
    pub send_now: Option<bool>,
    /// With `at`: each recipient gets it when their own clock shows that time.
    #[serde(default)]
    pub by_timezone: Option<bool>,
}

impl Input for ScheduleInput {
    const BODY: BodyKind = BodyKind::Optional;

    fn check(&self, violations: &mut Violations) {
        if self.at.is_some() && self.is_now() {
            violations.add("/at", FieldCode::Conflict, "give either at or send_now");
        }
        if self.by_timezone == Some(true) && self.at.is_none() {
            violations.add("/by_timezone", FieldCode::Conflict, "needs at");
        }
    }
}

impl ScheduleInput {
    fn is_now(&self) -> bool {
        self.send_now == Some(true)
    }

    /// Adds the faults that the request has at `now`, besides those that [`Input::check`] finds.
    pub fn check_at(&self, now: Timestamp, violations: &mut Violations) {
        if self.at.is_some_and(|at| at.instant > now.in_a_year()) {
            violations.add("/at", FieldCode::OutOfRange, "must be at most a year ahead");
        }
    }
}

/// An instant, and the wall-clock time at the offset it was written with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenTime {
    /// The instant.
    pub instant: Timestamp,
    /// Date and time as written, without the offset.
    pub wall: DateTime,
}

impl Serialize for WrittenTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let as_utc = TimeZone::UTC.to_timestamp(self.wall).map_or(0, jiff::Timestamp::as_millisecond);
        let seconds = i32::try_from((as_utc - self.instant.as_millis()) / 1000).unwrap_or_default();
        let offset = Offset::from_seconds(seconds).unwrap_or(Offset::UTC);
        let zoned = self.instant.to_jiff().to_zoned(offset.to_time_zone());
        serializer.collect_str(&zoned.strftime("%Y-%m-%dT%H:%M:%S%.3f%:z"))
    }
}

impl<'de> Deserialize<'de> for WrittenTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        let instant: Timestamp = text.parse().map_err(de::Error::custom)?;
        // The parser of dates without offset refuses a Z.
        let written = text.get(.."2026-01-31T09:15:00".len()).and_then(|wall| wall.parse::<DateTime>().ok());
        let written = written.ok_or_else(|| de::Error::custom("not a date and time"))?;
        let millis = i32::try_from(instant.as_millis().rem_euclid(1000)).unwrap_or_default();
        let wall = written.with().subsec_nanosecond(millis * 1_000_000).build().map_err(de::Error::custom)?;
        Ok(Self { instant, wall })
    }
}

impl JsonSchema for WrittenTime {
    fn schema_name() -> Cow<'static, str> {
        "WrittenTime".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "date-time"})
    }
}

/// Facts of the workspace that a campaign depends on at its start.
#[derive(Debug, Clone, Copy)]
pub struct Readiness<'a> {
    /// Results of the look-up of the objects that [`CampaignPlan::references`] lists.
    pub found: &'a [ResolvedReference],
    /// State of the sender; `Verified` on channels without senders.
    pub sender: SenderState,
    /// True if the channel has settings; email needs none.
    pub channel_is_configured: bool,
}

/// State of the sender of a campaign or automation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SenderState {
    /// The sender belongs to a verified domain, or the channel has no senders.
    Verified,
    /// No sender was given and none can be derived.
    Missing,
    /// The sender's domain is not a verified domain of the workspace.
    NotVerified,
}

/// Time at which a campaign begins or continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Timing {
    pub(super) at: Timestamp,
    pub(super) wall: Option<DateTime>,
}

impl Campaign {
    /// Checks the campaign and returns the time at which it is to begin or continue.
    pub(super) fn timing(
        &self,
        input: &ScheduleInput,
        ready: &Readiness<'_>,
        now: Timestamp,
    ) -> Result<Timing, Refusal> {
        let by_timezone = input.by_timezone == Some(true);
        let mut violations = Violations::new();
        if self.started_at.is_some() {
            // Contract section 12.2: the frozen audience stays, with the times that its zones gave it.
            if by_timezone {
                let rule = "cannot be changed any more: the audience is frozen";
                violations.add("/by_timezone", FieldCode::Conflict, rule);
            }
        } else {
            self.plan.judge(ready.found, &mut violations);
            self.plan.check_parts(ready.found, &mut violations);
        }
        violations.into_result()?;
        let timing = match input.at {
            Some(at) if at.instant < now - PAST => return Err(Refusal::ScheduleInPast),
            Some(at) => Timing { at: at.instant, wall: by_timezone.then_some(at.wall) },
            None if input.is_now() || self.status == CampaignStatus::Paused => Timing { at: now, wall: None },
            None => return Err(Refusal::ScheduleTimeRequired),
        };
        if self.started_at.is_none() && self.plan.audience.is_empty() {
            return Err(Refusal::AudienceEmpty);
        }
        match ready.sender {
            SenderState::Verified => {}
            SenderState::Missing => return Err(Refusal::SenderMissing),
            SenderState::NotVerified => return Err(Refusal::SenderDomainNotVerified),
        }
        if ready.channel_is_configured { Ok(timing) } else { Err(Refusal::ChannelNotConfigured) }
    }

    /// Returns the time at which a scheduled campaign begins or continues: with `by_timezone` when the first zone on
    /// earth, UTC+14, reaches its wall-clock time.
    pub fn starts_at(&self) -> Option<Timestamp> {
        let at = self.scheduled_at.filter(|_| self.status == CampaignStatus::Scheduled)?;
        let first_zone = self.wall_time.filter(|_| self.started_at.is_none()).and_then(|wall| {
            let east = Offset::constant(14).to_time_zone();
            Some(east.to_timestamp(wall).ok()?.into())
        });
        Some(first_zone.unwrap_or(at))
    }

    /// Returns true if the campaign has to begin or to continue at `now`.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.starts_at().is_some_and(|at| at <= now)
    }

    /// Returns true if the start is overdue by so much that a person has to confirm it. Counts from when the campaign
    /// was scheduled, if that was later: a time that had passed then was meant.
    pub fn is_stale(&self, now: Timestamp) -> bool {
        let since = self.starts_at().max(self.schedule_called_at.filter(|_| self.starts_at().is_some()));
        since.is_some_and(|since| now.since(since) > STALE)
    }
}

/// Returns true if a campaign that is sending has stood still for so long that a person has to confirm it. Waiting for
/// quiet hours, zones, caps, the rate limit or a winner is progress, which the caller records.
pub fn has_stalled(last_progress: Timestamp, now: Timestamp) -> bool {
    now.since(last_progress) > STALE
}

impl CampaignPlan {
    /// Adds the templates that lack parts which a message of the channel needs and the campaign does not give itself.
    fn check_parts(&self, found: &[ResolvedReference], violations: &mut Violations) {
        for place in self.places() {
            let template = Reference::Template(self.template_of(place));
            let parts = found.iter().find_map(|found| match found.target {
                ReferenceTarget::Template { parts, .. } if found.reference == template => Some(parts),
                _ => None,
            });
            let Some(parts) = parts else { continue };
            let parts = Parts { subject: parts.subject || self.subject_of(place).is_some(), ..parts };
            if !parts.suffice(self.channel) {
                let own = place.filter(|place| self.variants[*place].template_id.is_some());
                let pointer =
                    own.map_or_else(|| "/template_id".to_owned(), |place| format!("/variants/{place}/template_id"));
                violations.add(pointer, FieldCode::Required, "the template lacks a subject or a body");
            }
        }
    }
}
