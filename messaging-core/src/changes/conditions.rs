//! Conditions of a commit: if one does not hold, nothing is changed.

use crate::domain::automation::AutomationStatus;
use crate::domain::campaign::{CampaignStatus, Reference};
use crate::domain::webhook::WebhookStatus;
use crate::ids::{AutomationId, CampaignId, MessageId, WebhookId, WorkspaceId};

use super::ExpectEntries;

/// Something that must be as it was read for a commit to succeed.
#[derive(Debug, Clone)]
pub enum Condition {
    /// A conflict if a message is not at the revision that was read.
    Message(WorkspaceId, MessageId, u32),
    /// A conflict if a campaign is not in the state that was read: otherwise messages of a campaign that was paused or
    /// cancelled since would still be made or released.
    Campaign(WorkspaceId, CampaignId, CampaignStatus),
    /// A conflict if a campaign or an automation holds this resource: in the same commit as its deletion, it prevents
    /// the deletion of a resource that came into use since.
    Unused(WorkspaceId, Reference),
    /// A conflict if an automation is not in the state that was read: otherwise contacts in an automation that was
    /// paused since would still be sent to.
    Automation(WorkspaceId, AutomationId, AutomationStatus),
    /// A conflict if a contact has entered an automation, or was refused, too often by now: entries under different
    /// keys do not meet in [`PutEntry`](super::AutomationWrite::PutEntry). Stands before the writes that let the
    /// contact in.
    Entries(Box<ExpectEntries>),
    /// A conflict if a webhook is not in the state that was read: otherwise nothing would send deliveries that are held
    /// for a webhook that was resumed since.
    Webhook(WorkspaceId, WebhookId, WebhookStatus),
}
