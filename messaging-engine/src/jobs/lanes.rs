//! Names of the resources that lanes of jobs are for.

use messaging_core::domain::channel::Channel;
use messaging_core::domain::delivery::lane::{JobClass, Lane};
use messaging_core::ids::{WebhookId, WorkspaceId};

/// Email; the recipients' domain follows.
pub(crate) const EMAIL: &str = "email:";
/// Prefixes of the resources whose jobs let something leave: none of them are claimed while the installation is fenced.
/// Every [`Channel`](messaging_core::domain::channel::Channel) is among them.
pub(crate) const LEAVING: &[&str] = &[
    EMAIL, "sms", "push", "telegram", "whatsapp", "viber", WEBHOOK, BACKLOG, CAMPAIGN, AUTOMATION, CALLBACKS, FALLBACK,
    DNS,
];
/// Calls of a webhook, whose id follows.
pub(crate) const WEBHOOK: &str = "webhook:";
/// Backlog of a webhook, whose id follows: held deliveries and replays.
pub(crate) const BACKLOG: &str = "webhook-backlog:";
/// Work that follows from merging and erasing contacts.
pub(crate) const CONTACTS: &str = "contacts";
/// Confirmation messages of subscriptions; of an import, `:` and the recipients' domain follow where enough messages
/// wait for it.
pub(crate) const CONFIRMATIONS: &str = "confirmations";
/// Registration of callback addresses at providers.
pub(crate) const CALLBACKS: &str = "callbacks";
/// DNS records written at the hosts of zones.
pub(crate) const DNS: &str = "dns";
/// Fallbacks for a message that does not arrive, whose id follows.
pub(crate) const FALLBACK: &str = messaging_core::domain::message::fallback::RESOURCE;
/// Receipts whose message is not known yet.
pub(crate) const RECEIPTS: &str = "receipts";
/// Imports of files.
pub(crate) const IMPORTS: &str = "imports";
/// Progress of a campaign as a whole, whose id follows.
pub(crate) const CAMPAIGN: &str = "campaign:";
/// Runs of an automation; its id and the shard follow.
pub(crate) const AUTOMATION: &str = "automation:";
/// Entry of the contacts that were members when an automation was activated, whose id follows.
pub(crate) const AUTOMATION_EXISTING: &str = "automation:existing:";
/// Dates that an automation follows; its id follows the prefix.
pub(crate) const AUTOMATION_DATES: &str = "automation:dates:";
/// Web requests of an automation, whose id follows.
pub(crate) const AUTOMATION_CALLS: &str = "automation:calls:";
/// Housekeeping; the kind of sweep follows.
pub(crate) const UPKEEP: &str = "upkeep:";
/// Calculations of segments.
pub(crate) const SEGMENTS: &str = "segments";
/// Cancelling of waiting work on a copied database.
pub(crate) const CANCELLING: &str = "cancelling";
/// Retries and cancellations of waiting messages that an operator asked for.
pub(crate) const QUEUE: &str = "queue-by-hand";
/// Messages that wait for a source and may have one now; the id of their workspace follows.
pub(crate) const NEW_SOURCES: &str = "new-sources:";
/// Deletion of a workspace, whose id follows.
pub(crate) const DELETION: &str = "workspace-deletion:";
/// Changes of contacts that segments have to follow.
pub(crate) const SEGMENT_CHANGES: &str = "segment-changes";
/// Changes that a process which did not know of the segment yet may have made.
pub(crate) const SEGMENT_CHANGES_LATER: &str = "segment-changes-later";

/// Suffix of a channel's resource for messages that expire within a day.
const SHORT_LIVED: &str = ":ttl";

/// The lane for messages that expire within a day, beside the given lane of a channel other than email.
pub(crate) fn short_lived(lane: &Lane) -> Lane {
    let text = lane.as_str();
    let sender = text.get(lane.shared().len()..).unwrap_or_default();
    Lane::parse(&format!("{}{SHORT_LIVED}{sender}", lane.shared()))
}

/// The channel of a resource; `None` for email and for work that is no message.
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
