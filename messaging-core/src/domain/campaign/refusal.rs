//! Reasons against a change of a campaign's status: faults of the request or the campaign, or the present status.

use crate::violation::Violations;

/// Reason why the status of a campaign cannot change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Members of the request or of the campaign break their rules.
    #[error("{}", .0.summary())]
    Invalid(Violations),
    /// The campaign is in a state that does not allow it.
    #[error("not possible while {status}")]
    State {
        /// Present status of the campaign, as the API spells it.
        status: &'static str,
        /// The statuses from which it is possible.
        allowed: &'static [&'static str],
    },
    /// Neither `at` nor `send_now` was given.
    #[error("give at, or send_now")]
    ScheduleTimeRequired,
    /// `at` has passed.
    #[error("at lies in the past")]
    ScheduleInPast,
    /// The audience names no list and no segment.
    #[error("the audience names no list and no segment")]
    AudienceEmpty,
    /// No sender was given and none can be derived.
    #[error("give from_email, or verify exactly one sending domain")]
    SenderMissing,
    /// The sender's domain is not a verified domain of the workspace.
    #[error("the sender's domain is not a verified sending domain of this workspace")]
    SenderDomainNotVerified,
    /// The channel has no settings.
    #[error("the channel has no settings")]
    ChannelNotConfigured,
}

impl Refusal {
    /// Returns the code of contract section 1.4.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "validation_failed",
            Self::State { .. } => "invalid_state",
            Self::ScheduleTimeRequired => "schedule_time_required",
            Self::ScheduleInPast => "schedule_in_past",
            Self::AudienceEmpty => "audience_empty",
            Self::SenderMissing => "sender_missing",
            Self::SenderDomainNotVerified => "sender_domain_not_verified",
            Self::ChannelNotConfigured => "channel_not_configured",
        }
    }
}

impl From<Violations> for Refusal {
    fn from(violations: Violations) -> Self {
        Self::Invalid(violations)
    }
}
