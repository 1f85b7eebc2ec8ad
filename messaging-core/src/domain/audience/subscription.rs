//! Subscriptions: memberships of public lists, with a status and a proof.
//!
//! Contract section 23. A contact is a confirmed member exactly if the store has it on the list. A separate record has
//! the proof, and exists also for contacts that are asked to confirm and contacts that left. Members of a list that
//! became public later have no record until their subscription changes.

use std::net::IpAddr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{ContactId, FormId, ListId, WorkspaceId};
use crate::time::Timestamp;

/// Lifetime of a confirmation link, and of an unconfirmed record whose link is not followed.
pub const CONFIRM_WITHIN: Duration = Duration::from_hours(30 * 24);

/// Minimum time between two mails that ask a contact to confirm a list.
pub const ASK_AGAIN_AFTER: Duration = Duration::from_mins(10);

/// Maximum number of mails that ask a contact to confirm a list within [`CONFIRM_WITHIN`].
pub const MAX_ASKED: usize = 3;

/// Maximum number of characters of a user agent that are kept in a proof.
const MAX_USER_AGENT: usize = 512;

/// Status of a contact on a public list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SubscriptionStatus {
    /// Asked to confirm; gets no other mail of the list.
    Unconfirmed,
    /// A member.
    Confirmed,
    /// Was a member, or refused to become one.
    Left,
}

impl SubscriptionStatus {
    /// All statuses; stores save a status as its index in this list.
    pub const ALL: [Self; 3] = [Self::Unconfirmed, Self::Confirmed, Self::Left];
}

/// Status that the workspace gives to a contact it takes into a public list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NewStatus {
    /// Is sent a confirmation, and becomes a member only after following its link.
    Unconfirmed,
    /// A member.
    #[default]
    Confirmed,
}

impl NewStatus {
    /// True for `Confirmed`, which is the default.
    pub const fn is_confirmed(&self) -> bool {
        matches!(self, Self::Confirmed)
    }
}

impl From<NewStatus> for SubscriptionStatus {
    fn from(status: NewStatus) -> Self {
        match status {
            NewStatus::Unconfirmed => Self::Unconfirmed,
            NewStatus::Confirmed => Self::Confirmed,
        }
    }
}

/// Act by which a status came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SubscriptionAct {
    /// A call of the API, or an automation.
    Api,
    /// An import.
    Import,
    /// A form.
    Form,
    /// The link of a confirmation.
    Confirmation,
    /// The page of preferences.
    Preferences,
    /// The link, the button or the mail that unsubscribes.
    Unsubscribe,
}

impl SubscriptionAct {
    /// True for acts of the reader; the others are acts of the workspace.
    pub const fn is_of_reader(self) -> bool {
        !matches!(self, Self::Api | Self::Import)
    }
}

/// Proof of how a status came about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// Act that gave the status.
    pub how: SubscriptionAct,
    /// When it happened.
    pub at: Timestamp,
    /// IP address that the reader's request came from; `None` for acts of the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip: Option<IpAddr>,
    /// User agent of the reader's request, at most 512 characters; `None` for acts of the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
    /// Form by which the reader subscribed, if the act is `Form`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form_id: Option<FormId>,
}

impl Proof {
    /// Returns the proof of an act of the workspace.
    pub const fn of_workspace(how: SubscriptionAct, at: Timestamp) -> Self {
        Self { how, at, ip: None, user_agent: None, form_id: None }
    }

    /// Returns the proof of an act of the reader, whose request came from `ip`.
    pub fn of_reader(how: SubscriptionAct, at: Timestamp, ip: Option<IpAddr>, user_agent: Option<&str>) -> Self {
        let user_agent = user_agent.map(|text| text.chars().take(MAX_USER_AGENT).collect());
        Self { how, at, ip, user_agent, form_id: None }
    }
}

/// Record of a contact on a public list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// Workspace that owns list and contact.
    pub workspace_id: WorkspaceId,
    /// The list.
    pub list_id: ListId,
    /// The contact.
    pub contact_id: ContactId,
    /// Its status on the list.
    pub status: SubscriptionStatus,
    /// Time since which it has that status.
    pub since: Timestamp,
    /// Proof of how it came to have that status.
    pub proof: Proof,
    /// Times at which mails that ask to confirm were sent, the oldest first; the last [`MAX_ASKED`].
    pub asked: Vec<Timestamp>,
    /// True if the form that made the subscription created the contact.
    pub brought_contact: bool,
    /// True if the reader wants at most one marketing mail a week, of all lists.
    pub is_weekly: bool,
}

impl Subscription {
    /// Returns the first record of a contact on a list.
    pub fn new(
        (workspace_id, list_id, contact_id): (WorkspaceId, ListId, ContactId),
        status: SubscriptionStatus,
        proof: Proof,
    ) -> Self {
        let since = proof.at;
        Self {
            workspace_id,
            list_id,
            contact_id,
            status,
            since,
            proof,
            asked: Vec::new(),
            brought_contact: false,
            is_weekly: false,
        }
    }

    /// Returns the record after an act that gives `status`; unchanged, with its first proof, if the status is the same.
    #[must_use]
    pub fn with(&self, status: SubscriptionStatus, proof: Proof) -> Self {
        if status == self.status {
            return self.clone();
        }
        Self { status, since: proof.at, proof, ..self.clone() }
    }

    /// True if the contact is no confirmed member and the limits permit to ask for its confirmation now.
    pub fn may_ask(&self, now: Timestamp) -> bool {
        let recent = self.asked.iter().filter(|asked| **asked + CONFIRM_WITHIN > now).count();
        let is_soon = self.asked.last().is_some_and(|last| *last + ASK_AGAIN_AFTER > now);
        self.status != SubscriptionStatus::Confirmed && recent < MAX_ASKED && !is_soon
    }

    /// Returns the record after a mail that asks to confirm was sent.
    #[must_use]
    pub fn asked_at(&self, now: Timestamp) -> Self {
        let mut asked = self.asked.clone();
        asked.push(now);
        let first = asked.len().saturating_sub(MAX_ASKED);
        Self { asked: asked.split_off(first), ..self.clone() }
    }
}

/// Outcome of an act of the workspace that takes a contact into a public list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// The contact gets this status.
    Becomes(SubscriptionStatus),
    /// The contact has that or a better status already.
    Stays,
    /// The contact left, and only the reader, or a caller who requests it explicitly, can undo that.
    Refused,
}

/// Decides the status of a contact that the workspace takes into a public list as `wanted`. `status` is the recorded
/// one, if any; `is_member` is true for a confirmed member, `resubscribes` if the caller explicitly takes back contacts
/// that left.
pub fn admit(
    wanted: SubscriptionStatus,
    status: Option<SubscriptionStatus>,
    is_member: bool,
    resubscribes: bool,
) -> Admission {
    match status {
        _ if is_member => Admission::Stays,
        Some(SubscriptionStatus::Left) if !resubscribes => Admission::Refused,
        Some(status) if status == wanted => Admission::Stays,
        _ => Admission::Becomes(wanted),
    }
}

/// Returns the record of a contact that two are merged into: the record with the last act of the reader, else a
/// confirmed one. An unconfirmed status is no act of the reader: anybody may post an address to a form.
pub fn merged(primary: Option<Subscription>, duplicate: Option<Subscription>) -> Option<Subscription> {
    let (Some(primary), Some(duplicate)) = (&primary, &duplicate) else { return primary.or(duplicate) };
    let of_reader = |one: &Subscription| one.proof.how.is_of_reader() && one.status != SubscriptionStatus::Unconfirmed;
    let is_duplicate = match (of_reader(primary), of_reader(duplicate)) {
        (true, true) => duplicate.since > primary.since,
        (false, true) => true,
        (true, false) => false,
        (false, false) => duplicate.status == SubscriptionStatus::Confirmed,
    };
    let kept = if is_duplicate { duplicate } else { primary };
    let mut asked: Vec<_> = primary.asked.iter().chain(&duplicate.asked).copied().collect();
    asked.sort_unstable();
    let first = asked.len().saturating_sub(MAX_ASKED);
    let brought_contact = primary.brought_contact && duplicate.brought_contact;
    Some(Subscription {
        contact_id: primary.contact_id,
        asked: asked.split_off(first),
        brought_contact,
        is_weekly: primary.is_weekly || duplicate.is_weekly,
        ..kept.clone()
    })
}

#[cfg(test)]
mod tests;
