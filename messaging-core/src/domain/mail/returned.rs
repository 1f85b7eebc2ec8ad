//! Consequences of a report by mail, for the message that it is about.
//!
//! Contract sections 4.2 and 10. Reports come late, twice, out of order and in the words of other programs: each has
//! its effect once, the status never moves backwards, and a recipient who cannot be found changes nothing for others.

use serde_json::json;

use crate::domain::audience::suppression::SuppressionReason;
use crate::domain::channel::Channel;
use crate::domain::channel::address::normalize_email;
use crate::domain::delivery::bounce::classify;
use crate::domain::delivery::consequence::Disposition;
use crate::domain::delivery::outcome::{Acceptance, Answer};
use crate::domain::delivery::{Judgment, delivered_meta, peer_meta};
use crate::domain::mail::report::{Action, RecipientReport, Report};
use crate::domain::message::recipients::{Recipient, RecipientKind};
use crate::domain::message::{EventKind, MessageEvent, MessageStatus};

/// Facts about the message that a report is about.
#[derive(Debug, Clone, Copy)]
pub struct Returned<'a> {
    /// Status of the message.
    pub status: MessageStatus,
    /// Recipients of the message that the report may be about.
    pub recipients: &'a [Recipient],
    /// True if `recipients` has everybody whom the report can be about: the recipient that the return address names, or
    /// all of the message for an address of an earlier version. Copies are unknown once the content is deleted.
    pub complete: bool,
    /// Earlier events of the message, of the kinds that [`kinds`] returns.
    pub past: &'a [MessageEvent],
}

/// Returns the kinds of events that the judgment of a report reads.
pub const fn kinds(report: &Report) -> &'static [EventKind] {
    match report {
        Report::Delivery(_) => &[EventKind::Bounce, EventKind::Delivered, EventKind::Deferred],
        Report::Complaint { .. } => &[EventKind::Complaint],
        Report::Other => &[],
    }
}

impl Returned<'_> {
    /// Judges a report.
    pub fn judge(&self, report: &Report) -> Judgment {
        let mut judging = Judging { message: *self, judgment: Judgment::default() };
        match report {
            Report::Delivery(reports) => {
                for report in reports {
                    judging.delivery(report);
                }
            }
            // Reports of these types are no complaints (RFC 6430, RFC 6591).
            Report::Complaint { feedback_type, .. }
                if ["not-spam", "auth-failure"].iter().any(|kind| feedback_type.eq_ignore_ascii_case(kind)) => {}
            Report::Complaint { feedback_type, recipients } => judging.complaint(feedback_type, recipients),
            Report::Other => {}
        }
        judging.judgment
    }

    /// Returns the recipient that a report is about, found by the addresses that the report names.
    ///
    /// The only recipient needs no such address: the report may name the one that mail was forwarded to, or none.
    fn recipient(&self, addresses: &[String]) -> Option<&Recipient> {
        match self.recipients {
            [only] if self.complete => Some(only),
            several => addresses.iter().find_map(|named| several.iter().find(|known| is_same(&known.address, named))),
        }
    }
}

fn is_same(one: &str, other: &str) -> bool {
    normalize_email(one) == normalize_email(other.trim())
}

struct Judging<'a> {
    message: Returned<'a>,
    judgment: Judgment,
}

impl Judging<'_> {
    fn delivery(&mut self, report: &RecipientReport) {
        let Some(recipient) = self.message.recipient(&report.addresses).cloned() else {
            return;
        };
        let address = recipient.address.as_str();
        let class = classify(&report.response);
        let answer = Answer::new(class.into(), report.response.clone());
        match report.action {
            Action::Failed => {
                if !self.has(EventKind::Bounce, address) {
                    let disposition = Disposition::Bounced(class);
                    self.judgment.bounced(Channel::Email, address, &answer, class, None);
                    self.judgment.affect(address, disposition.address());
                    self.becomes(&recipient, MessageStatus::Bounced);
                }
            }
            Action::Delayed => {
                // A host may report the same delay every few hours; one event is enough.
                if !self.has(EventKind::Deferred, address) {
                    self.judgment.event_with(EventKind::Deferred, peer_meta(Channel::Email, address, &answer));
                }
            }
            Action::Delivered | Action::Relayed | Action::Expanded => {
                if !self.has(EventKind::Delivered, address) {
                    self.judgment.event_with(EventKind::Delivered, delivered_meta(Channel::Email, address, &answer));
                    self.judgment.affect(address, Disposition::Sent(Acceptance::Delivered).address());
                    self.becomes(&recipient, MessageStatus::Delivered);
                }
            }
        }
    }

    fn complaint(&mut self, feedback_type: &str, addresses: &[String]) {
        let Some(recipient) = self.message.recipient(addresses).cloned() else {
            return;
        };
        let address = recipient.address.as_str();
        if !self.has(EventKind::Complaint, address) {
            self.judgment.event(EventKind::Complaint, json!({"recipient": address, "feedback_type": feedback_type}));
            self.judgment.list(address, SuppressionReason::Complaint, None);
            self.becomes(&recipient, MessageStatus::Complained);
        }
    }

    /// Returns true if the recipient has an event of a kind, from before or from an earlier part of this report.
    fn has(&self, kind: EventKind, address: &str) -> bool {
        let past = self.message.past.iter().map(|event| (event.kind, &event.meta));
        let present = self.judgment.events.iter().map(|(kind, meta)| (*kind, meta));
        past.chain(present).any(|(of_kind, meta)| {
            // A deferral with `attempt` is one of our own attempts; a reported one has none.
            of_kind == kind
                && meta.get("recipient").and_then(|known| known.as_str()).is_some_and(|known| is_same(known, address))
                && !(kind == EventKind::Deferred && meta.contains_key("attempt"))
        })
    }

    /// Sets the status of the message to that of its `to` recipient, never backwards.
    fn becomes(&mut self, recipient: &Recipient, next: MessageStatus) {
        let now = self.judgment.status.unwrap_or(self.message.status);
        if recipient.kind == RecipientKind::To && now.may_become(next) {
            self.judgment.status = Some(next);
        }
    }
}

#[cfg(test)]
mod tests;
