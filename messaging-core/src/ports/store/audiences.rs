//! Audiences: who a campaign names, as it is found, and as it was frozen.

use std::sync::Arc;

use async_trait::async_trait;

use super::StoreError;
use crate::changes::AudienceRow;
use crate::domain::campaign::audience::bits::Bits;
use crate::domain::campaign::audience::{AudienceSet, Piece};
use crate::domain::channel::Channel;
use crate::domain::segment::filter::Filter;
use crate::ids::{CampaignId, ContactId, ListId, SegmentId, WorkspaceId};
use crate::time::Timestamp;

/// Whom a campaign names, as a store looks for them.
#[derive(Debug, Clone, PartialEq)]
pub struct AudienceQuery {
    /// The channel whose addresses, suppressions and consent count.
    pub channel: Channel,
    /// Members of these lists match.
    pub lists: Vec<ListId>,
    /// Members of these static segments match.
    pub segments: Vec<SegmentId>,
    /// Whoever these filters match, as they are now, matches: the dynamic segments. They name no dynamic segment.
    pub filters: Vec<Filter>,
    /// Members of these lists are excluded.
    pub excluded: Vec<ListId>,
    /// The present, for filters.
    pub now: Timestamp,
    /// The workspace's time zone, for filters.
    pub zone: jiff::tz::TimeZone,
    /// Whether the zones of those who match are wanted.
    pub wants_zones: bool,
}

/// What a store finds about the contacts of a piece, all of one moment.
#[derive(Debug, Clone, Default)]
pub struct AudiencePiece {
    /// What is known of each, but for `duplicates`.
    pub facts: Piece,
    /// The zones that contacts of the piece name, and who names each; whoever is in none has none.
    pub zones: Vec<(String, Bits)>,
    /// On channels whose addresses several contacts may have: digests of the addresses of each contact that matched and
    /// has some, in the order of the contacts.
    pub addresses: Vec<(u16, Vec<u64>)>,
    /// The next piece that has contacts; `None` at the end of the workspace.
    pub next: Option<u64>,
}

/// What is needed of a contact to make its message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CampaignRecipient {
    /// Its number.
    pub number: u64,
    /// Its id.
    pub contact_id: ContactId,
    /// Its address for the channel; of several the first.
    pub address: Option<String>,
    /// Its zone.
    pub timezone: Option<String>,
}

/// Reads of audiences.
#[async_trait]
pub trait Audiences {
    /// What is known of the contacts of a piece. The first piece of a workspace is asked for with `None`. Looks at most
    /// some 25 ms at a time, and lets others read in between.
    async fn audience_piece(
        &self,
        workspace: WorkspaceId,
        query: &Arc<AudienceQuery>,
        piece: Option<u64>,
    ) -> Result<AudiencePiece, StoreError>;
    /// Kept sets of one kind of a campaign from a piece on, in the order of pieces, at most `limit`.
    async fn audience_rows(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        set: AudienceSet,
        from: u64,
        limit: usize,
    ) -> Result<Vec<AudienceRow>, StoreError>;
    /// All kept sets that a contact is in.
    async fn audience_sets_of(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        contact: ContactId,
    ) -> Result<Vec<AudienceSet>, StoreError>;
    /// Contacts by number, in the order of their numbers; those that are gone are left out. At most 1,000 at a time.
    async fn campaign_recipients(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        numbers: &[u64],
    ) -> Result<Vec<CampaignRecipient>, StoreError>;
}
