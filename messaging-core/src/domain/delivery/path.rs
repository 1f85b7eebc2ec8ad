//! Paths: the state of one source's sending to one site.
//!
//! A path has three bounds: the messages that the site allows in a minute, its warm-up ([`warm_up`](super::warm_up)),
//! and its brake, which reads the site's replies. Nothing waits here: a sender asks [`PathState::may_send`], and
//! reports the beginning of a transaction ([`PathState::sent`]) and its answer ([`PathState::answered`]). The state is
//! small, and stored as JSON.

mod brake;
mod pace;
mod reply;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
mod window;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use self::brake::Brake;
pub use self::brake::{BrakeReason, FIRST_REST, LONGEST_REST, PathStatus, RECOVERY_STEP};
use self::pace::Pace;
pub use self::reply::{PathReply, ReplyKind};
use self::window::Window;
pub use self::window::{MAX_BOUNCE_RATE, MAX_COMPLAINT_RATE, MAX_DEFERRED, WARN_COMPLAINT_RATE};
use crate::domain::delivery::site::{PathAction, SiteLimits};
use crate::domain::delivery::warm_up::WarmUp;
use crate::time::Timestamp;

/// State of a path. Each call gives the present time as `now`; a clock that was set back does no harm.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PathState {
    warm_up: WarmUp,
    #[serde(skip_serializing_if = "Brake::is_released")]
    brake: Brake,
    window: Window,
    pace: Pace,
    /// Number of releases and stops that people ordered.
    #[serde(skip_serializing_if = "is_default")]
    orders: u32,
    /// Number of complaints that other nodes have added, which do not use the path.
    #[serde(skip_serializing_if = "is_default")]
    told: u32,
}

/// Maximum number of complaints of other nodes that are counted at once.
const MAX_TOLD: u32 = 10_000;

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Priority of the mail that wants to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// Mail that somebody waits for. It may use the whole allowance of a day at once; hourly shares do not bound it.
    Transactional {
        /// Expiry of the message. Instead of a wait until then or later, the message gets `Permission::Overdue`; only a
        /// stopped path holds it.
        expires_at: Timestamp,
    },
    /// Mail of campaigns and automations.
    Marketing,
}

/// Permission for a transaction to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// The transaction may begin.
    Allowed,
    /// The transaction may begin, although the path allows no more, because the message would expire while it waits. A
    /// source that is `Allowed` is preferred.
    Overdue,
    /// The transaction has to wait.
    Wait(Wait),
}

/// Bound that a transaction waits for, and the end of the wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// Time at which to ask again; `None` if only a person can end the wait.
    pub until: Option<Timestamp>,
    /// Bound that the path has reached.
    pub reason: WaitReason,
}

/// Bound of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitReason {
    /// The rate of the path, while the brake does not lower it.
    Pace,
    /// The warm-up, which bounds the messages of today.
    WarmingUp {
        /// Messages sent today.
        sent: u32,
        /// Messages allowed today.
        allowed: u32,
    },
    /// The brake, with its reason; `None` if a person stopped the path.
    Braked(Option<BrakeReason>),
}

impl WaitReason {
    /// Returns the reason as one sentence for people. `source` is the address of the source.
    pub fn sentence(self, source: &str, site: &str) -> String {
        match self {
            Self::Pace => format!("{source} sends to {site} as fast as it may."),
            Self::WarmingUp { sent, allowed } => {
                format!("{source} is warming up at {site}: {sent} of the {allowed} messages of today were sent.")
            }
            Self::Braked(None) => format!("Sending from {source} to {site} was stopped by the operator."),
            Self::Braked(Some(reason)) => format!("{source} holds back at {site}: {}.", reason.words()),
        }
    }
}

/// A change of a path's brake, for the log and the record of actions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrakeChange {
    /// Action taken on the path; [`PathAction::None`] for a mere warning.
    pub action: PathAction,
    /// Reason of the action.
    pub reason: BrakeReason,
    /// End of the rest, if the path rests.
    pub until: Option<Timestamp>,
    /// The reply, at most 512 characters with addresses masked, or the figures, which may quote the reply.
    pub evidence: String,
}

/// A path as the operator sees it (contract section 14.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathReport {
    /// Status of the path.
    pub status: PathStatus,
    /// Messages a minute that the path may send; `None` without a bound.
    pub rate_per_minute: Option<u32>,
    /// End of the rest, if the path rests.
    pub until: Option<Timestamp>,
    /// Reason of the brake; `None` if the path is `ok` or a person stopped it.
    pub reason: Option<BrakeReason>,
    /// The reply or the figures behind the reason.
    pub evidence: Option<String>,
    /// Messages sent today.
    pub sent_today: u32,
    /// Messages allowed today; `None` without a bound.
    pub allowed_today: Option<u32>,
}

impl PathState {
    /// Returns the state of a new path whose source the operator declared warm.
    pub fn known() -> Self {
        Self { warm_up: WarmUp::known(), ..Self::default() }
    }

    /// Returns the warm-up of the path at `now`.
    pub fn warm_up(&self, limits: &SiteLimits, now: Timestamp) -> WarmUp {
        self.warm_up.at(now, limits.warm_up, self.brake.status(now) != PathStatus::Ok)
    }

    /// Sets if the site knows the source, so that the warm-up bounds nothing; if not, the warm-up continues at its
    /// present level. The brake stays as it is.
    pub fn set_known(&mut self, is_known: bool) {
        self.warm_up.set_known(is_known);
    }

    /// Decides if a transaction of this priority may begin at `now`.
    pub fn may_send(&self, limits: &SiteLimits, now: Timestamp, priority: Priority) -> Permission {
        let is_transactional = matches!(priority, Priority::Transactional { .. });
        let would_expire = |until: Timestamp| match priority {
            Priority::Transactional { expires_at } => until >= expires_at,
            Priority::Marketing => false,
        };
        if self.brake.holds(now) {
            let until = self.brake.rests_until(now);
            return match until {
                Some(until) if would_expire(until) => Permission::Overdue,
                _ => Permission::Wait(Wait { until, reason: WaitReason::Braked(self.brake.reason()) }),
            };
        }
        let warm_up = self.warm_up(limits, now);
        if let Some(until) = warm_up.wait(now, limits.warm_up, is_transactional) {
            if would_expire(until) {
                return Permission::Overdue;
            }
            let allowed = warm_up.allowed_today(limits.warm_up).unwrap_or_default();
            let reason = WaitReason::WarmingUp { sent: warm_up.sent_today(), allowed };
            return Permission::Wait(Wait { until: Some(until), reason });
        }
        match self.pace.wait(self.rate(limits, now), now) {
            Some(until) if would_expire(until) => Permission::Overdue,
            Some(until) if self.brake.status(now) != PathStatus::Ok => {
                Permission::Wait(Wait { until: Some(until), reason: WaitReason::Braked(self.brake.reason()) })
            }
            Some(until) => Permission::Wait(Wait { until: Some(until), reason: WaitReason::Pace }),
            None => Permission::Allowed,
        }
    }

    /// Returns the messages a minute that the path may send now; `None` without a bound.
    fn rate(&self, limits: &SiteLimits, now: Timestamp) -> Option<u32> {
        let slowed = self.brake.rate(now);
        slowed.map(|rate| limits.messages_per_minute.map_or(rate, |most| rate.min(most))).or(limits.messages_per_minute)
    }

    /// Counts a transaction that begins.
    pub fn sent(&mut self, limits: &SiteLimits, now: Timestamp) {
        self.pace.count(self.rate(limits, now), now);
        self.warm_up = self.warm_up(limits, now);
        self.warm_up.count(now, limits.warm_up);
    }

    /// Takes back a transaction that was counted and did not begin after all.
    pub fn unsent(&mut self, limits: &SiteLimits, now: Timestamp) {
        self.pace.uncount(self.rate(limits, now));
        self.warm_up = self.warm_up(limits, now);
        self.warm_up.uncount();
    }

    /// Returns the time between two messages of marketing mail at the present rate and level of the warm-up; `None`
    /// without a bound.
    pub fn spacing(&self, limits: &SiteLimits, now: Timestamp) -> Option<Duration> {
        self.rate(limits, now).map(pace::interval).max(self.warm_up(limits, now).spacing(limits.warm_up))
    }

    /// Counts a site's answer about one recipient. Returns the change of the brake, if there is one.
    pub fn answered(&mut self, limits: &SiteLimits, now: Timestamp, reply: &PathReply) -> Option<BrakeChange> {
        let by_reply = reply.verdict.and_then(|verdict| {
            let reason = BrakeReason::of(verdict.meaning)?;
            self.act(limits, now, verdict.action, reason, &reply.evidence)
        });
        let by_figures = self.window.answered(reply);
        by_reply.or_else(|| {
            let (reason, evidence) = by_figures?;
            self.act(limits, now, PathAction::SlowDown, reason, &evidence)
        })
    }

    /// Counts a complaint about a message that the path delivered. Returns the change of the brake, if there is one, or
    /// a warning, with the action [`PathAction::None`].
    pub fn complained(&mut self, limits: &SiteLimits, now: Timestamp) -> Option<BrakeChange> {
        let (action, evidence) = self.window.complained(now)?;
        if action == PathAction::None {
            return Some(BrakeChange { action, reason: BrakeReason::Complaints, until: None, evidence });
        }
        self.act(limits, now, action, BrakeReason::Complaints, &evidence)
    }

    /// Counts a complaint in the stored state of a path that another node uses. That node takes the complaint over by
    /// [`Self::hear_complaints`].
    pub fn complained_elsewhere(&mut self, limits: &SiteLimits, now: Timestamp) {
        self.told = self.told.saturating_add(1);
        // The node that uses the path reports the change.
        let _ = self.complained(limits, now);
    }

    /// Counts the complaints that other nodes have added to the stored state of the path, and this state does not have.
    /// Returns the changes of the brake.
    pub fn hear_complaints(&mut self, stored: &Self, limits: &SiteLimits, now: Timestamp) -> Vec<BrakeChange> {
        let unheard = stored.told.saturating_sub(self.told).min(MAX_TOLD);
        self.told = self.told.max(stored.told);
        (0..unheard).filter_map(|_| self.complained(limits, now)).collect()
    }

    fn act(
        &mut self,
        limits: &SiteLimits,
        now: Timestamp,
        action: PathAction,
        reason: BrakeReason,
        evidence: &str,
    ) -> Option<BrakeChange> {
        if action == PathAction::None {
            return None;
        }
        // Earlier days are judged first, so that only today is spoiled.
        self.warm_up = self.warm_up(limits, now);
        self.warm_up.spoil();
        let usual = self.pace.measured(now);
        let usual = limits.messages_per_minute.map_or(usual, |most| usual.min(most));
        let has_changed = match action {
            PathAction::SlowDown => self.brake.slow_down(now, usual, reason, evidence),
            PathAction::Rest => self.brake.rest(now, usual, reason, evidence),
            PathAction::Stop => self.brake.stop(Some(reason), evidence),
            PathAction::None => false,
        };
        let until = self.brake.rests_until(now);
        has_changed.then(|| BrakeChange { action, reason, until, evidence: evidence.to_owned() })
    }

    /// Releases the brake on the order of a person: the path sends at its full rate again.
    pub fn release(&mut self) {
        self.brake = Brake::default();
        self.window = Window::default();
        self.orders = self.orders.saturating_add(1);
    }

    /// Stops the path on the order of a person.
    pub fn stop(&mut self) {
        if self.brake.stop(None, "stopped by the operator") {
            self.orders = self.orders.saturating_add(1);
        }
    }

    /// Returns the number of releases and stops that people ordered; of two states of a path, the one with more is
    /// current.
    pub const fn orders(&self) -> u32 {
        self.orders
    }

    /// Returns the status of the path.
    pub fn status(&self, now: Timestamp) -> PathStatus {
        self.brake.status(now)
    }

    /// Returns the time of the latest message.
    pub const fn last_used(&self) -> Option<Timestamp> {
        self.warm_up.last_used()
    }

    /// Returns the path as the operator sees it.
    pub fn report(&self, limits: &SiteLimits, now: Timestamp) -> PathReport {
        let status = self.brake.status(now);
        let warm_up = self.warm_up(limits, now);
        let is_braked = status != PathStatus::Ok;
        PathReport {
            status,
            rate_per_minute: match status {
                PathStatus::Resting | PathStatus::Stopped => Some(0),
                PathStatus::Ok | PathStatus::Slowed => self.rate(limits, now),
            },
            until: self.brake.rests_until(now),
            reason: self.brake.reason().filter(|_| is_braked),
            evidence: self.brake.evidence().filter(|_| is_braked).map(str::to_owned),
            sent_today: warm_up.sent_today(),
            allowed_today: warm_up.allowed_today(limits.warm_up),
        }
    }
}
