//! Conditions of a commit: what has to be as it was read, or nothing is changed.

use crate::domain::automation::AutomationStatus;
use crate::domain::campaign::{CampaignStatus, Reference};
use crate::domain::webhook::WebhookStatus;
use crate::ids::{AutomationId, CampaignId, MessageId, WebhookId, WorkspaceId};

use super::ExpectEntries;

/// Something that must be as it was read for a commit to succeed.
#[derive(Debug, Clone)]
pub enum Condition {
    /// A conflict when a message is not at the revision that was read.
    Message(WorkspaceId, MessageId, u32),
    /// A conflict when a campaign is not in the state that was read: what is made or released for one
    /// that was paused or cancelled would be sent all the same.
    Campaign(WorkspaceId, CampaignId, CampaignStatus),
    /// A conflict when a campaign, or an automation, holds this: with it in the same commit, nothing is
    /// removed that somebody has begun to need.
    Unused(WorkspaceId, Reference),
    /// A conflict when an automation is not in the state that was read: whoever goes on in one that was
    /// paused would be sent to all the same.
    Automation(WorkspaceId, AutomationId, AutomationStatus),
    /// A conflict when a contact has entered an automation, or was refused, too often by now: entries
    /// under different keys do not meet in [`PutEntry`](super::AutomationWrite::PutEntry). Goes before what lets the contact in.
    Entries(Box<ExpectEntries>),
    /// A conflict when a webhook is not in the state that was read: what is held for one that is not
    /// paused any more would be sent by nobody.
    Webhook(WorkspaceId, WebhookId, WebhookStatus),
}
