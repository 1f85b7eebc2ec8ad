//! Which addresses of recipients are left out, because other recipients of the campaign have them.
//!
//! They are few, and asked for when messages are made and attempted: a row for each piece that has some. Messages are
//! attempted after their campaign has been sent, so the rows of that one go with a sweep, days later.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use messaging_core::domain::campaign::Campaign;
use messaging_core::domain::campaign::audience::{address_digest, place_of};
use messaging_core::domain::channel::Channel;
use messaging_core::ids::{CampaignId, ContactId, WorkspaceId};
use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;

use super::super::fault::Fault;
use super::super::numbers::contact_number;
use super::super::query::{Queries, many, params};
use super::super::reads::Reads;
use super::super::row::{get, record, sql_limit, uuid};
use super::super::sweep::sweep;
use super::super::transaction::Transaction;
use super::super::writes::Writes;
use super::campaign::expect_campaign;
use crate::audience_rows::{left_out_bytes, left_out_entries};

/// So long after a campaign was sent no message of it is attempted any more: the longest of them expire after 72 hours.
const ATTEMPTED_FOR: Duration = Duration::from_hours(7 * 24);
/// How many campaigns one sweep looks at.
const LOOKED_AT: usize = 1000;

pub(in super::super) fn put(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    campaign: CampaignId,
    piece: u64,
    entries: &[(u16, u64)],
) {
    let mut key = params![uuid(workspace), uuid(campaign), piece.cast_signed()];
    if entries.is_empty() {
        expect_campaign(transaction, workspace, campaign);
        transaction.run(
            "DELETE FROM campaign_left_out WHERE piece = $3
                 AND campaign = (SELECT n FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed)",
            key,
        );
        return;
    }
    key.extend(params![left_out_bytes(entries)]);
    transaction.run_one(
        "INSERT INTO campaign_left_out (campaign, piece, entries)
         SELECT n, $3, $4 FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed FOR KEY SHARE
         ON CONFLICT (campaign, piece) DO UPDATE SET entries = excluded.entries",
        key,
    );
}

pub(in super::super) fn forget(transaction: &mut Transaction, workspace: WorkspaceId, campaign: CampaignId) {
    transaction.run(
        "DELETE FROM campaign_left_out
         WHERE campaign = (SELECT n FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed)",
        params![uuid(workspace), uuid(campaign)],
    );
}

/// Forgets up to `limit` pieces of what is left out for one campaign that was sent long ago; answers how many went.
pub(in super::super) async fn forget_old(
    reads: &Reads,
    writes: &Writes,
    now: Timestamp,
    limit: usize,
) -> Result<u64, StoreError> {
    const HELD: &str = "SELECT c.n, c.doc FROM campaigns c
        WHERE NOT c.removed AND c.n IN (SELECT campaign FROM campaign_left_out) LIMIT $1";
    const FORGET: &str = "DELETE FROM campaign_left_out WHERE ctid = ANY (ARRAY (
        SELECT ctid FROM campaign_left_out WHERE campaign = $1 ORDER BY piece LIMIT $2 FOR UPDATE SKIP LOCKED))";
    if limit == 0 {
        return Ok(0);
    }
    let held = reads.many(HELD, params![sql_limit(LOOKED_AT)], |row| {
        let campaign: Campaign = record(row, 1)?;
        Ok((get::<i64>(row, 0)?, campaign.completed_at))
    });
    let is_old = |completed_at: Timestamp| completed_at + ATTEMPTED_FOR <= now;
    let old = held.await?.into_iter().find(|(_, completed_at)| completed_at.is_some_and(is_old));
    let Some((campaign, _)) = old else { return Ok(0) };
    sweep(writes, FORGET, params![campaign, sql_limit(limit)]).await
}

/// Those of a contact's addresses that are not left out for a campaign.
pub(super) async fn rest(
    reads: &Reads,
    (workspace, campaign): (WorkspaceId, CampaignId),
    channel: Channel,
    contact: ContactId,
    mut addresses: Vec<String>,
) -> Result<Vec<String>, Fault> {
    let mut on = reads.snapshot().await?;
    if let Some(number) = contact_number(&mut on, workspace, contact).await? {
        let number = number.cast_unsigned();
        let left_out = LeftOut::read(&mut on, (workspace, campaign), channel, &[number]).await?;
        addresses.retain(|address| !left_out.contains(number, address));
    }
    on.end().await?;
    Ok(addresses)
}

/// What is left out for a campaign in some pieces.
#[derive(Debug)]
pub(super) struct LeftOut {
    workspace: WorkspaceId,
    channel: Channel,
    /// Piece, place and digest.
    entries: HashSet<(u64, u16, u64)>,
}

impl LeftOut {
    /// Reads the pieces of the contacts with some numbers.
    pub(super) async fn read(
        on: &mut impl Queries,
        (workspace, campaign): (WorkspaceId, CampaignId),
        channel: Channel,
        numbers: &[u64],
    ) -> Result<Self, Fault> {
        const SQL: &str = "SELECT piece, entries FROM campaign_left_out WHERE piece = ANY($3)
            AND campaign = (SELECT n FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed)";
        let pieces: BTreeSet<i64> = numbers.iter().map(|number| place_of(*number).0.cast_signed()).collect();
        let pieces: Vec<i64> = pieces.into_iter().collect();
        let rows = many(on, SQL, params![uuid(workspace), uuid(campaign), pieces], |row| {
            let piece = get::<i64>(row, 0)?.cast_unsigned();
            let entries =
                left_out_entries(get(row, 1)?).ok_or(Fault::Malformed("addresses that are left out cannot be read"))?;
            Ok(entries.map(|(place, digest)| (piece, place, digest)).collect::<Vec<_>>())
        });
        Ok(Self { workspace, channel, entries: rows.await?.into_iter().flatten().collect() })
    }

    /// Whether an address of the contact with a number is left out.
    pub(super) fn contains(&self, number: u64, address: &str) -> bool {
        let (piece, place) = place_of(number);
        !self.entries.is_empty()
            && self.entries.contains(&(piece, place, address_digest(self.workspace, self.channel, address)))
    }
}
