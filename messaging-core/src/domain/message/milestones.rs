//! Milestones of a message, which statistics count: when it was sent and delivered, and how recipients engaged with it.

use serde::{Deserialize, Serialize};

use super::status::{EventKind, MessageStatus};
use crate::time::Timestamp;

/// Facts about a message, besides its status, that statistics count. Each is set once and stays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Milestones {
    /// Engagement seen so far: opens, clicks, a complaint, an unsubscribe.
    pub seen: EngagementFlags,
    /// Links of its template that people followed: one bit for each of the first 64, the lowest for the first.
    pub links: u64,
    /// Reason for which the last look, the check right before sending, suppressed it; `None` if it did not.
    pub skip: Option<Skip>,
    /// When it first counted as sent.
    pub sent_at: Option<Timestamp>,
    /// When it was first known to be delivered.
    pub delivered_at: Option<Timestamp>,
}

impl Milestones {
    /// Returns the milestones after the message gets into a status at a time. It counts as sent from its first sent,
    /// delivered, bounced or complained status (contract section 12.5).
    #[must_use]
    pub fn with_status(mut self, status: MessageStatus, at: Timestamp) -> Self {
        use MessageStatus as S;
        if matches!(status, S::Sent | S::Delivered | S::Bounced | S::Complained) {
            self.sent_at = self.sent_at.or(Some(at));
        }
        if matches!(status, S::Delivered | S::Complained) {
            self.delivered_at = self.delivered_at.or(Some(at));
        }
        self
    }

    /// Returns the milestones after an event; `is_machine` is true if no person opened or clicked.
    #[must_use]
    pub fn with_event(mut self, kind: EventKind, is_machine: bool) -> Self {
        self.seen = self.seen.union(EngagementFlags::of_event(kind, is_machine));
        self
    }

    /// Returns the milestones after a person followed a link, by its number in the template. Links from number 64 on
    /// are not kept.
    #[must_use]
    pub fn with_followed_link(mut self, link: u8) -> Self {
        self.links |= 1_u64.checked_shl(link.into()).unwrap_or_default();
        self
    }

    /// Returns true if a person followed a link, by its number in the template; also for all links from number 64 on,
    /// which are not kept.
    pub fn has_followed(&self, link: u8) -> bool {
        self.with_followed_link(link) == *self
    }
}

/// Set of kinds of engagement that a message had at least once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EngagementFlags(u8);

impl EngagementFlags {
    /// A person opened the message.
    pub const OPENED: Self = Self(1);
    /// A person followed a link.
    pub const CLICKED: Self = Self(1 << 1);
    /// The recipient complained.
    pub const COMPLAINED: Self = Self(1 << 2);
    /// The recipient unsubscribed through the message.
    pub const UNSUBSCRIBED: Self = Self(1 << 3);
    /// A machine opened the message.
    pub const MACHINE_OPENED: Self = Self(1 << 4);

    /// Returns the set for stored bits; unknown ones are dropped.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 0b1_1111)
    }

    /// Returns the bits, as stored.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Returns the union of two sets.
    pub const fn union(self, more: Self) -> Self {
        Self(self.0 | more.0)
    }

    /// Returns this set without the members of the other.
    #[must_use]
    pub const fn difference(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Iterates over the members of the set, each as a set of its own.
    pub fn iter(self) -> impl Iterator<Item = Self> {
        (0..u8::BITS).map(|bit| Self(1 << bit)).filter(move |one| self.has(*one))
    }

    /// Returns true if this set contains all of the other.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the flag that an event sets. Empty for a click of a machine, and for events that concern only the
    /// status.
    pub const fn of_event(kind: EventKind, is_machine: bool) -> Self {
        match (kind, is_machine) {
            (EventKind::Open, false) => Self::OPENED,
            (EventKind::Open, true) => Self::MACHINE_OPENED,
            (EventKind::Click, false) => Self::CLICKED,
            (EventKind::Complaint, _) => Self::COMPLAINED,
            (EventKind::Unsubscribe, _) => Self::UNSUBSCRIBED,
            _ => Self(0),
        }
    }
}

/// Reason for which the last look, the check right before sending, suppressed a message, as statistics tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skip {
    /// The address is suppressed, for any reason.
    Suppressed,
    /// The contact has not consented.
    NoConsent,
    /// The contact has got as many messages as the frequency cap allows.
    FrequencyCap,
}

impl Skip {
    /// Every reason, in the order of the stored numbers.
    pub const ALL: [Self; 3] = [Self::Suppressed, Self::NoConsent, Self::FrequencyCap];
}
