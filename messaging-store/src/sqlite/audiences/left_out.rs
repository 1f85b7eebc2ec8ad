//! Which addresses of recipients are left out, because other recipients of the campaign have them.
//!
//! They are few, and asked for when messages are made and attempted: a row for each piece that has some. Messages are
//! attempted after their campaign has been sent, so the rows of that one go with a sweep, days later.

use std::collections::HashSet;
use std::time::Duration;

use messaging_core::domain::campaign::Campaign;
use messaging_core::domain::campaign::audience::{address_digest, place_of};
use messaging_core::domain::channel::Channel;
use messaging_core::ids::{CampaignId, ContactId, WorkspaceId};
use messaging_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::super::fault::Fault;
use super::super::numbers::{campaign_number, contact_number};
use super::super::query::{many, one};
use super::super::row::{record, sql_limit};
use crate::audience_rows::{left_out_bytes, left_out_entries};

/// So long after a campaign was sent no message of it is attempted any more: the longest of them expire after 72 hours.
const ATTEMPTED_FOR: Duration = Duration::from_hours(7 * 24);
/// Pieces that are let go in one step: some megabytes at most.
pub(in super::super) const SLICE: usize = 4;
/// How many campaigns one sweep looks at.
const LOOKED_AT: usize = 1000;

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
    connection
        .prepare_cached("INSERT OR REPLACE INTO campaign_left_out (campaign, piece, entries) VALUES (?1, ?2, ?3)")?
        .execute(params![campaign, piece.cast_signed(), left_out_bytes(entries)])?;
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

/// The first campaign, by number, of those that were sent long ago for which something is still left out.
pub(in super::super) fn old(connection: &Connection, now: Timestamp) -> Result<Option<i64>, Fault> {
    const HELD: &str = "SELECT c.n, c.doc FROM (SELECT DISTINCT campaign FROM campaign_left_out) l
        CROSS JOIN campaigns c ON c.n = l.campaign WHERE NOT c.removed LIMIT ?1";
    let held = many(connection, HELD, [sql_limit(LOOKED_AT)], |row| {
        let campaign: Campaign = record(row, 1)?;
        Ok((row.get::<_, i64>(0)?, campaign.completed_at))
    })?;
    let is_old = |completed_at: Timestamp| completed_at + ATTEMPTED_FOR <= now;
    Ok(held.into_iter().find(|(_, completed_at)| completed_at.is_some_and(is_old)).map(|(campaign, _)| campaign))
}

/// Forgets up to `limit` pieces of what is left out for the campaign with a number; answers how many went.
pub(in super::super) fn forget_some(connection: &Connection, campaign: i64, limit: usize) -> Result<usize, Fault> {
    let sql = "DELETE FROM campaign_left_out WHERE (campaign, piece) IN
        (SELECT campaign, piece FROM campaign_left_out WHERE campaign = ?1 LIMIT ?2)";
    Ok(connection.prepare_cached(sql)?.execute([campaign, sql_limit(limit)])?)
}

/// Those of a contact's addresses that are not left out for a campaign.
pub(super) fn rest(
    connection: &Connection,
    workspace: WorkspaceId,
    campaign: CampaignId,
    channel: Channel,
    contact: ContactId,
    mut addresses: Vec<String>,
) -> Result<Vec<String>, Fault> {
    let connection = &*connection.unchecked_transaction()?;
    let Some(number) = contact_number(connection, workspace, contact)? else { return Ok(addresses) };
    let mut left_out = LeftOut::new(connection, workspace, campaign, channel)?;
    let mut fault = None;
    addresses.retain(|address| match left_out.contains(number.cast_unsigned(), address) {
        Ok(is_left_out) => !is_left_out,
        Err(error) => {
            fault = Some(error);
            false
        }
    });
    fault.map_or(Ok(addresses), Err)
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
                let bytes = row.get_ref(0)?.as_blob().map_err(|_| MALFORMED)?;
                Ok(left_out_entries(bytes).ok_or(MALFORMED)?.collect())
            });
            self.entries = read?.unwrap_or_default();
            self.piece = Some(piece);
        }
        let digest = || address_digest(self.workspace, self.channel, address);
        Ok(!self.entries.is_empty() && self.entries.contains(&(place, digest())))
    }
}
