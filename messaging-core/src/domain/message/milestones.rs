//! What has happened to a message, as far as it counts: when it was sent and delivered, what was seen of it.

use serde::{Deserialize, Serialize};

use super::status::{EventKind, MessageStatus};
use crate::time::Timestamp;

/// What of a message counts besides its status. Everything is noted once and stays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Milestones {
    /// Set of what was seen of the message: opens, clicks, a complaint, an unsubscribe.
    pub seen: EngagementFlags,
    /// Which of the first 64 links of its template people followed, a bit each.
    pub links: u64,
    /// Why the last look suppressed it, if it did.
    pub skip: Option<Skip>,
    /// When it first counted as sent.
    pub sent_at: Option<Timestamp>,
    /// When it was delivered.
    pub delivered_at: Option<Timestamp>,
}

impl Milestones {
    /// With what follows from getting into a state at a time: a message counts as sent from its first sent, delivered
    /// or bounced state (contract section 12.5).
    #[must_use]
    pub fn reaching(mut self, status: MessageStatus, at: Timestamp) -> Self {
        use MessageStatus as S;
        if matches!(status, S::Sent | S::Delivered | S::Bounced | S::Complained) {
            self.sent_at = self.sent_at.or(Some(at));
        }
        if matches!(status, S::Delivered | S::Complained) {
            self.delivered_at = self.delivered_at.or(Some(at));
        }
        self
    }

    /// With what an event shows.
    #[must_use]
    pub fn showing(mut self, kind: EventKind, is_machine: bool) -> Self {
        self.seen = self.seen.with(EngagementFlags::of_event(kind, is_machine));
        self
    }

    /// With a link that a person followed, by its number below 64; others are not told apart.
    #[must_use]
    pub fn following(mut self, link: u8) -> Self {
        self.links |= 1_u64.checked_shl(link.into()).unwrap_or_default();
        self
    }

    /// Whether a person followed a link.
    pub fn has_followed(&self, link: u8) -> bool {
        self.following(link) == *self
    }
}

/// What was seen of a message, each at least once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EngagementFlags(u8);

impl EngagementFlags {
    /// A person opened it.
    pub const OPENED: Self = Self(1);
    /// A person followed a link.
    pub const CLICKED: Self = Self(1 << 1);
    /// The recipient complained.
    pub const COMPLAINED: Self = Self(1 << 2);
    /// The recipient unsubscribed by it.
    pub const UNSUBSCRIBED: Self = Self(1 << 3);
    /// A machine opened it.
    pub const MACHINE: Self = Self(1 << 4);

    /// The bits, as stored; unknown ones are dropped.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 0b1_1111)
    }

    /// The bits, as stored.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Both.
    pub const fn with(self, more: Self) -> Self {
        Self(self.0 | more.0)
    }

    /// What is in it and not in the other.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// What is in it, one by one.
    pub fn each(self) -> impl Iterator<Item = Self> {
        (0..u8::BITS).map(|bit| Self(1 << bit)).filter(move |one| self.has(*one))
    }

    /// Whether all of the other was seen.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// What an event shows; nothing where it concerns the status only.
    pub const fn of_event(kind: EventKind, is_machine: bool) -> Self {
        match (kind, is_machine) {
            (EventKind::Open, false) => Self::OPENED,
            (EventKind::Open, true) => Self::MACHINE,
            (EventKind::Click, false) => Self::CLICKED,
            (EventKind::Complaint, _) => Self::COMPLAINED,
            (EventKind::Unsubscribe, _) => Self::UNSUBSCRIBED,
            _ => Self(0),
        }
    }
}

/// Why a message was suppressed by the last look, as statistics tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skip {
    /// The address is suppressed, for whatever reason.
    Suppressed,
    /// The contact has not agreed.
    NoConsent,
    /// The contact has had its share.
    FrequencyCap,
}

impl Skip {
    /// All of them, in the order of the stored numbers.
    pub const ALL: [Self; 3] = [Self::Suppressed, Self::NoConsent, Self::FrequencyCap];
}
