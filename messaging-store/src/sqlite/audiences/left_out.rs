//! Which addresses of recipients are left out, because other recipients of the campaign have them.
//!
//! They are few, and asked for when messages are made: a row for each piece that has some.

use std::collections::HashSet;

use messaging_core::domain::campaign::audience::{address_digest, place_of};
use messaging_core::domain::channel::Channel;
use messaging_core::ids::{CampaignId, WorkspaceId};
use rusqlite::{Connection, params};

use super::super::fault::Fault;
use super::super::numbers::campaign_number;
use super::super::query::one;

/// Bytes of an entry: place and digest.
const ENTRY: usize = 10;

pub(in super::super) fn put(
    connection: &Connection,
    workspace: WorkspaceId,
    campaign: CampaignId,
    piece: u64,
    entries: &[(u16, u64)],
) -> Result<(), Fault> {
    let campaign = campaign_number(connection, workspace, campaign)?.ok_or(Fault::Conflict)?;
    if entries.is_empty() {
        connection
            .prepare_cached("DELETE FROM campaign_left_out WHERE campaign = ?1 AND piece = ?2")?
            .execute(params![campaign, piece.cast_signed()])?;
        return Ok(());
    }
    let entry = |(place, digest): &(u16, u64)| [&place.to_le_bytes()[..], &digest.to_le_bytes()].concat();
    let bytes: Vec<u8> = entries.iter().flat_map(entry).collect();
    connection
        .prepare_cached("INSERT OR REPLACE INTO campaign_left_out (campaign, piece, entries) VALUES (?1, ?2, ?3)")?
        .execute(params![campaign, piece.cast_signed(), bytes])?;
    Ok(())
}

pub(in super::super) fn forget(
    connection: &Connection,
    workspace: WorkspaceId,
    campaign: CampaignId,
) -> Result<(), Fault> {
    if let Some(campaign) = campaign_number(connection, workspace, campaign)? {
        connection.prepare_cached("DELETE FROM campaign_left_out WHERE campaign = ?1")?.execute([campaign])?;
    }
    Ok(())
}

/// What is left out for a campaign, read a piece at a time.
pub(super) struct LeftOut<'a> {
    connection: &'a Connection,
    workspace: WorkspaceId,
    channel: Channel,
    /// `None` once the campaign is gone.
    campaign: Option<i64>,
    /// The piece that was read last.
    piece: Option<u64>,
    entries: HashSet<(u16, u64)>,
}

impl<'a> LeftOut<'a> {
    pub(super) fn new(
        connection: &'a Connection,
        workspace: WorkspaceId,
        campaign: CampaignId,
        channel: Channel,
    ) -> Result<Self, Fault> {
        let campaign = campaign_number(connection, workspace, campaign)?;
        Ok(Self { connection, workspace, channel, campaign, piece: None, entries: HashSet::new() })
    }

    /// Whether an address of the contact with a number is left out.
    pub(super) fn contains(&mut self, number: u64, address: &str) -> Result<bool, Fault> {
        const SQL: &str = "SELECT entries FROM campaign_left_out WHERE campaign = ?1 AND piece = ?2";
        const MALFORMED: Fault = Fault::Malformed("addresses that are left out cannot be read");
        let Some(campaign) = self.campaign else { return Ok(false) };
        let (piece, place) = place_of(number);
        if self.piece != Some(piece) {
            let read = one(self.connection, SQL, params![campaign, piece.cast_signed()], |row| {
                let (entries, []) = row.get_ref(0)?.as_blob().map_err(|_| MALFORMED)?.as_chunks::<ENTRY>() else {
                    return Err(MALFORMED);
                };
                let entry =
                    |[a, b, digest @ ..]: &[u8; ENTRY]| (u16::from_le_bytes([*a, *b]), u64::from_le_bytes(*digest));
                Ok(entries.iter().map(entry).collect())
            });
            self.entries = read?.unwrap_or_default();
            self.piece = Some(piece);
        }
        let digest = || address_digest(self.workspace, self.channel, address);
        Ok(!self.entries.is_empty() && self.entries.contains(&(place, digest())))
    }
}
