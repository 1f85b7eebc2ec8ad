//! Audiences of campaigns: the contacts that match now, and the frozen sets.

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

/// Description of a campaign's audience, for a search in the store.
#[derive(Debug, Clone, PartialEq)]
pub struct AudienceQuery {
    /// The channel whose addresses, suppressions and consent count.
    pub channel: Channel,
    /// Viber service that sends: it decides whether recipients are phone numbers or users of a bot.
    pub viber: ViberService,
    /// Members of these lists match.
    pub lists: Vec<ListId>,
    /// Members of these static segments match.
    pub segments: Vec<SegmentId>,
    /// Contacts that match these filters now: those of the dynamic segments. The filters name no dynamic segment.
    pub filters: Vec<Filter>,
    /// Members of these lists are excluded.
    pub excluded: Vec<ListId>,
    /// The present, for filters.
    pub now: Timestamp,
    /// The workspace's time zone, for filters.
    pub zone: jiff::tz::TimeZone,
    /// True if the time zones of matching contacts are wanted.
    pub wants_zones: bool,
}

/// Facts about the contacts of one piece. All facts about one contact are of one moment; two contacts of a piece may be
/// read at two moments if filters take long.
#[derive(Debug, Clone, Default)]
pub struct AudiencePiece {
    /// Number of the piece; see [`place_of`](crate::domain::campaign::audience::place_of).
    pub piece: u64,
    /// Facts about each contact, without `duplicates`.
    pub facts: Piece,
    /// Time zones of the matching contacts, each with the contacts that name it; a contact in none of them has no zone.
    pub zones: Vec<(String, Bits)>,
    /// On channels where several contacts may share an address
    /// ([`shares_addresses`](crate::domain::campaign::audience::shares_addresses)): digests of the unsuppressed
    /// addresses of each matching contact that has any, in the order of the contacts.
    pub addresses: Vec<(u16, Vec<u64>)>,
    /// The next piece that may have a matching contact; `None` at the end.
    pub next: Option<u64>,
}

/// Number of contacts with each verdict, without freezing anything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AudiencePreview {
    /// The counts.
    pub counts: AudienceCounts,
    /// True if every contact was looked at. Otherwise the counts are estimated from those that were.
    pub exact: bool,
    /// True if duplicates were looked for, or the channel cannot have any. They are not looked for if there are very
    /// many addresses or not every contact was looked at; duplicates count as recipients then.
    pub knows_duplicates: bool,
}

/// Data of a contact from which its message is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CampaignRecipient {
    /// Number of the contact.
    pub number: u64,
    /// Id of the contact.
    pub contact_id: ContactId,
    /// Address of the contact for the channel: of those that are not left out, the first that is not suppressed, or the
    /// first if all are.
    pub address: Option<String>,
    /// Time zone of the contact.
    pub timezone: Option<String>,
}

/// Reads of audiences.
#[async_trait]
pub trait Audiences {
    /// Returns the facts about the contacts of a piece; with `None`, of the first piece that may have a matching
    /// contact. Reads for some 25 ms at a time at most, and lets others read in between.
    async fn audience_piece(
        &self,
        workspace: WorkspaceId,
        query: &Arc<AudienceQuery>,
        piece: Option<u64>,
    ) -> Result<AudiencePiece, StoreError>;
    /// Returns the digests that the campaign has already taken; see
    /// [`Write::TakeAddresses`](crate::changes::Write::TakeAddresses).
    async fn taken_addresses(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        digests: Vec<u64>,
    ) -> Result<Vec<u64>, StoreError>;
    /// Counts the contacts with each verdict, as judging all pieces would now. Counts for about half a second, then
    /// estimates.
    async fn preview_audience(
        &self,
        workspace: WorkspaceId,
        query: &Arc<AudienceQuery>,
    ) -> Result<AudiencePreview, StoreError>;
    /// Returns the facts about one contact now; `None` if it does not match. Whether it is a duplicate is not looked
    /// for.
    async fn audience_facts(
        &self,
        workspace: WorkspaceId,
        query: &Arc<AudienceQuery>,
        contact: ContactId,
    ) -> Result<Option<ContactFacts>, StoreError>;
    /// Returns a campaign's kept sets of one kind from a piece on, in the order of pieces, at most `limit`.
    async fn audience_rows(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        set: AudienceSet,
        from: u64,
        limit: usize,
    ) -> Result<Vec<AudienceRow>, StoreError>;
    /// Returns all kept sets that contain a contact.
    async fn audience_sets_of(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        contact: ContactId,
    ) -> Result<Vec<AudienceSet>, StoreError>;
    /// Returns those of a contact's addresses that no other recipient of the campaign has taken, in the order given.
    async fn addresses_left_in(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        channel: Channel,
        contact: ContactId,
        addresses: Vec<String>,
    ) -> Result<Vec<String>, StoreError>;
    /// Returns contacts by number, in the order of their numbers, without deleted ones. At most 1,000 at a time.
    /// Addresses that were left out for the campaign
    /// ([`Write::LeaveOutAddresses`](crate::changes::Write::LeaveOutAddresses)) do not count.
    async fn campaign_recipients(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        channel: Channel,
        viber: ViberService,
        numbers: &[u64],
    ) -> Result<Vec<CampaignRecipient>, StoreError>;
}
