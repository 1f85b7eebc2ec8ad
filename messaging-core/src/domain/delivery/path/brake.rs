//! The brake of a path: slower, at rest, or stopped.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reply::MAX_EVIDENCE;
use crate::domain::delivery::site::Meaning;
use crate::time::Timestamp;

/// The first rest; each further one is twice as long.
pub const FIRST_REST: Duration = Duration::from_mins(15);

/// The longest rest.
pub const LONGEST_REST: Duration = Duration::from_hours(12);

/// Time without a bad answer after which the rate grows by a quarter.
pub const RECOVERY_STEP: Duration = Duration::from_mins(15);

/// Time within which bad answers count as answers to messages sent at one rate, and halve it once.
const SETTLING: Duration = Duration::from_mins(1);

/// Minimum rate that is halved, in messages a minute; a path that sends less is slowed down as if it sent this many.
const LEAST_USUAL: u32 = 20;

/// Maximum time that a brake can lie ahead; a later one was set by a clock that was ahead, and is over.
const LATEST: Duration = Duration::from_hours(36);

/// Steps after which any rate has recovered.
const MAX_STEPS: u32 = 200;

/// State of a path (contract section 14.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PathStatus {
    /// The path sends at its full rate.
    Ok,
    /// The path sends at a lower rate.
    Slowed,
    /// The path sends nothing until a time.
    Resting,
    /// The path sends nothing until a person acts.
    Stopped,
}

impl PathStatus {
    /// Every status.
    pub const ALL: [Self; 4] = [Self::Ok, Self::Slowed, Self::Resting, Self::Stopped];

    /// Returns the text form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Slowed => "slowed",
            Self::Resting => "resting",
            Self::Stopped => "stopped",
        }
    }
}

/// Reason for which a path is braked (contract section 14.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are those of the contract")]
pub enum BrakeReason {
    Rate,
    Reputation,
    BlockedIp,
    BlockedDomain,
    Authentication,
    Content,
    Bounces,
    Complaints,
}

impl BrakeReason {
    /// Returns the reason for a meaning of a reply; `None` if it concerns one mailbox.
    pub const fn of(meaning: Meaning) -> Option<Self> {
        Some(match meaning {
            Meaning::Rate => Self::Rate,
            Meaning::Reputation => Self::Reputation,
            Meaning::BlockedIp => Self::BlockedIp,
            Meaning::BlockedDomain => Self::BlockedDomain,
            Meaning::Authentication => Self::Authentication,
            Meaning::Content => Self::Content,
            Meaning::User => return None,
        })
    }

    /// Returns the text form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Reputation => "reputation",
            Self::BlockedIp => "blocked_ip",
            Self::BlockedDomain => "blocked_domain",
            Self::Authentication => "authentication",
            Self::Content => "content",
            Self::Bounces => "bounces",
            Self::Complaints => "complaints",
        }
    }

    /// Returns the reason in words that follow a colon.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Rate => "the site says that it is too much or too fast",
            Self::Reputation => "the site thinks little of the source",
            Self::BlockedIp => "the address is on a block list",
            Self::BlockedDomain => "a domain of the message is on a block list",
            Self::Authentication => "the site misses authentication",
            Self::Content => "the site refuses what the messages hold",
            Self::Bounces => "too many of the addresses do not exist",
            Self::Complaints => "too many readers complain",
        }
    }
}

/// State of the brake.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Brake {
    #[serde(skip_serializing_if = "Option::is_none")]
    slowed: Option<Slowed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rest_until: Option<Timestamp>,
    /// Rests since the path was last at its full rate.
    rests: u8,
    is_stopped: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<BrakeReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence: Option<String>,
}

/// A lower rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Slowed {
    /// Messages a minute at `since`.
    rate: u32,
    /// Messages a minute at which the path has recovered.
    usual: u32,
    /// The latest bad answer, or the end of the rest that it led to.
    since: Timestamp,
    halved_at: Timestamp,
}

impl Slowed {
    /// Returns the rate that it has grown to; `None` once it has recovered.
    fn grown(self, now: Timestamp) -> Option<u32> {
        if self.since > now + LATEST {
            return None;
        }
        let steps = now.since(self.since).as_millis() / RECOVERY_STEP.as_millis();
        let steps = u32::try_from(steps).unwrap_or(MAX_STEPS).min(MAX_STEPS);
        let grown = (0..steps).fold(self.rate, |rate, _| rate.saturating_add((rate / 4).max(1)));
        (steps == 0 || grown < self.usual).then_some(grown)
    }
}

impl Brake {
    /// Returns true if the brake was never used, or was released.
    pub(super) fn is_released(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn status(&self, now: Timestamp) -> PathStatus {
        if self.is_stopped {
            PathStatus::Stopped
        } else if self.rest_until.is_some_and(|until| until > now && until <= now + LATEST) {
            PathStatus::Resting
        } else if self.rate(now).is_some() {
            PathStatus::Slowed
        } else {
            PathStatus::Ok
        }
    }

    pub(super) const fn reason(&self) -> Option<BrakeReason> {
        self.reason
    }

    pub(super) fn evidence(&self) -> Option<&str> {
        self.evidence.as_deref()
    }

    /// Returns the lower rate, while there is one.
    pub(super) fn rate(&self, now: Timestamp) -> Option<u32> {
        self.slowed?.grown(now)
    }

    /// Returns true while nothing is sent.
    pub(super) fn holds(&self, now: Timestamp) -> bool {
        matches!(self.status(now), PathStatus::Stopped | PathStatus::Resting)
    }

    /// Returns the end of the rest, while there is one.
    pub(super) fn rests_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.rest_until.filter(|_| self.status(now) == PathStatus::Resting)
    }

    /// Halves the rate, which is `usual` on a path that is not slowed. Returns true if anything changes.
    pub(super) fn slow_down(&mut self, now: Timestamp, usual: u32, reason: BrakeReason, evidence: &str) -> bool {
        match self.status(now) {
            // Late answers to messages sent before.
            PathStatus::Stopped | PathStatus::Resting => return false,
            PathStatus::Ok => *self = Self::default(),
            PathStatus::Slowed => {}
        }
        let halved = self.halve(now, now, usual);
        if halved {
            self.note(Some(reason), evidence);
        }
        halved
    }

    /// Lets the path rest, and continue at half the rate. Returns true if anything changes.
    pub(super) fn rest(&mut self, now: Timestamp, usual: u32, reason: BrakeReason, evidence: &str) -> bool {
        match self.status(now) {
            PathStatus::Stopped | PathStatus::Resting => return false,
            PathStatus::Ok => *self = Self::default(),
            PathStatus::Slowed => {}
        }
        let length = FIRST_REST.saturating_mul(1 << self.rests.min(10)).min(LONGEST_REST);
        let until = now + length;
        self.halve(now, until, usual);
        self.rest_until = Some(until);
        self.rests = self.rests.saturating_add(1);
        self.note(Some(reason), evidence);
        true
    }

    /// Stops the path. Returns true if anything changes.
    pub(super) fn stop(&mut self, reason: Option<BrakeReason>, evidence: &str) -> bool {
        if self.is_stopped && (reason.is_some() || self.reason.is_none()) {
            return false;
        }
        self.is_stopped = true;
        self.note(reason, evidence);
        true
    }

    fn halve(&mut self, now: Timestamp, since: Timestamp, usual: u32) -> bool {
        let usual = usual.max(LEAST_USUAL);
        let Some(slowed) = self.slowed else {
            self.slowed = Some(Slowed { rate: (usual / 2).max(1), usual, since, halved_at: now });
            return true;
        };
        let rate = slowed.grown(now).unwrap_or(slowed.usual);
        let settles = now.since(slowed.halved_at) < SETTLING && slowed.halved_at <= now;
        let (rate, halved_at) = if settles { (rate, slowed.halved_at) } else { ((rate / 2).max(1), now) };
        self.slowed = Some(Slowed { rate, since, halved_at, ..slowed });
        !settles
    }

    fn note(&mut self, reason: Option<BrakeReason>, evidence: &str) {
        self.reason = reason;
        self.evidence = Some(evidence.chars().take(MAX_EVIDENCE).collect());
    }
}
