//! Permitted changes of a campaign's status, and their effect on the campaign.
//!
//! Contract sections 12.2 and 12.5. Each change is a function from the stored campaign to the next one. Requests of
//! people are refused with a [`Refusal`]; changes by the system return `None` if the campaign has moved on since.
//! Fields are judged first, then the status, then the faults of the campaign.

use super::refusal::Refusal;
use super::schedule::{Readiness, ScheduleInput};
use super::winner::Score;
use super::{Campaign, CampaignKind, CampaignPhase, CampaignStatus, FailureReason, PauseReason};
use crate::input::Input;
use crate::time::Timestamp;
use crate::violation::{FieldCode, Violations, refuse};

/// Statuses in which the plan may change.
const CHANGING: &[&str] = &["draft"];
/// Statuses in which it may be deleted.
const DELETING: &[&str] = &["draft", "cancelled"];
/// Statuses in which it may be scheduled.
const SCHEDULING: &[&str] = &["draft", "scheduled", "paused"];
/// Statuses in which it may be paused.
const PAUSING: &[&str] = &["scheduled", "sending"];
/// Statuses in which it may be cancelled.
const CANCELLING: &[&str] = &["scheduled", "sending", "paused"];
/// Statuses in which it may be unscheduled, before the start.
const UNSCHEDULING: &[&str] = &["scheduled", "paused"];
/// Statuses in which a winner may be declared, in phase `waiting_winner`.
const WINNING: &[&str] = &["scheduled", "sending", "paused"];

impl Campaign {
    fn allow(&self, allowed: &'static [&'static str]) -> Result<(), Refusal> {
        if allowed.contains(&self.status.as_str()) { Ok(()) } else { Err(self.refusal(allowed)) }
    }

    const fn refusal(&self, allowed: &'static [&'static str]) -> Refusal {
        Refusal::State { status: self.status.as_str(), allowed }
    }

    fn moved(&self, status: CampaignStatus, now: Timestamp) -> Self {
        Self { status, updated_at: now, ..self.clone() }
    }

    /// Succeeds if the status of the campaign allows a change of its plan.
    pub fn check_change(&self) -> Result<(), Refusal> {
        self.allow(CHANGING)
    }

    /// Succeeds if the status of the campaign allows that it is deleted.
    pub fn check_delete(&self) -> Result<(), Refusal> {
        self.allow(DELETING)
    }

    /// `schedule`: sets the time of the start. A paused campaign continues, with the same audience if it had begun.
    pub fn schedule(&self, input: &ScheduleInput, ready: &Readiness<'_>, now: Timestamp) -> Result<Self, Refusal> {
        let mut violations = Violations::new();
        input.check(&mut violations);
        input.check_at(now, &mut violations);
        violations.into_result()?;
        self.allow(SCHEDULING)?;
        let timing = self.timing(input, ready, now)?;
        Ok(Self {
            scheduled_at: Some(timing.at),
            wall_time: if self.started_at.is_some() { self.wall_time } else { timing.wall },
            schedule_called_at: Some(now),
            pause_reason: None,
            ..self.moved(CampaignStatus::Scheduled, now)
        })
    }

    /// `pause`: stops sending.
    pub fn pause(&self, now: Timestamp) -> Result<Self, Refusal> {
        self.allow(PAUSING)?;
        Ok(Self { pause_reason: Some(PauseReason::User), ..self.moved(CampaignStatus::Paused, now) })
    }

    /// `cancel`: withdraws all messages that have not been sent.
    pub fn cancel(&self, now: Timestamp) -> Result<Self, Refusal> {
        self.allow(CANCELLING)?;
        Ok(self.ended(CampaignStatus::Cancelled, now))
    }

    /// `unschedule`: makes the campaign a draft again, if it has not begun.
    pub fn unschedule(&self, now: Timestamp) -> Result<Self, Refusal> {
        self.allow(UNSCHEDULING)?;
        if self.started_at.is_some() {
            return Err(self.refusal(UNSCHEDULING));
        }
        Ok(Self {
            scheduled_at: None,
            wall_time: None,
            schedule_called_at: None,
            pause_reason: None,
            ..self.moved(CampaignStatus::Draft, now)
        })
    }

    /// `winner`: a person chooses the variant that the rest gets. `scores` are the present scores of the variants.
    pub fn declare_winner(&self, variant: &str, scores: Vec<Score>, now: Timestamp) -> Result<Self, Refusal> {
        let place = self.plan.variants.iter().position(|known| known.name == variant);
        let Some(place) = place else {
            return Err(refuse("/variant", FieldCode::NotFound, "no variant has this name").into());
        };
        self.decided(place, scores, now).ok_or_else(|| self.refusal(WINNING))
    }

    /// Begins or continues the campaign, if it is due.
    pub fn begin(&self, now: Timestamp) -> Option<Self> {
        self.is_due(now)
            .then(|| Self { started_at: self.started_at.or(Some(now)), ..self.moved(CampaignStatus::Sending, now) })
    }

    /// Records that the audience is known. `has_rest` is true if recipients remain beside a test group; without them
    /// nothing is tested.
    pub fn frozen(&self, recipients: u64, has_rest: bool, now: Timestamp) -> Option<Self> {
        if self.status.is_final() || self.started_at.is_none() || self.recipients.is_some() {
            return None;
        }
        let is_test = self.plan.kind == CampaignKind::AbTest && self.plan.settings.ab_test.is_some() && has_rest;
        let phase = is_test.then_some(CampaignPhase::Testing);
        Some(Self { recipients: Some(recipients), phase, ..self.moved(self.status, now) })
    }

    /// Begins the wait for a winner, because the last message of the test group left `waiting`. A pause does not
    /// prevent it.
    pub fn test_sent(&self, now: Timestamp) -> Option<Self> {
        (self.phase == Some(CampaignPhase::Testing) && !self.status.is_final()).then(|| Self {
            phase: Some(CampaignPhase::WaitingWinner),
            test_sent_at: Some(now),
            ..self.moved(self.status, now)
        })
    }

    /// Returns the end of the wait for a winner; `None` while the test group is being sent, and after the decision.
    pub fn winner_due_at(&self) -> Option<Timestamp> {
        let test = self.plan.settings.ab_test.filter(|_| self.phase == Some(CampaignPhase::WaitingWinner))?;
        Some(self.test_sent_at? + std::time::Duration::from_secs(u64::from(test.wait_minutes) * 60))
    }

    /// Records the winner, which the rest gets. A pause does not prevent it.
    pub fn decided(&self, place: usize, scores: Vec<Score>, now: Timestamp) -> Option<Self> {
        let is_open = self.phase == Some(CampaignPhase::WaitingWinner) && !self.status.is_final();
        (is_open && place < self.plan.variants.len()).then(|| Self {
            phase: Some(CampaignPhase::Winner),
            winner: Some(place),
            scores,
            ..self.moved(self.status, now)
        })
    }

    /// Ends the campaign as sent, if no recipient waits and no test is open.
    pub fn finish(&self, waiting: u64, now: Timestamp) -> Option<Self> {
        let is_open = matches!(self.phase, Some(CampaignPhase::Testing | CampaignPhase::WaitingWinner));
        let is_done = self.recipients.is_some() && waiting == 0 && !is_open;
        (self.status == CampaignStatus::Sending && is_done).then(|| self.ended(CampaignStatus::Sent, now))
    }

    /// Ends a campaign that cannot be sent as failed.
    pub fn fail(&self, reason: FailureReason, now: Timestamp) -> Option<Self> {
        (self.status == CampaignStatus::Sending)
            .then(|| Self { failure_reason: Some(reason), ..self.ended(CampaignStatus::Failed, now) })
    }

    /// Pauses the campaign by the system, until a person says that it is still wanted.
    pub fn hold_back(&self, reason: PauseReason, now: Timestamp) -> Option<Self> {
        matches!(self.status, CampaignStatus::Scheduled | CampaignStatus::Sending)
            .then(|| Self { pause_reason: Some(reason), ..self.moved(CampaignStatus::Paused, now) })
    }

    fn ended(&self, status: CampaignStatus, now: Timestamp) -> Self {
        Self { phase: None, pause_reason: None, completed_at: Some(now), ..self.moved(status, now) }
    }
}

#[cfg(test)]
pub(super) mod tests;
