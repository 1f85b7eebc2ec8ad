//! Audiences: who a campaign names, as it is found, and as it was frozen.

use std::sync::Arc;

use async_trait::async_trait;

use super::StoreError;
use crate::changes::AudienceRow;
use crate::domain::campaign::audience::bits::Bits;
use crate::domain::campaign::audience::{AudienceCounts, AudienceSet, ContactFacts, Piece};
use crate::domain::channel::Channel;
use crate::domain::message::channel_content::ViberService;
use crate::domain::segment::filter::Filter;
use crate::ids::{CampaignId, ContactId, ListId, SegmentId, WorkspaceId};
use crate::time::Timestamp;

/// Whom a campaign names, as a store looks for them.
#[derive(Debug, Clone, PartialEq)]
pub struct AudienceQuery {
    /// The channel whose addresses, suppressions and consent count.
    pub channel: Channel,
    /// Who sends on Viber: to phone numbers, or to users of a bot.
    pub viber: ViberService,
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

/// What a store finds about the contacts of a piece. All of what is told of one contact is of one moment; two contacts
/// of a piece may be looked at in two moments, when filters take long.
#[derive(Debug, Clone, Default)]
pub struct AudiencePiece {
    /// The piece; see [`place_of`](crate::domain::campaign::audience::place_of).
    pub piece: u64,
    /// What is known of each, but for `duplicates`.
    pub facts: Piece,
    /// The zones that those who matched name, and who names each; whoever is in none has none.
    pub zones: Vec<(String, Bits)>,
    /// On channels whose addresses several contacts may have
    /// ([`shares_addresses`](crate::domain::campaign::audience::shares_addresses)): digests of the addresses that are not
    /// suppressed of each contact that matched and has some, in the order of the contacts.
    pub addresses: Vec<(u16, Vec<u64>)>,
    /// The next piece in which somebody may match; `None` when there is none.
    pub next: Option<u64>,
}

/// How many there are of each verdict, without freezing anything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AudiencePreview {
    /// The counts.
    pub counts: AudienceCounts,
    /// Whether everybody was looked at. Otherwise the counts are estimated from those who were.
    pub exact: bool,
    /// Whether duplicates were looked for, if the channel can have any. They are not when there are very many addresses
    /// or not everybody was looked at; such contacts count as recipients then.
    pub knows_duplicates: bool,
}

/// What is needed of a contact to make its message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CampaignRecipient {
    /// Its number.
    pub number: u64,
    /// Its id.
    pub contact_id: ContactId,
    /// Its address for the channel; of several that are not left out the first that is not suppressed, or the first if
    /// all are.
    pub address: Option<String>,
    /// Its zone.
    pub timezone: Option<String>,
}

/// Reads of audiences.
#[async_trait]
pub trait Audiences {
    /// What is known of the contacts of a piece; of the first one in which somebody may match with `None`. Looks at most
    /// some 25 ms at a time, and lets others read in between.
    async fn audience_piece(
        &self,
        workspace: WorkspaceId,
        query: &Arc<AudienceQuery>,
        piece: Option<u64>,
    ) -> Result<AudiencePiece, StoreError>;
    /// Which of some digests of addresses a campaign has taken; see [`Write::TakeAddresses`](crate::changes::Write::TakeAddresses).
    async fn taken_addresses(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        digests: Vec<u64>,
    ) -> Result<Vec<u64>, StoreError>;
    /// How many there are of each verdict, as judging all pieces would find now. Counts for about half a second, then
    /// estimates.
    async fn preview_audience(
        &self,
        workspace: WorkspaceId,
        query: &Arc<AudienceQuery>,
    ) -> Result<AudiencePreview, StoreError>;
    /// What is known of one contact now; `None` if it does not match. Whether it is a duplicate is not looked for.
    async fn audience_facts(
        &self,
        workspace: WorkspaceId,
        query: &Arc<AudienceQuery>,
        contact: ContactId,
    ) -> Result<Option<ContactFacts>, StoreError>;
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
    /// Those of a contact's addresses that no other recipient of a campaign has taken, in the order given.
    async fn addresses_left_in(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        channel: Channel,
        contact: ContactId,
        addresses: Vec<String>,
    ) -> Result<Vec<String>, StoreError>;
    /// Contacts by number, in the order of their numbers; those that are gone are left out. At most 1,000 at a time. Of
    /// their addresses those do not count that were left out for the campaign
    /// ([`Write::LeaveOutAddresses`](crate::changes::Write::LeaveOutAddresses)).
    async fn campaign_recipients(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        channel: Channel,
        viber: ViberService,
        numbers: &[u64],
    ) -> Result<Vec<CampaignRecipient>, StoreError>;
}
