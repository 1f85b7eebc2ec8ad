//! The figures of a path: outcomes of its latest transactions, and complaints of readers.

use serde::{Deserialize, Serialize};

use super::brake::BrakeReason;
use super::reply::{PathReply, ReplyKind};
use crate::domain::delivery::site::{Meaning, PathAction};
use crate::time::Timestamp;

/// Maximum number of deferred transactions among the latest hundred.
pub const MAX_DEFERRED: u32 = 20;

/// Hard bounces in a thousand messages beyond which a path slows down.
pub const MAX_BOUNCE_RATE: u32 = 50;

/// Complaints in a thousand messages beyond which the operator is warned.
pub const WARN_COMPLAINT_RATE: u32 = 1;

/// Complaints in a thousand messages beyond which a path rests.
pub const MAX_COMPLAINT_RATE: u32 = 3;

/// Messages of a tally; rates are those of the current one and the one before.
const TALLY: u32 = 1500;

/// Minimum number of messages that a bounce rate is taken of, so that a few bad addresses make no high rate.
const LEAST_FOR_BOUNCES: u32 = 100;

/// Minimum number of messages that a complaint rate is taken of; complaints are rarer than bounces.
const LEAST_FOR_COMPLAINTS: u32 = 1500;

const DAY_MILLIS: i64 = 86_400_000;

/// Bits of the second word of [`Window::deferred`] that belong to the latest hundred.
const UPPER: u64 = (1 << 36) - 1;

/// Counts of the outcomes of the latest messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Window {
    /// One bit for each of the latest hundred transactions, the latest lowest: set if it was deferred.
    deferred: [u64; 2],
    /// Transactions among those bits, at most 100.
    known: u8,
    current: Tally,
    before: Tally,
    /// Day of the latest warning, since the epoch.
    warned_on: i64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Tally {
    answered: u32,
    hard: u32,
    complaints: u32,
}

impl Window {
    /// Counts a reply. Returns the reason and the figures if the path has to slow down.
    pub(super) fn answered(&mut self, reply: &PathReply) -> Option<(BrakeReason, String)> {
        if self.current.answered >= TALLY {
            self.before = std::mem::take(&mut self.current);
        }
        self.current.answered += 1;
        self.current.hard += u32::from(reply.kind == ReplyKind::HardBounced);
        self.push(counts_as_deferred(reply));
        self.too_many_deferred(reply).or_else(|| self.too_many_bounces(reply))
    }

    fn push(&mut self, is_deferred: bool) {
        let [low, high] = self.deferred;
        self.deferred = [low << 1 | u64::from(is_deferred), (high << 1 | low >> 63) & UPPER];
        self.known = (self.known + 1).min(100);
    }

    fn too_many_deferred(&mut self, reply: &PathReply) -> Option<(BrakeReason, String)> {
        let count: u32 = self.deferred.iter().map(|word| word.count_ones()).sum();
        if count <= MAX_DEFERRED {
            return None;
        }
        let of = self.known;
        // The deferrals that led to this are not counted once more.
        (self.deferred, self.known) = ([0; 2], 0);
        let text = format!("{count} of the last {of} transactions were deferred; the last reply: {}", reply.evidence);
        Some((BrakeReason::Rate, text))
    }

    fn too_many_bounces(&mut self, reply: &PathReply) -> Option<(BrakeReason, String)> {
        let (hard, answered) = (self.current.hard + self.before.hard, self.current.answered + self.before.answered);
        if reply.kind != ReplyKind::HardBounced || !exceeds(hard, answered.max(LEAST_FOR_BOUNCES), MAX_BOUNCE_RATE) {
            return None;
        }
        (self.current.hard, self.before.hard) = (0, 0);
        let text = format!("{hard} of the last {answered} messages went to addresses that do not exist");
        Some((BrakeReason::Bounces, text))
    }

    /// Counts a complaint. Returns the action of the path and the figures, if it has to act or people have to know.
    pub(super) fn complained(&mut self, now: Timestamp) -> Option<(PathAction, String)> {
        self.current.complaints += 1;
        let complaints = self.current.complaints + self.before.complaints;
        let answered = self.current.answered + self.before.answered;
        let of = answered.max(LEAST_FOR_COMPLAINTS);
        let text = format!("{complaints} complaints about the last {answered} messages");
        if exceeds(complaints, of, MAX_COMPLAINT_RATE) {
            (self.current.complaints, self.before.complaints) = (0, 0);
            return Some((PathAction::Rest, text));
        }
        let today = now.as_millis().div_euclid(DAY_MILLIS);
        if !exceeds(complaints, of, WARN_COMPLAINT_RATE) || self.warned_on == today {
            return None;
        }
        self.warned_on = today;
        Some((PathAction::None, text))
    }
}

/// Returns true if `count` is more than `thousandths` thousandths of `of`.
fn exceeds(count: u32, of: u32, thousandths: u32) -> bool {
    u64::from(count) * 1000 > u64::from(of) * u64::from(thousandths)
}

/// Returns true for a deferral that says something about the sender, or nothing. One because of a mailbox, the message
/// or missing authentication is the same at every rate.
fn counts_as_deferred(reply: &PathReply) -> bool {
    let is_elsewhere = reply
        .verdict
        .is_some_and(|verdict| matches!(verdict.meaning, Meaning::User | Meaning::Content | Meaning::Authentication));
    reply.kind == ReplyKind::Deferred && !is_elsewhere
}
