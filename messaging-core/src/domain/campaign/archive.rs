//! The public archive of a workspace: campaigns that went to its readers, for everybody to read.
//!
//! Contract section 23. An archive shows only what was sent to public lists that its owner chose, and shows nothing as
//! long as it is not enabled.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Campaign;
use crate::domain::audience::page_texts::PageTexts;
use crate::domain::channel::Channel;
use crate::ids::{CampaignId, Id, ListId, WorkspaceId};
use crate::time::Timestamp;

/// Maximum number of lists of an archive, as many as a workspace may have public ones.
pub const MAX_LISTS: u64 = 100;

/// Path of archives, before the id of the workspace.
pub const ARCHIVE_PATH: &str = "/a/";

/// Settings of a workspace's archive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Archive {
    /// True if everybody may read it.
    pub enabled: bool,
    /// Title of the archive; the name of the workspace unless given.
    pub title: Option<String>,
    /// Lists whose campaigns it shows, as long as they are public.
    pub lists: Vec<ListId>,
    /// True if search engines may list it.
    pub indexed: bool,
}

/// Settings of a workspace for the pages of its readers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReaderSettings {
    /// The archive.
    pub archive: Archive,
    /// Texts in place of the built-in ones.
    pub page_texts: PageTexts,
}

impl ReaderSettings {
    /// Returns true if nothing was set.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Archive {
    /// Returns true if the archive shows the campaign once it has begun: one that goes to nobody but members of its
    /// public lists.
    pub fn takes(&self, campaign: &Campaign, public: &[ListId]) -> bool {
        let lists = &campaign.plan.audience.list_ids;
        let is_shown = |id: &ListId| self.lists.contains(id) && public.contains(id);
        self.enabled && may_be_archived(campaign) && lists.iter().all(is_shown)
    }

    /// Returns true if the archive shows the campaign now: it goes to its public lists alone, and has begun.
    pub fn shows(&self, campaign: &Campaign, public: &[ListId]) -> bool {
        campaign.started_at.is_some() && self.takes(campaign, public)
    }
}

/// Returns true for an email campaign to lists alone whose author did not keep it out of archives.
fn may_be_archived(campaign: &Campaign) -> bool {
    let plan = &campaign.plan;
    let to_lists_alone = !plan.audience.list_ids.is_empty() && plan.audience.segment_ids.is_empty();
    plan.archived && plan.channel == Channel::Email && to_lists_alone
}

/// Returns the time by which archives order a campaign: its beginning. `None` for one that no archive shows.
pub fn archive_time(campaign: &Campaign) -> Option<Timestamp> {
    campaign.started_at.filter(|_| may_be_archived(campaign))
}

/// Returns the address of an archive under the public address of the server.
pub fn archive_url(public_url: &str, workspace: WorkspaceId) -> String {
    format!("{}{ARCHIVE_PATH}{workspace}", public_url.trim_end_matches('/'))
}

/// Returns the address of a campaign in its archive.
pub fn campaign_url(public_url: &str, workspace: WorkspaceId, campaign: CampaignId) -> String {
    format!("{}/{campaign}", archive_url(public_url, workspace))
}

/// Returns the id of a workspace or campaign for feeds, which stays whatever the address of the server is (RFC 4287
/// section 4.2.6, RFC 9562).
pub fn atom_id(id: impl Id) -> String {
    let hex: String = id.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("urn:uuid:{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::campaign::state::tests::test_plan;
    use crate::ids::SegmentId;

    const LIST: [u8; 16] = [1; 16];
    const OTHER: [u8; 16] = [2; 16];

    /// A campaign to lists that has begun.
    fn campaign(lists: &[[u8; 16]]) -> Campaign {
        let now = Timestamp::from_millis(1_000);
        let ids = (CampaignId::from_bytes([8; 16]), WorkspaceId::from_bytes([9; 16]));
        let mut campaign = Campaign::draft(ids.0, ids.1, test_plan(), now);
        campaign.plan.channel = Channel::Email;
        campaign.plan.archived = true;
        campaign.plan.audience.list_ids = lists.iter().copied().map(ListId::from_bytes).collect();
        campaign.plan.audience.segment_ids = Vec::new();
        campaign.started_at = Some(now);
        campaign
    }

    fn archive() -> Archive {
        Archive { enabled: true, lists: vec![ListId::from_bytes(LIST)], ..Archive::default() }
    }

    #[track_caller]
    fn check(archive: &Archive, campaign: &Campaign, public: &[[u8; 16]], expected: bool) {
        let public: Vec<_> = public.iter().copied().map(ListId::from_bytes).collect();
        assert_eq!(archive.shows(campaign, &public), expected);
    }

    #[test]
    fn an_archive_shows_what_went_to_its_public_lists_alone() {
        check(&archive(), &campaign(&[LIST]), &[LIST, OTHER], true);
        check(&archive(), &campaign(&[LIST]), &[OTHER], false);
        check(&archive(), &campaign(&[LIST, OTHER]), &[LIST, OTHER], false);
        check(&archive(), &campaign(&[OTHER]), &[LIST, OTHER], false);
        check(&archive(), &campaign(&[]), &[LIST, OTHER], false);
        check(&Archive { enabled: false, ..archive() }, &campaign(&[LIST]), &[LIST], false);
        let both = Archive { lists: vec![ListId::from_bytes(LIST), ListId::from_bytes(OTHER)], ..archive() };
        check(&both, &campaign(&[LIST, OTHER]), &[LIST, OTHER], true);
    }

    #[test]
    fn nothing_is_shown_that_is_kept_out_or_has_not_begun() {
        let changed = |change: fn(&mut Campaign)| {
            let mut campaign = campaign(&[LIST]);
            change(&mut campaign);
            campaign
        };
        let kept_out: [fn(&mut Campaign); 4] = [
            |campaign| campaign.plan.archived = false,
            |campaign| campaign.plan.channel = Channel::Sms,
            |campaign| campaign.plan.audience.segment_ids = vec![SegmentId::from_bytes([3; 16])],
            |campaign| campaign.started_at = None,
        ];
        for change in kept_out {
            check(&archive(), &changed(change), &[LIST], false);
            assert_eq!(archive_time(&changed(change)), None);
        }
        assert_eq!(archive_time(&campaign(&[LIST])), Some(Timestamp::from_millis(1_000)));
    }

    #[test]
    fn ids_of_feeds_are_uuids() {
        let id = [0x01, 0x92, 0xa3, 0xb4, 0xc5, 0xd6, 0xe7, 0xf8, 0x09, 0x1a, 0x2b, 0x3c, 0x4d, 0x5e, 0x6f, 0x70];
        assert_eq!(atom_id(CampaignId::from_bytes(id)), "urn:uuid:0192a3b4-c5d6-e7f8-091a-2b3c4d5e6f70");
    }
}
