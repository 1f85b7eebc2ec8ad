//! Orders of the operator for the queue: the part that an order names, and the parts that are suspended.
//!
//! Contract section 26. Messages wait in lanes, and the text of a lane names the workspace, the recipient domain and
//! the campaign of its messages. So a part of the queue is a set of lanes, and no row has to be read to match messages
//! with it.

use serde::{Deserialize, Serialize};

use crate::domain::channel::Channel;
use crate::domain::delivery::lane::Lane;
use crate::ids::{CampaignId, WorkspaceId};
use crate::time::Timestamp;

/// Maximum number of parts of the queue that are suspended at one time: each claim compares lanes with all of them.
pub const MAX_SUSPENSIONS: usize = 100;

/// A part of the queue: the messages that match all members that are given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueScope {
    /// Recipient domain of mail, in lower-case A-labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Workspace that owns the messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<WorkspaceId>,
    /// Campaign that the messages belong to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub campaign_id: Option<CampaignId>,
}

impl QueueScope {
    /// Returns true if the messages of a lane are in this part; false for lanes of other work.
    pub fn covers(&self, lane: &Lane) -> bool {
        let Some((_, domain)) = messages_of(lane) else { return false };
        let is_of_campaign = |campaign| lane.sender().and_then(|sender| sender.parse().ok()) == Some(campaign);
        self.domain.as_deref().is_none_or(|wanted| domain == Some(wanted))
            && self.workspace_id.is_none_or(|wanted| lane.flow().workspace == Some(wanted))
            && self.campaign_id.is_none_or(is_of_campaign)
    }

    /// Returns true if `other` is a part of this part: it names every member of this one, and perhaps more.
    pub fn includes(&self, other: &Self) -> bool {
        (self.domain.is_none() || self.domain == other.domain)
            && (self.workspace_id.is_none() || self.workspace_id == other.workspace_id)
            && (self.campaign_id.is_none() || self.campaign_id == other.campaign_id)
    }

    /// Returns the flags of `messaging queue` that name this part.
    pub fn flags(&self) -> String {
        let flags = [
            self.domain.as_ref().map(|domain| format!("--domain {domain}")),
            self.workspace_id.map(|id| format!("--workspace-id {id}")),
            self.campaign_id.map(|id| format!("--campaign-id {id}")),
        ];
        flags.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

/// Returns the channel of the messages of a lane, and for mail the domain of the recipients; `None` for lanes of other
/// work. The lane of an address without a domain returns no domain.
pub fn messages_of(lane: &Lane) -> Option<(Channel, Option<&str>)> {
    let resource = lane.resource();
    let (channel, rest) = resource.split_once(':').map_or((resource, None), |(channel, rest)| (channel, Some(rest)));
    match (Channel::parse(channel)?, rest) {
        (Channel::Email, domain) => Some((Channel::Email, Some(domain?).filter(|domain| !domain.contains('@')))),
        (channel, _) => Some((channel, None)),
    }
}

/// A part of the queue of which nothing is sent until an operator resumes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspension {
    /// The part.
    pub scope: QueueScope,
    /// Time at which it was suspended.
    pub since: Timestamp,
}

/// All parts of the queue that are suspended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Suspensions(Vec<Suspension>);

impl Suspensions {
    /// Returns true if nothing is suspended.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over all suspensions, in no particular order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Suspension> {
        self.0.iter()
    }

    /// Returns the oldest suspension that applies to a lane.
    pub fn of(&self, lane: &Lane) -> Option<&Suspension> {
        self.0.iter().filter(|suspension| suspension.scope.covers(lane)).min_by_key(|suspension| suspension.since)
    }
}

impl FromIterator<Suspension> for Suspensions {
    fn from_iter<T: IntoIterator<Item = Suspension>>(suspensions: T) -> Self {
        Self(suspensions.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::delivery::lane::JobClass;
    use crate::ids::Id as _;

    fn scope(domain: Option<&str>, workspace: Option<u8>, campaign: Option<u8>) -> QueueScope {
        QueueScope {
            domain: domain.map(ToOwned::to_owned),
            workspace_id: workspace.map(|n| WorkspaceId::from_bytes([n; 16])),
            campaign_id: campaign.map(|n| CampaignId::from_bytes([n; 16])),
        }
    }

    #[test]
    fn a_scope_covers_the_lanes_that_fit_all_its_members() {
        let lane = |workspace: u8, resource: &str| {
            Lane::new(JobClass::Transactional, WorkspaceId::from_bytes([workspace; 16]), resource)
        };
        let mail = lane(1, "email:example.org");
        let campaign = mail.of_sender(CampaignId::from_bytes([7; 16]));
        for (scope, covered) in [
            (scope(Some("example.org"), None, None), [true, true, false, false]),
            (scope(None, Some(1), None), [true, true, true, false]),
            (scope(None, None, Some(7)), [false, true, false, false]),
            (scope(Some("example.org"), Some(2), None), [false; 4]),
            (scope(Some("example.org"), Some(1), Some(7)), [false, true, false, false]),
            (scope(Some("example.com"), None, None), [false; 4]),
            (scope(None, None, None), [true, true, true, false]),
        ] {
            let lanes = [&mail, &campaign, &lane(1, "sms:ttl"), &lane(1, "webhook:1")];
            assert_eq!(lanes.map(|lane| scope.covers(lane)), covered, "{scope:?}");
        }
    }

    #[test]
    fn a_part_includes_those_that_name_its_members_and_more() {
        let all = [
            scope(None, None, None),
            scope(Some("example.org"), None, None),
            scope(Some("example.org"), Some(1), None),
            scope(Some("example.org"), Some(1), Some(2)),
        ];
        for (n, wider) in all.iter().enumerate() {
            for (m, narrower) in all.iter().enumerate() {
                assert_eq!(wider.includes(narrower), n <= m, "{wider:?} {narrower:?}");
            }
        }
        assert!(!scope(None, Some(2), None).includes(&all[2]));
    }

    #[test]
    fn an_address_that_names_a_lane_is_not_told() {
        let lane = |resource| Lane::new(JobClass::Bulk, WorkspaceId::from_bytes([1; 16]), resource);
        assert_eq!(messages_of(&lane("email:ann@[192.0.2.1]")), Some((Channel::Email, None)));
        assert_eq!(messages_of(&lane("email:a.example")), Some((Channel::Email, Some("a.example"))));
        assert_eq!((messages_of(&lane("sms:ttl")), messages_of(&lane("email"))), (Some((Channel::Sms, None)), None));
    }

    #[test]
    fn a_lane_is_under_the_oldest_suspension_that_covers_it() {
        let lane = Lane::new(JobClass::Bulk, WorkspaceId::from_bytes([1; 16]), "email:example.org");
        let at = Timestamp::from_millis;
        let all: Suspensions = [
            Suspension { scope: scope(Some("example.org"), None, None), since: at(2) },
            Suspension { scope: scope(None, Some(1), None), since: at(1) },
            Suspension { scope: scope(None, Some(2), None), since: at(0) },
        ]
        .into_iter()
        .collect();
        assert_eq!(all.of(&lane).map(|suspension| suspension.since), Some(at(1)));
        assert_eq!(Suspensions::default().of(&lane), None);
        assert_eq!(
            all.of(&lane).map(|one| one.scope.flags()),
            Some(format!("--workspace-id {}", WorkspaceId::from_bytes([1; 16])))
        );
    }
}
