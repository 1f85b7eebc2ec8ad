//! The resources that lanes are named by.

use messaging_core::domain::channel::Channel;
use messaging_core::domain::delivery::lane::{JobClass, Lane};
use messaging_core::ids::{WebhookId, WorkspaceId};

/// Mail; the recipients' domain follows.
pub(crate) const EMAIL: &str = "email:";
/// How the resources begin whose jobs let something out: nothing of these is claimed while the installation is fenced.
/// Every [`Channel`](messaging_core::domain::channel::Channel) is among them.
pub(crate) const LEAVING: &[&str] = &[
    EMAIL, "sms", "push", "telegram", "whatsapp", "viber", WEBHOOK, BACKLOG, CAMPAIGN, AUTOMATION, CALLBACKS, FALLBACK,
    DNS,
];
/// Calls of a webhook, which follows.
pub(crate) const WEBHOOK: &str = "webhook:";
/// Backlog of a webhook, whose id follows: held deliveries and replays.
pub(crate) const BACKLOG: &str = "webhook-backlog:";
/// What follows from merging and erasing contacts.
pub(crate) const CONTACTS: &str = "contacts";
/// Confirmations of subscriptions that are to be written.
pub(crate) const CONFIRMATIONS: &str = "confirmations";
/// Where providers are told to call.
pub(crate) const CALLBACKS: &str = "callbacks";
/// Records that are written where zones are hosted.
pub(crate) const DNS: &str = "dns";
/// What follows a message that does not arrive, which follows.
pub(crate) const FALLBACK: &str = messaging_core::domain::message::fallback::RESOURCE;
/// Receipts whose message nobody knows yet.
pub(crate) const RECEIPTS: &str = "receipts";
/// Files that are read.
pub(crate) const IMPORTS: &str = "imports";
/// What happens to a campaign as a whole; the campaign follows.
pub(crate) const CAMPAIGN: &str = "campaign:";
/// What happens in an automation; it follows, and the shard.
pub(crate) const AUTOMATION: &str = "automation:";
/// Who was a member when an automation was activated, which follows.
pub(crate) const AUTOMATION_EXISTING: &str = "automation:existing:";
/// The dates that an automation follows, which follows.
pub(crate) const AUTOMATION_DATES: &str = "automation:dates:";
/// Calls of web addresses by an automation, which follows.
pub(crate) const AUTOMATION_CALLS: &str = "automation:calls:";
/// Housekeeping; the kind of sweep follows.
pub(crate) const UPKEEP: &str = "upkeep:";
/// Calculations of segments.
pub(crate) const SEGMENTS: &str = "segments";
/// What a copy is not to send any more.
pub(crate) const CANCELLING: &str = "cancelling";
/// What operators ask for by hand of the messages that wait.
pub(crate) const QUEUE: &str = "queue-by-hand";
/// What may leave from other addresses than before; the workspace whose messages wait follows.
pub(crate) const NEW_SOURCES: &str = "new-sources:";
/// The removal of a workspace, which follows.
pub(crate) const DELETION: &str = "workspace-deletion:";
/// Changes of contacts that segments have to follow.
pub(crate) const SEGMENT_CHANGES: &str = "segment-changes";
/// Changes that a process which did not know of the segment may have made.
pub(crate) const SEGMENT_CHANGES_LATER: &str = "segment-changes-later";

/// Messages of a channel that end within a day, behind the channel.
const SHORT_LIVED: &str = ":ttl";

/// The lane beside one of a channel other than email for messages that end within a day.
pub(crate) fn short_lived(lane: &Lane) -> Lane {
    let text = lane.as_str();
    let sender = text.get(lane.shared().len()..).unwrap_or_default();
    Lane::parse(&format!("{}{SHORT_LIVED}{sender}", lane.shared()))
}

/// The channel other than email whose messages share a resource.
pub(crate) fn channel_of(resource: &str) -> Option<Channel> {
    Channel::parse(resource.strip_suffix(SHORT_LIVED).unwrap_or(resource))
}

/// A lane of a webhook.
pub(crate) fn of_webhook(workspace: WorkspaceId, resource: &str, webhook: WebhookId) -> Lane {
    Lane::new(JobClass::Transactional, workspace, &format!("{resource}{webhook}"))
}

#[cfg(test)]
mod tests {
    use messaging_core::ids::Id as _;

    use super::*;

    #[test]
    fn what_ends_soon_has_a_lane_of_its_own_which_is_still_the_channels() {
        let lane = Lane::new(JobClass::Bulk, WorkspaceId::from_bytes([1; 16]), "sms");
        for (lane, sender) in [(lane.clone(), ""), (lane.of_sender("aut_1"), "#aut_1")] {
            let own = short_lived(&lane);
            assert_eq!(own.as_str(), format!("{}:ttl{sender}", lane.shared()));
            assert_eq!((own.flow(), channel_of(own.resource())), (lane.flow(), Some(Channel::Sms)));
        }
        assert_eq!((channel_of("push"), channel_of("webhook:x")), (Some(Channel::Push), None));
    }

    #[test]
    fn every_channel_leaves() {
        for channel in Channel::ALL {
            let resource = if channel == Channel::Email { EMAIL } else { channel.as_str() };
            assert!(LEAVING.contains(&resource), "{channel}");
        }
    }
}
